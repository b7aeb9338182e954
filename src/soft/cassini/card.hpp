// SPDX-License-Identifier: Apache-2.0
// Card: one software Cassini; Fabric: the cards of one host, which reach each other.
//
// Nothing here takes a lock: a Fabric and all of its cards and clients belong to the one thread that drives it.
//
//   Fabric fabric({.cards = 1});
//   Client client(fabric.card(0), ...);          // one open of /dev/cxi0
//   client.write(command, files);                // one write(2)
//   while (fabric.drive() != 0) {}               // rings are looked at
#pragma once

#include <array>
#include <bitset>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/counters.hpp"
#include "soft/cassini/objects.hpp"
#include "soft/cassini/registers.hpp"
#include "soft/cassini/request.hpp"
#include "soft/cassini/table.hpp"
#include "soft/cassini/tally.hpp"

namespace strait::soft::cassini {

class Fabric;

struct CardSettings {
  std::uint32_t index = 0;  // N of /dev/cxiN
  std::uint32_t nid = 0;    // 20 bits
  wire::CassiniVersion version = wire::CassiniVersion::v1_1;
  bool rendezvous_get = true;  // the card itself fetches the rest of a rendezvous; else software is told to
  // Counters store their word at every count, not only when asked. The hardware does not: programs that work with this
  // alone hang on it.
  bool lenient_write_back = false;
};

// Where requests for (network, endpoint, index) go.
struct PteAddress {
  std::uint32_t vni = 0;       // `match` of the profile that covers the VNI
  std::uint32_t endpoint = 0;  // or the id of a multicast
  std::uint32_t index_ext = 0;
  bool multicast = false;
  bool operator==(const PteAddress&) const = default;
  // Two words instead of four fields: every request is looked up.
  std::strong_ordering operator<=>(const PteAddress& other) const {
    const auto where = [](const PteAddress& a) { return std::uint64_t{a.vni} << 32 | a.endpoint; };
    const auto which = [](const PteAddress& a) { return std::uint64_t{a.index_ext} << 1 | (a.multicast ? 1u : 0u); };
    return where(*this) != where(other) ? where(*this) <=> where(other) : which(*this) <=> which(other);
  }
};
struct PteMapping {
  PteAddress address;
  Pte* pte = nullptr;
  Domain* domain = nullptr;
};

// How much of one kind of resource there is, and who has it.
struct ResourceUse {
  std::uint32_t max = 0;
  std::uint32_t shared = 0;      // not reserved by a service
  std::uint32_t shared_use = 0;  // in use beyond reservations
};

struct PteStatus {
  wire::PteState state{};
  std::uint32_t drop_count = 0;
  std::uint32_t les_reserved = 0, les_allocated = 0, les_max = 0;
};

class Card {
 public:
  Card(Fabric& fabric, CardSettings settings);
  Card(const Card&) = delete;
  Card& operator=(const Card&) = delete;
  virtual ~Card();

  [[nodiscard]] const CardSettings& settings() const { return settings_; }
  [[nodiscard]] Fabric& fabric() { return fabric_; }

  // ---- Objects, for clients.
  Table<Service> services{1, 255};
  Table<Lni> lnis{1, (wire::kNumRgids - 1) * wire::kLacsPerRgid};
  Table<Domain> domains{1, 65535};
  Table<Cq> transmit_queues{0, wire::kNumTransmitCqs};
  Table<Cq> target_queues{wire::kFirstTargetCq, wire::kNumTargetCqs};
  Table<Eq> event_queues{1, wire::kUsableEqs};
  Table<Ct> counters{1, wire::kUsableCts};
  Table<Pte> ptes{1, wire::kUsablePtes};
  Table<Md> mds{1, 65535};
  std::array<std::shared_ptr<Rgid>, wire::kNumRgids> rgids;  // 0 is never used
  std::vector<std::shared_ptr<Profile>> profiles;
  std::map<PteAddress, Pte*> addresses;                  // PTE_MAP
  std::vector<std::optional<PteMapping>> mapping_table;  // by PTE_MAP's answer; kNumPteMappings
  std::array<ResourceUse, kResources> resources;
  std::bitset<wire::kNumAcs> acs;
  // A write-back that never ends: CT_WB_UPDATE then runs into its time limit. For tests and faults.
  bool write_backs_hang = false;
  std::uint32_t les_in_use = 0;  // of all processing elements
  std::array<std::uint32_t, wire::kProcessingElements> les_in_pe{};
  std::uint32_t tles_in_use = 0;
  Registers registers;

  // The profile of a network, if it is enabled; null: there is none.
  [[nodiscard]] Profile* profile_of(std::uint32_t vni) const;
  // Who answers at an address, as the target's hardware looks it up; null: nobody.
  [[nodiscard]] Pte* at(std::uint32_t vni, std::uint32_t endpoint, std::uint32_t index_ext) const;
  [[nodiscard]] std::uint32_t rgids_available() const;

