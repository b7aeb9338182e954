// SPDX-License-Identifier: Apache-2.0
// Cache: registrations remembered by allocation, one entry for all NICs, so that using the same memory again costs a
// lookup.
//
// What makes an entry valid is the allocation's identity, compared on every hit: an address that was freed and handed
// out again has another identity and misses. Memory without identity is only remembered when the caller vouches for it
// (`stable`: whoever knows calls invalidate() before the memory can be something else). See docs/keys.md.
//
// Any thread. A hit takes no lock. NIC calls are made without the lock, so one slow registration does not stop others;
// two threads that miss on the same allocation at once both register, and the later one gives its registration back.
// In a forked child everything is gone: acquire() says so, nothing else does anything, and no NIC is called.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "base/error.hpp"
#include "keys/entry.hpp"
#include "keys/shard.hpp"

namespace strait::keys {

// The whole allocation, as its provider claims it (strait_claim).
struct Allocation {
  std::uint64_t base = 0;
  std::uint64_t length_bytes = 0;
  std::uint64_t identity = 0;  // 0: the provider cannot tell allocations at one address apart
  bool stable = false;         // identity 0 only: somebody promises invalidate() before the memory goes away
  bool monitored = false;      // stable only: by way of a Monitor, which Register is to tell of it
  void* told = nullptr;        // not looked at: what the caller has to tell Register of it
};

struct RailKeys {
  std::uint32_t lkey = 0;
  std::uint32_t rkey = 0;
};

struct Registration {
  std::array<RailKeys, kMaxRails> rails{};  // one per NIC, in the Node's order
  std::shared_ptr<void> keep;               // lives until after deregistration
  std::uint32_t fds = 0;                    // descriptors that `keep` holds open
  bool once = false;                        // not to be remembered: the promise that made it `stable` could not be had
};

struct CacheLimits {
  std::size_t entries = 65536;
  std::uint64_t bytes = std::uint64_t{1} << 40;
  std::uint64_t fds = 512;                            // held open by findable entries
  std::uint64_t dead_bytes = std::uint64_t{1} << 34;  // forgotten but still lent: beyond that nothing new is registered
  std::int64_t refusal_ns = 1'000'000'000;            // how long a NIC's refusal is remembered; 0: not at all
};

struct CacheStats {
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
  std::uint64_t uncached = 0;  // registered for one lease only: no identity, or every entry within the limits is in use
  std::uint64_t stale = 0;     // found by address, refused by identity or length
  std::uint64_t evicted = 0;
  std::uint64_t invalidated = 0;
  std::uint64_t registered = 0;     // by the NIC
  std::uint64_t deregistered = 0;   // given back to it
  std::uint64_t discarded = 0;      // registered twice by two threads at once, one given back
  std::uint64_t failed = 0;         // registrations the NIC refused
  std::uint64_t refused_again = 0;  // the same refusal, from memory
  std::uint64_t dead_refused = 0;   // not registered because too many dead bytes are still in use
  std::size_t entries = 0;          // now, findable
  std::uint64_t bytes = 0;          // now, findable
  std::uint64_t fds = 0;            // now, findable
  std::size_t leases = 0;           // now
  std::size_t dead_entries = 0;     // now: forgotten, still registered because they are lent
  std::uint64_t dead_bytes = 0;     // now
  std::uint64_t memory_bytes = 0;   // of the cache itself
};

class Cache;

// The loan of a registration: while it lives the NIC keeps the memory registered, whatever is invalidated meanwhile.
// May end on another thread than it began on.
class Lease {
 public:
  Lease() = default;
  Lease(Lease&& other) noexcept
      : cache_(std::exchange(other.cache_, nullptr)),
        entry_(other.entry_),
        count_(other.count_),
        owner_(other.owner_) {}
  Lease& operator=(Lease&& other) noexcept {
    if (this != &other) {
      reset();
      cache_ = std::exchange(other.cache_, nullptr);
      entry_ = other.entry_;
      count_ = other.count_;
      owner_ = other.owner_;
    }
    return *this;
  }
  ~Lease() { reset(); }
  void reset();  // may call the NIC

  [[nodiscard]] bool valid() const { return cache_ != nullptr; }
  // Of the rail; only while valid().
  [[nodiscard]] std::uint32_t lkey(std::size_t rail = 0) const {
    return entry_->lkeys[rail].load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint32_t rkey(std::size_t rail = 0) const;

 private:
  friend class Cache;
  Lease(Cache* cache, Entry* entry, std::atomic<std::uint32_t>* count, std::uint32_t owner)
      : cache_(cache), entry_(entry), count_(count), owner_(owner) {}
  Cache* cache_ = nullptr;
  Entry* entry_ = nullptr;
  std::atomic<std::uint32_t>* count_ = nullptr;  // where the lease is counted
  std::uint32_t owner_ = 0;                      // the number of the thread that writes there
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
  // Whether it is remembered now. Takes nothing and waits for nothing.
  [[nodiscard]] bool knows(const Allocation& allocation, std::uint32_t access) const;
  // Forgets whatever touches the range. Idle entries are deregistered before it returns; leased ones when their last
  // lease ends.
  void invalidate(std::uint64_t address, std::uint64_t length_bytes);
  // The same without calling a NIC: for who is told of a free in the middle of it. The next reap() deregisters.
  void forget(std::uint64_t address, std::uint64_t length_bytes);
  // The same for a thread that may neither wait, allocate, free nor call a NIC (the monitor's): false when the lock is
  // taken, and nothing happened. What it forgot is deregistered by the next reap().
  [[nodiscard]] bool try_forget(std::uint64_t address, std::uint64_t length_bytes);
  // Deregisters what was forgotten and is not lent. Every miss does it too.
  void reap();
  // Gives back everything idle.
  void trim();

  [[nodiscard]] CacheStats stats() const;
  // How many cache lines of index and entries a lookup of this allocation reads: for tests and benchmarks.
  [[nodiscard]] std::size_t lines_read(const Allocation& allocation, std::uint32_t access) const;

 private:
  friend class Lease;
  struct State;
  // What was so before the NIC was asked.
  struct Seen {
    std::uint64_t publications = 0;
    std::uint64_t invalidations = 0;
  };
  [[nodiscard]] Result<Lease> acquire_another(const Allocation& allocation, std::uint32_t access);
  [[nodiscard]] Result<Lease> acquire_slowly(const Allocation& allocation, std::uint32_t access,
                                             std::uint64_t publications, bool look_again);
  [[nodiscard]] Result<Lease> before_registering(const Allocation& allocation, std::uint32_t access);
  [[nodiscard]] Result<Lease> after_registering(const Allocation& allocation, std::uint32_t access, Registration& made,
                                                const Seen& seen);
  void released(Entry& entry);
  void count_elsewhere(Entry& entry, std::atomic<std::uint32_t>& count, std::uint32_t owner);
  std::unique_ptr<State> state_;
};

inline void Lease::reset() {
  Cache* const cache = std::exchange(cache_, nullptr);
  if (cache == nullptr) return;
  // Order: the count goes down before the state is read, as a forgetting thread writes the state before it reads the
  // counts. One of the two sees that nobody is left.
  if (detail::thread_number == owner_ && owner_ != kCrowd) [[likely]] {
    count_lease(*count_, kOneLess);
  } else {
    cache->count_elsewhere(*entry_, *count_, owner_);
  }
  if (entry_->state.load(std::memory_order_seq_cst) != EntryState::live) [[unlikely]]
    cache->released(*entry_);
}

}  // namespace strait::keys
