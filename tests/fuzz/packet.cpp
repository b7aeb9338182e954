// SPDX-License-Identifier: Apache-2.0
// Fuzz target: RoCEv2 packets from strangers. What is parsed lies within the packet, writing it again gives the same
// headers, and the iCRC never reads beyond its end, whatever its length.
//
// Input: a byte (bit 0: IPv6, bit 1: put the right iCRC in, bit 2: the identification is not known); the rest is the
// packet, BTH to iCRC.
#include <algorithm>
#include <cstring>
#include <memory>
#include <span>

#include "require.hpp"
#include "soft/roce/icrc.hpp"
#include "soft/roce/packet.hpp"

namespace {

namespace roce = strait::soft::roce;
namespace wire = strait::wire::roce;
using strait::fuzz::require;

const roce::Flow kV4{roce::IpAddress::v4(10, 0, 0, 1), roce::IpAddress::v4(10, 0, 0, 2), 0xc0de};
const roce::Flow kV6{
    {{0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}}, {{0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2}}, 4791};

// The header bytes as a sender must write them: reserved bits are 0.
void clear_reserved(std::byte* headers, const wire::Shape& shape) {
  headers[4] &= std::byte{0xc0};
  headers[8] &= std::byte{0x80};
  if (shape.has_xrceth) headers[12] = std::byte{0};
  if (shape.has_deth) headers[16] = std::byte{0};
  if (shape.kind == wire::Kind::cnp) std::memset(headers + 12, 0, wire::kCnpReservedBytes);
}

void check_parsed(std::span<const std::byte> bytes, const roce::Packet& packet) {
  const wire::Shape& shape = wire::shape_of(packet.opcode);
  require(shape.known, "only known opcodes are accepted");
  require(packet.payload.data() == bytes.data() + shape.header_bytes, "the payload begins after the headers");
  require(shape.header_bytes + packet.payload.size() + packet.pad + wire::kIcrcBytes == bytes.size(),
          "headers, payload, pad and iCRC are the packet");
  require(packet.payload.empty() || shape.may_carry_payload(), "payload only where the opcode has some");
  require(packet.dest_qpn == roce::peek_dest_qpn(bytes), "both ways to read the QPN agree");

  std::byte expected[wire::kMaxHeaderBytes];
  std::memcpy(expected, bytes.data(), shape.header_bytes);
  clear_reserved(expected, shape);
  std::byte written[wire::kMaxHeaderBytes];
  require(roce::write_headers(packet, written) == shape.header_bytes, "as many header bytes as were read");
  require(std::memcmp(written, expected, shape.header_bytes) == 0, "what was read is written again");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const roce::Flow& flow = (data[0] & 1) != 0 ? kV6 : kV4;
  const bool id_unknown = (data[0] & 4) != 0;
  const std::size_t count = size - 1;
  // Of exactly the packet's size: AddressSanitizer sees the first byte beyond it.
  const std::unique_ptr<std::byte[]> memory(new std::byte[count]);
  if (count != 0) std::memcpy(memory.get(), data + 1, count);
  const std::span<std::byte> bytes(memory.get(), count);

  roce::Packet packet;
  const roce::Drop drop = roce::parse(bytes, packet);
  if (drop == roce::Drop::none)
    check_parsed(bytes, packet);
  else
    require(std::strlen(roce::drop_text(drop)) > 0, "a drop has a reason");

  const bool right = roce::check(flow, bytes, id_unknown);
  require(count >= 16 || !right, "what is too short has no iCRC");
  if (count < 16) return 0;
  for (const auto path : {roce::CrcPath::table, roce::CrcPath::instruction, roce::CrcPath::wide}) {
    if (!roce::crc_path_works(path)) continue;
    require(roce::icrc(flow, 7, bytes.first(count - 4), path) == roce::icrc(flow, 7, bytes.first(count - 4)),
            "all ways to compute the iCRC agree");
  }
  if ((data[0] & 2) == 0) return 0;
  roce::seal(flow, bytes);
  require(roce::check(flow, bytes, false) && roce::check(flow, bytes, true), "a sealed packet is right");
  bytes[count - 1] ^= std::byte{1};
  require(!roce::check(flow, bytes, false), "and no longer when a bit is changed");
  return 0;
}
