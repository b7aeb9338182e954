// SPDX-License-Identifier: Apache-2.0
// A UDP socket for many datagrams at a time: segmented sends (UDP_SEGMENT), coalesced receives (UDP_GRO), and what the
// IP header said. Never blocks. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/error.hpp"
#include "sys/calls.hpp"
#include "sys/fork.hpp"
#include "sys/interfaces.hpp"

namespace strait::sys {

struct UdpSettings {
  IpBytes address{};             // the source of what is sent; must be an address of this host
  std::uint16_t port = 0;        // 0: any
  bool any_destination = false;  // also receive what is addressed to the host's other addresses
  std::string interface;         // only for link-local IPv6 addresses, where it is part of the address
  bool share_port = false;       // SO_REUSEPORT: with other sockets of the same user
  std::uint8_t traffic_class = 0;
  int buffer_bytes = 8 << 20;  // asked for, each way
};

class UdpSocket {
 public:
  // IPv4: DF is set and, since the socket is never connected, the identification of what it sends is 0. IPv6: datagrams
  // without a checksum are received too.
  [[nodiscard]] static Result<UdpSocket> open(const UdpSettings& settings, const Calls& calls = real_calls());
  UdpSocket(UdpSocket&&) noexcept;
  UdpSocket& operator=(UdpSocket&&) noexcept;
  ~UdpSocket();

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] int receive_buffer_bytes() const { return receive_buffer_bytes_; }  // what the system gave
  [[nodiscard]] bool can_segment() const { return can_segment_; }

  static constexpr std::size_t kMostOut = 64;
  static constexpr std::size_t kMostIn = 16;

  struct Out {
    const IpBytes* to = nullptr;
    std::uint16_t port = 0;
    const std::byte* data = nullptr;
    std::size_t bytes = 0;
    std::uint16_t segment_bytes = 0;  // 0: one datagram; otherwise datagrams of this size, the last may be smaller
  };
  struct Sent {
    std::size_t taken = 0;
    int error = 0;  // errno of the first entry that was not taken; 0 when all were
  };
  // At most kMostOut entries.
  [[nodiscard]] Sent send(std::span<const Out> entries);

  struct In {
    IpBytes from{};
    std::uint16_t from_port = 0;
    IpBytes to{};
    bool ecn_ce = false;
    bool cut = false;  // was longer than its buffer
    std::size_t bytes = 0;
    std::size_t segment_bytes = 0;  // `bytes` is a run of datagrams of this size, the last may be smaller
  };
  // Fills at most min(entries, kMostIn); the i-th lies at buffers + i * stride_bytes. The count, 0 when nothing is
  // there; an error when the socket is broken.
  [[nodiscard]] Result<std::size_t> receive(std::span<In> entries, std::byte* buffers, std::size_t stride_bytes);

 private:
  struct Arrays;
  UdpSocket(Fd fd, const UdpSettings& settings, unsigned scope);
  [[nodiscard]] bool settle_on(const Out& out);
  ProcessFd fd_;  // a forked child's copy would go on taking packets from those who share the port
  IpBytes address_{};
  unsigned scope_ = 0;  // interface index of link-local addresses
  bool v4_ = false;
  bool say_source_ = false;  // bound to any: each send names its source
  bool can_segment_ = false;
  std::uint16_t port_ = 0;
  int receive_buffer_bytes_ = 0;
  std::uint16_t segment_bytes_ = 0;  // the socket's own: what each send is cut into that does not say otherwise
  std::uint16_t last_segment_bytes_ = 0;
  unsigned same_segments_ = 0;  // sends in a row that asked for that
  std::size_t at_once_ = 1;     // datagrams that the next receive asks for
  bool came_ = false;           // the last one was not in vain
  std::unique_ptr<Arrays> arrays_;
};

}  // namespace strait::sys
