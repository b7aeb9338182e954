// SPDX-License-Identifier: Apache-2.0
#include "sys/udp.hpp"

#include <net/if.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace strait::sys {
namespace {

constexpr std::size_t kControlBytes = 128;  // packet info (20 + 16), traffic class, segment size, with room
constexpr unsigned kSameSegments = 16;

struct UdpAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
};

void set_ip_address(sockaddr_storage& storage, socklen_t& length, const IpBytes& ip, std::uint16_t port,
                    unsigned scope) {
  if (is_mapped_v4(ip)) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(port);
    std::memcpy(&in.sin_addr, ip.data() + 12, 4);
    std::memcpy(&storage, &in, sizeof in);
    length = sizeof in;
    return;
  }
  sockaddr_in6 in6{};
  in6.sin6_family = AF_INET6;
  in6.sin6_port = htons(port);
  std::memcpy(&in6.sin6_addr, ip.data(), 16);
  if (ip[0] == 0xfe && (ip[1] & 0xc0) == 0x80) in6.sin6_scope_id = scope;
  std::memcpy(&storage, &in6, sizeof in6);
  length = sizeof in6;
}

void map_v4(const in_addr& from, IpBytes& to) {
  to = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  std::memcpy(to.data() + 12, &from, 4);
}

Status set_option(int fd, int level, int name, int value, const char* what) {
  if (::setsockopt(fd, level, name, &value, sizeof value) == 0) return {};
  return fail_errno(errno, std::string("cannot set the UDP socket option ") + what);
}

Status set_common_options(int fd, const UdpSettings& settings) {
  if (settings.share_port) STRAIT_CHECK(set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1, "SO_REUSEPORT"));
  // Beyond rmem_max only the privileged may go; others get what the system allows.
  for (const auto& [force, plain] : {std::pair{SO_RCVBUFFORCE, SO_RCVBUF}, std::pair{SO_SNDBUFFORCE, SO_SNDBUF}}) {
    if (::setsockopt(fd, SOL_SOCKET, force, &settings.buffer_bytes, sizeof settings.buffer_bytes) == 0) continue;
    STRAIT_CHECK(set_option(fd, SOL_SOCKET, plain, settings.buffer_bytes, "SO_RCVBUF or SO_SNDBUF"));
  }
  return {};
}

Status set_family_options(int fd, const UdpSettings& settings, bool v4) {
  if (v4) {
    STRAIT_CHECK(set_option(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO, "IP_MTU_DISCOVER"));
    STRAIT_CHECK(set_option(fd, IPPROTO_IP, IP_RECVTOS, 1, "IP_RECVTOS"));
    STRAIT_CHECK(set_option(fd, IPPROTO_IP, IP_TOS, settings.traffic_class, "IP_TOS"));
    return set_option(fd, IPPROTO_IP, IP_PKTINFO, settings.any_destination ? 1 : 0, "IP_PKTINFO");
  }
  STRAIT_CHECK(set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1, "IPV6_V6ONLY"));
  STRAIT_CHECK(set_option(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO, "IPV6_MTU_DISCOVER"));
  // The kernel's own RoCE driver sends no checksum, and without this option its packets vanish without a word.
  STRAIT_CHECK(set_option(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1, "UDP_NO_CHECK6_RX"));
  STRAIT_CHECK(set_option(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1, "IPV6_RECVTCLASS"));
  STRAIT_CHECK(set_option(fd, IPPROTO_IPV6, IPV6_TCLASS, settings.traffic_class, "IPV6_TCLASS"));
  return set_option(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, settings.any_destination ? 1 : 0, "IPV6_RECVPKTINFO");
}

