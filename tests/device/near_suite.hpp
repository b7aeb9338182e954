// SPDX-License-Identifier: Apache-2.0
// What lies in the posters' own memory, for any machine of lane_suite.hpp: rings whose NIC is a thread of the same
// grid, and a thousand requests of every kind, byte by byte.
#pragma once

#include <algorithm>
#include <type_traits>

#include "lane_suite.hpp"
#include "near_bodies.hpp"
#include "requests.hpp"

namespace suite {

struct NearShape {
  Sharing sharing = Sharing::one_thread;
  Reach reach = Reach::gpu;
  std::uint64_t count = 0;  // of WQEs
  bool by_doorbell = false;
  bool doorbell_is_next = false;
  bool collapsed = false;
};

// A queue and what its NIC needs, all of it where the machine keeps state: the CPU may not reach that.
template <class Machine>
class Courtyard {
 public:
  static constexpr unsigned kLogBlocks = 7, kBlocks = 1u << kLogBlocks;
  static constexpr std::uint64_t kFirst = 65000;  // 16 bits on the wire: the index wraps
  static constexpr std::uint32_t kQpn = 0x51;
  static constexpr std::uint64_t kWords = 8192;  // of payload

  explicit Courtyard(const NearShape& shape) : shape_(shape) {
    EXPECT_LE(shape.count, kWords);
    auto* const record = static_cast<std::uint32_t*>(machine_.state(64));
    const std::uint32_t counts[2] = {0, __builtin_bswap32(kFirst & 0xffff)};
    machine_.store(record, counts, sizeof counts);
    auto* const done = bytes(kBlocks * 64);
    std::vector<std::uint8_t> never(kBlocks * 64);
    for (std::size_t i = 63; i < never.size(); i += 64) never[i] = 0xf0;
    machine_.store(done, never.data(), never.size());

    QueueMemory m;
    m.sharing = shape.sharing;
    m.send.blocks = bytes(kBlocks * 64);
    m.send.log_blocks = kLogBlocks;
    m.send.qpn = kQpn;
    m.send.record = reinterpret_cast<mlx5::QueueRecord*>(record);
    m.send.doorbell = machine_.state(64);
    m.send.marks = static_cast<std::uint64_t*>(machine_.state(kBlocks * 8));
    m.send.first_index = kFirst;
    m.send.reach = shape.reach;
    m.sends.entries = done;
    m.sends.log_entries = kLogBlocks;
    m.abort = static_cast<std::uint32_t*>(machine_.state(64));
    QueueState prepared;
    EXPECT_TRUE(open_queue(prepared, m));
    state_ = static_cast<QueueState*>(machine_.state(sizeof(QueueState)));
    machine_.store(state_, &prepared, sizeof prepared);

    s_.queue = {head_of<Queue>(), shape.sharing, 0, state_};
    NearNic& nic = s_.nic;
    nic.local = bytes(kWords * 8);
    nic.remote = bytes(kWords * 8);
    nic.bytes = kWords * 8;
    s_.local = {head_of<LocalRegion>(), at(nic.local), nic.bytes, kLocalKey, 0};
    s_.remote = {head_of<RemoteRegion>(), at(nic.remote), nic.bytes, 0, kRemoteKey, 0, 0, 0};
    nic.send = static_cast<const std::uint8_t*>(m.send.blocks);
    nic.record = record;
    nic.doorbell = static_cast<const std::uint64_t*>(m.send.doorbell);
    nic.done = done;
    nic.seen = bytes(shape.count * 64);
    nic.said = static_cast<std::uint64_t*>(machine_.state(64));
    nic.abort = const_cast<std::uint32_t*>(m.abort);
    nic.first = kFirst;
    nic.count = shape.count;
    nic.patience_ns = 10'000'000'000;
    nic.blocks = kBlocks;
    nic.qpn = kQpn;
    nic.rkey = kRemoteKey;
    nic.lkey = kLocalKey;
    nic.by_doorbell = shape.by_doorbell;
    nic.doorbell_is_next = shape.doorbell_is_next;
    nic.collapsed = shape.collapsed;
    s_.answers = static_cast<std::uint64_t*>(machine_.state(4096));
  }

