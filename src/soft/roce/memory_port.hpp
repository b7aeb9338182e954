// SPDX-License-Identifier: Apache-2.0
// Two ports joined by queues in memory: for tests that feed crafted packets and look at the answers, without sockets.
#pragma once

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "soft/roce/port.hpp"

namespace strait::soft::roce {

class MemoryPort final : public Port {
 public:
  // A packet between commit() and receive().
  struct Frame {
    Flow flow;
    bool ecn_ce = false;
    bool id_unknown = false;
    std::vector<std::byte> bytes;
  };

  struct Settings {
    std::uint32_t mtu_bytes = 4200;
    std::size_t queue_packets = 1024;  // on their way; begin() answers null beyond
  };
  // What one sends arrives at the other, whoever it was addressed to: nothing is routed.
  static std::pair<std::unique_ptr<MemoryPort>, std::unique_ptr<MemoryPort>> make_pair(const IpAddress& a,
                                                                                       const IpAddress& b,
                                                                                       Settings settings);
  static std::pair<std::unique_ptr<MemoryPort>, std::unique_ptr<MemoryPort>> make_pair(const IpAddress& a,
                                                                                       const IpAddress& b) {
    return make_pair(a, b, Settings{});
  }

  // Packets committed here that the other side has not received. A test may drop, repeat, reorder and change them.
  [[nodiscard]] std::deque<Frame>& on_the_way() { return *out_; }
  // Delivers a frame to this port, as it is: nothing is sealed.
  void inject(Frame frame) { in_->push_back(std::move(frame)); }

  [[nodiscard]] IpAddress address() const override { return address_; }
  [[nodiscard]] std::uint32_t mtu_bytes() const override { return settings_.mtu_bytes; }
  [[nodiscard]] std::byte* begin(const IpAddress& to, std::uint16_t source_port, std::size_t most_bytes) override;
  void commit(std::size_t bytes) override;
  [[nodiscard]] Status flush() override;
  int receive(Sink& sink, int most) override;
  [[nodiscard]] int fd() const override { return -1; }
  [[nodiscard]] PortCounters counters() const override { return counters_; }

 private:
  using Queue = std::shared_ptr<std::deque<Frame>>;
  MemoryPort(const IpAddress& address, Settings settings, Queue in, Queue out)
      : address_(address), settings_(settings), in_(std::move(in)), out_(std::move(out)) {}

  IpAddress address_;
  Settings settings_;
  Queue in_;
  Queue out_;
  Frame next_;
  std::vector<Frame> queued_;  // committed, not flushed
  PortCounters counters_;
};

}  // namespace strait::soft::roce
