// SPDX-License-Identifier: Apache-2.0
// For the engine's tests: a queue pair with its own memory, and an encoder that shares nothing with device/.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <mutex>
#include <optional>
#include <vector>

#include "soft/nic/engine.hpp"
#include "soft/roce/memory_port.hpp"

namespace strait::soft::nic {

// Looks inside.
struct EngineTestPeer {
  static QueuePair& queue_pair(Engine& engine, std::uint32_t qpn) { return *engine.find_qp(qpn); }
  static Packets& packets(Engine& engine) { return *engine.packets_; }
  static std::uint64_t resent(Engine& engine) { return packets(engine).counts().packets_resent; }
  // Of an engine that a thread drives meanwhile.
  static PacketCounts packet_counts(Engine& engine) {
    const std::scoped_lock lock(engine.mutex_);
    return engine.packets_->counts();
  }
  // The key is there and grants nothing to peers.
  static bool peers_may_not(Engine& engine, std::uint32_t key) {
    constexpr std::uint32_t all = STRAIT_NIC_REMOTE_WRITE | STRAIT_NIC_REMOTE_READ | STRAIT_NIC_REMOTE_ATOMIC;
    const Registration* const found = engine.memory_.find(key);
    return found != nullptr && (found->access & all) == 0;
  }
};

}  // namespace strait::soft::nic

namespace strait::soft::nic::testing {

namespace m = wire::mlx5;

struct Seg {  // one data segment
  std::uint64_t addr;
  std::uint32_t length;
  std::uint32_t lkey;
};

struct Wqe {
  m::Opcode opcode = m::Opcode::nop;
  std::uint64_t raddr = 0;
  std::uint32_t rkey = 0;
  std::vector<Seg> data = {};
  std::vector<std::byte> inlined = {};
  std::uint8_t flags = m::kCompletionAlways;
  std::uint32_t imm = 0;
  std::uint8_t opmod = 0;
  std::vector<std::uint64_t> atomic = {};  // big-endian 64-bit words of the atomic segments
  std::vector<std::byte> raw = {};         // not empty: everything behind the control segment
  std::uint32_t xrc_srqn = 0;              // not 0: the sending side of XRC
};

struct Event {
  m::CqeOpcode opcode;
  std::uint16_t counter;
  std::uint32_t bytes;
  std::uint32_t imm;
  m::Syndrome syndrome;
  std::uint32_t qpn;
  m::Opcode send_opcode;
  std::uint32_t flags_rqpn;  // datagrams: the sender's queue pair, and whether a header comes first
  std::uint32_t srqn_uidx;
  bool solicited;
};

inline void put32(std::byte* at, std::uint32_t v) {
  for (int i = 0; i < 4; ++i) at[i] = static_cast<std::byte>(v >> (24 - 8 * i));
}
inline void put64(std::byte* at, std::uint64_t v) {
  for (int i = 0; i < 8; ++i) at[i] = static_cast<std::byte>(v >> (56 - 8 * i));
}
inline std::uint32_t get32(const std::byte* at) {
  std::uint32_t v = 0;
  for (int i = 0; i < 4; ++i) v = v << 8 | static_cast<std::uint32_t>(at[i]);
  return v;
}

// What a queue pair made by verbs looks like.
struct TestShape {
  QpType type = QpType::rc;
  std::uint32_t blocks = 64;
  std::uint32_t receives = 16;
  std::uint32_t cqes = 128;
  std::uint32_t cqe_bytes = 64;
  bool events = false;
  std::uint32_t srqn = 0;  // with receives = 0
  std::uint32_t xrcd = 0;
  bool says_srqn = true;
};

// A queue pair with rings in memory of its own.
class TestQueue {
 public:
  TestQueue(Engine& engine, std::uint32_t pd, std::uint32_t blocks = 64, std::uint32_t receives = 16,
            std::uint32_t cqes = 128,
            std::uint32_t access = STRAIT_NIC_REMOTE_WRITE | STRAIT_NIC_REMOTE_READ | STRAIT_NIC_REMOTE_ATOMIC,
            std::uint32_t cqe_bytes = 64)
      : TestQueue(engine, {QpType::rc, blocks, receives, cqes, cqe_bytes}) {
    strait_nic_qp_request qp{};
    qp.struct_size = sizeof qp;
    qp.pd = pd;
    qp.sq_blocks = blocks;
    qp.rq_entries = receives;
    qp.rq_stride_log2 = 6;
    qp.send_cqn = qp.recv_cqn = cqn_;
    qp.user_index = 7;
    qp.access = access;
    qp.sq = sq_;
    qp.rq = rq_;
    qp.record = record_;
    const strait_nic_qp made = engine.create_qp(qp).value();
    qpn = made.qpn;
    doorbell_ = static_cast<std::uint64_t*>(made.doorbell);
  }
  // As verbs makes it: in RESET, and its doorbell is never rung.
  TestQueue(Engine& engine, std::uint32_t pd, const TestShape& shape) : TestQueue(engine, shape) {
    QpRequest qp;
    qp.type = shape.type;
    qp.pd = pd;
    qp.send_cqn = qp.recv_cqn = cqn_;
    qp.sq = sq_;
    qp.sq_blocks = shape.blocks;
    qp.rq = rq_;
    qp.rq_entries = shape.receives;
    qp.rq_stride_log2 = 6;
    qp.record = record_;
    qp.user = 77;
    qp.user_index = shape.says_srqn ? 0 : 7;
    qp.srqn = shape.srqn;
    qp.xrcd = shape.xrcd;
    qp.says_srqn = shape.says_srqn;
    qpn = engine.create_qp(qp).value();
  }
  ~TestQueue() {
    if (outlives_engine) return;
    EXPECT_TRUE(engine_.destroy_qp(qpn));
    EXPECT_TRUE(engine_.destroy_cq(cqn_));
  }
  TestQueue(const TestQueue&) = delete;
  TestQueue& operator=(const TestQueue&) = delete;

