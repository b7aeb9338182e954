// SPDX-License-Identifier: Apache-2.0
// Operations of every kind while messages are lost, doubled, overtaken and damaged on purpose, over every carrier.
#include <algorithm>
#include <deque>
#include <tuple>

#include "soft/nic/testing.hpp"

namespace strait::soft::nic::testing {
namespace {

// A run of random operations of one requester, and what both memories must hold afterwards.
class Mixed {
 public:
  Mixed(Pair& pair, unsigned seed) : pair_(pair), state_(seed * 2654435761u + 1) {
    local_ = pattern(kBytes, seed);
    remote_ = pattern(kBytes, seed + 1);
    expected_local_ = local_;
    expected_remote_ = remote_;
    received_.resize(kBytes);
    lkey_ = pair.reg_a(local_.data(), kBytes);
    rkey_ = pair.reg_b(remote_.data(), kBytes);
    receive_key_ = pair.reg_b(received_.data(), kBytes);
  }

  void run(int operations) {
    for (int i = 0; i < operations || !under_way_.empty();) {
      if (i < operations && under_way_.size() < kWindow && receives_.size() < 8) {
        post();
        ++i;
      } else {
        reap();
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
    EXPECT_EQ(local_, expected_local_);
    EXPECT_EQ(remote_, expected_remote_);
  }

 private:
  static constexpr std::size_t kBytes = 1 << 18;
  static constexpr std::size_t kWindow = 12;
  // Reads land in the upper half of the local memory, which nothing else reads: what they bring depends on no order.
  static constexpr std::uint64_t kHalf = kBytes / 2;

  std::uint32_t random(std::uint32_t below) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<std::uint32_t>(state_ >> 20) % below;
  }

  void post() {
    const std::uint32_t kind = random(6);
    const std::uint32_t sizes[] = {1, 8, 13, 64, 1000, 4096, 8193, 30'000};
    const std::uint32_t n = sizes[random(8)];
    const std::uint64_t from = random(static_cast<std::uint32_t>(kHalf) - n);
    const std::uint64_t to = random(static_cast<std::uint32_t>(kBytes) - n);
    Wqe wqe{.raddr = address_of(remote_.data()) + to,
            .rkey = rkey_,
            .data = {{address_of(local_.data()) + from, n, lkey_}}};
    switch (kind) {
      case 0:
      case 1:
        wqe.opcode = m::Opcode::rdma_write;
        std::copy_n(expected_local_.begin() + static_cast<std::ptrdiff_t>(from), n,
                    expected_remote_.begin() + static_cast<std::ptrdiff_t>(to));
        break;
      case 2: {
        wqe.opcode = m::Opcode::rdma_read;
        const std::uint64_t into = kHalf + random(static_cast<std::uint32_t>(kHalf) - n);
        wqe.data = {{address_of(local_.data()) + into, n, lkey_}};
        std::copy_n(expected_remote_.begin() + static_cast<std::ptrdiff_t>(to), n,
                    expected_local_.begin() + static_cast<std::ptrdiff_t>(into));
        break;
      }
      case 3: {
        wqe.opcode = m::Opcode::atomic_fa;
        const std::uint64_t word = to / 8 * 8;
        const std::uint64_t into = (kHalf + random(static_cast<std::uint32_t>(kHalf) - 8)) / 8 * 8;
        wqe.raddr = address_of(remote_.data()) + word;
        wqe.data = {{address_of(local_.data()) + into, 8, lkey_}};
        const std::uint64_t add = random(1000);
        wqe.atomic = {add, 0};
        std::uint64_t value = 0;
        std::memcpy(&value, expected_remote_.data() + word, 8);
        std::memcpy(expected_local_.data() + into, &value, 8);
        value += add;
        std::memcpy(expected_remote_.data() + word, &value, 8);
        break;
      }
      default: {
        const bool send = kind == 4;
        wqe.opcode = send ? m::Opcode::send_imm : m::Opcode::rdma_write_imm;
        wqe.imm = next_imm_++;
        const std::uint64_t slot = (posted_receives_++ % 8) * (kBytes / 8);
        pair_.qb->post_receive(
            {{address_of(received_.data()) + slot, static_cast<std::uint32_t>(kBytes / 8), receive_key_}});
        std::vector<std::byte> bytes(expected_local_.begin() + static_cast<std::ptrdiff_t>(from),
                                     expected_local_.begin() + static_cast<std::ptrdiff_t>(from + n));
        if (!send) std::copy(bytes.begin(), bytes.end(), expected_remote_.begin() + static_cast<std::ptrdiff_t>(to));
        receives_.push_back({wqe.imm, n, send, slot, std::move(bytes)});
        break;
      }
    }
    // Only a fence keeps a write from changing what an earlier read has yet to bring, here and on hardware.
    wqe.flags |= m::kFenceAndInitiatorSmall;
    under_way_.push_back(pair_.qa->post(wqe));
  }

  void reap() {
    const auto event = pair_.wait(*pair_.qa);
    ASSERT_TRUE(event) << "nothing completes any more\n"
                       << pair_.a->counters_text() << "\n"
                       << pair_.b->counters_text();
    ASSERT_EQ(event->syndrome, m::Syndrome::none);
    ASSERT_EQ(event->counter, under_way_.front() & 0xffff) << "completions come in order";
    under_way_.pop_front();
    while (const auto received = pair_.qb->poll()) {
      ASSERT_FALSE(receives_.empty());
      const Receive& expected = receives_.front();
      ASSERT_EQ(received->opcode, expected.send ? m::CqeOpcode::responder_send_imm : m::CqeOpcode::responder_write_imm);
      ASSERT_EQ(__builtin_bswap32(received->imm), expected.imm) << "in order, none twice";
      ASSERT_EQ(received->bytes, expected.length);
      if (expected.send) {
        ASSERT_EQ(std::memcmp(received_.data() + expected.slot, expected.bytes.data(), expected.length), 0);
      }
      receives_.pop_front();
    }
  }

  struct Receive {
    std::uint32_t imm;
    std::uint32_t length;
    bool send;
    std::uint64_t slot;
    std::vector<std::byte> bytes;
  };
  Pair& pair_;
  std::uint64_t state_;
  std::vector<std::byte> local_, remote_, expected_local_, expected_remote_, received_;
  std::uint32_t lkey_ = 0, rkey_ = 0, receive_key_ = 0;
  std::deque<std::uint64_t> under_way_;
  std::deque<Receive> receives_;
  std::uint32_t next_imm_ = 1;
  std::uint64_t posted_receives_ = 0;
};

class Lossy : public ::testing::TestWithParam<std::tuple<Over, const char*>> {};

INSTANTIATE_TEST_SUITE_P(Faults, Lossy,
                         ::testing::Combine(::testing::Values(Over::one_copy, Over::through_the_ring, Over::packets),
                                            ::testing::Values("seed=1", "drop=5%,seed=2", "dup=5%,seed=3",
                                                              "reorder=5%,seed=4", "corrupt=5%,seed=5",
                                                              "delay=3%:300us,seed=6", "rnr=20%,seed=7",
                                                              "drop=5%,dup=2%,reorder=2%,corrupt=1%,rnr=2%,seed=8",
                                                              "drop=20%,dup=10%,reorder=10%,seed=9")));

TEST_P(Lossy, EveryOperationHappensOnceAndInOrder) {
  PairConfig config(std::get<0>(GetParam()));
  config.faults = FaultPlan::parse(std::get<1>(GetParam())).value();
  Pair pair(config, 64, 2'000'000'000);
  Mixed mixed(pair, static_cast<unsigned>(config.faults->seed));
  mixed.run(400);
}

}  // namespace
}  // namespace strait::soft::nic::testing
