// SPDX-License-Identifier: Apache-2.0
#include "keys/cache.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "keys/index.hpp"
#include "keys/slab.hpp"

namespace strait::keys {
struct Cache::State {
  Register register_memory;
  Deregister deregister_memory;
  CacheLimits limits;

  mutable std::mutex mutex;
  Index index;
  Slab slab;
  std::multimap<std::uint64_t, std::uint32_t> order;  // by base; only misses and invalidation look here
  // Idle entries, oldest first. A hit does not touch it: the tick may lag behind the entry's own until eviction meets
  // it.
  std::set<std::pair<std::uint64_t, std::uint32_t>> oldest;
  std::uint64_t tick = 0;
  std::uint64_t invalidations = 0;
  CacheStats stats;

  Entry& at(std::uint32_t i) const { return slab.entry(i); }

  std::uint32_t find_locked(const Allocation& allocation, std::uint32_t access, std::size_t* lines = nullptr) const {
    return index.find(
        Index::hash_of(allocation.base, access),
        [&](std::uint32_t i) { return at(i).base == allocation.base && at(i).access == access; }, lines);
  }

  [[nodiscard]] Lease lend_locked(Cache* cache, std::uint32_t i) {
    Entry& entry = at(i);
    ++entry.leases;
    ++stats.leases;
    entry.last_use = ++tick;
    return Lease(cache, i, entry.lkey, entry.rkey);
  }

  [[nodiscard]] std::uint32_t add_locked(const Allocation& allocation, std::uint32_t access, Registration made) {
    const std::uint32_t i = slab.take();
    at(i) = Entry{
        allocation.base, allocation.length_bytes, allocation.identity, 0, 0, made.lkey, made.rkey, access, 0, false};
    slab.keep(i) = std::move(made.keep);
    return i;
  }

  [[nodiscard]] Registration take_locked(std::uint32_t i) {
    Registration taken{at(i).lkey, at(i).rkey, std::move(slab.keep(i))};
    slab.give_back(i);
    return taken;
  }

  void publish_locked(std::uint32_t i) {
    Entry& entry = at(i);
    entry.findable = true;
    index.insert(Index::hash_of(entry.base, entry.access), i);
    order.emplace(entry.base, i);
    stats.bytes += entry.length_bytes;
  }

  // Nobody finds it any more. If nobody holds it either, it goes to `out` to be deregistered without the lock.
  void forget_locked(std::uint32_t i, std::vector<Registration>& out) {
    Entry& entry = at(i);
    entry.findable = false;
    index.remove(Index::hash_of(entry.base, entry.access), i);
    auto [first, last] = order.equal_range(entry.base);
    order.erase(std::find_if(first, last, [&](const auto& each) { return each.second == i; }));
    stats.bytes -= entry.length_bytes;
    if (entry.queued_at != 0) oldest.erase({std::exchange(entry.queued_at, 0), i});
    if (entry.leases == 0) out.push_back(take_locked(i));
  }

  // Findable entries either name the same range or are disjoint (acquire sees to that), so of those that begin before
  // `address` only the nearest can reach it.
  template <class Doomed>
  std::size_t forget_range_locked(std::uint64_t address, std::uint64_t length, Doomed doomed,
                                  std::vector<Registration>& out) {
    const std::uint64_t end = length > UINT64_MAX - address ? UINT64_MAX : address + length;
    auto each = order.lower_bound(address);
    if (each != order.begin()) each = order.lower_bound(std::prev(each)->first);
    std::vector<std::uint32_t> found;
    for (; each != order.end() && each->first < end; ++each) {
      const Entry& entry = at(each->second);
      if (entry.base + entry.length_bytes > address && doomed(entry)) found.push_back(each->second);
    }
    for (const std::uint32_t i : found) forget_locked(i, out);
    return found.size();
  }

  void queue_locked(std::uint32_t i) {
    Entry& entry = at(i);
    if (entry.queued_at != 0) return;
    entry.queued_at = entry.last_use;
    oldest.emplace(entry.queued_at, i);
  }

  // Exactly the least recently used idle entry: what was used since it was queued goes back behind the others.
  bool evict_one_locked(std::vector<Registration>& out) {
    while (!oldest.empty()) {
      const auto [tick_then, i] = *oldest.begin();
      Entry& entry = at(i);
      if (entry.leases == 0 && entry.last_use == tick_then) {
        forget_locked(i, out);
        ++stats.evicted;
        return true;
      }
      oldest.erase(oldest.begin());
      entry.queued_at = 0;
      if (entry.leases == 0) queue_locked(i);  // in use: its last lease queues it again
    }
    return false;
  }

  bool fits_locked(std::uint64_t more_bytes) const {
    return index.size() + 1 <= limits.entries && more_bytes <= limits.bytes && stats.bytes <= limits.bytes - more_bytes;
  }

