// SPDX-License-Identifier: Apache-2.0
// What a Cache keeps, and the steps that need its lock (_locked).
//
// How a hit without a lock and forgetting go together. Who takes an entry counts itself first and looks at `state`
// second; who forgets writes `state` first and reads the counts second. All four are sequentially consistent, so at
// least one sees the other: either the reader sees that the entry is not live and steps back, or the forgetting thread
// sees the reader and leaves the registration to it. Once counted on a live entry, its fields do not change.
#pragma once

#include <mutex>

#include "keys/ages.hpp"
#include "keys/cache.hpp"
#include "keys/index.hpp"
#include "keys/order.hpp"
#include "keys/refusals.hpp"
#include "keys/shard.hpp"
#include "sys/fork.hpp"

namespace strait::keys {

struct Cache::State {
  static constexpr std::uint32_t kNobody = UINT32_MAX;
  static constexpr std::uint32_t kMany = UINT32_MAX - 1;
  static constexpr std::uint32_t kEndOfList = UINT32_MAX;

  Register register_memory;
  Deregister deregister_memory;
  CacheLimits limits;
  sys::ForkMark mark;
  const std::uint64_t number = detail::number_cache();

  // Read by every hit, written by misses only.
  Index index;
  std::atomic<std::uint32_t> solo{kNobody};  // the one thread that has used the cache; it counts in the entries
  std::atomic<std::uint32_t> clock{1};       // low half of now
  std::atomic<std::uint64_t> publications{0};
  std::atomic<std::uint64_t> invalidations{0};
  std::atomic<bool> cautious{false};  // something is dead or was refused: a miss looks at that before it registers
  std::array<std::atomic<Shard*>, kThreads> shards{};

  alignas(64) std::atomic<std::uint64_t> solo_hits{0};

  alignas(64) mutable std::mutex mutex;
  Slab slab;
  Order order;
  Ages ages;
  Refusals refusals;
  std::uint64_t now = 1;                 // counts misses: the resolution of "least recently used"
  std::uint32_t condemned = kEndOfList;  // forgotten, not lent: to be deregistered
  CacheStats stats;
  State* buried = nullptr;

  ~State() {
    for (auto& shard : shards) delete shard.load();
  }

  static bool matches(const Entry& e, const Allocation& a, std::uint32_t access) {
    return e.base.load(kRelaxed) == a.base && e.length_bytes.load(kRelaxed) == a.length_bytes &&
           e.identity.load(kRelaxed) == a.identity && e.access.load(kRelaxed) == access;
  }

  // Where the calling thread counts a use of the entry; null: under the lock only.
  struct Counts {
    std::atomic<std::uint32_t>* leases = nullptr;
    std::atomic<std::uint32_t>* tick = nullptr;
    std::atomic<std::uint64_t>* hits = nullptr;
  };
  [[nodiscard]] Counts counts_of(Entry& e, std::uint32_t thread) {
    if (solo.load(std::memory_order_relaxed) == thread) return {&e.uses, &e.tick, &solo_hits};
    Shard* const shard = shards[thread].load(std::memory_order_acquire);
    Use* const use = shard == nullptr ? nullptr : shard->use_of(e);
    if (use == nullptr) return {};
    return {&use->leases, &use->tick, &shard->hits};
  }

  // The hit. Null when it is not one, or not without the lock.
  [[nodiscard]] std::atomic<std::uint32_t>* take(Entry& e, const Allocation& a, std::uint32_t access, Cache& cache) {
    const std::uint32_t thread = thread_number();
    const Counts mine = counts_of(e, thread);
    if (mine.leases == nullptr) return nullptr;
    mine.leases->fetch_add(1, std::memory_order_seq_cst);
    if (e.state.load(std::memory_order_seq_cst) != EntryState::live || !matches(e, a, access)) [[unlikely]] {
      mine.leases->fetch_sub(1, std::memory_order_seq_cst);
      if (e.state.load(std::memory_order_seq_cst) != EntryState::live) cache.released(e);
      return nullptr;
    }
    const std::uint32_t time = clock.load(std::memory_order_relaxed);
    if (mine.tick->load(std::memory_order_relaxed) != time) mine.tick->store(time, std::memory_order_relaxed);
    if (thread != kCrowd) {
      mine.hits->store(mine.hits->load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    } else {
      mine.hits->fetch_add(1, std::memory_order_relaxed);
    }
    return mine.leases;
  }

  [[nodiscard]] Entry* find(const Allocation& a, std::uint32_t access, std::size_t* lines = nullptr) const {
    return index.find(
        Index::hash_of(a.base, a.length_bytes, access), [&](const Entry& e) { return matches(e, a, access); }, lines);
  }

  [[nodiscard]] Entry* find_live_locked(const Allocation& a, std::uint32_t access) const {
    Entry* const e = find(a, access);
    return e != nullptr && e->state.load(kRelaxed) == EntryState::live ? e : nullptr;
  }
  [[nodiscard]] Lease lend_locked(Cache* cache, Entry& e);
  [[nodiscard]] Entry* add_locked(const Allocation& a, std::uint32_t access, Registration& made);
  void publish_locked(Entry& e, const Order::Hint& hint);
  [[nodiscard]] std::uint32_t uses_locked(const Entry& e) const;
  [[nodiscard]] std::uint64_t last_use_locked(const Entry& e) const;
  // Nobody finds it any more. If nobody holds it either, it is condemned.
  void forget_locked(Entry& e);
  void condemn_locked(Entry& e);
  [[nodiscard]] Registration take_locked(Entry& e);
  // Forgets what touches the range and `doomed` says; allocates and frees nothing.
  template <class Doomed>
  std::size_t forget_range_locked(std::uint64_t address, std::uint64_t length, Doomed doomed) {
    const std::uint64_t end = length > UINT64_MAX - address ? UINT64_MAX : address + length;
    refusals.forget(address, end);
    std::size_t count = 0;
    Order::Place place = order.start(address);
    while (Entry* const e = order.next(place, address, end)) {
      if (!doomed(*e)) continue;
      forget_locked(*e);  // takes it out of `order`: what follows has moved up by one, or by a block
      place = order.start(address);
      ++count;
    }
    return count;
  }
  // Forgets the entry unless it is lent.
  [[nodiscard]] bool retire_locked(Entry& e);
  // The least recently used entry that is not lent, to the resolution of one miss. False: there is none, or too many
  // lent ones were in the way to look further.
  [[nodiscard]] bool evict_one_locked();
  [[nodiscard]] bool fits_locked(std::uint64_t more_bytes, std::uint32_t more_fds) const {
    return index.size() + 1 <= limits.entries && more_bytes <= limits.bytes &&
           stats.bytes <= limits.bytes - more_bytes && more_fds <= limits.fds && stats.fds <= limits.fds - more_fds;
  }
};

}  // namespace strait::keys
