// SPDX-License-Identifier: Apache-2.0
// Two machines on a network that a test holds in its hands: messages wait in a line until they are delivered, lost or
// doubled, and time passes when the test says so.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "soft/cm/machine.hpp"

namespace strait::soft::cm::testing {

struct Packet {
  IpAddress from, to;
  Mad mad;
  [[nodiscard]] Message message() const {
    Message m;
    EXPECT_EQ(parse(mad, m), Refusal::none);
    return m;
  }
  [[nodiscard]] std::string name() const { return name_of(message().body); }
};

struct Network : MadPort {
  std::deque<Packet> line;
  std::int64_t now_ns = 1'000'000'000;
  void send(const IpAddress& from, const IpAddress& to, const Mad& mad) override { line.push_back({from, to, mad}); }
  [[nodiscard]] std::string names() const {
    std::string out;
    for (const Packet& p : line) out += (out.empty() ? "" : " ") + p.name();
    return out;
  }
};

inline const char* kind_name(EventKind kind) {
  static constexpr const char* kNames[] = {"request",     "response",     "established",   "rejected",
                                           "unreachable", "disconnected", "timewait_exit", "service_request"};
  return kNames[static_cast<std::size_t>(kind)];
}

struct Host : Sink {
  Host(Network& network, IpAddress where, std::uint8_t range) : address(where) {
    MachineConfig config;
    config.node_guid = range;
    config.range = range;
    config.seed = range;
    config.now = [&network] { return network.now_ns; };
    machine = std::make_unique<Machine>(config, network, *this);
  }
  void on_event(Event event) override { events.push_back(std::move(event)); }
  // What happened since the last call.
  [[nodiscard]] std::string happened() {
    std::string out;
    for (; seen < events.size(); ++seen) out += (out.empty() ? "" : " ") + std::string(kind_name(events[seen].kind));
    return out;
  }
  [[nodiscard]] const Event& last() const { return events.back(); }

  IpAddress address;
  std::vector<Event> events;
  std::size_t seen = 0;
  std::unique_ptr<Machine> machine;
};

class TwoHosts : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kService = wire::mad::service_id(wire::mad::PortSpace::tcp, 7471);
  static constexpr std::uint64_t kDatagrams = wire::mad::service_id(wire::mad::PortSpace::udp, 7174);

  // Delivers everything that waits and what comes of it.
  void deliver() {
    while (!network.line.empty()) deliver_first();
  }
  void deliver_first() {
    const Packet p = network.line.front();
    network.line.pop_front();
    hand(p);
  }
  void hand(const Packet& p) { (void)(p.to == a.address ? a : b).machine->on_mad(p.from, p.to, p.mad); }
  void pass(std::int64_t ns) {
    network.now_ns += ns;
    a.machine->on_time();
    b.machine->on_time();
  }

  [[nodiscard]] static QueueParameters queue(std::uint32_t qpn, std::string_view text = "") {
    QueueParameters q;
    q.qpn = qpn;
    q.responder_resources = 4;
    q.initiator_depth = 2;
    q.retry_count = 7;
    q.rnr_retry_count = 6;
    for (const char c : text) q.private_data.push_back(static_cast<std::byte>(c));
    return q;
  }
  [[nodiscard]] ConnectRequest request(std::uint64_t service = kService) const {
    ConnectRequest r;
    r.service_id = service;
    r.source = a.address;
    r.destination = b.address;
    r.mtu_code = 3;
    r.queue = queue(0x100);
    r.queue.private_data.resize(kIpHeaderBytes);
    write_ip_header({5000, a.address, b.address}, r.queue.private_data);
    r.queue.private_data.push_back(std::byte{'q'});
    return r;
  }
  // The usual way to a connection; ids on both sides.
  void connect() {
    ASSERT_TRUE(listener = b.machine->listen(kService, b.address, 8).value_or(0u));
    active = a.machine->connect(request()).value();
    deliver();
    ASSERT_EQ(b.happened(), "request");
    passive = b.last().id;
    b.machine->taken(passive);
    ASSERT_TRUE(b.machine->accept(passive, queue(0x200, "hello")));
    deliver();
    ASSERT_EQ(a.happened(), "response");
    ASSERT_TRUE(a.machine->ready(active));
    deliver();
    ASSERT_EQ(b.happened(), "established");
  }

  Network network;
  Host a{network, IpAddress::v4(10, 0, 0, 1), 1};
  Host b{network, IpAddress::v4(10, 0, 0, 2), 2};
  Id listener = 0, active = 0, passive = 0;
};

}  // namespace strait::soft::cm::testing