  // ---- Engine (engine.cpp, transmit*.cpp, count*.cpp).
  // One bounded look at every ring and doorbell; how many things were done.
  std::uint32_t drive();
  // Nothing that drive() would look at.
  [[nodiscard]] bool unused() const {
    return senders_.empty() && receivers_.empty() && active_counters_.empty() && event_queues.taken() == 0;
  }
  // Has the queue that was busy last another write pointer than it had? A look at one cache line.
  [[nodiscard]] bool has_news() const {
    return busiest_ != nullptr &&
           __atomic_load_n(busiest_->write_pointer_page, __ATOMIC_RELAXED) != busiest_->seen_pointer;
  }
  // Called by clients when objects come and go, so that drive() looks at what exists only.
  void started(Cq& cq);
  void stopping(Cq& cq);  // afterwards the engine holds nothing of it
  void started(Ct& ct);
  void stopping(Ct& ct);  // drops its triggers
  // Counter arithmetic with everything it sets off: triggers, write-backs.
  void count(Ct& ct, std::uint64_t successes, std::uint32_t failures);
  void settle(Ct& ct, bool all);  // triggers that are due fire; all: each of them is
  void cancel(Ct& ct);            // its triggers go without firing
  // A trigger of that threshold, behind all that wait for the same number. Its owner says what it does.
  Trigger& wait_for(Ct& ct, std::uint64_t threshold);

  // ---- Target (target*.cpp).
  // A request from a card of the fabric, this one included: matches, lands, counts and posts the target's events.
  [[nodiscard]] virtual Answer receive(const Request& request);
  // A command of a target queue: append, search, unlink, set state. ok, or why the command fails. `delayed`: the event
  // queue has no room for what it would report; nothing was lost, the same command is to be tried again later.
  [[nodiscard]] virtual wire::ReturnCode target_command(Cq& cq, const std::uint64_t (&command)[8]);
  // Everything of the PTE goes: lists, unexpected headers, addresses.
  void stopping(Pte& pte);
  // PTE_STATUS. les_* describe the pool of the PTE's service in its processing element.
  [[nodiscard]] PteStatus status(const Pte& pte) const;
  // Of each unexpected header, oldest first: where its data is, or, of a rendezvous, the initiator's offset.
  [[nodiscard]] std::vector<std::uint64_t> unexpected_offsets(const Pte& pte) const;
  // PTE_TRANSITION_SM: 0, EINVAL (not disabled), EAGAIN (another count of drops). No event is made.
  [[nodiscard]] int manage_by_software(Pte& pte, std::uint32_t drop_count);

  // ---- Event queues (event_queue.cpp). 16, 32 or 64 bytes; false: no room, the event is dropped and the queue says
  // so.
  bool post(Eq& eq, const void* event, std::uint32_t bytes);
  // After EQ_RESIZE has set `next`: the last event goes into the old buffer, all others into the new one.
  void switch_buffer(Eq& eq);
  // Is there room for so many more events of 64 bytes, keeping what is reserved?
  [[nodiscard]] bool has_room(Eq& eq, std::uint32_t events);

  Counters numbers;  // "commands", "puts", "bytes", ...
  Tally tally{numbers};

 private:
  Fabric& fabric_;
  CardSettings settings_;
  std::vector<Cq*> senders_;     // transmit queues, those for counters among them
  std::vector<Cq*> receivers_;   // target queues
  const Cq* busiest_ = nullptr;  // the transmit queue that had commands last, other than for counters
  std::vector<Ct*> active_counters_;
  std::size_t next_counter_ = 0;        // whose doorbells are looked at next
  std::list<Trigger> due_;              // reached their threshold, in order
  std::list<Trigger> spare_;            // their nodes, to be used again: as many as ever waited at a time
  bool firing_ = false;                 // somebody further up is working on them
  std::vector<std::uint32_t> watched_;  // event queues with Eq::watched
  std::uint32_t passes_ = 0;            // of drive()
  std::int64_t next_timestamp_ns_ = 0;

  void fire_due();
  void wake(Eq& eq, wire::EqSwState state);
  void look_at_event_queues();
};

class Fabric {
 public:
  explicit Fabric(std::uint32_t cards);
  // One more: a test's own kind of card.
  void add(std::unique_ptr<Card> card) { cards_.push_back(std::move(card)); }
  [[nodiscard]] Card* card(std::uint32_t index) { return index < cards_.size() ? cards_[index].get() : nullptr; }
  [[nodiscard]] Card* by_nid(std::uint32_t nid);
  [[nodiscard]] std::uint32_t cards() const { return static_cast<std::uint32_t>(cards_.size()); }
  std::uint32_t drive();
  // After a drive() that found nothing: rests, and ends early when the queue that was busy last has commands again.
  void await_busiest(std::uint32_t looks);

 private:
  std::vector<std::unique_ptr<Card>> cards_;
  const Card* busiest_ = nullptr;
};

}  // namespace strait::soft::cassini
