// SPDX-License-Identifier: Apache-2.0
// Many posters on one ring, a device thread that checks what it is shown, a reaper thread. Meant for ThreadSanitizer as
// much as for the assertions: the device reads WQE bytes with plain loads, so a missing handover is a reported race.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "rig.hpp"

namespace {

using namespace paper;
using namespace strait::device;

constexpr std::uint32_t kPosters = 8;

constexpr std::uint32_t kEach = 1500;

// Inline payload: who, which, filler, and a checksum of it all at the end.
std::vector<std::uint8_t> make_payload(std::uint32_t who, std::uint32_t which, Random& random) {
  std::vector<std::uint8_t> p(8 + random.below(120));
  for (auto& b : p) b = static_cast<std::uint8_t>(random.next());
  std::memcpy(p.data(), &who, 4);
  std::memcpy(p.data() + 4, &which, 4);
  std::uint32_t sum = 2166136261u;
  for (std::uint8_t b : p) sum = (sum ^ b) * 16777619u;
  p.resize(p.size() + 4);
  std::memcpy(p.data() + p.size() - 4, &sum, 4);
  return p;
}
bool checksum_holds(const std::vector<std::uint8_t>& p) {
  if (p.size() < 12) return false;
  std::uint32_t sum = 2166136261u, want = 0;
  for (std::size_t i = 0; i + 4 < p.size(); ++i) sum = (sum ^ p[i]) * 16777619u;
  std::memcpy(&want, p.data() + p.size() - 4, 4);
  return sum == want;
}

void random_delay(Random& random) {
  switch (random.below(16)) {
    case 0: std::this_thread::yield(); break;
    case 1:
      for (std::uint32_t i = random.below(200); i > 0; --i) relax();
      break;
    default: break;
  }
}

// Reads everything below the record, checks it, holds it for a while, checks that nobody touched it, completes it.
class DeviceThread {
 public:
  DeviceThread(SendRig& rig, CqRig& cq, bool collapsed)
      : rig_(rig), cq_(cq), collapsed_(collapsed), next_(kPosters, 0) {}

  void run(std::uint32_t total) {
    Random random{4242};
    const Deadline deadline = Deadline::after_ns(30'000'000'000);
    while (executed_ < total && error_ == nullptr) {
      if (deadline.passed()) error_ = "the device was not shown everything: a doorbell was lost";
      const auto ahead = static_cast<std::uint16_t>(rig_.sent() - static_cast<std::uint16_t>(index_));
      if (ahead > rig_.blocks()) error_ = "the record ran away or went backwards";
      if (error_ != nullptr) return;
      if (ahead == 0) std::this_thread::yield();
      const std::uint64_t until = index_ + ahead;
      while (index_ < until && error_ == nullptr) take_one(until);
      random_delay(random);
      complete(random);
    }
  }

  const char* error() const { return error_; }
  std::uint32_t executed() const { return executed_; }

 private:
  struct Held {
    std::uint64_t index;
    std::vector<std::uint8_t> payload;
  };

  void take_one(std::uint64_t until) {
    const Wqe w = rig_.at(index_);
    if (!w.well_formed || w.index != (index_ & 0xffff))
      error_ = "an incomplete WQE was published";
    else if (index_ + w.blocks() > until)
      error_ = "the record ends inside a WQE";
    else if (!checksum_holds(w.payload))
      error_ = "a payload was published before it was written";
    if (error_ != nullptr) return;
    std::uint32_t who = 0, which = 0;
    std::memcpy(&who, w.payload.data(), 4);
    std::memcpy(&which, w.payload.data() + 4, 4);
    if (who >= kPosters || which != next_[who]++) error_ = "a poster's WQEs came twice, not at all or out of order";
    held_.push_back({index_, w.payload});
    index_ += w.blocks();
    ++executed_;
  }

  // Some time later: slots not yet completed still hold what they held. Then one CQE for a batch of them.
  void complete(Random& random) {
    if (held_.empty()) return;
    for (const Held& h : held_)
      if (rig_.at(h.index).payload != h.payload) error_ = "a slot was reused before its completion";
    if (cq_.produced - cq_.consumer() >= 1u << cq_.log) return;
    const std::size_t n = 1 + random.below(static_cast<std::uint32_t>(held_.size()));
    const mlx5::Cqe cqe = requester_cqe(0xa1b2, held_[n - 1].index, mlx5::Opcode::send);
    held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(n));
    if (collapsed_)
      cq_.write_collapsed(cqe);
    else
      cq_.write(cqe);
  }

