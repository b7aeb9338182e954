// SPDX-License-Identifier: Apache-2.0
// Queue pair 1, and NICs with more than one address.
#include <sys/wait.h>
#include <unistd.h>

#include "soft/nic/verbs_testing.hpp"

namespace strait::soft::nic::testing {
namespace {

struct HeardGsi : GsiSink {
  struct Message {
    Gid source, destination;
    std::uint8_t sgid_index;
    std::uint32_t source_qpn;
    std::vector<std::byte> payload;
  };
  void on_gsi(const GsiMessage& message) override {
    messages.push_back({message.source,
                        message.destination,
                        message.sgid_index,
                        message.source_qpn,
                        {message.payload.begin(), message.payload.end()}});
  }
  std::vector<Message> messages;
};

template <class Done>
bool drive_until(std::initializer_list<Engine*> engines, Done done) {
  const auto deadline = sys::Deadline::after_ns(30'000'000'000);
  while (!done()) {
    if (deadline.passed()) return false;
    for (Engine* const engine : engines) engine->drive(0);
  }
  return true;
}

TEST(Gsi, CarriesADatagramAndItsAnswer) {
  VerbsPair pair;
  HeardGsi at_a, at_b;
  pair.a->set_gsi_sink(&at_a);
  pair.b->set_gsi_sink(&at_b);
  const auto question = pattern(256, 1), reply = pattern(17, 2);
  pair.a->send_gsi(0, pair.port_b->address().gid, question).value();
  ASSERT_TRUE(drive_until({pair.a.get(), pair.b.get()}, [&] { return !at_b.messages.empty(); }));
  const auto& got = at_b.messages[0];
  EXPECT_EQ(got.payload, question);
  EXPECT_EQ(got.source, pair.port_a->address().gid);
  EXPECT_EQ(got.destination, pair.port_b->address().gid);
  EXPECT_EQ(got.source_qpn, 1u);
  pair.b->send_gsi(got.sgid_index, got.source, reply, got.source_qpn).value();
  ASSERT_TRUE(drive_until({pair.a.get(), pair.b.get()}, [&] { return !at_a.messages.empty(); }));
  EXPECT_EQ(at_a.messages[0].payload, reply);
  pair.b->set_gsi_sink(nullptr);
  pair.a->send_gsi(0, pair.port_b->address().gid, question).value();
  pair.drive(600);
  EXPECT_EQ(at_b.messages.size(), 1u);
}

// Management datagrams are lost like all others, and whoever speaks through queue pair 1 has to ask again.
TEST(Gsi, IsPartOfThePlanOfFaults) {
  struct Case {
    const char* plan;
    std::size_t arrive;
  };
  for (const auto& [plan, arrive] : {Case{"drop=100%", 0}, Case{"dup=100%", 6}, Case{"corrupt=100%", 0},
                                     Case{"delay=100%:1ms", 3}, Case{"seed=1", 3}}) {
    SCOPED_TRACE(plan);
    EngineConfig config;
    config.faults = FaultPlan::parse(plan).value();
    auto ports = roce::MemoryPort::make_pair(roce::IpAddress::v4(10, 0, 0, 1), roce::IpAddress::v4(10, 0, 0, 2));
    const Gid to = ports.second->address().gid;
    const auto a = Engine::open(config).value();
    const auto b = Engine::open(EngineConfig{}).value();
    a->attach_port(std::move(ports.first)).value();
    b->attach_port(std::move(ports.second)).value();
    HeardGsi at_a, at_b;
    a->set_gsi_sink(&at_a);
    b->set_gsi_sink(&at_b);
    for (int i = 0; i < 3; ++i) a->send_gsi(0, to, pattern(64, 1)).value();
    EXPECT_TRUE(drive_until({a.get(), b.get()}, [&] { return at_b.messages.size() >= arrive; }));
    for (int i = 0; i < 600; ++i) {
      a->drive(0);
      b->drive(0);
    }
    EXPECT_EQ(at_b.messages.size(), arrive);
    EXPECT_EQ(a->counts().faults_injected, std::string_view(plan) == "seed=1" ? 0u : 3u);
  }
}

// A program that ends within a call of the engine's must not wait for that call.
TEST(Gsi, KnowsThatItIsBusy) {
  struct Asks : GsiSink {
    void on_gsi(const GsiMessage&) override {
      free = engine->free_within(1'000'000);
      asked = true;
    }
    Engine* engine = nullptr;
    bool free = true;
    bool asked = false;
  };
  VerbsPair pair;
  Asks at_b;
  at_b.engine = pair.b.get();
  EXPECT_TRUE(pair.b->free_within(0));
  pair.b->set_gsi_sink(&at_b);
  pair.a->send_gsi(0, pair.port_b->address().gid, pattern(64, 1)).value();
  ASSERT_TRUE(drive_until({pair.a.get(), pair.b.get()}, [&] { return at_b.asked; }));
  EXPECT_FALSE(at_b.free);
  EXPECT_TRUE(pair.b->free_within(0));
}

TEST(Gsi, RefusesWhatItCannotSend) {
  VerbsPair pair;
  const auto message = pattern(257, 1);
  EXPECT_FALSE(pair.a->send_gsi(0, pair.port_b->address().gid, message));
  EXPECT_FALSE(pair.a->send_gsi(1, pair.port_b->address().gid, std::span(message).first(8)));
  EXPECT_FALSE(pair.a->send_gsi(0, roce::IpAddress::parse("fd00::1").value().gid, std::span(message).first(8)));
}

// Strangers who do not know the key, or damage the datagram, are not heard.
TEST(Gsi, ListensOnlyToWholeDatagramsWithTheKey) {
  VerbsPair pair;
  HeardGsi at_b;
  pair.b->set_gsi_sink(&at_b);
  pair.a->send_gsi(0, pair.port_b->address().gid, pattern(64, 1)).value();
  auto frame = pair.port_a->on_the_way().back();
  pair.port_a->on_the_way().clear();
  for (const std::size_t at : {std::size_t{1}, std::size_t{12}, std::size_t{30}}) {
    auto damaged = frame;
    damaged.bytes[at] ^= std::byte{1};
    pair.port_b->inject(damaged);
  }
  for (std::size_t n = 0; n < frame.bytes.size(); ++n) {
    auto cut = frame;
    cut.bytes.resize(n);
    pair.port_b->inject(cut);
  }
  pair.drive(600);
  EXPECT_TRUE(at_b.messages.empty());
  pair.port_b->inject(frame);
  ASSERT_TRUE(drive_until({pair.b.get()}, [&] { return !at_b.messages.empty(); }));
}

EngineConfig on(std::string address, std::vector<std::string> more = {}) {
  EngineConfig config;
  config.packet_address = std::move(address);
  config.more_addresses = std::move(more);
  return config;
}

// The kernel gives a flow to one of the processes; the others hear of it from that one.
TEST(Gsi, EveryProcessOnTheAddressHearsOfIt) {
  const std::string shared = fmt::format("127.77.{}.{}", ::getpid() % 200 + 1, ::getpid() / 200 % 200 + 1);
  std::vector<std::unique_ptr<Engine>> engines;
  std::vector<HeardGsi> heard(3);
  for (auto& sink : heard) {
    engines.push_back(Engine::open(on(shared)).value());
    engines.back()->set_gsi_sink(&sink);
  }
  auto sender = Engine::open(on("loopback")).value();
  const auto message = pattern(256, 3);
  sender->send_gsi(0, engines[0]->gids()[0], message).value();
  const auto all = [&] {
    return std::all_of(heard.begin(), heard.end(), [](const HeardGsi& one) { return !one.messages.empty(); });
  };
  ASSERT_TRUE(drive_until({engines[0].get(), engines[1].get(), engines[2].get(), sender.get()}, all));
  for (const HeardGsi& one : heard) {
    EXPECT_EQ(one.messages.size(), 1u);
    EXPECT_EQ(one.messages[0].payload, message);
    EXPECT_EQ(one.messages[0].source, sender->gids()[0]);
  }
}

TEST(Gsi, OneOfThemSpeaksToTheOthers) {
  const std::string shared = fmt::format("127.78.{}.{}", ::getpid() % 200 + 1, ::getpid() / 200 % 200 + 1);
  auto one = Engine::open(on(shared)).value(), two = Engine::open(on(shared)).value();
  HeardGsi at_one, at_two;
  one->set_gsi_sink(&at_one);
  two->set_gsi_sink(&at_two);
  one->send_gsi(0, two->gids()[0], pattern(8, 4)).value();
  ASSERT_TRUE(drive_until({one.get(), two.get()}, [&] { return !at_two.messages.empty(); }));
}

// Whichever of the two has the socket that the kernel chooses.
TEST(Gsi, AreHeardAlsoOfWhoEndsAtOnce) {
  const std::string shared = fmt::format("127.79.{}.{}", ::getpid() % 200 + 1, ::getpid() / 200 % 200 + 1);
  for (const std::size_t speaker : {std::size_t{0}, std::size_t{1}}) {
    std::unique_ptr<Engine> engines[2] = {Engine::open(on(shared)).value(), Engine::open(on(shared)).value()};
    HeardGsi heard[2];
    for (std::size_t i = 0; i < 2; ++i) engines[i]->set_gsi_sink(&heard[i]);
    engines[speaker]->send_gsi(0, engines[1 - speaker]->gids()[0], pattern(8, 4)).value();
    engines[speaker].reset();
    ASSERT_TRUE(drive_until({engines[1 - speaker].get()}, [&] { return !heard[1 - speaker].messages.empty(); }));
  }
}

// One queue pair number on all addresses, and each speaks from the one it was told.
TEST(Addresses, QueuePairsSpeakFromTheAddressTheyWereTold) {
  const int part = ::getpid() % 250 + 1;
  const auto name = [&](int net) { return fmt::format("127.{}.{}.1", net, part); };
  auto a = Engine::open(on(name(80), {name(81), name(82)})).value();
  auto b = Engine::open(on(name(83), {name(84)})).value();
  ASSERT_EQ(a->gids().size(), 3u);
  EXPECT_EQ(a->path_mtu(2), 4096u);
  EXPECT_EQ(a->path_mtu(3), 0u);
  const std::uint32_t pd_a = a->alloc_pd(), pd_b = b->alloc_pd();
  for (const auto& [from, to] : {std::pair{2, 1}, std::pair{0, 0}, std::pair{1, 1}}) {
    TestQueue qa(*a, pd_a, TestShape{}), qb(*b, pd_b, TestShape{});
    QpAttributes there = attributes_to({b->gids()[static_cast<std::size_t>(to)]}, qb.qpn, 10, 20);
    QpAttributes back = attributes_to({a->gids()[static_cast<std::size_t>(from)]}, qa.qpn, 20, 10);
    there.path.sgid_index = static_cast<std::uint8_t>(from);
    back.path.sgid_index = static_cast<std::uint8_t>(to);
    VerbsPair::raise_to(*a, qa.qpn, QpType::rc, there, QpState::ready);
    VerbsPair::raise_to(*b, qb.qpn, QpType::rc, back, QpState::ready);
    std::vector<std::byte> target(5000), source = pattern(5000, 6);
    const std::uint32_t rkey = VerbsPair::reg(*b, pd_b, target), lkey = VerbsPair::reg(*a, pd_a, source);
    qa.post({.opcode = m::Opcode::rdma_write,
             .raddr = address_of(target.data()),
             .rkey = rkey,
             .data = {{address_of(source.data()), 5000, lkey}}});
    std::optional<Event> event;
    ASSERT_TRUE(drive_until({a.get(), b.get()}, [&] { return (event = qa.poll()).has_value(); }));
    EXPECT_EQ(event->syndrome, m::Syndrome::none);
    EXPECT_EQ(target, source);
  }
  TestQueue lost(*a, pd_a, TestShape{});
  QpAttributes nowhere = attributes_to({b->gids()[0]}, 1, 0, 0);
  nowhere.path.sgid_index = 3;
  step(*a, lost.qpn, nowhere, QpState::init, init_mask(QpType::rc)).value();
  EXPECT_FALSE(step(*a, lost.qpn, nowhere, QpState::rtr, rtr_mask(QpType::rc)));
}

}  // namespace
}  // namespace strait::soft::nic::testing