  const NearStage& stage() const { return s_; }
  template <class Body>
  void run(unsigned threads, const Body& body) {
    machine_.run(2, threads, body);
  }
  template <class T>
  std::vector<T> load(const T* from, std::size_t count) {
    std::vector<std::remove_const_t<T>> out(count);
    machine_.load(out.data(), from, count * sizeof(T));
    return out;
  }

  // What the NIC said, what it was told last, and what has arrived.
  void expect_all_done() {
    const auto said = load(s_.nic.said, 3);
    EXPECT_EQ(said[0], static_cast<std::uint64_t>(Wrong::nothing)) << "as bodies::Wrong has it";
    EXPECT_EQ(said[1], shape_.count);
    EXPECT_EQ(said[2], code(Waited::ok));
    const std::uint64_t end = kFirst + shape_.count;
    std::uint32_t sent = 0;
    machine_.load(&sent, s_.nic.record + 1, sizeof sent);
    EXPECT_EQ(__builtin_bswap32(sent), end & 0xffff);
    std::uint8_t doorbell[8];
    machine_.load(doorbell, s_.nic.doorbell, sizeof doorbell);
    EXPECT_EQ(paper::big(doorbell + 1, 2), (end - (shape_.doorbell_is_next ? 0 : 1)) & 0xffff);
    EXPECT_EQ(paper::big(doorbell + 4, 3), kQpn);
    QueueState state;
    machine_.load(&state, state_, sizeof state);
    EXPECT_EQ(state.send.slots.reserved, end);
    EXPECT_EQ(state.send.slots.rung, end);
    EXPECT_EQ(state.failure, 0u);
  }
  // Each of the words was put once, by a WQE of the bytes that this CPU writes for it.
  template <class FlagsOf>
  void expect_bytes_of_a_cpu(std::uint64_t words, FlagsOf&& flags_of) {
    const auto seen = load(s_.nic.seen, shape_.count * 64);
    const auto arrived = load(reinterpret_cast<const std::uint64_t*>(s_.nic.remote), words);
    std::vector<unsigned> times(words);
    alignas(64) std::uint8_t block[64];
    mlx5::QueueRecord record{};
    std::uint64_t doorbell = 0;
    for (std::uint64_t i = 0; i < words; ++i) {
      ASSERT_EQ(arrived[i], i + 1);
      const std::uint8_t* const wqe = seen.data() + 64 * i;
      const std::uint64_t place = (paper::big(wqe + 16, 8) - s_.remote.address) / 8;
      ASSERT_LT(place, words) << "WQE " << i;
      ++times[place];
      SendRingMemory m;
      m.blocks = block;
      m.qpn = kQpn;
      m.record = &record;
      m.doorbell = &doorbell;
      m.first_index = kFirst + i;
      SendRing ring{};
      ASSERT_TRUE(open_send_ring(ring, m));
      const Remote to{s_.remote.address + 8 * place, kRemoteKey};
      const std::uint64_t value = place + 1;
      const bool inlined = (wqe[32] & 0x80) != 0;
      const Flags flags = flags_of(place);
      ASSERT_TRUE((inlined ? post_write_inline<Sharing::one_thread>(ring, to, &value, 8, flags)
                           : post_write<Sharing::one_thread>(ring, to,
                                                             Piece{s_.local.address + 8 * place, 8, kLocalKey}, flags))
                      .ok());
      for (unsigned b = 0; b < 48; ++b) ASSERT_EQ(wqe[b], block[b]) << "byte " << b << " of WQE " << i;
    }
    EXPECT_EQ(times, std::vector<unsigned>(words, 1)) << "each word once";
  }

 private:
  static std::uint64_t at(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }
  std::uint8_t* bytes(std::size_t count) { return static_cast<std::uint8_t*>(machine_.state(count)); }