 public:
  void complete_rest() {
    Random random{1};
    const Deadline deadline = Deadline::after_ns(30'000'000'000);
    while (!held_.empty() && error_ == nullptr && !deadline.passed()) {
      complete(random);
      std::this_thread::yield();
    }
  }

 private:
  SendRig& rig_;
  CqRig& cq_;
  bool collapsed_;
  std::uint64_t index_ = 0;
  std::uint32_t executed_ = 0;
  std::vector<std::uint32_t> next_;
  std::vector<Held> held_;
  const char* error_ = nullptr;
};

// Posts `kEach` WQEs with the doorbell rung after 1..4 of them. False: the ring stayed full too long.
bool post_all(SendRig& rig, CqRig& cq, std::uint32_t who, bool collapsed) {
  Random random{who + 1};
  const Deadline deadline = Deadline::after_ns(30'000'000'000);
  Completion c{};
  for (std::uint32_t i = 0; i < kEach;) {
    const auto payload = make_payload(who, i, random);
    while (!post_send_inline<kMany>(rig.ring, payload.data(), payload.size(), kSignaled).ok()) {
      ring_doorbell<kMany>(rig.ring);  // what we hold back may be what everybody waits for
      if (collapsed) (void)poll_collapsed<kMany>(rig.ring, cq.ring, c);
      if (deadline.passed()) return false;
      std::this_thread::yield();
    }
    ++i;
    random_delay(random);
    if (random.below(4) == 0 || i == kEach) ring_doorbell<kMany>(rig.ring);
  }
  return true;
}

void crowd(bool collapsed) {
  SendRig rig(6);
  CqRig cq(collapsed ? 0 : 4, 64);
  DeviceThread device(rig, cq, collapsed);
  std::atomic<bool> stop{false};
  std::atomic<std::uint32_t> gave_up{0};
  std::atomic<std::uint32_t> bad_completions{0};
  std::thread device_thread([&] {
    device.run(kPosters * kEach);
    device.complete_rest();
  });
  std::thread reaper([&] {
    Completion c{};
    while (!stop.load()) {
      if (collapsed) {
        (void)poll_collapsed<kMany>(rig.ring, cq.ring, c);
      } else {
        while (poll(cq.ring, c) == Polled::done)
          if (!complete_up_to<kMany>(rig.ring, c.wqe_counter).known) ++bad_completions;
      }
      std::this_thread::yield();
    }
  });
  std::vector<std::thread> posters;
  for (std::uint32_t who = 0; who < kPosters; ++who)
    posters.emplace_back([&, who] { gave_up += !post_all(rig, cq, who, collapsed); });
  for (auto& t : posters) t.join();
  // Everybody has returned: nothing may be left unrung.
  EXPECT_EQ(__atomic_load_n(&rig.ring.slots.rung, __ATOMIC_ACQUIRE), rig.ring.slots.reserved);
  EXPECT_EQ(rig.sent(), rig.ring.slots.reserved & 0xffff);
  device_thread.join();
  const Deadline deadline = Deadline::after_ns(30'000'000'000);
  while (completed_of<kMany>(rig.ring.slots) != rig.ring.slots.reserved && !deadline.passed())
    std::this_thread::yield();
  stop = true;
  reaper.join();
  EXPECT_EQ(device.error(), nullptr) << device.error();
  EXPECT_EQ(device.executed(), kPosters * kEach);
  EXPECT_EQ(gave_up.load(), 0u);
  EXPECT_EQ(bad_completions.load(), 0u);
  EXPECT_EQ(rig.ring.slots.completed, rig.ring.slots.reserved);
  EXPECT_EQ(rig.ring.slots.requests, 0u);
  EXPECT_TRUE(rig.memory.intact());
}

TEST(Invariant05_PublishedMeansComplete, EightPostersOneDeviceOneReaper) {
  crowd(false);
}
TEST(Invariant06_SlotsArePublishedOnceAndInOrder, EightPostersOnACollapsedRing) {
  crowd(true);
}

// Whoever sees a doorbell sees a record that is beyond it, and every WQE below the record.
TEST(Invariant05_PublishedMeansComplete, TheRecordIsThereBeforeTheDoorbell) {
  SendRig rig(6);
  CqRig cq(4, 64);
  std::atomic<bool> stop{false};
  std::atomic<std::uint32_t> late{0};
  DeviceThread device(rig, cq, false);
  std::thread watcher([&] {
    std::uint32_t looks = 0;
    while (!stop.load()) {
      const std::uint64_t raw = __atomic_load_n(&rig.doorbell, __ATOMIC_ACQUIRE);
      mlx5::Doorbell bell;
      std::memcpy(&bell, &raw, 8);
      const std::uint32_t record = rig.sent();
      if (raw != 0 && static_cast<std::int16_t>(record - bell.index()) <= 0) ++late;
      if (++looks % 64 == 0) std::this_thread::yield();
    }
  });
  std::thread device_thread([&] {
    device.run(kEach);
    device.complete_rest();
  });
  Random random{5};
  Completion c{};
  const Deadline deadline = Deadline::after_ns(30'000'000'000);
  for (std::uint32_t i = 0; i < kEach && !deadline.passed();) {
    while (poll(cq.ring, c) == Polled::done) (void)complete_up_to<kOne>(rig.ring, c.wqe_counter);
    const auto payload = make_payload(0, i, random);
    if (post_send_inline<kOne>(rig.ring, payload.data(), payload.size(), kSignaled).ok())
      ++i;
    else
      std::this_thread::yield();
    ring_doorbell<kOne>(rig.ring);
  }
  while (rig.ring.slots.completed != rig.ring.slots.reserved && !deadline.passed()) {
    while (poll(cq.ring, c) == Polled::done) (void)complete_up_to<kOne>(rig.ring, c.wqe_counter);
    std::this_thread::yield();
  }
  stop = true;
  watcher.join();
  device_thread.join();
  EXPECT_EQ(late.load(), 0u);
  EXPECT_EQ(device.error(), nullptr) << device.error();
  EXPECT_EQ(rig.ring.slots.completed, rig.ring.slots.reserved);
}

// Nothing but the completion ring between two threads: its record must hand the entry back after the last read of it.
TEST(Invariant08_PhaseAcceptsExactlyWhatWasWritten, DeviceAndPollerInTwoThreads) {
  for (std::uint32_t bytes : {64u, 128u}) {
    CqRig cq(4, bytes);
    constexpr std::uint32_t kCount = 10000;
    const Deadline deadline = Deadline::after_ns(30'000'000'000);
    std::thread device([&] {
      while (cq.produced < kCount && !deadline.passed()) {
        if (((cq.produced - cq.consumer()) & 0xffffff) < 16)
          cq.write(requester_cqe(7, cq.produced, mlx5::Opcode::rdma_read, static_cast<std::uint32_t>(cq.produced) * 3));
        else
          std::this_thread::yield();
      }
    });
    std::uint32_t wrong = 0, taken = 0;
    Completion c{};
    while (taken < kCount && !deadline.passed()) {
      if (poll(cq.ring, c) != Polled::done) {
        std::this_thread::yield();  // spinning would cost a time slice per lap on a busy machine
        continue;
      }
      wrong += c.wqe_counter != (taken & 0xffff) || c.byte_count != taken * 3;
      ++taken;
    }
    device.join();
    EXPECT_EQ(taken, kCount);
    EXPECT_EQ(wrong, 0u);
  }
}

// Bursts that end: after the last poster of each has returned, the device has been shown everything.
TEST(Invariant07_NoDoorbellIsLost, ManyBurstsOfManyPosters) {
  SendRig rig(8);
  for (int burst = 0; burst < 150; ++burst) {
    std::vector<std::thread> posters;
    std::atomic<int> failed{0};
    for (int who = 0; who < 4; ++who)
      posters.emplace_back([&] {
        for (int i = 0; i < 16; ++i) {
          failed += !post_nop<kMany>(rig.ring, 0).ok();
          if (i % 3 == 0 || i == 15) ring_doorbell<kMany>(rig.ring);
        }
      });
    for (auto& t : posters) t.join();
    ASSERT_EQ(failed.load(), 0);
    ASSERT_EQ(rig.ring.slots.rung, rig.ring.slots.reserved);
    ASSERT_EQ(rig.sent(), rig.ring.slots.reserved & 0xffff);
    rig.drain();
  }
}

TEST(Invariant12_Receives, ManyThreadsPostReceives) {
  Guarded memory(16 << 10, kGuard);
  std::vector<std::uint64_t> marks(1 << 10, 0);
  mlx5::QueueRecord record{};
  ReceiveRing ring{};
  ASSERT_TRUE(open_receive_ring(ring, {memory.data(), 10, 4, &record, marks.data(), 0}));
  std::vector<std::thread> posters;
  std::atomic<std::uint32_t> posted{0};
  for (std::uint32_t who = 0; who < kPosters; ++who)
    posters.emplace_back([&, who] {
      for (std::uint32_t i = 0; i < 200; ++i) {
        posted += post_receive<kMany>(ring, Piece{who * 1000 + i, 1 + who, 9}).ok();
        publish_receives<kMany>(ring);
      }
    });
  for (auto& t : posters) t.join();
  EXPECT_EQ(posted.load(), 1024u) << "1600 asked for, 1024 fit, no more and no fewer";
  EXPECT_EQ(record.receive.value(), 1024u);
  std::vector<std::uint32_t> seen(kPosters, 0);
  for (std::uint32_t i = 0; i < 1024; ++i) {
    const auto length = static_cast<std::uint32_t>(big(memory.data() + 16 * i, 4));
    ASSERT_TRUE(length >= 1 && length <= kPosters);
    const auto at = static_cast<std::uint32_t>(big(memory.data() + 16 * i + 8, 8));
    ASSERT_GE(at, (length - 1) * 1000 + seen[length - 1]) << "out of order or twice";
    seen[length - 1] = at - (length - 1) * 1000 + 1;
  }
}

}  // namespace
