// SPDX-License-Identifier: Apache-2.0
// Cache: registrations of one NIC, remembered by allocation, so that sharing the same memory again costs a lookup.
//
// What makes an entry valid is the allocation's identity, compared on every hit: an address that was freed and handed
// out again has another identity and misses. Memory without identity is only remembered when the caller vouches for it
// (`stable`: the Node allocated it itself and calls invalidate() before freeing). See docs/keys.md.
//
// Any thread. NIC calls are made without holding the lock, so one slow registration does not stop hits on others; two
// threads that miss on the same allocation at once both register, and the later one gives its registration back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "base/error.hpp"

namespace strait::keys {

// The whole allocation, as its provider claims it (strait_claim).
struct Allocation {
  std::uint64_t base = 0;
  std::uint64_t length_bytes = 0;
  std::uint64_t identity = 0;  // 0: the provider cannot tell allocations at one address apart
  bool stable = false;         // identity 0 only: the caller promises invalidate() before the memory goes away
};

struct Registration {
  std::uint32_t lkey = 0;
  std::uint32_t rkey = 0;
  std::shared_ptr<void> keep;  // lives until after deregistration: the export (fd) the NIC was given
};

struct CacheLimits {
  std::size_t entries = 65536;
  std::uint64_t bytes = std::uint64_t{1} << 40;
};

struct CacheStats {
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
  std::uint64_t uncached = 0;  // registered for one lease only: no identity, or every entry within the limits is in use
  std::uint64_t stale = 0;     // found by address, refused by identity or length
  std::uint64_t evicted = 0;
  std::uint64_t invalidated = 0;
  std::uint64_t discarded = 0;     // registered twice by two threads at once, one given back
  std::uint64_t failed = 0;        // registrations the NIC refused
  std::size_t entries = 0;         // now, findable
  std::uint64_t bytes = 0;         // now, findable
  std::size_t leases = 0;          // now
  std::uint64_t memory_bytes = 0;  // of the cache itself
};

class Cache;

// The loan of a registration: while it lives the NIC keeps the memory registered, whatever is invalidated meanwhile.
class Lease {
 public:
  Lease() = default;
  Lease(Lease&& other) noexcept
      : cache_(std::exchange(other.cache_, nullptr)), index_(other.index_), lkey_(other.lkey_), rkey_(other.rkey_) {}
  Lease& operator=(Lease&& other) noexcept;
  ~Lease() { reset(); }
  void reset();  // may call the NIC

  [[nodiscard]] bool valid() const { return cache_ != nullptr; }
  [[nodiscard]] std::uint32_t lkey() const { return lkey_; }
  [[nodiscard]] std::uint32_t rkey() const { return rkey_; }

 private:
  friend class Cache;
  Lease(Cache* cache, std::uint32_t index, std::uint32_t lkey, std::uint32_t rkey)
      : cache_(cache), index_(index), lkey_(lkey), rkey_(rkey) {}
  Cache* cache_ = nullptr;
  std::uint32_t index_ = 0;
  std::uint32_t lkey_ = 0;
  std::uint32_t rkey_ = 0;
};

class Cache {
 public:
  // Called without the cache's lock, from the thread that acquires, releases or invalidates. Neither may call the
  // cache.
  using Register = std::function<Result<Registration>(const Allocation&, std::uint32_t access)>;
  using Deregister = std::function<void(const Registration&)>;

  Cache(Register register_memory, Deregister deregister_memory, CacheLimits limits = {});
  // Every lease has ended; what is remembered is deregistered.
  ~Cache();
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  // `access` (the NIC's flags) is part of the key: rights are a property of the registration. When the NIC is out of
  // registrations (Code::limit), everything idle is given back and it is asked once more.
  [[nodiscard]] Result<Lease> acquire(const Allocation& allocation, std::uint32_t access);
  // Forgets whatever touches the range. Idle entries are deregistered before it returns; leased ones when their last
  // lease ends.
  void invalidate(std::uint64_t address, std::uint64_t length_bytes);
  // Gives back everything idle.
  void trim();

  [[nodiscard]] CacheStats stats() const;
  // How many cache lines of index and entries a lookup of this allocation reads: for tests and benchmarks.
  [[nodiscard]] std::size_t lines_read(const Allocation& allocation, std::uint32_t access) const;

 private:
  friend class Lease;
  struct State;
  void release(std::uint32_t index);
  std::unique_ptr<State> state_;
};

}  // namespace strait::keys
