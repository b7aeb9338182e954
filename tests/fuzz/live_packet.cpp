// SPDX-License-Identifier: Apache-2.0
// Fuzz target: packets that get in. Whatever a peer (or somebody who sits on the wire and knows all numbers) sends to a
// live engine, in whatever order, with a right CRC: it never crashes, never writes outside what was registered for
// writing, never sends what is no packet, and comes to rest.
//
// Input: a byte (bit 0: IPv6, bits 1-2: path MTU), then steps of a kind byte and what it takes:
//   0-3  a packet made from fields: queue pair, opcode, flags, distance from the expected number, where, length; of
//        XRC also whose receives it is for
//   4    a packet as it is: queue pair, length, bytes from the BTH's opcode on
//   5    a work request   6  a receive   7  the engine runs, a key is revoked, or a shared receive queue goes
// Of the queue pair's byte the lowest three bits count, and others say more where they are read.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "require.hpp"
#include "soft/nic/engine.hpp"
#include "soft/roce/icrc.hpp"
#include "soft/roce/memory_port.hpp"

namespace strait::soft::nic {
struct EngineTestPeer {
  static QueuePair* find(Engine& engine, std::uint32_t qpn) { return engine.find_qp(qpn); }
};
}  // namespace strait::soft::nic

namespace {

using namespace strait;
using namespace strait::soft;
using fuzz::require;
namespace m = wire::mlx5;
namespace w = wire::roce;

constexpr std::size_t kGuard = 4096;
constexpr std::size_t kOpen = 8192;  // registered for everything
constexpr std::byte kUntouched{0xa5};

void put(std::byte* at, std::uint64_t value, unsigned bytes) {
  for (unsigned i = 0; i < bytes; ++i) at[i] = static_cast<std::byte>(value >> (8 * (bytes - 1 - i)));
}

class Reader {
 public:
  Reader(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}
  [[nodiscard]] bool more() const { return at_ != end_; }
  std::uint32_t u8() { return at_ == end_ ? 0 : *at_++; }
  std::uint32_t u16() {
    const std::uint32_t high = u8();
    return high << 8 | u8();
  }
  void copy(std::byte* to, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) to[i] = static_cast<std::byte>(u8());
  }

 private:
  const std::uint8_t* at_;
  const std::uint8_t* end_;
};

// A queue pair with its rings.
struct Queue {
  static constexpr std::uint32_t kBlocks = 16, kReceives = 8, kEntries = 64;
  struct alignas(64) Rings {
    std::byte sq[kBlocks * 64];
    std::byte rq[kReceives * 64];
    std::byte cq[kEntries * 64];
    std::byte record[64];
    std::byte cq_record[64];
  };
  Queue(nic::Engine& on, std::uint32_t pd, std::uint32_t access) : Queue(on) {
    strait_nic_qp_request qp{};
    qp.struct_size = sizeof qp;
    qp.pd = pd;
    qp.sq_blocks = kBlocks;
    qp.rq_entries = kReceives;
    qp.rq_stride_log2 = 6;
    qp.send_cqn = qp.recv_cqn = cqn;
    qp.access = access;
    qp.sq = rings->sq;
    qp.rq = rings->rq;
    qp.record = rings->record;
    qpn = engine.create_qp(qp).value().qpn;
  }
  // One end of an extended reliable connection. Receives are those of shared queues.
  Queue(nic::Engine& on, std::uint32_t pd, nic::QpType end, std::uint32_t xrcd) : Queue(on) {
    nic::QpRequest qp;
    qp.type = end;
    qp.pd = pd;
    if (end == nic::QpType::xrc_tgt) {
      qp.xrcd = xrcd;
    } else {
      qp.send_cqn = qp.recv_cqn = cqn;
      qp.sq = rings->sq;
      qp.sq_blocks = kBlocks;
      qp.record = rings->record;
    }
    type = end;
    qpn = engine.create_qp(qp).value();
  }
  explicit Queue(nic::Engine& on) : engine(on), rings(new Rings{}) {
    std::memset(rings->cq, 0xff, sizeof rings->cq);
    const strait_nic_cq_request cq{sizeof cq, kEntries, 64, STRAIT_NIC_CQ_IGNORE_OVERRUN, rings->cq, rings->cq_record};
    cqn = engine.create_cq(cq).value();
  }
  ~Queue() { require(engine.destroy_qp(qpn) && engine.destroy_cq(cqn), "a queue pair can be destroyed"); }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  nic::Engine& engine;
  std::unique_ptr<Rings> rings;
  nic::QpType type = nic::QpType::rc;
  std::uint32_t cqn = 0, qpn = 0, posted = 0, receives = 0;
};

