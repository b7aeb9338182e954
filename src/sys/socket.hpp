// SPDX-License-Identifier: Apache-2.0
// Sockets: TCP for the rendezvous, UNIX sockets to hand descriptors to another process. Every call ends by its
// deadline.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "sys/calls.hpp"
#include "sys/clock.hpp"
#include "sys/fd.hpp"

namespace strait::sys {

struct Endpoint {
  std::string host;  // numeric address or name
  std::uint16_t port = 0;
  [[nodiscard]] std::string text() const;  // "host:port", IPv6 in brackets
};

// "host:port", "[v6]:port", ":port" (loopback), "host" (port 0). Anything else is refused with the reason. A text()
// of what was accepted is accepted again, with the same result.
[[nodiscard]] Result<Endpoint> parse_endpoint(std::string_view text);
// True only for "localhost" and numeric loopback addresses: a name like 127.example.org may lead anywhere.
[[nodiscard]] bool is_loopback(const Endpoint& endpoint);

// Names other than numeric addresses are looked up by the system's resolver, whose time no deadline here bounds.
// Listens without blocking on accept; port 0 picks one. `bound` receives the address that was taken.
[[nodiscard]] Result<Fd> tcp_listen(const Endpoint& at, Endpoint* bound, const Calls& calls = real_calls());
[[nodiscard]] Result<Fd> tcp_connect(const Endpoint& to, Deadline deadline, const Calls& calls = real_calls());

// An abstract-namespace UNIX socket of packets (SOCK_SEQPACKET). Accepted sockets come from accept_one.
[[nodiscard]] Result<Fd> unix_listen(const std::string& name, const Calls& calls = real_calls());
[[nodiscard]] Result<Fd> unix_connect(const std::string& name, Deadline deadline, const Calls& calls = real_calls());
// Code::again when nobody is waiting. The accepted socket does not block.
[[nodiscard]] Result<Fd> accept_one(int listener);

struct PacketPair {
  Fd one, other;
};
// Two connected sockets of packets, neither of which blocks.
[[nodiscard]] Result<PacketPair> packet_pair();

// Has the process at the other end closed it, or died? Takes nothing out of the stream.
[[nodiscard]] bool peer_closed(int socket);

struct PeerCredentials {
  pid_t pid = 0;
  uid_t uid = 0;
};
[[nodiscard]] Result<PeerCredentials> peer_credentials(int unix_socket);

// One packet of at least one byte, with at most 8 descriptors; Code::again when the socket is full. Receiving answers
// Code::again when nothing is there, Code::gone at the end of the stream.
[[nodiscard]] Status send_packet(int unix_socket, std::span<const std::byte> bytes, std::span<const int> fds);
struct Packet {
  std::vector<std::byte> bytes;
  std::vector<Fd> fds;
};
[[nodiscard]] Result<Packet> receive_packet(int unix_socket, std::size_t max_bytes);

// Streams: all of it or an error; Code::gone when the other side closed, Code::timeout at the deadline.
[[nodiscard]] Status send_all(int socket, std::span<const std::byte> bytes, Deadline deadline);
[[nodiscard]] Status receive_all(int socket, std::span<std::byte> bytes, Deadline deadline);

// Waits until the descriptor is readable (or writable); false at the deadline.
[[nodiscard]] bool wait_ready(int fd, bool for_write, Deadline deadline);

}  // namespace strait::sys
