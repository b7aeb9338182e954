// SPDX-License-Identifier: Apache-2.0
// Outside the guest: the software NIC on the lab's Ethernet link, driven by a thread of its own. What arrives can be
// lost by plan, which the engine's own plan of faults does for what leaves.
#pragma once

#include <atomic>
#include <thread>

#include "rxe_client.hpp"
#include "soft/nic/testing.hpp"
#include "soft/roce/ethernet_port.hpp"
#include "sys/event_set.hpp"

namespace strait::lab {

namespace roce = soft::roce;
using soft::nic::Engine;
using soft::nic::PacketCounts;
using soft::nic::PacketPath;
using soft::nic::testing::Event;
using soft::nic::testing::TestQueue;

// The link as one test sees it.
struct Wire {
  Family family = Family::v4;
  std::uint32_t pmtu_bytes = 1024;

  [[nodiscard]] std::string name() const {
    return fmt::format("{}_{}", family == Family::v4 ? "ipv4" : "ipv6", pmtu_bytes);
  }
  // Our end of it.
  [[nodiscard]] roce::IpAddress address() const {
    return family == Family::v4 ? roce::IpAddress::v4(198, 51, 100, 1) : roce::IpAddress::parse("fd00:db8::1").value();
  }
};

// A port that loses what arrives: packet n always or never.
class DeafPort final : public roce::Port {
 public:
  DeafPort(std::unique_ptr<roce::Port> port, const std::optional<FaultPlan>& plan)
      : port_(std::move(port)), plan_(plan) {}

  [[nodiscard]] roce::IpAddress address() const override { return port_->address(); }
  [[nodiscard]] std::uint32_t mtu_bytes() const override { return port_->mtu_bytes(); }
  [[nodiscard]] std::byte* begin(const roce::IpAddress& to, std::uint16_t source_port, std::size_t bytes) override {
    return port_->begin(to, source_port, bytes);
  }
  void commit(std::size_t bytes) override { port_->commit(bytes); }
  [[nodiscard]] Status flush() override { return port_->flush(); }
  int receive(roce::Sink& sink, int most) override {
    Ear ear(*this, sink);
    return port_->receive(ear, most);
  }
  [[nodiscard]] int fd() const override { return port_->fd(); }
  [[nodiscard]] roce::PortCounters counters() const override { return port_->counters(); }

  std::atomic<bool> deaf{false};  // to everything
  std::atomic<std::uint64_t> lost{0};

 private:
  class Ear final : public roce::Sink {
   public:
    Ear(DeafPort& port, roce::Sink& sink) : port_(port), sink_(sink) {}
    void on_packet(const roce::Arrival& arrival) override {
      const std::uint64_t n = port_.arrived_++;
      if (port_.deaf || (port_.plan_ && port_.plan_->on_message(1, n) == Fault::drop)) {
        ++port_.lost;
      } else {
        sink_.on_packet(arrival);
      }
    }

   private:
    DeafPort& port_;
    roce::Sink& sink_;
  };

  std::unique_ptr<roce::Port> port_;
  std::optional<FaultPlan> plan_;
  std::uint64_t arrived_ = 0;
};

struct SideOptions {
  Wire wire;
  std::string folder;   // of the link's sockets
  std::string sends;    // plan of faults for what leaves
  std::string arrives;  // and for what arrives; only drop= counts
  std::string capture;
};

class Side {
 public:
  static constexpr std::size_t kBytes = 1 << 20;

  [[nodiscard]] static Result<std::unique_ptr<Side>> open(const SideOptions& options) {
    std::unique_ptr<Side> side(new Side);
    soft::nic::EngineConfig config;
    config.name = "outside";
    config.carrier = soft::nic::Carrier::packets;
    config.packet_bytes = options.wire.pmtu_bytes;
    config.capture = options.capture;
    if (!options.sends.empty()) {
      STRAIT_TRY(config.faults, FaultPlan::parse(options.sends));
    }
    std::optional<FaultPlan> arrives;
    if (!options.arrives.empty()) {
      STRAIT_TRY(arrives, FaultPlan::parse(options.arrives));
    }
    roce::EthernetPortSettings settings;
    settings.address = options.wire.address();
    settings.local_path = options.folder + "/host";
    settings.remote_path = options.folder + "/guest";
    settings.link_mtu_bytes = options.wire.pmtu_bytes > 1024 ? 4200 : 1500;
    STRAIT_TRY(auto ethernet, roce::EthernetPort::open(settings));
    auto port = std::make_unique<DeafPort>(std::move(ethernet), arrives);
    side->port_ = port.get();
    STRAIT_TRY(side->engine_, Engine::open(config));
    STRAIT_CHECK(side->engine_->attach_port(std::move(port)));
    side->pd_ = side->engine_->alloc_pd();
    side->memory_.resize(kBytes);
    strait_nic_mr_request request{};
    request.struct_size = sizeof request;
    request.pd = side->pd_;
    request.access =
        STRAIT_NIC_LOCAL_WRITE | STRAIT_NIC_REMOTE_WRITE | STRAIT_NIC_REMOTE_READ | STRAIT_NIC_REMOTE_ATOMIC;
    request.fd = -1;
    request.address = side->address(0);
    request.length_bytes = kBytes;
    STRAIT_TRY(side->key_, side->engine_->register_memory(request));
    side->driver_ = std::thread([self = side.get()] { self->drive(); });
    return side;
  }
  ~Side() {
    stop_ = true;
    if (driver_.joinable()) driver_.join();
  }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  [[nodiscard]] std::unique_ptr<TestQueue> make() { return std::make_unique<TestQueue>(*engine_, pd_, 256, 32, 512); }
  // The next completion; nothing within the time: none.
  [[nodiscard]] std::optional<Event> wait(TestQueue& queue, std::int64_t within_ns = 60'000'000'000) const {
    const sys::Deadline deadline = sys::Deadline::after_ns(within_ns);
    for (;;) {
      if (auto event = queue.poll()) return event;
      if (deadline.passed()) return std::nullopt;
      ::usleep(200);
    }
  }

  [[nodiscard]] Engine& engine() { return *engine_; }
  [[nodiscard]] DeafPort& port() { return *port_; }
  [[nodiscard]] std::span<std::byte> memory(std::uint64_t at, std::uint64_t bytes) {
    return std::span(memory_).subspan(at, bytes);
  }
  [[nodiscard]] std::uint64_t address(std::uint64_t at) const {
    return reinterpret_cast<std::uint64_t>(memory_.data()) + at;
  }
  [[nodiscard]] std::uint32_t lkey() const { return key_.lkey; }
  [[nodiscard]] std::uint32_t rkey() const { return key_.rkey; }
  [[nodiscard]] PacketCounts counts() { return soft::nic::EngineTestPeer::packet_counts(*engine_); }
  [[nodiscard]] std::uint64_t drops(roce::Drop why) { return counts().drops[static_cast<std::size_t>(why)]; }

 private:
  Side() = default;

  // As a program's progress thread does it: sleeps when there is nothing to do, and is woken by the link.
  void drive() {
    while (!stop_) {
      int done = 0;
      for (int i = 0; i < 64; ++i) done += engine_->drive(0);
      if (done == 0 && engine_->arm()) (void)sys::nap_on(engine_->event_fd(), 5'000'000);
    }
  }

  std::vector<std::byte> memory_;
  std::unique_ptr<Engine> engine_;
  DeafPort* port_ = nullptr;  // the engine's
  std::uint32_t pd_ = 0;
  strait_nic_mr key_{};
  std::atomic<bool> stop_{false};
  std::thread driver_;
};

}  // namespace strait::lab
