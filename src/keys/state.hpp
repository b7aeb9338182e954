// SPDX-License-Identifier: Apache-2.0
// What a Cache keeps, and the steps that need its lock (_locked).
//
// How a hit without a lock and forgetting go together. Who takes an entry counts itself first and looks at `state`
// second; who forgets writes `state` first and reads the counts second, with a fence in between that it makes for the
// other side too (sys/thread_fence.hpp). So at least one sees the other: either the reader sees that the entry is not
// live and steps back, or the forgetting thread sees the reader and leaves the registration to it. Once counted on a
// live entry, its fields do not change. One fence serves all that is forgotten at once.
//
// A lease is counted where only the thread that took it writes; one that ends on another thread is counted down beside
// that (`away`). The sum is right once the entry is hidden: no count goes up any more.
#pragma once

#include "base/mutex.hpp"
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

  // Read by every hit, written by misses only.
  std::atomic<std::uint64_t> number{
      detail::number_cache()};  // another one when `solo` is over: threads count elsewhere
  Index index;
  std::atomic<std::uint32_t> solo{kNobody};  // the one thread that has used the cache; it counts in the entries
  std::atomic<std::uint32_t> clock{1};       // low half of now
  std::atomic<std::uint64_t> publications{0};
  std::atomic<std::uint64_t> invalidations{0};
  std::atomic<bool> cautious{false};  // something is dead or was refused: a miss looks at that before it registers
  std::array<std::atomic<Shard*>, kThreads> shards{};

  alignas(64) std::atomic<std::uint64_t> solo_hits{0};

  alignas(64) mutable Mutex mutex;
  Slab slab STRAIT_GUARDED_BY(mutex);
  Order order STRAIT_GUARDED_BY(mutex);
  Ages ages STRAIT_GUARDED_BY(mutex);
  Refusals refusals STRAIT_GUARDED_BY(mutex);
  std::uint64_t now STRAIT_GUARDED_BY(mutex) = 1;  // counts misses: the resolution of "least recently used"
  // Just written to be dead; the fence comes next, then the counts.
  std::uint32_t hidden STRAIT_GUARDED_BY(mutex) = kEndOfList;
  std::uint32_t condemned STRAIT_GUARDED_BY(mutex) = kEndOfList;  // forgotten, not lent: to be deregistered
  CacheStats stats STRAIT_GUARDED_BY(mutex);
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

  static void count(std::atomic<std::uint32_t>& leases, std::uint32_t thread, std::uint32_t change) {
    if (thread != kCrowd) [[likely]] {
      count_lease(leases, change);
    } else {
      leases.fetch_add(change, std::memory_order_seq_cst);
    }
  }

  // The hit. False when it is not one.
  [[nodiscard, gnu::always_inline]] bool take(Entry& e, std::uint32_t thread, const Counts& mine, const Allocation& a,
                                              std::uint32_t access, Cache& cache) {
    count(*mine.leases, thread, 1);
    if (e.state.load(std::memory_order_seq_cst) != EntryState::live || !matches(e, a, access)) [[unlikely]] {
      count(*mine.leases, thread, kOneLess);
      if (e.state.load(std::memory_order_seq_cst) != EntryState::live) cache.released(e);
      return false;
    }
    const std::uint32_t time = clock.load(std::memory_order_relaxed);
    if (mine.tick->load(std::memory_order_relaxed) != time) mine.tick->store(time, std::memory_order_relaxed);
    if (thread != kCrowd) {
      mine.hits->store(mine.hits->load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    } else {
      mine.hits->fetch_add(1, std::memory_order_relaxed);
    }
    return true;
  }

  [[nodiscard, gnu::always_inline]] Entry* find(const Allocation& a, std::uint32_t access) const {
    return index.find(Index::hash_of(a.base, a.length_bytes, access),
                      [&a, access](const Entry& e) { return matches(e, a, access); });
  }

  [[nodiscard]] Entry* find_live_locked(const Allocation& a, std::uint32_t access) const STRAIT_REQUIRES(mutex) {
    Entry* const e = find(a, access);
    return e != nullptr && e->state.load(kRelaxed) == EntryState::live ? e : nullptr;
  }
  [[nodiscard]] Lease lend_locked(Cache* cache, Entry& e) STRAIT_REQUIRES(mutex);
  [[nodiscard]] Entry* add_locked(const Allocation& a, std::uint32_t access, Registration& made) STRAIT_REQUIRES(mutex);
  void publish_locked(Entry& e, const Order::Hint& hint) STRAIT_REQUIRES(mutex);
  [[nodiscard]] std::uint32_t uses_locked(const Entry& e) const STRAIT_REQUIRES(mutex);
  [[nodiscard]] std::uint64_t last_use_locked(const Entry& e) const STRAIT_REQUIRES(mutex);
  // Hidden, it can no longer be taken. What was is then either forgotten (condemned if nobody holds it), or, unless
  // somebody holds it, retired: how many.
  void hide_locked(Entry& e) STRAIT_REQUIRES(mutex);
  void forget_hidden_locked() STRAIT_REQUIRES(mutex);
  [[nodiscard]] std::size_t retire_hidden_locked() STRAIT_REQUIRES(mutex);
  void remove_locked(Entry& e) STRAIT_REQUIRES(mutex);
  void condemn_locked(Entry& e) STRAIT_REQUIRES(mutex);
  [[nodiscard]] Registration take_locked(Entry& e) STRAIT_REQUIRES(mutex);
  // Forgets what touches the range and `doomed` says; allocates and frees nothing.
  template <class Doomed>
  std::size_t forget_range_locked(std::uint64_t address, std::uint64_t length, Doomed doomed) STRAIT_REQUIRES(mutex) {
    const std::uint64_t end = length > UINT64_MAX - address ? UINT64_MAX : address + length;
    refusals.forget(address, end);
    std::size_t count = 0;
    Order::Place place = order.start(address);
    while (Entry* const e = order.next(place, address, end)) {
      if (!doomed(*e)) continue;
      hide_locked(*e);
      remove_locked(*e);  // also from `order`: what follows has moved up by one, or by a block
      place = order.start(address);
      ++count;
    }
    forget_hidden_locked();
    return count;
  }
  // Live, and nobody holds it: until somebody takes it, which is seen when it is hidden.
  [[nodiscard]] bool idle_locked(const Entry& e) const STRAIT_REQUIRES(mutex) {
    return e.state.load(kRelaxed) == EntryState::live && uses_locked(e) == 0;
  }
  // The least recently used entry that is not lent, to the resolution of one miss. False: there is none, or too many
  // lent ones were in the way to look further.
  [[nodiscard]] bool evict_one_locked() STRAIT_REQUIRES(mutex);
  [[nodiscard]] bool fits_locked(std::uint64_t more_bytes, std::uint32_t more_fds) const STRAIT_REQUIRES(mutex) {
    return index.size() + 1 <= limits.entries && more_bytes <= limits.bytes &&
           stats.bytes <= limits.bytes - more_bytes && more_fds <= limits.fds && stats.fds <= limits.fds - more_fds;
  }
};

}  // namespace strait::keys
