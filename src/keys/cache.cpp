// SPDX-License-Identifier: Apache-2.0
#include "keys/cache.hpp"

#include "keys/state.hpp"
#include "sys/clock.hpp"

namespace strait::keys {
namespace {

bool cacheable(const Allocation& a) {
  return a.identity != 0 || a.stable;
}

// A refusal that will be the same the next time: not one for want of something, nor of a deadline.
bool lasting(Code code) {
  return code == Code::invalid || code == Code::unsupported || code == Code::denied || code == Code::system;
}

Error too_many_dead(const CacheStats& stats, std::uint64_t bound) {
  return with_remedy(fail(Code::limit,
                          "{} bytes of {} allocations that no longer exist are still registered, because operations "
                          "under way use them; the bound is {} bytes",
                          stats.dead_bytes, stats.dead_entries, bound),
                     "wait for or flush those operations, or raise the option cache_dead_bytes");
}

// Memory that moved: whatever was registered there under another identity is not that memory any more. Ranges of host
// memory without identity may overlap.
struct OtherMemory {
  const Allocation& now;
  bool operator()(const Entry& e) const {
    return (e.identity.load(kRelaxed) != 0 || now.identity != 0) &&
           (e.base.load(kRelaxed) != now.base || e.length_bytes.load(kRelaxed) != now.length_bytes ||
            e.identity.load(kRelaxed) != now.identity);
  }
};

Refusals::Key refusal_key(const Allocation& a, std::uint32_t access) {
  return {a.base, a.length_bytes, a.identity, access};
}

}  // namespace

Cache::Cache(Register register_memory, Deregister deregister_memory, CacheLimits limits) : state_(new State) {
  state_->register_memory = std::move(register_memory);
  state_->deregister_memory = std::move(deregister_memory);
  state_->limits = limits;
  sys::prepare_thread_fences();
}

Cache::~Cache() {
  if (state_->mark.in_child()) {
    // The parent's registrations, and perhaps a lock that nobody will open: left as they are, where a leak checker
    // finds them.
    static std::atomic<State*> graves{nullptr};
    State* const grave = state_.release();
    grave->buried = graves.exchange(grave);
    return;
  }
  invalidate(0, UINT64_MAX);
}

Result<Lease> Cache::acquire(const Allocation& allocation, std::uint32_t access) {
  State& s = *state_;
  const detail::LastUse& last = detail::last_use;
  if (s.mark.in_child() || last.cache != s.number.load(kRelaxed) || last.entry->base.load(kRelaxed) != allocation.base)
      [[unlikely]]
    return acquire_another(allocation, access);
  Entry* const e = last.entry;
  const State::Counts mine{last.leases, last.tick, last.hits};
  const std::uint32_t thread = detail::thread_number;
  if (!s.take(*e, thread, mine, allocation, access, *this)) [[unlikely]]
    return acquire_another(allocation, access);
  return Lease(this, e, mine.leases, thread);
}

// Not what this thread used last.
Result<Lease> Cache::acquire_another(const Allocation& allocation, std::uint32_t access) {
  State& s = *state_;
  const std::uint64_t publications = s.publications.load(std::memory_order_acquire);
  Entry* const e = s.mark.in_child() ? nullptr : s.find(allocation, access);
  if (e != nullptr) [[likely]] {
    const std::uint64_t number = s.number.load(std::memory_order_acquire);  // before `solo` is looked at
    const std::uint32_t thread = thread_number();
    const State::Counts mine = s.counts_of(*e, thread);
    if (mine.leases != nullptr && s.take(*e, thread, mine, allocation, access, *this)) [[likely]] {
      if (thread != kCrowd) detail::last_use = {number, e, mine.leases, mine.tick, mine.hits};
      return Lease(this, e, mine.leases, thread);
    }
    detail::last_use.cache = 0;  // whatever it was, it is not to be asked first the next time
  }
  return acquire_slowly(allocation, access, publications, e != nullptr);
}

Result<Lease> Cache::acquire_slowly(const Allocation& allocation, std::uint32_t access, std::uint64_t publications,
                                    bool look_again) {
  State& s = *state_;
  if (s.mark.in_child()) return fail(Code::gone, "the registrations of this process belong to its parent");
  if (allocation.length_bytes == 0 || allocation.length_bytes > UINT64_MAX - allocation.base) {
    return fail(Code::invalid, "an allocation of {} bytes at {:#x} cannot be registered", allocation.length_bytes,
                allocation.base);
  }
  if (look_again || s.cautious.load(std::memory_order_acquire)) {
    Result<Lease> found = before_registering(allocation, access);
    if (!found || found->valid()) return found;
  }
  const std::uint64_t invalidations = s.invalidations.load(std::memory_order_acquire);
  Result<Registration> made = s.register_memory(allocation, access);
  if (!made && made.error().code == Code::limit) {
    trim();
    made = s.register_memory(allocation, access);
  }
  if (!made) {
    const Locked lock(s.mutex);
    if (cacheable(allocation)) ++s.stats.misses;
    ++s.stats.failed;
    if (cacheable(allocation) && s.limits.refusal_ns > 0 && lasting(made.error().code)) {
      s.refusals.add(refusal_key(allocation, access), made.error(), sys::now_ns() + s.limits.refusal_ns);
      s.cautious.store(true, std::memory_order_release);
    }
    return std::move(made).error();
  }
  return after_registering(allocation, access, *made, {publications, invalidations});
}

// A lease, an error, or an invalid lease: go on and register.
Result<Lease> Cache::before_registering(const Allocation& allocation, std::uint32_t access) {
  State& s = *state_;
  reap();
  const Locked lock(s.mutex);
  if (cacheable(allocation)) {
    if (Entry* const e = s.find_live_locked(allocation, access)) {
      ++s.stats.hits;
      return s.lend_locked(this, *e);
    }
    if (const Error* const refused = s.refusals.find(refusal_key(allocation, access), sys::now_ns())) {
      ++s.stats.refused_again;
      return *refused;
    }
  }
  if (s.stats.dead_bytes > s.limits.dead_bytes) {
    ++s.stats.dead_refused;
    return too_many_dead(s.stats, s.limits.dead_bytes);
  }
  s.cautious.store(!s.refusals.empty() || s.stats.dead_entries != 0, std::memory_order_release);
  return Lease();
}

Result<Lease> Cache::after_registering(const Allocation& allocation, std::uint32_t access, Registration& made,
                                       const Seen& seen) {
  State& s = *state_;
  Result<Lease> lease = Lease();
  const bool once = made.once;
  bool discard = false;
  bool to_reap = false;
  {
    const Locked lock(s.mutex);
    const bool remember = cacheable(allocation);
    if (remember) ++s.stats.misses;
    ++s.stats.registered;
    Entry* const first = remember && seen.publications != s.publications.load(kRelaxed)
                             ? s.find_live_locked(allocation, access)
                             : nullptr;
    if (first != nullptr) {  // another thread was
      ++s.stats.discarded;
      discard = true;
      lease = s.lend_locked(this, *first);
    } else if (Entry* const added = s.add_locked(allocation, access, made); added == nullptr) {
      discard = true;
      lease = fail(Code::limit, "the registration cache holds {} entries, its maximum", s.slab.capacity());
    } else {
      Order::Hint place;
      if (remember && !s.order.alone(allocation.base, allocation.base + allocation.length_bytes, place))
        s.stats.stale += s.forget_range_locked(allocation.base, allocation.length_bytes, OtherMemory{allocation});
      // An invalidation that ran while the NIC registered may have meant this range: use it once, do not remember it.
      const std::uint32_t fds = s.slab.cold(*added).fds;
      bool room = remember && !once && seen.invalidations == s.invalidations.load(kRelaxed) &&
                  allocation.length_bytes <= s.limits.bytes && fds <= s.limits.fds && s.limits.entries > 0;
      while (room && !s.fits_locked(allocation.length_bytes, fds)) room = s.evict_one_locked();
      if (room) {
        s.publish_locked(*added, place);
      } else {
        ++s.stats.uncached;
      }
      lease = s.lend_locked(this, *added);
    }
    s.clock.store(static_cast<std::uint32_t>(++s.now), kRelaxed);  // a hit from here on is newer than this miss
    if (discard) ++s.stats.deregistered;
    to_reap = s.condemned != State::kEndOfList;
  }
  if (discard) s.deregister_memory(made);
  if (to_reap) reap();
  return lease;
}

bool Cache::knows(const Allocation& allocation, std::uint32_t access) const {
  const State& s = *state_;
  if (s.mark.in_child()) return false;
  const Entry* const e = s.find(allocation, access);
  if (e == nullptr || e->state.load(std::memory_order_acquire) != EntryState::live) [[unlikely]]
    return false;
  // Keeps the compiler from answering with the comparison itself: a branch is predicted, a value has to wait for the
  // bucket's and the entry's cache lines.
  bool yes = true;
  asm("" : "+r"(yes));
  return yes;
}

// A lease ends on another thread than took it, or its thread is one of the crowd.
void Cache::count_elsewhere(Entry& entry, std::atomic<std::uint32_t>& count, std::uint32_t owner) {
  if (owner == kCrowd) {
    count.fetch_sub(1, std::memory_order_seq_cst);
  } else if (&count == &entry.uses) {
    entry.away.fetch_sub(1, std::memory_order_seq_cst);
  } else {
    state_->shards[owner].load(std::memory_order_acquire)->away_of(entry).fetch_sub(1, std::memory_order_seq_cst);
  }
}

// A lease of something that cannot be found has ended.
void Cache::released(Entry& entry) {
  State& s = *state_;
  if (s.mark.in_child()) return;
  {
    const Locked lock(s.mutex);
    const EntryState state = entry.state.load(kRelaxed);
    if ((state != EntryState::dead && state != EntryState::lonely) || s.uses_locked(entry) != 0) return;
    if (state == EntryState::lonely) {  // was not counted as dead so far; reap() counts it back
      ++s.stats.dead_entries;
      s.stats.dead_bytes += entry.length_bytes.load(kRelaxed);
    }
    s.condemn_locked(entry);
  }
  reap();
}

void Cache::invalidate(std::uint64_t address, std::uint64_t length_bytes) {
  forget(address, length_bytes);
  reap();
}

void Cache::forget(std::uint64_t address, std::uint64_t length_bytes) {
  State& s = *state_;
  if (s.mark.in_child()) return;
  const Locked lock(s.mutex);
  s.invalidations.store(s.invalidations.load(kRelaxed) + 1, std::memory_order_release);
  s.stats.invalidated += s.forget_range_locked(address, length_bytes, [](const Entry&) { return true; });
}

bool Cache::try_forget(std::uint64_t address, std::uint64_t length_bytes) {
  State& s = *state_;
  if (!s.mutex.try_lock()) return false;
  const Locked lock(s.mutex, std::adopt_lock);
  s.invalidations.store(s.invalidations.load(kRelaxed) + 1, std::memory_order_release);
  s.stats.invalidated += s.forget_range_locked(address, length_bytes, [](const Entry&) { return true; });
  return true;
}

void Cache::reap() {
  State& s = *state_;
  if (s.mark.in_child()) return;
  constexpr std::size_t kBatch = 16;
  for (;;) {
    std::array<Registration, kBatch> batch;
    std::size_t count = 0;
    {
      const Locked lock(s.mutex);
      while (count < kBatch && s.condemned != State::kEndOfList) {
        Entry& e = s.slab.entry(s.condemned);
        s.condemned = s.slab.cold(e).next;
        --s.stats.dead_entries;
        s.stats.dead_bytes -= e.length_bytes.load(kRelaxed);
        ++s.stats.deregistered;
        batch[count++] = s.take_locked(e);
      }
    }
    for (std::size_t i = 0; i < count; ++i) s.deregister_memory(batch[i]);
    if (count < kBatch) return;
  }
}

void Cache::trim() {
  State& s = *state_;
  if (s.mark.in_child()) return;
  {
    const Locked lock(s.mutex);
    for (std::uint32_t i = 0; i < s.slab.capacity(); ++i) {
      if (Entry& e = s.slab.entry(i); s.idle_locked(e)) s.hide_locked(e);
    }
    s.stats.evicted += s.retire_hidden_locked();
  }
  reap();
}

CacheStats Cache::stats() const {
  const State& s = *state_;
  if (s.mark.in_child()) return {};
  const Locked lock(s.mutex);
  CacheStats stats = s.stats;
  stats.entries = s.index.size();
  stats.hits += s.solo_hits.load(kRelaxed);
  stats.memory_bytes =
      s.index.memory_bytes() + s.slab.memory_bytes() + s.order.memory_bytes() + s.ages.memory_bytes() + sizeof(State);
  for (const auto& each : s.shards) {
    const Shard* const shard = each.load(kRelaxed);
    if (shard == nullptr) continue;
    stats.hits += shard->hits.load(kRelaxed);
    stats.memory_bytes += shard->memory_bytes();
  }
  for (std::uint32_t i = 0; i < s.slab.capacity(); ++i) stats.leases += s.uses_locked(s.slab.entry(i));
  return stats;
}

std::size_t Cache::lines_read(const Allocation& allocation, std::uint32_t access) const {
  const State& s = *state_;
  const Locked lock(s.mutex);
  std::size_t lines = 0;
  (void)s.index.find_thoroughly(
      Index::hash_of(allocation.base, allocation.length_bytes, access),
      [&](const Entry& e) { return State::matches(e, allocation, access); }, &lines);
  return lines + (s.solo.load(kRelaxed) == State::kMany ? 1 : 0);  // many threads: each counts in a line of its own
}

std::uint32_t Lease::rkey(std::size_t rail) const {
  const Locked lock(cache_->state_->mutex);
  return cache_->state_->slab.cold(*entry_).rkeys[rail];
}

}  // namespace strait::keys
