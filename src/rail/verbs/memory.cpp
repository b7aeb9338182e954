// SPDX-License-Identifier: Apache-2.0
#include "rail/verbs/memory.hpp"

#include <cerrno>

#include "base/plugin_requirement.hpp"
#include "base/register_error.hpp"
#include "sys/files.hpp"
#include "sys/library.hpp"

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

// The one function that libibverbs did not always have (rdma-core 34): looked up, so that an older one still serves for
// everything else.
using RegisterDmabuf = ibv_mr* (*)(ibv_pd*, std::uint64_t, std::size_t, std::uint64_t, int, int);
RegisterDmabuf find_reg_dmabuf() {
  static const RegisterDmabuf found = []() -> RegisterDmabuf {
    // Never closed: it is linked anyway.
    static auto* const library = new Result<sys::Library>(sys::Library::open("libibverbs.so.1"));
    if (!*library) return nullptr;
    const auto symbol = (*library)->symbol<RegisterDmabuf>("ibv_reg_dmabuf_mr");
    return symbol ? *symbol : nullptr;
  }();
  return found;
}

ibv_mr* reg_dmabuf(ibv_pd* domain, std::uint64_t offset, std::size_t length_bytes, std::uint64_t iova, int fd,
                   int access) {
  const RegisterDmabuf call = find_reg_dmabuf();
  if (call != nullptr) return call(domain, offset, length_bytes, iova, fd, access);
  errno = EOPNOTSUPP;
  return nullptr;
}

bool says_no_dmabuf(int error) {
  return error == EOPNOTSUPP || error == EPROTONOSUPPORT || error == ENOSYS;
}

}  // namespace

// What peer-memory clients leave under /sys when they have registered with the RDMA core.
bool Memory::peer_client_seen() {
  for (const char* file :
       {"/sys/kernel/mm/memory_peers/nv_mem/version", "/sys/kernel/mm/memory_peers/nv_mem_nc/version",
        "/sys/kernel/mm/memory_peers/amdkfd/version"}) {
    if (!sys::read_small_file(file).empty()) return true;
  }
  return false;
}

void Memory::probe_dmabuf(ibv_pd* domain) {
  errno = 0;
  const Owner<ibv_mr, ibv_dereg_mr> region(reg_dmabuf(domain, 0, sys::page_bytes(), 0, -1, IBV_ACCESS_LOCAL_WRITE));
  probe_errno_ = region ? 0 : errno;
  takes_dmabuf_ = !says_no_dmabuf(probe_errno_);
}

bool Memory::requirement(std::uint32_t index, strait_requirement& out) const {
  using plugin::met;
  const bool symbol = find_reg_dmabuf() != nullptr;
  switch (index) {
    case 0:
      return plugin::say(out, "ibv_reg_dmabuf_mr in libibverbs (rdma-core 34 or later)", met(symbol),
                         STRAIT_NIC_SERVES_DMABUF, symbol ? "present" : "this libibverbs is older");
    case 1:
      // The right answer to a descriptor that is none.
      return plugin::say(out, "dma-buf registration by driver and kernel (Linux 5.12 or later)",
                         probe_errno_ == EBADF ? std::uint32_t{STRAIT_REQUIREMENT_MET}
                         : takes_dmabuf_       ? std::uint32_t{STRAIT_REQUIREMENT_UNKNOWN}
                                               : std::uint32_t{STRAIT_REQUIREMENT_MISSING},
                         STRAIT_NIC_SERVES_DMABUF,
                         fmt::format("asked with no descriptor: {}", errno_name(probe_errno_)));
    case 2: {
      const bool seen = peer_client_seen();
      return plugin::say(out, "a peer-memory client in the kernel (/sys/kernel/mm/memory_peers)", met(seen),
                         STRAIT_NIC_SERVES_PEER_MEMORY,
                         seen ? "one has registered" : "none shows itself; dma-buf needs none");
    }
    default: return false;
  }
}

Status Memory::reach(const std::string& device, ibv_pd* domain, const strait_nic_mr_request& request,
                     Registration& out) {
  if (request.fd < 0 && request.port != nullptr) {
    return with_remedy(fail(Code::unsupported, "{} cannot reach memory through a port of this process", device),
                       kStageIt);
  }
  const int access = verbs_access(request.access);
  if ((request.access & STRAIT_NIC_DEVICE_ADDRESS) != 0) {
    out.region.reset(ibv_reg_mr(domain, reinterpret_cast<void*>(request.address), request.length_bytes, access));
    if (!out.region) return register_failed(errno, RegisteredBy::device_address, device);
    out.how = "device address, answered for by the kernel's peer memory";
    out.by = STRAIT_NIC_BY_DEVICE_ADDRESS;
    ++counts.by_device_address;
    return {};
  }
  if (request.fd < 0 || (request.access & STRAIT_NIC_CPU_ADDRESS) != 0) {
    out.region.reset(ibv_reg_mr(domain, reinterpret_cast<void*>(request.address), request.length_bytes, access));
    if (!out.region) return fail_errno(errno, fmt::format("{} did not register host memory", device));
    out.how = "host pages, registered by address";
    ++counts.by_address;
    return {};
  }
  // Whether it is one, the kernel knows best: it is asked also about files that do not look so, where it can answer.
  const bool certain = sys::is_dmabuf(request.fd);
  if (!certain && !takes_dmabuf_) return reach_file(device, domain, request, 0, out);
  out.region.reset(reg_dmabuf(domain, request.fd_offset, request.length_bytes, request.address, request.fd, access));
  if (out.region) {
    out.how = "dma-buf, registered as such";
    out.by = STRAIT_NIC_BY_DMABUF;
    ++counts.by_dmabuf;
    return {};
  }
  const int refused = errno;
  if (!certain && refused == EINVAL) return reach_file(device, domain, request, 0, out);
  ++counts.dmabuf_refused;
  if (!says_no_dmabuf(refused)) return register_failed(refused, RegisteredBy::dmabuf, device);
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
    out.by = STRAIT_NIC_BY_MAPPING;
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
