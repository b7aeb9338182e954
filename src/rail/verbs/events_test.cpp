// SPDX-License-Identifier: Apache-2.0
// What a device says by itself, said here by a fake: which events matter, to whom, and that each is acknowledged.
#include "rail/verbs/events.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <deque>

namespace strait::rail::verbs {
namespace {

using wire::mlx5::Syndrome;

constexpr auto kUnplugged = IBV_EVENT_WQ_FATAL;  // strait makes none
std::deque<ibv_async_event> said;
int taken = 0, acknowledged = 0;
const EventCalls kFake{[](ibv_context*) { return !said.empty(); },
                       [](ibv_context*, ibv_async_event* event) {
                         if (said.front().event_type == kUnplugged) {
                           errno = EIO;
                           return -1;
                         }
                         *event = said.front();
                         said.pop_front();
                         ++taken;
                         return 0;
                       },
                       [](ibv_async_event*) { ++acknowledged; }};

class VerbsEvents : public testing::Test {
 protected:
  VerbsEvents() {
    said.clear();
    taken = acknowledged = 0;
  }
  ~VerbsEvents() override { EXPECT_EQ(taken, acknowledged); }
  static void say(ibv_event_type type, int port = 1) {
    ibv_async_event event{};
    event.event_type = type;
    event.element.port_num = port;
    said.push_back(event);
  }
  void say_of_queue(ibv_event_type type, std::uint32_t qpn) {
    ibv_async_event event{};
    queue_.qp_num = qpn;
    event.event_type = type;
    event.element.qp = &queue_;
    said.push_back(event);
  }
  ibv_qp queue_{};
  DeviceEvents events_{nullptr, "mlx5_0", 1, kFake};
};

TEST_F(VerbsEvents, QuietMeansUsable) {
  EXPECT_FALSE(events_.take());
  EXPECT_TRUE(events_.usable());
  EXPECT_TRUE(events_.connectable());
  EXPECT_EQ(events_.why(5, Syndrome::flushed), 0);
  EXPECT_EQ(events_.why(5, Syndrome::transport_retry_exceeded), 0);
}

TEST_F(VerbsEvents, AFatalDeviceIsGoneForGood) {
  say(IBV_EVENT_CLIENT_REREGISTER);
  say(IBV_EVENT_DEVICE_FATAL);
  say(IBV_EVENT_PORT_ACTIVE);
  EXPECT_TRUE(events_.take());
  EXPECT_EQ(events_.count(), 3u);
  EXPECT_TRUE(events_.device_gone());
  for (const Status& refused : {events_.usable(), events_.connectable()}) {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::gone);
    EXPECT_EQ(refused.error().text, "the NIC mlx5_0 is no longer there (IBV_EVENT_DEVICE_FATAL)");
    EXPECT_NE(refused.error().remedy.find("Was it removed, or its driver unloaded?"), std::string::npos);
  }
  EXPECT_EQ(events_.why(5, Syndrome::flushed), kVendorDeviceGone);
  EXPECT_EQ(events_.why(5, Syndrome::remote_access), 0) << "the peer said that, not the device";
  say(IBV_EVENT_DEVICE_FATAL);
  EXPECT_FALSE(events_.take()) << "that is known";
}

TEST_F(VerbsEvents, ADescriptorThatOnlyFailsIsADeviceThatIsGone) {
  say(kUnplugged);
  EXPECT_TRUE(events_.take());
  EXPECT_TRUE(events_.device_gone());
  EXPECT_FALSE(events_.take());
}

TEST_F(VerbsEvents, APortGoesDownAndComesBack) {
  say(IBV_EVENT_PORT_ERR, 2);
  EXPECT_FALSE(events_.take()) << "another port";
  say(IBV_EVENT_PORT_ERR);
  EXPECT_TRUE(events_.take());
  EXPECT_TRUE(events_.usable()) << "memory can be registered meanwhile";
  const Status refused = events_.connectable();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::gone);
  EXPECT_EQ(refused.error().text, "port 1 of the NIC mlx5_0 is down (IBV_EVENT_PORT_ERR)");
  EXPECT_EQ(events_.why(5, Syndrome::transport_retry_exceeded), kVendorPortDown);
  EXPECT_EQ(events_.why(5, Syndrome::flushed), 0);
  say(IBV_EVENT_PORT_ACTIVE, 2);
  EXPECT_FALSE(events_.take());
  say(IBV_EVENT_PORT_ACTIVE);
  EXPECT_TRUE(events_.take());
  EXPECT_TRUE(events_.connectable());
  EXPECT_EQ(events_.why(5, Syndrome::transport_retry_exceeded), 0);
}

TEST_F(VerbsEvents, OneBrokenQueueIsNotTheOthers) {
  for (const ibv_event_type type : {IBV_EVENT_QP_FATAL, IBV_EVENT_QP_REQ_ERR, IBV_EVENT_QP_ACCESS_ERR}) {
    say_of_queue(type, 7);
    EXPECT_TRUE(events_.take());
    EXPECT_TRUE(events_.queue_broken(7));
    EXPECT_FALSE(events_.queue_broken(8));
    EXPECT_EQ(events_.why(7, Syndrome::flushed), kVendorQueueFatal);
    EXPECT_EQ(events_.why(8, Syndrome::flushed), 0);
    EXPECT_TRUE(events_.connectable());
    events_.forget_queue(7);  // destroyed; its number may be another's
    EXPECT_FALSE(events_.queue_broken(7));
  }
  say_of_queue(IBV_EVENT_QP_LAST_WQE_REACHED, 7);
  EXPECT_FALSE(events_.take());
}

}  // namespace
}  // namespace strait::rail::verbs
