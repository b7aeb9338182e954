// SPDX-License-Identifier: Apache-2.0
// What our code puts into command rings is what the public inline functions do, byte for byte, where they write at all.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "cxi_rig.hpp"
#include "golden_cxi_ring.hpp"

namespace {

using namespace paper;
using strait::device::head_of;
using strait::device::Sharing;
namespace cx = strait::wire::cxi;

const golden_cxi::RingImage& image(std::string_view name) {
  for (const golden_cxi::RingImage& ring : golden_cxi::rings())
    if (ring.name == name) return ring;
  ADD_FAILURE() << "no recording is called " << name;
  return golden_cxi::rings().front();
}

// A queue that no device serves: rings of 64 blocks, counter 1234, one place with counter 321, event queue 777.
struct Silent {
  Silent() : transmit(4096), triggered(4096), pages(8192), word{}, operand{} {
    for (Aligned* ring : {&transmit, &triggered}) {
      std::memset(ring->data(), 0xee, 4096);
      *ring->words() = cx::initial_queue_status().word;
    }
    counter = {{head_of<ki::Counter>(), &word[0], nullptr, 1234, 0}, 0, 0};
    place = {{head_of<ki::Counter>(), &word[1], nullptr, 321, 0}, &operand, 0x123456789300, 5, 0};
    ki::QueueMemory m;
    m.transmit = {transmit.data(), 64, pages.data(), nullptr, ki::RingKind::transmit, strait::device::Reach::system};
    m.triggered = {
        triggered.data(), 64, pages.data() + 4096, nullptr, ki::RingKind::triggered, strait::device::Reach::system};
    m.counter = &counter;
    m.counters = 1;
    m.places = &place;
    m.count_of_places = 1;
    m.event_queue = 777;
    m.initiator = 0xc0ffee;
    EXPECT_TRUE(ki::open_queue(state, m));
  }
  ki::Queue queue() { return {head_of<ki::Queue>(), Sharing::one_thread, 0, &state}; }

