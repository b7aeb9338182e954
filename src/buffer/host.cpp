// SPDX-License-Identifier: Apache-2.0
#include "buffer/host.hpp"
#include "buffer/config.hpp"

#include <cstring>
#include <span>

#include "buffer/config.hpp"
#include "buffer/host_provider.hpp"
#include "buffer/ipc_record.hpp"
#include "sys/aligned.hpp"
#include "sys/peer_file.hpp"
#include "sys/process.hpp"

namespace strait::buffer {
namespace {

constexpr char kHostLetter = 'h';
constexpr std::uint32_t kOwnCapabilities =
    kHostCapabilities | STRAIT_CAN_IDENTIFY | STRAIT_CAN_IPC | STRAIT_CAN_MAP_CPU | STRAIT_CAN_WATCH;

}  // namespace

Result<std::unique_ptr<HostProvider>> HostProvider::open(std::string_view config) {
  // Unless asked for otherwise, what nobody uses goes at once: it would keep another process's freed memory.
  STRAIT_TRY(const ProviderConfig parsed, ProviderConfig::parse(config, "host", 0));
  ProcessToken token{};
  STRAIT_CHECK(sys::fill_random(std::as_writable_bytes(std::span(token))));
  return std::unique_ptr<HostProvider>(new HostProvider(token, parsed.ipc_cache));
}

HostProvider::~HostProvider() {
  if (in_child()) opened_.forget();
}

Status HostProvider::device_info(std::uint32_t device, strait_device_info& out) const {
  if (device != 0) return fail(Code::invalid, "there is no device {}: host has 1", device);
  out = {};
  plugin::put_text(kHostDevice, out.name, sizeof out.name);
  plugin::put_text("host memory", out.description, sizeof out.description);
  out.capabilities = kOwnCapabilities | STRAIT_CAN_ALLOCATE | STRAIT_CAN_ADVISE;
  return {};
}

const HostProvider::Allocation* HostProvider::find_locked(std::uint64_t address, std::uint64_t length_bytes,
                                                          std::uint64_t& base) const {
  const auto after = live_.upper_bound(address);
  if (after == live_.begin()) return nullptr;
  const auto& [start, allocation] = *std::prev(after);
  const std::uint64_t offset = address - start;
  if (offset >= allocation.length_bytes || length_bytes > allocation.length_bytes - offset) return nullptr;
  base = start;
  return &allocation;
}

bool HostProvider::classify(std::uint64_t address, strait_claim& out) const {
  const std::shared_lock lock(mutex_);
  std::uint64_t base = 0;
  const Allocation* const allocation = find_locked(address, 1, base);
  if (allocation == nullptr) return false;
  out = {};
  out.base = out.cpu_address = base;
  out.length_bytes = allocation->length_bytes;
  out.identity = allocation->identity;
  out.capabilities = kOwnCapabilities;
  out.sort = STRAIT_SORT_HOST;
  out.ipc_ways = STRAIT_IPC_FD;
  return true;
}

std::uint64_t HostProvider::identity(std::uint64_t address, std::uint64_t length_bytes) const {
  const std::shared_lock lock(mutex_);
  std::uint64_t base = 0;
  const Allocation* const allocation = find_locked(address, length_bytes, base);
  return allocation == nullptr ? 0 : allocation->identity;
}

Result<std::uint64_t> HostProvider::allocate(std::uint32_t device, std::uint64_t length_bytes) {
  if (device != 0) return fail(Code::invalid, "there is no device {}: host has 1", device);
  if (length_bytes == 0) return fail(Code::invalid, "cannot allocate 0 bytes of host memory");
  if (length_bytes > INT64_MAX / 2) {
    return fail(Code::limit, "{} bytes are more host memory than any machine has", length_bytes);
  }
  Allocation made;
  const std::uint64_t file_bytes = sys::round_up(length_bytes, sys::page_bytes());
  STRAIT_TRY(made.memfd, sys::make_grantable_memfd("strait host memory", file_bytes));
  STRAIT_TRY(made.mapping, sys::map_file_aligned(made.memfd.get(), file_bytes, sys::Protect::read_write));
  made.length_bytes = length_bytes;
  const auto address = reinterpret_cast<std::uint64_t>(made.mapping.data());
  const std::unique_lock lock(mutex_);
  made.identity = ++last_identity_;
  live_.emplace(address, std::move(made));
  allocations_.add();
  return address;
}

Status HostProvider::free(std::uint64_t address) {
  Allocation last;  // unmapped after the callbacks
  {
    const std::unique_lock lock(mutex_);
    const auto found = live_.find(address);
    if (found == live_.end()) {
      return fail(Code::invalid, "{:#x} is not host memory that strait allocated: freed already, or somebody else's",
                  address);
    }
    last = std::move(found->second);
    live_.erase(found);
    frees_.add();
  }
  const std::lock_guard lock(watch_mutex_);
  for (auto at = watches_.begin(); at != watches_.end();) {
    const auto next = std::next(at);
    if (at->second.base == address) {
      at->second.call(at->second.context, address);
      watches_.erase(at);
    }
    at = next;
  }
  return {};
}

Result<std::uint64_t> HostProvider::watch(std::uint64_t address, strait_freed_callback call, void* context) {
  // Both locks: between finding the allocation and writing the watch down nobody may free it.
  const std::lock_guard watching(watch_mutex_);
  const std::shared_lock lock(mutex_);
  std::uint64_t base = 0;
  if (find_locked(address, 1, base) == nullptr)
    return fail(Code::invalid, "{:#x} is not host memory that strait allocated: nobody tells when it is freed",
                address);
  watches_.emplace(++last_watch_, Watch{base, call, context});
  return last_watch_;
}

void HostProvider::unwatch(std::uint64_t watch) {
  const std::lock_guard lock(watch_mutex_);
  watches_.erase(watch);
}

Result<std::uint64_t> HostProvider::copy(std::uint64_t to, std::uint64_t from, std::uint64_t length_bytes) {
  if (length_bytes == 0) return 0;
  if (to == 0 || from == 0) return fail(Code::invalid, "a copy cannot start at the null address");
  for (const std::uint64_t side : {to, from}) {
    strait_claim claim{};
    if (classify(side, claim) && length_bytes > claim.base + claim.length_bytes - side) {
      return fail(Code::invalid, "{} bytes at {:#x} end past the allocation of {} bytes at {:#x}", length_bytes, side,
                  claim.length_bytes, claim.base);
    }
  }
  std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), length_bytes);
  return 0;  // complete: every ticket is this one
}

