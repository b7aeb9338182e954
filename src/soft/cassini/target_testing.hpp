// SPDX-License-Identifier: Apache-2.0
// Tests of the target side: portals, queues and memory made by hand, requests given to the card as another card would.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "soft/cassini/card.hpp"
#include "soft/cassini/target.hpp"
#include "soft/cassini/translation.hpp"

namespace strait::soft::cassini::testing {

// Addresses are offsets in a block.
class BlockMemory final : public UserMemory {
 public:
  explicit BlockMemory(std::size_t bytes) : bytes_(bytes) {}
  bool read(std::uint64_t address, void* into, std::size_t bytes) override {
    if (!reaches(address, bytes, false)) return false;
    std::memcpy(into, bytes_.data() + address, bytes);
    return true;
  }
  bool write(std::uint64_t address, const void* from, std::size_t bytes) override {
    if (!reaches(address, bytes, true)) return false;
    std::memcpy(bytes_.data() + address, from, bytes);
    return true;
  }
  bool reaches(std::uint64_t address, std::uint64_t bytes, bool) override {
    return address <= bytes_.size() && bytes <= bytes_.size() - address;
  }
  std::byte* direct(std::uint64_t address, std::uint64_t bytes) override {
    return reaches(address, bytes, true) ? bytes_.data() + address : nullptr;
  }
  std::string text(std::uint64_t address, std::size_t bytes) {
    return {reinterpret_cast<const char*>(bytes_.data()) + address, bytes};
  }

 private:
  std::vector<std::byte> bytes_;
};

// An event of any size, as words.
struct Seen {
  std::uint64_t words[8] = {};
  std::uint32_t bytes = 0;
  [[nodiscard]] wire::EventType type() const { return as_long().event_type(); }
  [[nodiscard]] wire::TargetLong as_long() const {
    wire::TargetLong event{};
    std::memcpy(&event, words, sizeof event);
    return event;
  }
  [[nodiscard]] wire::TargetShort as_short() const {
    wire::TargetShort event{};
    std::memcpy(&event, words, sizeof event);
    return event;
  }
  [[nodiscard]] wire::InitiatorShort as_reply() const {
    wire::InitiatorShort event{};
    std::memcpy(&event, words, sizeof event);
    return event;
  }
  [[nodiscard]] wire::ReturnCode code() const { return static_cast<wire::ReturnCode>(words[bytes / 8 - 1] >> 56 & 63); }
};

// One process with its own everything: a portal at (VNI 10, PID `pid`, index), an event queue, 64 KiB of memory.
struct Side {
  static constexpr std::uint32_t kVni = 10;
  static constexpr std::uint64_t kIova = 0x40000000;
  static constexpr std::uint32_t kLac = 2;
  static constexpr std::size_t kBytes = 65536;

  Side(Card& on, std::uint32_t its_pid, std::uint32_t eq_slots = 64) : card(on), pid(its_pid) {
    lni = card.lnis.make();
    lni->service = &service;
    lni->acs[kLac] = std::make_unique<AddressContext>();
    map(kIova, wire::kMapRead | wire::kMapWrite);
    eq = make_eq(eq_slots);
    queue = card.target_queues.make();
    queue->lni = lni;
  }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  void map(std::uint64_t iova, std::uint32_t flags) {
    auto md = std::make_unique<Md>(static_cast<std::uint32_t>(mds.size() + 1));
    md->lni = lni;
    md->iova = iova;
    md->length = kBytes;
    md->flags = flags;
    md->memory = &memory;
    lni->acs[kLac]->by_iova[iova] = md.get();
    mds.push_back(std::move(md));
  }
  Eq* make_eq(std::uint32_t slots) {
    Eq* made = card.event_queues.make();
    made->lni = lni;
    made->slots = slots;
    buffers.push_back(std::make_unique<std::vector<std::uint64_t>>(slots * 8));
    made->buffer.direct = reinterpret_cast<std::byte*>(buffers.back()->data());
    states.push_back(std::make_unique<std::uint64_t>(1));
    made->state_page = states.back().get();
    return made;
  }
  Pte& portal(std::uint32_t index, std::uint64_t options, bool enable = true) {
    Pte* pte = card.ptes.make();
    pte->lni = lni;
    pte->eq = eq;
    pte->options = options;
    pte->mappings = 1;
    card.addresses[{kVni, wire::endpoint_of(pid, 9, index), wire::index_ext_of(index)}] = pte;
    if (enable) {
      set_state(*pte, wire::PteState::enabled);
      EXPECT_EQ(next().type(), wire::EventType::state_change);
    }
    return *pte;
  }

