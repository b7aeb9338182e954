// SPDX-License-Identifier: Apache-2.0
// What the tests of the ports share: packets that say who they are, and a sink that remembers them.
#pragma once

#include <cstring>
#include <vector>

#include "soft/roce/icrc.hpp"
#include "soft/roce/packet.hpp"
#include "soft/roce/port.hpp"

namespace strait::soft::roce::testing {

inline constexpr std::uint16_t kSourcePort = 0xc0de;

inline std::byte payload_byte(std::uint32_t psn, std::size_t i) {
  return static_cast<std::byte>(psn * 31 + i * 7 + i / 256);
}

// False when the port's queue is full.
inline bool send_one(Port& port, const IpAddress& to, std::uint32_t qpn, std::uint32_t psn, std::size_t payload_bytes) {
  Headers h;
  h.opcode = wire::roce::Opcode::rc_send_only;
  h.dest_qpn = qpn;
  h.psn = psn;
  h.pad = wire::roce::pad_of(payload_bytes);
  const std::size_t bytes = 12 + payload_bytes + h.pad + 4;
  std::byte* const at = port.begin(to, kSourcePort, bytes);
  if (at == nullptr) return false;
  std::size_t n = write_headers(h, at);
  for (std::size_t i = 0; i < payload_bytes; ++i) at[n + i] = payload_byte(psn, i);
  n += payload_bytes;
  std::memset(at + n, 0, h.pad);
  port.commit(bytes);
  return true;
}

class Collector final : public Sink {
 public:
  struct Got {
    Flow flow;
    bool ecn_ce;
    bool id_unknown;
    bool icrc_right;
    bool payload_right;
    std::uint32_t qpn;
    std::uint32_t psn;
    std::size_t payload_bytes;
  };
  void on_packet(const Arrival& arrival) override {
    Packet packet;
    if (parse(arrival.bytes, packet) != Drop::none) {
      ++bad;
      return;
    }
    bool right = true;
    for (std::size_t i = 0; i < packet.payload.size(); ++i) right &= packet.payload[i] == payload_byte(packet.psn, i);
    packets.push_back({arrival.flow, arrival.ecn_ce, arrival.id_unknown,
                       check(arrival.flow, arrival.bytes, arrival.id_unknown), right, packet.dest_qpn, packet.psn,
                       packet.payload.size()});
  }
  std::vector<Got> packets;
  int bad = 0;
};

}  // namespace strait::soft::roce::testing