// Receives that many take from: linked once, in a circle, and used in that order.
struct Shared {
  static constexpr std::uint32_t kEntries = 8;
  struct alignas(64) Ring {
    std::byte entries[kEntries * 64];
    std::byte record[64];
  };
  Shared(nic::Engine& on, std::uint32_t pd, std::uint32_t cqn, std::uint32_t xrcd) : engine(on), ring(new Ring{}) {
    for (std::uint32_t i = 0; i < kEntries; ++i) put(ring->entries + std::size_t{i} * 64, (i + 1) % kEntries, 4);
    nic::SrqRequest request;
    request.pd = pd;
    request.entries = kEntries;
    request.stride_log2 = 6;
    request.ring = ring->entries;
    request.record = ring->record;
    request.xrcd = xrcd;
    request.cqn = cqn;
    number = engine.create_srq(request).value();
  }
  ~Shared() { require(engine.destroy_srq(number).has_value(), "a shared receive queue can be destroyed"); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  nic::Engine& engine;
  std::unique_ptr<Ring> ring;
  std::uint32_t number = 0, receives = 0;
};

class World {
 public:
  explicit World(std::uint32_t shape) {
    const bool v6 = (shape & 1) != 0;
    const char* const names[2] = {v6 ? "fd00::1" : "10.0.0.1", v6 ? "fd00::2" : "10.0.0.2"};
    const auto here = roce::IpAddress::parse(names[0]).value();
    const auto there = roce::IpAddress::parse(names[1]).value();
    auto ports = roce::MemoryPort::make_pair(here, there, {4200, 256});
    port_ = ports.first.get();
    far_ = std::move(ports.second);
    flow_ = {there, here, 0xc123};
    engine_ = nic::Engine::open({}).value();
    engine_->attach_port(std::move(ports.first)).value();
    pd_ = engine_->alloc_pd();
    // guard | open to all | guard | to be read only | guard
    memory_.assign(3 * kGuard + 2 * kOpen, kUntouched);
    open_key_ = reg(
        kGuard, STRAIT_NIC_LOCAL_WRITE | STRAIT_NIC_REMOTE_WRITE | STRAIT_NIC_REMOTE_READ | STRAIT_NIC_REMOTE_ATOMIC);
    read_key_ = reg(2 * kGuard + kOpen, STRAIT_NIC_REMOTE_READ);
    own_key_ = reg(2 * kGuard + kOpen, STRAIT_NIC_LOCAL_WRITE);
    constexpr std::uint32_t kAll = STRAIT_NIC_REMOTE_WRITE | STRAIT_NIC_REMOTE_READ | STRAIT_NIC_REMOTE_ATOMIC;
    for (unsigned i = 0; i < kTarget; ++i) queues_[i] = std::make_unique<Queue>(*engine_, pd_, i == 1 ? 0 : kAll);
    const std::uint32_t xrcd = engine_->alloc_xrcd(), another = engine_->alloc_xrcd();
    queues_[kTarget] = std::make_unique<Queue>(*engine_, pd_, nic::QpType::xrc_tgt, xrcd);
    queues_[kInitiator] = std::make_unique<Queue>(*engine_, pd_, nic::QpType::xrc_ini, xrcd);
    // Two that peers may name, and two that they may not: of another domain, and an ordinary one.
    for (const std::uint32_t domain : {xrcd, xrcd, another, 0u})
      shared_.push_back(std::make_unique<Shared>(*engine_, pd_, queues_[kTarget]->cqn, domain));
    nic::PacketPath path;
    path.to = there;
    path.remote_qpn = 0x4242;
    path.send_psn = 0xfffff0;
    path.receive_psn = 0xfffffe;
    path.pmtu_bytes = 256u << (shape >> 1 & 3);
    path.qkey = 0x1234;
    path.max_reads_in = path.max_reads_out = 4;
    // 0 reliable, 1 reliable that allows nothing, 2 failed, 3 not connected, 4 unreliable, 5 datagrams, 6 and 7 XRC
    for (const unsigned i : {0u, 1u, 2u, 4u, 5u}) {
      path.transport = i == 4 ? w::Transport::uc : i == 5 ? w::Transport::ud : w::Transport::rc;
      engine_->connect_packets(queues_[i]->qpn, path).value();
    }
    for (const unsigned i : {kTarget, kInitiator}) connect_xrc(*queues_[i], path);
    engine_->fail_qp(queues_[2]->qpn).value();
    pmtu_ = path.pmtu_bytes;
  }

