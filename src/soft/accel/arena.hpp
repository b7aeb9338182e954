// SPDX-License-Identifier: Apache-2.0
// Arena: the memory of one software device, in an address space of its own.
//
// Device addresses come from one PROT_NONE reservation that lives as long as the device, so a CPU that follows one,
// live or freed, dies of SIGSEGV as it would on hardware. The bytes of an allocation are a sealed memfd; the copy
// engine reaches them through a second mapping that nobody else is told about. Addresses are reused first-fit,
// identities never.
//
// Freed memory is given back to the pool when the last descriptor and the last copy have let go of it, as measured on
// an H200: an exported descriptor keeps the memory. Threads: any; looking up takes a shared lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "sys/calls.hpp"
#include "sys/fd.hpp"
#include "sys/mapping.hpp"

namespace strait::soft::accel {

// Bytes of a device that are taken; outlives the arena while somebody holds an allocation.
struct Pool {
  std::atomic<std::uint64_t> used_bytes{0};
};

struct Allocation {
  std::uint64_t base = 0;
  std::uint64_t length_bytes = 0;  // as asked for; the file is whole pages
  std::uint64_t identity = 0;
  sys::Fd memfd;
  sys::Mapping alias;  // where the copy engine finds the bytes
  std::shared_ptr<Pool> pool;

  Allocation() = default;
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;
  ~Allocation() {
    if (pool) pool->used_bytes.fetch_sub(alias.size(), std::memory_order_relaxed);
  }
};

struct Found {
  std::uint64_t base = 0;
  std::uint64_t length_bytes = 0;
  std::uint64_t identity = 0;
};

class Arena {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Arena>> reserve(std::string name, std::uint64_t memory_bytes,
                                                              const sys::Calls& calls);

  // No lock: the reservation never changes.
  [[nodiscard]] bool contains(std::uint64_t address) const { return address - start() < room_.size(); }
  [[nodiscard]] bool touches(std::uint64_t address, std::uint64_t length_bytes) const;
  // True: `address` is in a live allocation.
  [[nodiscard]] bool find(std::uint64_t address, Found& out) const;
  [[nodiscard]] std::shared_ptr<Allocation> hold(std::uint64_t address) const;

  [[nodiscard]] Result<std::uint64_t> allocate(std::uint64_t length_bytes);
  [[nodiscard]] Status free(std::uint64_t address);

  [[nodiscard]] std::uint64_t live() const;
  [[nodiscard]] std::vector<Found> all() const;
  [[nodiscard]] std::uint64_t used_bytes() const { return pool_->used_bytes.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t memory_bytes() const { return memory_bytes_; }
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  // Sorted by base. The bounds lie beside each other so that a look-up does not follow the pointers.
  struct Entry {
    std::uint64_t base;
    std::uint64_t length_bytes;
    std::uint64_t identity;
    std::shared_ptr<Allocation> allocation;
  };

  Arena(std::string name, std::uint64_t memory_bytes, sys::Mapping room, const sys::Calls& calls)
      : name_(std::move(name)), memory_bytes_(memory_bytes), room_(std::move(room)), calls_(&calls) {}
  [[nodiscard]] std::uint64_t start() const { return reinterpret_cast<std::uint64_t>(room_.data()); }
  [[nodiscard]] const Entry* find_locked(std::uint64_t address) const;
  [[nodiscard]] Status take_from_pool(std::uint64_t file_bytes);
  [[nodiscard]] Result<std::uint64_t> place_locked(std::uint64_t file_bytes) const;

  const std::string name_;
  const std::uint64_t memory_bytes_;
  const sys::Mapping room_;
  const sys::Calls* calls_;
  const std::shared_ptr<Pool> pool_ = std::make_shared<Pool>();
  mutable std::shared_mutex mutex_;
  std::vector<Entry> entries_;
};

}  // namespace strait::soft::accel