  Status connect(const strait_nic_address& to, std::uint32_t remote_qpn, std::int64_t answer_ns = 0,
                 std::uint32_t rnr_retries = 7) {
    strait_nic_connect_request request{};
    request.struct_size = sizeof request;
    request.remote_qpn = remote_qpn;
    request.remote = to;
    request.deadline_ns = 5'000'000'000;
    request.ack_timeout_ns = answer_ns;
    request.rnr_retries = rnr_retries;
    request.rnr_wait_ns = 20'000;
    return engine_.connect_qp(qpn, request);
  }

  // Writes the work request, not yet published. Returns its first block.
  std::uint64_t write(const Wqe& wqe) {
    std::vector<std::byte> bytes(16 + wqe.raw.size());
    const auto segment = [&] {
      bytes.resize(bytes.size() + 16);
      return bytes.data() + bytes.size() - 16;
    };
    const bool remote = wqe.opcode >= m::Opcode::rdma_write && wqe.opcode != m::Opcode::send &&
                        wqe.opcode != m::Opcode::send_imm && wqe.raw.empty();
    std::copy(wqe.raw.begin(), wqe.raw.end(), bytes.begin() + 16);
    if (wqe.xrc_srqn != 0) put32(segment(), wqe.xrc_srqn);
    if (remote) {
      std::byte* at = segment();
      put64(at, wqe.raddr);
      put32(at + 8, wqe.rkey);
    }
    for (std::size_t i = 0; i < wqe.atomic.size(); i += 2) {
      std::byte* at = segment();
      put64(at, wqe.atomic[i]);
      put64(at + 8, wqe.atomic[i + 1]);
    }
    if (!wqe.inlined.empty()) {
      const std::size_t start = bytes.size();
      bytes.resize(start + (4 + wqe.inlined.size() + 15) / 16 * 16);
      put32(bytes.data() + start, 0x80000000u | static_cast<std::uint32_t>(wqe.inlined.size()));
      std::memcpy(bytes.data() + start + 4, wqe.inlined.data(), wqe.inlined.size());
    }
    for (const Seg& seg : wqe.data) {
      std::byte* at = segment();
      put32(at, seg.length);
      put32(at + 4, seg.lkey);
      put64(at + 8, seg.addr);
    }
    put32(bytes.data(), std::uint32_t{wqe.opmod} << 24 | static_cast<std::uint32_t>(pi & 0xffff) << 8 |
                            static_cast<std::uint32_t>(wqe.opcode));
    put32(bytes.data() + 4, qpn << 8 | static_cast<std::uint32_t>(bytes.size() / 16));
    bytes[11] = static_cast<std::byte>(wqe.flags);
    std::memcpy(bytes.data() + 12, &wqe.imm, 4);
    for (std::size_t i = 0; i < bytes.size(); ++i) sq_[(pi * 64 + i) % (std::size_t{blocks_} * 64)] = bytes[i];
    const std::uint64_t first = pi;
    last_ = first;
    pi += (bytes.size() + 63) / 64;
    return first;
  }
  void publish() {
    std::uint32_t word = 0;
    put32(reinterpret_cast<std::byte*>(&word), static_cast<std::uint32_t>(pi & 0xffff));
    __atomic_store_n(reinterpret_cast<std::uint32_t*>(record_ + 4), word, __ATOMIC_RELEASE);
    if (doorbell_ == nullptr) return;
    std::uint64_t bell = 0;
    std::memcpy(&bell, sq_ + (last_ % blocks_) * 64, 8);
    __atomic_store_n(doorbell_, bell, __ATOMIC_RELEASE);
  }
  std::uint64_t post(const Wqe& wqe) {
    const std::uint64_t first = write(wqe);
    publish();
    engine_.drive(qpn);
    return first;
  }
  void post_receive(const std::vector<Seg>& pieces) {
    std::byte* at = rq_ + (ri % receives_) * 64;
    for (const Seg& seg : pieces) {
      put32(at, seg.length);
      put32(at + 4, seg.lkey);
      put64(at + 8, seg.addr);
      at += 16;
    }
    if (pieces.size() < 4) {
      put32(at, 0);
      put32(at + 4, 0x100);
      put64(at + 8, 0);
    }
    ++ri;
    std::uint32_t word = 0;
    put32(reinterpret_cast<std::byte*>(&word), static_cast<std::uint32_t>(ri & 0xffff));
    __atomic_store_n(reinterpret_cast<std::uint32_t*>(record_), word, __ATOMIC_RELEASE);
  }
  std::optional<Event> poll() {
    const std::byte* cqe = cq_ + (ci % cqes_) * cqe_bytes_ + cqe_bytes_ - 64;
    const std::uint8_t own = __atomic_load_n(reinterpret_cast<const std::uint8_t*>(cqe + 63), __ATOMIC_ACQUIRE);
    if (own >> 4 == 15 || (own & 1) != ((ci / cqes_) & 1)) return std::nullopt;
    if (own >> 4 == 5) return std::nullopt;  // the queue moves to another ring
    Event event{static_cast<m::CqeOpcode>(own >> 4),
                static_cast<std::uint16_t>(get32(cqe + 60) >> 16),
                get32(cqe + 44),
                get32(cqe + 36),
                (own >> 4) >= 13 ? static_cast<m::Syndrome>(cqe[55]) : m::Syndrome::none,
                get32(cqe + 56) & 0xffffff,
                static_cast<m::Opcode>(cqe[56]),
                get32(cqe + 24),
                get32(cqe + 32) & 0xffffff,
                (own & 2) != 0};
    ++ci;
    std::uint32_t word = 0;
    put32(reinterpret_cast<std::byte*>(&word), static_cast<std::uint32_t>(ci & 0xffffff));
    __atomic_store_n(reinterpret_cast<std::uint32_t*>(cq_record_), word, __ATOMIC_RELEASE);
    return event;
  }
  // What libmlx5 writes to be told of the next completion.
  void arm_cq(bool solicited_only = false) {
    std::uint32_t word = 0;
    const auto ci24 = static_cast<std::uint32_t>(ci & 0xffffff);
    put32(reinterpret_cast<std::byte*>(&word), (arms_++ & 3) << 28 | (solicited_only ? 1u << 24 : 0) | ci24);
    __atomic_store_n(reinterpret_cast<std::uint32_t*>(cq_record_ + 4), word, __ATOMIC_RELEASE);
  }
  [[nodiscard]] std::uint32_t arm_word() const { return get32(cq_record_ + 4); }
  // What libmlx5 does to resize: a new ring, the engine's answer, and then every entry that was not taken moves there.
  Status resize_cq(std::uint32_t cqes, std::uint32_t cqe_bytes) {
    auto ring = std::make_unique<Storage[]>(std::size_t{cqes} * cqe_bytes / 64);
    std::memset(ring.get(), 0xff, std::size_t{cqes} * cqe_bytes);
    if (const Status done = engine_.resize_cq(cqn_, ring.get(), cqes, cqe_bytes); !done) return done;
    for (std::uint64_t i = ci;; ++i) {
      const std::byte* const from = cq_ + (i % cqes_) * cqe_bytes_ + cqe_bytes_ - 64;
      const auto own = std::to_integer<unsigned>(from[63]);
      EXPECT_EQ(own & 1, (i / cqes_) & 1) << "an entry that was never written comes before the last one";
      if (own >> 4 == 5 || (own & 1) != ((i / cqes_) & 1)) break;
      std::byte* const to = ring[0].bytes + ((i + 1) % cqes) * cqe_bytes + cqe_bytes - 64;
      std::memcpy(to, from, 64);
      to[63] = static_cast<std::byte>((own & 0xfe) | (((i + 1) / cqes) & 1));
    }
    ++ci;
    cq_ = ring[0].bytes;
    cq_memory_ = std::move(ring);
    cqes_ = cqes;
    cqe_bytes_ = cqe_bytes;
    return {};
  }
  [[nodiscard]] std::uint32_t cqn() const { return cqn_; }
  // What libmlx5 does when a queue pair was set back.
  void set_back() {
    pi = ri = last_ = 0;
    std::memset(record_, 0, 8);
  }
  std::byte* sq() { return sq_; }
  std::byte* record() { return record_; }
  std::uint64_t* doorbell() { return doorbell_; }

