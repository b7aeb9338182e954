// SPDX-License-Identifier: Apache-2.0
// What the engine's files tell each other: which command is carried out where. A command was copied out of its ring
// before anybody looks at it, and is as long as its header says. ok, or why the queue stops.
#pragma once

#include <cstdint>

#include "soft/cassini/card.hpp"

namespace strait::soft::cassini {

// A queue's turn, and one go at the triggers that are due, end with the command that reaches this: 64 commands of 4 GiB
// each would keep all others waiting for a minute.
inline constexpr std::uint64_t kBytesPerTurn = 4 << 20;
// A put or get of a ring that is longer moves so much at a time, and all others have their turns in between.
inline constexpr std::uint32_t kBytesPerPiece = 1 << 20;

// transmit.cpp: a DMA command, of a ring or from a trigger.
[[nodiscard]] wire::ReturnCode dma_command(Card& card, Cq& cq, const std::uint64_t* words);
// transmit_immediate.cpp: one with its payload in it, or the state that the next ones share.
[[nodiscard]] wire::ReturnCode immediate_command(Card& card, Cq& cq, const std::uint64_t* words);
// count_command.cpp: set, get, count, arm.
[[nodiscard]] wire::ReturnCode counter_command(Card& card, Cq& cq, const std::uint64_t* words);
// What a trigger was armed for.
void fire(Card& card, const Trigger& trigger);

// count.cpp.
void set_counter(Card& card, Ct& ct, bool set_success, std::uint64_t success, bool set_failure, std::uint32_t failure);
void store_counter(const Ct& ct);                // its word, with the mark
bool take_doorbells(Card& card, Ct& ct);         // did any ring?
void release_entry(Card& card, const Trigger&);  // the trigger is gone: fired or cancelled

// engine.cpp: the client learns that a command was bad, and the queue stops.
void fail_queue(Card& card, Cq& cq, wire::ReturnCode code, std::uint32_t header);
// The same without a word to whoever is strict about it.
void stop_queue(Card& card, Cq& cq, wire::ReturnCode code, std::uint32_t header);

// Objects by number: only those of the queue's own resource group exist for it.
[[nodiscard]] bool same_group(const Lni* a, const Lni* b);
[[nodiscard]] Eq* find_eq(Card& card, const Cq& cq, std::uint32_t number);
[[nodiscard]] Ct* find_ct(Card& card, const Cq& cq, std::uint32_t number);

}  // namespace strait::soft::cassini
