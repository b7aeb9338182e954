// SPDX-License-Identifier: Apache-2.0
// A port on ordinary UDP sockets: no privilege, no kernel RDMA.
//
// What a socket cannot do shows here and there:
// - Everything leaves from port 4791, whatever source port was asked for; the flow says what really was used.
// - A received IPv4 identification is not visible, so arrivals over IPv4 have id_unknown set.
// - Sent IPv4 packets have identification 0 and DF, which the iCRC counts on. Segmentation offload (GSO) numbers the
//   segments 0, 1, 2, ... once they are cut, so over IPv4 it is used only to addresses of this host, where nothing
//   cuts.
//
// Several processes of one user may have ports on one address (SO_REUSEPORT). The kernel then gives all packets of a
// flow to one of them, which need not be the right one. Each process claims a range of QPNs, the top byte, by an
// abstract local socket, which the kernel frees when the process dies however; a packet for another range is forwarded
// there. A management datagram, for QPN 1, may be anybody's: every process on the address gets it.
//
// That way packets need a third process, which may be stopped. So what goes from one to another on this host does
// without: packets for a range go to a UDP port that its process has for itself, and management datagrams are offered
// to all by their sender. A process of another user, who may not share port 4791, has only that port: it can be reached
// from this host.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "soft/roce/port.hpp"
#include "strait/wire/roce.hpp"
#include "sys/event_set.hpp"
#include "sys/local_datagram.hpp"
#include "sys/udp.hpp"

namespace strait::soft::roce {

struct UdpPortSettings {
  IpAddress address;              // an address of this host; the source of all packets
  std::vector<IpAddress> shared;  // addresses on which other processes of this host have ports too
  bool any_destination = false;   // also receive what is sent to the host's other addresses
  std::string interface;          // for link-local IPv6 addresses
  std::uint8_t qpn_range = 0;     // 0: any that is free
  bool segmentation = true;       // GSO, where it is harmless
  // Says to routers that packets may be marked instead of dropped when queues grow: ECT(0).
  std::uint8_t traffic_class = 0x02;
  int socket_buffer_bytes = 8 << 20;
};

class UdpPort final : public Port {
 public:
  // Code::limit when all 255 ranges of the address are taken; Code::again when the one asked for is.
  [[nodiscard]] static Result<std::unique_ptr<UdpPort>> open(const UdpPortSettings& settings);
  ~UdpPort() override;

  // The top byte of all QPNs that this port's packets may have as destination: 1 to 255.
  [[nodiscard]] std::uint8_t qpn_range() const { return range_; }
  // What the system gave of the buffer asked for: packets beyond it are lost.
  [[nodiscard]] int receive_buffer_bytes() const { return (socket_ ? *socket_ : *own_).receive_buffer_bytes(); }
  // Whether packets of other hosts come here.
  [[nodiscard]] bool is_public() const { return socket_.has_value(); }

  [[nodiscard]] IpAddress address() const override { return settings_.address; }
  [[nodiscard]] std::uint32_t mtu_bytes() const override { return mtu_bytes_; }
  [[nodiscard]] std::byte* begin(const IpAddress& to, std::uint16_t source_port, std::size_t most_bytes) override;
  [[nodiscard]] std::uint16_t leaves_from(std::uint16_t) const override { return source_port(); }
  void commit(std::size_t bytes) override;
  [[nodiscard]] Status flush() override;
  int receive(Sink& sink, int most) override;
  [[nodiscard]] int fd() const override { return events_.fd(); }
  [[nodiscard]] bool watch() override;
  [[nodiscard]] PortCounters counters() const override { return counters_; }

 private:
  struct Queued {
    IpAddress to;
    std::uint32_t offset;
    std::uint32_t bytes;
    std::uint16_t port;  // 0: to everybody on the address
  };
  // What makes a process's range its own.
  struct Place {
    std::uint8_t range = 0;
    sys::LocalDatagram claim;
    std::optional<sys::UdpSocket> own;
  };
  struct Neighbour {
    bool may_segment = false;
    std::int64_t asked_ns = 0;
  };
  // A run of datagrams of one flow, out of the socket or from another process, and how far it has been handed out.
  struct Run {
    Flow flow;
    bool ecn_ce = false;
    const std::byte* data = nullptr;
    std::size_t bytes = 0;
    std::size_t segment_bytes = 0;
    bool forwarded = false;
  };
  struct Held {
    IpAddress at;
    std::uint8_t range;
    std::int64_t since_ns;
    std::size_t packets;
    std::vector<std::byte> message;
  };

