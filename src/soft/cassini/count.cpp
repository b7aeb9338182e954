// SPDX-License-Identifier: Apache-2.0
// Counting events: 48 bits of successes that wrap, 7 bits of failures that stop at their largest (the public sources do
// not say; a count that went round to 0 would hide errors), doorbells, and triggers that wait for a number.
#include <algorithm>
#include <iterator>
#include <utility>

#include "soft/cassini/engine.hpp"
#include "soft/cassini/strict.hpp"
#include "soft/cassini/translation.hpp"

namespace strait::soft::cassini {

namespace {

constexpr std::size_t kAddSuccess = wire::kCtAddSuccessOffset / 8;
constexpr std::size_t kAddFailure = wire::kCtAddFailureOffset / 8;
constexpr std::size_t kResetSuccess = wire::kCtResetSuccessOffset / 8;
constexpr std::size_t kResetFailure = wire::kCtResetFailureOffset / 8;
constexpr std::size_t kSums = wire::kCtSumsOffset / 8;
// A doorbell word as it rests. Adding words rest at 0, which adds nothing; resets at what no client stores.
constexpr std::uint64_t kNoReset = ~std::uint64_t{0};

std::uint64_t take_word(std::uint64_t* word, std::uint64_t rest) {
  // Looked at before it is taken: an exchange would pull the line away from a client that does nothing.
  if (__atomic_load_n(word, __ATOMIC_RELAXED) == rest) return rest;
  return __atomic_exchange_n(word, rest, __ATOMIC_ACQ_REL);
}
// What an accelerator has added since the last look. The word is its own: it is never written here.
std::uint64_t take_sum(const std::uint64_t* word, std::uint64_t& before) {
  const std::uint64_t now = __atomic_load_n(word, __ATOMIC_ACQUIRE);
  return now - std::exchange(before, now);
}

}  // namespace

void store_counter(const Ct& ct) {
  if (!ct.write_back.valid()) return;
  wire::CtWriteback word{};
  word.set_success(ct.success);
  word.set_failure(ct.failure);
  word.set_written(true);
  // A client without memory has nobody to tell.
  if (write(ct.write_back, 0, &word.word, sizeof word)) return;
  if (ct.lni != nullptr && ct.lni->strict != nullptr) ct.lni->strict->not_stored(ct.write_back, Thing::counter, ct.id);
}

void Card::count(Ct& ct, std::uint64_t successes, std::uint32_t failures) {
  const std::uint64_t before = ct.success;
  const std::uint64_t added = successes & wire::kCtSuccessMask;
  ct.success = (before + added) & wire::kCtSuccessMask;
  const bool first_failure = failures != 0 && ct.failure == 0;
  ct.failure =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(std::uint64_t{ct.failure} + failures, wire::kCtFailureMask));
  if (first_failure || settings_.lenient_write_back) store_counter(ct);
  // Counted one by one it would have been at every threshold up to the largest before it went round.
  if (added != 0) settle(ct, ct.success < before);
}

void set_counter(Card& card, Ct& ct, bool set_success, std::uint64_t success, bool set_failure, std::uint32_t failure) {
  if (set_success) ct.success = success & wire::kCtSuccessMask;
  if (set_failure) ct.failure = failure & static_cast<std::uint32_t>(wire::kCtFailureMask);
  store_counter(ct);
  if (set_success) card.settle(ct, false);
}

bool take_doorbells(Card& card, Ct& ct) {
  std::uint64_t* const page = ct.doorbell_page;
  if (page == nullptr) return false;
  // Looked at first: what its poster added before it is there by then, and who adds after it waits until it is done.
  const bool no_success = take_word(page + kResetSuccess, kNoReset) != kNoReset;
  const bool no_failure = take_word(page + kResetFailure, kNoReset) != kNoReset;
  const std::uint64_t successes =
      take_word(page + kAddSuccess, 0) + take_sum(page + kSums + kAddSuccess, ct.summed_success);
  const std::uint64_t failures =
      take_word(page + kAddFailure, 0) + take_sum(page + kSums + kAddFailure, ct.summed_failure);
  const bool rang = successes != 0 || failures != 0 || no_success || no_failure;
  if (successes != 0 || failures != 0) {
    card.count(ct, successes, static_cast<std::uint32_t>(std::min<std::uint64_t>(failures, wire::kCtFailureMask)));
  }
  if (no_success || no_failure) set_counter(card, ct, no_success, 0, no_failure, 0);
  return rang;
}

// Those of one number fire in the order in which they came. Most come in rising order.
Trigger& Card::wait_for(Ct& ct, std::uint64_t threshold) {
  auto at = ct.triggers.end();
  while (at != ct.triggers.begin() && std::prev(at)->threshold > threshold) --at;
  if (spare_.empty()) spare_.emplace_front();
  Trigger& trigger = spare_.front();
  ct.triggers.splice(at, spare_, spare_.begin());
  trigger.threshold = threshold;
  return trigger;
}

void Card::settle(Ct& ct, bool all) {
  auto end = ct.triggers.begin();
  while (end != ct.triggers.end() && (all || end->threshold <= ct.success)) ++end;
  if (end == ct.triggers.begin()) return;
  due_.splice(due_.end(), ct.triggers, ct.triggers.begin(), end);
  fire_due();
}

// What moves much is left for the next pass, with everything behind it.
void Card::fire_due() {
  // A trigger may count, and so make others due. They queue up behind it instead of nesting: a chain of all the
  // device's entries must not need a stack of that depth.
  if (std::exchange(firing_, true)) return;
  const std::uint64_t most_bytes = tally.bytes.load() + kBytesPerTurn;
  while (!due_.empty() && tally.bytes.load() < most_bytes) {
    const Trigger& trigger = due_.front();  // what it sets off comes behind it, and leaves it where it is
    release_entry(*this, trigger);
    tally.triggered.add_owner_thread();
    fire(*this, trigger);
    spare_.splice(spare_.begin(), due_, due_.begin());
  }
  firing_ = false;
}

void release_entry(Card& card, const Trigger& trigger) {
  --card.tles_in_use;
  --trigger.cq->unacknowledged;
  if (Service* const service = trigger.cq->lni->service) {
    --service->tles;
    if (service->tle_pool) card.registers.triggers(*service->tle_pool, service->tles);
  }
}

void Card::cancel(Ct& ct) {
  for (const Trigger& trigger : ct.triggers) release_entry(*this, trigger);
  ct.triggers.clear();
}

void Card::started(Ct& ct) {
  if (ct.doorbell_page != nullptr) {
    __atomic_store_n(ct.doorbell_page + kAddSuccess, 0, __ATOMIC_RELAXED);
    __atomic_store_n(ct.doorbell_page + kAddFailure, 0, __ATOMIC_RELAXED);
    __atomic_store_n(ct.doorbell_page + kSums + kAddSuccess, 0, __ATOMIC_RELAXED);
    __atomic_store_n(ct.doorbell_page + kSums + kAddFailure, 0, __ATOMIC_RELAXED);
    __atomic_store_n(ct.doorbell_page + kResetSuccess, kNoReset, __ATOMIC_RELAXED);
    __atomic_store_n(ct.doorbell_page + kResetFailure, kNoReset, __ATOMIC_RELEASE);
  }
  active_counters_.push_back(&ct);
}

void Card::stopping(Ct& ct) {
  cancel(ct);
  std::erase(active_counters_, &ct);
}

}  // namespace strait::soft::cassini
