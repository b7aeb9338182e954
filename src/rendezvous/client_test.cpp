// SPDX-License-Identifier: Apache-2.0
// The client against peers that are slow, silent, wrong, or gone.
#include "rendezvous/client.hpp"

#include <future>

#include "rendezvous/testing.hpp"

namespace strait::rendezvous {
namespace {

// A server played by hand: takes one connection and does what the test says.
struct Puppet {
  Puppet() : listener(sys::tcp_listen({"127.0.0.1", 0}, &at).value()) {}
  sys::Fd accept() {
    EXPECT_TRUE(sys::wait_ready(listener.get(), false, soon()));
    return sys::accept_one(listener.get()).value();
  }
  static Message hear(int fd) {
    std::vector<std::byte> frame(4);
    EXPECT_TRUE(sys::receive_all(fd, frame, soon()));
    frame.resize(frame_bytes(frame).value());
    EXPECT_TRUE(sys::receive_all(fd, std::span(frame).subspan(4), soon()));
    return parse(frame).value();
  }
  static void say(int fd, const Body& body) { EXPECT_TRUE(sys::send_all(fd, encode({0, body}).value(), soon())); }

  sys::Endpoint at;
  sys::Fd listener;
};

const Secret kSecret = secret_of("the secret of these tests");

TEST(Client, NobodyListens) {
  sys::Endpoint at;
  { const sys::Fd closed = sys::tcp_listen({"127.0.0.1", 0}, &at).value(); }
  const auto refused = Client::connect(at, kSecret, soon());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().sys_errno, ECONNREFUSED);
}

TEST(Client, APeerThatNeverAnswersEndsAtTheDeadline) {
  Puppet puppet;
  const std::int64_t before = sys::now_ns();
  const auto refused = Client::connect(puppet.at, kSecret, soon(150));
  const std::int64_t took_ms = (sys::now_ns() - before) / 1'000'000;
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::timeout);
  EXPECT_EQ(refused.error().text, puppet.at.text() + " took the connection but did not answer before the deadline");
  EXPECT_GE(took_ms, 149);
  EXPECT_LT(took_ms, 2'000);
}

TEST(Client, SomethingElseListens) {
  Puppet puppet;
  auto refused = std::async(std::launch::async, [&] { return Client::connect(puppet.at, kSecret, soon()); });
  const sys::Fd fd = puppet.accept();
  (void)Puppet::hear(fd.get());
  EXPECT_TRUE(sys::send_all(fd.get(), std::as_bytes(std::span("HTTP/1.1 400 Bad Request\r\n\r\n")), soon()));
  const auto result = refused.get();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::invalid);
  EXPECT_TRUE(result.error().text.starts_with("what listens on " + puppet.at.text() + " is not a strait node ("))
      << result.error().text;
}

TEST(Client, HangsUpWhileGreeting) {
  Puppet puppet;
  auto refused = std::async(std::launch::async, [&] { return Client::connect(puppet.at, kSecret, soon()); });
  {
    const sys::Fd fd = puppet.accept();
    (void)Puppet::hear(fd.get());
  }
  EXPECT_EQ(refused.get().error().text, puppet.at.text() + " closed the connection while greeting");
}

// A server that waves everybody through does not know the secret, and must not be trusted with tickets.
TEST(Client, AnImpostorIsFoundOut) {
  Puppet puppet;
  auto refused = std::async(std::launch::async, [&] { return Client::connect(puppet.at, kSecret, soon()); });
  const sys::Fd fd = puppet.accept();
  const auto hello = std::get<Hello>(Puppet::hear(fd.get()).body);
  Puppet::say(fd.get(), Challenge{kProtocolVersion, hello.nonce});
  const auto proof = std::get<Proof>(Puppet::hear(fd.get()).body);
  Puppet::say(fd.get(), Proof{proof.mac});  // with equal nonces the client's own proof is the best guess there is
  const auto result = refused.get();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::denied);
  EXPECT_EQ(result.error().text,
            puppet.at.text() + " accepted our secret without knowing it: it is not the node we look for");
}

struct ClientTest : testing::Test {
  ClientTest() {
    ServiceSettings settings;
    settings.secret = kSecret;
    service = Service::start(settings, node).value();
    client = Client::connect(service->endpoint(), kSecret, soon()).value();
  }
  FakeNode node;
  std::unique_ptr<Service> service;
  std::unique_ptr<Client> client;
};

TEST_F(ClientTest, ALateAnswerIsNotTakenForTheNext) {
  node.connect_takes_ms = 200;
  const auto late = client->call(ConnectRequest{}, soon(50));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::timeout);
  EXPECT_EQ(late.error().text,
            service->endpoint().text() + " did not answer a connect_request request before the deadline");
  EXPECT_EQ(client->call_for<LookupReply>(Lookup{"kv/0"}, soon())->target.rkey, 17u);
}

TEST_F(ClientTest, WaitingForItsTurnHasADeadlineToo) {
  node.connect_takes_ms = 400;
  std::thread first([&] { EXPECT_TRUE(client->call(ConnectRequest{}, soon())); });
  ASSERT_TRUE(eventually([&] {
    const std::lock_guard lock(node.mutex);
    return !node.seen.empty();
  }));
  const auto second = client->call(Lookup{"kv/0"}, soon(50));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::timeout);
  EXPECT_TRUE(second.error().text.starts_with("another request to ")) << second.error().text;
  first.join();
}

TEST_F(ClientTest, ManyThreadsShareOne) {
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint32_t i = 0; i < 50; ++i) {
        ConnectRequest request;
        request.qpn = 1000 * (t + 1) + i;
        const auto reply = client->call_for<ConnectReply>(request, soon());
        good += reply && reply->qpn == request.qpn + 1;
      }
    });
  }
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(good, 200);
}

TEST_F(ClientTest, ManyClientsComeAndGo) {
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        auto mine = Client::connect(service->endpoint(), kSecret, soon());
        good += mine && (*mine)->call(Lookup{"kv/0"}, soon());
      }
    });
  }
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(good, 80);
  EXPECT_TRUE(eventually([&] { return node.gone_count() == 80; }));
}

}  // namespace
}  // namespace strait::rendezvous
