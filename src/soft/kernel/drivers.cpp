// SPDX-License-Identifier: Apache-2.0
#include "soft/kernel/drivers.hpp"

#include <cerrno>
#include <utility>

namespace strait::soft::kernel {
namespace {

int check_memory(const strait_soft_driver_memory& memory) {
  if (memory.struct_size < sizeof memory || memory.base == 0 || memory.length_bytes == 0) return -EINVAL;
  if (memory.base + memory.length_bytes < memory.base) return -EINVAL;
  if (memory.memfd_offset + memory.length_bytes < memory.memfd_offset) return -EINVAL;
  if (memory.vendor < STRAIT_SOFT_VENDOR_CUDA || memory.vendor > STRAIT_SOFT_VENDOR_SOFT) return -EINVAL;
  const std::int64_t size = sys::file_bytes(memory.memfd);
  if (size < 0 || memory.memfd_offset + memory.length_bytes > static_cast<std::uint64_t>(size)) return -EINVAL;
  return 0;
}

strait_soft_driver_memory with_file(strait_soft_driver_memory said, int file) {
  said.struct_size = sizeof said;
  said.memfd = file;
  return said;
}

}  // namespace

DeviceMemory::DeviceMemory(const strait_soft_driver_memory& said, sys::Fd file, sys::FileId id)
    : said_(with_file(said, file.get())), file_(std::move(file)), file_id_(id) {}

std::uint64_t DeviceMemory::watch(std::function<void()> on_free) {
  const std::lock_guard lock(mutex_);
  if (freed_) return 0;
  watchers_.emplace(next_watch_, std::move(on_free));
  return next_watch_++;
}

bool DeviceMemory::unwatch(std::uint64_t watch) {
  const std::lock_guard lock(mutex_);
  return watchers_.erase(watch) != 0;
}

void DeviceMemory::run_watchers() {
  for (;;) {
    std::function<void()> next;
    {
      const std::lock_guard lock(mutex_);
      freed_ = true;
      if (watchers_.empty()) return;
      // Taken out before it runs: it runs once, whoever drops its watch meanwhile.
      next = std::move(watchers_.begin()->second);
      watchers_.erase(watchers_.begin());
    }
    next();
  }
}

int Drivers::add(const strait_soft_driver_memory& memory) {
  if (const int failed = check_memory(memory)) return failed;
  const auto id = sys::file_id(memory.memfd);
  if (!id) return -EINVAL;
  auto file = sys::Fd::copy_of(memory.memfd);
  if (!file) return file.error().sys_errno != 0 ? -file.error().sys_errno : -EINVAL;
  auto made = std::make_shared<DeviceMemory>(memory, std::move(*file), *id);
  const std::unique_lock lock(mutex_);
  const auto after = by_base_.lower_bound(memory.base);
  if (after != by_base_.end() && after->first < made->end()) return -EEXIST;
  if (after != by_base_.begin() && std::prev(after)->second->end() > memory.base) return -EEXIST;
  by_base_.emplace(memory.base, made);
  by_file_.emplace(*id, std::move(made));
  return 0;
}

int Drivers::remove(std::uint64_t base, std::uint64_t identity) {
  std::shared_ptr<DeviceMemory> gone;
  {
    const std::unique_lock lock(mutex_);
    const auto found = by_base_.find(base);
    if (found == by_base_.end() || found->second->said().identity != identity) return -ENOENT;
    gone = std::move(found->second);
    by_base_.erase(found);
    const auto [first, last] = by_file_.equal_range(gone->file_id());
    for (auto each = first; each != last; ++each) {
      if (each->second != gone) continue;
      by_file_.erase(each);
      break;
    }
  }
  gone->run_watchers();
  return 0;
}

std::shared_ptr<DeviceMemory> Drivers::find(std::uint64_t address) const {
  const std::shared_lock lock(mutex_);
  auto after = by_base_.upper_bound(address);
  if (after == by_base_.begin()) return nullptr;
  const std::shared_ptr<DeviceMemory>& before = std::prev(after)->second;
  return address < before->end() ? before : nullptr;
}

std::shared_ptr<DeviceMemory> Drivers::find_file(sys::FileId id, std::uint64_t offset) const {
  const std::shared_lock lock(mutex_);
  const auto [first, last] = by_file_.equal_range(id);
  for (auto each = first; each != last; ++each) {
    const strait_soft_driver_memory& said = each->second->said();
    if (offset >= said.memfd_offset && offset - said.memfd_offset < said.length_bytes) return each->second;
  }
  return nullptr;
}

std::shared_ptr<DeviceMemory> Drivers::find_file(sys::FileId id) const {
  const std::shared_lock lock(mutex_);
  const auto found = by_file_.find(id);
  return found == by_file_.end() ? nullptr : found->second;
}

std::shared_ptr<DeviceMemory> Drivers::find_overlap(std::uint64_t first, std::uint64_t end) const {
  const std::shared_lock lock(mutex_);
  auto each = by_base_.upper_bound(first);
  if (each != by_base_.begin() && std::prev(each)->second->end() > first) --each;
  return each != by_base_.end() && each->first < end ? each->second : nullptr;
}

std::size_t Drivers::live() const {
  const std::shared_lock lock(mutex_);
  return by_base_.size();
}

}  // namespace strait::soft::kernel