  void deregister(std::vector<Registration>& list) const {
    for (Registration& each : list) deregister_memory(each);
    list.clear();
  }
};

Cache::Cache(Register register_memory, Deregister deregister_memory, CacheLimits limits) : state_(new State) {
  state_->register_memory = std::move(register_memory);
  state_->deregister_memory = std::move(deregister_memory);
  state_->limits = limits;
}

Cache::~Cache() {
  invalidate(0, UINT64_MAX);
}

Result<Lease> Cache::acquire(const Allocation& allocation, std::uint32_t access) {
  State& s = *state_;
  if (allocation.length_bytes == 0 || allocation.length_bytes > UINT64_MAX - allocation.base) {
    return fail(Code::invalid, "an allocation of {} bytes at {:#x} cannot be registered", allocation.length_bytes,
                allocation.base);
  }
  const bool cacheable = allocation.identity != 0 || allocation.stable;
  std::vector<Registration> unused;
  std::uint64_t invalidations = 0;
  if (cacheable) {
    std::unique_lock lock(s.mutex);
    if (const std::uint32_t i = s.find_locked(allocation, access); i != Index::kNone) {
      const Entry& entry = s.at(i);
      if (entry.identity == allocation.identity && entry.length_bytes == allocation.length_bytes) {
        ++s.stats.hits;
        return s.lend_locked(this, i);
      }
      s.forget_locked(i, unused);
      ++s.stats.stale;
    }
    ++s.stats.misses;
    invalidations = s.invalidations;
  }
  s.deregister(unused);

  Result<Registration> made = s.register_memory(allocation, access);
  if (!made && made.error().code == Code::limit) {
    trim();
    made = s.register_memory(allocation, access);
  }
  std::unique_lock lock(s.mutex);
  if (!made) {
    ++s.stats.failed;
    return std::move(made).error();
  }
  Result<Lease> lease = Lease();
  if (const std::uint32_t i = cacheable ? s.find_locked(allocation, access) : Index::kNone;
      i != Index::kNone && s.at(i).identity == allocation.identity && s.at(i).length_bytes == allocation.length_bytes) {
    ++s.stats.discarded;
    unused.push_back(std::move(*made));
    lease = s.lend_locked(this, i);
  } else {
    // Memory that moved: whatever was registered there under another identity is not that memory any more.
    if (cacheable) {
      const auto other = [&](const Entry& e) {
        return e.base != allocation.base || e.length_bytes != allocation.length_bytes ||
               e.identity != allocation.identity;
      };
      s.stats.stale += s.forget_range_locked(allocation.base, allocation.length_bytes, other, unused);
    }
    const std::uint32_t added = s.add_locked(allocation, access, std::move(*made));
    // An invalidation that ran while the NIC registered may have meant this range: use it once, do not remember it.
    bool room = cacheable && invalidations == s.invalidations && allocation.length_bytes <= s.limits.bytes;
    while (room && !s.fits_locked(allocation.length_bytes)) room = s.evict_one_locked(unused);
    if (room) {
      s.publish_locked(added);
    } else {
      ++s.stats.uncached;
    }
    lease = s.lend_locked(this, added);
  }
  lock.unlock();
  s.deregister(unused);
  return lease;
}

void Cache::release(std::uint32_t i) {
  State& s = *state_;
  std::vector<Registration> unused;
  {
    const std::lock_guard lock(s.mutex);
    --s.stats.leases;
    if (--s.at(i).leases != 0) return;
    if (s.at(i).findable) {
      s.queue_locked(i);
      return;
    }
    unused.push_back(s.take_locked(i));
  }
  s.deregister(unused);
}

void Cache::invalidate(std::uint64_t address, std::uint64_t length_bytes) {
  std::vector<Registration> unused;
  {
    const std::lock_guard lock(state_->mutex);
    ++state_->invalidations;
    state_->stats.invalidated += state_->forget_range_locked(
        address, length_bytes, [](const Entry&) { return true; }, unused);
  }
  state_->deregister(unused);
}

void Cache::trim() {
  std::vector<Registration> unused;
  {
    const std::lock_guard lock(state_->mutex);
    while (state_->evict_one_locked(unused)) {
    }
  }
  state_->deregister(unused);
}

CacheStats Cache::stats() const {
  const std::lock_guard lock(state_->mutex);
  CacheStats stats = state_->stats;
  stats.entries = state_->index.size();
  // A node of the ordered structures is 48 bytes with its links.
  stats.memory_bytes = state_->index.memory_bytes() + state_->slab.memory_bytes() + state_->order.size() * 48 +
                       state_->oldest.size() * 48;
  return stats;
}

std::size_t Cache::lines_read(const Allocation& allocation, std::uint32_t access) const {
  const std::lock_guard lock(state_->mutex);
  std::size_t lines = 0;
  (void)state_->find_locked(allocation, access, &lines);
  return lines;
}

Lease& Lease::operator=(Lease&& other) noexcept {
  if (this != &other) {
    reset();
    cache_ = std::exchange(other.cache_, nullptr);
    index_ = other.index_;
    lkey_ = other.lkey_;
    rkey_ = other.rkey_;
  }
  return *this;
}

void Lease::reset() {
  if (Cache* cache = std::exchange(cache_, nullptr)) cache->release(index_);
}

}  // namespace strait::keys
