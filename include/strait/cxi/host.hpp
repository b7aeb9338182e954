// SPDX-License-Identifier: Apache-2.0
// The calls of cxi.h that the kernel exports to its own modules, made for programs: by write(2) and mmap(2) on a device
// node, or whatever a cxi_dev's functions stand for. Errors are errno: a call that gives a pointer gives null, one that
// gives a number gives -errno, and errno is set. Threads: as the device's. What was made is freed by the call of its
// name, children before parents (EBUSY otherwise).
#pragma once

#include <cerrno>
#include <cstdlib>  // before <new>: that of clang for CUDA calls malloc
#include <cstring>
#include <new>

#include "strait/cxi/queues.hpp"

namespace strait::cxi {

// One open of a device. library.hpp fills it for libstrait's; a test may bring its own.
struct cxi_dev {
  void* device;
  // As write(2), mmap(2) with MAP_SHARED, munmap(2): 0 or an errno.
  int (*command)(void* device, const void* command, std::size_t length);
  int (*map)(void* device, std::uint64_t offset, std::uint64_t length, void** address);
  void (*unmap)(void* device, void* address, std::uint64_t length);
  unsigned doorbell_flags;  // strait::device::cxi::kMemoryDoorbell for a device in software
};
struct cxi_lni {
  cxi_dev* dev;
  unsigned id;
};
struct cxi_cp {
  cxi_lni* lni;
  unsigned hndl;
  unsigned lcid;
};
struct cxi_domain {
  cxi_lni* lni;
  unsigned id;
  unsigned vni, pid;
};
struct cxi_eq {
  cxi_lni* lni;
  unsigned eqn;
};
struct cxi_pte {
  cxi_lni* lni;
  unsigned id;  // as target commands name it
};

namespace detail {
inline int answer(int error) {
  if (error != 0) errno = error;
  return -error;
}
template <class Cmd, class Resp>
int ask(cxi_dev* dev, Cmd command, Resp& resp) {
  command.op = Cmd::kOp;
  command.resp = reinterpret_cast<std::uint64_t>(&resp);
  return answer(dev->command(dev->device, &command, sizeof command));
}
template <class Cmd>
int tell(cxi_dev* dev, Cmd command) {
  command.op = Cmd::kOp;
  return answer(dev->command(dev->device, &command, sizeof command));
}
template <class T>
T* made() {
  T* const one = new (std::nothrow) T{};
  if (one == nullptr) errno = ENOMEM;
  return one;
}
inline int map(cxi_dev* dev, const wire::cxi::MmInfo& where, void*& address) {
  return answer(dev->map(dev->device, where.offset, where.size, &address));
}
}  // namespace detail

// ---- What the others are made on ------------------------------------------------------------------------------------

inline cxi_lni* cxi_lni_alloc(cxi_dev* dev, unsigned svc_id) {
  wire::cxi::LniAllocCmd cmd{};
  cmd.svc_id = svc_id;
  wire::cxi::LniAllocResp resp{};
  if (detail::ask(dev, cmd, resp) != 0) return nullptr;
  cxi_lni* const lni = detail::made<cxi_lni>();
  if (lni != nullptr) *lni = {dev, resp.lni};
  return lni;
}
inline int cxi_lni_free(cxi_lni* lni) {
  wire::cxi::LniFreeCmd cmd{};
  cmd.lni = lni->id;
  const int error = detail::tell(lni->dev, cmd);
  if (error == 0) delete lni;
  return error;
}
inline cxi_domain* cxi_domain_alloc(cxi_lni* lni, unsigned vni, unsigned pid) {
  wire::cxi::DomainAllocCmd cmd{};
  cmd.lni = lni->id;
  cmd.vni = vni;
  cmd.pid = pid;
  wire::cxi::DomainAllocResp resp{};
  if (detail::ask(lni->dev, cmd, resp) != 0) return nullptr;
  cxi_domain* const domain = detail::made<cxi_domain>();
  if (domain != nullptr) *domain = {lni, resp.domain, resp.vni, resp.pid};
  return domain;
}
inline void cxi_domain_free(cxi_domain* domain) {
  wire::cxi::DomainFreeCmd cmd{};
  cmd.domain = domain->id;
  if (detail::tell(domain->lni->dev, cmd) == 0) delete domain;
}

// ---- Communication profiles -----------------------------------------------------------------------------------------

inline cxi_cp* cxi_trig_cp_alloc(cxi_lni* lni, unsigned vni, unsigned tc, cxi_traffic_class_type tc_type,
                                 cxi_trig_cp cp_type) {
  wire::cxi::TrigCpAllocCmd cmd{};
  cmd.lni = lni->id;
  cmd.vni = vni;
  cmd.tc = static_cast<wire::cxi::TrafficClass>(tc);
  cmd.tc_type = static_cast<wire::cxi::TrafficClassType>(tc_type);
  cmd.cp_type = static_cast<wire::cxi::CpType>(cp_type);
  wire::cxi::CpAllocResp resp{};
  if (detail::ask(lni->dev, cmd, resp) != 0) return nullptr;
  cxi_cp* const cp = detail::made<cxi_cp>();
  if (cp != nullptr) *cp = {lni, resp.cp_hndl, resp.lcid};
  return cp;
}
inline void cxi_cp_free(cxi_cp* cp) {
  wire::cxi::CpFreeCmd cmd{};
  cmd.cp_hndl = cp->hndl;
  if (detail::tell(cp->lni->dev, cmd) == 0) delete cp;
}

// ---- Counting events ------------------------------------------------------------------------------------------------

inline void cxi_ct_free(cxi_ct* ct) {
  cxi_dev* const dev = ct->lni->dev;
  if (ct->doorbell != nullptr) dev->unmap(dev->device, ct->doorbell, ct->doorbell_size);
  wire::cxi::CtFreeCmd cmd{};
  cmd.ctn = ct->ctn;
  (void)detail::tell(dev, cmd);
  delete ct;
}
// `wb`: 8 bytes aligned to 8, or null: it is never written back. is_user is the kernel's and does nothing here. The
// doorbell page is mapped.
inline cxi_ct* cxi_ct_alloc(cxi_lni* lni, c_ct_writeback* wb, bool is_user = true) {
  (void)is_user;
  wire::cxi::CtAllocCmd cmd{};
  cmd.lni = lni->id;
  cmd.wb = reinterpret_cast<std::uint64_t>(wb);
  wire::cxi::CtAllocResp resp{};
  if (detail::ask(lni->dev, cmd, resp) != 0) return nullptr;
  cxi_ct* const ct = detail::made<cxi_ct>();
  if (ct == nullptr) return nullptr;
  *ct = {nullptr, resp.ctn, wb, lni->dev->doorbell_flags, lni, resp.doorbell.size};
  void* page = nullptr;
  if (detail::map(lni->dev, resp.doorbell, page) != 0) {
    const int why = errno;
    cxi_ct_free(ct);
    errno = why;
    return nullptr;
  }
  ct->doorbell = static_cast<std::uint64_t*>(page);
  return ct;
}
// The kernel gives a physical address to map; here it is mapped already: its address in this process, and its size.
inline int cxi_ct_user_info(cxi_ct* ct, void** doorbell_addr, std::size_t* doorbell_size) {
  if (ct == nullptr || doorbell_addr == nullptr || doorbell_size == nullptr) return -EINVAL;
  *doorbell_addr = ct->doorbell;
  *doorbell_size = ct->doorbell_size;
  return 0;
}
// The word is not written by this: a counter that must be seen at once is asked for with a GET.
inline int cxi_ct_wb_update(cxi_ct* ct, c_ct_writeback* wb) {
  wire::cxi::CtWbUpdateCmd cmd{};
  cmd.ctn = ct->ctn;
  cmd.wb = reinterpret_cast<std::uint64_t>(wb);
  const int error = detail::tell(ct->lni->dev, cmd);
  if (error == 0) ct->wb = wb;
  return error;
}

// ---- Command queues -------------------------------------------------------------------------------------------------

inline void cxi_cq_free(cxi_cq* cq) {
  cxi_dev* const dev = cq->lni->dev;
  if (cq->cmds != nullptr) dev->unmap(dev->device, cq->cmds, cq->cmds_size);
  if (cq->wp_addr != nullptr) dev->unmap(dev->device, cq->wp_addr, cq->wp_addr_size);
  wire::cxi::CqFreeCmd cmd{};
  cmd.cq = cq->idx;
  (void)detail::tell(dev, cmd);
  delete cq;
}
// Ring and launch page are mapped and the queue is ready for this CPU; numa_node is the kernel's and does nothing.
inline cxi_cq* cxi_cq_alloc(cxi_lni* lni, cxi_eq* evtq, const cxi_cq_alloc_opts* opts, int numa_node = -1) {
  (void)numa_node;
  wire::cxi::CqAllocCmd cmd{};
  cmd.lni = lni->id;
  cmd.eq = evtq != nullptr ? evtq->eqn : 0;
  std::memcpy(&cmd.opts, opts, sizeof cmd.opts);
  wire::cxi::CqAllocResp resp{};
  if (detail::ask(lni->dev, cmd, resp) != 0) return nullptr;
  cxi_cq* const cq = detail::made<cxi_cq>();
  if (cq == nullptr) return nullptr;
  void* cmds = nullptr;
  void* page = nullptr;
  const int error =
      detail::map(lni->dev, resp.cmds, cmds) != 0 || detail::map(lni->dev, resp.wp_addr, page) != 0 ? errno : 0;
  if (error == 0) cxi_cq_init(cq, cmds, resp.count, page, resp.cq);
  cq->idx = resp.cq;
  cq->lni = lni;
  cq->cmds = cmds;
  cq->cmds_size = resp.cmds.size;
  cq->wp_addr = page;
  cq->wp_addr_size = resp.wp_addr.size;
  if (error == 0) return cq;
  cxi_cq_free(cq);
  errno = error;
  return nullptr;
}
// The kernel gives pages and a physical address; here both are mapped already. Sizes are bytes.
inline int cxi_cq_user_info(cxi_cq* cmdq, std::size_t* cmds_size, void** cmds, void** wp_addr,
                            std::size_t* wp_addr_size) {
  if (cmdq == nullptr || cmds_size == nullptr || cmds == nullptr || wp_addr == nullptr || wp_addr_size == nullptr)
    return -EINVAL;
  *cmds_size = cmdq->cmds_size;
  *cmds = cmdq->cmds;
  *wp_addr = cmdq->wp_addr;
  *wp_addr_size = cmdq->wp_addr_size;
  return 0;
}

// ---- Memory ---------------------------------------------------------------------------------------------------------

struct mapped_md : cxi_md {
  cxi_lni* lni;
};
// Host memory, or with CXI_MAP_DEVICE an accelerator's: by the dma-buf in `hints`, else by the driver's peer memory.
inline cxi_md* cxi_map(cxi_lni* lni, std::uintptr_t va, std::size_t len, std::uint32_t flags,
                       const cxi_md_hints* hints) {
  wire::cxi::AtuMapCmd cmd{};
  cmd.lni = lni->id;
  cmd.va = va;
  cmd.len = len;
  cmd.flags = flags;
  cmd.hints.dmabuf_fd = wire::cxi::kNoDmabufFd;
  if (hints != nullptr) {
    cmd.hints.page_shift = hints->page_shift;
    cmd.hints.huge_shift = hints->huge_shift;
    cmd.hints.ptg_mode = hints->ptg_mode;
    cmd.hints.ptg_mode_valid = hints->ptg_mode_valid ? 1 : 0;
    cmd.hints.dmabuf_fd = hints->dmabuf_fd;
    cmd.hints.dmabuf_offset = hints->dmabuf_offset;
    cmd.hints.dmabuf_valid = hints->dmabuf_valid ? 1 : 0;
  }
  wire::cxi::AtuMapResp resp{};
  if (detail::ask(lni->dev, cmd, resp) != 0) return nullptr;
  mapped_md* const md = detail::made<mapped_md>();
  if (md == nullptr) return nullptr;
  md->iova = resp.md.iova;
  md->va = resp.md.va;
  md->len = resp.md.len;
  md->lac = resp.md.lac;
  md->page_shift = resp.md.page_shift;
  md->huge_shift = resp.md.huge_shift;
  md->id = resp.id;
  md->lni = lni;
  return md;
}
inline int cxi_unmap(cxi_md* md) {
  auto* const mapped = static_cast<mapped_md*>(md);
  wire::cxi::AtuUnmapCmd cmd{};
  cmd.id = md->id;
  const int error = detail::tell(mapped->lni->dev, cmd);
  if (error == 0) delete mapped;
  return error;
}

// ---- Portal table entries -------------------------------------------------------------------------------------------

inline cxi_pte* cxi_pte_alloc(cxi_lni* lni, cxi_eq* evtq, const cxi_pt_alloc_opts* opts) {
  wire::cxi::PteAllocCmd cmd{};
  cmd.lni_hndl = lni->id;
  cmd.evtq_hndl = evtq != nullptr ? evtq->eqn : 0;
  std::memcpy(&cmd.opts, opts, sizeof cmd.opts);
  wire::cxi::PteAllocResp resp{};
  if (detail::ask(lni->dev, cmd, resp) != 0) return nullptr;
  cxi_pte* const pte = detail::made<cxi_pte>();
  if (pte != nullptr) *pte = {lni, resp.pte_number};
  return pte;
}
inline void cxi_pte_free(cxi_pte* pte) {
  wire::cxi::PteFreeCmd cmd{};
  cmd.pte_number = pte->id;
  std::uint64_t nothing[4] = {};
  if (detail::ask(pte->lni->dev, cmd, nothing) == 0) delete pte;
}
inline int cxi_pte_map(cxi_pte* pte, cxi_domain* domain, unsigned pid_offset, bool is_multicast, unsigned* pt_index) {
  wire::cxi::PteMapCmd cmd{};
  cmd.pte_number = pte->id;
  cmd.domain_hndl = domain->id;
  cmd.pid_offset = pid_offset;
  cmd.is_multicast = is_multicast ? 1 : 0;
  wire::cxi::PteMapResp resp{};
  const int error = detail::ask(pte->lni->dev, cmd, resp);
  if (error == 0) *pt_index = resp.pte_index;
  return error;
}
inline int cxi_pte_unmap(cxi_pte* pte, cxi_domain*, int pt_index) {
  wire::cxi::PteUnmapCmd cmd{};
  cmd.pte_index = static_cast<std::uint32_t>(pt_index);
  std::uint64_t nothing[4] = {};
  return detail::ask(pte->lni->dev, cmd, nothing);
}

}  // namespace strait::cxi
