// SPDX-License-Identifier: Apache-2.0
// Unreliable datagrams: one packet is one message, each work request says where it goes, nobody answers.
//
// A receive begins with 40 bytes of header: an IPv6 header as it is, or 20 zero bytes and the IPv4 header. A socket
// does not hand the header out, so it is written down from what is known of the packet.
#include <array>
#include <cstring>

#include "soft/nic/engine.hpp"
#include "soft/nic/packets.hpp"

namespace strait::soft::nic {
namespace m = wire::mlx5;
namespace r = wire::roce;

namespace {

constexpr std::uint32_t kHeaderBytes = 40;
constexpr std::uint32_t kOwnQkey = 0x80000000;  // the sender's own key is meant

using HeaderArea = std::array<std::byte, kHeaderBytes>;

void put16(HeaderArea& area, std::size_t at, std::uint32_t value) {
  area[at] = static_cast<std::byte>(value >> 8);
  area[at + 1] = static_cast<std::byte>(value);
}

HeaderArea header_area(const roce::Arrival& arrival) {
  HeaderArea area{};
  const auto udp_bytes = static_cast<std::uint32_t>(8 + arrival.bytes.size());
  if (!arrival.flow.source.is_v4()) {
    area[0] = std::byte{0x60};
    put16(area, 4, udp_bytes);
    area[6] = std::byte{17};
    area[7] = std::byte{64};
    std::memcpy(area.data() + 8, arrival.flow.source.gid.data(), 16);
    std::memcpy(area.data() + 24, arrival.flow.destination.gid.data(), 16);
    return area;
  }
  area[20] = std::byte{0x45};
  put16(area, 22, 20 + udp_bytes);
  put16(area, 24, arrival.ip_id);
  put16(area, 26, 0x4000);
  area[28] = std::byte{64};
  area[29] = std::byte{17};
  std::memcpy(area.data() + 32, arrival.flow.source.gid.data() + 12, 4);
  std::memcpy(area.data() + 36, arrival.flow.destination.gid.data() + 12, 4);
  std::uint32_t sum = 0;
  for (std::size_t i = 20; i < 40; i += 2)
    sum += std::to_integer<std::uint32_t>(area[i]) << 8 | std::to_integer<std::uint32_t>(area[i + 1]);
  sum = (sum >> 16) + (sum & 0xffff);
  sum += sum >> 16;
  put16(area, 30, ~sum & 0xffff);
  return area;
}

}  // namespace

bool Packets::send_datagram(QueuePair& qp, const SendWork& work, std::uint32_t psn) {
  PacketState& s = *qp.packets;
  const std::uint32_t n = work.total_bytes;
  roce::IpAddress to;
  std::memcpy(to.gid.data(), work.datagram.rgid, to.gid.size());
  const std::uint8_t from = work.datagram.sgid_index();
  if (from >= ports_.size() || to.is_v4() != port(from).address().is_v4()) {
    fail_at(qp, psn, m::Syndrome::local_qp_operation, kVendorMalformed);
    return true;
  }
  if (r::kMaxHeaderBytes + n + r::pad_of(n) + r::kIcrcBytes > port(from).mtu_bytes()) {
    fail_at(qp, psn, m::Syndrome::local_length, 0);
    return true;
  }
  std::byte* const out = open_packet(from, to, s.source_port, n);
  if (out == nullptr) return false;
  about_wqe_ = work.index;
  roce::Headers headers = reply_headers(
      qp, work.opcode == m::Opcode::send_imm ? r::Opcode::ud_send_only_imm : r::Opcode::ud_send_only, psn);
  headers.dest_qpn = work.datagram.qpn();
  const std::uint32_t qkey = work.datagram.qkey.value();
  headers.qkey = (qkey & kOwnQkey) != 0 ? s.path.qkey : qkey;
  headers.src_qpn = qp.qpn;
  headers.imm_raw = work.imm_raw;
  headers.solicited = work.solicited;
  headers.pad = r::pad_of(n);
  std::size_t bytes = roce::write_headers(headers, out);
  if (!engine_.gather(qp, work, 0, out + bytes, n)) {
    fail_at(qp, psn, engine_.unreadable(work), 0);
    return true;
  }
  bytes += n;
  std::memset(out + bytes, 0, headers.pad);
  close_packet(qp, out, bytes + headers.pad + r::kIcrcBytes);
  return true;
}

void Packets::on_datagram(QueuePair& qp, const roce::Packet& packet) {
  PacketState& s = *qp.packets;
  if (packet.qkey != s.path.qkey) return drop(roce::Drop::bad_qkey);
  if (qp.receives_waiting() == 0) return drop(roce::Drop::no_receiver);
  const DecodeFault fault = engine_.take_receive(qp);
  const ReceiveWork& receive = *qp.arriving_into;
  const auto n = static_cast<std::uint32_t>(packet.payload.size());
  if (fault) return engine_.fail_receive(qp, fault.syndrome);
  if (receive.total_bytes < kHeaderBytes + n) return engine_.fail_receive(qp, m::Syndrome::local_length);
  const HeaderArea area = header_area(*arrival_);
  if (!engine_.scatter(qp, receive, 0, area.data(), kHeaderBytes, false) ||
      !engine_.scatter(qp, receive, kHeaderBytes, packet.payload.data(), n, false))
    return engine_.fail_receive(qp, m::Syndrome::local_protection);
  engine_.counts_.bytes_landed += n;
  Completion completion;
  completion.opcode =
      packet.opcode == r::Opcode::ud_send_only_imm ? m::CqeOpcode::responder_send_imm : m::CqeOpcode::responder_send;
  completion.byte_count = kHeaderBytes + n;
  completion.imm_raw = packet.imm_raw;
  completion.source_qpn = packet.src_qpn;
  completion.header = arrival_->flow.source.is_v4() ? DatagramHeader::ipv4 : DatagramHeader::ipv6;
  completion.solicited = packet.solicited;
  engine_.write_receive_completion(qp, completion);
}

}  // namespace strait::soft::nic
