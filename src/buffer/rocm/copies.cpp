// SPDX-License-Identifier: Apache-2.0
#include "buffer/rocm/copies.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "sys/pause.hpp"

namespace strait::buffer::rocm {
namespace {

constexpr std::uint64_t kTimedBytes = 65536;  // of an allocation of its own

// Through a large BAR.
void move_by_cpu(std::uint64_t to, std::uint64_t from, std::uint64_t length_bytes) {
  std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), length_bytes);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // combined writes leave the CPU
}

}  // namespace

Copies::Copies(const Hsa& hsa, Blocks& blocks, Agent cpu, const std::map<std::uint64_t, MemoryPool>& pools,
               const CpuCopies& config)
    : hsa_(hsa), blocks_(blocks), cpu_(cpu) {
  for (const auto& [agent, pool] : pools)
    devices_.emplace(std::piecewise_construct, std::forward_as_tuple(agent), std::forward_as_tuple(pool, config));
}

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
  if (block.host_base == 0 || length_bytes > kCpuCopiesMost || length_bytes > cpu_limit(block, target.device))
    return false;
  const auto cpu = [&](std::uint64_t address, const Side& side) {
    return side.device ? side.block.host_base + (address - side.block.base) : address;
  };
  move_by_cpu(cpu(to, target), cpu(from, source), length_bytes);
  by_cpu_.add();
  return true;
}

// What there is to know is found out by the first small copy of memory that the CPU sees.
std::uint64_t Copies::cpu_limit(const Block& block, bool to_device) {
  const auto found = devices_.find(block.owner);
  if (found == devices_.end()) return 0;
  Device& device = found->second;
  if (device.limits.take_turn()) time_window(device);
  return device.limits.of(to_device);
}

// On memory of its own: nobody's bytes are written.
void Copies::time_window(Device& device) {
  void* scratch = nullptr;
  if (hsa_.pool_allocate(device.pool, kTimedBytes, 0, &scratch) != kOk)
    return device.limits.cannot_time("no device memory was free");
  const auto there = reinterpret_cast<std::uint64_t>(scratch);
  std::array<std::byte, kLongCopy> bytes{};
  const auto here = reinterpret_cast<std::uint64_t>(bytes.data());
  const auto memory = look_at(there, kLongCopy);
  const auto host = look_at(here, kLongCopy);
  if (memory && host && memory->device && memory->block.host_base != 0) {
    const std::uint64_t window = memory->block.host_base + (there - memory->block.base);
    device.limits.time(
        [&](bool to_device, std::uint64_t length_bytes) {
          move_by_cpu(to_device ? window : here, to_device ? here : window, length_bytes);
          return true;
        },
        [&](bool to_device, std::uint64_t length_bytes) {
          const auto running = to_device ? queue(there, *memory, here, *host, length_bytes)
                                         : queue(here, *host, there, *memory, length_bytes);
          if (!running) return false;
          std::int64_t left = 0;
          for (std::uint32_t turn = 0; (left = hsa_.signal_load(running->signal)) > 0; ++turn)
            sys::pause_turn(turn % 64);
          end(*running);
          return left == 0;
        });
  } else {
    device.limits.cannot_time("the CPU does not see memory allocated for it");
  }
  (void)hsa_.pool_free(scratch);
}

Result<std::uint64_t> Copies::start(std::uint64_t to, std::uint64_t from, std::uint64_t length_bytes) {
  if (length_bytes == 0) return 0;
  STRAIT_TRY(const Side target, look_at(to, length_bytes));
  STRAIT_TRY(const Side source, look_at(from, length_bytes));
  if (!target.device && !source.device) return fail(Code::invalid, "neither {:#x} nor {:#x} is ROCm memory", to, from);
  bytes_.add(length_bytes);
  if (copy_small(to, target, from, source, length_bytes)) return 0;
  STRAIT_TRY(const Running running, queue(to, target, from, source, length_bytes));
  started_.add();
  const std::lock_guard lock(mutex_);
  running_.emplace(++last_ticket_, running);
  return last_ticket_;
}

Result<Copies::Running> Copies::queue(std::uint64_t to, const Side& target, std::uint64_t from, const Side& source,
                                      std::uint64_t length_bytes) {
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
  return running;
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
  std::size_t timed = 0;
  CpuLimits most{0, 0};
  for (const auto& [agent, device] : devices_) {
    timed += device.limits.was_timed() ? 1 : 0;
    most.in = std::max(most.in, device.limits.of(true));
    most.out = std::max(most.out, device.limits.of(false));
  }
  return fmt::format(
      "copies={},copies_done={},copies_failed={},copies_by_cpu={},bytes_copied={},cpu_timed={},cpu_in_most={},"
      "cpu_out_most={}",
      started_.load(), finished_.load(), failed_.load(), by_cpu_.load(), bytes_.load(), timed, most.in, most.out);
}

}  // namespace strait::buffer::rocm
