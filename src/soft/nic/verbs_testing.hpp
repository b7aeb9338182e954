// SPDX-License-Identifier: Apache-2.0
// For tests of queue pairs as verbs makes them: two engines joined by packets, and the steps from RESET to RTS.
#pragma once

#include <vector>

#include "soft/nic/testing.hpp"

namespace strait::soft::nic::testing {

inline constexpr std::uint32_t kTestQkey = 0x11111111;
inline constexpr std::uint32_t kAllAccess =
    STRAIT_NIC_LOCAL_WRITE | STRAIT_NIC_REMOTE_WRITE | STRAIT_NIC_REMOTE_READ | STRAIT_NIC_REMOTE_ATOMIC;

struct HeardEvents : EventSink {
  void on_async(const AsyncEvent& event) override { async.push_back(event); }
  void on_completion(std::uint32_t cqn, std::uint64_t user) override { completions.push_back({cqn, user}); }
  [[nodiscard]] int count(AsyncKind kind) const {
    int n = 0;
    for (const AsyncEvent& event : async) n += event.kind == kind ? 1 : 0;
    return n;
  }
  std::vector<AsyncEvent> async;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> completions;
};

inline std::uint32_t init_mask(QpType type) {
  return kQpState | kQpPkeyIndex | kQpPort | (type == QpType::ud ? kQpQkey : kQpAccess);
}
inline std::uint32_t rtr_mask(QpType type) {
  if (type == QpType::ud) return kQpState;
  const std::uint32_t mask = kQpState | kQpPath | kQpPathMtu | kQpDestQpn | kQpRqPsn;
  const bool answers = type == QpType::rc || type == QpType::xrc_tgt;
  return answers ? mask | kQpMaxDestReads | kQpMinRnrTimer : mask;
}
inline std::uint32_t rts_mask(QpType type) {
  const std::uint32_t mask = kQpState | kQpSqPsn;
  if (type == QpType::rc || type == QpType::xrc_ini)
    return mask | kQpTimeout | kQpRetries | kQpRnrRetries | kQpMaxReads;
  return type == QpType::xrc_tgt ? mask | kQpTimeout : mask;
}

// Every attribute of a connection to `remote_qpn` at `to`.
inline QpAttributes attributes_to(const roce::IpAddress& to, std::uint32_t remote_qpn, std::uint32_t send_psn,
                                  std::uint32_t receive_psn) {
  QpAttributes a;
  a.access = kAllAccess;
  a.port = 1;
  a.qkey = kTestQkey;
  a.path.is_global = true;
  a.path.dgid = to.gid;
  a.path_mtu = 3;
  a.timeout = 0;
  a.retries = 7;
  a.rnr_retries = 7;
  a.rq_psn = receive_psn;
  a.sq_psn = send_psn;
  a.max_reads = 4;
  a.max_dest_reads = 4;
  a.min_rnr_timer = 1;
  a.dest_qpn = remote_qpn;
  return a;
}

inline Status step(Engine& engine, std::uint32_t qpn, QpAttributes attributes, QpState to, std::uint32_t mask) {
  attributes.state = to;
  return engine.modify_qp(qpn, attributes, mask);
}
inline Status step(Engine& engine, std::uint32_t qpn, QpState to) {
  return step(engine, qpn, {}, to, kQpState);
}

// A shared receive queue as libmlx5 keeps it.
class TestSrq {
 public:
  TestSrq(Engine& engine, std::uint32_t pd, std::uint32_t entries, std::uint32_t xrcd = 0, std::uint32_t cqn = 0)
      : engine_(engine), entries_(entries) {
    ring_ = std::make_unique<Storage[]>(entries + 1);
    for (std::uint32_t i = 0; i < entries; ++i) link(i, (i + 1) % entries);
    tail_ = entries - 1;
    SrqRequest request;
    request.pd = pd;
    request.entries = entries;
    request.stride_log2 = 6;
    request.ring = ring_.get();
    request.record = ring_[entries].bytes;
    request.user = 99;
    request.xrcd = xrcd;
    request.cqn = cqn;
    srqn = engine.create_srq(request).value();
  }
  ~TestSrq() { EXPECT_TRUE(engine_.destroy_srq(srqn)); }
  TestSrq(const TestSrq&) = delete;
  TestSrq& operator=(const TestSrq&) = delete;