  const NearShape shape_;
  Machine machine_;
  NearStage s_{};
  QueueState* state_ = nullptr;
};

template <class Machine>
class NearOn : public testing::Test {};
TYPED_TEST_SUITE_P(NearOn);

template <class Machine, Sharing S, class G>
void everything_in_the_posters_memory(unsigned threads, unsigned group) {
  SCOPED_TRACE(testing::Message() << "sharing " << static_cast<unsigned>(S) << ", " << threads
                                  << " threads in groups of " << group);
  constexpr unsigned rounds = 8;
  for (const Reach reach : {Reach::gpu, Reach::system}) {
    for (const bool by_doorbell : {false, true}) {
      SCOPED_TRACE(testing::Message() << "reach " << static_cast<unsigned>(reach)
                                      << ", by the doorbell: " << by_doorbell);
      const std::uint64_t words = std::uint64_t{rounds} * threads;
      Courtyard<Machine> yard({S, reach, words, by_doorbell, S != Sharing::one_thread, false});
      yard.run(threads, PostNear<S, G>{yard.stage(), rounds});
      EXPECT_EQ(yard.load(yard.stage().answers, threads), std::vector<std::uint64_t>(threads));
      yard.expect_all_done();
      if (testing::Test::HasFailure()) return;
      // The last of a group asks for the completion.
      yard.expect_bytes_of_a_cpu(
          words, [&](std::uint64_t place) { return place % group == group - 1 ? kSignaled : kNoFlags; });
      if (testing::Test::HasFailure()) return;
    }
  }
}
TYPED_TEST_P(NearOn, RingsRecordsAndCompletionsInThePostersMemory) {
  everything_in_the_posters_memory<TypeParam, Sharing::one_thread, Warp>(32, 32);
  everything_in_the_posters_memory<TypeParam, Sharing::one_block, Warp>(96, 32);
  everything_in_the_posters_memory<TypeParam, Sharing::many_threads, Warp>(96, 32);
  everything_in_the_posters_memory<TypeParam, Sharing::many_threads, Thread>(96, 1);
  everything_in_the_posters_memory<TypeParam, Sharing::one_block, Block>(96, 96);
}

template <class Machine, Sharing S>
void one_entry_for_all_completions(unsigned threads) {
  SCOPED_TRACE(testing::Message() << "sharing " << static_cast<unsigned>(S) << ", " << threads << " threads");
  constexpr unsigned rounds = 16;
  const std::uint64_t words = std::uint64_t{rounds} * threads;
  const unsigned refused = S == Sharing::one_thread ? 1 : 0;
  Courtyard<Machine> yard({S, Reach::gpu, words + refused, false, S != Sharing::one_thread, true});
  yard.run(threads, PostCollapsed<S>{yard.stage(), rounds});
  const auto answers = yard.load(yard.stage().answers, threads + 2);
  for (unsigned t = 0; t < threads; ++t) EXPECT_EQ(answers[t], 0u) << t;
  yard.expect_all_done();
  if (testing::Test::HasFailure()) return;
  yard.expect_bytes_of_a_cpu(words, [](std::uint64_t) { return kSignaled; });
  if (refused == 0) return;
  const std::uint64_t cause = 0x13u << 8 | 0x88u << 16 | ((Courtyard<Machine>::kFirst + words) & 0xffff) << 24;
  EXPECT_EQ(answers[threads], code(Waited::error) | cause);
  EXPECT_EQ(answers[threads + 1], static_cast<std::uint64_t>(Polled::error) | cause) << "it stays one";
}
TYPED_TEST_P(NearOn, CompletionsThatAllGoToOneEntry) {
  one_entry_for_all_completions<TypeParam, Sharing::one_thread>(1);
  one_entry_for_all_completions<TypeParam, Sharing::one_block>(32);
  one_entry_for_all_completions<TypeParam, Sharing::many_threads>(64);
}

// ---- A thousand requests --------------------------------------------------------------------------------------------

// Posts every request into one ring, shows it, and keeps what lies there. Answers: where each WQE began, or all ones.
template <Sharing S>
struct PostThousand {
  static constexpr std::uint64_t kRoom = 1024;  // for a WQE
  SendRing* ring;
  const paper::Asked* asked;
  std::uint64_t count;
  std::uint8_t* wqes;
  std::uint64_t* starts;
  STRAIT_HD void operator()(unsigned, unsigned) const {
    for (std::uint64_t i = 0; i < count; ++i) {
      const Pending posted = paper::post<S>(*ring, asked[i]);
      ring_doorbell<S>(*ring);
      starts[i] = posted.ok() ? posted.start : ~std::uint64_t{0};
      if (!posted.ok()) return;
      const std::uint32_t blocks = static_cast<std::uint32_t>(ring->slots.ready - posted.start);
      for (std::uint32_t b = 0; b < blocks * 64 && b < kRoom; ++b)
        wqes[kRoom * i + b] = block_at(*ring, posted.start + b / 64)[b % 64];
      ring->slots.rung = ring->slots.completed = ring->slots.ready;
    }
  }
};

template <class Machine, Sharing S>
void a_thousand_requests() {
  SCOPED_TRACE(testing::Message() << "sharing " << static_cast<unsigned>(S));
  Machine machine;
  const auto put = [&](const auto& from) {
    void* const to = machine.state(from.size() * sizeof from[0]);
    machine.store(to, from.data(), from.size() * sizeof from[0]);
    return to;
  };
  const std::vector<paper::Request> requests = paper::a_thousand_requests();
  std::vector<Piece> pieces;
  std::vector<std::uint8_t> payload;
  for (const paper::Request& r : requests) {
    pieces.insert(pieces.end(), r.pieces.begin(), r.pieces.end());
    payload.insert(payload.end(), r.payload.begin(), r.payload.end());
  }
  const auto* piece = static_cast<const Piece*>(put(pieces));
  const auto* byte = static_cast<const std::uint8_t*>(put(payload));
  std::vector<paper::Asked> asked;
  for (const paper::Request& r : requests) {
    asked.push_back(paper::asked(r));
    asked.back().pieces = piece;
    asked.back().payload = byte;
    piece += r.pieces.size();
    byte += r.payload.size();
  }

  constexpr unsigned log_blocks = 6;
  SendRingMemory m;
  m.log_blocks = log_blocks;
  m.qpn = paper::kThousandQpn;
  m.blocks = machine.state(std::size_t{64} << log_blocks);
  m.record = static_cast<mlx5::QueueRecord*>(machine.state(64));
  m.doorbell = machine.state(64);
  m.marks = static_cast<std::uint64_t*>(machine.state(std::size_t{8} << log_blocks));
  m.first_index = paper::kThousandFirst;
  std::vector<SendRing> opened(1);
  ASSERT_TRUE(open_send_ring(opened[0], m));
  using Body = PostThousand<S>;
  Body body{};
  body.ring = static_cast<SendRing*>(put(opened));
  body.asked = static_cast<const paper::Asked*>(put(asked));
  body.count = requests.size();
  body.wqes = static_cast<std::uint8_t*>(machine.state(requests.size() * Body::kRoom));
  body.starts = static_cast<std::uint64_t*>(machine.state(requests.size() * 8));
  machine.run(1, 1, body);

  std::vector<std::uint8_t> wqes(requests.size() * Body::kRoom);
  std::vector<std::uint64_t> starts(requests.size());
  machine.load(wqes.data(), body.wqes, wqes.size());
  machine.load(starts.data(), body.starts, starts.size() * 8);
  paper::SendRig rig(log_blocks, paper::kThousandFirst, paper::kThousandQpn);
  paper::Digest digest;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    SCOPED_TRACE(testing::Message() << "request " << i << ", kind " << static_cast<unsigned>(requests[i].kind));
    const Pending here = paper::post<paper::kOne>(rig.ring, requests[i]);
    ASSERT_TRUE(here.ok());
    ASSERT_EQ(starts[i], here.start);
    const std::uint32_t bytes = 16 * rig.at(here.start).ds;  // what lies behind is undefined
    for (std::uint32_t b = 0; b < bytes; ++b)
      ASSERT_EQ(wqes[Body::kRoom * i + b], rig.memory.data()[(here.start % 64 * 64 + b) % rig.memory.size()]) << b;
    digest.add(wqes.data() + Body::kRoom * i, bytes);
    rig.drain();
  }
  EXPECT_EQ(digest.value, paper::kDigestOfAThousand);
}
TYPED_TEST_P(NearOn, AThousandRequestsAreTheBytesOfACpu) {
  a_thousand_requests<TypeParam, Sharing::one_thread>();
  a_thousand_requests<TypeParam, Sharing::one_block>();
  a_thousand_requests<TypeParam, Sharing::many_threads>();
}

REGISTER_TYPED_TEST_SUITE_P(NearOn, RingsRecordsAndCompletionsInThePostersMemory, CompletionsThatAllGoToOneEntry,
                            AThousandRequestsAreTheBytesOfACpu);

}  // namespace suite
