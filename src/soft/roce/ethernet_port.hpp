// SPDX-License-Identifier: Apache-2.0
// A port on whole Ethernet frames over a pair of unix datagram sockets: what qemu's `-netdev dgram` speaks. No
// privilege, and every field of the IP header is ours to write and to see.
//
// Everybody is taken to be on the link: there is no gateway. Frames with a VLAN tag are not understood.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "soft/roce/neighbour.hpp"
#include "soft/roce/port.hpp"
#include "sys/local_datagram.hpp"

namespace strait::soft::roce {

struct EthernetPortSettings {
  IpAddress address;
  Mac mac = {0x02, 0, 0, 0, 0, 1};
  std::string local_path;               // made by open(), removed with the port
  std::string remote_path;              // may come later; until then everything sent is lost
  std::uint32_t link_mtu_bytes = 1500;  // of whole IP packets
  std::uint8_t traffic_class = 0x02;    // ECT(0): routers may mark instead of dropping
};

class EthernetPort final : public Port {
 public:
  [[nodiscard]] static Result<std::unique_ptr<EthernetPort>> open(const EthernetPortSettings& settings);

  [[nodiscard]] IpAddress address() const override { return settings_.address; }
  [[nodiscard]] std::uint32_t mtu_bytes() const override { return mtu_bytes_; }
  [[nodiscard]] std::byte* begin(const IpAddress& to, std::uint16_t source_port, std::size_t most_bytes) override;
  void commit(std::size_t bytes) override;
  // Packets to somebody whose MAC is not known wait for the answer, a few of them; the oldest are lost first.
  [[nodiscard]] Status flush() override;
  int receive(Sink& sink, int most) override;
  [[nodiscard]] int fd() const override { return socket_.fd(); }
  [[nodiscard]] PortCounters counters() const override { return counters_; }

 private:
  using Frame = std::vector<std::byte>;
  struct Neighbour {
    bool known = false;
    Mac mac{};
    std::int64_t asked_ns = 0;
    int asked = 0;  // since it last answered
    std::deque<Frame> waiting;
  };

  EthernetPort(const EthernetPortSettings& settings, sys::LocalDatagram socket, std::uint32_t mtu_bytes);
  void ask(const IpAddress& wanted, Neighbour& neighbour, std::int64_t now_ns);
  void ask_again();
  void learn(const IpAddress& address, const Mac& mac);
  [[nodiscard]] Status send_queue();
  [[nodiscard]] bool for_me(std::span<const std::byte> frame) const;
  void on_frame(std::span<const std::byte> frame, Sink& sink, int& count);

  EthernetPortSettings settings_;
  sys::LocalDatagram socket_;
  std::uint32_t mtu_bytes_;
  Flow next_flow_;
  Frame next_;
  struct Committed {
    IpAddress to;
    Frame frame;
  };
  std::deque<Committed> committed_;
  std::deque<Frame> ready_;   // with their MAC
  std::vector<Frame> spare_;  // frames to use again
  std::map<IpAddress, Neighbour> neighbours_;
  std::size_t waiting_ = 0;  // packets of all neighbours
  std::unique_ptr<std::byte[]> in_;
  PortCounters counters_;
};

}  // namespace strait::soft::roce
