// SPDX-License-Identifier: Apache-2.0
// The rail on the software Cassini: two NICs of it, in this process, with the rings a Node uses.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "rail/cxi/plugin.hpp"
#include "rail/mlx5/nic.hpp"
#include "rail/mlx5/queue.hpp"
#include "strait/device/completion_ring.hpp"
#include "strait/device/post.hpp"
#include "strait/wire/cxi.hpp"
#include "sys/clock.hpp"
#include "sys/event_set.hpp"
#include "sys/pause.hpp"

namespace strait::rail {
namespace {
namespace m = wire::mlx5;

constexpr std::uint32_t kAll =
    STRAIT_NIC_LOCAL_WRITE | STRAIT_NIC_REMOTE_WRITE | STRAIT_NIC_REMOTE_READ | STRAIT_NIC_REMOTE_ATOMIC;
constexpr std::int64_t kLongNs = 20'000'000'000;

std::unique_ptr<Nic> open_nic(const std::string& host, int device) {
  auto nic =
      Nic::open(cxi::nic_plugin(), fmt::format("device={}{},soft_library={}", host, device, STRAIT_SOFT_LIBRARY));
  if (!nic) ADD_FAILURE() << nic.error().explain();
  return nic ? std::move(*nic) : nullptr;
}

struct End {
  End(const std::string& host, int device, std::uint32_t access = kAll) : End(open_nic(host, device), access) {}
  explicit End(std::unique_ptr<Nic> opened, std::uint32_t access = kAll) : nic(std::move(opened)), bytes(1 << 20) {
    if (!nic) return;
    key = share(access);
    auto made = Queue::make(*nic, {256, 64});
    if (!made) ADD_FAILURE() << made.error().explain();
    if (made) queue = std::move(*made);
  }
  End(const End&) = delete;
  End& operator=(const End&) = delete;
  // What was made on a NIC goes before it.
  End& operator=(End&& other) noexcept {
    queue.reset();
    key.reset();
    nic = std::move(other.nic);
    bytes = std::move(other.bytes);
    key = std::move(other.key);
    queue = std::move(other.queue);
    return *this;
  }
  ~End() = default;
  MemoryKey share(std::uint32_t access) {
    MemoryRequest request;
    request.address = at(0);
    request.length_bytes = bytes.size();
    request.access = access;
    auto made = nic->register_memory(request);
    if (!made) ADD_FAILURE() << made.error().explain();
    return made ? std::move(*made) : MemoryKey();
  }
  [[nodiscard]] std::uint64_t at(std::size_t offset) const {
    return reinterpret_cast<std::uint64_t>(bytes.data() + offset);
  }
  [[nodiscard]] device::Remote remote(std::size_t offset) const { return {at(offset), key.rkey()}; }
  [[nodiscard]] device::Piece piece(std::size_t offset, std::uint32_t length) const {
    return {at(offset), length, key.lkey()};
  }
  void receive(std::size_t offset, std::uint32_t length) {
    const device::Piece into = piece(offset, length);
    ASSERT_TRUE(device::post_receive<kOwner>(queue->receive(), &into, length == 0 ? 0u : 1u).ok());
    device::publish_receives<kOwner>(queue->receive());
    queue->drive();
  }
  // The next completion, with `other` driven as well.
  device::Completion next(End* other = nullptr) {
    device::Completion out{};
    const auto deadline = sys::Deadline::after_ns(kLongNs);
    for (std::uint32_t turn = 0;; ++turn) {
      if (device::poll(queue->completions(), out) != device::Polled::empty) return out;
      queue->drive();
      if (other != nullptr) other->queue->drive();
      if (deadline.passed()) {
        ADD_FAILURE() << "no completion; " << nic->counters();
        out.syndrome = m::Syndrome::local_qp_operation;
        return out;
      }
      sys::pause_turn(turn);
    }
  }
  std::unique_ptr<Nic> nic;
  std::vector<std::uint8_t> bytes;
  MemoryKey key;
  std::unique_ptr<Queue> queue;
};

// In this process, and in a server that other processes would meet there.
struct CxiRail : ::testing::TestWithParam<const char*> {
  static Status connect(End& from, const End& to, std::uint32_t rnr_retries) {
    strait_nic_connect_request request{};
    request.struct_size = sizeof request;
    request.remote_qpn = to.queue->qpn();
    request.remote = to.nic->address();
    request.deadline_ns = kLongNs;
    request.ack_timeout_ns = 500'000'000;
    request.retries = 7;
    request.rnr_retries = rnr_retries;
    request.rnr_wait_ns = 100'000;
    return from.queue->connect(request);
  }
  void meet(std::uint32_t rnr_retries = 7) {
    ASSERT_TRUE(a.queue && b.queue);
    for (auto [from, to] : {std::pair{&a, &b}, std::pair{&b, &a}}) {
      const Status connected = connect(*from, *to, rnr_retries);
      ASSERT_TRUE(connected) << connected.error().explain();
    }
    std::iota(a.bytes.begin(), a.bytes.end(), std::uint8_t{1});
  }
  End a{GetParam(), 0}, b{GetParam(), 1};
};

TEST_P(CxiRail, SaysWhatItIs) {
  meet();
  EXPECT_STREQ(a.nic->name(), "cxi0");
  EXPECT_STREQ(b.nic->name(), "cxi1");
  EXPECT_EQ(a.nic->info().software, 1u);
  const std::string path = a.queue->describe();
  EXPECT_NE(path.find("cxi cxi0, software Cassini, nid 0x"), std::string::npos) << path;
  EXPECT_NE(path.find(" pid "), std::string::npos) << path;
}

// With nobody's peer memory behind it: a driver that is asked for no dma-buf at all would say EOPNOTSUPP.
TEST_P(CxiRail, SaysThatItTakesDmabufs) {
  ASSERT_TRUE(a.nic);
  EXPECT_EQ(a.nic->info().wants_pages, 0u) << "a dma-buf goes to the driver, not to a mapping of its pages";
  EXPECT_NE(std::string(a.nic->info().description).find(", takes dma-bufs"), std::string::npos)
      << a.nic->info().description;
  bool asked = false;
  for (const strait_requirement& one : a.nic->requirements()) {
    if (std::string(one.what).find("dma-bufs") == std::string::npos) continue;
    asked = true;
    EXPECT_EQ(one.state, static_cast<std::uint32_t>(STRAIT_REQUIREMENT_MET)) << one.text;
    EXPECT_NE(std::string(one.text).find("EBADF"), std::string::npos) << one.text;
  }
  EXPECT_TRUE(asked);
}

// cxi:NAME/VNI: another network than the service's first.
TEST_P(CxiRail, ANetworkByItsNumber) {
  const auto on = [](const char* number, int device) {
    return Nic::open(cxi::nic_plugin(),
                     fmt::format("device={}{}{},soft_library={}", GetParam(), device, number, STRAIT_SOFT_LIBRARY));
  };
  for (const char* const wrong : {"/", "/0", "/65536", "/ten", "/10/11"}) {
    const auto refused = on(wrong, 0);
    ASSERT_FALSE(refused) << wrong;
    EXPECT_EQ(refused.error().code, Code::invalid) << refused.error().explain();
  }
  auto third = on("/10", 1);
  ASSERT_TRUE(third) << third.error().explain();
  End c(std::move(*third));
  EXPECT_TRUE(std::string(c.nic->info().address_text).ends_with(" vni 10")) << c.nic->info().address_text;
  EXPECT_TRUE(std::string(a.nic->info().address_text).ends_with(" vni 1")) << a.nic->info().address_text;
  // The two cannot meet, and are told at once.
  const Status refused = connect(a, c, 7);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::unsupported);
  EXPECT_NE(refused.error().explain().find("the other end is on VNI 10, cxi0 on VNI 1"), std::string::npos)
      << refused.error().explain();
  // On one network they do.
  b = std::move(c);
  auto fourth = on("/10", 0);
  ASSERT_TRUE(fourth) << fourth.error().explain();
  a = End(std::move(*fourth));
  meet();
  (void)device::post_write<kOwner>(a.queue->send(), b.remote(0), a.piece(0, 64), device::kSignaled);
  a.queue->ring();
  ASSERT_EQ(a.next().syndrome, m::Syndrome::none);
  EXPECT_EQ(std::memcmp(b.bytes.data(), a.bytes.data(), 64), 0);
}

TEST_P(CxiRail, PutsAndGets) {
  meet();
  for (const std::uint32_t length : {1u, 8u, 100u, 4096u, 65536u, 1000000u}) {
    (void)device::post_write<kOwner>(a.queue->send(), b.remote(7), a.piece(3, length), device::kSignaled);
    a.queue->ring();
    const auto done = a.next();
    ASSERT_EQ(done.syndrome, m::Syndrome::none) << length;
    EXPECT_EQ(done.byte_count, length);
    ASSERT_EQ(std::memcmp(b.bytes.data() + 7, a.bytes.data() + 3, length), 0) << length;
    std::fill(a.bytes.begin(), a.bytes.begin() + length, std::uint8_t{0});
    (void)device::post_read<kOwner>(a.queue->send(), b.remote(7), a.piece(0, length), device::kSignaled);
    a.queue->ring();
    ASSERT_EQ(a.next().syndrome, m::Syndrome::none);
    ASSERT_EQ(std::memcmp(b.bytes.data() + 7, a.bytes.data(), length), 0) << length;
  }
  const std::array<std::uint8_t, 300> small = [] {
    std::array<std::uint8_t, 300> out{};
    std::iota(out.begin(), out.end(), std::uint8_t{9});
    return out;
  }();
  (void)device::post_write_inline<kOwner>(a.queue->send(), b.remote(64), small.data(), small.size(), device::kSignaled);
  a.queue->ring();
  ASSERT_EQ(a.next().syndrome, m::Syndrome::none);
  EXPECT_EQ(std::memcmp(b.bytes.data() + 64, small.data(), small.size()), 0);
}

TEST_P(CxiRail, ListsOfPieces) {
  meet();
  const std::array<device::Piece, 3> pieces = {a.piece(0, 10), a.piece(100, 1000), a.piece(5000, 7)};
  (void)device::post_write<kOwner>(a.queue->send(), b.remote(0), pieces.data(), 3, device::kSignaled);
  a.queue->ring();
  ASSERT_EQ(a.next().syndrome, m::Syndrome::none);
  EXPECT_EQ(std::memcmp(b.bytes.data(), a.bytes.data(), 10), 0);
  EXPECT_EQ(std::memcmp(b.bytes.data() + 10, a.bytes.data() + 100, 1000), 0);
  EXPECT_EQ(std::memcmp(b.bytes.data() + 1010, a.bytes.data() + 5000, 7), 0);
  // A message lies in one piece, whatever it was gathered from.
  b.receive(50000, 4096);
  (void)device::post_send<kOwner>(a.queue->send(), pieces.data(), 3, device::kSignaled);
  a.queue->ring();
  const auto got = b.next(&a);
  ASSERT_EQ(got.syndrome, m::Syndrome::none);
  EXPECT_EQ(got.byte_count, 1017u);
  EXPECT_EQ(std::memcmp(b.bytes.data() + 50010, a.bytes.data() + 100, 1000), 0);
}

TEST_P(CxiRail, Atomics) {
  meet();
  std::uint64_t word = 40;
  std::memcpy(b.bytes.data() + 64, &word, 8);
  const auto result = [&] {
    std::uint64_t out = 0;
    std::memcpy(&out, a.bytes.data() + 128, 8);
    return out;
  };
  (void)device::post_fetch_add<kOwner>(a.queue->send(), b.remote(64), 2, a.piece(128, 8), device::kSignaled);
  a.queue->ring();
  ASSERT_EQ(a.next().syndrome, m::Syndrome::none);
  EXPECT_EQ(result(), 40u);
  (void)device::post_compare_swap<kOwner>(a.queue->send(), b.remote(64), 41, 7, a.piece(128, 8), device::kSignaled);
  a.queue->ring();
  ASSERT_EQ(a.next().syndrome, m::Syndrome::none);
  EXPECT_EQ(result(), 42u);
  (void)device::post_compare_swap<kOwner>(a.queue->send(), b.remote(64), 42, 7, a.piece(128, 8), device::kSignaled);
  a.queue->ring();
  ASSERT_EQ(a.next().syndrome, m::Syndrome::none);
  std::memcpy(&word, b.bytes.data() + 64, 8);
  EXPECT_EQ(word, 7u);
  // Four bytes, and what the masks can say that the device has.
  const auto narrow = [&] {
    std::uint32_t out = 0;
    std::memcpy(&out, b.bytes.data() + 64, 4);
    return out;
  };
  (void)device::post_masked_fetch_add4<kOwner>(a.queue->send(), b.remote(64), 0xffffffffu, 0, a.piece(128, 4),
                                               device::kSignaled);
  a.queue->ring();
  ASSERT_EQ(a.next().syndrome, m::Syndrome::none);
  EXPECT_EQ(narrow(), 6u);
  EXPECT_EQ(b.bytes[68], 0) << "no carry out of four bytes";
  (void)device::post_masked_compare_swap4<kOwner>(a.queue->send(), b.remote(64), {9, 6, ~0u, ~0u}, a.piece(128, 4),
                                                  device::kSignaled);
  (void)device::post_masked_compare_swap8<kOwner>(a.queue->send(), b.remote(72), {5, 0, ~std::uint64_t{0}, 0},
                                                  a.piece(136, 8), device::kSignaled);
  (void)device::post_masked_fetch_add8<kOwner>(a.queue->send(), b.remote(72), 6, ~std::uint64_t{0}, a.piece(144, 8),
                                               device::kSignaled);
  a.queue->ring();
  for (int i = 0; i < 3; ++i) ASSERT_EQ(a.next().syndrome, m::Syndrome::none);
  EXPECT_EQ(narrow(), 9u);
  EXPECT_EQ(b.bytes[72], 5 ^ 6);
  (void)device::post_masked_compare_swap4<kOwner>(a.queue->send(), b.remote(64), {9, 6, 0xff, ~0u}, a.piece(128, 4),
                                                  device::kSignaled);
  a.queue->ring();
  EXPECT_EQ(a.next().syndrome, m::Syndrome::local_qp_operation);
}

// A signal is never seen before what it signals: many times, and the word is what is looked at.
TEST_P(CxiRail, ASignalDoesNotOvertakeItsPut) {
  meet();
  auto* const signal = reinterpret_cast<std::uint64_t*>(b.bytes.data() + 512 * 1024);
  constexpr std::uint32_t kLength = 100000;
  for (std::uint8_t round = 1; round <= 50; ++round) {
    std::fill(a.bytes.begin(), a.bytes.begin() + kLength, round);
    (void)device::post_write<kOwner>(a.queue->send(), b.remote(0), a.piece(0, kLength), device::kNoFlags);
    (void)device::post_fetch_add<kOwner>(a.queue->send(), b.remote(512 * 1024), 1, a.piece(600000, 8),
                                         device::kSignaled);
    a.queue->ring();
    const auto deadline = sys::Deadline::after_ns(kLongNs);
    while (__atomic_load_n(signal, __ATOMIC_ACQUIRE) != round) {
      a.queue->drive();
      ASSERT_FALSE(deadline.passed());
    }
    ASSERT_EQ(b.bytes[0], round);
    ASSERT_EQ(b.bytes[kLength - 1], round);
    ASSERT_EQ(a.next().syndrome, m::Syndrome::none);
  }
}

TEST_P(CxiRail, Messages) {
  meet();
  for (std::uint32_t i = 0; i < 3; ++i) b.receive(i * 1000, 1000);
  (void)device::post_send<kOwner>(a.queue->send(), a.piece(0, 700), device::kSignaled);
  (void)device::post_send_imm_inline<kOwner>(a.queue->send(), a.bytes.data(), 33, wire::be32{0xabcd},
                                             device::kSignaled);
  (void)device::post_write_imm<kOwner>(a.queue->send(), b.remote(9000), a.piece(10, 500), wire::be32{77},
                                       device::kSignaled);
  a.queue->ring();
  auto got = b.next(&a);
  EXPECT_EQ(got.opcode, m::CqeOpcode::responder_send);
  EXPECT_EQ(got.byte_count, 700u);
  EXPECT_EQ(std::memcmp(b.bytes.data(), a.bytes.data(), 700), 0);
  got = b.next(&a);
  EXPECT_EQ(got.opcode, m::CqeOpcode::responder_send_imm);
  EXPECT_EQ(got.imm.value(), 0xabcdu);
  EXPECT_EQ(std::memcmp(b.bytes.data() + 1000, a.bytes.data(), 33), 0);
  got = b.next(&a);
  EXPECT_EQ(got.opcode, m::CqeOpcode::responder_write_imm);
  EXPECT_EQ(got.imm.value(), 77u);
  EXPECT_EQ(got.byte_count, 500u);
  EXPECT_EQ(std::memcmp(b.bytes.data() + 9000, a.bytes.data() + 10, 500), 0);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(a.next().syndrome, m::Syndrome::none);
}

TEST_P(CxiRail, AMessageWaitsForItsReceive) {
  meet();
  (void)device::post_send<kOwner>(a.queue->send(), a.piece(0, 300), device::kSignaled);
  a.queue->ring();
  const auto later = sys::Deadline::after_ns(5'000'000);
  while (!later.passed()) a.queue->drive();
  device::Completion none{};
  EXPECT_EQ(device::poll(a.queue->completions(), none), device::Polled::empty);
  b.receive(0, 300);
  EXPECT_EQ(b.next(&a).byte_count, 300u);
  EXPECT_EQ(a.next().syndrome, m::Syndrome::none);
  EXPECT_NE(a.nic->counters().find("receiver_not_ready="), std::string::npos);
}

TEST_P(CxiRail, ASenderThatMayNotWaitIsTold) {
  meet(2);
  (void)device::post_send<kOwner>(a.queue->send(), a.piece(0, 300), device::kSignaled);
  a.queue->ring();
  EXPECT_EQ(a.next().syndrome, m::Syndrome::rnr_retry_exceeded);
}

TEST_P(CxiRail, AMessageLongerThanItsReceive) {
  meet();
  b.receive(0, 100);
  (void)device::post_send<kOwner>(a.queue->send(), a.piece(0, 300), device::kSignaled);
  a.queue->ring();
  EXPECT_EQ(b.next(&a).syndrome, m::Syndrome::local_length);
  EXPECT_EQ(a.next().syndrome, m::Syndrome::remote_invalid_request);
}

TEST_P(CxiRail, WrongKeysAndRangesAreRefusedAndTheRestIsFlushed) {
  meet();
  b.receive(0, 10);
  (void)device::post_write<kOwner>(a.queue->send(), {b.at(0), b.key.rkey() + (1u << 14)}, a.piece(0, 8),
                                   device::kSignaled);
  (void)device::post_write<kOwner>(a.queue->send(), b.remote(0), a.piece(0, 8), device::kSignaled);
  a.queue->ring();
  const auto failed = a.next();
  EXPECT_EQ(failed.syndrome, m::Syndrome::remote_access);
  EXPECT_EQ(failed.vendor_syndrome, static_cast<std::uint8_t>(wire::cxi::ReturnCode::no_match));
  EXPECT_EQ(a.next().syndrome, m::Syndrome::flushed);
  b.queue->fail();
  const auto flushed = b.next();
  EXPECT_EQ(flushed.opcode, m::CqeOpcode::responder_error);
  EXPECT_EQ(flushed.syndrome, m::Syndrome::flushed);
}

TEST_P(CxiRail, PastTheEnd) {
  meet();
  (void)device::post_write<kOwner>(a.queue->send(), b.remote(b.bytes.size() - 4), a.piece(0, 8), device::kSignaled);
  a.queue->ring();
  EXPECT_EQ(a.next().syndrome, m::Syndrome::remote_access);
}

TEST_P(CxiRail, LocalMemoryIsChecked) {
  meet();
  (void)device::post_write<kOwner>(a.queue->send(), b.remote(0), {a.at(a.bytes.size() - 4), 8, a.key.lkey()},
                                   device::kSignaled);
  a.queue->ring();
  EXPECT_EQ(a.next().syndrome, m::Syndrome::local_protection);
}

struct RightsCase {
  std::uint32_t access;
  bool put, get, atomic;
};

TEST_P(CxiRail, RightsAreKept) {
  for (const RightsCase& one :
       {RightsCase{STRAIT_NIC_REMOTE_WRITE, true, false, false}, RightsCase{STRAIT_NIC_REMOTE_READ, false, true, false},
        RightsCase{STRAIT_NIC_REMOTE_ATOMIC, false, false, true},
        RightsCase{STRAIT_NIC_REMOTE_READ | STRAIT_NIC_REMOTE_ATOMIC, false, true, true}}) {
    for (int what = 0; what < 3; ++what) {
      a = End(GetParam(), 0);
      b = End(GetParam(), 1, one.access | STRAIT_NIC_LOCAL_WRITE);
      meet();
      auto& ring = a.queue->send();
      if (what == 0) (void)device::post_write<kOwner>(ring, b.remote(0), a.piece(0, 8), device::kSignaled);
      if (what == 1) (void)device::post_read<kOwner>(ring, b.remote(0), a.piece(0, 8), device::kSignaled);
      if (what == 2) (void)device::post_fetch_add<kOwner>(ring, b.remote(0), 1, a.piece(0, 8), device::kSignaled);
      a.queue->ring();
      const bool allowed = what == 0 ? one.put : what == 1 ? one.get : one.atomic;
      EXPECT_EQ(a.next().syndrome, allowed ? m::Syndrome::none : m::Syndrome::remote_access)
          << one.access << " " << what;
    }
  }
}

TEST_P(CxiRail, AfterDeregistrationNothingArrives) {
  meet();
  (void)device::post_write<kOwner>(a.queue->send(), b.remote(0), a.piece(0, 8), device::kSignaled);
  a.queue->ring();
  ASSERT_EQ(a.next().syndrome, m::Syndrome::none);
  const device::Remote old = b.remote(0);
  b.key.reset();
  std::fill(b.bytes.begin(), b.bytes.end(), std::uint8_t{0});
  (void)device::post_write<kOwner>(a.queue->send(), old, a.piece(0, 8), device::kSignaled);
  a.queue->ring();
  EXPECT_EQ(a.next().syndrome, m::Syndrome::remote_access);
  EXPECT_EQ(b.bytes[0], 0);
}

TEST_P(CxiRail, ANicThatWentAway) {
  meet();
  const device::Remote old = b.remote(0);
  b.queue.reset();
  b.key.reset();
  b.nic.reset();
  (void)device::post_write<kOwner>(a.queue->send(), old, a.piece(0, 8), device::kSignaled);
  a.queue->ring();
  EXPECT_EQ(a.next().syndrome, m::Syndrome::transport_retry_exceeded);
}

// A receiver that has failed takes nothing any more, and who would wait for it for ever is told.
TEST_P(CxiRail, AReceiverThatFailed) {
  meet();
  b.queue->fail();
  (void)device::post_send<kOwner>(a.queue->send(), a.piece(0, 8), device::kSignaled);
  a.queue->ring();
  EXPECT_EQ(a.next().syndrome, m::Syndrome::transport_retry_exceeded);
}

TEST_P(CxiRail, ManyAtOnce) {
  meet();
  constexpr std::uint32_t kRounds = 40, kEach = 100;
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    for (std::uint32_t i = 0; i < kEach; ++i) {
      const std::uint64_t value = round * kEach + i;
      (void)device::post_write_inline<kOwner>(a.queue->send(), b.remote(i * 8), &value, 8,
                                              i + 1 == kEach ? device::kSignaled : device::kNoFlags);
    }
    a.queue->ring();
    const auto done = a.next();
    ASSERT_EQ(done.syndrome, m::Syndrome::none);
    (void)device::complete_up_to<kOwner>(a.queue->send(), done.wqe_counter);
    for (std::uint32_t i = 0; i < kEach; ++i) {
      std::uint64_t value = 0;
      std::memcpy(&value, b.bytes.data() + i * 8, 8);
      ASSERT_EQ(value, round * kEach + i);
    }
  }
}

// Who sleeps on the descriptor wakes when there is something.
TEST_P(CxiRail, Sleeping) {
  meet();
  for (int round = 0; round < 20; ++round) {
    b.receive(0, 300);
    const auto deadline = sys::Deadline::after_ns(kLongNs);
    while (!b.nic->arm()) {
      b.nic->drive(0);
      ASSERT_FALSE(deadline.passed());
    }
    (void)device::post_send<kOwner>(a.queue->send(), a.piece(0, 300), device::kSignaled);
    a.queue->ring();
    ASSERT_TRUE(sys::nap_on(b.nic->event_fd(), kLongNs));
    EXPECT_EQ(b.next(&a).byte_count, 300u);
    EXPECT_EQ(a.next().syndrome, m::Syndrome::none);
  }
}

INSTANTIATE_TEST_SUITE_P(Software, CxiRail, ::testing::Values("local", "soft"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace strait::rail
