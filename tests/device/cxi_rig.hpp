// SPDX-License-Identifier: Apache-2.0
// A queue in this process's memory and the Cassini on paper behind it, as the host would lay them out.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "paper_cassini.hpp"
#include "strait/device/cxi/lane.hpp"

namespace paper {

namespace dev = strait::device;
namespace ki = strait::device::cxi;

inline constexpr std::uint32_t kDfa = 0x12345;
inline constexpr std::uint32_t kSignalIndex = 9;
inline constexpr std::uint32_t kDataIndex = 3;
inline constexpr std::uint32_t kLac = 5;
inline constexpr std::uint32_t kFirstCt = 100;
inline constexpr std::uint32_t kFirstPlaceCt = 200;
inline constexpr std::uint32_t kTargetCounter = 3;  // counter of ours that the peer's memory counts on

class Aligned {
 public:
  explicit Aligned(std::size_t bytes)
      : bytes_(bytes), base_(static_cast<std::uint8_t*>(::operator new(bytes, std::align_val_t{4096}))) {
    std::memset(base_, 0, bytes);
  }
  ~Aligned() { ::operator delete(base_, std::align_val_t{4096}); }
  Aligned(const Aligned&) = delete;
  Aligned& operator=(const Aligned&) = delete;
  std::uint8_t* data() const { return base_; }
  std::uint64_t* words() const { return reinterpret_cast<std::uint64_t*>(base_); }
  std::size_t size() const { return bytes_; }

 private:
  std::size_t bytes_;
  std::uint8_t* base_;
};

struct CxiShape {
  dev::Sharing sharing = dev::Sharing::one_thread;
  std::uint32_t blocks = 64;
  std::uint32_t places = 4;
  std::uint32_t counters = 4;
  bool reorder = false;
  std::uint64_t first_success = 0;  // of counter 0, near the wrap
  std::uint64_t first_uses = 0;     // of every place
};

struct CxiRig {
  explicit CxiRig(const CxiShape& s = {})
      : shape(s),
        transmit(std::size_t{s.blocks} * 64),
        triggered(std::size_t{s.blocks} * 64),
        pages(4096 * (2 + s.counters + s.places)),
        words((s.counters + s.places) * 64),
        marks(2 * std::size_t{s.blocks}),
        counters(s.counters),
        places(s.places),
        operands(s.places * 64),
        events(4096),
        local(1 << 16),
        remote(1 << 16),
        signals(512) {
    std::memset(transmit.data(), 0xa5, transmit.size());
    std::memset(triggered.data(), 0xa5, triggered.size());
    device = std::make_unique<Cassini>(s.reorder);
    for (std::uint32_t i = 0; i < s.counters + s.places; ++i) {
      std::uint64_t* const page = reinterpret_cast<std::uint64_t*>(pages.data() + 4096 * (2 + i));
      page[16] = page[24] = ~std::uint64_t{0};
      std::uint64_t* const word = words.words() + i * 8;
      const bool place = i >= s.counters;
      const std::uint32_t number = place ? kFirstPlaceCt + i - s.counters : kFirstCt + i;
      const ki::Counter c{dev::head_of<ki::Counter>(), word, page, number, ki::kMemoryDoorbell};
      const std::uint64_t start = place ? 2 * s.first_uses : i == 0 ? s.first_success : 0;
      *word = start;
      device->count_on(number, word, page, start);
      if (!place) {
        counters[i] = {c, start, 0};
        continue;
      }
      std::uint64_t* const operand = operands.words() + (i - s.counters) * 8;
      places[i - s.counters] = {c, operand, reinterpret_cast<std::uint64_t>(operand), kLac, 0};
    }
    ki::QueueMemory m;
    m.sharing = s.sharing;
    m.transmit = {transmit.data(), s.blocks, pages.data(), marks.data(), ki::RingKind::transmit, dev::Reach::system};
    m.triggered = {triggered.data(),        s.blocks,          pages.data() + 4096, marks.data() + s.blocks,
                   ki::RingKind::triggered, dev::Reach::system};
    m.counter = counters.data();
    m.counters = s.counters;
    m.places = places.data();
    m.count_of_places = s.places;
    m.abort = &abort;
    m.events = events.data();
    m.event_bytes = 4096;
    m.event_queue = 7;
    m.initiator = 0x00c0ffee;
    EXPECT_TRUE(ki::open_queue(state, m));
    state.signalled = s.first_uses * s.places;
    transmit_ring.blocks = transmit.data();
    transmit_ring.count = triggered_ring.count = s.blocks;
    transmit_ring.write_pointer = pages.words();
    triggered_ring.blocks = triggered.data();
    triggered_ring.write_pointer = reinterpret_cast<std::uint64_t*>(pages.data() + 4096);
    triggered_ring.triggered = true;
    device->events_to(events.data(), 4096);
    device->allow_local(kLac, local.data(), local.size());
    device->allow_local(kLac, operands.data(), operands.size());
    device->append(kDfa, kDataIndex, remote.data(), remote.size(), kFirstCt + kTargetCounter);
    device->append(kDfa, kSignalIndex, signals.data(), signals.size(), 0);
    device->serve(&transmit_ring);
    device->serve(&triggered_ring);
  }

  ki::Queue queue() { return {dev::head_of<ki::Queue>(), shape.sharing, 0, &state}; }
  ki::LocalMemory from() const {
    return {dev::head_of<ki::LocalMemory>(), reinterpret_cast<std::uint64_t>(local.data()), local.size(), kLac, 0};
  }
  ki::RemoteMemory to() const {
    return {dev::head_of<ki::RemoteMemory>(), 0, remote.size(), 0, kDfa, kDataIndex, kDfa, kSignalIndex, 64, 0};
  }
  dev::Signal signal(std::uint32_t i) const { return {dev::head_of<dev::Signal>(), signals.words() + i}; }

  CxiShape shape;
  Aligned transmit, triggered, pages, words;
  std::vector<std::uint64_t> marks;
  std::vector<ki::CounterState> counters;
  std::vector<ki::SignalPlace> places;
  Aligned operands, events, local, remote, signals;
  std::uint32_t abort = 0;
  ki::QueueState state{};
  Cassini::Ring transmit_ring, triggered_ring;
  std::unique_ptr<Cassini> device;  // last: it uses the rest
};

inline dev::Deadline soon() {
  return dev::Deadline::after_ns(20'000'000'000);
}

}  // namespace paper