std::int32_t HostProvider::copy_done(std::uint64_t ticket) const {
  return ticket == 0 ? 1 : -static_cast<std::int32_t>(Code::invalid);
}

Result<sys::Fd> HostProvider::lend(std::uint64_t address, std::uint64_t length_bytes, std::uint64_t& offset,
                                   std::uint64_t& length_of_all, std::uint64_t& identity) {
  if (length_bytes == 0) return fail(Code::invalid, "cannot export 0 bytes at {:#x}", address);
  const std::shared_lock lock(mutex_);
  std::uint64_t base = 0;
  const Allocation* const allocation = find_locked(address, length_bytes, base);
  if (allocation == nullptr) {
    const Allocation* const shorter = find_locked(address, 1, base);
    if (shorter != nullptr)
      return fail(Code::invalid, "{} bytes at {:#x} end past the allocation of {} bytes at {:#x}", length_bytes,
                  address, shorter->length_bytes, base);
    return fail(Code::unsupported, "host memory that strait did not allocate has no descriptor");
  }
  if (!allocation->memfd.valid())
    return fail(Code::unsupported, "the memory at {:#x} has left its file, because a peer would not let go of it",
                base);
  offset = address - base;
  length_of_all = allocation->length_bytes;
  identity = allocation->identity;
  STRAIT_TRY(sys::Fd fd, allocation->memfd.duplicate());
  const std::lock_guard fds(fds_mutex_);
  fds_.insert(fd.get());
  exports_.add();
  return fd;
}

Result<ExportedRange> HostProvider::export_fd(std::uint64_t address, std::uint64_t length_bytes, std::uint32_t flags) {
  if (flags != 0) return fail(Code::unsupported, "host memory knows no export flags {:#x}", flags);
  ExportedRange out;
  std::uint64_t length_of_all = 0;
  std::uint64_t identity = 0;
  STRAIT_TRY(sys::Fd fd, lend(address, length_bytes, out.offset, length_of_all, identity));
  out.fd = fd.release();
  return out;
}

void HostProvider::close_fd(std::int32_t fd) {
  const std::lock_guard lock(fds_mutex_);
  if (fds_.erase(fd) != 0) sys::Fd(fd).reset();  // anything else could be somebody else's file
}

Result<strait_ipc_handle> HostProvider::ipc_export(std::uint64_t address, std::uint64_t length_bytes) {
  IpcRecord record;
  record.magic = IpcRecord::magic_of(kHostLetter);
  record.token = token_;
  record.sort = STRAIT_SORT_HOST;
  STRAIT_TRY(sys::Fd fd, lend(address, length_bytes, record.offset, record.length_bytes, record.identity));
  record.base = address - record.offset;
  strait_ipc_handle out{};
  out.way = STRAIT_IPC_FD;
  out.length_bytes = length_bytes;
  record.write(out);
  out.fd = fd.release();
  return out;
}

