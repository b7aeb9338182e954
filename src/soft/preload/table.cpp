// SPDX-License-Identifier: Apache-2.0
#include "soft/preload/table.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <atomic>

#include "soft/preload/devices.hpp"
#include "soft/preload/real.hpp"

namespace strait::preload {

struct Handle {
  // 0: free. Descriptors and calls under way; kEnding while the last one closes the file.
  std::atomic<std::uint32_t> users{0};
  std::uint32_t generation = 0;
  strait_host_file* file = nullptr;
  std::uint64_t number = 0;
  std::uint64_t device = 0, inode = 0;
};

namespace {

constexpr std::uint32_t kEnding = 1u << 31;
constexpr std::size_t kBlock = 1024;
constexpr std::size_t kBlocks = 1024;  // a million descriptors, the kernel's usual limit

using Entry = std::atomic<Handle*>;
constinit std::atomic<Entry*> entries[kBlocks]{};
constinit std::atomic<Handle*> handles[kBlocks]{};
constinit std::atomic<std::uint32_t> generation{1};
constinit std::atomic<long> owner{0};

void* new_pages(std::size_t bytes) {
  const long at = kernel(SYS_mmap, nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);
  return at < 0 && at > -4096 ? nullptr : reinterpret_cast<void*>(at);
}

// The block that `slot` points at, made if need be. Zero bytes are a fresh Entry and a fresh Handle.
template <class T>
T* block(std::atomic<T*>& slot, bool make) {
  T* found = slot.load(std::memory_order_acquire);
  if (found != nullptr || !make) return found;
  T* fresh = static_cast<T*>(new_pages(kBlock * sizeof(T)));
  if (fresh == nullptr) return nullptr;
  if (slot.compare_exchange_strong(found, fresh, std::memory_order_acq_rel)) return fresh;
  (void)kernel(SYS_munmap, fresh, kBlock * sizeof(T));
  return found;
}

Entry* entry_of(int fd, bool make) {
  if (fd < 0 || static_cast<std::size_t>(fd) >= kBlock * kBlocks) return nullptr;
  const std::size_t at = static_cast<std::size_t>(fd);
  Entry* found = block(entries[at / kBlock], make);
  return found == nullptr ? nullptr : found + at % kBlock;
}

bool take(Handle* handle) {
  std::uint32_t users = handle->users.load(std::memory_order_relaxed);
  while (users != 0 && (users & kEnding) == 0) {
    if (handle->users.compare_exchange_weak(users, users + 1, std::memory_order_acq_rel)) return true;
  }
  return false;
}

void give(Handle* handle) {
  std::uint32_t users = handle->users.load(std::memory_order_relaxed);
  while (!handle->users.compare_exchange_weak(users, users == 1 ? kEnding : users - 1, std::memory_order_acq_rel)) {
  }
  if (users != 1) return;
  // A copy of the parent's file ends with the parent.
  if (handle->generation == generation.load(std::memory_order_relaxed)) close_device(handle->file);
  handle->users.store(0, std::memory_order_release);
}

Handle* new_handle() {
  for (std::atomic<Handle*>& slot : handles) {
    Handle* first = block(slot, true);
    if (first == nullptr) return nullptr;
    for (Handle* handle = first; handle != first + kBlock; ++handle) {
      std::uint32_t free = 0;
      if (handle->users.compare_exchange_strong(free, 1, std::memory_order_acq_rel)) return handle;
    }
  }
  return nullptr;
}

bool identity(int fd, std::uint64_t* device, std::uint64_t* inode) {
  struct stat is;
  if (kernel(SYS_fstat, fd, &is) < 0) return false;
  *device = is.st_dev;
  *inode = is.st_ino;
  return true;
}

// Puts a handle, whose use is handed over, in an entry.
void put(Entry& entry, Handle* handle) {
  if (Handle* before = entry.exchange(handle, std::memory_order_acq_rel)) give(before);
}

void in_child() {
  owner.store(kernel(SYS_getpid), std::memory_order_relaxed);
  generation.fetch_add(1, std::memory_order_relaxed);
}

__attribute__((constructor(102))) void begin() {
  owner.store(kernel(SYS_getpid), std::memory_order_relaxed);
  pthread_atfork(nullptr, nullptr, in_child);
}

}  // namespace

bool in_own_process() {
  const long me = kernel(SYS_getpid);
  long nobody = 0;
  return owner.compare_exchange_strong(nobody, me, std::memory_order_relaxed) || nobody == me;
}

Loan::Loan(int fd) : handle_(nullptr) {
  Entry* entry = entry_of(fd, false);
  while (entry != nullptr) {
    Handle* handle = entry->load(std::memory_order_acquire);
    if (handle == nullptr) return;
    if (!take(handle)) continue;  // it ends: the entry is another one by now
    if (entry->load(std::memory_order_acquire) != handle) {
      give(handle);
      continue;
    }
    std::uint64_t device = 0, inode = 0;
    if (identity(fd, &device, &inode) && device == handle->device && inode == handle->inode) {
      handle_ = handle;
      return;
    }
    // Closed behind our back; the number is another file's now.
    give(handle);
    if (in_own_process() && entry->compare_exchange_strong(handle, nullptr, std::memory_order_acq_rel)) give(handle);
    return;
  }
}

Loan::~Loan() {
  if (handle_ != nullptr) give(handle_);
}

bool Loan::own() const {
  return handle_->generation == generation.load(std::memory_order_relaxed) && in_own_process();
}

strait_host_file* Loan::file() const {
  return handle_->file;
}

std::uint64_t Loan::number() const {
  return handle_->number;
}

Handle* keep(const Loan& loan) {
  return take(loan.handle_) ? loan.handle_ : nullptr;
}

void release(Handle* handle) {
  give(handle);
}

strait_host_file* own_file(Handle* handle) {
  return handle->generation == generation.load(std::memory_order_relaxed) ? handle->file : nullptr;
}

bool remember(int fd, strait_host_file* file, std::uint64_t number) {
  Entry* entry = entry_of(fd, true);
  Handle* handle = entry == nullptr ? nullptr : new_handle();
  if (handle == nullptr) return false;
  handle->file = file;
  handle->number = number;
  handle->generation = generation.load(std::memory_order_relaxed);
  if (!identity(fd, &handle->device, &handle->inode)) {
    handle->users.store(0, std::memory_order_release);
    return false;
  }
  put(*entry, handle);
  return true;
}

void forget(int fd) {
  Entry* entry = entry_of(fd, false);
  if (entry == nullptr || entry->load(std::memory_order_acquire) == nullptr || !in_own_process()) return;
  put(*entry, nullptr);
}

void forget_range(unsigned first, unsigned last) {
  const std::size_t end = last < kBlock * kBlocks - 1 ? last + std::size_t{1} : kBlock * kBlocks;
  for (std::size_t at = first; at < end;) {
    if (entries[at / kBlock].load(std::memory_order_acquire) == nullptr) {
      at = (at / kBlock + 1) * kBlock;
    } else {
      forget(static_cast<int>(at++));
    }
  }
}

void share(int fd, int copy) {
  if (fd == copy) return;
  Entry* from = entry_of(fd, false);
  Handle* handle = from == nullptr ? nullptr : from->load(std::memory_order_acquire);
  if (handle != nullptr && (!in_own_process() || !take(handle))) return;
  Entry* to = entry_of(copy, handle != nullptr);
  if (to != nullptr && (handle != nullptr || in_own_process())) {
    put(*to, handle);
  } else if (handle != nullptr) {
    give(handle);
  }
}

}  // namespace strait::preload
