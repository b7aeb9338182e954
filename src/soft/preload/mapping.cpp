// SPDX-License-Identifier: Apache-2.0
// mmap of device nodes, and munmap of what is mapped of them. The price for all other mappings is three loads.
#include <sys/mman.h>

#include <cstdint>

#include "soft/host/backend.h"
#include "soft/preload/devices.hpp"
#include "soft/preload/real.hpp"
#include "soft/preload/table.hpp"
#include "soft/preload/window.hpp"

namespace strait::preload {
namespace {

// What a device has mapped. `first`: 0 free, kChanging while a thread is at it.
struct Mapped {
  std::atomic<std::uint64_t> first;
  std::uint64_t length;
  std::uint64_t left;  // bytes that are still mapped
  Handle* handle;
};
constexpr std::uint64_t kChanging = 1;
constexpr std::size_t kMappedBlock = 1024, kMappedBlocks = 64;
constinit std::atomic<Mapped*> mapped_blocks[kMappedBlocks]{};
// No device mapping lies outside; they only widen.
constinit std::atomic<std::uint64_t> lowest{~std::uint64_t{0}};
constinit std::atomic<std::uint64_t> highest{0};

Mapped* mapped_block(std::atomic<Mapped*>& slot) {
  if (Mapped* found = slot.load(std::memory_order_acquire)) return found;
  const long at = kernel(SYS_mmap, nullptr, kMappedBlock * sizeof(Mapped), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);
  if (at < 0 && at > -4096) return nullptr;
  Mapped* found = nullptr;
  auto* const fresh = reinterpret_cast<Mapped*>(at);  // zero bytes are free entries
  if (slot.compare_exchange_strong(found, fresh, std::memory_order_acq_rel)) return fresh;
  (void)kernel(SYS_munmap, fresh, kMappedBlock * sizeof(Mapped));
  return found;
}

void widen(std::uint64_t first, std::uint64_t end) {
  std::uint64_t seen = lowest.load(std::memory_order_relaxed);
  while (first < seen && !lowest.compare_exchange_weak(seen, first, std::memory_order_acq_rel)) {
  }
  seen = highest.load(std::memory_order_relaxed);
  while (end > seen && !highest.compare_exchange_weak(seen, end, std::memory_order_acq_rel)) {
  }
}

bool remember_mapping(std::uint64_t first, std::uint64_t length, Handle* handle) {
  for (std::atomic<Mapped*>& slot : mapped_blocks) {
    Mapped* const block = mapped_block(slot);
    if (block == nullptr) return false;
    for (Mapped* entry = block; entry != block + kMappedBlock; ++entry) {
      std::uint64_t free = 0;
      if (!entry->first.compare_exchange_strong(free, kChanging, std::memory_order_acq_rel)) continue;
      entry->length = entry->left = length;
      entry->handle = handle;
      widen(first, first + length);
      entry->first.store(first, std::memory_order_release);
      return true;
    }
  }
  return false;
}

__attribute__((noinline)) void forget_mappings(std::uint64_t first, std::uint64_t end) {
  if (!in_own_process()) return;
  for (std::atomic<Mapped*>& slot : mapped_blocks) {
    Mapped* const block = slot.load(std::memory_order_acquire);
    if (block == nullptr) return;
    for (Mapped* entry = block; entry != block + kMappedBlock; ++entry) {
      std::uint64_t at = entry->first.load(std::memory_order_acquire);
      if (at <= kChanging || at >= end || at + entry->length <= first) continue;
      if (!entry->first.compare_exchange_strong(at, kChanging, std::memory_order_acq_rel)) continue;
      const std::uint64_t begin = at > first ? at : first;
      const std::uint64_t stop = at + entry->length < end ? at + entry->length : end;
      entry->left -= stop - begin < entry->left ? stop - begin : entry->left;
      Handle* const handle = entry->handle;
      const bool last = entry->left == 0;
      if (strait_host_file* file = own_file(handle)) {
        const int before = errno;
        if (const strait_host_ops* ops = devices()) ops->unmapped(file, reinterpret_cast<void*>(begin), stop - begin);
        errno = before;
      }
      entry->first.store(last ? 0 : at, std::memory_order_release);
      if (last) release(handle);
    }
  }
}

void forget_where_mapped(void* address, std::size_t length) {
  const auto first = reinterpret_cast<std::uint64_t>(address);
  if (first >= highest.load(std::memory_order_relaxed) || first + length <= lowest.load(std::memory_order_relaxed))
    return;
  forget_mappings(first, first + length);
}

// The address, -errno, or -ENOSYS: not for a family to do.
__attribute__((noinline)) long map_device(const Loan& loan, void* address, std::size_t length, int protect, int flags,
                                          off64_t offset) {
  const strait_host_ops* ops = devices();
  if (ops == nullptr || ops->struct_size < sizeof *ops || ops->map == nullptr) return -ENOSYS;
  if (!loan.own()) return -EIO;
  const int before = errno;
  const long at = ops->map(loan.file(), address, length, protect, flags, static_cast<std::uint64_t>(offset));
  errno = before;
  if (at < 0 && at > -4096) return at;
  Handle* const handle = keep(loan);
  if (handle != nullptr && remember_mapping(static_cast<std::uint64_t>(at), length, handle)) return at;
  ops->unmapped(loan.file(), reinterpret_cast<void*>(at), length);
  (void)kernel(SYS_munmap, reinterpret_cast<void*>(at), length);
  if (handle != nullptr) release(handle);
  return -ENOMEM;
}

// Looked up before there are threads. Until then, and within that very look-up (allocators map memory), the kernel is
// asked itself.
__attribute__((constructor(103))) void find_next_mmap() {
  (void)STRAIT_NEXT(mmap);
  (void)STRAIT_NEXT(mmap64);
  (void)STRAIT_NEXT(munmap);
}

template <class Call>
void* map_any(void* address, std::size_t length, int protect, int flags, int fd, off64_t offset, Call call) {
  if ((flags & MAP_FIXED) != 0) forget_where_mapped(address, length);
  if (fd >= 0 && (flags & MAP_ANONYMOUS) == 0) {
    if (const Loan loan(fd); loan) {
      const long at = map_device(loan, address, length, protect, flags, offset);
      if (at != -ENOSYS) return reinterpret_cast<void*>(answer(at));
    } else if (const long window = map_window(fd, address, length, protect, flags, offset); window != -ENOSYS) {
      return reinterpret_cast<void*>(answer(window));
    }
  }
  return call();
}

template <class Function>
void* mapped_by(const std::atomic<Function*>& next, void* address, std::size_t length, int protect, int flags, int fd,
                off64_t offset) {
  if (Function* const call = next.load(std::memory_order_relaxed))
    return call(address, length, protect, flags, fd, offset);
  return reinterpret_cast<void*>(answer(kernel(SYS_mmap, address, length, protect, flags, fd, offset)));
}

}  // namespace
}  // namespace strait::preload

using namespace strait::preload;

extern "C" {

void* mmap(void* address, size_t length, int protect, int flags, int fd, off_t offset) noexcept {
  return map_any(address, length, protect, flags, fd, offset, [&] {
    return mapped_by(kept<"mmap", decltype(::mmap)>, address, length, protect, flags, fd, offset);
  });
}

void* mmap64(void* address, size_t length, int protect, int flags, int fd, off64_t offset) noexcept {
  return map_any(address, length, protect, flags, fd, offset, [&] {
    return mapped_by(kept<"mmap64", decltype(::mmap64)>, address, length, protect, flags, fd, offset);
  });
}

int munmap(void* address, size_t length) noexcept {
  forget_where_mapped(address, length);
  auto* const call = kept<"munmap", decltype(::munmap)>.load(std::memory_order_relaxed);
  return call != nullptr ? call(address, length) : static_cast<int>(answer(kernel(SYS_munmap, address, length)));
}

}  // extern "C"