Status bind_to(int fd, const UdpSettings& settings, unsigned scope) {
  IpBytes at = settings.address;
  if (settings.any_destination) std::fill(at.begin() + (is_mapped_v4(at) ? 12 : 0), at.end(), std::uint8_t{0});
  UdpAddress address;
  set_ip_address(address.storage, address.length, at, settings.port, scope);
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address.storage), address.length) == 0) return {};
  const int error = errno;
  Error out = fail_errno(error, fmt::format("cannot bind UDP port {}", settings.port));
  if (error == EADDRINUSE) {
    return with_remedy(std::move(out),
                       "another program has the port on this address (the kernel's rdma_rxe, or one that does not "
                       "share it); use another address or network namespace");
  }
  if (error == EADDRNOTAVAIL) return with_remedy(std::move(out), "no network interface of this host has that address");
  return out;
}

}  // namespace

struct UdpSocket::Arrays {
  struct Control {
    alignas(cmsghdr) char bytes[kControlBytes];
  };
  mmsghdr headers[kMostOut];
  iovec pieces[kMostOut];
  sockaddr_storage addresses[kMostOut];
  Control control[kMostOut];
};

UdpSocket::UdpSocket(Fd fd, const UdpSettings& settings, unsigned scope)
    : fd_(std::move(fd)),
      address_(settings.address),
      scope_(scope),
      v4_(is_mapped_v4(settings.address)),
      say_source_(settings.any_destination),
      arrays_(std::make_unique<Arrays>()) {}
UdpSocket::UdpSocket(UdpSocket&&) noexcept = default;
UdpSocket& UdpSocket::operator=(UdpSocket&&) noexcept = default;
UdpSocket::~UdpSocket() = default;