  void step(Reader& in) {
    switch (const std::uint32_t kind = in.u8(); kind & 7) {
      case 4: return raw(in);
      case 5: return post(in);
      case 6: return post_receive(in);
      case 7: return kind == 0xff ? revoke() : kind == 0xf7 ? drop_shared() : run(1 + (kind >> 3));
      default: return made(in);
    }
  }
  void finish() {
    run(40);
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      const bool open = i >= kGuard && i < kGuard + kOpen;
      require(open || memory_[i] == kUntouched, "nothing is written outside what was registered for writing");
    }
  }

 private:
  std::uint32_t reg(std::size_t offset, std::uint32_t access) {
    strait_nic_mr_request request{};
    request.struct_size = sizeof request;
    request.pd = pd_;
    request.access = access;
    request.fd = -1;
    request.address = reinterpret_cast<std::uint64_t>(memory_.data() + offset);
    request.length_bytes = kOpen;
    return engine_->register_memory(request).value().rkey;
  }
  // As programs do it, step by step.
  void connect_xrc(const Queue& queue, const nic::PacketPath& path) {
    nic::QpAttributes to;
    to.access = STRAIT_NIC_REMOTE_WRITE | STRAIT_NIC_REMOTE_READ | STRAIT_NIC_REMOTE_ATOMIC;
    to.port = 1;
    to.path.is_global = true;
    to.path.dgid = path.to.gid;
    to.path_mtu = w::pmtu_code(path.pmtu_bytes);
    to.retries = to.rnr_retries = 7;
    to.rq_psn = path.receive_psn;
    to.sq_psn = path.send_psn;
    to.max_reads = to.max_dest_reads = 4;
    to.min_rnr_timer = 1;
    to.dest_qpn = path.remote_qpn;
    const bool target = queue.type == nic::QpType::xrc_tgt;
    const auto step = [&](nic::QpState state, std::uint32_t mask) {
      to.state = state;
      engine_->modify_qp(queue.qpn, to, nic::kQpState | mask).value();
    };
    step(nic::QpState::init, nic::kQpPkeyIndex | nic::kQpPort | nic::kQpAccess);
    step(nic::QpState::rtr, nic::kQpPath | nic::kQpPathMtu | nic::kQpDestQpn | nic::kQpRqPsn |
                                (target ? nic::kQpMaxDestReads | nic::kQpMinRnrTimer : 0u));
    step(nic::QpState::ready,
         nic::kQpSqPsn | nic::kQpTimeout | (target ? 0u : nic::kQpRetries | nic::kQpRnrRetries | nic::kQpMaxReads));
  }
  // Under a message, perhaps.
  void drop_shared() {
    if (shared_[1]) dropped_ = shared_[1]->number;
    shared_[1].reset();
  }
  // Which receives a packet of XRC is for: the stranger knows all numbers, those that are gone included.
  [[nodiscard]] std::uint32_t srq_named(std::uint32_t which) const {
    if (which >= shared_.size()) return which;
    return shared_[which] ? shared_[which]->number : dropped_;
  }
  void revoke() {
    if (open_key_ == 0) return;
    (void)engine_->deregister_memory(open_key_);
    open_key_ = 0;
  }
  void run(std::uint32_t times) {
    for (std::uint32_t i = 0; i < times; ++i) {
      engine_->drive(0);
      for (const auto& frame : port_->on_the_way()) {
        roce::Packet packet;
        require(roce::parse(frame.bytes, packet) == roce::Drop::none, "only packets are sent");
        require(roce::check(frame.flow, frame.bytes, false), "and their CRC is right");
        require(packet.payload.size() <= pmtu_, "none is longer than the path allows");
      }
      port_->on_the_way().clear();
    }
  }
  void inject(std::vector<std::byte> bytes, bool congested) {
    roce::seal(flow_, bytes);
    port_->inject({flow_, congested, false, std::move(bytes)});
    if (++waiting_ % 16 == 0) run(1);
  }
  void made(Reader& in) {
    const std::uint32_t who = in.u8();
    Queue& queue = *queues_[who % queues_.size()];
    roce::Headers h;
    h.opcode = static_cast<w::Opcode>(in.u8());
    const std::uint32_t flags = in.u8();
    const auto distance = static_cast<std::int8_t>(in.u8());
    const std::uint32_t where = in.u16();
    const std::uint32_t length = in.u16();
    const w::Shape& shape = w::shape_of(h.opcode);
    if (!shape.known) return;
    if (shape.has_xrceth) h.xrc_srqn = srq_named(in.u8());
    const nic::QueuePair* const qp = nic::EngineTestPeer::find(*engine_, queue.qpn);
    const std::uint32_t from = !qp->packets ? 0 : shape.is_request() ? qp->packets->epsn : qp->packets->una;
    h.psn = w::psn_add(from, static_cast<std::uint32_t>(distance) & w::kPsnMask);
    h.dest_qpn = queue.qpn;
    h.ack_req = (flags & 1) != 0;
    h.solicited = (flags & 2) != 0;
    h.rkey = (flags & 4) != 0 ? read_key_ : (flags & 8) != 0 ? 0x77777777 : open_key_;
    h.va = reinterpret_cast<std::uint64_t>(memory_.data()) + where % memory_.size();
    if ((flags & 16) != 0) h.va &= ~std::uint64_t{7};
    h.dma_length = (flags & 32) != 0 ? length << 16 | length : length;
    h.syndrome = static_cast<std::uint8_t>(where);
    h.msn = length;
    h.swap_or_add = h.compare = h.original = where;
    h.imm_raw = h.inval_rkey = h.rkey;
    h.qkey = (flags & 64) != 0 ? 0 : 0x1234;
    h.src_qpn = where;
    std::uint32_t payload = 0;
    if (shape.may_carry_payload()) payload = shape.first || shape.middle ? pmtu_ : std::min(length, 4096u);
    if ((flags & 128) != 0 && shape.may_carry_payload()) payload = std::min(length % 5000, 4096u);
    h.pad = w::pad_of(payload);
    std::vector<std::byte> bytes(w::kMaxHeaderBytes);
    bytes.resize(roce::write_headers(h, bytes.data()));
    bytes.resize(bytes.size() + payload, static_cast<std::byte>(who));
    bytes.resize(bytes.size() + h.pad + w::kIcrcBytes);
    inject(std::move(bytes), (who & 0x80) != 0);
  }
  void raw(Reader& in) {
    const std::uint32_t who = in.u8();
    std::vector<std::byte> bytes(std::max<std::size_t>(16, in.u8()));
    in.copy(bytes.data(), bytes.size() - w::kIcrcBytes);
    put(bytes.data() + 5, queues_[who % queues_.size()]->qpn, 3);
    inject(std::move(bytes), false);
  }
  void post(Reader& in) {
    static constexpr std::array kOpcodes = {
        m::Opcode::rdma_write, m::Opcode::rdma_write_imm, m::Opcode::send,      m::Opcode::send_imm,
        m::Opcode::rdma_read,  m::Opcode::atomic_fa,      m::Opcode::atomic_cs, m::Opcode::nop};
    const std::uint32_t who = in.u8();
    Queue& queue = *queues_[who % queues_.size()];
    const m::Opcode opcode = kOpcodes[in.u8() % kOpcodes.size()];
    const std::uint32_t length = 1 + in.u16() % 4000;
    const bool remote = opcode != m::Opcode::send && opcode != m::Opcode::send_imm && opcode != m::Opcode::nop;
    const bool atomic = opcode == m::Opcode::atomic_fa || opcode == m::Opcode::atomic_cs;
    const bool xrc = queue.type == nic::QpType::xrc_ini;
    if (queue.type == nic::QpType::xrc_tgt) return;  // it has nowhere to post to
    std::byte wqe[128] = {};
    std::byte* const at = wqe;
    const std::uint32_t segments =
        (opcode == m::Opcode::nop ? 1 : 2 + (remote ? 1 : 0) + (atomic ? 1 : 0)) + (xrc ? 1 : 0);
    put(at, (queue.posted & 0xffff) << 8 | static_cast<std::uint32_t>(opcode), 4);
    put(at + 4, queue.qpn << 8 | segments, 4);
    at[11] = std::byte{m::kCompletionAlways};
    std::byte* segment = at + 16;
    if (xrc) {
      put(segment, 0x77, 4);
      segment += 16;
    }
    if (remote) {
      put(segment, 0x1000, 8);
      put(segment + 8, 0x99, 4);
      segment += 16;
    }
    if (atomic) segment += 16;
    if (opcode != m::Opcode::nop) {
      put(segment, atomic ? 8 : length, 4);
      put(segment + 4, open_key_, 4);
      put(segment + 8, reinterpret_cast<std::uint64_t>(memory_.data()) + kGuard + (who & 0x40), 8);
    }
    const std::uint32_t blocks = (segments * 16 + 63) / 64;
    for (std::uint32_t i = 0; i < blocks; ++i)
      std::memcpy(queue.rings->sq + (queue.posted + i) % Queue::kBlocks * 64, wqe + std::size_t{i} * 64, 64);
    queue.posted += blocks;
    publish(queue.rings->record + 4, queue.posted);
    engine_->drive(queue.qpn);
  }
  void post_receive(Reader& in) {
    const std::uint32_t who = in.u8();
    Queue& queue = *queues_[who % queues_.size()];
    const bool target = queue.type == nic::QpType::xrc_tgt;
    Shared* const shared = target ? shared_[who >> 3 & 3].get() : nullptr;
    if (target && shared == nullptr) return;
    std::byte* at = target ? shared->ring->entries + shared->receives % Shared::kEntries * 64 + 16
                           : queue.rings->rq + queue.receives % Queue::kReceives * 64;
    std::memset(at, 0, 48);
    put(at, 1 + in.u16() % kOpen, 4);
    // Of those that peers may not name: where nothing is to be written.
    const bool others = target && (who >> 3 & 3) >= 2;
    put(at + 4, others ? own_key_ : (who & 0x80) != 0 ? read_key_ : open_key_, 4);
    put(at + 8, reinterpret_cast<std::uint64_t>(memory_.data()) + (others ? 2 * kGuard + kOpen : kGuard), 8);
    put(at + 20, m::kTerminatorLkey, 4);
    std::uint32_t& receives = target ? shared->receives : queue.receives;
    publish(target ? shared->ring->record : queue.rings->record, ++receives);
  }
  static void publish(std::byte* record, std::uint32_t count) {
    std::uint32_t word = 0;
    put(reinterpret_cast<std::byte*>(&word), count & 0xffff, 4);
    __atomic_store_n(reinterpret_cast<std::uint32_t*>(record), word, __ATOMIC_RELEASE);
  }

  std::vector<std::byte> memory_;
  std::unique_ptr<roce::MemoryPort> far_;
  roce::MemoryPort* port_ = nullptr;
  std::unique_ptr<nic::Engine> engine_;
  static constexpr unsigned kTarget = 6, kInitiator = 7;
  std::array<std::unique_ptr<Queue>, 8> queues_;
  std::vector<std::unique_ptr<Shared>> shared_;
  std::uint32_t dropped_ = 0;
  roce::Flow flow_;
  std::uint32_t pd_ = 0, open_key_ = 0, read_key_ = 0, own_key_ = 0, pmtu_ = 0, waiting_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  Reader in(data, std::min<std::size_t>(size, 2048));
  World world(in.u8());
  while (in.more()) world.step(in);
  world.finish();
  return 0;
}
