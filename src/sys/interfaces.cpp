// SPDX-License-Identifier: Apache-2.0
#include "sys/interfaces.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "sys/fd.hpp"

namespace strait::sys {
namespace {

struct FreeInterfaces {
  void operator()(ifaddrs* list) const { ::freeifaddrs(list); }
};

bool matches(const sockaddr* found, const IpBytes& address) {
  if (found == nullptr) return false;
  if (found->sa_family == AF_INET && is_mapped_v4(address)) {
    sockaddr_in in{};
    std::memcpy(&in, found, sizeof in);
    return std::memcmp(&in.sin_addr, address.data() + 12, 4) == 0;
  }
  if (found->sa_family != AF_INET6) return false;
  sockaddr_in6 in6{};
  std::memcpy(&in6, found, sizeof in6);
  return std::memcmp(&in6.sin6_addr, address.data(), 16) == 0;
}

Result<std::uint32_t> mtu_of(const std::string& name) {
  const Fd any(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!any.valid()) return fail_errno(errno, "cannot make a socket to ask for an MTU");
  ifreq request{};
  std::memcpy(request.ifr_name, name.c_str(), std::min(name.size() + 1, sizeof request.ifr_name));
  if (::ioctl(any.get(), SIOCGIFMTU, &request) != 0) return fail_errno(errno, "cannot read the MTU of " + name);
  return static_cast<std::uint32_t>(request.ifr_mtu);
}

bool is_loopback_v4(const IpBytes& address) {
  return is_mapped_v4(address) && address[12] == 127;
}

// Empty when there is none.
Result<std::string> name_of(const IpBytes& address) {
  ifaddrs* raw = nullptr;
  if (::getifaddrs(&raw) != 0) return fail_errno(errno, "cannot list the network interfaces");
  const std::unique_ptr<ifaddrs, FreeInterfaces> list(raw);
  for (const ifaddrs* entry = list.get(); entry != nullptr; entry = entry->ifa_next) {
    if (matches(entry->ifa_addr, address)) return std::string(entry->ifa_name);
  }
  if (!is_loopback_v4(address)) return std::string();
  for (const ifaddrs* entry = list.get(); entry != nullptr; entry = entry->ifa_next) {
    if ((entry->ifa_flags & IFF_LOOPBACK) != 0) return std::string(entry->ifa_name);
  }
  return std::string();
}

}  // namespace

bool is_mapped_v4(const IpBytes& address) {
  static constexpr std::uint8_t kPrefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(address.data(), kPrefix, sizeof kPrefix) == 0;
}

bool is_own_address(const IpBytes& address) {
  if (is_loopback_v4(address)) return true;
  const auto name = name_of(address);
  return name && !name->empty();
}

std::string first_address() {
  ifaddrs* raw = nullptr;
  if (::getifaddrs(&raw) != 0) return {};
  const std::unique_ptr<ifaddrs, FreeInterfaces> list(raw);
  for (const int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* entry = list.get(); entry != nullptr; entry = entry->ifa_next) {
      if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != family) continue;
      if ((entry->ifa_flags & IFF_LOOPBACK) != 0 || (entry->ifa_flags & IFF_UP) == 0) continue;
      char text[INET6_ADDRSTRLEN] = {};
      if (family == AF_INET) {
        sockaddr_in in{};
        std::memcpy(&in, entry->ifa_addr, sizeof in);
        ::inet_ntop(family, &in.sin_addr, text, sizeof text);
      } else {
        sockaddr_in6 in6{};
        std::memcpy(&in6, entry->ifa_addr, sizeof in6);
        if (IN6_IS_ADDR_LINKLOCAL(&in6.sin6_addr))
          continue;  // needs an interface with it, which addresses do not carry
        ::inet_ntop(family, &in6.sin6_addr, text, sizeof text);
      }
      return text;
    }
  }
  return {};
}

Result<std::vector<HostAddress>> host_addresses() {
  ifaddrs* raw = nullptr;
  if (::getifaddrs(&raw) != 0) return fail_errno(errno, "cannot list the network interfaces");
  const std::unique_ptr<ifaddrs, FreeInterfaces> list(raw);
  std::vector<HostAddress> out;
  for (const ifaddrs* entry = list.get(); entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) continue;
    HostAddress found;
    if (entry->ifa_addr->sa_family == AF_INET) {
      sockaddr_in in{};
      std::memcpy(&in, entry->ifa_addr, sizeof in);
      found.address[10] = found.address[11] = 0xff;
      std::memcpy(found.address.data() + 12, &in.sin_addr, 4);
    } else if (entry->ifa_addr->sa_family == AF_INET6) {
      sockaddr_in6 in6{};
      std::memcpy(&in6, entry->ifa_addr, sizeof in6);
      std::memcpy(found.address.data(), &in6.sin6_addr, 16);
    } else {
      continue;
    }
    found.interface = entry->ifa_name;
    found.interface_index = ::if_nametoindex(entry->ifa_name);
    found.loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0;
    STRAIT_TRY(found.mtu_bytes, mtu_of(found.interface));
    out.push_back(std::move(found));
  }
  return out;
}

Result<Interface> interface_of(const IpBytes& address) {
  STRAIT_TRY(const std::string name, name_of(address));
  if (name.empty()) return fail(Code::invalid, "no network interface of this host has that address");
  Interface out{name, ::if_nametoindex(name.c_str()), 0};
  STRAIT_TRY(out.mtu_bytes, mtu_of(name));
  return out;
}

}  // namespace strait::sys
