// SPDX-License-Identifier: Apache-2.0
#include "buffer/rocm/copies.hpp"

#include <atomic>
#include <cstring>

#include "sys/pause.hpp"

namespace strait::buffer::rocm {
namespace {

// Through a large BAR: writes are combined and cheap, reads go word by word.
constexpr std::uint64_t kCpuWritesUpTo = 4096;
constexpr std::uint64_t kCpuReadsUpTo = 64;

}  // namespace

Copies::~Copies() {
  for (const auto& [ticket, running] : running_) {
    for (std::uint32_t turn = 0; hsa_.signal_load(running.signal) > 0; ++turn) sys::pause_turn(turn);
    end(running);
  }
}

void Copies::end(const Running& running) {
  if (running.locked != nullptr) (void)hsa_.unlock(running.locked);
  (void)hsa_.signal_destroy(running.signal);
}

Result<Copies::Side> Copies::look_at(std::uint64_t address, std::uint64_t length_bytes) {
  if (address == 0) return fail(Code::invalid, "a copy cannot start at the null address");
  if (length_bytes > UINT64_MAX - address)
    return fail(Code::invalid, "{} bytes at {:#x} wrap around", length_bytes, address);
  Side side;
  side.known = blocks_.find(address, side.block);
  side.device = side.known && side.block.type != kTypeLocked && side.block.owner != cpu_.handle;
  if (side.known && length_bytes > side.block.base + side.block.length_bytes - address) {
    if (side.device)
      return fail(Code::invalid, "{} bytes at {:#x} run past the ROCm allocation of {} bytes at {:#x}", length_bytes,
                  address, side.block.length_bytes, side.block.base);
    side.known = false;  // host memory of which a part is locked: locked anew as a whole
  }
  return side;
}

bool Copies::copy_small(std::uint64_t to, const Side& target, std::uint64_t from, const Side& source,
                        std::uint64_t length_bytes) {
  if (target.device == source.device) return false;
  const Block& block = target.device ? target.block : source.block;
  if (block.host_base == 0 || length_bytes > (target.device ? kCpuWritesUpTo : kCpuReadsUpTo)) return false;
  const auto cpu = [&](std::uint64_t address, const Side& side) {
    return side.device ? side.block.host_base + (address - side.block.base) : address;
  };
  std::memcpy(reinterpret_cast<void*>(cpu(to, target)), reinterpret_cast<const void*>(cpu(from, source)), length_bytes);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // combined writes leave the CPU
  by_cpu_.add();
  return true;
}

Result<std::uint64_t> Copies::start(std::uint64_t to, std::uint64_t from, std::uint64_t length_bytes) {
  if (length_bytes == 0) return 0;
  STRAIT_TRY(const Side target, look_at(to, length_bytes));
  STRAIT_TRY(const Side source, look_at(from, length_bytes));
  if (!target.device && !source.device) return fail(Code::invalid, "neither {:#x} nor {:#x} is ROCm memory", to, from);
  bytes_.add(length_bytes);
  if (copy_small(to, target, from, source, length_bytes)) return 0;

  Running running;
  const Agent gpu{target.device ? target.block.owner : source.block.owner};
  auto* destination = reinterpret_cast<void*>(to);
  auto* origin = reinterpret_cast<void*>(from);
  // The engine reaches host memory only while it is locked.
  if (!target.known || !source.known) {
    void* const host = target.known ? origin : destination;
    Agent agent = gpu;
    void* seen = nullptr;
    if (const HsaStatus status = hsa_.lock(host, length_bytes, &agent, 1, &seen); status != kOk)
      return hsa_.failed(status, fmt::format("lock {} bytes of host memory at {}", length_bytes, host));
    running.locked = host;
    (target.known ? origin : destination) = seen;
  }
  if (const HsaStatus status = hsa_.signal_create(1, 0, nullptr, &running.signal); status != kOk) {
    if (running.locked != nullptr) (void)hsa_.unlock(running.locked);
    return hsa_.failed(status, "make a signal");
  }
  const Agent to_agent = target.device ? Agent{target.block.owner} : cpu_;
  const Agent from_agent = source.device ? Agent{source.block.owner} : cpu_;
  HsaStatus status = kOk;
  if (target.device && source.device && target.block.owner != source.block.owner) {
    // The engine that reads has to be let in; a refusal shows in the copy itself.
    const Agent both[] = {to_agent, from_agent};
    (void)hsa_.allow_access(2, both, nullptr, reinterpret_cast<const void*>(target.block.base));
    (void)hsa_.allow_access(2, both, nullptr, reinterpret_cast<const void*>(source.block.base));
  }
  status = hsa_.async_copy(destination, to_agent, origin, from_agent, length_bytes, 0, nullptr, running.signal);
  if (status != kOk) {
    end(running);
    failed_.add();
    return hsa_.failed(status, fmt::format("copy {} bytes from {:#x} to {:#x}", length_bytes, from, to));
  }
  started_.add();
  const std::lock_guard lock(mutex_);
  running_.emplace(++last_ticket_, running);
  return last_ticket_;
}

std::int32_t Copies::done(std::uint64_t ticket) {
  if (ticket == 0) return 1;
  Running running;
  std::int64_t left = 0;
  {
    // Under the lock to the end: two threads may ask about one ticket, and only one of them ends it.
    const std::lock_guard lock(mutex_);
    if (ticket > last_ticket_) return -static_cast<std::int32_t>(Code::invalid);
    const auto found = running_.find(ticket);
    if (found == running_.end()) return 1;  // answered before
    left = hsa_.signal_load(found->second.signal);
    if (left > 0) return 0;
    running = found->second;
    running_.erase(found);
  }
  end(running);
  (left < 0 ? failed_ : finished_).add();
  return left < 0 ? -static_cast<std::int32_t>(Code::device) : 1;
}

Status Copies::run(std::uint64_t to, std::uint64_t from, std::uint64_t length_bytes) {
  STRAIT_TRY(const std::uint64_t ticket, start(to, from, length_bytes));
  for (std::uint32_t turn = 0;; ++turn) {
    const std::int32_t state = done(ticket);
    if (state == 1) return {};
    if (state < 0) return fail(static_cast<Code>(-state), "a copy of {} bytes on a ROCm device failed", length_bytes);
    sys::pause_turn(turn < 4096 ? turn % 64 : turn);
  }
}

std::string Copies::counters() const {
  return fmt::format("copies={},copies_done={},copies_failed={},copies_by_cpu={},bytes_copied={}", started_.load(),
                     finished_.load(), failed_.load(), by_cpu_.load(), bytes_.load());
}

}  // namespace strait::buffer::rocm