  UdpPort(const UdpPortSettings& settings, std::optional<sys::UdpSocket> socket, Place place, sys::EventSet events,
          std::uint32_t mtu_bytes);
  [[nodiscard]] static Result<Place> take_place(const UdpPortSettings& settings, const sys::UdpSettings& udp);
  [[nodiscard]] static Result<Place> take_range(const UdpPortSettings& settings, const sys::UdpSettings& udp,
                                                std::uint8_t range);
  [[nodiscard]] std::uint16_t source_port() const { return socket_ ? wire::roce::kUdpPort : own_->port(); }
  [[nodiscard]] std::uint16_t port_of(const IpAddress& to, std::span<const std::byte> packet) const;
  [[nodiscard]] bool may_segment(const IpAddress& to);
  [[nodiscard]] std::size_t run_from(std::size_t first);
  [[nodiscard]] Status send_from(std::size_t& head);
  [[nodiscard]] bool refill();
  void refill_from_claim();
  [[nodiscard]] bool refill_from(std::optional<sys::UdpSocket>& socket);
  [[nodiscard]] static std::span<const std::byte> packet_of(const Run& run, std::size_t n);
  void hand_out(Sink& sink, Run& run, int most, int& count);
  void forward(const Run& run, std::uint8_t range, std::size_t bytes);
  void forward_held();
  void forward_to_all(const Run& run, std::size_t bytes, bool self);
  [[nodiscard]] int pass_on(const Run& run, const IpAddress& at, std::uint8_t range, std::size_t bytes);

  [[nodiscard]] sys::UdpSocket& out_socket() { return socket_ ? *socket_ : *own_; }

  UdpPortSettings settings_;
  std::optional<sys::UdpSocket> socket_;  // port 4791, with others
  std::optional<sys::UdpSocket> own_;     // for this process alone
  sys::LocalDatagram claim_;
  sys::EventSet events_;
  std::uint8_t range_;
  std::uint32_t mtu_bytes_;

  // Sending: packets lie one behind the other, so that a run of equal ones is one piece of memory.
  std::unique_ptr<std::byte[]> out_;
  std::vector<Queued> queue_;
  std::size_t head_ = 0;        // of queue_: sent so far
  std::uint32_t out_used_ = 0;  // of out_
  IpAddress next_to_;
  std::unordered_map<std::string, Neighbour> neighbours_;
  IpAddress last_to_;
  Neighbour* last_neighbour_ = nullptr;
  unsigned segmented_ = 0;
  // For one call at a time; kept, since clearing room for many takes longer than most calls need.
  std::array<sys::UdpSocket::Out, sys::UdpSocket::kMostOut> out_entries_;
  std::array<std::size_t, sys::UdpSocket::kMostOut> out_packets_{};
  std::array<sys::UdpSocket::In, sys::UdpSocket::kMostIn> in_entries_;

  // Receiving.
  std::unique_ptr<std::byte[]> in_;
  std::array<Run, sys::UdpSocket::kMostIn + 1> runs_;
  std::size_t run_next_ = 0;
  std::size_t run_end_ = 0;
  std::unique_ptr<std::byte[]> claimed_in_;
  // Being watched costs a third of a microsecond for every packet, at the sender, so a socket that is read all the time
  // anyway is not. Calls of refill() are counted.
  static constexpr unsigned kStaysBusy = 1024;
  unsigned polls_ = 2 * kStaysBusy;
  unsigned came_at_ = 0;     // the one that last had something
  unsigned watched_at_ = 0;  // the first after watch()
  bool socket_watched_ = true;
  bool own_watched_ = true;
  bool claim_busy_ = false;
  bool own_last_ = true;   // which of the sockets had something when one had
  std::deque<Held> held_;  // for processes whose queue was full
  std::size_t held_bytes_ = 0;
  std::vector<std::uint8_t> others_;  // ranges that were held when management datagrams were last offered to all
  std::int64_t asked_all_ns_ = 0;
  PortCounters counters_;
};

}  // namespace strait::soft::roce
