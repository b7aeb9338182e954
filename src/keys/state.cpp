// SPDX-License-Identifier: Apache-2.0
// The cache's steps under its lock.
#include "keys/state.hpp"

#include <algorithm>

namespace strait::keys {

namespace {

// How many lent entries an eviction steps over before it gives up: a cache that is full of them must not be searched
// from end to end by every miss.
constexpr int kLentInTheWay = 256;

}  // namespace

Lease Cache::State::lend_locked(Cache* cache, Entry& e) {
  const std::uint32_t thread = thread_number();
  if (const std::uint32_t first = solo.load(kRelaxed); first == kNobody && thread != kCrowd) {
    solo.store(thread, kRelaxed);
  } else if (first != thread) {
    solo.store(kMany, kRelaxed);
    if (first != kMany) number.store(detail::number_cache(), std::memory_order_release);
    if (shards[thread].load(kRelaxed) == nullptr) shards[thread].store(new Shard, std::memory_order_release);
    shards[thread].load(kRelaxed)->make_use_of(e);
  }
  const Counts mine = counts_of(e, thread);
  count(*mine.leases, thread, 1);
  mine.tick->store(clock.load(kRelaxed), kRelaxed);
  return Lease(cache, &e, mine.leases, thread);
}

Entry* Cache::State::add_locked(const Allocation& a, std::uint32_t access, Registration& made) {
  Entry* const e = slab.take();
  if (e == nullptr) return nullptr;
  e->base.store(a.base, kRelaxed);
  e->length_bytes.store(a.length_bytes, kRelaxed);
  e->identity.store(a.identity, kRelaxed);
  e->access.store(access, kRelaxed);
  Cold& cold = slab.cold(*e);
  for (std::size_t rail = 0; rail < kMaxRails; ++rail) {
    e->lkeys[rail].store(made.rails[rail].lkey, kRelaxed);
    cold.rkeys[rail] = made.rails[rail].rkey;
  }
  cold.keep = std::move(made.keep);
  cold.fds = made.fds;
  ++cold.generation;
  e->state.store(EntryState::lonely, std::memory_order_release);
  return e;
}

void Cache::State::publish_locked(Entry& e, const Order::Hint& hint) {
  const std::uint64_t base = e.base.load(kRelaxed);
  const std::uint64_t length = e.length_bytes.load(kRelaxed);
  const Cold& cold = slab.cold(e);
  order.insert(base, length, &e, hint);
  ages.tidy(index.size(), [this](const Ages::Aged& aged) STRAIT_REQUIRES(mutex) {
    return slab.cold(*aged.entry).generation != aged.generation || aged.entry->state.load(kRelaxed) != EntryState::live;
  });
  ages.push({now, &e, cold.generation});
  stats.bytes += length;
  stats.fds += cold.fds;
  e.state.store(EntryState::live, std::memory_order_release);
  index.insert(Index::hash_of(base, length, e.access.load(kRelaxed)), &e);
  // Behind the entry: who reads this number and then does not find it has read the one before.
  publications.store(publications.load(kRelaxed) + 1, std::memory_order_release);
}

std::uint32_t Cache::State::uses_locked(const Entry& e) const {
  // What ended elsewhere first: it began before, so the sum is never less than there are.
  std::uint32_t uses = e.away.load(std::memory_order_seq_cst);
  uses += e.uses.load(std::memory_order_seq_cst);
  if (solo.load(kRelaxed) != kMany) return uses;
  for (const auto& each : shards) {
    const Shard* const shard = each.load(kRelaxed);
    if (shard == nullptr) continue;
    if (const Use* const use = shard->use_of(e)) {
      uses += shard->away_of(e).load(std::memory_order_seq_cst);
      uses += use->leases.load(std::memory_order_seq_cst);
    }
  }
  return uses;
}

std::uint64_t Cache::State::last_use_locked(const Entry& e) const {
  // Ticks are the low half of `now`; what has not been used for 2^32 misses looks newer than it is, and stays longer.
  const auto wide = [this](const std::atomic<std::uint32_t>& tick) STRAIT_REQUIRES(mutex) {
    return now - static_cast<std::uint32_t>(static_cast<std::uint32_t>(now) - tick.load(kRelaxed));
  };
  std::uint64_t last = wide(e.tick);
  if (solo.load(kRelaxed) != kMany) return last;
  for (const auto& each : shards) {
    const Shard* const shard = each.load(kRelaxed);
    if (shard == nullptr) continue;
    if (const Use* const use = shard->use_of(e); use != nullptr && use->tick.load(kRelaxed) != 0)
      last = std::max(last, wide(use->tick));
  }
  return last;
}

void Cache::State::hide_locked(Entry& e) {
  e.state.store(EntryState::dead, std::memory_order_seq_cst);
  slab.cold(e).next = std::exchange(hidden, e.number);
}

void Cache::State::forget_hidden_locked() {
  if (hidden == kEndOfList) return;
  sys::fence_all_threads();
  while (hidden != kEndOfList) {
    Entry& e = slab.entry(hidden);
    hidden = slab.cold(e).next;
    if (uses_locked(e) == 0) condemn_locked(e);
  }
}

std::size_t Cache::State::retire_hidden_locked() {
  if (hidden == kEndOfList) return 0;
  sys::fence_all_threads();
  std::size_t count = 0;
  while (hidden != kEndOfList) {
    Entry& e = slab.entry(hidden);
    hidden = slab.cold(e).next;
    if (uses_locked(e) != 0) {
      e.state.store(EntryState::live, std::memory_order_release);
      continue;
    }
    remove_locked(e);
    condemn_locked(e);
    ++count;
  }
  return count;
}

void Cache::State::remove_locked(Entry& e) {
  const std::uint64_t length = e.length_bytes.load(kRelaxed);
  index.remove(Index::hash_of(e.base.load(kRelaxed), length, e.access.load(kRelaxed)), &e);
  order.erase(e.base.load(kRelaxed), &e);
  stats.bytes -= length;
  stats.fds -= slab.cold(e).fds;
  ++stats.dead_entries;
  stats.dead_bytes += length;
  cautious.store(true, kRelaxed);
}

void Cache::State::condemn_locked(Entry& e) {
  e.state.store(EntryState::free, std::memory_order_release);
  slab.cold(e).next = std::exchange(condemned, e.number);
}

Registration Cache::State::take_locked(Entry& e) {
  Registration taken;
  Cold& cold = slab.cold(e);
  for (std::size_t rail = 0; rail < kMaxRails; ++rail)
    taken.rails[rail] = {e.lkeys[rail].load(kRelaxed), cold.rkeys[rail]};
  taken.keep = std::move(cold.keep);
  taken.fds = cold.fds;
  slab.give_back(e);
  return taken;
}

bool Cache::State::evict_one_locked() {
  for (int lent = 0; !ages.empty() && lent < kLentInTheWay;) {
    const Ages::Aged oldest = ages.oldest();
    Entry& e = *oldest.entry;
    if (slab.cold(e).generation != oldest.generation || e.state.load(kRelaxed) != EntryState::live) {
      ages.pop();
      continue;
    }
    if (const std::uint64_t last = last_use_locked(e); last > oldest.tick) {
      ages.renew(last);
      continue;
    }
    if (idle_locked(e)) {
      hide_locked(e);
      if (retire_hidden_locked() != 0) {
        ages.pop();
        ++stats.evicted;
        return true;
      }
    }
    ages.renew(now);
    ++lent;
  }
  return false;
}

}  // namespace strait::keys
