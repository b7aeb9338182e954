// SPDX-License-Identifier: Apache-2.0
// Writes a capture with one packet of every opcode, over IPv4 and over IPv6, and prints per packet the fields that
// another dissector should find in it.
//
//   roce_capture FILE [--malformed]    --malformed: one packet is cut, so that a checker can show that it notices
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "soft/roce/capture.hpp"
#include "soft/roce/icrc.hpp"
#include "soft/roce/packet.hpp"

namespace {

namespace roce = strait::soft::roce;
namespace wire = strait::wire::roce;

// Fields whose every byte differs, so that a swapped or shifted one shows.
roce::Headers headers_of(wire::Opcode opcode, std::size_t payload_bytes) {
  roce::Headers h;
  h.opcode = opcode;
  h.solicited = wire::shape_of(opcode).ends_message() && wire::shape_of(opcode).kind == wire::Kind::send;
  h.ack_req = wire::shape_of(opcode).is_request() && wire::shape_of(opcode).ends_message();
  h.becn = opcode == wire::Opcode::cnp;
  h.pad = wire::pad_of(payload_bytes);
  h.dest_qpn = 0x010203;
  h.psn = opcode == wire::Opcode::cnp ? 0 : 0x040506;
  h.va = 0x1112131415161718;
  h.rkey = 0x21222324;
  h.dma_length = 0x31;
  h.syndrome = wire::kSyndromeAckNoCredits;
  h.msn = 0x414243;
  h.swap_or_add = 0x5152535455565758;
  h.compare = opcode == wire::Opcode::rc_fetch_add ? 0 : 0x6162636465666768;
  h.original = 0x7172737475767778;
  h.imm_raw = 0x81828384;
  h.inval_rkey = 0x91929394;
  h.qkey = 0x80010203;
  h.src_qpn = 0xa1a2a3;
  return h;
}

std::vector<std::byte> packet_of(const roce::Flow& flow, wire::Opcode opcode) {
  const std::size_t payload = wire::shape_of(opcode).may_carry_payload() ? 49 : 0;
  const roce::Headers h = headers_of(opcode, payload);
  std::vector<std::byte> packet(wire::kMaxHeaderBytes);
  packet.resize(roce::write_headers(h, packet.data()));
  for (std::size_t i = 0; i < payload; ++i) packet.push_back(static_cast<std::byte>(i * 5 + 1));
  packet.resize(packet.size() + h.pad + wire::kIcrcBytes);
  roce::seal(flow, packet);
  return packet;
}

std::string hex_of_immediate(std::uint32_t raw) {
  unsigned char bytes[4];
  std::memcpy(bytes, &raw, 4);
  return fmt::format("{:02x}{:02x}{:02x}{:02x}", bytes[0], bytes[1], bytes[2], bytes[3]);
}

// As `tshark -T fields` prints them, in the order that tshark_roce.sh asks for.
void print_expected(const roce::Headers& h) {
  const wire::Shape& shape = wire::shape_of(h.opcode);
  std::string line = fmt::format("{}|0x{:06x}|{}|{}|{:d}|{:d}|{:d}", static_cast<int>(h.opcode), h.dest_qpn, h.psn,
                                 h.pad, h.ack_req, h.solicited, h.mig_req);
  const bool address = shape.has_reth || shape.has_atomic;
  line += address ? fmt::format("|0x{:016x}|0x{:08x}", h.va, h.rkey) : "||";
  line += shape.has_reth ? fmt::format("|{}", h.dma_length) : "|";
  line += shape.has_aeth ? fmt::format("|{}|{}", h.syndrome, h.msn) : "||";
  line += shape.has_atomic ? fmt::format("|{}|{}", h.swap_or_add, h.compare) : "||";
  line += shape.has_atomic_ack ? fmt::format("|{}", h.original) : "|";
  line += shape.has_imm ? "|" + hex_of_immediate(h.imm_raw) : "|";
  line += shape.has_ieth ? fmt::format("|{:08x}", h.inval_rkey) : "|";
  line += shape.has_deth ? fmt::format("|0x{:016x}|0x{:08x}", h.qkey, h.src_qpn) : "||";
  std::puts(line.c_str());
}

int run(const char* path, bool malformed) {
  auto capture = roce::Capture::open(path);
  if (!capture) {
    std::fprintf(stderr, "%s\n", capture.error().explain().c_str());
    return 1;
  }
  std::int64_t ns = 1'700'000'000'000'000'000;
  for (const char* net : {"10.1.2.", "fd00::"}) {
    const roce::Flow flow{roce::IpAddress::parse(net + std::string("1")).value(),
                          roce::IpAddress::parse(net + std::string("2")).value(), 0xc0de};
    for (unsigned code = 0; code < 256; ++code) {
      const auto opcode = static_cast<wire::Opcode>(code);
      const wire::Shape& shape = wire::shape_of(opcode);
      if (!shape.known || shape.transport == wire::Transport::xrc) continue;  // tshark knows no headers of XRC
      std::vector<std::byte> packet = packet_of(flow, opcode);
      if (malformed && opcode == wire::Opcode::rc_write_only) packet.resize(20);
      const auto status = capture->write(flow, ns += 1000, packet, wire::opcode_name(opcode), shape.is_request());
      if (!status) return 1;
      print_expected(headers_of(opcode, shape.may_carry_payload() ? 49 : 0));
    }
  }
  return capture->flush() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: roce_capture FILE [--malformed]\n");
    return 2;
  }
  return run(argv[1], argc > 2 && std::strcmp(argv[2], "--malformed") == 0);
}
