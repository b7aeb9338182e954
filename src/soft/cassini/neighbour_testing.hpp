// SPDX-License-Identifier: Apache-2.0
// For tests of several clients on one card: a program with one of everything, made by the calls that programs make.
#pragma once

#include <array>
#include <cstring>
#include <string>

#include "soft/cassini/testing.hpp"

namespace strait::soft::cassini::testing {

// The program's half of a command queue.
struct ClientRing {
  std::uint32_t id = 0;
  std::uint32_t blocks = 0;
  std::uint32_t at = wire::kFirstBlock;
  sys::Mapping ring, launch;

  // Padding as the queue wants it: counters' queues take their own kind only.
  template <class Command>
  void emit(const Command& command) {
    const std::uint32_t size = wire::bytes_of(wire::size_of_header(static_cast<std::uint8_t>(command.words[0])));
    emit_bytes(&command, sizeof command, std::max(size, wire::kBlockBytes));
  }
  void emit_bytes(const void* bytes, std::size_t length, std::uint32_t size) {
    while (std::uint64_t{at} * wire::kBlockBytes % size != 0) block(&padding, sizeof padding);
    const auto* from = static_cast<const std::byte*>(bytes);
    for (std::uint32_t done = 0; done < size; done += wire::kBlockBytes) {
      block(from + std::min<std::size_t>(done, length),
            std::min<std::size_t>(wire::kBlockBytes, length - std::min<std::size_t>(done, length)));
    }
  }
  void block(const void* bytes, std::size_t length) {
    std::byte* const to = ring.data() + std::uint64_t{at} * wire::kBlockBytes;
    std::memset(to, 0, wire::kBlockBytes);
    if (length != 0) std::memcpy(to, bytes, length);
    at = at + 1 == blocks ? wire::kFirstBlock : at + 1;
  }
  void announce(std::uint64_t pointer) const {
    __atomic_store_n(reinterpret_cast<std::uint64_t*>(launch.data()), pointer, __ATOMIC_RELEASE);
  }
  void announce() const { announce(at); }
  [[nodiscard]] wire::QueueStatus status() const {
    wire::QueueStatus out{};
    std::memcpy(&out, ring.data(), sizeof out);
    return out;
  }
  std::uint64_t padding = 0;
};

class Neighbour {
 public:
  static constexpr std::uint32_t kVni = 1;
  static constexpr std::size_t kPages = 16;

  Neighbour(Card& card, std::uint32_t number, std::uint32_t its_pid, std::uint32_t service = wire::kDefaultService,
            const Who& who = kUser, const ClientOptions& options = {})
      : client(card, who, number, options), pid(its_pid), nid(card.settings().nid) {
    lni = client.lni(service);
    cp = client.cp(lni, kVni, wire::CpType::triggered);
    domain = client.domain(lni, kVni, pid).domain;
    md = client.map_memory(lni, memory.data(), memory.size());
    const wire::Md event_md = client.map_memory(lni, events.data(), events.size());
    const wire::EqAllocResp eq_made = client.eq(lni, event_md, events.data(), events.size());
    eq = eq_made.eq;
    event_state = client.map(eq_made.csr);
    transmit = queue(wire::kCqIsTx);
    target = queue(0);
    counting = queue(wire::kCqIsTx | wire::kCqTxTriggered);
    counting.padding = wire::header_byte(wire::CmdType::ct, wire::CmdSize::b64, wire::CtOp::noop);
    const wire::CtAllocResp ct_made = client.ct(lni, &word);
    ct = ct_made.ctn;
    doorbell = client.map(ct_made.doorbell);
  }
  Neighbour(const Neighbour&) = delete;
  Neighbour& operator=(const Neighbour&) = delete;

