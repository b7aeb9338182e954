// SPDX-License-Identifier: Apache-2.0
// For the tests of the rules of RoCEv2: one live engine, and a test that plays the other end packet by packet.
//
// Packets are written and read here byte by byte, with a CRC of their own: none of the product's packet code is used,
// so that its mistakes do not cancel out.
#pragma once

#include <string>

#include "soft/nic/testing.hpp"
#include "soft/roce/testing.hpp"

namespace strait::soft::nic::testing {

namespace r = wire::roce;
using roce::testing::Bytes;

inline constexpr std::uint32_t kPmtu = 256;

// A packet in plain numbers: a template for what is sent, and what was understood of what came.
struct Pkt {
  unsigned opcode = 0;
  std::uint32_t psn = 0;
  bool ack_req = true;
  bool solicited = false;
  std::uint32_t pkey = 0xffff;
  unsigned version = 0;
  std::uint32_t qpn = 0;  // 0: the live queue pair's

  std::uint64_t va = 0;
  std::uint32_t rkey = 0;
  std::uint32_t length = 0;
  unsigned syndrome = 0x1f;
  std::uint32_t msn = 0;
  std::uint64_t swap_or_add = 0, compare = 0, original = 0;
  std::uint32_t imm = 0;  // or the key to invalidate
  std::uint32_t qkey = 0, source_qpn = 0;
  std::vector<std::byte> payload = {};
  int pad = -1;  // -1: what belongs there
};

// Which extended headers an opcode has, by the table of the specification.
struct Extended {
  bool deth, reth, atomic, aeth, atomic_ack, imm;
};
inline Extended extended(unsigned opcode) {
  const unsigned low = opcode & 0x1f;
  Extended e{};
  if (opcode == 0x81) return e;
  e.deth = opcode >> 5 == 3;
  e.reth = low == 0x06 || low == 0x0a || low == 0x0b || low == 0x0c;
  e.atomic = low == 0x13 || low == 0x14;
  e.aeth = low == 0x0d || low == 0x0f || low == 0x10 || low == 0x11 || low == 0x12;
  e.atomic_ack = low == 0x12;
  e.imm = low == 0x03 || low == 0x05 || low == 0x09 || low == 0x0b || low == 0x16 || low == 0x17;
  return e;
}

class ByteWriter {
 public:
  void put(std::uint64_t value, unsigned bytes) {
    for (unsigned i = bytes; i-- > 0;) out_.push_back(static_cast<std::byte>(value >> (8 * i)));
  }
  void put(std::span<const std::byte> bytes) { out_.insert(out_.end(), bytes.begin(), bytes.end()); }
  Bytes take() { return std::move(out_); }

 private:
  Bytes out_;
};

inline Bytes bytes_of(const Pkt& p) {
  ByteWriter w;
  const unsigned pad = p.pad >= 0 ? static_cast<unsigned>(p.pad) : static_cast<unsigned>(-p.payload.size() & 3);
  w.put(p.opcode, 1);
  w.put((p.solicited ? 0x80u : 0u) | 0x40u | pad << 4 | p.version, 1);
  w.put(p.pkey, 2);
  w.put(p.opcode == 0x81 ? 0x40 : 0, 1);
  w.put(p.qpn, 3);
  w.put(p.ack_req ? 0x80 : 0, 1);
  w.put(p.psn & 0xffffff, 3);
  const Extended e = extended(p.opcode);
  if (e.deth) w.put(p.qkey, 4), w.put(p.source_qpn, 4);
  if (e.reth) w.put(p.va, 8), w.put(p.rkey, 4), w.put(p.length, 4);
  if (e.atomic) w.put(p.va, 8), w.put(p.rkey, 4), w.put(p.swap_or_add, 8), w.put(p.compare, 8);
  if (e.aeth) w.put(p.syndrome, 1), w.put(p.msn, 3);
  if (e.atomic_ack) w.put(p.original, 8);
  if (e.imm) w.put(p.imm, 4);
  if (p.opcode == 0x81) w.put(Bytes(16));
  w.put(p.payload);
  w.put(0, pad);
  w.put(0, 4);
  return w.take();
}

inline std::uint64_t read_be(std::span<const std::byte> bytes, std::size_t& at, std::size_t count) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < count; ++i) value = value << 8 | std::to_integer<std::uint64_t>(bytes[at++]);
  return value;
}

