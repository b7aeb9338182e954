// SPDX-License-Identifier: Apache-2.0
// Strict: the rules, what was found, and what a program does to objects that are in use.
#include "soft/cassini/strict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "soft/cassini/card.hpp"

namespace strait::soft::cassini {

namespace {

constexpr std::size_t kMostGone = 4096;                              // of one address context
constexpr std::uint64_t kWholeSpace = (std::uint64_t{1} << 56) - 1;  // the longest entry: meant to have no end
constexpr const char* kThings[] = {"transmit queue", "target queue", "event queue", "counter",
                                   "portal",         "memory",       "profile"};
constexpr RuleText kRuleTexts[kRules] = {
    {"queue-overrun", "commands were written over others that the card has not read",
     "wait until the status says that there is room: one block stays free"},
    {"pointer-outside", "the write pointer is not in the ring",
     "count in blocks of 64 bytes, and go from the last to block 4, the first"},
    {"command-changed", "a command was changed after the queue was rung",
     "leave a block alone until the status says that the card is past it"},
    {"command-refused", "the card refused a command, and the queue has stopped for good",
     "look at the fields that the return code is about; the queue has to be freed and made again"},
    {"source-changed", "the source changed before the card had read it",
     "keep the source as it is until its event or count, or use another buffer"},
    {"event-queue-overrun", "an event found its queue full and was dropped",
     "make the event queue as long as all that can be under way, or take events sooner"},
    {"event-pointer", "the consumer says that it has read events that are not there",
     "acknowledge up to the block of the next event, and no further"},
    {"counter-freed-in-use", "a counter was freed while a trigger still needed it",
     "cancel its triggers, or wait until they have fired, and free it then"},
    {"unmapped-in-use", "memory was unmapped while something still names it",
     "unlink entries, cancel triggers and wait for the last completion before you unmap"},
    {"used-after-unmap", "memory was used after it was unmapped",
     "unmap only when every operation that uses the memory is complete, and give the card none afterwards"},
    {"entry-beyond-memory", "a list entry is longer than the memory that is mapped behind it",
     "give the entry the length that was mapped: what a peer sends to the rest fails at the peer"},
    {"profile-freed-in-use", "a communication profile was freed while a queue still sends with it",
     "free the queue first, or change its LCID"},
    {"memory-gone", "the card has nowhere to store: the program has unmapped the memory",
     "free or move what the card writes there before you unmap it: hardware goes on writing to the old pages"},
};

bool overlap(std::uint64_t a, std::uint64_t a_bytes, std::uint64_t b, std::uint64_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

bool begins_in(const Md& md, std::uint64_t iova) {
  return iova >= md.iova && iova - md.iova < md.length;
}

// The descriptor that an address lies in; null: none.
const Md* md_at(const Lni& lni, std::uint32_t lac, std::uint64_t iova) {
  if (lac >= lni.acs.size() || !lni.acs[lac]) return nullptr;
  const auto& by_iova = lni.acs[lac]->by_iova;
  const auto next = by_iova.upper_bound(iova);
  if (next == by_iova.begin()) return nullptr;
  const Md* const md = std::prev(next)->second;
  return begins_in(*md, iova) ? md : nullptr;
}

// The local memory of a DMA command; no bytes: it has none.
struct LocalPart {
  std::uint32_t lac = 0;
  std::uint64_t iova = 0;
};
std::optional<LocalPart> local_part(const std::uint64_t* words) {
  switch (static_cast<wire::DmaOp>(wire::opcode_of_header(static_cast<std::uint8_t>(words[0])))) {
    case wire::DmaOp::put:
    case wire::DmaOp::get:
    case wire::DmaOp::rendezvous_put: {
      wire::FullDmaCmd command;
      std::memcpy(&command, words, sizeof command);
      return LocalPart{command.lac(), command.local_addr()};
    }
    case wire::DmaOp::nomatch_put:
    case wire::DmaOp::nomatch_get: {
      wire::NomatchDmaCmd command;
      std::memcpy(&command, words, sizeof command);
      return LocalPart{command.lac(), command.local_addr()};
    }
    default: return std::nullopt;
  }
}

}  // namespace

const RuleText& rule_text(Rule rule) {
  return kRuleTexts[static_cast<std::size_t>(rule)];
}
const char* thing_name(Thing thing) {
  return kThings[static_cast<std::size_t>(thing)];
}

bool Strict::found(Rule rule, Thing thing, std::uint32_t number, std::string what, std::optional<std::uint32_t> block) {
  if (!reported_.emplace(rule, thing, number).second) return false;
  findings_.add_owner_thread();
  if (kept_.size() >= kMostKept) return true;
  kept_.push_back({.rule = rule, .thing = thing, .number = number, .block = block, .what = std::move(what)});
  return true;
}

std::vector<Finding> Strict::take(std::size_t most) {
  const auto end = kept_.begin() + static_cast<std::ptrdiff_t>(std::min(most, kept_.size()));
  std::vector<Finding> out(std::make_move_iterator(kept_.begin()), std::make_move_iterator(end));
  kept_.erase(kept_.begin(), end);
  return out;
}

std::uint64_t Strict::causes(Rule rule) const {
  return static_cast<std::uint64_t>(
      std::count_if(reported_.begin(), reported_.end(), [&](const auto& each) { return std::get<0>(each) == rule; }));
}

// ---- Event queues ---------------------------------------------------------------------------------------------------

void Strict::acknowledged(const Eq& eq, std::uint32_t to, std::uint32_t written) {
  if (to == 0) return;  // as the page is at first
  if (to >= eq.slots) {
    found(Rule::event_pointer, Thing::event_queue, eq.id,
          fmt::format("it says block {} of a queue that ends at block {}", to, eq.slots - 1));
    return;
  }
  const std::uint32_t ring = eq.slots - 1;
  const std::uint32_t there = (written + ring - eq.read_slot) % ring;
  const std::uint32_t said = (to + ring - eq.read_slot) % ring;
  if (said <= there) return;
  found(Rule::event_pointer, Thing::event_queue, eq.id,
        fmt::format("it was at block {} and says {}; the card writes its next event to block {}", eq.read_slot, to,
                    written));
}

void Strict::event_dropped(const Eq& eq, const void* event, std::uint32_t bytes) {
  wire::EventHead head;
  std::memcpy(&head, event, sizeof head);
  if (head.event_type() == wire::EventType::timestamp) return;  // the next one says the same
  found(Rule::event_queue_overrun, Thing::event_queue, eq.id,
        fmt::format("an event of type {} and {} bytes found none of its {} blocks free",
                    static_cast<unsigned>(head.event_type()), bytes, eq.slots - 1));
}

// ---- Memory ---------------------------------------------------------------------------------------------------------

void Strict::unmapping(const Card& card, const Md& md) {
  const auto range = fmt::format("{} bytes at {:#x} (IOVA {:#x})", md.length, md.va, md.iova);
  card.ptes.each([&](const Pte& pte) {
    if (pte.lni == nullptr || pte.lni->rgid != md.lni->rgid) return;
    for (std::size_t list = 0; list < pte.lists.size(); ++list) {
      pte.lists[list].each([&](const ListEntry& entry) {
        if (entry.length == 0 || entry.lac != md.lac || !begins_in(md, entry.start)) return;
        found(Rule::unmapped_in_use, Thing::memory, md.id,
              fmt::format("{}: entry with buffer id {} is still on list {} of portal {}", range, entry.buffer_id, list,
                          pte.id));
      });
    }
  });
  card.counters.each([&](const Ct& ct) {
    if (ct.lni == nullptr || ct.lni->rgid != md.lni->rgid) return;
    for (const Trigger& trigger : ct.triggers) {
      if (trigger.op != wire::CtOp::trig_dma) continue;
      const auto local = local_part(trigger.command.data() + wire::kEmbeddedDmaOffset / 8);
      if (!local || local->lac != md.lac || !begins_in(md, local->iova)) continue;
      found(Rule::unmapped_in_use, Thing::memory, md.id,
            fmt::format("{}: a trigger that waits for {} on counter {} moves it", range, trigger.threshold, ct.id));
    }
  });
  for (const auto& [cq, ring] : rings_) {
    if (cq->lni->rgid != md.lni->rgid) continue;
    for (const auto& [slot, source] : ring.sources) {
      if (source.lac != md.lac || !overlap(source.iova, source.bytes, md.iova, md.length)) continue;
      found(Rule::unmapped_in_use, Thing::memory, md.id,
            fmt::format("{}: the command in block {} of transmit queue {} sends it and was not read yet", range,
                        slot / 2, cq->id));
    }
  }
  auto& gone = gone_[{md.lni->rgid->id, md.lac}];
  if (gone.size() >= kMostGone) gone.erase(gone.begin());
  gone.push_back({md.iova, md.length});
}

void Strict::not_translated(const Lni& lni, std::uint32_t lac, std::uint64_t iova, std::uint64_t bytes, Thing thing,
                            std::uint32_t number, std::optional<std::uint32_t> block) {
  const auto context = gone_.find({lni.rgid->id, lac});
  if (context == gone_.end()) return;
  for (const Gone& each : context->second) {
    if (!overlap(iova, bytes, each.iova, each.bytes)) continue;
    // The addresses may be another descriptor's by now, which then is the one that is too short.
    if (md_at(lni, lac, each.iova) != nullptr) continue;
    found(Rule::used_after_unmap, thing, number,
          fmt::format("it names {} bytes at IOVA {:#x} of context {}, which were mapped before", bytes, iova, lac),
          block);
    return;
  }
}

void Strict::appended(const Pte& pte, const ListEntry& entry) {
  if (entry.length == 0 || entry.length >= kWholeSpace || pte.lni == nullptr) return;
  const Md* const md = md_at(*pte.lni, entry.lac, entry.start);
  // One that begins nowhere is an address space of its own, with maps that come and go.
  if (md == nullptr) {
    not_translated(*pte.lni, entry.lac, entry.start, entry.length, Thing::portal, pte.id);
    return;
  }
  // What follows may be mapped, too: by chance, and for something else.
  const std::uint64_t left = md->length - (entry.start - md->iova);
  if (entry.length <= left) return;
  found(Rule::entry_beyond_memory, Thing::portal, pte.id,
        fmt::format("entry with buffer id {} has {} bytes from IOVA {:#x} of context {} on; the map has {} from there",
                    entry.buffer_id, entry.length, entry.start, entry.lac, left));
}

void Strict::not_stored(const Place& place, Thing thing, std::uint32_t number) {
  if (place.memory == nullptr || place.memory->lost()) return;
  found(Rule::memory_gone, thing, number,
        fmt::format("nothing is mapped for writing at {:#x} any more", place.address));
}

// ---- Counters and profiles ------------------------------------------------------------------------------------------

void Strict::freeing(const Ct& ct) {
  // Who only wants the counter stored at a number has no use for that any more: it is how libraries wait.
  const auto matters = [](const Trigger& trigger) {
    if (trigger.op != wire::CtOp::trig_event) return true;
    wire::CtCmd command;
    std::memcpy(&command, trigger.command.data(), sizeof command);
    return command.eq() != wire::kEqNone;
  };
  const auto first = std::find_if(ct.triggers.begin(), ct.triggers.end(), matters);
  if (first == ct.triggers.end()) return;
  const auto all = std::count_if(first, ct.triggers.end(), matters);
  found(Rule::counter_freed_in_use, Thing::counter, ct.id,
        fmt::format("{} trigger{} wait{} for it, the first for {}; it is at {}", all, all == 1 ? "" : "s",
                    all == 1 ? "s" : "", first->threshold, ct.success));
}

void Strict::counter_missing(const Trigger& trigger, std::uint32_t ct) {
  found(Rule::counter_freed_in_use, Thing::counter, ct,
        fmt::format("a trigger of transmit queue {} that waited for {} was to act on it", trigger.cq->id,
                    trigger.threshold));
}

void Strict::freeing(const Card& card, const Lni& lni, const Cp& cp) {
  if (cp.refs > 1) return;  // others have it too
  card.transmit_queues.each([&](const Cq& cq) {
    if (cq.lni->rgid != lni.rgid || cq.lcid != cp.lcid || cq.failed) return;
    found(Rule::profile_freed_in_use, Thing::profile, cp.lcid,
          fmt::format("LCID {} (VNI {}) is the one of transmit queue {}", cp.lcid, cp.vni, cq.id));
  });
}

}  // namespace strait::soft::cassini
