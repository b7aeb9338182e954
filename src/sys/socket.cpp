// SPDX-License-Identifier: Apache-2.0
#include "sys/socket.hpp"

#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

namespace strait::sys {
namespace {

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Result<Addresses> resolve(const Endpoint& endpoint, bool passive) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (passive ? AI_PASSIVE : 0);
  addrinfo* list = nullptr;
  const int rc = ::getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &list);
  if (rc != 0) return fail(Code::invalid, "cannot resolve \"{}\": {}", endpoint.host, ::gai_strerror(rc));
  return Addresses(list);
}

Endpoint endpoint_of(const sockaddr_storage& address, socklen_t length) {
  // Not inet_ntop: a link-local address is of no use to anybody without its interface.
  char host[NI_MAXHOST] = {};
  char port[NI_MAXSERV] = {};
  ::getnameinfo(reinterpret_cast<const sockaddr*>(&address), length, host, sizeof host, port, sizeof port,
                NI_NUMERICHOST | NI_NUMERICSERV);
  Endpoint endpoint{host, 0};
  std::from_chars(port, port + std::strlen(port), endpoint.port);
  return endpoint;
}

// A connection to a free port of this machine can meet itself: TCP allows a simultaneous open with one's own port.
bool met_itself(int fd) {
  sockaddr_storage near{};
  sockaddr_storage far{};
  socklen_t near_length = sizeof near;
  socklen_t far_length = sizeof far;
  return ::getsockname(fd, reinterpret_cast<sockaddr*>(&near), &near_length) == 0 &&
         ::getpeername(fd, reinterpret_cast<sockaddr*>(&far), &far_length) == 0 && near_length == far_length &&
         std::memcmp(&near, &far, near_length) == 0;
}

Result<sockaddr_un> abstract_address(const std::string& name, socklen_t* length) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.empty() || name.size() >= sizeof address.sun_path) {
    return fail(Code::invalid, "\"{}\" cannot name a local socket: 1 to {} bytes", name, sizeof address.sun_path - 1);
  }
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  *length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

}  // namespace

Result<Fd> tcp_listen(const Endpoint& at, Endpoint* bound, const Calls& calls) {
  STRAIT_TRY(Addresses addresses, resolve(at, true));
  int cause = EADDRNOTAVAIL;
  for (const addrinfo* each = addresses.get(); each != nullptr; each = each->ai_next) {
    Fd fd(calls.socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd.valid() && errno != EAFNOSUPPORT) return fail_errno(errno, "cannot open a socket");
    if (!fd.valid()) {
      cause = EAFNOSUPPORT;  // "localhost" also names ::1 where there is no IPv6: take the next address
      continue;
    }
    const int on = 1;
    ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (::bind(fd.get(), each->ai_addr, each->ai_addrlen) != 0 || ::listen(fd.get(), 128) != 0) {
      cause = errno;
      if (cause == EADDRINUSE) break;  // another address of the same name would not be what was asked for
      continue;
    }
    sockaddr_storage taken{};
    socklen_t length = sizeof taken;
    ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&taken), &length);
    if (bound != nullptr) *bound = endpoint_of(taken, length);
    return fd;
  }
  Error error = fail_errno(cause, fmt::format("cannot listen on {}", at.text()));
  if (cause == EADDRINUSE) error.remedy = "Another process has that port: choose another, or 0 for any free one.";
  if (cause == EADDRNOTAVAIL) error.remedy = "That is not an address of this machine.";
  return error;
}

Result<Fd> tcp_connect(const Endpoint& to, Deadline deadline, const Calls& calls) {
  STRAIT_TRY(Addresses addresses, resolve(to, false));
  int cause = ECONNREFUSED;
  for (const addrinfo* each = addresses.get(); each != nullptr; each = each->ai_next) {
    Fd fd(calls.socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd.valid() && errno != EAFNOSUPPORT) return fail_errno(errno, "cannot open a socket");
    if (!fd.valid()) {
      cause = EAFNOSUPPORT;
      continue;
    }
    cause = ::connect(fd.get(), each->ai_addr, each->ai_addrlen) == 0 ? 0 : errno;
    if (cause == EINPROGRESS || cause == EINTR) {
      if (!wait_ready(fd.get(), true, deadline)) {
        return fail(Code::timeout, "{} did not answer before the deadline", to.text());
      }
      socklen_t length = sizeof cause;
      ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &cause, &length);
    }
    if (cause == 0 && met_itself(fd.get())) cause = ECONNREFUSED;
    if (cause == 0) {
      const int on = 1;
      ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      return fd;
    }
  }
  Error error = fail_errno(cause, fmt::format("cannot connect to {}", to.text()));
  if (cause == ECONNREFUSED)
    error.remedy = "Nobody listens there: is the peer running, and is that the address it printed?";
  return error;
}

Result<Fd> unix_listen(const std::string& name, const Calls& calls) {
  socklen_t length = 0;
  STRAIT_TRY(const sockaddr_un address, abstract_address(name, &length));
  Fd fd(calls.socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return fail_errno(errno, "cannot open a local socket");
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0 || ::listen(fd.get(), 128) != 0) {
    return fail_errno(errno, fmt::format("cannot listen on the local socket \"{}\"", name));
  }
  return fd;
}