  Aligned transmit, triggered, pages;
  std::uint64_t word[2];
  std::uint64_t operand;
  ki::CounterState counter{};
  ki::SignalPlace place{};
  ki::QueueState state{};
};

void expect_image(const std::string& name, const Aligned& ring, std::uint64_t write_pointer) {
  const golden_cxi::RingImage& golden = image(name);
  EXPECT_EQ(write_pointer, golden.write_pointer);
  ASSERT_FALSE(golden.hex.empty());
  for (std::size_t i = 0; i < golden.hex.size(); ++i) {
    if (golden.hex[i] == '-') continue;
    const unsigned byte = ring.data()[256 + i / 2];
    const char digit = "0123456789abcdef"[i % 2 == 0 ? byte >> 4 : byte & 15];
    ASSERT_EQ(digit, golden.hex[i]) << name << ": slot " << 8 + i / 64 << ", byte " << i / 2 % 32;
  }
  // Behind the last command nothing is written.
  for (std::size_t i = 256 + golden.hex.size() / 2; i < 4096; ++i) ASSERT_EQ(ring.data()[i], 0xee) << i;
}

constexpr std::uint64_t kIova = 0x123456789000;
ki::LocalMemory here() {
  return {head_of<ki::LocalMemory>(), kIova, std::uint64_t{1} << 40, 5, 0};
}
ki::RemoteMemory there() {
  return {head_of<ki::RemoteMemory>(), 0, std::uint64_t{1} << 40, 0, 0x12345678, 3, 0x12345678, 9, 8, 0};
}
constexpr ki::How kLater{.ring_later = true};

TEST(CxiGolden, PutsAndGets) {
  Silent silent;
  ki::Lane<Sharing::one_thread> lane(silent.queue());
  ASSERT_TRUE(lane.put(here(), 0, there(), 0x40, 4096, {.ring_later = true, .tag = 0x1122334455667788}).ok());
  ASSERT_TRUE(lane.get(here(), 8, there(), 0x48, 24, kLater).ok());
  ASSERT_TRUE(lane.put(here(), 16, there(), 0x50, 0xffffffff, {.match_bits = 0xfedcba9876543210}).ok());
  expect_image("puts_and_gets", silent.transmit, *silent.pages.words());
}

TEST(CxiGolden, Immediates) {
  struct Three {
    std::uint8_t bytes[3];
  };
  Silent silent;
  ki::Lane<Sharing::one_thread> lane(silent.queue());
  ASSERT_TRUE(lane.put_value(std::uint64_t{0x0807060504030201}, there(), 0x60, kLater).ok());
  ASSERT_TRUE(lane.put_value(Three{{1, 2, 3}}, there(), 0x68).ok());
  ASSERT_TRUE(lane.add(there(), 0x70, 5, kLater).ok());
  ASSERT_TRUE(lane.fetch_add(there(), 0x78, 6, here(), 0x100, kLater).ok());
  ASSERT_TRUE(lane.compare_swap(there(), 0x80, 8, 7, here(), 0x108, kLater).ok());
  ASSERT_TRUE(lane.signal(there(), 3, 1).ok());
  expect_image("immediates", silent.transmit, *silent.pages.words());
}

TEST(CxiGolden, AtomicsOfMemory) {
  Silent silent;
  ki::Lane<Sharing::one_thread> lane(silent.queue());
  const ki::LocalMemory result = here();
  ASSERT_TRUE(lane.put(here(), 0, there(), 0, 8, kLater).ok());
  ASSERT_TRUE(lane.atomic(ki::add_words(), here(), 0x200, there(), 0x88, &result, 0x208, kLater).ok());
  ASSERT_TRUE(lane.atomic(ki::add_words(), here(), 0x200, there(), 0x90, nullptr, 0).ok());
  expect_image("atomics_of_memory", silent.transmit, *silent.pages.words());
}

TEST(CxiGolden, Counters) {
  Silent silent;
  ki::OwnCommands<ki::RingKind::triggered> ring;
  ring.open(silent.state.triggered);
  ki::store_ct(ring.claim<2>(), ki::ct_get(1234));
  ki::store_ct(ring.claim<2>(), ki::trig_event(1234, 0xffffffffffff));
  ki::store_ct(ring.claim<2>(), ki::ct_set(1234, 0x123456789abc, 0x55));
  ki::store_ct(ring.claim<2>(), ki::ct_cancel(1234));
  ring.ring();
  const std::uint64_t shown = silent.pages.words()[512];
  EXPECT_EQ(shown, image("counters").write_pointer);
  // Of each block the functions write 24 bytes and we 32.
  for (std::size_t at = 0; at < image("counters").hex.size(); at += 128) {
    for (std::size_t i = at; i < at + 48; ++i) {
      const unsigned byte = silent.triggered.data()[256 + i / 2];
      ASSERT_EQ("0123456789abcdef"[i % 2 == 0 ? byte >> 4 : byte & 15], image("counters").hex[i]) << i;
    }
  }
}

TEST(CxiGolden, TheTriggeredHalfOfASignalledPut) {
  Silent silent;
  ki::Lane<Sharing::one_thread> lane(silent.queue());
  ASSERT_TRUE(lane.put_signal(here(), 0, there(), 0, 8, 0, 1, kLater).ok());
  EXPECT_EQ(lane.put_signal(here(), 0, there(), 0, 8, 1, 1, kLater).posted, ki::Posted::full);  // the place is taken
  silent.word[1] = 2;
  ASSERT_TRUE(lane.put_signal(here(), 0, there(), 0, 8, 1, 1).ok());
  const golden_cxi::RingImage& golden = image("signals");
  EXPECT_EQ(silent.pages.words()[512], golden.write_pointer);
  for (std::size_t i = 0; i < golden.hex.size(); ++i) {
    if (golden.hex[i] == '-') continue;
    const unsigned byte = silent.triggered.data()[256 + i / 2];
    ASSERT_EQ("0123456789abcdef"[i % 2 == 0 ? byte >> 4 : byte & 15], golden.hex[i])
        << "slot " << 8 + i / 64 << ", byte " << i / 2 % 32;
  }
}

TEST(CxiGolden, AroundTheEnd) {
  Silent silent;
  {
    ki::Lane<Sharing::one_thread> lane(silent.queue());
    for (std::uint64_t i = 0; i < 57; ++i)
      ASSERT_TRUE(lane.put(here(), i, there(), i, i, {.ring_later = true, .tag = i}).ok());
    lane.ring();
    EXPECT_EQ(*silent.pages.words(), 61u);
    *silent.transmit.words() = std::uint64_t{1} << 48 | 61;
    for (std::uint64_t i = 0; i < 3; ++i)
      ASSERT_TRUE(lane.atomic(ki::add_words(), here(), 0x200 + 8 * i, there(), 8 * i, nullptr, 0, kLater).ok());
    lane.ring();
  }
  expect_image("around", silent.transmit, *silent.pages.words());
}

}  // namespace
