// SPDX-License-Identifier: Apache-2.0
// Connections from the first message to the last, and every way to be refused. Lost and doubled messages are in
// machine_loss_test.cpp.
#include "soft/cm/machine.hpp"

#include <cerrno>
#include <climits>

#include "soft/cm/machine_testing.hpp"

namespace strait::soft::cm {
namespace {

using Machines = testing::TwoHosts;
using wire::mad::RejReason;

int code(RejReason reason) {
  return static_cast<int>(reason);
}

TEST_F(Machines, ConnectAndDisconnect) {
  connect();
  ASSERT_TRUE(a.machine->disconnect(active));
  EXPECT_EQ(network.names(), "DREQ");
  deliver();
  EXPECT_EQ(b.happened(), "disconnected");
  EXPECT_EQ(a.happened(), "");
  ASSERT_TRUE(b.machine->disconnect(passive));
  EXPECT_EQ(network.names(), "DREP");
  deliver();
  EXPECT_EQ(a.happened(), "disconnected");
  EXPECT_EQ(a.last().status, 0);
  pass(2'000'000'000);
  EXPECT_EQ(a.happened(), "timewait_exit");
  EXPECT_EQ(b.happened(), "timewait_exit");
  EXPECT_TRUE(network.line.empty());
  a.machine->release(active);
  b.machine->release(passive);
  EXPECT_EQ(a.machine->connections(), 0u);
  EXPECT_EQ(b.machine->connections(), 0u);
  EXPECT_EQ(a.machine->due_ns(), INT64_MAX);
}

TEST_F(Machines, APeerThatDiedIsMissed) {
  connect();
  std::vector<std::uint32_t> asked_of;
  const auto look = [&](bool there) {
    asked_of.clear();
    a.machine->look_for_peers([&](const IpAddress& remote, std::uint32_t comm_id) {
      EXPECT_EQ(remote, b.address);
      asked_of.push_back(comm_id);
      return there;
    });
  };
  look(true);
  EXPECT_EQ(asked_of, std::vector{passive});
  EXPECT_EQ(a.happened(), "");
  look(false);
  EXPECT_EQ(a.happened(), "disconnected");
  EXPECT_TRUE(network.line.empty()) << "there is nobody to tell";
  look(false);
  EXPECT_TRUE(asked_of.empty()) << "it has ended";
  pass(2'000'000'000);
  EXPECT_EQ(a.happened(), "timewait_exit");
}

// Whoever asked to be given time is known by that.
TEST_F(Machines, APeerThatDiedBeforeItAnsweredIsMissed) {
  ASSERT_TRUE(b.machine->listen(kService, b.address, 8));
  active = a.machine->connect(request()).value();
  deliver();
  ASSERT_EQ(b.happened(), "request");
  passive = b.last().id;
  const auto dead = [&](const IpAddress&, std::uint32_t comm_id) {
    EXPECT_EQ(comm_id, passive);
    return false;
  };
  a.machine->look_for_peers(dead);
  EXPECT_EQ(a.happened(), "") << "nobody is known yet";
  pass(100'000'000);
  ASSERT_EQ(network.names(), "REQ");
  deliver();  // and the answer to the repetition
  a.machine->look_for_peers(dead);
  EXPECT_EQ(a.happened(), "rejected");
  EXPECT_EQ(a.last().status, code(RejReason::timeout));
  a.machine->release(active);
  EXPECT_EQ(a.machine->connections(), 0u);
}

TEST_F(Machines, EachEndKnowsTheOther) {
  connect();
  const Connection& x = *a.machine->find(active);
  const Connection& y = *b.machine->find(passive);
  EXPECT_EQ(x.remote_comm_id, passive);
  EXPECT_EQ(y.remote_comm_id, active);
  EXPECT_EQ(x.remote_qpn, 0x200u);
  EXPECT_EQ(y.remote_qpn, 0x100u);
  EXPECT_EQ(x.send_psn, y.receive_psn);
  EXPECT_EQ(y.send_psn, x.receive_psn);
  EXPECT_EQ(x.mtu_code, 3);
  EXPECT_EQ(y.mtu_code, 3);
  EXPECT_EQ(y.retry_count, 7);
  EXPECT_EQ(y.rnr_retry_count, 6);
  EXPECT_EQ(y.ack_timeout, x.ack_timeout);
  EXPECT_EQ(x.remote, b.address);
  EXPECT_EQ(y.remote, a.address);
  // Ids tell which process of a host they belong to.
  EXPECT_EQ(active >> 24, 1u);
  EXPECT_EQ(passive >> 24, 2u);
}

// What one end can begin the other has to serve.
TEST_F(Machines, EventsAreToldFromTheReceiversSide) {
  connect();
  const Event& request = b.events[0];
  EXPECT_EQ(request.listener, listener);
  EXPECT_EQ(request.peer.qpn, 0x100u);
  EXPECT_EQ(request.peer.responder_resources, 2);
  EXPECT_EQ(request.peer.initiator_depth, 4);
  EXPECT_EQ(request.peer.private_data.size(), 92u);
  EXPECT_EQ(request.peer.private_data[kIpHeaderBytes], std::byte{'q'});
  const Event& response = a.events[0];
  EXPECT_EQ(response.peer.qpn, 0x200u);
  EXPECT_EQ(response.peer.responder_resources, 2);
  EXPECT_EQ(response.peer.initiator_depth, 4);
  EXPECT_EQ(response.peer.private_data.size(), 196u);
  EXPECT_EQ(response.peer.private_data[0], std::byte{'h'});
}

TEST_F(Machines, NobodyListens) {
  active = a.machine->connect(request()).value();
  deliver();
  EXPECT_EQ(a.happened(), "rejected");
  EXPECT_EQ(a.last().status, code(RejReason::invalid_service_id));
  EXPECT_EQ(b.happened(), "");
  EXPECT_FALSE(a.machine->ready(active));
  EXPECT_FALSE(a.machine->disconnect(active));
  a.machine->release(active);
  EXPECT_EQ(a.machine->connections(), 0u);
  EXPECT_EQ(b.machine->connections(), 0u);
}

TEST_F(Machines, TheProgramRefuses) {
  ASSERT_TRUE(b.machine->listen(kService, b.address, 8));
  active = a.machine->connect(request()).value();
  deliver();
  passive = b.last().id;
  const std::byte why[] = {std::byte{'n'}, std::byte{'o'}};
  ASSERT_TRUE(b.machine->reject(passive, RejReason::consumer, why));
  deliver();
  EXPECT_EQ(a.happened(), "rejected");
  EXPECT_EQ(a.last().status, code(RejReason::consumer));
  EXPECT_EQ(a.last().peer.private_data.size(), 148u);
  EXPECT_EQ(a.last().peer.private_data[1], std::byte{'o'});
  EXPECT_FALSE(b.machine->accept(passive, queue(0x200)));
  EXPECT_EQ(b.machine->accept(passive, queue(0x200)).error().sys_errno, EINVAL);
  pass(2'000'000'000);
  EXPECT_EQ(b.happened(), "request");  // and no end of a connection that never was
}

TEST_F(Machines, TheOneWhoAskedRefusesTheResponse) {
  ASSERT_TRUE(b.machine->listen(kService, b.address, 8));
  active = a.machine->connect(request()).value();
  deliver();
  passive = b.last().id;
  ASSERT_TRUE(b.machine->accept(passive, queue(0x200)));
  deliver();
  ASSERT_TRUE(a.machine->reject(active, RejReason::consumer, {}));
  deliver();
  EXPECT_EQ(b.happened(), "request rejected");
}

TEST_F(Machines, ReleaseTellsThePeer) {
  connect();
  a.machine->release(active);
  EXPECT_EQ(network.names(), "DREQ");
  deliver();
  EXPECT_EQ(b.happened(), "disconnected");
  b.machine->release(passive);
  EXPECT_EQ(network.names(), "DREP");
  deliver();
  EXPECT_EQ(a.happened(), "");
  pass(2'000'000'000);
  EXPECT_EQ(a.machine->connections(), 0u);
  EXPECT_EQ(b.machine->connections(), 0u);
}

TEST_F(Machines, TheEndOfAProcessTellsItsPeers) {
  connect();
  b.machine.reset();
  ASSERT_EQ(network.names(), "DREQ");
  const testing::Packet p = network.line.front();
  (void)a.machine->on_mad(p.from, p.to, p.mad);
  EXPECT_EQ(a.happened(), "disconnected");
}

TEST_F(Machines, ReleaseOfARequestTakesItBack) {
  ASSERT_TRUE(b.machine->listen(kService, b.address, 8));
  active = a.machine->connect(request()).value();
  deliver();
  a.machine->release(active);
  deliver();
  EXPECT_EQ(b.happened(), "request rejected");
  EXPECT_EQ(b.last().status, code(RejReason::timeout));
  EXPECT_EQ(a.machine->connections(), 0u);
}

TEST_F(Machines, ReleaseOfAListenerRefusesWhatNobodyTook) {
  ASSERT_TRUE(listener = b.machine->listen(kService, b.address, 8).value_or(0u));
  const Id first = a.machine->connect(request()).value();
  const Id second = a.machine->connect(request()).value();
  deliver();
  ASSERT_EQ(b.happened(), "request request");
  passive = b.events[0].id;
  ASSERT_EQ(b.machine->find(passive)->remote_comm_id, first);
  b.machine->taken(passive);
  b.machine->release(listener);
  deliver();
  EXPECT_EQ(a.happened(), "rejected");
  EXPECT_EQ(a.last().id, second);
  // What was taken lives on without its listener.
  ASSERT_TRUE(b.machine->accept(passive, queue(0x200)));
  deliver();
  EXPECT_EQ(a.happened(), "response");
}

TEST_F(Machines, Backlog) {
  ASSERT_TRUE(b.machine->listen(kService, b.address, 2));
  for (int i = 0; i < 3; ++i) (void)a.machine->connect(request()).value();
  deliver();
  EXPECT_EQ(b.happened(), "request request");
  EXPECT_EQ(a.happened(), "rejected");
  EXPECT_EQ(a.last().status, code(RejReason::consumer));
  b.machine->taken(b.last().id);
  (void)a.machine->connect(request()).value();
  deliver();
  EXPECT_EQ(b.happened(), "request");
}

TEST_F(Machines, WildcardAndExactListeners) {
  const Id any = b.machine->listen(kService, IpAddress::v4(0, 0, 0, 0), 8).value();
  (void)a.machine->connect(request()).value();
  deliver();
  EXPECT_EQ(b.last().listener, any);
  const Id exact = b.machine->listen(kService, b.address, 8).value();
  (void)a.machine->connect(request()).value();
  deliver();
  EXPECT_EQ(b.last().listener, exact);
  EXPECT_EQ(b.machine->listen(kService, b.address, 8).error().sys_errno, EADDRINUSE);
  EXPECT_TRUE(b.machine->listens(kService, b.address));
  EXPECT_TRUE(b.machine->listens(kService, a.address));  // any
  EXPECT_FALSE(b.machine->listens(kService, IpAddress::parse("fd00::1").value()));
  EXPECT_FALSE(b.machine->listens(kService + 1, b.address));
  const Id six = b.machine->listen(kService + 1, IpAddress{}, 8).value();
  EXPECT_NE(six, 0u);
  EXPECT_TRUE(b.machine->listens(kService + 1, IpAddress::parse("fd00::1").value()));
  EXPECT_TRUE(b.machine->listens(kService + 1, b.address));
}

TEST_F(Machines, WrongCallsAreRefused) {
  EXPECT_FALSE(a.machine->accept(7, queue(1)));
  EXPECT_FALSE(a.machine->reject(7, RejReason::consumer, {}));
  EXPECT_FALSE(a.machine->ready(7));
  EXPECT_FALSE(a.machine->seen_alive(7));
  EXPECT_FALSE(a.machine->disconnect(7));
  a.machine->release(7);
  a.machine->taken(7);
  EXPECT_EQ(a.machine->find(7), nullptr);
  connect();
  EXPECT_FALSE(b.machine->accept(passive, queue(1)));
  EXPECT_FALSE(b.machine->reject(passive, RejReason::consumer, {}));
  EXPECT_FALSE(a.machine->ready(active));
  EXPECT_TRUE(b.machine->seen_alive(passive));  // it is already
  ConnectRequest fat = request();
  fat.queue.private_data.resize(93);
  EXPECT_EQ(a.machine->connect(fat).error().sys_errno, EINVAL);
  fat.queue.private_data.resize(217);
  EXPECT_EQ(a.machine->resolve(fat).error().sys_errno, EINVAL);
}

TEST_F(Machines, DataBeforeTheRtuEstablishes) {
  ASSERT_TRUE(b.machine->listen(kService, b.address, 8));
  active = a.machine->connect(request()).value();
  deliver();
  passive = b.last().id;
  ASSERT_TRUE(b.machine->accept(passive, queue(0x200)));
  deliver();
  ASSERT_TRUE(b.machine->seen_alive(passive));
  EXPECT_EQ(b.happened(), "request established");
  ASSERT_TRUE(a.machine->ready(active));
  deliver();
  EXPECT_EQ(b.happened(), "");  // the RTU says nothing new
}

TEST_F(Machines, RequestsThatMakeNoSense) {
  ASSERT_TRUE(b.machine->listen(kService, b.address, 8));
  active = a.machine->connect(request()).value();
  const testing::Packet original = network.line.front();
  network.line.clear();
  const auto refusal_of = [&](auto change) {
    Message m = original.message();
    change(std::get<Req>(m.body));
    (void)b.machine->on_mad(a.address, b.address, write(m));
    EXPECT_EQ(network.names(), "REJ");
    const Rej rej = std::get<Rej>(network.line.front().message().body);
    network.line.clear();
    return static_cast<RejReason>(rej.reason);
  };
  EXPECT_EQ(refusal_of([](Req& r) { r.transport = wire::mad::Transport::rd; }), RejReason::invalid_transport_type);
  EXPECT_EQ(refusal_of([](Req& r) { r.transport = wire::mad::Transport::extended; }),
            RejReason::invalid_transport_type);
  EXPECT_EQ(refusal_of([](Req& r) { r.mtu_code = 0; }), RejReason::invalid_mtu);
  EXPECT_EQ(refusal_of([](Req& r) { r.mtu_code = 6; }), RejReason::invalid_mtu);
  EXPECT_EQ(refusal_of([](Req& r) { r.qpn = 0; }), RejReason::no_qp);
  EXPECT_EQ(refusal_of([](Req& r) { r.local_comm_id = 0; }), RejReason::invalid_comm_id);
  EXPECT_EQ(refusal_of([](Req& r) { r.service_id ^= 1; }), RejReason::invalid_service_id);
  EXPECT_EQ(b.happened(), "");
  EXPECT_EQ(b.machine->connections(), 0u);
}

TEST_F(Machines, StrangersAreAnsweredAndHurtNobody) {
  connect();
  const auto answer_to = [&](const Body& body, IpAddress from) {
    (void)b.machine->on_mad(from, b.address, write(Message{9, body}));
    const std::string names = network.names();
    network.line.clear();
    return names;
  };
  const IpAddress stranger = IpAddress::v4(10, 0, 0, 99);
  // The right ids from another address, and wrong ids from the right one.
  EXPECT_EQ(answer_to(Dreq{active, passive, 0x200, {}}, stranger), "DREP");
  EXPECT_EQ(answer_to(Dreq{active + 1, passive, 0x200, {}}, a.address), "DREP");
  EXPECT_EQ(answer_to(Dreq{active, passive, 0x201, {}}, a.address), "");  // of another queue pair
  EXPECT_EQ(answer_to(Rej{active, passive, 2, 4, 0, {}, {}}, stranger), "");
  Rep rep;
  rep.local_comm_id = 5;
  rep.remote_comm_id = 6;
  EXPECT_EQ(answer_to(rep, stranger), "REJ");
  EXPECT_EQ(answer_to(Rtu{5, 6, {}}, stranger), "");
  EXPECT_EQ(answer_to(Drep{5, 6, {}}, stranger), "");
  EXPECT_EQ(answer_to(Mra{5, 6, 0, 31, {}}, stranger), "");
  EXPECT_EQ(answer_to(Lap{5, 6, 7}, stranger), "APR");
  EXPECT_EQ(answer_to(Lap{active, passive, 0x200}, a.address), "APR");
  EXPECT_EQ(answer_to(Apr{active, passive, 0, 0, {}, {}}, a.address), "");
  EXPECT_EQ(answer_to(SidrRep{}, stranger), "");
  EXPECT_FALSE(b.machine->on_mad(stranger, b.address, {}));
  EXPECT_EQ(b.happened(), "");
  EXPECT_EQ(b.machine->find(passive)->state, State::established);
}

TEST_F(Machines, DatagramService) {
  ASSERT_TRUE(listener = b.machine->listen(kDatagrams, b.address, 2).value_or(0u));
  active = a.machine->resolve(request(kDatagrams)).value();
  deliver();
  ASSERT_EQ(b.happened(), "service_request");
  EXPECT_EQ(b.last().listener, listener);
  EXPECT_EQ(b.last().peer.private_data.size(), 216u);
  QueueParameters q = queue(0x300, "yes");
  q.qkey = 0x01234567;
  ASSERT_TRUE(b.machine->accept(b.last().id, q));
  deliver();
  ASSERT_EQ(a.happened(), "established");
  EXPECT_EQ(a.last().peer.qpn, 0x300u);
  EXPECT_EQ(a.last().peer.qkey, 0x01234567u);
  EXPECT_EQ(a.last().peer.private_data[0], std::byte{'y'});
  EXPECT_EQ(a.machine->due_ns(), INT64_MAX);

  active = a.machine->resolve(request(kDatagrams)).value();
  deliver();
  ASSERT_TRUE(b.machine->reject(b.last().id, RejReason::consumer, {}));
  deliver();
  ASSERT_EQ(a.happened(), "unreachable");
  EXPECT_EQ(a.last().status, 2);

  (void)a.machine->resolve(request(kDatagrams + 1)).value();
  deliver();
  ASSERT_EQ(a.happened(), "unreachable");
  EXPECT_EQ(a.last().status, 1);
}

TEST_F(Machines, BothEndsInOneProcess) {
  const auto hand_all = [&] {
    while (!network.line.empty()) {
      const testing::Packet p = network.line.front();
      network.line.pop_front();
      (void)a.machine->on_mad(p.from, p.to, p.mad);
    }
  };
  ASSERT_TRUE(a.machine->listen(kService, a.address, 8));
  ConnectRequest r = request();
  r.destination = a.address;
  write_ip_header({5000, a.address, a.address}, r.queue.private_data);
  active = a.machine->connect(r).value();
  hand_all();
  ASSERT_EQ(a.happened(), "request");
  passive = a.last().id;
  ASSERT_TRUE(a.machine->accept(passive, queue(0x200)));
  hand_all();
  ASSERT_EQ(a.happened(), "response");
  ASSERT_TRUE(a.machine->ready(active));
  hand_all();
  ASSERT_EQ(a.happened(), "established");
  ASSERT_TRUE(a.machine->disconnect(passive));
  hand_all();
  ASSERT_EQ(a.happened(), "disconnected");
  ASSERT_TRUE(a.machine->disconnect(active));
  hand_all();
  EXPECT_EQ(a.happened(), "disconnected");
}

}  // namespace
}  // namespace strait::soft::cm