  // The entry that was used; nothing when the queue is full.
  std::optional<std::uint32_t> post(const std::vector<Seg>& pieces) {
    if (head_ == tail_) return std::nullopt;
    std::byte* at = ring_[head_].bytes + 16;
    for (const Seg& seg : pieces) {
      put32(at, seg.length);
      put32(at + 4, seg.lkey);
      put64(at + 8, seg.addr);
      at += 16;
    }
    if (pieces.size() < 3) {
      put32(at, 0);
      put32(at + 4, 0x100);
      put64(at + 8, 0);
    }
    const std::uint32_t used = head_;
    head_ = get32(ring_[head_].bytes) & 0xffff;
    std::uint32_t word = 0;
    put32(reinterpret_cast<std::byte*>(&word), ++counter_ & 0xffff);
    __atomic_store_n(reinterpret_cast<std::uint32_t*>(ring_[entries_].bytes), word, __ATOMIC_RELEASE);
    return used;
  }
  // Its completion was seen.
  void give_back(std::uint32_t entry) {
    link(tail_, entry);
    tail_ = entry;
  }
  void link(std::uint32_t entry, std::uint32_t next) { put32(ring_[entry].bytes, next); }

  std::uint32_t srqn = 0;

 private:
  struct alignas(64) Storage {
    std::byte bytes[64];
  };
  Engine& engine_;
  std::uint32_t entries_, head_ = 0, tail_ = 0, counter_ = 0;
  std::unique_ptr<Storage[]> ring_;
};

// Two engines with a port each and one queue pair each, in RESET.
struct VerbsPair {
  explicit VerbsPair(const TestShape& shape = {}) : shape_(shape) {
    auto ports = roce::MemoryPort::make_pair(roce::IpAddress::v4(10, 0, 0, 1), roce::IpAddress::v4(10, 0, 0, 2));
    port_a = ports.first.get();
    port_b = ports.second.get();
    a = Engine::open(captured({}, "a")).value();
    b = Engine::open(captured({}, "b")).value();
    a->attach_port(std::move(ports.first)).value();
    b->attach_port(std::move(ports.second)).value();
    a->set_event_sink(&heard_a);
    b->set_event_sink(&heard_b);
    pd_a = a->alloc_pd();
    pd_b = b->alloc_pd();
    qa = std::make_unique<TestQueue>(*a, pd_a, shape);
    qb = std::make_unique<TestQueue>(*b, pd_b, shape);
  }
  [[nodiscard]] QpAttributes from_a() const { return attributes_to(port_b->address(), qb->qpn, 0xfffff0, 0x7ffff8); }
  [[nodiscard]] QpAttributes from_b() const { return attributes_to(port_a->address(), qa->qpn, 0x7ffff8, 0xfffff0); }
  static void raise_to(Engine& engine, std::uint32_t qpn, QpType type, const QpAttributes& attributes, QpState last) {
    step(engine, qpn, attributes, QpState::init, init_mask(type)).value();
    if (last >= QpState::rtr) step(engine, qpn, attributes, QpState::rtr, rtr_mask(type)).value();
    if (last >= QpState::ready) step(engine, qpn, attributes, QpState::ready, rts_mask(type)).value();
  }
  void raise_a(QpState last = QpState::ready) { raise_to(*a, qa->qpn, shape_.type, from_a(), last); }
  void raise_b(QpState last = QpState::ready) { raise_to(*b, qb->qpn, shape_.type, from_b(), last); }
  void raise_both() {
    raise_a();
    raise_b();
  }
  static std::uint32_t reg(Engine& engine, std::uint32_t pd, std::vector<std::byte>& bytes,
                           std::uint32_t access = kAllAccess) {
    strait_nic_mr_request request{};
    request.struct_size = sizeof request;
    request.pd = pd;
    request.access = access;
    request.fd = -1;
    request.address = address_of(bytes.data());
    request.length_bytes = bytes.size();
    return engine.register_memory(request).value().lkey;
  }
  std::uint32_t reg_a(std::vector<std::byte>& bytes) { return reg(*a, pd_a, bytes); }
  std::uint32_t reg_b(std::vector<std::byte>& bytes) { return reg(*b, pd_b, bytes); }
  void drive(int times = 4) {
    for (int i = 0; i < times; ++i) {
      a->drive(0);
      b->drive(0);
    }
  }
  std::optional<Event> wait(TestQueue& queue) {
    const auto deadline = sys::Deadline::after_ns(30'000'000'000);
    while (!deadline.passed()) {
      if (auto event = queue.poll()) return event;
      drive(1);
    }
    return std::nullopt;
  }
  // To queue pair b at 10.0.0.2.
  [[nodiscard]] Wqe datagram(std::vector<std::byte> payload) const {
    Wqe wqe{.opcode = m::Opcode::send};
    wqe.inlined = std::move(payload);
    wqe.atomic = {
        std::uint64_t{kTestQkey} << 32, std::uint64_t{0x80000000 | qb->qpn} << 32, 0, 0, 0, 0x0000ffff0a000002};
    return wqe;
  }

  TestShape shape_;
  HeardEvents heard_a, heard_b;
  roce::MemoryPort* port_a = nullptr;
  roce::MemoryPort* port_b = nullptr;
  std::unique_ptr<Engine> a, b;
  std::uint32_t pd_a = 0, pd_b = 0;
  std::unique_ptr<TestQueue> qa, qb;
};

}  // namespace strait::soft::nic::testing
