// SPDX-License-Identifier: Apache-2.0
#include "sys/route.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "sys/fd.hpp"

namespace strait::sys {

Result<IpBytes> source_towards(const IpBytes& destination, unsigned scope) {
  const bool v4 = is_mapped_v4(destination);
  const Fd probe(::socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!probe.valid()) return fail_errno(errno, "cannot make a socket to ask for a route");
  // Connecting a datagram socket looks the route up and sends nothing. The port is any but 0.
  sockaddr_in to4{};
  sockaddr_in6 to6{};
  to4.sin_family = AF_INET;
  to6.sin6_family = AF_INET6;
  to4.sin_port = to6.sin6_port = htons(4791);
  std::memcpy(&to4.sin_addr, destination.data() + 12, 4);
  std::memcpy(&to6.sin6_addr, destination.data(), 16);
  to6.sin6_scope_id = scope;
  const auto* const to = v4 ? reinterpret_cast<const sockaddr*>(&to4) : reinterpret_cast<const sockaddr*>(&to6);
  if (::connect(probe.get(), to, v4 ? sizeof to4 : sizeof to6) != 0)
    return fail_errno(errno, "there is no route to the address");
  sockaddr_in6 from{};
  socklen_t length = sizeof from;
  if (::getsockname(probe.get(), reinterpret_cast<sockaddr*>(&from), &length) != 0)
    return fail_errno(errno, "cannot read a socket's own address");
  IpBytes out{};
  if (v4) {
    sockaddr_in from4{};
    std::memcpy(&from4, &from, sizeof from4);
    out[10] = out[11] = 0xff;
    std::memcpy(out.data() + 12, &from4.sin_addr, 4);
  } else {
    std::memcpy(out.data(), &from.sin6_addr, 16);
  }
  return out;
}

}  // namespace strait::sys