inline Pkt read_packet(std::span<const std::byte> b) {
  Pkt p;
  std::size_t at = 0;
  p.opcode = static_cast<unsigned>(read_be(b, at, 1));
  const auto flags = static_cast<unsigned>(read_be(b, at, 1));
  p.solicited = (flags & 0x80) != 0;
  p.pad = static_cast<int>(flags >> 4 & 3);
  p.version = flags & 15;
  p.pkey = static_cast<std::uint32_t>(read_be(b, at, 2));
  ++at;
  p.qpn = static_cast<std::uint32_t>(read_be(b, at, 3));
  p.ack_req = (read_be(b, at, 1) & 0x80) != 0;
  p.psn = static_cast<std::uint32_t>(read_be(b, at, 3));
  const Extended e = extended(p.opcode);
  if (e.deth) {
    p.qkey = static_cast<std::uint32_t>(read_be(b, at, 4));
    p.source_qpn = static_cast<std::uint32_t>(read_be(b, at, 4));
  }
  if (e.reth || e.atomic) {
    p.va = read_be(b, at, 8);
    p.rkey = static_cast<std::uint32_t>(read_be(b, at, 4));
  }
  if (e.reth) p.length = static_cast<std::uint32_t>(read_be(b, at, 4));
  if (e.atomic) {
    p.swap_or_add = read_be(b, at, 8);
    p.compare = read_be(b, at, 8);
  }
  if (e.aeth) {
    p.syndrome = static_cast<unsigned>(read_be(b, at, 1));
    p.msn = static_cast<std::uint32_t>(read_be(b, at, 3));
  }
  if (e.atomic_ack) p.original = read_be(b, at, 8);
  if (e.imm) p.imm = static_cast<std::uint32_t>(read_be(b, at, 4));
  if (p.opcode == 0x81) at += 16;
  p.payload.assign(b.begin() + static_cast<std::ptrdiff_t>(at), b.end() - 4 - p.pad);
  return p;
}

// IP and UDP headers as they would be on the wire, then the packet without its CRC.
inline Bytes on_the_wire(const roce::Flow& flow, std::span<const std::byte> bth_to_icrc) {
  ByteWriter w;
  const std::size_t udp = 8 + bth_to_icrc.size();
  if (flow.source.is_v4()) {
    w.put(0x4500, 2), w.put(20 + udp, 2), w.put(0, 2), w.put(0x4000, 2), w.put(0x4011, 2), w.put(0, 2);
    for (const roce::IpAddress* a : {&flow.source, &flow.destination})
      w.put(std::as_bytes(std::span(a->gid)).subspan(12));
  } else {
    w.put(0x60000000, 4), w.put(udp, 2), w.put(0x1140, 2);
    for (const roce::IpAddress* a : {&flow.source, &flow.destination}) w.put(std::as_bytes(std::span(a->gid)));
  }
  w.put(flow.source_port, 2), w.put(4791, 2), w.put(udp, 2), w.put(0, 2);
  w.put(bth_to_icrc.first(bth_to_icrc.size() - 4));
  return w.take();
}

inline std::uint32_t icrc_of(const roce::Flow& flow, std::span<const std::byte> bth_to_icrc) {
  return roce::testing::slow_icrc(on_the_wire(flow, bth_to_icrc));
}

struct LiveConfig : PacketPath {
  LiveConfig() {
    send_psn = 0xfffffe;  // wraps soon
    receive_psn = 0xfffffd;
    pmtu_bytes = 256;
    remote_qpn = 0x00abcd;
    qkey = 0x11223344;
  }
  EngineConfig engine;
  bool v6 = false;
  bool connected = true;
  std::uint32_t access = STRAIT_NIC_REMOTE_WRITE | STRAIT_NIC_REMOTE_READ | STRAIT_NIC_REMOTE_ATOMIC;
};

// One engine with one queue pair whose peer is the test.
class Live {
 public:
  explicit Live(const LiveConfig& config = {}) : config_(config) {
    const auto address = [&](int last) {
      return roce::IpAddress::parse(fmt::format("{}{}", config.v6 ? "fd00::" : "10.0.0.", last)).value();
    };
    auto ports = roce::MemoryPort::make_pair(address(1), address(2));
    port = ports.first.get();
    far_port_ = std::move(ports.second);
    engine = Engine::open(config.engine).value();
    engine->attach_port(std::move(ports.first)).value();
    pd = engine->alloc_pd();
    queue = std::make_unique<TestQueue>(*engine, pd, 64, 16, 128, config.access);
    config_.to = address(2);
    flow = {address(2), address(1), 0xd00d};
    epsn = config.receive_psn;
    spsn = config.send_psn;
    if (config.connected) engine->connect_packets(queue->qpn, config_).value();
  }