  std::uint32_t qpn = 0;
  std::uint64_t pi = 0;
  std::uint64_t ri = 0;
  std::uint64_t ci = 0;
  bool outlives_engine = false;  // the engine is closed with the queue pair on it

 private:
  TestQueue(Engine& engine, const TestShape& shape)
      : engine_(engine),
        blocks_(shape.blocks),
        receives_(shape.receives),
        cqes_(shape.cqes),
        cqe_bytes_(shape.cqe_bytes) {
    const std::size_t cq_bytes = std::size_t{cqes_} * cqe_bytes_;
    memory_ = std::make_unique<Storage[]>(blocks_ + receives_ + cq_bytes / 64 + 2);
    sq_ = memory_[0].bytes;
    rq_ = memory_[blocks_].bytes;
    cq_ = memory_[blocks_ + receives_].bytes;
    record_ = memory_[blocks_ + receives_ + cq_bytes / 64].bytes;
    cq_record_ = record_ + 64;
    std::memset(cq_, 0xff, cq_bytes);
    CqRequest cq;
    cq.entries = cqes_;
    cq.cqe_bytes = cqe_bytes_;
    cq.ring = cq_;
    cq.record = cq_record_;
    cq.events = shape.events;
    cq.user = 88;
    cqn_ = shape.events ? engine.create_cq(cq).value()
                        : engine
                              .create_cq(strait_nic_cq_request{sizeof(strait_nic_cq_request), cqes_, cqe_bytes_, 0, cq_,
                                                               cq_record_})
                              .value();
  }

