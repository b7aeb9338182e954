// SPDX-License-Identifier: Apache-2.0
// iCRC: one block of 64 bytes that stands for LRH, IP, UDP and BTH, then the rest of the packet as it lies.
#include "soft/roce/icrc.hpp"

#include <array>
#include <cstring>

#include "soft/roce/crc32_math.hpp"
#include "soft/roce/ip_udp.hpp"
#include "strait/wire/roce.hpp"

namespace strait::soft::roce {
namespace {

constexpr std::size_t kBthBytes = sizeof(wire::roce::Bth);

void put16(std::uint8_t* at, std::size_t value) {
  at[0] = static_cast<std::uint8_t>(value >> 8);
  at[1] = static_cast<std::uint8_t>(value);
}

// The CRC begins with all ones and is fed eight 0xff first. Beginning with 0 and four zero bytes less is the same: the
// first four 0xff cancel the initial ones. So the block is zeros, ff ff ff ff, IP, UDP, BTH, and ends at byte 64.
std::uint8_t* begin_block(std::uint8_t* block, std::size_t ip_bytes) {
  std::uint8_t* const ip = block + kCrcHeadBytes - kBthBytes - kUdpBytes - ip_bytes;
  std::memset(block, 0, kCrcHeadBytes);
  std::memset(ip - 4, 0xff, 4);
  return ip;
}
static_assert(4 + kV6Bytes + kUdpBytes + kBthBytes == kCrcHeadBytes);

void fill_block(const Flow& flow, std::uint16_t ip_id, std::span<const std::byte> bth_to_pad, std::uint8_t* block) {
  const std::size_t udp_bytes = kUdpBytes + bth_to_pad.size() + wire::roce::kIcrcBytes;
  if (flow.destination.is_v4()) {
    std::uint8_t* const ip = begin_block(block, kV4Bytes);
    ip[0] = 0x45;
    ip[1] = 0xff;  // type of service
    put16(ip + 2, kV4Bytes + udp_bytes);
    put16(ip + 4, ip_id);
    ip[6] = 0x40;  // do not fragment
    ip[8] = 0xff;  // time to live
    ip[9] = 17;
    ip[10] = ip[11] = 0xff;  // checksum
    std::memcpy(ip + 12, flow.source.gid.data() + 12, 4);
    std::memcpy(ip + 16, flow.destination.gid.data() + 12, 4);
  } else {
    std::uint8_t* const ip = begin_block(block, kV6Bytes);
    ip[0] = 0x6f;  // traffic class and flow label
    ip[1] = ip[2] = ip[3] = 0xff;
    put16(ip + 4, udp_bytes);
    ip[6] = 17;
    ip[7] = 0xff;  // hop limit
    std::memcpy(ip + 8, flow.source.gid.data(), 16);
    std::memcpy(ip + 24, flow.destination.gid.data(), 16);
  }
  std::uint8_t* const udp = block + kCrcHeadBytes - kBthBytes - kUdpBytes;
  put16(udp, flow.source_port);
  put16(udp + 2, wire::roce::kUdpPort);
  put16(udp + 4, udp_bytes);
  udp[6] = udp[7] = 0xff;  // checksum
  std::memcpy(udp + kUdpBytes, bth_to_pad.data(), kBthBytes);
  udp[kUdpBytes + 4] = 0xff;  // congestion bits
}

std::uint32_t stored_icrc(std::span<const std::byte> bth_to_icrc) {
  const std::byte* const at = bth_to_icrc.data() + bth_to_icrc.size() - 4;
  return std::to_integer<std::uint32_t>(at[0]) | std::to_integer<std::uint32_t>(at[1]) << 8 |
         std::to_integer<std::uint32_t>(at[2]) << 16 | std::to_integer<std::uint32_t>(at[3]) << 24;
}

// x^-8n for the lengths n seen lately. An exponentiation costs some microseconds, and a flow has few lengths.
std::uint32_t back_by_bytes(std::uint32_t n) {
  struct Entry {
    std::uint32_t n = 0;
    std::uint32_t power = crc_math::kOne;
  };
  thread_local std::array<Entry, 64> cache;
  Entry& entry = cache[n / 4 % cache.size()];
  if (entry.n != n) entry = {n, crc_math::power_of_x(crc_math::kOrder - std::uint64_t{8} * n)};
  return entry.power;
}

// Could an identification other than 0 explain `residue`, the difference between the iCRC for 0 and the one received?
//
// The CRC is linear: a message that differs by d in two bytes which stand (with themselves) n bytes before the end has
// a CRC that differs by d * x^8n mod P, with d in the first bits of a 32-bit word. Undone by a multiplication with
// x^-8n, which is possible since x has an inverse, the difference must lie within those two bytes.
bool id_explains(std::uint32_t residue, std::size_t bth_to_pad_bytes) {
  const std::size_t from_id_to_end = kV4Bytes - 4 + kUdpBytes + bth_to_pad_bytes;
  const std::uint32_t d = crc_math::times(residue, back_by_bytes(static_cast<std::uint32_t>(from_id_to_end)));
  return (d & 0xffff0000) == 0;
}

}  // namespace

std::uint32_t icrc(const Flow& flow, std::uint16_t ip_id, std::span<const std::byte> bth_to_pad, CrcPath path) {
  alignas(64) std::uint8_t block[kCrcHeadBytes];
  fill_block(flow, ip_id, bth_to_pad, block);
  return ~crc32_head_and_body(reinterpret_cast<const std::byte*>(block), bth_to_pad.subspan(kBthBytes), path);
}

std::uint32_t icrc(const Flow& flow, std::uint16_t ip_id, std::span<const std::byte> bth_to_pad) {
  return icrc(flow, ip_id, bth_to_pad, best_crc_path());
}

void seal(const Flow& flow, std::span<std::byte> bth_to_icrc) {
  const std::uint32_t value = icrc(flow, 0, bth_to_icrc.first(bth_to_icrc.size() - wire::roce::kIcrcBytes));
  std::byte* const at = bth_to_icrc.data() + bth_to_icrc.size() - wire::roce::kIcrcBytes;
  for (unsigned i = 0; i < 4; ++i) at[i] = static_cast<std::byte>(value >> 8 * i);
}

bool check(const Flow& flow, std::span<const std::byte> bth_to_icrc, bool id_unknown) {
  if (bth_to_icrc.size() < kBthBytes + wire::roce::kIcrcBytes) return false;
  const auto body = bth_to_icrc.first(bth_to_icrc.size() - wire::roce::kIcrcBytes);
  const std::uint32_t residue = icrc(flow, 0, body) ^ stored_icrc(bth_to_icrc);
  if (residue == 0) return true;
  return id_unknown && flow.destination.is_v4() && id_explains(residue, body.size());
}

bool check_with_id(const Flow& flow, std::uint16_t ip_id, std::span<const std::byte> bth_to_icrc) {
  if (bth_to_icrc.size() < kBthBytes + wire::roce::kIcrcBytes) return false;
  return icrc(flow, ip_id, bth_to_icrc.first(bth_to_icrc.size() - wire::roce::kIcrcBytes)) == stored_icrc(bth_to_icrc);
}

}  // namespace strait::soft::roce
