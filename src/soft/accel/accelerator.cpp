// SPDX-License-Identifier: Apache-2.0
#include "soft/accel/accelerator.hpp"

#include "soft/accel/announce.hpp"
#include "sys/mapping.hpp"
#include "sys/udmabuf.hpp"

namespace strait::soft::accel {
namespace {

// Per process by nature: what is left when an accelerator is gone can be asked of nobody else.
struct ProcessCounts {
  Counter opens, closes, leaked_allocations, leaked_fds;
};
ProcessCounts& process_counts() {
  static ProcessCounts counts;
  return counts;
}

}  // namespace

Result<std::unique_ptr<Accelerator>> Accelerator::open(std::string_view config, const sys::Calls& calls) {
  STRAIT_TRY(Config parsed, parse_config(config));
  // Counted once complete: an accelerator that fails to open was never opened.
  std::vector<std::unique_ptr<Arena>> arenas;
  for (std::uint32_t i = 0; i < parsed.devices; ++i) {
    STRAIT_TRY(auto arena, Arena::reserve(fmt::format("soft:{}", i), parsed.memory_bytes, calls));
    arenas.push_back(std::move(arena));
  }
  process_counts().opens.add();
  std::unique_ptr<Accelerator> accelerator(new Accelerator(std::move(parsed)));
  accelerator->arenas_ = std::move(arenas);
  accelerator->find_udmabuf();
  return accelerator;
}

Accelerator::~Accelerator() {
  // A child has copies of everything but the thread, and other threads' locks may be held for ever: take none.
  if (in_child()) {
    (void)engine_.release();  // destroying it would wait for its thread
    return;
  }
  std::uint64_t live = 0;
  for (const auto& arena : arenas_) {
    live += arena->live();
    for (const Found& left : arena->all()) retract(left);
  }
  process_counts().leaked_allocations.add(live);
  process_counts().leaked_fds.add(fds_.size());
  process_counts().closes.add();
}

// Tried once with one page: that the device node exists does not mean that it works.
void Accelerator::find_udmabuf() {
  if (config_.udmabuf == "off") {
    no_udmabuf_because_ = "switched off";
    return;
  }
  auto probe = [&]() -> Status {
    STRAIT_TRY(const sys::Fd memfd, sys::make_sealed_memfd("strait udmabuf probe", sys::page_bytes()));
    STRAIT_TRY(const sys::Fd fd, sys::make_udmabuf(memfd.get(), 0, sys::page_bytes(), config_.udmabuf.c_str()));
    return {};
  }();
  if (!probe) no_udmabuf_because_ = probe.error().text;
}

Status Accelerator::check_process() const {
  if (!in_child()) return {};
  return fail(Code::gone, "this accelerator belongs to the process that opened it, not to its forked child");
}

Status Accelerator::device_info(std::uint32_t device, strait_device_info& out) const {
  STRAIT_CHECK(check_process());
  if (device >= arenas_.size())
    return fail(Code::invalid, "there is no device {}: soft has {}", device, arenas_.size());
  out = {};
  fmt::format_to_n(out.name, sizeof out.name - 1, "{}", arenas_[device]->name());
  const char* exports = "cannot export its memory";
  if (config_.can_export) exports = no_udmabuf_because_.empty() ? "exports dma-buf (udmabuf)" : "exports sealed memfd";
  fmt::format_to_n(out.description, sizeof out.description - 1, "software accelerator, {}", exports);
  out.memory_bytes = config_.memory_bytes;
  out.capabilities = STRAIT_CAN_ALLOCATE | STRAIT_CAN_COPY | STRAIT_CAN_IDENTIFY | STRAIT_CAN_PEER_MEMORY |
                     STRAIT_CAN_WATCH | (config_.can_export ? std::uint32_t{STRAIT_CAN_EXPORT_DMABUF} : 0u);
  out.software = 1;
  return {};
}

bool Accelerator::classify(std::uint64_t address, strait_claim& out) const {
  for (std::uint32_t i = 0; i < arenas_.size(); ++i) {
    if (!arenas_[i]->contains(address)) continue;
    Found found;
    if (in_child() || !arenas_[i]->find(address, found)) return false;
    out = {};
    out.base = found.base;
    out.length_bytes = found.length_bytes;
    out.identity = found.identity;
    out.device = i;
    out.capabilities = STRAIT_CAN_COPY | STRAIT_CAN_IDENTIFY | STRAIT_CAN_PEER_MEMORY | STRAIT_CAN_WATCH |
                       (config_.can_export ? std::uint32_t{STRAIT_CAN_EXPORT_DMABUF} : 0u);
    out.sort = STRAIT_SORT_DEVICE;
    return true;
  }
  return false;
}

Arena* Accelerator::arena_of(std::uint64_t address) const {
  for (const auto& arena : arenas_) {
    if (arena->contains(address)) return arena.get();
  }
  return nullptr;
}

Result<std::uint64_t> Accelerator::allocate(std::uint32_t device, std::uint64_t length_bytes) {
  STRAIT_CHECK(check_process());
  if (device >= arenas_.size())
    return fail(Code::invalid, "there is no device {}: soft has {}", device, arenas_.size());
  STRAIT_TRY(const std::uint64_t address, arenas_[device]->allocate(length_bytes));
  if (Status told = announce(*arenas_[device]->hold(address), config_.vendor, device); !told) {
    (void)arenas_[device]->free(address);
    return std::move(told).error();
  }
  counts_.allocations.add();
  return address;
}

Status Accelerator::free(std::uint64_t address) {
  STRAIT_CHECK(check_process());
  Arena* arena = arena_of(address);
  if (arena == nullptr) return fail(Code::invalid, "{:#x} is not memory of a soft device", address);
  // Who watches first, then the machine's kernel: its clients let go of the bytes while they are still there.
  Found found;
  if (arena->find(address, found) && found.base == address) {
    watches_.freed(address);
    retract(found);
  }
  STRAIT_CHECK(arena->free(address));
  counts_.frees.add();
  return {};
}

Result<std::uint64_t> Accelerator::watch(std::uint64_t address, strait_freed_callback call, void* context) {
  STRAIT_CHECK(check_process());
  Arena* const arena = arena_of(address);
  Found found;
  if (arena == nullptr || !arena->find(address, found))
    return fail(Code::invalid, "{:#x} is not in a live allocation of a soft device", address);
  const std::uint64_t watch = watches_.add(found.base, call, context);
  // A free that came in between has told nobody.
  Found now;
  if (arena->find(address, now) && now.identity == found.identity) return watch;
  watches_.remove(watch);
  return fail(Code::invalid, "{:#x} was freed while it was about to be watched", address);
}

Result<std::shared_ptr<Allocation>> Accelerator::hold_range(Arena& arena, std::uint64_t address,
                                                            std::uint64_t length_bytes) const {
  std::shared_ptr<Allocation> held = arena.hold(address);
  if (!held)
    return fail(Code::invalid, "{:#x} is not in a live allocation of {}: freed, or never allocated", address,
                arena.name());
  const std::uint64_t left = held->base + held->length_bytes - address;
  if (length_bytes > left) {
    return fail(Code::invalid, "{} bytes at {:#x} end {} bytes past the allocation of {} bytes at {:#x} of {}",
                length_bytes, address, length_bytes - left, held->length_bytes, held->base, arena.name());
  }
  return held;
}

Result<Side> Accelerator::device_side(std::uint64_t address, std::uint64_t length_bytes) const {
  STRAIT_CHECK(check_process());
  Arena* arena = arena_of(address);
  if (arena == nullptr) return fail(Code::invalid, "{:#x} is not memory of a soft device", address);
  STRAIT_TRY(auto held, hold_range(*arena, address, length_bytes));
  std::byte* bytes = held->alias.data() + (address - held->base);
  return Side{bytes, std::move(held)};
}

Result<Side> Accelerator::side(std::uint64_t address, std::uint64_t length_bytes) const {
  if (arena_of(address) != nullptr) return device_side(address, length_bytes);
  if (address == 0) return fail(Code::invalid, "a copy cannot start at the null address");
  if (length_bytes > UINT64_MAX - address)
    return fail(Code::invalid, "{} bytes at {:#x} wrap around", length_bytes, address);
  for (const auto& arena : arenas_) {
    if (arena->touches(address, length_bytes)) {
      return fail(Code::invalid, "{} bytes at {:#x} start in host memory and run into {}", length_bytes, address,
                  arena->name());
    }
  }
  return Side{reinterpret_cast<std::byte*>(address), nullptr};
}

Result<std::uint64_t> Accelerator::copy(std::uint64_t to, std::uint64_t from, std::uint64_t length_bytes) {
  STRAIT_CHECK(check_process());
  auto queued = [&]() -> Result<std::uint64_t> {
    STRAIT_TRY(Side target, side(to, length_bytes));
    STRAIT_TRY(Side source, side(from, length_bytes));
    if (!target.held && !source.held) {
      return fail(Code::invalid, "neither {:#x} nor {:#x} is memory of a soft device", to, from);
    }
    return engine_->submit(std::move(target), std::move(source), length_bytes);
  }();
  (queued ? counts_.copies : counts_.refused).add();
  return queued;
}

std::int32_t Accelerator::copy_done(std::uint64_t ticket) const {
  if (in_child()) return -static_cast<std::int32_t>(Code::gone);
  switch (engine_->state(ticket)) {
    case CopyEngine::State::finished: return 1;
    case CopyEngine::State::running: return 0;
    case CopyEngine::State::unknown: break;
  }
  return -static_cast<std::int32_t>(Code::invalid);
}

Result<sys::Fd> Accelerator::make_fd(const Allocation& allocation, std::uint64_t first, std::uint64_t length_bytes,
                                     std::uint64_t& offset) {
  if (no_udmabuf_because_.empty()) {
    // Only the pages of the range: what is not asked for is not handed out, and the kernel limits the size of one.
    const std::uint64_t page = sys::page_bytes();
    const std::uint64_t page_first = first / page * page;
    const std::uint64_t page_end = sys::round_up(first + length_bytes, page);
    auto fd = sys::make_udmabuf(allocation.memfd.get(), page_first, page_end - page_first, config_.udmabuf.c_str());
    if (fd) {
      counts_.udmabuf_exports.add();
      offset = first - page_first;
      return fd;
    }
    counts_.udmabuf_refused.add();
  }
  offset = first;
  return allocation.memfd.duplicate();
}

// make(allocation, first, offset): the descriptor, and where byte `first` of the allocation lies in it.
template <class Make>
Result<Accelerator::Export> Accelerator::export_as(std::uint64_t address, std::uint64_t length_bytes, Make make) {
  STRAIT_CHECK(check_process());
  Arena* arena = arena_of(address);
  if (arena == nullptr) return fail(Code::invalid, "{:#x} is not memory of a soft device", address);
  if (!config_.can_export) {
    return fail(Code::unsupported, "{} cannot export its memory: it was opened with export=0", arena->name());
  }
  if (length_bytes == 0) return fail(Code::invalid, "cannot export 0 bytes at {:#x}", address);
  STRAIT_TRY(auto held, hold_range(*arena, address, length_bytes));
  Export out{-1, 0};
  STRAIT_TRY(sys::Fd fd, make(*held, address - held->base, out.offset));
  const std::lock_guard lock(fds_mutex_);
  fds_.insert_or_assign(fd.get(), std::move(held));
  out.fd = fd.release();
  counts_.exports.add();
  return out;
}

Result<Accelerator::Export> Accelerator::export_fd(std::uint64_t address, std::uint64_t length_bytes) {
  return export_as(address, length_bytes,
                   [&](const Allocation& allocation, std::uint64_t first, std::uint64_t& offset) {
                     return make_fd(allocation, first, length_bytes, offset);
                   });
}

Result<Accelerator::Export> Accelerator::export_pages(std::uint64_t address, std::uint64_t length_bytes) {
  return export_as(address, length_bytes, [](const Allocation& allocation, std::uint64_t first, std::uint64_t& offset) {
    offset = first;
    return allocation.memfd.duplicate();
  });
}

void Accelerator::close_fd(std::int32_t fd) {
  sys::Fd closed;                    // after the lock
  std::shared_ptr<Allocation> last;  // may unmap
  if (in_child()) return;
  const std::lock_guard lock(fds_mutex_);
  const auto found = fds_.find(fd);
  if (found == fds_.end()) {
    // Not one of ours, or given back twice: closing it could close somebody else's file.
    counts_.bad_fd_closes.add();
    return;
  }
  closed = sys::Fd(fd);
  last = std::move(found->second);
  fds_.erase(found);
  counts_.fd_closes.add();
}

std::string Accelerator::process_counters() {
  const ProcessCounts& p = process_counts();
  return fmt::format("opens={},closes={},leaked_allocations={},leaked_fds={}", p.opens.load(), p.closes.load(),
                     p.leaked_allocations.load(), p.leaked_fds.load());
}

std::string Accelerator::counters() const {
  if (in_child()) return {};
  std::uint64_t live = 0;
  std::uint64_t used = 0;
  for (const auto& arena : arenas_) {
    live += arena->live();
    used += arena->used_bytes();
  }
  std::size_t live_fds = 0;
  {
    const std::lock_guard lock(fds_mutex_);
    live_fds = fds_.size();
  }
  return fmt::format(
      "{},allocations={},frees={},live_allocations={},used_bytes={},exports={},udmabuf_exports={},udmabuf_refused={},"
      "fd_closes={},bad_fd_closes={},live_fds={},copies={},copies_done={},copies_refused={},bytes_copied={}",
      process_counters(), counts_.allocations.load(), counts_.frees.load(), live, used, counts_.exports.load(),
      counts_.udmabuf_exports.load(), counts_.udmabuf_refused.load(), counts_.fd_closes.load(),
      counts_.bad_fd_closes.load(), live_fds, counts_.copies.load(), engine_->copies_done(), counts_.refused.load(),
      engine_->bytes_copied());
}

}  // namespace strait::soft::accel
