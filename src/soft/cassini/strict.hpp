// SPDX-License-Identifier: Apache-2.0
// Strict: the software Cassini as a sanitizer, for one client. It holds back what hardware may hold back, and notes
// what a program may not do and hardware accepts in silence or answers obscurely.
//
// Findings are made where the cards are and told in the client's process (soft/cassini_host): this class only keeps
// them, each cause once. Objects point to the Strict of their client, or to none: that pointer is all that it costs
// others.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/counters.hpp"
#include "soft/cassini/objects.hpp"

namespace strait::soft::cassini {

enum class Rule : std::uint8_t {
  queue_overrun,
  pointer_outside,
  command_changed,
  command_refused,
  source_changed,
  event_queue_overrun,
  event_pointer,
  counter_freed_in_use,
  unmapped_in_use,
  used_after_unmap,
  entry_beyond_memory,
  profile_freed_in_use,
  memory_gone,
};
inline constexpr std::size_t kRules = 13;
struct RuleText {
  const char* name;    // "queue-overrun"
  const char* text;    // what may not be done
  const char* remedy;  // what to do instead
};
[[nodiscard]] const RuleText& rule_text(Rule rule);

// What a finding is about.
enum class Thing : std::uint8_t { transmit_queue, target_queue, event_queue, counter, portal, memory, profile };
[[nodiscard]] const char* thing_name(Thing thing);  // "transmit queue"

struct Finding {
  Rule rule{};
  Thing thing{};
  std::uint32_t number = 0;            // of the thing
  std::optional<std::uint32_t> block;  // of a command queue
  std::string what;
};

class Strict {
 public:
  static constexpr std::size_t kMostKept = 256;
  // `findings` counts them for people who watch the card.
  Strict(std::uint64_t seed, Counter& findings) : state_(seed * 2654435761u + 1), findings_(findings) {}
  Strict(const Strict&) = delete;
  Strict& operator=(const Strict&) = delete;

  // Kept once for every rule and thing. True: it is new.
  bool found(Rule rule, Thing thing, std::uint32_t number, std::string what, std::optional<std::uint32_t> block = {});
  // What was found since the last call; at most `most`, the oldest first.
  [[nodiscard]] std::vector<Finding> take(std::size_t most = kMostKept);
  [[nodiscard]] std::uint64_t causes() const { return reported_.size(); }
  [[nodiscard]] std::uint64_t causes(Rule rule) const;

  // ---- Command queues (strict_ring.cpp).
  // The client says that its commands end at `to`; so far they ended at cq.seen_write_slot.
  void rung(Cq& cq, std::uint32_t to);
  void outside(const Cq& cq, std::uint32_t pointer);
  // The card is about to carry out the command at its place in the ring.
  void begins(const Cq& cq, const std::uint64_t* words, std::uint32_t bytes);
  void refused(const Cq& cq, wire::ReturnCode code, std::uint32_t header);
  void forget(const Cq& cq) { rings_.erase(&cq); }

  // ---- Event queues. `to`: what the consumer says that it has read to; `written`: the block that is being written.
  void acknowledged(const Eq& eq, std::uint32_t to, std::uint32_t written);
  void event_dropped(const Eq& eq, const void* event, std::uint32_t bytes);

  // ---- Memory.
  // A descriptor goes: is anything left that names it?
  void unmapping(const Card& card, const Md& md);
  // Nothing was there: was there something before?
  void not_translated(const Lni& lni, std::uint32_t lac, std::uint64_t iova, std::uint64_t bytes, Thing thing,
                      std::uint32_t number, std::optional<std::uint32_t> block = {});
  void appended(const Pte& pte, const ListEntry& entry);
  // A store of the card's own found no memory behind it.
  void not_stored(const Place& place, Thing thing, std::uint32_t number);

  // ---- Counters and profiles.
  void freeing(const Ct& ct);
  void counter_missing(const Trigger& trigger, std::uint32_t ct);
  void freeing(const Card& card, const Lni& lni, const Cp& cp);

 private:
  struct Source {
    std::uint64_t iova = 0, bytes = 0, sum = 0;
    std::uint32_t lac = 0;
  };
  struct Ring {
    std::vector<std::uint64_t> copy;           // as it was when the client rang
    std::map<std::uint32_t, Source> sources;   // by the 32-byte slot of the command
    std::uint32_t parsed = wire::kFirstBlock;  // commands up to here were looked at
  };
  struct Gone {
    std::uint64_t iova = 0, bytes = 0;
  };
  [[nodiscard]] std::uint64_t random();
  void look_ahead(const Cq& cq, Ring& ring, std::uint32_t to);
  [[nodiscard]] static std::uint64_t sum_of(const Lni& lni, const Source& source);

  std::uint64_t state_;
  Counter& findings_;
  std::set<std::tuple<Rule, Thing, std::uint32_t>> reported_;
  std::vector<Finding> kept_;
  std::unordered_map<const Cq*, Ring> rings_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<Gone>> gone_;  // by resource group and context
};

}  // namespace strait::soft::cassini
