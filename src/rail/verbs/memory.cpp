// SPDX-License-Identifier: Apache-2.0
#include "rail/verbs/memory.hpp"

#include <cerrno>

#include "sys/files.hpp"

namespace strait::rail::verbs {
namespace {

constexpr const char* kStageIt = "share it staged through host memory: the option allow_staging, with access 0";

int verbs_access(std::uint32_t access) {
  int rights = 0;
  if (access & STRAIT_NIC_LOCAL_WRITE) rights |= IBV_ACCESS_LOCAL_WRITE;
  // Verbs refuses the right to write from afar without the right to write here.
  if (access & STRAIT_NIC_REMOTE_WRITE) rights |= IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE;
  if (access & STRAIT_NIC_REMOTE_ATOMIC) rights |= IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_LOCAL_WRITE;
  if (access & STRAIT_NIC_REMOTE_READ) rights |= IBV_ACCESS_REMOTE_READ;
  return rights;
}

std::string errno_name(int error) {
  const std::string text = errno_text(error);  // "EFAULT (bad address)"
  return text.substr(0, text.find(' '));
}

}  // namespace

void Memory::probe_dmabuf(ibv_pd* domain) {
  errno = 0;
  const Owner<ibv_mr, ibv_dereg_mr> region(
      ibv_reg_dmabuf_mr(domain, 0, sys::page_bytes(), 0, -1, IBV_ACCESS_LOCAL_WRITE));
  takes_dmabuf_ = region || (errno != EOPNOTSUPP && errno != ENOSYS);
}

Status Memory::reach(const std::string& device, ibv_pd* domain, const strait_nic_mr_request& request,
                     Registration& out) {
  if (request.port != nullptr) {
    return with_remedy(fail(Code::unsupported, "{} cannot reach memory through a port of this process", device),
                       kStageIt);
  }
  const int access = verbs_access(request.access);
  if (request.fd < 0 || (request.access & STRAIT_NIC_CPU_ADDRESS) != 0) {
    out.region.reset(ibv_reg_mr(domain, reinterpret_cast<void*>(request.address), request.length_bytes, access));
    if (!out.region) return fail_errno(errno, fmt::format("{} did not register host memory", device));
    out.how = "host pages, registered by address";
    ++counts.by_address;
    return {};
  }
  if (!sys::is_dmabuf(request.fd)) return reach_file(device, domain, request, 0, out);
  out.region.reset(
      ibv_reg_dmabuf_mr(domain, request.fd_offset, request.length_bytes, request.address, request.fd, access));
  if (out.region) {
    out.how = "dma-buf, registered as such";
    ++counts.by_dmabuf;
    return {};
  }
  const int refused = errno;
  ++counts.dmabuf_refused;
  if (refused != EOPNOTSUPP) return fail_errno(refused, fmt::format("{} did not register the dma-buf", device));
  return reach_file(device, domain, request, refused, out);
}

// By a mapping made here: of the memfd with the pages if there is one, else of the descriptor itself.
Status Memory::reach_file(const std::string& device, ibv_pd* domain, const strait_nic_mr_request& request,
                          int dmabuf_errno, Registration& out) {
  const bool has_pages = request.struct_size >= sizeof(strait_nic_mr_request) &&
                         (request.access & STRAIT_NIC_PAGES_FD) != 0 && request.pages_fd >= 0;
  const bool pages = dmabuf_errno != 0 && has_pages;
  const int fd = pages ? request.pages_fd : request.fd;
  const std::uint64_t offset = pages ? request.pages_offset : request.fd_offset;
  const std::uint64_t skip = offset % sys::page_bytes();
  if (dmabuf_errno == 0 || pages) STRAIT_CHECK(sys::check_sealed(fd, offset + request.length_bytes));
  // The device sees the memory at request.address, and pages are whole: both must begin at the same place in a page.
  if (skip != request.address % sys::page_bytes())
    return fail(Code::invalid, "byte {:#x} of the memory lies at offset {} of its file: not the same place in a page",
                request.address, offset);
  STRAIT_TRY(out.mapping, sys::map_file(fd, offset - skip, request.length_bytes + skip, sys::Protect::read_write));
  out.region.reset(ibv_reg_mr_iova(domain, out.mapping.data() + skip, request.length_bytes, request.address,
                                   verbs_access(request.access)));
  const std::string refused =
      dmabuf_errno == 0 ? std::string() : fmt::format("dma-buf refused by {} ({}), ", device, errno_name(dmabuf_errno));
  if (out.region) {
    out.how = refused + (pages || dmabuf_errno == 0 ? "the mapping of its memfd was registered"
                                                    : "the mapping of the dma-buf was registered");
    ++counts.by_mapping;
    return {};
  }
  const int why = errno;
  if (why == EFAULT) {
    Error error =
        fail(Code::unsupported, "{}and its mapping has no struct pages that {} could pin (EFAULT)", refused, device);
    error.sys_errno = why;
    return with_remedy(std::move(error), kStageIt);
  }
  return fail_errno(why, fmt::format("{}{} did not register its mapping", refused, device));
}

Result<strait_nic_mr> Memory::add(const std::string& device, ibv_pd* domain, const strait_nic_mr_request& request) {
  if (request.length_bytes == 0) return fail(Code::invalid, "cannot register 0 bytes");
  if (request.address + request.length_bytes < request.address)
    return fail(Code::invalid, "cannot register {} bytes at {:#x}: the range wraps around", request.length_bytes,
                request.address);
  Registration made;
  made.pd = request.pd;
  STRAIT_CHECK(reach(device, domain, request, made));
  const strait_nic_mr keys{made.region->lkey, made.region->rkey};
  all_.insert_or_assign(keys.lkey, std::move(made));
  return keys;
}

Result<std::uint32_t> Memory::remove(std::uint32_t lkey) {
  const auto found = all_.find(lkey);
  if (found == all_.end()) return fail(Code::invalid, "no registration has the key {:#x}", lkey);
  Registration& entry = found->second;
  // Asked for its answer, unlike the owner's destructor: a region that the device still holds must stay known.
  if (const int error = ibv_dereg_mr(entry.region.get()); error != 0)
    return fail_errno(error, fmt::format("the registration with key {:#x} is still in use", lkey));
  (void)entry.region.release();
  const std::uint32_t pd = entry.pd;
  all_.erase(found);
  return pd;
}

const Registration* Memory::find(std::uint32_t lkey) const {
  const auto found = all_.find(lkey);
  return found == all_.end() ? nullptr : &found->second;
}

}  // namespace strait::rail::verbs