  // ---- Commands.
  wire::ReturnCode run(const wire::CmdWords<8>& command) { return card.target_command(*queue, command.words); }
  wire::ReturnCode set_state(Pte& pte, wire::PteState state, std::uint32_t drops = 0xffffff) {
    wire::SetStateCmd c{};
    c.set_header(wire::CmdType::cq, wire::CmdSize::b64, wire::TargetOp::set_state);
    c.set_ptlte_index(pte.id);
    c.set_ptlte_state(state);
    c.set_drop_count(drops);
    return run(c);
  }
  static wire::TargetCmd entry(Pte& pte, wire::TargetOp op, wire::PtlList list, std::uint32_t id) {
    wire::TargetCmd c{};
    c.set_header(wire::CmdType::cq, wire::CmdSize::b64, op);
    c.set_ptlte_index(pte.id);
    c.set_ptl_list(list);
    c.set_buffer_id(id);
    c.set_match_id(wire::kMatchAnyone);
    return c;
  }
  // A buffer at `offset` of the memory for puts and gets.
  static wire::TargetCmd buffer(Pte& pte, wire::PtlList list, std::uint32_t id, std::uint64_t offset,
                                std::uint64_t length, std::uint32_t flags = 0) {
    wire::TargetCmd c = entry(pte, wire::TargetOp::append, list, id);
    c.set_flags(wire::kLeOpPut | wire::kLeOpGet | flags);
    c.set_lac(kLac);
    c.set_start(kIova + offset);
    c.set_length(length);
    return c;
  }
  // The same for whatever match bits.
  static wire::TargetCmd for_all(wire::TargetCmd c) {
    c.set_ignore_bits(~std::uint64_t{0});
    return c;
  }
  // Appended, and the event about it read.
  void append(const wire::TargetCmd& c) {
    EXPECT_EQ(run(c), wire::ReturnCode::ok);
    const Seen seen = next();
    EXPECT_EQ(seen.type(), wire::EventType::link);
    EXPECT_EQ(seen.bytes, 64u);
    EXPECT_EQ(seen.code(), wire::ReturnCode::ok);
    EXPECT_EQ(seen.as_long().buffer_id(), c.buffer_id());
    EXPECT_EQ(seen.as_long().ptl_list(), c.ptl_list());
  }

  // ---- Events.
  std::optional<Seen> poll() {
    for (;;) {
      wire::EventHead head{};
      std::memcpy(&head, eq->buffer.direct + read_at, sizeof head);
      if (head.event_size() == wire::EventSize::none) return std::nullopt;
      Seen seen;
      seen.bytes = wire::bytes_of(head.event_size());
      std::memcpy(seen.words, eq->buffer.direct + read_at, seen.bytes);
      std::memset(eq->buffer.direct + read_at, 0, seen.bytes);
      read_at += seen.bytes;
      if (read_at == std::uint64_t{eq->slots} * 64) read_at = 64;
      if (head.event_type() != wire::EventType::null_event) return seen;
    }
  }
  Seen next() {
    const std::optional<Seen> seen = poll();
    EXPECT_TRUE(seen.has_value()) << "an event was expected";
    acknowledge();
    return seen.value_or(Seen{.words = {}, .bytes = 16});
  }
  bool quiet() { return !poll().has_value(); }
  void acknowledge() {
    wire::EqSwState state{};
    state.set_rd_ptr(static_cast<std::uint32_t>(read_at / 64));
    *eq->state_page = state.word;
  }

  Card& card;
  std::uint32_t pid;
  Service service{1};
  Lni* lni = nullptr;
  BlockMemory memory{kBytes};
  std::vector<std::unique_ptr<Md>> mds;
  std::vector<std::unique_ptr<std::vector<std::uint64_t>>> buffers;
  std::vector<std::unique_ptr<std::uint64_t>> states;
  Eq* eq = nullptr;
  Cq* queue = nullptr;
  std::uint64_t read_at = 64;
};

class TargetTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kMatching = wire::kPteIsMatching;

  // What the other side would send to index `index` of our portal.
  Request request(wire::DmaOp op, std::uint32_t index, std::uint32_t length) {
    Request r;
    r.op = op;
    r.source_nid = fabric.card(1)->settings().nid;
    r.vni = Side::kVni;
    r.endpoint = wire::endpoint_of(here.pid, 9, index);
    r.index_ext = wire::index_ext_of(index);
    r.initiator = wire::match_id(9, there.pid, r.source_nid);
    r.length = length;
    return r;
  }
  Request put(const std::string& text, std::uint64_t match = 0, std::uint64_t offset = 0) {
    Request r = request(wire::DmaOp::put, 0, static_cast<std::uint32_t>(text.size()));
    texts.push_back(std::make_unique<std::string>(text));
    r.local = plain(texts.back()->data(), text.size());
    r.match_bits = match;
    r.remote_offset = offset;
    r.header_data = 0xdada;
    return r;
  }
  Answer send(const Request& r) { return here.card.receive(r); }

  Fabric fabric{2};
  Side here{*fabric.card(0), 7};
  Side there{*fabric.card(1), 9};
  std::vector<std::unique_ptr<std::string>> texts;
};

}  // namespace strait::soft::cassini::testing