  // ---- the other end
  void inject(Bytes bytes, bool congested = false) {
    const std::uint32_t crc = icrc_of(flow, bytes);
    for (unsigned i = 0; i < 4; ++i) bytes[bytes.size() - 4 + i] = static_cast<std::byte>(crc >> (8 * i));
    port->inject({flow, congested, false, std::move(bytes)});
  }
  void inject(Pkt p, bool congested = false) {
    if (p.qpn == 0) p.qpn = queue->qpn;
    inject(bytes_of(p), congested);
  }
  // Everything the engine has sent since the last call, with its CRC checked.
  std::vector<Pkt> sent() {
    std::vector<Pkt> all;
    auto& frames = port->on_the_way();
    for (const auto& frame : frames) {
      std::uint32_t crc = 0;
      for (unsigned i = 0; i < 4; ++i)
        crc |= std::to_integer<std::uint32_t>(frame.bytes[frame.bytes.size() - 4 + i]) << (8 * i);
      EXPECT_EQ(crc, icrc_of(frame.flow, frame.bytes));
      EXPECT_EQ(frame.flow.source, flow.destination);
      all.push_back(read_packet(frame.bytes));
      EXPECT_EQ(all.back().version, 0u);
      EXPECT_EQ(all.back().pkey, 0xffffu);
    }
    frames.clear();
    return all;
  }
  std::vector<Pkt> feed(const Pkt& p, bool congested = false) {
    inject(p, congested);
    drive();
    return sent();
  }
  // Exactly one answer is expected.
  Pkt answer(const Pkt& p) {
    const auto all = feed(p);
    EXPECT_EQ(all.size(), 1u) << "answers to " << r::opcode_name(static_cast<r::Opcode>(p.opcode));
    return all.empty() ? Pkt{} : all.front();
  }
  Pkt ack(std::uint32_t psn, unsigned syndrome = 0x1f) const {
    return {.opcode = 0x11, .psn = psn, .ack_req = false, .syndrome = syndrome};
  }

  // ---- this end
  // As often as an acknowledgement waits for company, and then some.
  void drive(int times = 8) {
    for (int i = 0; i < times; ++i) engine->drive(0);
  }
  template <typename Condition>
  bool drive_until(const Condition& holds) {
    const auto deadline = sys::Deadline::after_ns(20'000'000'000);
    while (!holds()) {
      if (deadline.passed()) return false;
      engine->drive(0);
    }
    return true;
  }
  std::optional<Event> wait() {
    std::optional<Event> event;
    (void)drive_until([&] { return (event = queue->poll()).has_value(); });
    return event;
  }
  std::uint32_t reg(void* at, std::uint64_t n,
                    std::uint32_t access = STRAIT_NIC_LOCAL_WRITE | STRAIT_NIC_REMOTE_WRITE | STRAIT_NIC_REMOTE_READ |
                                           STRAIT_NIC_REMOTE_ATOMIC,
                    std::uint32_t domain = 0) {
    strait_nic_mr_request request{};
    request.struct_size = sizeof request;
    request.pd = domain != 0 ? domain : pd;
    request.access = access;
    request.fd = -1;
    request.address = address_of(at);
    request.length_bytes = n;
    return engine->register_memory(request).value().lkey;
  }
  [[nodiscard]] QueuePair& qp() { return EngineTestPeer::queue_pair(*engine, queue->qpn); }
  [[nodiscard]] PacketState& state() { return *qp().packets; }
  [[nodiscard]] const PacketCounts& counts() { return EngineTestPeer::packets(*engine).counts(); }
  [[nodiscard]] std::uint64_t drops(roce::Drop why) { return counts().drops[static_cast<std::size_t>(why)]; }
  [[nodiscard]] bool failed() { return qp().state == QpState::error; }
  [[nodiscard]] std::uint32_t at(std::uint32_t steps) const { return (epsn + steps) & 0xffffff; }    // peer's PSNs
  [[nodiscard]] std::uint32_t ours(std::uint32_t steps) const { return (spsn + steps) & 0xffffff; }  // and ours
  [[nodiscard]] const LiveConfig& config() const { return config_; }

  std::unique_ptr<Engine> engine;
  std::uint32_t pd = 0;
  std::unique_ptr<TestQueue> queue;
  roce::MemoryPort* port = nullptr;
  roce::Flow flow;  // of what the other end sends
  std::uint32_t epsn = 0, spsn = 0;

 private:
  LiveConfig config_;
  std::unique_ptr<roce::MemoryPort> far_port_;
};

// Opcodes by the names of the rules, so that tests read like them.
enum Op : unsigned {
  send_first = 0x00,
  send_middle = 0x01,
  send_last = 0x02,
  send_last_imm = 0x03,
  send_only = 0x04,
  send_only_imm = 0x05,
  write_first = 0x06,
  write_middle = 0x07,
  write_last = 0x08,
  write_last_imm = 0x09,
  write_only = 0x0a,
  write_only_imm = 0x0b,
  read_request = 0x0c,
  read_first = 0x0d,
  read_middle = 0x0e,
  read_last = 0x0f,
  read_only = 0x10,
  ack_op = 0x11,
  atomic_ack = 0x12,
  compare_swap = 0x13,
  fetch_add = 0x14,
  send_last_inval = 0x16,
  send_only_inval = 0x17,
  uc = 0x20,  // added
  ud_send = 0x64,
  ud_send_imm = 0x65,
  cnp = 0x81,
};

}  // namespace strait::soft::nic::testing
