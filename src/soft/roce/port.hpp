// SPDX-License-Identifier: Apache-2.0
// A port: where packets leave and arrive, whatever carries them. One thread at a time; nothing here blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.hpp"
#include "soft/roce/address.hpp"

namespace strait::soft::roce {

// One packet as it arrived. Nothing in it has been checked but the IP and UDP headers around it.
struct Arrival {
  Flow flow;
  bool ecn_ce = false;               // a router on the way was congested
  bool id_unknown = false;           // IPv4 through a socket: check(..., id_unknown) has to guess the identification
  std::span<const std::byte> bytes;  // BTH to iCRC; valid during the call only
  std::uint16_t ip_id = 0;           // IPv4's identification where the carrier sees it (id_unknown false)
};

class Sink {
 public:
  virtual ~Sink() = default;
  virtual void on_packet(const Arrival& arrival) = 0;
  // Of the same run, before they are handed out: the one that comes kSoon packets later and the one kLater; empty
  // where there is none. What it is good for is the sink's affair.
  virtual void expect(std::span<const std::byte> /*soon*/, std::span<const std::byte> /*later*/) {}
  static constexpr std::size_t kSoon = 4;
  static constexpr std::size_t kLater = 8;
};

// What a port has done, for `strait info --counters`. Lost packets are the network's business and are not errors.
struct PortCounters {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  std::uint64_t batches_sent = 0;       // system calls, or segmented sends
  std::uint64_t batches_received = 0;   // datagrams as they came out of the socket, before they were split
  std::uint64_t send_refused = 0;       // the system would not send it: no route, too large, no neighbour
  std::uint64_t not_roce = 0;           // arrived, but is no packet at all
  std::uint64_t forwarded = 0;          // given to another process of this address
  std::uint64_t forward_no_holder = 0;  // its queue pair's range is held by nobody
  std::uint64_t forward_full = 0;       // that process does not read fast enough
  int last_send_errno = 0;              // why the system would not
};

class Port {
 public:
  virtual ~Port() = default;
  [[nodiscard]] virtual IpAddress address() const = 0;
  // The most bytes a packet may have, BTH to iCRC.
  [[nodiscard]] virtual std::uint32_t mtu_bytes() const = 0;

  // Room for one packet, BTH to iCRC, of at most `most_bytes`; null when the queue is full (flush first) or the packet
  // larger than mtu_bytes(). A begin() without its commit() leaves no trace. `source_port` is the flow's entropy; the
  // port may have to use another (UdpPort).
  [[nodiscard]] virtual std::byte* begin(const IpAddress& to, std::uint16_t source_port, std::size_t most_bytes) = 0;
  // The source port that a packet for which `asked` was asked really leaves with; the iCRC covers it.
  [[nodiscard]] virtual std::uint16_t leaves_from(std::uint16_t asked) const { return asked; }
  // `bytes`: what the packet really has, iCRC included, 16 or more. Writes the iCRC and queues the packet.
  virtual void commit(std::size_t bytes) = 0;
  // Sends what is queued. Code::again: the system takes no more now, the rest stays queued. Packets that cannot be sent
  // at all are counted and gone, as on any network; an error says that the port itself is broken.
  [[nodiscard]] virtual Status flush() = 0;

  // Hands at most `most` packets to the sink; returns how many. The sink may call begin() and commit(). When the answer
  // is `most` there may be more, already out of the socket, that fd() does not show: call again before waiting on it.
  virtual int receive(Sink& sink, int most) = 0;
  // Readable when receive() has something to do, once watch() was called after the last receive(); -1 when there is
  // nothing to wait on.
  [[nodiscard]] virtual int fd() const = 0;
  // Somebody is going to wait. False: fd() cannot be relied on, look again soon.
  [[nodiscard]] virtual bool watch() { return true; }
  [[nodiscard]] virtual PortCounters counters() const = 0;
};

}  // namespace strait::soft::roce
