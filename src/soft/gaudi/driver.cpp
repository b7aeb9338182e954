// SPDX-License-Identifier: Apache-2.0
// Nodes: who may open them, and what ends with their owner.
#include "soft/gaudi/driver.hpp"

#include <cerrno>
#include <cstdlib>

#include "soft/accel/spec.hpp"
#include "soft/gaudi/nodes.hpp"
#include "soft/host/report.hpp"
#include "soft/kernel/driver.h"
#include "sys/file_hold.hpp"

namespace strait::soft::gaudi {
namespace {

constexpr std::int64_t kHoldPatience = 10'000'000'000;

// Made at first use and never destroyed: a program may end with its devices open and its threads running.
struct One {
  sys::ForkMark mark;
  std::unique_ptr<Driver> driver;
};

}  // namespace

Driver* Driver::get() {
  static const One* const one = [] {
    auto* made = new One;
    const accel::VendorSpec spec = accel::spec_from_environment(accel::Vendor::gaudi);
    if (auto view = View::open(spec); view) made->driver.reset(new Driver(std::move(*view), spec.variant == "2021"));
    return made;
  }();
  return one->mark.in_child() ? nullptr : one->driver.get();
}

std::string Driver::bus_id(std::uint32_t slot) {
  return bus_id_of(slot);
}

std::optional<Node> Driver::node_locked(int fd) const {
  const auto id = sys::file_id(fd);
  for (std::uint32_t slot = 0; id && slot < devices(); ++slot) {
    if (view_.compute_id(slot) == id) return Node{slot, false};
    if (view_.control_id(slot) == id) return Node{slot, true};
  }
  return std::nullopt;
}

std::optional<Node> Driver::node_of(int fd) {
  const std::lock_guard lock(mutex_);
  return node_locked(fd);
}

bool Driver::memory_held_locked(const DeviceFiles& files) const {
  drop_windows_locked();
  for (const sys::Fd& segment : files.hbm) {
    if (sys::is_held_elsewhere(segment.get())) return true;
  }
  return false;
}

bool Driver::is_busy(std::uint32_t slot) {
  const std::lock_guard lock(mutex_);
  const auto files = view_.device(slot);
  return files && (sys::is_held_elsewhere(files->compute.get()) || memory_held_locked(*files));
}

int Driver::open_compute(std::uint32_t slot) {
  if (slot >= devices()) return -ENODEV;
  std::unique_ptr<Context> before;  // of an owner who closed the node without a word
  auto made = std::make_unique<Context>();
  sys::Fd fd;
  {
    const std::lock_guard lock(mutex_);
    auto files = view_.device(slot);
    if (!files) return -files.error().sys_errno;
    made->files = std::move(*files);
    auto opened = sys::open_again(made->files.compute.get());
    if (!opened) return -opened.error().sys_errno;
    fd = std::move(*opened);
    // Held by another owner, or by a dma-buf that somebody still has.
    if (!sys::take_file_alone(fd.get()) || memory_held_locked(made->files)) {
      counts_.busy.add();
      return -EBUSY;
    }
    before = std::move(contexts_[slot]);
    contexts_.erase(slot);
  }
  if (before) {
    for (const auto& [handle, allocation] : before->allocations) tell_gone(allocation);
  }
  const std::lock_guard lock(mutex_);
  // The next owner never sees what the last one left.
  for (const sys::Fd& segment : made->files.hbm) {
    if (!sys::drop_file_pages(segment.get(), 0, view_.segment_bytes())) return -EIO;
  }
  show_nothing(slot);
  if (!sys::hold_file_before(fd.get(), sys::Deadline::after_ns(kHoldPatience))) return -EBUSY;
  contexts_[slot] = std::move(made);
  counts_.opens.add();
  report_locked();
  return fd.release();
}

int Driver::open_control(std::uint32_t slot) {
  if (slot >= devices()) return -ENODEV;
  const std::lock_guard lock(mutex_);
  auto opened = view_.control(slot);
  if (!opened) return -opened.error().sys_errno;
  if (!sys::hold_file_before(opened->get(), sys::Deadline::after_ns(kHoldPatience))) return -EBUSY;
  return opened->release();
}

void Driver::tell_gone(const Allocation& allocation) {
  if (allocation.identity != 0)
    (void)strait_soft_driver_remove(allocation.address + allocation.reserve, allocation.identity);
}

void Driver::end_context(std::uint32_t slot) {
  std::unique_ptr<Context> gone;
  {
    const std::lock_guard lock(mutex_);
    const auto found = contexts_.find(slot);
    drop_windows_locked();
    // A duplicate of the descriptor is open: so is the device.
    if (found == contexts_.end() || sys::is_held_elsewhere(found->second->files.compute.get())) return;
    gone = std::move(found->second);
    contexts_.erase(found);
    show_nothing(slot);
    counts_.closes.add();
    for (const auto& [handle, allocation] : gone->allocations) {
      left_buffers_ += allocation.carved.size();
      for (const auto& [base, length] : allocation.carved) left_bytes_ += length;
    }
    report_locked();
  }
  for (const auto& [handle, allocation] : gone->allocations) tell_gone(allocation);
}

int Driver::close(int fd) {
  const auto node = node_of(fd);
  if (!node) return -EBADF;
  sys::Fd(fd).reset();
  if (!node->control) end_context(node->slot);
  const std::lock_guard lock(mutex_);
  view_.forget(node->slot);
  return 0;
}

void Driver::count_unsupported(const char* name) {
  const std::lock_guard lock(mutex_);
  ++unsupported_[name];
  report_locked();
}

void Driver::report_locked() {
  const char* const root = std::getenv("STRAIT_HOST_ROOT");
  if (root == nullptr || mark_.in_child()) return;
  std::string text;
  for (const auto& [name, count] : unsupported_) text += fmt::format("unsupported.{}={},", name, count);
  text += fmt::format("accel.unfreed={},accel.unfreed_bytes={},accel.processes=1", left_buffers_, left_bytes_);
  host::leave_report(root, "gaudi", text);
}

int Driver::status(std::uint32_t slot) {
  const std::lock_guard lock(mutex_);
  const auto found = contexts_.find(slot);
  return found != contexts_.end() && found->second->reset ? 1 : 0;  // in reset, or operational
}

Driver::Context* Driver::context_of(int fd, int& error, std::uint32_t* slot) {
  error = mark_.in_child() ? -EPERM : sys::is_open_fd(fd) ? -ENOTTY : -EBADF;
  const auto node = node_locked(fd);
  if (mark_.in_child() || !node || node->control) return nullptr;
  error = -ENODEV;
  const auto found = contexts_.find(node->slot);
  if (found == contexts_.end() || found->second->reset) return nullptr;
  if (slot != nullptr) *slot = node->slot;
  error = 0;
  return found->second.get();
}

int Driver::make_notifier(int fd) {
  const std::lock_guard lock(mutex_);
  int error = 0;
  Context* context = context_of(fd, error);
  if (context == nullptr) return error;
  if (!context->notifiers.empty()) return -EINVAL;  // one for each open, as there
  context->notifiers.push_back(Notifier{++last_notifier_, 0, 0});
  return last_notifier_;
}

int Driver::drop_notifier(int fd, int handle) {
  const std::lock_guard lock(mutex_);
  const auto node = node_locked(fd);
  if (!node || !contexts_.contains(node->slot)) return -EBADF;
  auto& all = contexts_[node->slot]->notifiers;
  const std::size_t gone = std::erase_if(all, [&](const Notifier& each) { return each.handle == handle; });
  notified_.notify_all();
  return gone == 0 ? -EINVAL : 0;
}

int Driver::wait_notifier(int fd, int handle, std::uint64_t& events, std::uint64_t& count, std::uint32_t timeout_ms) {
  const sys::Deadline deadline = sys::Deadline::after_ns(std::int64_t{timeout_ms} * 1'000'000);
  std::unique_lock lock(mutex_);
  while (true) {
    // Looked up each time: the wait lets others close it meanwhile.
    const auto node = node_locked(fd);
    if (!node || !contexts_.contains(node->slot)) return -EBADF;
    Notifier* notifier = nullptr;
    for (Notifier& each : contexts_[node->slot]->notifiers) {
      if (each.handle == handle) notifier = &each;
    }
    if (notifier == nullptr) return -EINVAL;
    if (notifier->count != 0 || deadline.passed()) {
      events = std::exchange(notifier->events, 0);
      count = std::exchange(notifier->count, 0);
      return 0;
    }
    notified_.wait_for(lock, std::chrono::nanoseconds(deadline.left_ns()));
  }
}

int Driver::reset(std::uint32_t slot) {
  if (slot >= devices()) return -ENODEV;
  view_.links().resets[slot].fetch_add(1);
  const std::lock_guard lock(mutex_);
  const auto found = contexts_.find(slot);
  if (found == contexts_.end()) return 0;
  found->second->reset = true;
  show_nothing(slot);
  for (Notifier& each : found->second->notifiers) {
    each.events |= kNotifyReset;
    ++each.count;
  }
  notified_.notify_all();
  return 0;
}

}  // namespace strait::soft::gaudi