Result<UdpSocket> UdpSocket::open(const UdpSettings& settings, const Calls& calls) {
  const bool v4 = is_mapped_v4(settings.address);
  unsigned scope = 0;
  if (!settings.interface.empty()) {
    scope = ::if_nametoindex(settings.interface.c_str());
    if (scope == 0) return fail(Code::invalid, "there is no network interface \"{}\"", settings.interface);
  }
  Fd fd(calls.socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return fail_errno(errno, "cannot make a UDP socket");
  STRAIT_CHECK(set_common_options(fd.get(), settings));
  STRAIT_CHECK(set_family_options(fd.get(), settings, v4));
  STRAIT_CHECK(bind_to(fd.get(), settings, scope));
  UdpSocket out(std::move(fd), settings, scope);
  // Both came with Linux 4.18 and 5.0; without them everything works, one datagram at a time.
  const int on = 1;
  (void)::setsockopt(out.fd(), IPPROTO_UDP, UDP_GRO, &on, sizeof on);
  int segment = 0;
  socklen_t length = sizeof segment;
  out.can_segment_ = ::getsockopt(out.fd(), IPPROTO_UDP, UDP_SEGMENT, &segment, &length) == 0;
  length = sizeof out.receive_buffer_bytes_;
  (void)::getsockopt(out.fd(), SOL_SOCKET, SO_RCVBUF, &out.receive_buffer_bytes_, &length);
  sockaddr_storage name{};
  length = sizeof name;
  if (::getsockname(out.fd(), reinterpret_cast<sockaddr*>(&name), &length) != 0) {
    return fail_errno(errno, "cannot read the name of a UDP socket");
  }
  // The port lies at the same place in both families.
  sockaddr_in in{};
  std::memcpy(&in, &name, sizeof in);
  out.port_ = ntohs(in.sin_port);
  return out;
}

namespace {

template <class Value>
void add_control(msghdr& header, int level, int type, const Value& value) {
  auto* const base = static_cast<char*>(header.msg_control);
  auto* const entry = reinterpret_cast<cmsghdr*>(base + header.msg_controllen);
  entry->cmsg_level = level;
  entry->cmsg_type = type;
  entry->cmsg_len = CMSG_LEN(sizeof value);
  std::memcpy(CMSG_DATA(entry), &value, sizeof value);
  header.msg_controllen += CMSG_SPACE(sizeof value);
}

void read_control(msghdr& header, UdpSocket::In& in) {
  for (cmsghdr* entry = CMSG_FIRSTHDR(&header); entry != nullptr; entry = CMSG_NXTHDR(&header, entry)) {
    const auto is = [&](int level, int type) { return entry->cmsg_level == level && entry->cmsg_type == type; };
    if (is(IPPROTO_IP, IP_TOS)) {
      in.ecn_ce = (*CMSG_DATA(entry) & 3) == 3;
    } else if (is(IPPROTO_IPV6, IPV6_TCLASS)) {
      int traffic_class = 0;
      std::memcpy(&traffic_class, CMSG_DATA(entry), sizeof traffic_class);
      in.ecn_ce = (traffic_class & 3) == 3;
    } else if (is(IPPROTO_UDP, UDP_GRO)) {
      int segment = 0;
      std::memcpy(&segment, CMSG_DATA(entry), sizeof segment);
      if (segment > 0) in.segment_bytes = static_cast<std::size_t>(segment);
    } else if (is(IPPROTO_IP, IP_PKTINFO)) {
      in_pktinfo info{};
      std::memcpy(&info, CMSG_DATA(entry), sizeof info);
      map_v4(info.ipi_addr, in.to);
    } else if (is(IPPROTO_IPV6, IPV6_PKTINFO)) {
      in6_pktinfo info{};
      std::memcpy(&info, CMSG_DATA(entry), sizeof info);
      std::memcpy(in.to.data(), &info.ipi6_addr, 16);
    }
  }
}

void read_address(const sockaddr_storage& storage, bool v4, UdpSocket::In& in) {
  if (v4) {
    sockaddr_in from{};
    std::memcpy(&from, &storage, sizeof from);
    map_v4(from.sin_addr, in.from);
    in.from_port = ntohs(from.sin_port);
    return;
  }
  sockaddr_in6 from{};
  std::memcpy(&from, &storage, sizeof from);
  std::memcpy(in.from.data(), &from.sin6_addr, 16);
  in.from_port = ntohs(from.sin6_port);
}

// Most of the time there is one, and a call for one costs the system less than a call for many.
int send_datagrams(int fd, mmsghdr* headers, std::size_t count) {
  if (count != 1) return ::sendmmsg(fd, headers, static_cast<unsigned>(count), MSG_NOSIGNAL);
  return ::sendmsg(fd, &headers->msg_hdr, MSG_NOSIGNAL) < 0 ? -1 : 1;
}

int receive_datagrams(int fd, mmsghdr* headers, std::size_t count) {
  if (count != 1) return ::recvmmsg(fd, headers, static_cast<unsigned>(count), MSG_DONTWAIT, nullptr);
  const ssize_t bytes = ::recvmsg(fd, &headers->msg_hdr, MSG_DONTWAIT);
  if (bytes < 0) return -1;
  headers->msg_len = static_cast<unsigned>(bytes);
  return 1;
}

}  // namespace

// Whether the socket itself cuts this one as it is to be: then it needs no message header, whose pieces the system
// would fetch one by one. Who sends runs of one kind only, as a ping-pong does, gets them told to the socket. A single
// datagram shorter than that would not be cut either, but where a device cannot segment it would be refused.
bool UdpSocket::settle_on(const Out& out) {
  if (say_source_) return false;
  if (out.segment_bytes == segment_bytes_) return true;
  same_segments_ = out.segment_bytes == last_segment_bytes_ ? same_segments_ + 1 : 0;
  last_segment_bytes_ = out.segment_bytes;
  if (same_segments_ < kSameSegments) return false;
  same_segments_ = 0;
  const int value = out.segment_bytes;
  if (::setsockopt(fd_.get(), IPPROTO_UDP, UDP_SEGMENT, &value, sizeof value) != 0) return false;
  segment_bytes_ = out.segment_bytes;
  return true;
}

UdpSocket::Sent UdpSocket::send(std::span<const Out> entries) {
  Arrays& a = *arrays_;
  if (entries.size() == 1 && is_mapped_v4(*entries[0].to) == v4_ && settle_on(entries[0])) {
    const Out& out = entries[0];
    socklen_t length = 0;
    set_ip_address(a.addresses[0], length, *out.to, out.port, scope_);
    const auto* const to = reinterpret_cast<const sockaddr*>(&a.addresses[0]);
    ssize_t sent = 0;
    do {
      sent = ::sendto(fd_.get(), out.data, out.bytes, MSG_NOSIGNAL, to, length);
    } while (sent < 0 && errno == EINTR);
    return sent < 0 ? Sent{0, errno} : Sent{1, 0};
  }
  const std::size_t count = std::min(entries.size(), kMostOut);
  for (std::size_t i = 0; i < count; ++i) {
    const Out& out = entries[i];
    if (is_mapped_v4(*out.to) != v4_) return {0, EAFNOSUPPORT};
    a.headers[i] = {};
    msghdr& header = a.headers[i].msg_hdr;
    a.pieces[i] = {const_cast<std::byte*>(out.data), out.bytes};
    header.msg_iov = &a.pieces[i];
    header.msg_iovlen = 1;
    header.msg_name = &a.addresses[i];
    set_ip_address(a.addresses[i], header.msg_namelen, *out.to, out.port, scope_);
    header.msg_control = a.control[i].bytes;
    if (out.segment_bytes != 0 || segment_bytes_ != 0) add_control(header, IPPROTO_UDP, UDP_SEGMENT, out.segment_bytes);
    if (say_source_ && v4_) {
      in_pktinfo info{};
      std::memcpy(&info.ipi_spec_dst, address_.data() + 12, 4);
      add_control(header, IPPROTO_IP, IP_PKTINFO, info);
    } else if (say_source_) {
      in6_pktinfo info{};
      std::memcpy(&info.ipi6_addr, address_.data(), 16);
      add_control(header, IPPROTO_IPV6, IPV6_PKTINFO, info);
    }
    if (header.msg_controllen == 0) header.msg_control = nullptr;
  }
  Sent sent;
  while (sent.taken < count) {
    const int taken = send_datagrams(fd_.get(), a.headers + sent.taken, count - sent.taken);
    if (taken > 0) {
      sent.taken += static_cast<std::size_t>(taken);
    } else if (errno != EINTR) {
      sent.error = errno;
      break;
    }
  }
  return sent;
}

Result<std::size_t> UdpSocket::receive(std::span<In> entries, std::byte* buffers, std::size_t stride_bytes) {
  Arrays& a = *arrays_;
  // Room for many costs time that a poll of an empty socket should not take, and the look behind the last one that came
  // as much as another call: asked for once they come one after the other.
  const std::size_t count = std::min(entries.size(), at_once_);
  for (std::size_t i = 0; i < count; ++i) {
    a.headers[i] = {};
    msghdr& header = a.headers[i].msg_hdr;
    a.pieces[i] = {buffers + i * stride_bytes, stride_bytes};
    header.msg_iov = &a.pieces[i];
    header.msg_iovlen = 1;
    header.msg_name = &a.addresses[i];
    header.msg_namelen = sizeof a.addresses[i];
    header.msg_control = a.control[i].bytes;
    header.msg_controllen = kControlBytes;
  }
  int got = 0;
  do {
    got = receive_datagrams(fd_.get(), a.headers, count);
  } while (got < 0 && errno == EINTR);
  at_once_ = got > 1 || (got == 1 && came_) ? kMostIn : 1;
  came_ = got > 0;
  if (got < 0) {
    // Anything but "empty" and news about packets sent earlier would come back for ever.
    if (errno == EAGAIN || errno == ECONNREFUSED || errno == EHOSTUNREACH || errno == ENETUNREACH)
      return std::size_t{0};
    return fail_errno(errno, "cannot receive from a UDP socket");
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(got); ++i) {
    In& in = entries[i];
    in = {};
    in.to = address_;
    in.bytes = a.headers[i].msg_len;
    in.segment_bytes = in.bytes;
    in.cut = (a.headers[i].msg_hdr.msg_flags & MSG_TRUNC) != 0;
    read_address(a.addresses[i], v4_, in);
    read_control(a.headers[i].msg_hdr, in);
  }
  return static_cast<std::size_t>(got);
}

}  // namespace strait::sys
