// SPDX-License-Identifier: Apache-2.0
#include "soft/hsa/runtime.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "soft/hsa/functions.hpp"
#include "soft/hsa/visible.hpp"
#include "soft/kernel/driver.h"
#include "sys/pause.hpp"

namespace strait::soft::hsa {
namespace {

// What hsa_init opened. Never destroyed: a program may leave it open, and its threads may still run when it ends.
struct Opened {
  std::mutex mutex;
  std::shared_ptr<Runtime> runtime;
  std::uint32_t references = 0;
  sys::ForkMark mark;  // of who made this, also while nothing is open
};

Opened& opened() {
  static auto* one = new Opened;
  return *one;
}

}  // namespace

Counts& counts() {
  static auto* all = new Counts;
  return *all;
}

Result<std::unique_ptr<Runtime>> Runtime::open(const accel::VendorSpec& spec) {
  std::unique_ptr<Runtime> runtime(new Runtime);
  runtime->large_bar_ = spec.variant == "bar";
  const char* chosen = std::getenv("ROCR_VISIBLE_DEVICES");
  for (const std::uint32_t slot : visible_slots(chosen, spec.devices)) {
    Gpu gpu;
    gpu.node = slot + 1;
    gpu.slot = slot;
    STRAIT_TRY(gpu.arena, accel::Arena::reserve(fmt::format("rocm:{}", slot), spec.memory_bytes, sys::real_calls()));
    gpu.blocks = std::make_unique<Blocks>(*gpu.arena);
    runtime->gpus_.push_back(std::move(gpu));
  }
  return runtime;
}

// What the program did not free goes with the runtime; the kernel hears of it first.
Runtime::~Runtime() {
  for (auto& [base, range] : ranges_.all()) tell_kernel_gone(range);
}

std::uint64_t Runtime::next_identity() {
  static std::atomic<std::uint64_t> last{0};
  return (std::uint64_t{STRAIT_SOFT_VENDOR_ROCM} << 56) + last.fetch_add(1) + 1;
}

Status Runtime::tell_kernel(Range& range) {
  strait_soft_driver_memory memory{};
  memory.struct_size = sizeof memory;
  memory.vendor = STRAIT_SOFT_VENDOR_ROCM;
  memory.device = range.owner - 1;
  memory.flags = STRAIT_SOFT_P2P_CAPABLE;
  memory.base = range.base;
  memory.length_bytes = range.room_bytes;
  memory.identity = next_identity();
  memory.memfd = range.pages->fd();
  memory.memfd_offset = range.offset;
  const std::int32_t failed = strait_soft_driver_add(&memory);
  if (failed != 0) return fail_errno(-failed, fmt::format("the kernel did not take the range at {:#x}", range.base));
  range.identity = memory.identity;
  return {};
}

void Runtime::tell_kernel_gone(const Range& range) {
  if (range.identity != 0) (void)strait_soft_driver_remove(range.base, range.identity);
}

std::string Runtime::counters() {
  const std::lock_guard lock(mutex_);
  forget_closed_exports_locked();
  std::uint64_t used = 0, blocks = 0;
  for (const Gpu& gpu : gpus_) {
    used += gpu.arena->used_bytes();
    blocks += gpu.blocks->size();
  }
  return fmt::format(
      ",live_ranges={},live_locks={},live_exports={},live_handles={},live_signals={},used_bytes={},blocks={}",
      ranges_.size(), locked_.size(), exported_.size(), handles_.size(), signals_.live(), used, blocks);
}

Left Runtime::left() {
  const std::lock_guard lock(mutex_);
  forget_closed_exports_locked();
  Left all;
  for (const auto& [base, range] : ranges_.all()) {
    if (range.type != kPointerHsa) continue;
    ++all.allocations;
    all.bytes += range.room_bytes;
  }
  for (const auto& pages : exported_) {
    ++all.held;
    all.held_bytes += pages->length_bytes();
  }
  return all;
}

std::shared_ptr<Runtime> current_runtime() {
  Opened& one = opened();
  if (one.mark.in_child()) return nullptr;
  const std::lock_guard lock(one.mutex);
  return one.runtime;
}

Answer open_runtime() {
  Opened& one = opened();
  if (one.mark.in_child()) return kOutOfResources;
  const std::lock_guard lock(one.mutex);
  if (one.references == UINT32_MAX) return kRefcountOverflow;
  if (one.references == 0) {
    const accel::VendorSpec spec = accel::spec_from_environment(accel::Vendor::rocm);
    if (spec.devices == 0) return kOutOfResources;  // as without /dev/kfd
    auto runtime = Runtime::open(spec);
    if (!runtime) return kOutOfResources;
    one.runtime = std::move(*runtime);
    counts().opens.add();
    report_left({}, false);
    // A program that ends without hsa_shut_down is heard too.
    static const int told = std::atexit([] {
      if (const auto left_open = current_runtime(); left_open) report_left(left_open->left(), false);
    });
    (void)told;
  }
  ++one.references;
  return kSuccess;
}

Answer close_runtime() {
  Opened& one = opened();
  if (one.mark.in_child()) return kNotInitialized;
  std::shared_ptr<Runtime> last;
  {
    const std::lock_guard lock(one.mutex);
    if (one.references == 0) return kNotInitialized;
    if (--one.references != 0) return kSuccess;
    last = std::move(one.runtime);
    one.runtime.reset();
  }
  // Calls under way on other threads end first: the engine must not be the one to destroy itself.
  for (std::uint32_t turn = 0; last.use_count() > 1; ++turn) sys::pause_turn(turn);
  report_left(last->left(), true);
  last.reset();
  counts().closes.add();
  return kSuccess;
}

}  // namespace strait::soft::hsa
