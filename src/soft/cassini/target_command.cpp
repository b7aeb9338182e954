// SPDX-License-Identifier: Apache-2.0
// What a target queue asks for: entries on lists, searches among unexpected headers, states.
#include <algorithm>
#include <optional>
#include <utility>

#include "soft/cassini/strict.hpp"
#include "soft/cassini/target.hpp"

namespace strait::soft::cassini {

namespace target {
namespace {

using Position = std::size_t;
constexpr Position kNowhere = MatchList<Unexpected>::kNone;

wire::EventType overflow_type(wire::EventType type) {
  return static_cast<wire::EventType>(static_cast<unsigned>(type) + 4);
}

ListEntry entry_of(const wire::TargetCmd& command) {
  ListEntry entry;
  entry.start = command.start();
  entry.length = command.length();
  entry.flags = command.flags();
  entry.min_free = command.min_free();
  entry.ct = static_cast<std::uint16_t>(command.ct());
  entry.buffer_id = static_cast<std::uint16_t>(command.buffer_id());
  entry.lac = static_cast<std::uint8_t>(command.lac());
  return entry;
}

void post_link(Card& card, Pte& pte, const wire::TargetCmd& command, wire::ReturnCode code) {
  post_long(card, pte,
            {.type = wire::EventType::link, .list = command.ptl_list(), .buffer_id = command.buffer_id(), .code = code},
            {});
}

// The entry meets a header that came before it. True: the entry is used up by it.
bool meet(Card& card, Pte& pte, ListEntry& entry, Position position) {
  const Unexpected header = pte.unexpected.at(position);
  pte.unexpected.remove(position);
  give_entry(card, pte);
  const std::uint64_t start = entry.start + entry.offset;
  const std::uint64_t space = entry.length - std::min(entry.length, entry.offset);
  const std::uint64_t total = std::min<std::uint64_t>(header.rlength, space);
  if (has(entry, wire::kLeManageLocal)) entry.offset += total;
  const bool leaves = used_up(entry);

  Report report{.type = wire::EventType::unlink,
                .list = wire::PtlList::priority,
                .buffer_id = entry.buffer_id,
                .auto_unlinked = leaves};
  if (leaves && !has(entry, wire::kLeEventUnlinkDisable)) post_long(card, pte, report, {});
  if (!has(entry, wire::kLeEventCommDisable)) {
    report.type = overflow_type(header.type);
    report.list = wire::PtlList::overflow;
    post_long(card, pte, report, header);
  }
  count_entry(card, pte, entry, wire::kLeEventCtOverflow, header.mlength, wire::ReturnCode::ok);
  if (header.rendezvous) {
    // What came along lies in the overflow buffer; its owner copies it. Only the rest is fetched.
    const auto eager = static_cast<std::uint32_t>(std::min<std::uint64_t>(header.mlength, total));
    fetch_rest(card, pte, entry, start, eager, total, header);
  }
  return leaves;
}

wire::ReturnCode append(Card& card, Pte& pte, const wire::TargetCmd& command) {
  const wire::PtlList list = command.ptl_list();
  if (list == wire::PtlList::unexpected) return wire::ReturnCode::cmd_invalid_arg;
  if (!room(card, pte, 5)) return wire::ReturnCode::delayed;
  wire::ReturnCode& stopped = pte.appends_fail[static_cast<std::size_t>(list)];
  if (command.restart_seq()) stopped = wire::ReturnCode::ok;
  if (stopped != wire::ReturnCode::ok) {
    post_link(card, pte, command, stopped);
    return wire::ReturnCode::ok;
  }

  const MatchKey key = key_of(pte, command);
  ListEntry entry = entry_of(command);
  if (pte.half_appended) entry.offset = *std::exchange(pte.half_appended, std::nullopt);
  if (list == wire::PtlList::priority) {
    // The oldest header first. One that this buffer would have let pass when it came stays.
    Position at = pte.unexpected.find(key);
    while (at != kNowhere) {
      const Unexpected& header = pte.unexpected.at(at);
      const std::uint64_t space = entry.length - std::min(entry.length, entry.offset);
      if (has(entry, wire::kLeNoTruncate) && header.rlength > space) {
        at = pte.unexpected.find(key, at + 1);
        continue;
      }
      if (!room(card, pte, 5)) {
        pte.half_appended = entry.offset;
        return wire::ReturnCode::delayed;
      }
      if (meet(card, pte, entry, at)) return wire::ReturnCode::ok;
      at = pte.unexpected.find(key);
    }
  }
  if (!take_entry(card, pte)) {
    stopped = wire::ReturnCode::no_space;
    if (list == wire::PtlList::priority && pte.state == wire::PteState::enabled && has(pte, wire::kPteEnSwHwStChng)) {
      stopped = wire::ReturnCode::ptlte_sw_managed;
      pte.state = wire::PteState::software_managed;
      post_state(card, pte, wire::ReturnCode::ok, true, wire::StateChangeReason::managed_append_fail);
    }
    post_link(card, pte, command, stopped);
    return wire::ReturnCode::ok;
  }
  if (pte.lni->strict != nullptr) pte.lni->strict->appended(pte, entry);
  list_of(pte, list).append(key, entry);
  if (!command.event_link_disable()) post_link(card, pte, command, wire::ReturnCode::ok);
  return wire::ReturnCode::ok;
}

// One event for each header that agrees, and one without a match behind them; with use_once the first alone.
wire::ReturnCode search(Card& card, Pte& pte, const wire::TargetCmd& command, bool remove) {
  if (command.ptl_list() != wire::PtlList::unexpected) return wire::ReturnCode::cmd_invalid_arg;
  const MatchKey key = key_of(pte, command);
  Report report{.type = wire::EventType::search, .list = wire::PtlList::unexpected, .buffer_id = command.buffer_id()};
  for (;;) {
    if (!room(card, pte, 2)) return wire::ReturnCode::delayed;
    const Position at = pte.unexpected.find(key, remove ? 0 : pte.search_from);
    if (at == kNowhere) break;
    const Unexpected header = pte.unexpected.at(at);
    if (remove) {
      pte.unexpected.remove(at);
      give_entry(card, pte);
      report.type = overflow_type(header.type);
      report.auto_unlinked = true;
    } else {
      pte.search_from = at + 1;
    }
    post_long(card, pte, report, header);
    if (!command.use_once()) continue;
    pte.search_from = 0;
    return wire::ReturnCode::ok;
  }
  pte.search_from = 0;
  // Who asked for one header is told in the form of that header; who asked for all is told where they end.
  report.type = remove && command.use_once() ? wire::EventType::put_overflow : wire::EventType::search;
  report.auto_unlinked = false;
  report.code = wire::ReturnCode::no_match;
  post_long(card, pte, report, {});
  return wire::ReturnCode::ok;
}

wire::ReturnCode unlink(Card& card, Pte& pte, const wire::TargetCmd& command) {
  if (!room(card, pte, 1)) return wire::ReturnCode::delayed;
  Report report{.type = wire::EventType::unlink,
                .list = command.ptl_list(),
                .buffer_id = command.buffer_id(),
                .code = wire::ReturnCode::entry_not_found};
  Unexpected header;
  if (command.ptl_list() != wire::PtlList::unexpected) {
    MatchList<ListEntry>& entries = list_of(pte, command.ptl_list());
    const Position at = entries.find_if([&](const ListEntry& e) { return e.buffer_id == command.buffer_id(); });
    if (at != kNowhere) {
      header.start = entries.at(at).start + entries.at(at).offset;
      entries.remove(at);
      give_entry(card, pte);
      report.code = wire::ReturnCode::ok;
    }
  }
  // Whoever asks is told, whatever the entry said about entries that leave by themselves.
  post_long(card, pte, report, header);
  return wire::ReturnCode::ok;
}

wire::ReturnCode set_state(Card& card, Pte& pte, const wire::SetStateCmd& command) {
  if (!room(card, pte, 1)) return wire::ReturnCode::delayed;
  const wire::PteState state = command.ptlte_state();
  if (state > wire::PteState::ethernet) return wire::ReturnCode::cmd_invalid_arg;
  if ((state == wire::PteState::ethernet) != has(pte, wire::kPteEthernet) && state >= wire::PteState::enabled) {
    return wire::ReturnCode::cmd_invalid_arg;
  }
  const bool opens = state == wire::PteState::enabled || state == wire::PteState::software_managed;
  if (opens && pte.state == wire::PteState::disabled && command.drop_count() != kIgnoreDrops &&
      command.drop_count() != pte.drop_count) {
    // Requests that were dropped since are not accounted for: their senders must hear of it first.
    post_state(card, pte, wire::ReturnCode::no_match, false, {});
    return wire::ReturnCode::ok;
  }
  if (state == wire::PteState::reset) {
    for (MatchList<ListEntry>& list : pte.lists) {
      for (std::size_t i = list.size(); i != 0; --i) give_entry(card, pte);
      list.clear();
    }
    for (std::size_t i = pte.unexpected.size(); i != 0; --i) give_entry(card, pte);
    pte.unexpected.clear();
    pte.appends_fail.fill(wire::ReturnCode::ok);
  }
  if (pte.state != state) pte.drop_count = 0;
  pte.state = state;
  if (opens && command.current_addr() != 0) {
    // A locally managed buffer goes on where its owner says.
    MatchList<ListEntry>& entries = list_of(pte, wire::PtlList::priority);
    const Position first = entries.find_if([](const ListEntry& e) { return has(e, wire::kLeManageLocal); });
    if (first != kNowhere) {
      ListEntry& entry = entries.at(first);
      if (command.current_addr() >= entry.start && command.current_addr() - entry.start <= entry.length) {
        entry.offset = command.current_addr() - entry.start;
      }
    }
  }
  post_state(card, pte, wire::ReturnCode::ok, false, {});
  return wire::ReturnCode::ok;
}

}  // namespace
}  // namespace target

wire::ReturnCode Card::target_command(Cq& cq, const std::uint64_t (&command)[8]) {
  wire::TargetCmd words{};
  std::copy(std::begin(command), std::end(command), words.words);
  if (words.cmd_type() != wire::CmdType::cq) return wire::ReturnCode::illegal_op;
  Pte* pte = ptes.find(words.ptlte_index());
  if (pte == nullptr || pte->lni != cq.lni) return wire::ReturnCode::cmd_invalid_arg;
  switch (static_cast<wire::TargetOp>(words.opcode())) {
    case wire::TargetOp::append: return target::append(*this, *pte, words);
    case wire::TargetOp::search: return target::search(*this, *pte, words, false);
    case wire::TargetOp::search_and_delete: return target::search(*this, *pte, words, true);
    case wire::TargetOp::unlink: return target::unlink(*this, *pte, words);
    case wire::TargetOp::set_state: {
      wire::SetStateCmd state{};
      std::copy(std::begin(command), std::end(command), state.words);
      return target::set_state(*this, *pte, state);
    }
  }
  return wire::ReturnCode::illegal_op;
}

}  // namespace strait::soft::cassini
