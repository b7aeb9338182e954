// SPDX-License-Identifier: Apache-2.0
#include "rail/cxi/memory.hpp"

#include <cerrno>
#include <cstdint>

#include "base/plugin_requirement.hpp"
#include "base/register_error.hpp"
#include "sys/files.hpp"

namespace strait::rail::cxi {
namespace {

constexpr const char* kStageInstead = "share it staged through host memory: the option allow_staging, with access 0";
constexpr std::uint32_t kRemoteRights = STRAIT_NIC_REMOTE_WRITE | STRAIT_NIC_REMOTE_READ | STRAIT_NIC_REMOTE_ATOMIC;
constexpr std::uint32_t kAtomicId = kPlaces;  // added to the buffer id of a second list entry

// No process has a descriptor of this number. Not -1, which means that there is no dma-buf: the driver would look for
// the pages of a vendor at the address.
constexpr std::int32_t kNeverOpen = INT32_MAX;

// Rights of the mapping. What may only be read here may lie in pages that cannot be written.
std::uint32_t map_flags(std::uint32_t access) {
  std::uint32_t flags = w::kMapRead;
  if ((access & (STRAIT_NIC_LOCAL_WRITE | STRAIT_NIC_REMOTE_WRITE | STRAIT_NIC_REMOTE_ATOMIC)) != 0)
    flags |= w::kMapWrite;
  return flags;
}

std::string errno_word(int error) {
  const std::string text = errno_text(error);  // "EFAULT (bad address)"
  return text.substr(0, text.find(' '));
}

bool knows_no_dmabuf(int error) {
  return error == EOPNOTSUPP || error == ENOSYS || error == EPROTONOSUPPORT;
}

}  // namespace

void Registrations::probe_dmabuf() {
  w::AtuMapCmd command{};
  command.op = w::AtuMapCmd::kOp;
  w::AtuMapResp answer{};
  command.resp = reinterpret_cast<std::uintptr_t>(&answer);
  command.lni = port_.lni().number();
  command.va = sys::page_bytes();
  command.len = sys::page_bytes();
  command.flags = w::kMapPin | w::kMapRead | w::kMapDevice;
  command.hints.dmabuf_fd = kNeverOpen;
  command.hints.dmabuf_valid = 1;
  probe_errno_ = port_.device().submit(std::as_bytes(std::span(&command, 1)));
  takes_dmabuf_ = !knows_no_dmabuf(probe_errno_);
}

bool Registrations::requirement(std::uint32_t index, strait_requirement& out) const {
  using plugin::met;
  switch (index) {
    case 0:
      return plugin::say(
          out, "a CXI device: /dev/cxiN (driver cxi_ss1), or the software one", met(true), 0,
          fmt::format("{}, {}", port_.device().name(), port_.device().software() ? "software" : "hardware"));
    case 1:
      // The right answer to a descriptor that is not open.
      return plugin::say(out, "dma-bufs in the CXI driver (CONFIG_DMA_SHARED_BUFFER)",
                         probe_errno_ == EBADF ? std::uint32_t{STRAIT_REQUIREMENT_MET}
                         : takes_dmabuf_       ? std::uint32_t{STRAIT_REQUIREMENT_UNKNOWN}
                                               : std::uint32_t{STRAIT_REQUIREMENT_MISSING},
                         STRAIT_NIC_SERVES_DMABUF,
                         fmt::format("asked with a descriptor that is not open: {}", errno_word(probe_errno_)));
    default: return false;
  }
}

Status Registrations::reach_host(std::byte* at, const strait_nic_mr_request& request, Registration& out) {
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  STRAIT_TRY(out.memory,
             Memory::make(port_.lni(),
                          {.address = address, .bytes = request.length_bytes, .flags = map_flags(request.access)}));
  out.reached = out.memory.iova(address);
  out.cpu = at;
  return {};
}

// What nothing can map, a software device reaches through who made it.
Status Registrations::reach_port(const strait_nic_mr_request& request, const std::string& refused, Registration& out) {
  auto made = Memory::make(port_.lni(), {.address = request.address,
                                         .bytes = request.length_bytes,
                                         .flags = map_flags(request.access) | w::kMapDevice,
                                         .port = request.port});
  if (!made) return with_remedy(made.error(), kStageInstead);
  out.memory = std::move(*made);
  out.reached = out.memory.iova(request.address);
  out.how = refused + "device memory, through a port of this process";
  ++counts.by_port;
  return {};
}

Status Registrations::reach(const strait_nic_mr_request& request, Registration& out) {
  if (request.fd < 0 && request.port != nullptr) return reach_port(request, "", out);
  if ((request.access & STRAIT_NIC_DEVICE_ADDRESS) != 0) {
    auto made = Memory::make(port_.lni(), {.address = request.address,
                                           .bytes = request.length_bytes,
                                           .flags = map_flags(request.access) | w::kMapDevice});
    if (!made) return register_failed(made.error().sys_errno, RegisteredBy::device_address, port_.device().name());
    out.memory = std::move(*made);
    out.reached = out.memory.iova(request.address);
    out.how = "device address, answered for by the driver's peer memory";
    out.by = STRAIT_NIC_BY_DEVICE_ADDRESS;
    ++counts.by_device_address;
    return {};
  }
  if (request.fd < 0 || (request.access & STRAIT_NIC_CPU_ADDRESS) != 0) {
    const bool elsewhere = request.fd < 0 && (request.access & STRAIT_NIC_HOST_ADDRESS) != 0;
    STRAIT_CHECK(
        reach_host(reinterpret_cast<std::byte*>(elsewhere ? request.fd_offset : request.address), request, out));
    out.how = "host pages, registered by address";
    ++counts.by_address;
    return {};
  }
  const bool certain = sys::is_dmabuf(request.fd);
  if (!certain && !takes_dmabuf_) return reach_file(request, 0, out);
  auto made = Memory::make(port_.lni(), {.address = request.address,
                                         .bytes = request.length_bytes,
                                         .flags = map_flags(request.access) | w::kMapDevice,
                                         .dmabuf = request.fd,
                                         .dmabuf_offset = request.fd_offset});
  if (made) {
    out.memory = std::move(*made);
    out.reached = out.memory.iova(request.address);
    out.how = "dma-buf, registered as such";
    out.by = STRAIT_NIC_BY_DMABUF;
    ++counts.by_dmabuf;
    return {};
  }
  const int refused = made.error().sys_errno;
  if (!certain && (refused == EINVAL || refused == EBADF)) return reach_file(request, 0, out);
  ++counts.dmabuf_refused;
  if (!knows_no_dmabuf(refused)) return register_failed(refused, RegisteredBy::dmabuf, port_.device().name());
  return reach_file(request, refused, out);
}

// By a mapping made here: of the memfd with the pages if there is one, else of the descriptor itself.
Status Registrations::reach_file(const strait_nic_mr_request& request, int dmabuf_errno, Registration& out) {
  const bool has_pages = request.struct_size >= sizeof(strait_nic_mr_request) &&
                         (request.access & STRAIT_NIC_PAGES_FD) != 0 && request.pages_fd >= 0;
  const bool pages = dmabuf_errno != 0 && has_pages;
  const int fd = pages ? request.pages_fd : request.fd;
  const std::uint64_t offset = pages ? request.pages_offset : request.fd_offset;
  const std::uint64_t skip = offset % sys::page_bytes();
  if (dmabuf_errno == 0 || pages) STRAIT_CHECK(sys::check_sealed(fd, offset + request.length_bytes));
  const std::string refused =
      dmabuf_errno == 0 ? std::string()
                        : fmt::format("dma-buf refused by {} ({}), ", port_.device().name(), errno_word(dmabuf_errno));
  auto mapping = sys::map_file(fd, offset - skip, request.length_bytes + skip, sys::Protect::read_write);
  if (!mapping && !pages && request.port != nullptr && port_.device().software())
    return reach_port(request, refused, out);
  STRAIT_TRY(out.mapping, std::move(mapping));
  const auto base = reinterpret_cast<std::uintptr_t>(out.mapping.data());
  // A software device in another process need not ask for this one's memory then.
  if (port_.device().share(base, out.mapping.size(), fd, offset - skip)) out.shared = base;
  const Status reached = reach_host(out.mapping.data() + skip, request, out);
  if (!reached) {
    if (out.shared != 0) port_.device().unshare(out.shared);
    Error error = reached.error();
    error.text = refused + error.text;
    return with_remedy(std::move(error), kStageInstead);
  }
  out.how = refused + (pages || dmabuf_errno == 0 ? "the mapping of its memfd was registered"
                                                  : "the mapping of the dma-buf was registered");
  out.by = STRAIT_NIC_BY_MAPPING;
  ++counts.by_mapping;
  return {};
}

Status Registrations::append(const Registration& what, std::uint32_t id, std::uint32_t rights, std::uint32_t key,
                             std::uint32_t ignore) {
  ListEntry entry;
  entry.portal = port_.memory_portal().number();
  entry.buffer_id = id;
  // No events at all: a peer could fill the queue with them.
  entry.flags = rights | w::kLeEventCommDisable | w::kLeUnexpectedHdrDisable;
  entry.iova = what.reached;
  entry.lac = what.memory.lac();
  entry.bytes = what.bytes;
  entry.match_bits = port_.address().match_bits(key);
  entry.ignore_bits = ignore;
  STRAIT_TRY(const w::ReturnCode code, port_.append_and_wait(entry));
  if (code == w::ReturnCode::ok) {
    ++counts.list_entries;
    return {};
  }
  return with_remedy(fail(Code::limit, "{} has no list entry left for this memory (code {})", port_.device().name(),
                          static_cast<unsigned>(code)),
                     "share fewer regions, or have the service's limit of list entries raised (cxi_service)");
}

// A list entry lets puts in, gets, or both, and a fetching atomic needs both. Where atomics are allowed and one of the
// others is not, they have an entry of their own, which only who means an atomic names.
Result<std::uint32_t> Registrations::let_others_in(const Registration& what) {
  const bool read = (what.access & STRAIT_NIC_REMOTE_READ) != 0;
  const bool write = (what.access & STRAIT_NIC_REMOTE_WRITE) != 0;
  const bool atomic = (what.access & STRAIT_NIC_REMOTE_ATOMIC) != 0;
  STRAIT_TRY(const std::uint32_t place, port_.take_place());
  const std::uint32_t key = place | (port_.next_generation(place) & ((1u << kGenerationBits) - 1)) << kPlaceBits;
  const std::uint32_t rights = (read ? w::kLeOpGet : 0u) | (write ? w::kLeOpPut : 0u);
  const bool together = atomic && read && write;
  Status done;
  if (rights != 0) done = append(what, place, rights, key, together ? kAtomicKey : 0);
  if (done && atomic && !together) {
    done = append(what, place | kAtomicId, w::kLeOpGet | w::kLeOpPut, key | kAtomicKey, 0);
    if (!done && rights != 0) port_.unlink_and_wait(port_.memory_portal().number(), place);
  }
  if (!done) {
    port_.give_place(place);
    return done.error();
  }
  port_.publish(place, {key, what.address});
  return key;
}

Result<strait_nic_mr> Registrations::add(const strait_nic_mr_request& request) {
  if (request.length_bytes == 0) return fail(Code::invalid, "cannot register 0 bytes");
  if (request.address + request.length_bytes < request.address)
    return fail(Code::invalid, "cannot register {} bytes at {:#x}: the range wraps around", request.length_bytes,
                request.address);
  auto made = std::make_unique<Registration>();
  made->address = request.address;
  made->bytes = request.length_bytes;
  made->access = request.access;
  made->pd = request.pd;
  STRAIT_CHECK(reach(request, *made));
  std::uint32_t key = 0;
  if ((request.access & kRemoteRights) != 0) {
    auto let_in = let_others_in(*made);
    if (!let_in) {
      if (made->shared != 0) port_.device().unshare(made->shared);
      return let_in.error();
    }
    key = *let_in;
  } else {
    do {
      key = kLocalKey | (++next_local_ & (kLocalKey - 1));
    } while (all_.contains(key));
  }
  all_.emplace(key, std::move(made));
  return strait_nic_mr{key, (key & kLocalKey) != 0 ? 0 : key};
}

Result<std::uint32_t> Registrations::remove(std::uint32_t key) {
  const auto found = all_.find(key);
  if (found == all_.end()) return fail(Code::invalid, "no registration has the key {:#x}", key);
  Registration& what = *found->second;
  if ((key & kLocalKey) == 0 && (what.access & kRemoteRights) != 0) {
    const std::uint32_t place = place_of(key);
    const bool read_or_write = (what.access & (STRAIT_NIC_REMOTE_READ | STRAIT_NIC_REMOTE_WRITE)) != 0;
    const bool together = (what.access & kRemoteRights) == kRemoteRights;
    port_.publish(place, {0, 0});
    if (read_or_write) port_.unlink_and_wait(port_.memory_portal().number(), place);
    if ((what.access & STRAIT_NIC_REMOTE_ATOMIC) != 0 && !together)
      port_.unlink_and_wait(port_.memory_portal().number(), place | kAtomicId);
    what.access &= ~kRemoteRights;  // should the rest fail, this is done
    port_.give_place(place);
  }
  STRAIT_CHECK(what.memory.give_back());
  if (what.shared != 0) port_.device().unshare(what.shared);
  const std::uint32_t pd = what.pd;
  all_.erase(found);
  return pd;
}

}  // namespace strait::rail::cxi
