// SPDX-License-Identifier: Apache-2.0
// For tests of the engine: a card whose target side writes down what it is asked, and one client's objects, made by
// hand.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "soft/cassini/engine.hpp"
#include "soft/cassini/translation.hpp"

namespace strait::soft::cassini::bench {

// Bytes of this process as a client's memory: addresses are offsets.
class Bytes : public UserMemory {
 public:
  explicit Bytes(std::size_t size) : bytes_(size + 64) {}
  [[nodiscard]] bool read(std::uint64_t address, void* into, std::size_t length) override {
    ++reads;
    if (!inside(address, length)) return false;
    std::memcpy(into, at(address), length);
    return true;
  }
  [[nodiscard]] bool write(std::uint64_t address, const void* from, std::size_t length) override {
    ++writes;
    if (!inside(address, length)) return false;
    std::memcpy(at(address), from, length);
    return true;
  }
  [[nodiscard]] bool reaches(std::uint64_t address, std::uint64_t length, bool) override {
    return inside(address, length);
  }
  [[nodiscard]] std::byte* direct(std::uint64_t address, std::uint64_t length) override {
    return shared && inside(address, length) ? at(address) : nullptr;
  }
  [[nodiscard]] std::byte* at(std::uint64_t address) {
    const auto base = (reinterpret_cast<std::uintptr_t>(bytes_.data()) + 63) & ~std::uintptr_t{63};
    return reinterpret_cast<std::byte*>(base) + address;
  }
  template <class T>
  [[nodiscard]] T& value(std::uint64_t address) {
    return *reinterpret_cast<T*>(at(address));
  }
  bool shared = true;
  bool gone = false;
  std::uint32_t reads = 0, writes = 0;

 private:
  [[nodiscard]] bool inside(std::uint64_t address, std::uint64_t length) const {
    return !gone && address <= bytes_.size() - 64 && length <= bytes_.size() - 64 - address;
  }
  std::vector<std::byte> bytes_;
};

class RecordingCard : public Card {
 public:
  using Card::Card;
  Answer receive(const Request& request) override {
    requests.push_back(request);
    payloads.emplace_back();
    if (request.op != wire::DmaOp::get && !request.local.empty() && request.op != wire::DmaOp::fetching_atomic) {
      const std::uint32_t bytes =
          request.op == wire::DmaOp::rendezvous_put ? std::min(request.eager_length, request.length) : request.length;
      payloads.back().resize(bytes);
      EXPECT_EQ(read(request.local, payloads.back().data(), bytes), wire::ReturnCode::ok);
    }
    if (meanwhile) meanwhile(request);
    Answer out = answer;
    if (out.code == wire::ReturnCode::ok) out.mlength = request.length;
    return out;
  }
  wire::ReturnCode target_command(Cq&, const std::uint64_t (&command)[8]) override {
    target_commands.push_back({command[0], command[1]});
    return target_code;
  }
  std::vector<Request> requests;
  std::vector<std::vector<std::byte>> payloads;
  std::function<void(const Request&)> meanwhile;
  Answer answer;
  std::vector<std::array<std::uint64_t, 2>> target_commands;
  wire::ReturnCode target_code = wire::ReturnCode::ok;
};

// The client's half of a command queue.
struct Ring {
  Cq* cq = nullptr;
  std::unique_ptr<Bytes> bytes;
  std::array<std::uint64_t, 512> page{};
  std::uint32_t slot = wire::kFirstSlot;  // of 32 bytes

  void raw(const void* command, std::size_t length, std::uint32_t size) {
    std::memset(bytes->at(slot * 32u), 0, size);
    std::memcpy(bytes->at(slot * 32u), command, length);
    slot += size / 32;
    if (slot >= cq->slots * 2) slot = wire::kFirstSlot;
  }
  template <class Command>
  void emit(const Command& command) {
    const std::uint32_t size = wire::bytes_of(wire::size_of_header(static_cast<std::uint8_t>(command.words[0])));
    while (slot * 32 % size != 0) raw("", 1, 32);
    raw(&command, sizeof command, size);
  }
  void emit_words(const std::vector<std::uint64_t>& words, std::uint32_t size) {
    while (slot * 32 % size != 0) raw("", 1, 32);
    raw(words.data(), words.size() * 8, size);
  }
  void ring() {
    if (slot % 2 != 0) raw("", 1, 32);
    __atomic_store_n(page.data(), slot / 2, __ATOMIC_RELEASE);
  }
  [[nodiscard]] wire::QueueStatus status() { return {bytes->value<std::uint64_t>(0)}; }
};

struct Queue {
  Eq* eq = nullptr;
  std::unique_ptr<Bytes> bytes;
  std::array<std::uint64_t, 512> page{};
  std::uint32_t at = 64;

