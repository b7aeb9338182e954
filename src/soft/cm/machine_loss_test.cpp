// SPDX-License-Identifier: Apache-2.0
// Messages that are lost, doubled or late.
#include <cerrno>
#include <climits>
#include <random>

#include "soft/cm/machine.hpp"
#include "soft/cm/machine_testing.hpp"

namespace strait::soft::cm {
namespace {

using testing::Host;
using testing::Network;

constexpr std::int64_t kMs = 1'000'000;

struct MachineLoss : testing::TwoHosts {
  // Loses what waits, and lets time pass until somebody repeats something.
  void lose_and_wait() {
    ASSERT_FALSE(network.line.empty());
    network.line.clear();
    for (int i = 0; network.line.empty() && i < 1000; ++i) pass(10 * kMs);
    ASSERT_FALSE(network.line.empty());
  }
};

TEST_F(MachineLoss, EveryMessageOnce) {
  ASSERT_TRUE(b.machine->listen(kService, b.address, 8));
  active = a.machine->connect(request()).value();
  ASSERT_EQ(network.names(), "REQ");
  lose_and_wait();
  ASSERT_EQ(network.names(), "REQ");
  deliver();
  ASSERT_EQ(b.happened(), "request");
  passive = b.last().id;
  ASSERT_TRUE(b.machine->accept(passive, queue(0x200)));
  ASSERT_EQ(network.names(), "REP");
  lose_and_wait();
  deliver();
  ASSERT_EQ(a.happened(), "response");
  network.line.clear();
  ASSERT_TRUE(a.machine->ready(active));
  ASSERT_EQ(network.names(), "RTU");
  lose_and_wait();
  ASSERT_EQ(network.names(), "REP");
  deliver();
  ASSERT_EQ(b.happened(), "established");
  ASSERT_TRUE(a.machine->disconnect(active));
  ASSERT_EQ(network.names(), "DREQ");
  lose_and_wait();
  ASSERT_EQ(network.names(), "DREQ");
  deliver();
  ASSERT_EQ(b.happened(), "disconnected");
  ASSERT_TRUE(b.machine->disconnect(passive));
  ASSERT_EQ(network.names(), "DREP");
  lose_and_wait();
  ASSERT_EQ(network.names(), "DREQ");
  deliver();
  EXPECT_EQ(a.happened(), "disconnected");
}

TEST_F(MachineLoss, NobodyIsThere) {
  active = a.machine->connect(request()).value();
  int requests = 0;
  for (std::int64_t ns = 0; ns < 120'000 * kMs && a.events.empty(); ns += 50 * kMs) {
    for (; !network.line.empty(); network.line.pop_front()) requests += network.line.front().name() == "REQ";
    pass(50 * kMs);
  }
  ASSERT_EQ(a.happened(), "unreachable");
  EXPECT_EQ(a.last().status, -ETIMEDOUT);
  EXPECT_EQ(requests, 16);
  EXPECT_EQ(a.machine->due_ns(), INT64_MAX);
  a.machine->release(active);
  EXPECT_EQ(a.machine->connections(), 0u);
}

TEST_F(MachineLoss, ThePeerVanishesAfterItsRequest) {
  ASSERT_TRUE(b.machine->listen(kService, b.address, 8));
  active = a.machine->connect(request()).value();
  deliver();
  ASSERT_TRUE(b.machine->accept(b.last().id, queue(0x200)));
  for (std::int64_t ns = 0; ns < 120'000 * kMs && b.events.size() == 1; ns += 50 * kMs) {
    network.line.clear();
    pass(50 * kMs);
  }
  EXPECT_EQ(b.happened(), "request unreachable");
  EXPECT_EQ(b.last().status, -ETIMEDOUT);
}

TEST_F(MachineLoss, ThePeerVanishesBeforeTheEnd) {
  connect();
  ASSERT_TRUE(a.machine->disconnect(active));
  for (std::int64_t ns = 0; ns < 120'000 * kMs; ns += 50 * kMs) {
    network.line.clear();
    pass(50 * kMs);
  }
  EXPECT_EQ(a.happened(), "disconnected timewait_exit");
  EXPECT_EQ(a.events[1].status, -ETIMEDOUT);
}

TEST_F(MachineLoss, ASlowProgramIsNotAskedAgainAndAgain) {
  ASSERT_TRUE(b.machine->listen(kService, b.address, 8));
  active = a.machine->connect(request()).value();
  deliver();
  pass(150 * kMs);
  ASSERT_EQ(network.names(), "REQ");
  deliver_first();
  ASSERT_EQ(network.names(), "MRA");
  deliver_first();
  ASSERT_EQ(b.happened(), "request");  // once
  for (int i = 0; i < 60; ++i) pass(1000 * kMs);
  EXPECT_TRUE(network.line.empty());  // a whole minute
  ASSERT_TRUE(b.machine->accept(b.last().id, queue(0x200)));
  deliver();
  EXPECT_EQ(a.happened(), "response");
}

TEST_F(MachineLoss, ALostRejectionIsGivenAgain) {
  ASSERT_TRUE(b.machine->listen(kService, b.address, 8));
  active = a.machine->connect(request()).value();
  deliver();
  ASSERT_TRUE(b.machine->reject(b.last().id, wire::mad::RejReason::consumer, {}));
  lose_and_wait();
  ASSERT_EQ(network.names(), "REQ");
  deliver();
  EXPECT_EQ(a.happened(), "rejected");
  EXPECT_EQ(b.happened(), "request");
}

TEST_F(MachineLoss, BothDisconnectAtOnce) {
  connect();
  ASSERT_TRUE(a.machine->disconnect(active));
  ASSERT_TRUE(b.machine->disconnect(passive));
  ASSERT_EQ(network.names(), "DREQ DREQ");
  deliver();
  EXPECT_EQ(a.happened(), "disconnected");
  EXPECT_EQ(b.happened(), "disconnected");
  pass(2000 * kMs);
  EXPECT_EQ(a.happened(), "timewait_exit");
  EXPECT_EQ(b.happened(), "timewait_exit");
  EXPECT_TRUE(network.line.empty());
}

TEST_F(MachineLoss, ALateRequestFindsAStaleConnection) {
  ASSERT_TRUE(b.machine->listen(kService, b.address, 8));
  active = a.machine->connect(request()).value();
  const testing::Packet late = network.line.front();
  deliver();
  passive = b.last().id;
  ASSERT_TRUE(b.machine->accept(passive, queue(0x200)));
  deliver();
  ASSERT_TRUE(a.machine->ready(active));
  deliver();
  hand(late);  // established: an old one
  EXPECT_TRUE(network.line.empty());
  ASSERT_TRUE(b.machine->disconnect(passive));
  deliver();
  ASSERT_TRUE(a.machine->disconnect(active));
  deliver();
  hand(late);
  ASSERT_EQ(network.names(), "REJ");
  EXPECT_EQ(std::get<Rej>(network.line.front().message().body).reason, 10);
  EXPECT_EQ(b.happened(), "request established disconnected");
}

TEST_F(MachineLoss, APeerThatBeganAnewIsANewPeer) {
  connect();
  Host reborn{network, a.address, 1};
  const Id again = reborn.machine
                       ->connect([&] {
                         ConnectRequest r = request();
                         r.queue.qpn = 0x101;
                         return r;
                       }())
                       .value();
  EXPECT_EQ(again, active);  // the same seed: the same numbers
  deliver_first();
  EXPECT_EQ(b.happened(), "request");
}

TEST_F(MachineLoss, AnAnswerOfADatagramServiceIsGivenAgain) {
  ASSERT_TRUE(b.machine->listen(kDatagrams, b.address, 8));
  active = a.machine->resolve(request(kDatagrams)).value();
  lose_and_wait();
  ASSERT_EQ(network.names(), "SIDR_REQ");
  deliver();
  pass(10'000 * kMs);  // the program has not answered yet
  deliver();
  ASSERT_EQ(b.happened(), "service_request");  // once
  ASSERT_TRUE(b.machine->accept(b.last().id, queue(0x300)));
  lose_and_wait();
  deliver();
  EXPECT_EQ(a.happened(), "established");
  EXPECT_EQ(b.happened(), "");
  b.machine->release(b.last().id);
  pass(20'000 * kMs);
  EXPECT_EQ(b.machine->connections(), 0u);
}

// Any weather: in the end both ends agree, each event came once, and nothing is left behind.
TEST_F(MachineLoss, Storm) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    Network weather;
    Host x{weather, a.address, 1}, y{weather, b.address, 2};
    ASSERT_TRUE(y.machine->listen(kService, b.address, 8));
    const Id asked = x.machine->connect(request()).value();
    Id got = 0;
    std::size_t seen_x = 0, seen_y = 0;
    int established = 0, disconnected_x = 0, disconnected_y = 0;
    bool ended = false, other_ended = false;
    for (int step = 0; step < 20'000 && !(disconnected_x == 1 && disconnected_y == 1); ++step) {
      while (seen_x < x.events.size()) {
        const EventKind kind = x.events[seen_x++].kind;
        ASSERT_TRUE(kind == EventKind::response || kind == EventKind::disconnected || kind == EventKind::timewait_exit);
        if (kind == EventKind::response) {
          ASSERT_TRUE(x.machine->ready(asked));
        }
        if (kind == EventKind::disconnected) ++disconnected_x;
      }
      while (seen_y < y.events.size()) {
        const Event& e = y.events[seen_y++];
        if (e.kind == EventKind::request) {
          ASSERT_EQ(got, 0u);
          got = e.id;
          ASSERT_TRUE(y.machine->accept(got, queue(0x200)));
        }
        if (e.kind == EventKind::established) ++established;
        if (e.kind == EventKind::disconnected) {
          ++disconnected_y;
          if (!other_ended && seed % 3 != 0) other_ended = bool(y.machine->disconnect(got));
        }
      }
      if (established == 1 && !ended) {
        ended = true;
        ASSERT_TRUE(x.machine->disconnect(asked));
        if (seed % 3 == 0) {  // at once, from both ends
          ASSERT_TRUE(y.machine->disconnect(got));
          other_ended = true;
        }
      }
      if (weather.line.empty() || random() % 4 == 0) {
        weather.now_ns += 30 * kMs;
        x.machine->on_time();
        y.machine->on_time();
        continue;
      }
      const std::size_t which = random() % weather.line.size();
      const testing::Packet p = weather.line[which];
      const auto fate = random() % 10;
      if (fate != 0) weather.line.erase(weather.line.begin() + static_cast<std::ptrdiff_t>(which));  // 0: doubled
      if (fate > 2) (void)(p.to == a.address ? x : y).machine->on_mad(p.from, p.to, p.mad);
    }
    ASSERT_EQ(established, 1);
    ASSERT_EQ(disconnected_x, 1);
    ASSERT_EQ(disconnected_y, 1);
    x.machine->release(asked);
    y.machine->release(got);
    for (int i = 0; i < 200; ++i) {
      weather.line.clear();
      weather.now_ns += 1000 * kMs;
      x.machine->on_time();
      y.machine->on_time();
    }
    ASSERT_EQ(x.machine->connections(), 0u);
    ASSERT_EQ(y.machine->connections(), 0u);
  }
}

}  // namespace
}  // namespace strait::soft::cm