  struct alignas(64) Storage {
    std::byte bytes[64];
  };
  Engine& engine_;
  std::uint32_t blocks_, receives_, cqes_, cqe_bytes_;
  std::unique_ptr<Storage[]> memory_, cq_memory_;
  std::uint32_t arms_ = 0;
  std::byte *sq_, *rq_, *cq_, *record_, *cq_record_;
  std::uint32_t cqn_ = 0;
  std::uint64_t* doorbell_ = nullptr;
  std::uint64_t last_ = 0;
};

// How the two engines of a test reach each other.
enum class Over { one_copy, through_the_ring, packets };

struct PairConfig : EngineConfig {
  PairConfig() = default;
  explicit PairConfig(Over over) : packets(over == Over::packets) { cross_copies = over == Over::one_copy; }
  bool packets = false;
  std::uint32_t pmtu_bytes = 1024;
  std::uint32_t retries = 7;
  bool v6 = false;
  bool only_a_has_faults = false;
};

// STRAIT_TEST_CAPTURE names a folder: every engine on packets then writes down what it sends and receives, for others
// to judge.
inline EngineConfig captured(EngineConfig config, const char* end) {
  const char* const folder = std::getenv("STRAIT_TEST_CAPTURE");
  const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
  if (folder == nullptr || test == nullptr) return config;
  static int number = 0;
  std::string name = fmt::format("{}.{}-{}{}.pcapng", test->test_suite_name(), test->name(), number++, end);
  for (char& c : name) c = c == '/' ? '_' : c;
  config.capture = fmt::format("{}/{}", folder, name);
  return config;
}

// Two engines, one queue pair each, connected.
struct Pair {
  explicit Pair(const PairConfig& config = {}, std::uint32_t blocks = 64, std::int64_t answer_ns = 0,
                std::uint32_t rnr_retries = 7)
      : config_(config) {
    a = Engine::open(captured("a")).value();
    b = Engine::open(captured("b")).value();
    if (config.packets) {
      const auto address = [&](std::uint8_t last) {
        return config.v6 ? roce::IpAddress::parse("fd00::" + std::to_string(last)).value()
                         : roce::IpAddress::v4(10, 0, 0, last);
      };
      auto ports = roce::MemoryPort::make_pair(address(1), address(2));
      port_a = ports.first.get();
      port_b = ports.second.get();
      a->attach_port(std::move(ports.first)).value();
      b->attach_port(std::move(ports.second)).value();
    }
    pd_a = a->alloc_pd();
    pd_b = b->alloc_pd();
    qa = std::make_unique<TestQueue>(*a, pd_a, blocks);
    qb = std::make_unique<TestQueue>(*b, pd_b, blocks);
    connect_both(answer_ns, rnr_retries);
  }
  [[nodiscard]] EngineConfig captured(const char* end) const {
    EngineConfig config = config_;
    if (config_.only_a_has_faults && *end != 'a') config.faults.reset();
    return config_.packets ? nic::testing::captured(std::move(config), end) : config;
  }
  // One way of a connection over packets. The numbers wrap soon, so that every test sees that.
  [[nodiscard]] PacketPath path(bool from_a, std::uint32_t remote_qpn) const {
    PacketPath path;
    path.to = (from_a ? port_b : port_a)->address();
    path.remote_qpn = remote_qpn;
    path.send_psn = from_a ? 0xfffff0 : 0x7ffff8;
    path.receive_psn = from_a ? 0x7ffff8 : 0xfffff0;
    path.pmtu_bytes = config_.pmtu_bytes;
    path.retries = config_.retries;
    return path;
  }
  void connect_both(std::int64_t answer_ns, std::uint32_t rnr_retries) {
    if (config_.packets) return connect_over_packets(*qa, *qb, answer_ns, rnr_retries);
    // Both ends live on this thread: the passive one runs while the active one waits.
    std::atomic<bool> stop{false};
    std::thread other([&] {
      while (!stop) {
        for (int i = 0; i < 1100; ++i) b->drive(0);
        std::this_thread::yield();
      }
    });
    const Status first = qa->connect(b->address(), qb->qpn, answer_ns, rnr_retries);
    stop = true;
    other.join();
    first.value();
    qb->connect(a->address(), qa->qpn, answer_ns, rnr_retries).value();
  }
  void connect_over_packets(TestQueue& on_a, TestQueue& on_b, std::int64_t answer_ns, std::uint32_t rnr_retries) {
    PacketPath there = path(true, on_b.qpn);
    PacketPath back = path(false, on_a.qpn);
    there.ack_timeout_ns = back.ack_timeout_ns = answer_ns;
    there.rnr_retries = back.rnr_retries = rnr_retries;
    a->connect_packets(on_a.qpn, there).value();
    b->connect_packets(on_b.qpn, back).value();
  }
  // One more queue pair on each side, connected to each other.
  struct More {
    std::unique_ptr<TestQueue> on_a, on_b;
  };
  More more(std::uint32_t blocks = 64) {
    More made{std::make_unique<TestQueue>(*a, pd_a, blocks), std::make_unique<TestQueue>(*b, pd_b, blocks)};
    if (config_.packets) {
      connect_over_packets(*made.on_a, *made.on_b, 0, 7);
    } else {  // the engines have greeted each other
      made.on_a->connect(b->address(), made.on_b->qpn).value();
      made.on_b->connect(a->address(), made.on_a->qpn).value();
    }
    return made;
  }
  std::uint32_t reg(Engine& engine, std::uint32_t pd, void* at, std::uint64_t n,
                    std::uint32_t access = STRAIT_NIC_LOCAL_WRITE | STRAIT_NIC_REMOTE_WRITE | STRAIT_NIC_REMOTE_READ |
                                           STRAIT_NIC_REMOTE_ATOMIC) {
    strait_nic_mr_request request{};
    request.struct_size = sizeof request;
    request.pd = pd;
    request.access = access;
    request.fd = -1;
    request.address = reinterpret_cast<std::uint64_t>(at);
    request.length_bytes = n;
    return engine.register_memory(request).value().lkey;
  }
  std::uint32_t reg_a(void* at, std::uint64_t n) { return reg(*a, pd_a, at, n); }
  std::uint32_t reg_b(void* at, std::uint64_t n) { return reg(*b, pd_b, at, n); }