Result<Fd> unix_connect(const std::string& name, Deadline deadline, const Calls& calls) {
  socklen_t length = 0;
  STRAIT_TRY(const sockaddr_un address, abstract_address(name, &length));
  Fd fd(calls.socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return fail_errno(errno, "cannot open a local socket");
  while (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) {
    // EAGAIN: the listener's backlog is full; it drains as the other engine makes progress.
    if (errno != EAGAIN && errno != EINTR)
      return fail_errno(errno, fmt::format("cannot reach the local socket \"{}\"", name));
    if (deadline.passed())
      return fail(Code::timeout, "the local socket \"{}\" did not accept before the deadline", name);
    ::poll(nullptr, 0, 1);
  }
  return fd;
}

Result<Fd> accept_one(int listener) {
  Fd fd(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (fd.valid()) return fd;
  if (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR) return fail(Code::again, "nobody is waiting");
  return fail_errno(errno, "cannot accept a connection");
}

Result<PacketPair> packet_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
    return fail_errno(errno, "cannot open a pair of local sockets");
  return PacketPair{Fd(ends[0]), Fd(ends[1])};
}

bool peer_closed(int socket) {
  pollfd entry{socket, POLLIN, 0};
  return ::poll(&entry, 1, 0) > 0 && (entry.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0;
}

Result<PeerCredentials> peer_credentials(int unix_socket) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (::getsockopt(unix_socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) {
    return fail_errno(errno, "cannot learn who is at the other end of a local socket");
  }
  return PeerCredentials{credentials.pid, credentials.uid};
}

namespace {
constexpr std::size_t kMaxFds = 8;
}

Status send_packet(int unix_socket, std::span<const std::byte> bytes, std::span<const int> fds) {
  if (fds.size() > kMaxFds) return fail(Code::invalid, "at most {} descriptors travel in one packet", kMaxFds);
  // To the receiver it would look like the end of the stream.
  if (bytes.empty()) return fail(Code::invalid, "a packet on a local socket cannot be empty");
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxFds)] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  if (::sendmsg(unix_socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    if (errno == EAGAIN || errno == EINTR) return fail(Code::again, "the local socket takes no packet right now");
    if (errno == EPIPE || errno == ECONNRESET)
      return fail(Code::gone, "the process at the other end of a local socket is gone");
    return fail_errno(errno, "cannot send on a local socket");
  }
  return {};
}

Result<Packet> receive_packet(int unix_socket, std::size_t max_bytes) {
  Packet packet;
  packet.bytes.resize(max_bytes);
  iovec part{packet.bytes.data(), packet.bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxFds)] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t got = ::recvmsg(unix_socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (got < 0) {
    if (errno == EAGAIN || errno == EINTR) return fail(Code::again, "nothing has arrived");
    if (errno == ECONNRESET) return fail(Code::gone, "the process at the other end of a local socket is gone");
    return fail_errno(errno, "cannot receive on a local socket");
  }
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
      packet.fds.emplace_back(fd);
    }
  }
  if (got == 0) return fail(Code::gone, "the process at the other end of a local socket closed it");
  if ((message.msg_flags & MSG_TRUNC) != 0) {
    return fail(Code::invalid, "a packet on a local socket is longer than {} bytes", max_bytes);
  }
  if ((message.msg_flags & MSG_CTRUNC) != 0 && packet.fds.size() < kMaxFds) {
    // The kernel drops what it cannot install: with room left in the message, it was this process that had none.
    return fail_errno(EMFILE, "cannot take the descriptors of a packet on a local socket");
  }
  if ((message.msg_flags & MSG_CTRUNC) != 0) {
    return fail(Code::invalid, "a packet on a local socket carries more than {} descriptors", kMaxFds);
  }
  packet.bytes.resize(static_cast<std::size_t>(got));
  return packet;
}

Status send_all(int socket, std::span<const std::byte> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN || errno == EINTR) {
      if (!wait_ready(socket, true, deadline))
        return fail(Code::timeout, "the other side did not take the message before the deadline");
    } else if (errno == EPIPE || errno == ECONNRESET) {
      return fail(Code::gone, "the other side closed the connection");
    } else {
      return fail_errno(errno, "cannot send");
    }
  }
  return {};
}

Status receive_all(int socket, std::span<std::byte> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t got = ::recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(got));
    } else if (got == 0 || errno == ECONNRESET) {
      return fail(Code::gone, "the other side closed the connection");
    } else if (errno == EAGAIN || errno == EINTR) {
      if (!wait_ready(socket, false, deadline))
        return fail(Code::timeout, "the other side did not answer before the deadline");
    } else {
      return fail_errno(errno, "cannot receive");
    }
  }
  return {};
}

bool wait_ready(int fd, bool for_write, Deadline deadline) {
  pollfd entry{fd, static_cast<short>(for_write ? POLLOUT : POLLIN), 0};
  while (true) {
    const int rc = ::poll(&entry, 1, deadline.left_ms());
    if (rc > 0) return true;
    if (rc == 0 && deadline.passed()) return false;
    if (rc < 0 && errno != EINTR) return false;
  }
}

}  // namespace strait::sys
