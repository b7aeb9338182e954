// SPDX-License-Identifier: Apache-2.0
// What the files of the target side share: target.cpp takes requests in and walks the lists, target_land.cpp moves the
// bytes, target_command.cpp serves the target queue, target_event.cpp writes events, target_state.cpp counts list
// entries and changes states, rendezvous.cpp fetches the rest of a rendezvous.
//
// Rule of all of them: a list is put right before anything is counted. A counter may set off commands that come back to
// the same portal.
#pragma once

#include <cstdint>

#include "soft/cassini/card.hpp"

namespace strait::soft::cassini::target {

inline constexpr std::uint32_t kPidBits = 9;
inline constexpr std::uint32_t kRendezvousIndex = wire::pid_granule(kPidBits) - 1;
inline constexpr std::uint32_t kIgnoreDrops = 0xffffff;  // SETSTATE: whatever the count of drops is

inline bool has(const Pte& pte, std::uint64_t option) {
  return (pte.options & option) != 0;
}
inline bool has(const ListEntry& entry, std::uint32_t flag) {
  return (entry.flags & flag) != 0;
}
inline MatchList<ListEntry>& list_of(Pte& pte, wire::PtlList list) {
  return pte.lists[static_cast<std::size_t>(list)];
}

// ---- What is matched (target_match.cpp).
[[nodiscard]] MatchKey key_of(const Pte& pte, const wire::TargetCmd& command);
[[nodiscard]] MatchKey key_of(const Pte& pte, const Request& request);
[[nodiscard]] Unexpected header_of(const Request& request);

// ---- Events (target_event.cpp).
struct Report {
  wire::EventType type{};
  wire::PtlList list{};
  std::uint32_t buffer_id = 0;
  wire::ReturnCode code = wire::ReturnCode::ok;
  bool auto_unlinked = false;
  bool get_issued = false;
};
// 64 bytes, of a message; or of a command, when the header is an empty one.
void post_long(Card& card, Pte& pte, const Report& report, const Unexpected& header);
void post_short(Card& card, Pte& pte, const Report& report, const Unexpected& header);
void post_state(Card& card, Pte& pte, wire::ReturnCode code, bool by_card, wire::StateChangeReason reason);

// ---- List entries and states (target_state.cpp).
[[nodiscard]] std::uint32_t processing_element(const Pte& pte);
[[nodiscard]] bool take_entry(Card& card, Pte& pte);  // one of the pool; false: there is none
void give_entry(Card& card, Pte& pte);
// Flow control: the card disables the portal, and the request that showed it is dropped.
[[nodiscard]] Answer disable(Card& card, Pte& pte, wire::StateChangeReason reason);
// Room for so many events; a portal without a queue needs none.
[[nodiscard]] bool room(Card& card, const Pte& pte, std::uint32_t events);
void count_entry(Card& card, const Pte& pte, const ListEntry& entry, std::uint32_t flag, std::uint64_t bytes,
                 wire::ReturnCode code);

// ---- Landing (target_land.cpp).
// Where in the entry the message goes, and how much of it.
struct Landing {
  std::uint64_t offset = 0;   // in the entry
  std::uint32_t prefix = 0;   // bytes of packet header before the payload: the request list has them
  std::uint32_t payload = 0;  // that fit
  std::uint64_t takes = 0;    // of the entry's space, what is fetched later included
  bool fits = true;
};
[[nodiscard]] Landing place(const Pte& pte, const ListEntry& entry, wire::PtlList list, const Request& request);
// The bytes of one piece, and nothing else. delayed: this entry takes no pieces.
[[nodiscard]] Answer land_piece(Card& card, Pte& pte, const ListEntry& entry, const Landing& landing,
                                const Request& request);
[[nodiscard]] Answer land_in(Card& card, Pte& pte, wire::PtlList list, std::size_t position, const Landing& landing,
                             const Request& request);
// After `takes` bytes of a locally managed entry: does it leave its list?
[[nodiscard]] bool used_up(const ListEntry& entry);

// ---- The packet headers that lie before a message of the request list (target_packet.cpp).
inline constexpr std::uint32_t kMaxPacketHeader = 63;
[[nodiscard]] std::uint32_t packet_header_bytes(const Request& request);
void write_packet_header(const Card& card, const Request& request, std::uint8_t (&out)[kMaxPacketHeader]);

// ---- Rendezvous (rendezvous.cpp). `eager` bytes are at `start`; the entry has room for `total` of the message.
void fetch_rest(Card& card, Pte& pte, const ListEntry& entry, std::uint64_t start, std::uint32_t eager,
                std::uint64_t total, const Unexpected& header);

}  // namespace strait::soft::cassini::target
