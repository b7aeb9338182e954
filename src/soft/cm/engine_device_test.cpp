// SPDX-License-Identifier: Apache-2.0
// Two services on two real engines, over real packets on loopback.
#include "soft/cm/engine_device.hpp"

#include <atomic>
#include <thread>

#include "soft/cm/service_testing.hpp"

namespace strait::soft::cm {
namespace {

using testing::ip;
using testing::number;
using testing::Program;

// A NIC that a thread drives.
struct Nic {
  explicit Nic(const char* address) {
    nic::EngineConfig config;
    config.packet_address = address;
    config.carrier = nic::Carrier::packets;
    engine = nic::Engine::open(config).value();
    thread = std::thread([this] {
      while (!end) {
        (void)engine->drive(0);
        if (engine->arm()) (void)sys::nap_on(engine->event_fd(), 10'000'000);
      }
    });
  }
  ~Nic() {
    end = true;
    thread.join();
  }
  std::shared_ptr<Device> device(const char* address) {
    EngineDeviceSettings settings;
    settings.node_guid = 7;
    settings.gids = {{IpAddress::parse(address).value(), 5}};
    settings.engine = [this]() -> Result<nic::Engine*> { return engine.get(); };
    return std::make_shared<EngineDevice>(std::move(settings));
  }
  std::unique_ptr<nic::Engine> engine;
  std::atomic<bool> end{false};
  std::thread thread;
};

void talk(const char* at_server, const char* at_client) {
  Nic far(at_server), near(at_client);
  const std::string scope = testing::fresh_scope();
  Program server{far.device(at_server), scope}, client{near.device(at_client), scope};
  const IpAddress to = IpAddress::parse(at_server).value();
  const std::uint32_t listener = server.create(RDMA_PS_TCP, 0, 0x5000);
  ASSERT_EQ(server.bind(listener, ip(to, 7471)), 0);
  ASSERT_EQ(server.listen(listener), 0);
  const std::uint32_t active = client.create();
  ASSERT_EQ(client.resolve(active, ip(to, 7471), ip(IpAddress::parse(at_client).value(), 0)), 0);
  ASSERT_EQ(client.next().event, number(UserEvent::addr_resolved));
  ASSERT_EQ(client.route(active), 0);
  ASSERT_EQ(client.next().event, number(UserEvent::route_resolved));
  ASSERT_EQ(client.connect(active, 0x111, "hello"), 0);
  const auto request = server.next();
  ASSERT_EQ(request.event, number(UserEvent::connect_request));
  ASSERT_EQ(server.accept(request.id, 0x222, 0x6000), 0);
  ASSERT_EQ(client.next().event, number(UserEvent::connect_response));
  ASSERT_EQ(client.ready(active), 0);
  ASSERT_EQ(server.next().event, number(UserEvent::established));
  ASSERT_EQ(client.disconnect(active), 0);
  ASSERT_EQ(server.next().event, number(UserEvent::disconnected));
  ASSERT_EQ(server.disconnect(request.id), 0);
  ASSERT_EQ(client.next().event, number(UserEvent::disconnected));
}

TEST(EngineDevice, TwoAddresses) {
  talk("127.4.5.6", "127.4.5.7");
}
// Every message comes to both.
TEST(EngineDevice, OneAddress) {
  talk("127.4.5.8", "127.4.5.8");
}

}  // namespace
}  // namespace strait::soft::cm
