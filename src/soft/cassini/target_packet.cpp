// SPDX-License-Identifier: Apache-2.0
// Software that matches by itself is given the packet: the fabric header (20 bytes), the request's own (43 bytes, or 29
// of a small message), then the payload. Big endian, as on the wire; what only the network looks at is zero.
#include <cstring>

#include "soft/cassini/target.hpp"

namespace strait::soft::cassini::target {

namespace {

constexpr std::uint32_t kFabricHeader = 20;
constexpr std::uint32_t kUnrestrictedHeader = 43;
constexpr std::uint32_t kSmallHeader = 29;
static_assert(kFabricHeader + kUnrestrictedHeader == kMaxPacketHeader);

void put_big(std::uint8_t* at, std::uint64_t value, std::uint32_t bytes) {
  for (std::uint32_t i = 0; i < bytes; ++i) at[i] = static_cast<std::uint8_t>(value >> (8 * (bytes - 1 - i)));
}

}  // namespace

std::uint32_t packet_header_bytes(const Request& request) {
  return kFabricHeader + (request.op == wire::DmaOp::small_message ? kSmallHeader : kUnrestrictedHeader);
}

void write_packet_header(const Card& card, const Request& request, std::uint8_t (&out)[kMaxPacketHeader]) {
  std::memset(out, 0, sizeof out);
  const bool small = request.op == wire::DmaOp::small_message;
  out[0] = 4 << 4 | kFabricHeader / 4;  // version 4, header of five words
  put_big(out + 2, packet_header_bytes(request) + request.length, 2);
  put_big(out + 4, request.vni, 2);
  put_big(out + 12, wire::unicast_dfa(request.source_nid, 0), 4);
  put_big(out + 16, wire::unicast_dfa(card.settings().nid, request.endpoint), 4);

  std::uint8_t* own = out + kFabricHeader;
  own[0] = static_cast<std::uint8_t>(0x80 | (small ? 1u : 0u) << 4 | static_cast<unsigned>(request.op));
  own[1] = static_cast<std::uint8_t>(request.index_ext & 31);
  if (small) {
    put_big(own + 2, request.header_data, 8);
    put_big(own + 14, request.length & 0xfff, 2);
    put_big(own + 16, request.initiator, 4);
    put_big(own + 20, request.match_bits, 8);
    return;
  }
  put_big(own + 2, request.remote_offset, 7);
  own[14] = static_cast<std::uint8_t>(request.rendezvous_id >> 4);
  own[15] = static_cast<std::uint8_t>((request.rendezvous_id & 15) << 4 | (request.use_offset_for_get ? 4 : 0));
  put_big(own + 16, request.length, 4);
  put_big(own + 20, request.initiator, 4);
  put_big(own + 24, request.match_bits, 8);
  put_big(own + 32, request.header_data, 8);
  put_big(own + 40, std::uint64_t{request.eager_length} << 4, 3);
}

}  // namespace strait::soft::cassini::target
