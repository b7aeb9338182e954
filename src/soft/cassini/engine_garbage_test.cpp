// SPDX-License-Identifier: Apache-2.0
// Rings full of nonsense. What a hostile client writes may stop its own queues; nothing else of the device notices.
#include <gtest/gtest.h>

#include <random>

#include "soft/cassini/engine_testing.hpp"

namespace strait::soft::cassini {
namespace {

using bench::Rig;

TEST(CassiniGarbage, RandomCommandsDoNothingBad) {
  std::mt19937_64 random(20240611);
  std::uint64_t refused = 0;
  std::uint64_t carried_out = 0;
  for (int round = 0; round < 400; ++round) {
    Rig client;
    auto events = client.events();
    auto counter = client.counter();
    auto bystander = client.queue(true, false);
    std::vector<std::unique_ptr<bench::Ring>> rings;
    rings.push_back(client.queue(true, false, events->eq));
    rings.push_back(client.queue(true, true, events->eq));
    rings.push_back(client.queue(false, false, events->eq));
    for (auto& ring : rings) {
      for (std::uint32_t at = 0; at < 64 * 64; at += 8) ring->bytes->value<std::uint64_t>(at) = random();
      // Half of the rounds look like commands from afar, so that more than the first byte is tried.
      if (round % 2 == 0) {
        for (std::uint32_t slot = wire::kFirstSlot; slot < 128; ++slot) {
          auto& word = ring->bytes->value<std::uint64_t>(slot * 32);
          const std::uint64_t type = ring->cq->triggered ? 2 : ring->cq->transmit ? random() % 2 : 3;
          const std::uint64_t likely[] = {1, 2, 3, 8, 9};  // puts and gets
          const std::uint64_t op = random() % 4 == 0 ? random() % 16 : likely[random() % 5];
          const std::uint64_t size = random() % 8 == 0 ? random() % 4 : op < 8 ? 1 : 0;
          word =
              (word & ~std::uint64_t{0xffffff}) | type | size << 2 | op << 4 | (random() % 256) << 8 | Rig::kLac << 16;
          word = (word & 0xffffffffu) | std::uint64_t{wire::unicast_dfa(Rig::kNid, 1)} << 32;
          ring->bytes->value<std::uint64_t>(slot * 32 + 16) = Rig::kIova + random() % 4096;
          ring->bytes->value<std::uint64_t>(slot * 32 + 24) =
              random() % 65536 | (random() % 2) << 32 | (random() % 2) << 48;
        }
      }
      ring->page[0] = round % 5 == 0 ? random() : 4 + random() % 60;
      if (round % 7 == 0) {
        for (std::size_t i = 128; i < 512; ++i) ring->page[i] = random();
      }
    }
    if (round % 3 == 0) counter->page[random() % 512] = random();
    for (int i = 0; i < 20; ++i) client.card->drive();
    for (auto& ring : rings) refused += ring->cq->failed ? 1 : 0;
    carried_out += client.card->requests.size();
    EXPECT_EQ(client.card->tles_in_use, rings[1]->cq->unacknowledged);

    const std::size_t before = client.card->requests.size();
    bystander->emit(bench::put(Rig::kIova, 8));
    bystander->ring();
    client.drive();
    EXPECT_EQ(client.card->requests.size(), before + 1) << "the next queue works";
    for (auto& ring : rings) client.card->stopping(*ring->cq);
    EXPECT_EQ(client.card->tles_in_use, 0u);
  }
  EXPECT_GT(refused, 400u);
  EXPECT_GT(carried_out, 100u);
}

}  // namespace
}  // namespace strait::soft::cassini