Result<std::uint64_t> HostProvider::ipc_open(std::uint32_t device, const strait_ipc_handle& handle) {
  if (device != 0) return fail(Code::invalid, "there is no device {}: host has 1", device);
  STRAIT_TRY(const IpcRecord record, IpcRecord::read(handle, kHostLetter, "host"));
  if (handle.way != STRAIT_IPC_FD || handle.fd < 0)
    return fail(Code::invalid, "a handle of host memory came without its descriptor");
  const OpenedHandles::Key key{record.token, record.base, record.identity, 0};
  return opened_.open(key, record.offset, handle.length_bytes, [&]() -> Result<OpenedHandles::Opened> {
    // A file that its owner could cut short would raise SIGBUS here.
    const std::uint64_t whole = sys::round_up(record.length_bytes, sys::page_bytes());
    STRAIT_CHECK(sys::check_sealed(handle.fd, whole));
    STRAIT_TRY(sys::Mapping mapped, sys::map_file(handle.fd, 0, whole, sys::Protect::read_write));
    const auto kept = std::make_shared<sys::Mapping>(std::move(mapped));
    return OpenedHandles::Opened{reinterpret_cast<std::uint64_t>(kept->data()), record.length_bytes,
                                 [kept] { kept->reset(); }};
  });
}

Status HostProvider::ipc_close(std::uint64_t address) {
  if (opened_.close(address)) return {};
  return fail(Code::invalid, "{:#x} is not memory of another process that is open here", address);
}

Result<void*> HostProvider::map_cpu(std::uint64_t address, std::uint64_t length_bytes) const {
  const std::shared_lock lock(mutex_);
  std::uint64_t base = 0;
  if (length_bytes == 0 || find_locked(address, length_bytes, base) == nullptr)
    return fail(Code::invalid, "{} bytes at {:#x} are not host memory that strait allocated", length_bytes, address);
  return reinterpret_cast<void*>(address);
}

Result<std::uint32_t> HostProvider::advise(std::uint64_t address, std::uint64_t length_bytes, std::uint32_t advice,
                                           std::uint32_t place) {
  if (advice == 0 || advice > STRAIT_ADVICE_LAST) return fail(Code::invalid, "there is no memory advice {}", advice);
  if (place != STRAIT_HOST_PLACE && place != 0) return fail(Code::invalid, "host memory has no device {}", place);
  if (length_bytes == 0) return fail(Code::invalid, "advice on 0 bytes at {:#x}", address);
  switch (advice) {
    case STRAIT_ADVICE_OWN_PAGES: return own_pages(address, length_bytes);
    case STRAIT_ADVICE_WILL_NEED: STRAIT_CHECK(sys::will_need(address, length_bytes)); return STRAIT_ADVICE_DONE;
    case STRAIT_ADVICE_PREFER_PLACE:
    case STRAIT_ADVICE_NO_PREFERRED_PLACE: return STRAIT_ADVICE_IGNORED;  // it is in the only place there is
    default: return STRAIT_ADVICE_UNSUPPORTED;
  }
}

Result<std::uint32_t> HostProvider::own_pages(std::uint64_t address, std::uint64_t length_bytes) {
  const std::unique_lock lock(mutex_);
  const auto found = live_.find(address);
  if (found == live_.end() || found->second.length_bytes != length_bytes)
    return fail(Code::invalid, "{} bytes at {:#x} are not a whole allocation of host memory", length_bytes, address);
  Allocation& allocation = found->second;
  if (!allocation.memfd.valid()) return STRAIT_ADVICE_DONE;  // it has them already
  STRAIT_CHECK(sys::leave_file(address, allocation.mapping.size(), allocation.memfd.get()));
  allocation.memfd.reset();
  allocation.identity = ++last_identity_;
  return STRAIT_ADVICE_DONE;
}

Result<strait_flush_need> HostProvider::flush(std::uint32_t device, bool) const {
  if (device != 0) return fail(Code::invalid, "there is no device {}: host has 1", device);
  strait_flush_need out{};
  out.need = STRAIT_FLUSH_NOT_NEEDED;
  plugin::put_text("a completion orders what the NIC wrote before it", out.text, sizeof out.text);
  return out;
}

bool HostProvider::requirement(HostProvider*, std::uint32_t index, strait_requirement& out) {
  if (index != 0) return false;
  plugin::put_text("sealed memfds (Linux 3.17 or later)", out.what, sizeof out.what);
  const auto made = sys::make_sealed_memfd("strait probe", sys::page_bytes());
  out.state = made ? STRAIT_REQUIREMENT_MET : STRAIT_REQUIREMENT_MISSING;
  plugin::put_text(made ? "made one" : made.error().text, out.text, sizeof out.text);
  return true;
}

std::string HostProvider::counters() const {
  const OpenedHandles::Counts handles = opened_.counts();
  std::size_t live_fds = 0;
  {
    const std::lock_guard lock(fds_mutex_);
    live_fds = fds_.size();
  }
  const std::shared_lock lock(mutex_);
  return fmt::format(
      "allocations={},frees={},live_allocations={},exports={},live_fds={},ipc_opens={},ipc_hits={},ipc_closes={},"
      "ipc_open_now={}",
      allocations_.load(), frees_.load(), live_.size(), exports_.load(), live_fds, handles.opens, handles.hits,
      handles.closes, handles.open_now);
}

const strait_provider_ops* host_provider_ops() {
  static const strait_provider_ops ops = Face<HostProvider>::ops("host");
  return &ops;
}

}  // namespace strait::buffer
