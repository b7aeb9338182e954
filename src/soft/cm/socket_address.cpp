// SPDX-License-Identifier: Apache-2.0
#include "soft/cm/socket_address.hpp"

#include <algorithm>
#include <cstring>

#include "strait/wire/endian.hpp"

namespace strait::soft::cm {
namespace {

using wire::packed_be16;
using wire::packed_be64;

struct Ip4 {
  std::uint16_t family;
  packed_be16 port;
  std::uint8_t address[4];
  std::uint8_t zero[8];
};
static_assert(sizeof(Ip4) == 16);
struct Ip6 {
  std::uint16_t family;
  packed_be16 port;
  std::uint32_t flow_info;
  std::uint8_t address[16];
  std::uint32_t scope;
};
static_assert(sizeof(Ip6) == 28);
struct Ib {
  std::uint16_t family;
  packed_be16 pkey;
  std::uint32_t flow_info;
  std::uint8_t address[16];
  packed_be64 service_id;
  packed_be64 service_mask;
  std::uint64_t scope;
};
static_assert(sizeof(Ib) == kLargestSocketAddress);

template <class Shape>
Shape read(std::span<const std::byte> bytes) {
  Shape out;
  std::memcpy(&out, bytes.data(), sizeof out);
  return out;
}

}  // namespace

bool SocketAddress::is_loopback() const {
  if (address.is_v4()) return address.gid[12] == 127;
  IpAddress one;
  one.gid[15] = 1;
  return address == one;
}

std::size_t size_of_family(std::uint16_t family) {
  switch (family) {
    case kFamilyIp4: return sizeof(Ip4);
    case kFamilyIp6: return sizeof(Ip6);
    case kFamilyIb: return sizeof(Ib);
    default: return 0;
  }
}

std::optional<SocketAddress> parse_socket_address(std::span<const std::byte> bytes) {
  SocketAddress out;
  if (bytes.size() < sizeof out.family) return std::nullopt;
  std::memcpy(&out.family, bytes.data(), sizeof out.family);
  const std::size_t size = size_of_family(out.family);
  if (size == 0 || bytes.size() < size) return std::nullopt;
  if (out.family == kFamilyIp4) {
    const auto in = read<Ip4>(bytes);
    out.address = IpAddress::v4(in.address[0], in.address[1], in.address[2], in.address[3]);
    out.port = in.port.value();
  } else if (out.family == kFamilyIp6) {
    const auto in = read<Ip6>(bytes);
    std::copy(std::begin(in.address), std::end(in.address), out.address.gid.begin());
    out.port = in.port.value();
    out.flow_info = in.flow_info;
    out.scope = in.scope;
  } else {
    const auto in = read<Ib>(bytes);
    std::copy(std::begin(in.address), std::end(in.address), out.address.gid.begin());
    out.pkey = in.pkey.value();
    out.flow_info = in.flow_info;
    out.service_id = in.service_id.value();
    out.service_mask = in.service_mask.value();
    out.scope = in.scope;
    out.port = static_cast<std::uint16_t>(out.service_id & out.service_mask);
  }
  return out;
}

std::size_t write_socket_address(const SocketAddress& address, std::span<std::byte> out) {
  const std::size_t size = size_of_family(address.family);
  if (address.family == kFamilyIp4) {
    Ip4 w{};
    w.family = address.family;
    w.port = packed_be16{address.port};
    std::copy(address.address.gid.begin() + 12, address.address.gid.end(), w.address);
    std::memcpy(out.data(), &w, sizeof w);
  } else if (address.family == kFamilyIp6) {
    Ip6 w{};
    w.family = address.family;
    w.port = packed_be16{address.port};
    w.flow_info = address.flow_info;
    std::copy(address.address.gid.begin(), address.address.gid.end(), w.address);
    w.scope = static_cast<std::uint32_t>(address.scope);
    std::memcpy(out.data(), &w, sizeof w);
  } else if (address.family == kFamilyIb) {
    Ib w{};
    w.family = address.family;
    w.pkey = packed_be16{address.pkey};
    w.flow_info = address.flow_info;
    std::copy(address.address.gid.begin(), address.address.gid.end(), w.address);
    w.service_id = packed_be64{address.service_id};
    w.service_mask = packed_be64{address.service_mask};
    w.scope = address.scope;
    std::memcpy(out.data(), &w, sizeof w);
  }
  return size;
}

}  // namespace strait::soft::cm
