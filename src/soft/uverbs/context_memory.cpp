// SPDX-License-Identifier: Apache-2.0
// Protection domains and registered memory.
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include <cerrno>
#include <vector>

#include "soft/uverbs/context.hpp"
#include "soft/uverbs/write_call.hpp"
#include "sys/files.hpp"
#include "sys/mapping.hpp"

namespace strait::soft::uverbs {

namespace {

constexpr std::uint32_t kDataRights = IB_UVERBS_ACCESS_LOCAL_WRITE | IB_UVERBS_ACCESS_REMOTE_WRITE |
                                      IB_UVERBS_ACCESS_REMOTE_READ | IB_UVERBS_ACCESS_REMOTE_ATOMIC;
constexpr std::uint32_t kRights = kDataRights | IB_UVERBS_ACCESS_MW_BIND;
constexpr std::uint32_t kKnownAccess = kRights | IB_UVERBS_ACCESS_ZERO_BASED | IB_UVERBS_ACCESS_ON_DEMAND |
                                       IB_UVERBS_ACCESS_HUGETLB | IB_UVERBS_ACCESS_OPTIONAL_RANGE;
constexpr std::uint32_t kDmabufAccess = kDataRights | IB_UVERBS_ACCESS_OPTIONAL_RANGE;
static_assert(int{IB_UVERBS_ACCESS_LOCAL_WRITE} == int{STRAIT_NIC_LOCAL_WRITE} &&
              int{IB_UVERBS_ACCESS_REMOTE_WRITE} == int{STRAIT_NIC_REMOTE_WRITE} &&
              int{IB_UVERBS_ACCESS_REMOTE_READ} == int{STRAIT_NIC_REMOTE_READ} &&
              int{IB_UVERBS_ACCESS_REMOTE_ATOMIC} == int{STRAIT_NIC_REMOTE_ATOMIC} &&
              IB_UVERBS_ACCESS_MW_BIND == nic::kAccessBindWindow);

using nic::kReregAccess;
using nic::kReregPd;
using nic::kReregTranslation;

bool same_offset_in_page(std::uint64_t a, std::uint64_t b) {
  return ((a ^ b) & (sys::page_bytes() - 1)) == 0;
}

}  // namespace

int check_access(std::uint32_t access) {
  // Who may be written from afar must be writable here.
  if ((access & (IB_UVERBS_ACCESS_REMOTE_WRITE | IB_UVERBS_ACCESS_REMOTE_ATOMIC)) != 0 &&
      (access & IB_UVERBS_ACCESS_LOCAL_WRITE) == 0)
    return -EINVAL;
  return (access & ~kKnownAccess) != 0 ? -EINVAL : 0;
}

int Context::alloc_pd(WriteCall& call) {
  if (const int failed = need_engine()) return failed;
  auto pd = std::make_unique<Pd>();
  pd->number = engine_->alloc_pd();
  const mlx5_ib_alloc_pd_resp driver{pd->number};
  ib_uverbs_alloc_pd_resp out{};
  const std::uint32_t number = pd->number;
  out.pd_handle = objects_.add(std::move(pd));
  int failed = call.put(out);
  if (failed == 0) failed = call.put_driver(driver);
  if (failed != 0) {
    objects_.remove(out.pd_handle);
    (void)engine_->free_pd(number);
  }
  return failed;
}

int Context::destroy_pd(Request& request) {
  const std::uint32_t handle = request.handle(UVERBS_ATTR_DESTROY_PD_HANDLE);
  Pd* const pd = objects_.find<Pd>(request.word(UVERBS_ATTR_DESTROY_PD_HANDLE));
  if (pd == nullptr) return -ENOENT;
  if (pd->users != 0) return -EBUSY;
  if (const Status freed = engine_->free_pd(pd->number); !freed) return -errno_of(freed.error());
  objects_.remove(handle);
  return 0;
}

// What to register for `mr`; fd < 0: the program's own memory at mr.start.
int Context::describe_mr(const Mr& mr, int fd, std::uint64_t fd_offset, strait_nic_mr_request& wanted) {
  // Only of the device's memory may a program register nothing. It gets one byte without any right.
  const bool nothing = mr.dm != nullptr && mr.length_bytes == 0;
  if ((mr.length_bytes == 0 && !nothing) || mr.start + mr.length_bytes < mr.start ||
      mr.iova + mr.length_bytes < mr.iova)
    return -EINVAL;
  wanted = {};
  wanted.struct_size = sizeof wanted;
  wanted.pd = mr.pd->number;
  wanted.access = mr.access & kRights;
  wanted.fd = fd;
  wanted.fd_offset = fd_offset;
  wanted.address = mr.iova;
  wanted.length_bytes = mr.length_bytes;
  if (mr.accelerators && !mr.accelerators->stays()) {
    wanted.fd = -1;
    wanted.fd_offset = 0;
    wanted.port = mr.accelerators->port();
    return 0;
  }
  if (mr.accelerators) {
    wanted.fd = mr.accelerators->file().fd;
    wanted.fd_offset = mr.accelerators->file().offset;
    return 0;
  }
  if (fd >= 0) return 0;
  if (mr.on_demand) {
    wanted.port = mr.on_demand->port();
    return 0;
  }
  if (mr.dm != nullptr) {
    if (nothing) wanted.access = 0;
    if (nothing) wanted.length_bytes = 1;
    wanted.access |= STRAIT_NIC_HOST_ADDRESS;
    wanted.fd_offset = reinterpret_cast<std::uintptr_t>(mr.dm->mapping.data() + (nothing ? 0 : mr.start));
    return 0;
  }
  // A kernel pins the pages for writing when anybody is to write, and fails with this errno where it cannot.
  const bool writable = (mr.access & ~std::uint32_t{IB_UVERBS_ACCESS_REMOTE_READ} & kRights) != 0;
  std::byte* const bytes = device_->memory().lasting(mr.start, mr.length_bytes, writable);
  if (bytes == nullptr) return -EFAULT;
  wanted.access |= STRAIT_NIC_HOST_ADDRESS;
  wanted.fd_offset = reinterpret_cast<std::uintptr_t>(bytes);
  return 0;
}

int Context::make_mr(Mr& mr, int fd, std::uint64_t fd_offset) {
  strait_nic_mr_request wanted{};
  if (const int failed = describe_mr(mr, fd, fd_offset, wanted)) return failed;
  const auto made = engine_->register_memory(wanted);
  if (!made) return -errno_of(made.error());
  mr.key = made->lkey;
  return 0;
}

Status drop_key(nic::Engine& engine, const Mr& mr) {
  return mr.alias ? engine.remove_alias(mr.key) : engine.deregister_memory(mr.key);
}

int Context::drop_mr(Mr& mr) {
  const Status dropped = drop_key(*engine_, mr);
  if (!dropped) return -errno_of(dropped.error());
  mr.accelerators.reset();  // after the key: nothing asks for it any more
  return 0;
}

// Memory that is not the program's own: peer-memory clients and p2p pages are asked, as far as there are any.
int Context::import_address(Mr& mr) {
  const bool writable = (mr.access & ~std::uint32_t{IB_UVERBS_ACCESS_REMOTE_READ} & kRights) != 0;
  if (device_->memory().lasting(mr.start, mr.length_bytes, writable) != nullptr) return 0;
  const int answer = device_->kernel().import_address(device_->dma_device(), mr.start, mr.length_bytes, mr.iova,
                                                      writable, mr.accelerators);
  return answer < 0 ? answer : 0;  // nobody's: what comes next says so
}

int Context::reg_mr(WriteCall& call) {
  ib_uverbs_reg_mr wanted{};
  if (const int failed = call.get(wanted)) return failed;
  if (!same_offset_in_page(wanted.start, wanted.hca_va)) return -EINVAL;
  if (const int failed = check_access(wanted.access_flags)) return failed;
  auto mr = std::make_unique<Mr>();
  mr->pd = objects_.find<Pd>(wanted.pd_handle);
  if (mr->pd == nullptr) return -EINVAL;  // of the older commands
  mr->start = wanted.start;
  mr->length_bytes = wanted.length;
  mr->iova = wanted.hca_va;
  mr->access = wanted.access_flags;
  if ((mr->access & IB_UVERBS_ACCESS_ON_DEMAND) != 0)
    mr->on_demand = std::make_unique<OnDemand>(device_->memory(), mr->start - mr->iova);
  if (!mr->on_demand) {
    if (const int failed = import_address(*mr)) return failed;
  }
  if (const int failed = make_mr(*mr, -1, 0)) return failed;
  ib_uverbs_reg_mr_resp out{};
  Mr& made = *mr;
  out.lkey = out.rkey = mr->key;
  out.mr_handle = objects_.add(std::move(mr));
  if (const int failed = call.put(out)) {
    (void)drop_mr(made);
    objects_.remove(out.mr_handle);
    return failed;
  }
  ++made.pd->users;
  return 0;
}

int Context::rereg_mr(WriteCall& call) {
  ib_uverbs_rereg_mr wanted{};
  if (const int failed = call.get(wanted)) return failed;
  if (wanted.flags == 0) return -EINVAL;
  if ((wanted.flags & ~(kReregTranslation | kReregPd | kReregAccess)) != 0) return -EOPNOTSUPP;
  Mr* const mr = objects_.find<Mr>(wanted.mr_handle);
  if (mr == nullptr) return -EINVAL;
  if (mr->of_dmabuf || mr->dm != nullptr || mr->on_demand || mr->accelerators) return -EOPNOTSUPP;
  if (mr->users != 0) return -EBUSY;
  Mr fresh;
  fresh.pd = mr->pd;
  fresh.start = mr->start;
  fresh.length_bytes = mr->length_bytes;
  fresh.iova = mr->iova;
  fresh.access = mr->access;
  if ((wanted.flags & kReregAccess) != 0) {
    if (const int failed = check_access(wanted.access_flags)) return failed;
    if ((wanted.access_flags & IB_UVERBS_ACCESS_ON_DEMAND) != 0) return -EOPNOTSUPP;
    fresh.access = wanted.access_flags;
  }
  if ((wanted.flags & kReregTranslation) != 0) {
    if (!same_offset_in_page(wanted.start, wanted.hca_va)) return -EINVAL;
    fresh.start = wanted.start;
    fresh.length_bytes = wanted.length;
    fresh.iova = wanted.hca_va;
  }
  if ((wanted.flags & kReregPd) != 0) {
    fresh.pd = objects_.find<Pd>(wanted.pd_handle);
    if (fresh.pd == nullptr) return -EINVAL;
  }
  strait_nic_mr_request changed{};
  if (const int failed = describe_mr(fresh, -1, 0, changed)) return failed;
  ib_uverbs_rereg_mr_resp out{};
  out.lkey = out.rkey = mr->key;
  if (const int failed = call.put(out)) return failed;
  if (const Status done = engine_->rereg_memory(mr->key, wanted.flags, changed); !done) return -errno_of(done.error());
  --mr->pd->users;
  ++fresh.pd->users;
  mr->pd = fresh.pd;
  mr->start = fresh.start;
  mr->length_bytes = fresh.length_bytes;
  mr->iova = fresh.iova;
  mr->access = fresh.access;
  return 0;
}

// A dma-buf that no CPU may map is one that this device cannot take, and programs go another way. Whatever is wrong
// with another file, it is no dma-buf.
int dmabuf_errno(int failed, bool is_dmabuf) {
  if (failed == -ENOMEM) return failed;
  return is_dmabuf ? -EOPNOTSUPP : -EINVAL;
}

int Context::reg_dmabuf_mr(Request& request) {
  auto mr = std::make_unique<Mr>();
  mr->pd = objects_.find<Pd>(request.word(UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE));
  if (mr->pd == nullptr) return -ENOENT;
  const std::uint64_t access = request.word(UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS);
  if ((access & ~std::uint64_t{kDmabufAccess}) != 0) return -EINVAL;
  mr->access = static_cast<std::uint32_t>(access);
  if (const int failed = check_access(mr->access)) return failed;
  const std::uint64_t offset = request.word(UVERBS_ATTR_REG_DMABUF_MR_OFFSET);
  mr->length_bytes = request.word(UVERBS_ATTR_REG_DMABUF_MR_LENGTH);
  mr->iova = request.word(UVERBS_ATTR_REG_DMABUF_MR_IOVA);
  mr->of_dmabuf = true;
  if (!same_offset_in_page(offset, mr->iova)) return -EINVAL;
  const auto fd = static_cast<int>(request.word(UVERBS_ATTR_REG_DMABUF_MR_FD));  // a number, unlike other descriptors
  if (!sys::is_open_fd(fd)) return -EBADF;
  if (mr->length_bytes == 0 || offset + mr->length_bytes < offset) return -EINVAL;
  const std::int64_t size = sys::file_bytes(fd);
  if (size >= 0 && offset + mr->length_bytes > static_cast<std::uint64_t>(size)) return -EINVAL;
  // One of our accelerators' goes through the machine's dma-buf core, whose refusals are the exporter's.
  const int imported =
      device_->kernel().import_dmabuf(device_->dma_device(), fd, offset, mr->length_bytes, mr->iova, mr->accelerators);
  if (imported < 0) return imported;
  if (const int failed = make_mr(*mr, fd, offset)) return dmabuf_errno(failed, sys::is_dmabuf(fd));
  const std::uint32_t key = mr->key;
  Mr& made = *mr;
  const std::uint32_t handle = objects_.add(std::move(mr));
  int failed = request.put(UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, key);
  if (failed == 0) failed = request.put(UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, key);
  if (failed == 0) failed = request.put_word(UVERBS_ATTR_REG_DMABUF_MR_HANDLE, handle);
  if (failed != 0) {
    (void)drop_mr(made);
    objects_.remove(handle);
    return failed;
  }
  ++made.pd->users;
  return 0;
}

int Context::query_mr(Request& request) {
  const Mr* const mr = objects_.find<Mr>(request.word(UVERBS_ATTR_QUERY_MR_HANDLE));
  if (mr == nullptr) return -ENOENT;
  if (const int failed = request.put(UVERBS_ATTR_QUERY_MR_RESP_LKEY, mr->key)) return failed;
  if (const int failed = request.put(UVERBS_ATTR_QUERY_MR_RESP_RKEY, mr->key)) return failed;
  if (const int failed = request.put(UVERBS_ATTR_QUERY_MR_RESP_LENGTH, mr->length_bytes)) return failed;
  return request.put(UVERBS_ATTR_QUERY_MR_RESP_IOVA, mr->iova);
}

// Advice is about memory on demand: what is about to be used. Only whether it is there can be found out.
int Context::advise_mr(Request& request) {
  const Pd* const pd = objects_.find<Pd>(request.word(UVERBS_ATTR_ADVISE_MR_PD_HANDLE));
  if (pd == nullptr) return -ENOENT;
  const std::uint64_t advice = request.word(UVERBS_ATTR_ADVISE_MR_ADVICE);
  const std::uint64_t flags = request.word(UVERBS_ATTR_ADVISE_MR_FLAGS);
  if (advice > IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT) return -EOPNOTSUPP;
  if ((flags & ~std::uint64_t{IB_UVERBS_ADVISE_MR_FLAG_FLUSH}) != 0) return -EINVAL;
  const std::size_t bytes = request.length(UVERBS_ATTR_ADVISE_MR_SGE_LIST);
  std::vector<ib_uverbs_sge> pieces(bytes / sizeof(ib_uverbs_sge));
  if (pieces.empty() || bytes % sizeof(ib_uverbs_sge) != 0) return -EINVAL;
  if (const int failed = request.get(UVERBS_ATTR_ADVISE_MR_SGE_LIST, pieces.data(), bytes)) return failed;
  const bool writes = advice == IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE;
  for (const ib_uverbs_sge& piece : pieces) {
    const Mr* mr = nullptr;
    objects_.each<Mr>([&](std::uint32_t, const Mr& one) { mr = one.key == piece.lkey ? &one : mr; });
    if (mr == nullptr || !mr->on_demand) return -ENOENT;
    if (mr->pd != pd || (writes && (mr->access & kRights & ~std::uint32_t{IB_UVERBS_ACCESS_REMOTE_READ}) == 0))
      return -EPERM;
    const std::uint64_t at = piece.addr - mr->iova;
    if (piece.addr < mr->iova || at > mr->length_bytes || piece.length > mr->length_bytes - at) return -EFAULT;
    const bool waits = flags != 0 && advice != IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT && piece.length != 0;
    if (waits && device_->memory().lasting(mr->start + at, piece.length, writes) == nullptr) return -EFAULT;
  }
  return 0;
}

int Context::destroy_mr(Request& request) {
  const std::uint64_t handle = request.word(UVERBS_ATTR_DESTROY_MR_HANDLE);
  Mr* const mr = objects_.find<Mr>(handle);
  if (mr == nullptr) return -ENOENT;
  if (mr->users != 0) return -EBUSY;
  if (const int failed = drop_mr(*mr)) return failed;
  --mr->pd->users;
  if (mr->dm != nullptr) --mr->dm->users;
  objects_.remove(static_cast<std::uint32_t>(handle));
  return 0;
}

}  // namespace strait::soft::uverbs
