// SPDX-License-Identifier: Apache-2.0
// Queue pairs of verbs on one host: they know each other by GID and number only, and find the ring grant by themselves.
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "soft/nic/verbs_testing.hpp"
#include "sys/socket.hpp"

namespace strait::soft::nic::testing {
namespace {

// Somebody drives both engines while this lives, as the threads of their processes would.
class Driver {
 public:
  Driver(Engine& a, Engine& b)
      : thread_([this, &a, &b] {
          while (!stop_) {
            a.drive(0);
            b.drive(0);
            std::this_thread::yield();
          }
        }) {}
  ~Driver() {
    stop_ = true;
    thread_.join();
  }
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

struct Neighbours {
  explicit Neighbours(Carrier carrier_a = Carrier::any, Carrier carrier_b = Carrier::any, TestShape shape_b = {}) {
    a = open(carrier_a);
    b = open(carrier_b);
    a->set_event_sink(&heard_a);
    b->set_event_sink(&heard_b);
    pd_a = a->alloc_pd();
    pd_b = b->alloc_pd();
    qa = std::make_unique<TestQueue>(*a, pd_a, TestShape{});
    qb = std::make_unique<TestQueue>(*b, pd_b, shape_b);
    source_key = VerbsPair::reg(*a, pd_a, source);
    target_key = VerbsPair::reg(*b, pd_b, target);
  }
  static std::unique_ptr<Engine> open(Carrier carrier) {
    EngineConfig config;
    config.packet_address = "loopback";
    config.carrier = carrier;
    return Engine::open(config).value();
  }
  [[nodiscard]] QpAttributes from_a() const { return attributes_to({b->gids()[0]}, qb->qpn, 0x123456, 0x654321); }
  [[nodiscard]] QpAttributes from_b() const { return attributes_to({a->gids()[0]}, qa->qpn, 0x654321, 0x123456); }
  void raise_a(QpState last = QpState::ready) {
    const Driver driver(*a, *b);
    VerbsPair::raise_to(*a, qa->qpn, QpType::rc, from_a(), last);
  }
  void raise_b(QpState last = QpState::ready) {
    const Driver driver(*a, *b);
    VerbsPair::raise_to(*b, qb->qpn, QpType::rc, from_b(), last);
  }
  std::optional<Event> wait(TestQueue& queue) {
    const auto deadline = sys::Deadline::after_ns(30'000'000'000);
    while (!deadline.passed()) {
      if (auto event = queue.poll()) return event;
      a->drive(0);
      b->drive(0);
    }
    return std::nullopt;
  }
  void drive(int times) {
    for (int i = 0; i < times; ++i) {
      a->drive(0);
      b->drive(0);
    }
  }
  [[nodiscard]] bool granted(Engine& engine, const TestQueue& queue) {
    return engine.describe_qp(queue.qpn).value().find("ring grant") != std::string::npos;
  }
  m::Syndrome write(std::uint32_t length) {
    qa->post({.opcode = m::Opcode::rdma_write,
              .raddr = address_of(target.data()),
              .rkey = target_key,
              .data = {{address_of(source.data()), length, source_key}}});
    const auto event = wait(*qa);
    EXPECT_TRUE(event);
    return event ? event->syndrome : m::Syndrome::remote_aborted;
  }
  Wqe message(unsigned seed) {
    Wqe wqe{.opcode = m::Opcode::send};
    wqe.inlined = pattern(32, seed);
    return wqe;
  }
  void receive() { qb->post_receive({{address_of(target.data()), 4096, target_key}}); }

  HeardEvents heard_a, heard_b;
  std::unique_ptr<Engine> a, b;
  std::uint32_t pd_a = 0, pd_b = 0;
  std::unique_ptr<TestQueue> qa, qb;
  std::vector<std::byte> source = pattern(100'000, 1), target = std::vector<std::byte>(100'000);
  std::uint32_t source_key = 0, target_key = 0;
};

TEST(Neighbour, IsFoundByAddressAndNumber) {
  Neighbours n;
  n.raise_a();
  n.raise_b();
  EXPECT_TRUE(n.granted(*n.a, *n.qa)) << n.a->describe_qp(n.qa->qpn).value();
  EXPECT_TRUE(n.granted(*n.b, *n.qb)) << n.b->describe_qp(n.qb->qpn).value();
  EXPECT_EQ(n.write(100'000), m::Syndrome::none);
  EXPECT_EQ(n.source, n.target);
  for (unsigned i = 0; i < 50; ++i) {
    n.receive();
    n.qa->post(n.message(i));
    const auto event = n.wait(*n.qb);
    ASSERT_TRUE(event && n.wait(*n.qa));
    EXPECT_EQ(std::memcmp(n.target.data(), pattern(32, i).data(), 32), 0);
  }
  EXPECT_EQ(n.b->query_qp(n.qb->qpn).value().rq_psn, 0x123456u) << "not used, and given back";
}

TEST(Neighbour, OneLinkServesBothDirectionsAndAllQueuePairs) {
  Neighbours n;
  n.raise_a();
  n.raise_b();
  TestQueue second_a(*n.a, n.pd_a, TestShape{}), second_b(*n.b, n.pd_b, TestShape{});
  VerbsPair::raise_to(*n.b, second_b.qpn, QpType::rc, attributes_to({n.a->gids()[0]}, second_a.qpn, 1, 2),
                      QpState::ready);
  VerbsPair::raise_to(*n.a, second_a.qpn, QpType::rc, attributes_to({n.b->gids()[0]}, second_b.qpn, 2, 1),
                      QpState::ready);
  EXPECT_EQ(n.a->counts().links_opened, 1u);
  EXPECT_EQ(n.b->counts().links_opened, 1u);
}

TEST(Neighbour, ThatWantsPacketsGetsPackets) {
  for (const bool at_a : {true, false}) {
    Neighbours n(at_a ? Carrier::packets : Carrier::any, at_a ? Carrier::any : Carrier::packets);
    n.raise_a();
    n.raise_b();
    EXPECT_FALSE(n.granted(*n.a, *n.qa));
    EXPECT_FALSE(n.granted(*n.b, *n.qb));
    EXPECT_EQ(n.write(100'000), m::Syndrome::none);
    EXPECT_EQ(n.source, n.target);
  }
}

TEST(Neighbour, MayBeTheSameEngine) {
  Neighbours n;
  TestQueue other(*n.a, n.pd_a, TestShape{});
  VerbsPair::raise_to(*n.a, n.qa->qpn, QpType::rc, attributes_to({n.a->gids()[0]}, other.qpn, 1, 2), QpState::ready);
  VerbsPair::raise_to(*n.a, other.qpn, QpType::rc, attributes_to({n.a->gids()[0]}, n.qa->qpn, 2, 1), QpState::ready);
  EXPECT_TRUE(n.granted(*n.a, *n.qa));
  std::vector<std::byte> here(5000);
  n.qa->post({.opcode = m::Opcode::rdma_write,
              .raddr = address_of(here.data()),
              .rkey = VerbsPair::reg(*n.a, n.pd_a, here),
              .data = {{address_of(n.source.data()), 5000, n.source_key}}});
  const auto event = n.wait(*n.qa);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->syndrome, m::Syndrome::none);
  EXPECT_EQ(std::memcmp(here.data(), n.source.data(), 5000), 0);
}

// One side is often ready, and sends, before the other was told where to receive from.
TEST(Neighbour, WaitsForAPeerThatIsNotReadyYet) {
  Neighbours n;
  n.raise_a();
  for (int i = 0; i < 3; ++i) n.receive();
  for (unsigned i = 0; i < 3; ++i) n.qa->post(n.message(i));
  n.drive(2000);
  EXPECT_FALSE(n.qa->poll());
  n.raise_b(QpState::rtr);
  for (int i = 0; i < 3; ++i) {
    const auto event = n.wait(*n.qb);
    ASSERT_TRUE(event && n.wait(*n.qa));
    EXPECT_EQ(event->counter, i);
    EXPECT_EQ(event->syndrome, m::Syndrome::none);
  }
  EXPECT_EQ(n.heard_b.count(AsyncKind::communication_established), 1);
}

TEST(Neighbour, DoesNotWaitLongerThanItsAttributesSay) {
  Neighbours n;
  QpAttributes impatient = n.from_a();
  impatient.timeout = 12;  // 17 ms
  impatient.retries = 1;
  {
    const Driver driver(*n.a, *n.b);
    VerbsPair::raise_to(*n.a, n.qa->qpn, QpType::rc, impatient, QpState::ready);
  }
  n.qa->post(n.message(1));
  const auto event = n.wait(*n.qa);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->syndrome, m::Syndrome::transport_retry_exceeded);
}

TEST(Neighbour, RunsOutOfPatienceWithoutReceives) {
  Neighbours n;
  QpAttributes few = n.from_a();
  few.rnr_retries = 2;
  const auto raise = [&] {
    const Driver driver(*n.a, *n.b);
    VerbsPair::raise_to(*n.a, n.qa->qpn, QpType::rc, few, QpState::ready);
    VerbsPair::raise_to(*n.b, n.qb->qpn, QpType::rc, n.from_b(), QpState::ready);
  };
  raise();
  n.qa->post(n.message(1));
  const auto event = n.wait(*n.qa);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->syndrome, m::Syndrome::rnr_retry_exceeded);
}

TEST(Neighbour, IsResetAndUsedAgain) {
  Neighbours n;
  for (unsigned round = 0; round < 5; ++round) {
    n.raise_a();
    n.raise_b();
    for (unsigned i = 0; i < 20; ++i) {
      n.receive();
      n.qa->post(n.message(i + round));
      const auto event = n.wait(*n.qb);
      ASSERT_TRUE(event && n.wait(*n.qa));
      EXPECT_EQ(event->counter, i);
      EXPECT_EQ(std::memcmp(n.target.data(), pattern(32, i + round).data(), 32), 0);
    }
    step(*n.a, n.qa->qpn, QpState::reset).value();
    step(*n.b, n.qb->qpn, QpState::reset).value();
    n.qa->set_back();
    n.qb->set_back();
  }
}

TEST(Neighbour, InErrorFlushesAndItsPeerHears) {
  Neighbours n;
  n.raise_a();
  n.raise_b();
  n.receive();
  step(*n.b, n.qb->qpn, QpState::error).value();
  const auto flushed = n.wait(*n.qb);
  ASSERT_TRUE(flushed);
  EXPECT_EQ(flushed->syndrome, m::Syndrome::flushed);
  n.qa->post(n.message(1));
  const auto event = n.wait(*n.qa);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->syndrome, m::Syndrome::transport_retry_exceeded);
  EXPECT_EQ(n.a->query_qp(n.qa->qpn).value().state, QpState::error);
}

TEST(Neighbour, RefusedAccessIsAnEventOfTheOwner) {
  Neighbours n;
  n.raise_a();
  n.raise_b();
  n.target_key ^= 0xff;
  EXPECT_EQ(n.write(64), m::Syndrome::remote_access);
  EXPECT_EQ(n.heard_b.count(AsyncKind::qp_access_error), 1);
}

// Idle queue pairs do not notice; who asks the dead something gets an error.
TEST(Neighbour, ThatDiedIsNoticedWhenSomethingIsAskedOfIt) {
  Neighbours n;
  n.raise_a();
  n.raise_b();
  ASSERT_EQ(n.write(64), m::Syndrome::none);
  n.b->set_event_sink(nullptr);
  n.qb->outlives_engine = true;
  n.b.reset();
  for (int i = 0; i < 3000; ++i) n.a->drive(0);
  EXPECT_EQ(n.a->query_qp(n.qa->qpn).value().state, QpState::ready);
  n.qa->post(n.message(1));
  const auto deadline = sys::Deadline::after_ns(30'000'000'000);
  std::optional<Event> event;
  while (!event && !deadline.passed()) {
    n.a->drive(0);
    event = n.qa->poll();
  }
  ASSERT_TRUE(event);
  EXPECT_EQ(event->syndrome, m::Syndrome::transport_retry_exceeded);
}

// ibv_srq_pingpong leaves when it has seen enough, with messages to it under way. Its peer, which has seen as much,
// must find that out before it hears of those.
TEST(Neighbour, WhoLeftIsMissedNoSoonerThanTheTimerSays) {
  constexpr std::uint8_t kTimeout = 13, kRetries = 2;
  constexpr std::int64_t kLimitNs = (std::int64_t{4096} << kTimeout) * (kRetries + 1);
  for (const bool with_its_nic : {false, true}) {
    SCOPED_TRACE(with_its_nic);
    Neighbours n;
    {
      const Driver driver(*n.a, *n.b);
      QpAttributes path = n.from_a();
      path.timeout = kTimeout;
      path.retries = kRetries;
      VerbsPair::raise_to(*n.a, n.qa->qpn, QpType::rc, path, QpState::ready);
    }
    n.raise_b();
    ASSERT_EQ(n.write(64), m::Syndrome::none);
    n.b->set_event_sink(nullptr);
    if (with_its_nic) {
      n.qb->outlives_engine = true;
      n.b.reset();
    } else {
      n.qb.reset();
    }
    const std::int64_t began = sys::now_ns();
    n.qa->post(n.message(1));
    const auto deadline = sys::Deadline::after_ns(60'000'000'000);
    std::optional<Event> event;
    while (!event && !deadline.passed()) {
      n.a->drive(0);
      if (n.b) n.b->drive(0);
      event = n.qa->poll();
    }
    ASSERT_TRUE(event);
    EXPECT_EQ(event->syndrome, m::Syndrome::transport_retry_exceeded);
    EXPECT_GE(sys::now_ns() - began, kLimitNs);
  }
}

// The connection manager's word that the other side left may overtake the acknowledgement of the last message.
TEST(Neighbour, WhatArrivedBeforeBothSidesStoppedIsComplete) {
  for (const Carrier carrier : {Carrier::any, Carrier::packets}) {
    SCOPED_TRACE(carrier == Carrier::packets ? "packets" : "ring");
    Neighbours n(carrier, carrier);
    n.raise_a();
    n.raise_b();
    n.receive();
    n.qa->post(n.message(1));
    const auto deadline = sys::Deadline::after_ns(30'000'000'000);
    n.a->drive(0);
    while (!n.qb->poll() && !deadline.passed()) n.b->drive(0);
    QpAttributes stop;
    stop.state = QpState::error;
    ASSERT_TRUE(n.b->modify_qp(n.qb->qpn, stop, kQpState));
    // One socket for both: nothing overtakes. On a busy machine a neighbour may answer too late for the ring.
    if (!n.granted(*n.a, *n.qa)) n.a->drive(0);
    ASSERT_TRUE(n.a->modify_qp(n.qa->qpn, stop, kQpState));
    const auto event = n.qa->poll();
    ASSERT_TRUE(event);
    EXPECT_EQ(event->syndrome, m::Syndrome::none);
  }
}

TEST(Neighbour, SharedReceivesWorkToo) {
  Neighbours n;
  TestSrq srq(*n.b, n.pd_b, 8);
  TestQueue to(*n.b, n.pd_b, TestShape{.receives = 0, .srqn = srq.srqn});
  {
    const Driver driver(*n.a, *n.b);
    VerbsPair::raise_to(*n.a, n.qa->qpn, QpType::rc, attributes_to({n.b->gids()[0]}, to.qpn, 1, 2), QpState::ready);
    VerbsPair::raise_to(*n.b, to.qpn, QpType::rc, attributes_to({n.a->gids()[0]}, n.qa->qpn, 2, 1), QpState::ready);
  }
  EXPECT_TRUE(n.granted(*n.b, to));
  for (unsigned i = 0; i < 30; ++i) {
    const std::uint32_t entry = srq.post({{address_of(n.target.data()), 100, n.target_key}}).value();
    n.qa->post(n.message(i));
    const auto event = n.wait(to);
    ASSERT_TRUE(event && n.wait(*n.qa));
    EXPECT_EQ(event->counter, entry);
    EXPECT_EQ(event->srqn_uidx, srq.srqn);
    EXPECT_EQ(std::memcmp(n.target.data(), pattern(32, i).data(), 32), 0);
    srq.give_back(entry);
  }
}

TEST(Neighbour, OtherTransportsGoAsPackets) {
  Neighbours n;
  TestQueue from(*n.a, n.pd_a, TestShape{.type = QpType::uc}), to(*n.b, n.pd_b, TestShape{.type = QpType::uc});
  VerbsPair::raise_to(*n.a, from.qpn, QpType::uc, attributes_to({n.b->gids()[0]}, to.qpn, 1, 2), QpState::ready);
  VerbsPair::raise_to(*n.b, to.qpn, QpType::uc, attributes_to({n.a->gids()[0]}, from.qpn, 2, 1), QpState::ready);
  EXPECT_FALSE(n.granted(*n.a, from));
  to.post_receive({{address_of(n.target.data()), 100, n.target_key}});
  from.post(n.message(3));
  EXPECT_TRUE(n.wait(to));
}

// ---- Packets in place of the ring, and why --------------------------------------------------------------------------

// Each with a port for packets, and a queue pair that is not connected.
struct WithPorts {
  WithPorts() {
    auto ports = roce::MemoryPort::make_pair(roce::IpAddress::v4(10, 0, 0, 1), roce::IpAddress::v4(10, 0, 0, 2));
    a->attach_port(std::move(ports.first)).value();
    b->attach_port(std::move(ports.second)).value();
    std::memcpy(&to, b->address().bytes, sizeof to);
  }
  std::string reason() {
    strait_nic_address address{};
    std::memcpy(address.bytes, &to, sizeof to);
    queue.connect(address, 0x123).value();
    const std::string path = a->describe_qp(queue.qpn).value();
    const std::size_t open = path.rfind('(');
    return open == std::string::npos ? path : path.substr(open);
  }
  std::unique_ptr<Engine> a = Engine::open({}).value(), b = Engine::open({}).value();
  TestQueue queue{*a, a->alloc_pd()};
  Address to{};
};

TEST(WhyPackets, ThePeerIsOnAnotherHost) {
  WithPorts with;
  ++with.to.host;
  EXPECT_EQ(with.reason(), "(the peer is on another host)");
}

TEST(WhyPackets, ThePeerAskedForThem) {
  WithPorts with;
  with.to.wants_packets = 1;
  EXPECT_EQ(with.reason(), "(asked for by the peer)");
}

// Somebody else answers where the peer should be.
TEST(WhyPackets, TheRingGrantWasRefused) {
  WithPorts with;
  with.to.engine = {1, 2, 3};
  const sys::Fd listener = sys::unix_listen(socket_name(with.to.engine)).value();
  std::thread impostor([&] {
    const sys::Event wake = sys::Event::make().value();
    const auto deadline = sys::Deadline::after_ns(20'000'000'000);
    while (!deadline.passed()) {
      auto socket = sys::accept_one(listener.get());
      if (!socket) {
        std::this_thread::yield();
        continue;
      }
      (void)sys::wait_ready(socket->get(), false, deadline);
      EXPECT_TRUE(accept_link(EngineId{9, 9, 9}, *socket, wake.fd(), {}));
      return;
    }
  });
  const std::string reason = with.reason();
  impostor.join();
  EXPECT_EQ(reason, "(no ring grant: another engine answered at the peer's address)");
}

}  // namespace
}  // namespace strait::soft::nic::testing