  void drive(int times = 4) {
    for (int i = 0; i < times; ++i) {
      a->drive(0);
      b->drive(0);
    }
  }
  // Until the queue has a completion, or half a minute: a busy machine is no failure.
  std::optional<Event> wait(TestQueue& queue) {
    const auto deadline = sys::Deadline::after_ns(30'000'000'000);
    while (!deadline.passed()) {
      if (auto event = queue.poll()) return event;
      drive(1);
    }
    return std::nullopt;
  }

  PairConfig config_;
  roce::MemoryPort* port_a = nullptr;  // packets only
  roce::MemoryPort* port_b = nullptr;
  std::unique_ptr<Engine> a, b;
  std::uint32_t pd_a = 0, pd_b = 0;
  std::unique_ptr<TestQueue> qa, qb;
};

inline std::vector<std::byte> pattern(std::size_t n, unsigned seed) {
  std::vector<std::byte> bytes(n);
  std::uint32_t x = seed * 2654435761u + 1;
  for (auto& byte : bytes) {
    x = x * 1664525u + 1013904223u;
    byte = static_cast<std::byte>(x >> 24);
  }
  return bytes;
}

inline std::uint64_t address_of(const void* at) {
  return reinterpret_cast<std::uint64_t>(at);
}

}  // namespace strait::soft::nic::testing