  // The next event that is no filler, as libraries read it; null: none.
  const wire::EventHead* next() {
    for (;;) {
      const auto& head = bytes->value<wire::EventHead>(at);
      if (head.event_size() == wire::EventSize::none) return nullptr;
      const std::uint32_t length = wire::bytes_of(head.event_size());
      if ((static_cast<std::uint8_t>(*bytes->at(at + length - 1)) & 0x3f) == 0) return nullptr;
      at += length;
      if (at >= eq->slots * 64) at = 64;
      if (head.event_type() != wire::EventType::null_event) return &head;
    }
  }
  // What was read is free again.
  void acknowledge(std::uint64_t flags = 0) { page[0] = (at / 64) | flags; }
};

struct Rig {
  static constexpr std::uint64_t kIova = 0x4000000;
  static constexpr std::uint32_t kLac = 2;
  static constexpr std::uint32_t kNid = 0x77;
  static constexpr std::uint32_t kVni = 10;

  explicit Rig(CardSettings settings = {.index = 0, .nid = kNid}) {
    auto made = std::make_unique<RecordingCard>(fabric, settings);
    card = made.get();
    fabric.add(std::move(made));
    lni = card->lnis.make();
    lni->cps[0] = std::make_unique<Cp>();
    lni->cps[0]->vni = kVni;
    lni->acs[kLac] = std::make_unique<AddressContext>();
    map(kIova, 0, 65536, wire::kMapRead | wire::kMapWrite);
  }
  Md* map(std::uint64_t iova, std::uint64_t at, std::uint64_t length, std::uint32_t flags) {
    Md* const md = card->mds.make();
    md->lni = lni;
    md->iova = iova;
    md->length = length;
    md->lac = kLac;
    md->flags = flags;
    md->memory = &memory;
    md->at = at;
    lni->acs[kLac]->by_iova[iova] = md;
    return md;
  }
  std::unique_ptr<Ring> queue(bool transmit, bool triggered, Eq* eq = nullptr, std::uint32_t slots = 64) {
    auto ring = std::make_unique<Ring>();
    ring->bytes = std::make_unique<Bytes>(slots * 64);
    ring->cq = transmit ? card->transmit_queues.make() : card->target_queues.make();
    ring->cq->lni = lni;
    ring->cq->eq = eq;
    ring->cq->transmit = transmit;
    ring->cq->triggered = triggered;
    ring->cq->slots = slots;
    ring->cq->ring = {.memory = ring->bytes.get(), .address = 0, .direct = ring->bytes->at(0)};
    ring->cq->write_pointer_page = ring->page.data();
    card->started(*ring->cq);
    return ring;
  }
  std::unique_ptr<Queue> events(std::uint32_t slots = 64) {
    auto queue = std::make_unique<Queue>();
    queue->bytes = std::make_unique<Bytes>(slots * 64);
    queue->eq = card->event_queues.make();
    queue->eq->lni = lni;
    queue->eq->slots = slots;
    queue->eq->buffer = {.memory = queue->bytes.get(), .address = 0, .direct = queue->bytes->at(0)};
    queue->eq->state_page = queue->page.data();
    return queue;
  }
  struct Counter {
    Ct* ct = nullptr;
    std::array<std::uint64_t, 512> page{};
    alignas(8) std::uint64_t word = 0;
    [[nodiscard]] wire::CtWriteback stored() const { return {word}; }
  };
  std::unique_ptr<Counter> counter() {
    auto made = std::make_unique<Counter>();
    made->ct = card->counters.make();
    made->ct->lni = lni;
    made->ct->doorbell_page = made->page.data();
    made->ct->write_back = {.direct = reinterpret_cast<std::byte*>(&made->word)};
    card->started(*made->ct);
    return made;
  }
  void drive() {
    while (card->drive() != 0) {
    }
  }

  Bytes memory{65536};
  Fabric fabric{0};
  RecordingCard* card = nullptr;
  Lni* lni = nullptr;
};

inline wire::FullDmaCmd put(std::uint64_t iova, std::uint32_t bytes, std::uint32_t flags = wire::kEventSendDisable) {
  wire::FullDmaCmd command{};
  command.set_header(wire::CmdType::dma, wire::CmdSize::b64, wire::DmaOp::put);
  command.set_lac(Rig::kLac);
  command.set_dfa(wire::unicast_dfa(Rig::kNid, 0x123));
  command.set_local_addr(iova);
  command.set_request_len(bytes);
  command.set_flags(flags);
  return command;
}

// A counter's command, in a slot of 64 bytes.
struct CounterCommand : wire::CmdWords<8> {
  explicit CounterCommand(wire::CtOp op) : wire::CmdWords<8>{} {
    set_header(wire::CmdType::ct, wire::CmdSize::b64, op);
  }
  wire::CtCmd& ct() { return *reinterpret_cast<wire::CtCmd*>(words); }
};

}  // namespace strait::soft::cassini::bench