  ClientRing queue(std::uint32_t flags) {
    const wire::CqAllocResp made = client.cq(lni, flags, 0, eq, 1024);
    ClientRing out;
    out.id = made.cq;
    out.blocks = made.count;
    out.ring = client.map(made.cmds);
    out.launch = client.map(made.wp_addr);
    return out;
  }
  // A portal, enabled once the device has looked.
  std::uint32_t portal(std::uint32_t index, std::uint64_t options = 0, bool with_events = false) {
    const std::uint32_t pte = client.pte(lni, with_events ? eq : wire::kEqNone, options);
    client.map_pte(pte, domain, index);
    wire::SetStateCmd c{};
    c.set_header(wire::CmdType::cq, wire::CmdSize::b64, wire::TargetOp::set_state);
    c.set_ptlte_index(pte);
    c.set_ptlte_state(wire::PteState::enabled);
    c.set_drop_count(0xffffff);
    target.emit(c);
    target.announce();
    return pte;
  }
  [[nodiscard]] wire::TargetCmd entry(std::uint32_t pte, wire::PtlList list, std::uint64_t offset, std::uint64_t bytes,
                                      std::uint32_t flags = 0) const {
    wire::TargetCmd c{};
    c.set_header(wire::CmdType::cq, wire::CmdSize::b64, wire::TargetOp::append);
    c.set_ptlte_index(pte);
    c.set_ptl_list(list);
    c.set_flags(wire::kLeOpPut | wire::kLeOpGet | flags);
    c.set_match_id(wire::kMatchAnyone);
    c.set_ignore_bits(~std::uint64_t{0});
    c.set_lac(md.lac);
    c.set_start(md.iova + offset);
    c.set_length(bytes);
    return c;
  }
  void append(const wire::TargetCmd& c) {
    target.emit(c);
    target.announce();
  }
  [[nodiscard]] wire::FullDmaCmd put(const Neighbour& to, std::uint32_t index, std::uint64_t from, std::uint32_t bytes,
                                     std::uint64_t remote_offset = 0, std::uint32_t flags = 0) const {
    wire::FullDmaCmd c{};
    c.set_header(wire::CmdType::dma, wire::CmdSize::b64, wire::DmaOp::put);
    c.set_dfa(wire::unicast_dfa(to.nid, wire::endpoint_of(to.pid, wire::kMaxPidBits, index)));
    c.set_index_ext(wire::index_ext_of(index));
    c.set_lac(md.lac);
    c.set_local_addr(md.iova + from);
    c.set_request_len(bytes);
    c.set_remote_offset(remote_offset);
    c.set_ct(ct);
    c.set_flags(flags | wire::kEventCtAck | wire::kEventSuccessDisable);
    return c;
  }
  void send(const wire::FullDmaCmd& c) {
    transmit.emit(c);
    transmit.announce();
  }
  [[nodiscard]] Ct& counter() { return *client.client->card().counters.find(ct); }

  // Which comes first also goes last: the device stores to these until the client is gone.
  Pages memory{kPages};
  Pages events{1};
  alignas(8) std::uint64_t word = 0;
  TestClient client;
  std::uint32_t pid, nid;
  std::uint32_t lni = 0, domain = 0, eq = 0, ct = 0;
  wire::CpAllocResp cp{};
  wire::Md md{};
  sys::Mapping event_state, doorbell;
  ClientRing transmit, target, counting;
};

// Does one that behaves still get what it asks for? Puts from its first page into its second, and looks.
class Friend : public Neighbour {
 public:
  Friend(Card& card, std::uint32_t number, std::uint32_t its_pid, std::uint32_t service = wire::kDefaultService)
      : Neighbour(card, number, its_pid, service) {
    std::memset(memory.data(), 0x5a, memory.size());
    const std::uint32_t pte = portal(0);
    append(entry(pte, wire::PtlList::priority, sys::page_bytes(), sys::page_bytes()));
  }
  // In at most `passes` looks of the device.
  ::testing::AssertionResult works(Fabric& fabric, int passes = 4) {
    ++round_;
    std::byte* const from = memory.data();
    std::byte* const to = memory.data() + sys::page_bytes();
    for (std::size_t i = 0; i < kBytes; ++i) from[i] = static_cast<std::byte>(i + round_);
    const std::uint64_t before = counter().success;
    send(put(*this, 0, 0, kBytes));
    int used = 0;
    while (counter().success == before && used < passes) fabric.drive(), ++used;
    if (counter().success != before + 1 || counter().failure != 0)
      return ::testing::AssertionFailure() << "not counted after " << used << " passes";
    if (std::memcmp(from, to, kBytes) != 0) return ::testing::AssertionFailure() << "other bytes than were put";
    for (std::size_t i = 2 * sys::page_bytes(); i < memory.size(); ++i) {
      if (memory.data()[i] != std::byte{0x5a}) return ::testing::AssertionFailure() << "byte " << i << " was touched";
    }
    return ::testing::AssertionSuccess();
  }

 private:
  static constexpr std::uint32_t kBytes = 256;
  std::uint64_t round_ = 0;
};

}  // namespace strait::soft::cassini::testing
