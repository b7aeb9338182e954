// SPDX-License-Identifier: Apache-2.0
// Unreliable datagrams: each work request says where it goes, and what a plan of faults does to it goes there too.
#include <filesystem>
#include <fstream>

#include "soft/nic/testing.hpp"

namespace strait::soft::nic::testing {
namespace {

constexpr std::uint32_t kQkey = 0x11111111;

struct Datagrams {
  explicit Datagrams(const char* faults = "seed=1", const std::string& capture = "") {
    auto ports = roce::MemoryPort::make_pair(roce::IpAddress::v4(10, 0, 0, 1), roce::IpAddress::v4(10, 0, 0, 2));
    port = ports.first.get();
    PairConfig config;
    config.faults = FaultPlan::parse(faults).value();
    config.capture = capture;
    a = Engine::open(config).value();
    config.capture.clear();
    b = Engine::open(config).value();
    a->attach_port(std::move(ports.first)).value();
    b->attach_port(std::move(ports.second)).value();
    qa = queue(*a, pd_a);
    qb = queue(*b, pd_b);
  }
  static std::unique_ptr<TestQueue> queue(Engine& engine, std::uint32_t& pd) {
    pd = engine.alloc_pd();
    auto made = std::make_unique<TestQueue>(engine, pd);
    PacketPath path;
    path.transport = wire::roce::Transport::ud;
    path.qkey = kQkey;
    engine.connect_packets(made->qpn, path).value();
    return made;
  }
  static std::uint32_t reg(Engine& engine, std::uint32_t pd, std::vector<std::byte>& bytes) {
    strait_nic_mr_request request{};
    request.struct_size = sizeof request;
    request.pd = pd;
    request.access = STRAIT_NIC_LOCAL_WRITE;
    request.fd = -1;
    request.address = address_of(bytes.data());
    request.length_bytes = bytes.size();
    return engine.register_memory(request).value().lkey;
  }
  // To queue pair b at 10.0.0.2.
  [[nodiscard]] Wqe datagram(std::vector<std::byte> payload) const {
    Wqe wqe{.opcode = m::Opcode::send};
    wqe.inlined = std::move(payload);
    wqe.atomic = {std::uint64_t{kQkey} << 32, std::uint64_t{0x80000000 | qb->qpn} << 32, 0, 0, 0, 0x0000ffff0a000002};
    return wqe;
  }

  roce::MemoryPort* port = nullptr;
  std::unique_ptr<Engine> a, b;
  std::uint32_t pd_a = 0, pd_b = 0;
  std::unique_ptr<TestQueue> qa, qb;
};

TEST(Datagram, ArrivesBehindAHeaderArea) {
  Datagrams pair;
  std::vector<std::byte> received(256);
  const std::uint32_t key = Datagrams::reg(*pair.b, pair.pd_b, received);
  pair.qb->post_receive({{address_of(received.data()), 256, key}});
  const auto payload = pattern(61, 1);
  pair.qa->post(pair.datagram(payload));
  pair.b->drive(0);
  const auto sent = pair.qa->poll();
  const auto event = pair.qb->poll();
  ASSERT_TRUE(sent && event);
  EXPECT_EQ(event->opcode, m::CqeOpcode::responder_send);
  EXPECT_EQ(event->bytes, 40u + 61);
  EXPECT_EQ(event->flags_rqpn & 0xffffff, pair.qa->qpn);
  EXPECT_EQ(event->flags_rqpn >> 24, 0x12u) << "a header came with it, of IPv4";
  EXPECT_EQ(std::memcmp(received.data() + 40, payload.data(), payload.size()), 0);
}

// The queue pair itself has no destination, so none may be taken from it.
TEST(Datagram, GoesWhereItShouldAlsoWithFaults) {
  for (const char* faults :
       {"dup=100%,seed=1", "reorder=100%,seed=1", "delay=100%:1us,seed=1", "corrupt=100%,seed=1"}) {
    SCOPED_TRACE(faults);
    Datagrams pair(faults);
    for (int i = 0; i < 8; ++i) pair.qa->post(pair.datagram(pattern(8, 2)));
    std::size_t count = 0;
    const auto deadline = sys::Deadline::after_ns(5'000'000'000);
    while (count < 8 && !deadline.passed()) {
      pair.a->drive(0);
      for (const auto& frame : pair.port->on_the_way()) {
        EXPECT_EQ(frame.flow.destination.text(), "10.0.0.2");
        ++count;
      }
      pair.port->on_the_way().clear();
    }
    EXPECT_GE(count, 8u);
  }
}

TEST(Datagram, IsCapturedWithItsDestination) {
  const std::string file =
      (std::filesystem::temp_directory_path() / fmt::format("strait-datagram-{}.pcapng", ::getpid())).string();
  {
    Datagrams pair("seed=1", file);
    pair.qa->post(pair.datagram(pattern(8, 3)));
  }
  std::ifstream in(file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  std::filesystem::remove(file);
  const std::string from_to("\x0a\x00\x00\x01\x0a\x00\x00\x02", 8);
  EXPECT_NE(bytes.find(from_to), std::string::npos) << "no IPv4 header from 10.0.0.1 to 10.0.0.2";
}

}  // namespace
}  // namespace strait::soft::nic::testing
