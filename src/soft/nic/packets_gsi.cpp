// SPDX-License-Identifier: Apache-2.0
// Queue pair 1: management datagrams. It has no rings: whoever speaks for the NIC calls send_gsi() and hears of what
// comes. Its number is the same in all processes on an address, so the port hands what comes for it to all of them.
#include <cstring>

#include "soft/nic/engine.hpp"
#include "soft/nic/packets.hpp"
#include "soft/roce/icrc.hpp"

namespace strait::soft::nic {
namespace r = wire::roce;

namespace {
constexpr std::uint16_t kSourcePort = 0xc001;
constexpr std::size_t kMadBytes = 256;  // of a MAD
}  // namespace

void Engine::set_gsi_sink(GsiSink* sink) {
  const std::scoped_lock lock(mutex_);
  if (packets_ && (sink == nullptr) != (gsi_sink_ == nullptr)) packets_->expect_gsi(sink != nullptr);
  gsi_sink_ = sink;
}

Status Engine::send_gsi(std::uint8_t sgid_index, const Gid& to, std::span<const std::byte> payload,
                        std::uint32_t to_qpn) {
  const std::scoped_lock lock(mutex_);
  if (!packets_) return fail(Code::unsupported, "this NIC has no port for packets");
  return packets_->send_gsi(sgid_index, {to}, to_qpn, payload);
}

std::size_t Packets::port_of(const roce::IpAddress& address) const {
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    if (port(i).address() == address) return i;
  }
  return ports_.size();
}

void Packets::on_gsi(const roce::Arrival& arrival, const roce::Packet& packet) {
  using roce::Drop;
  if (engine_.gsi_sink_ == nullptr) return drop(Drop::unknown_qpn);
  if (r::shape_of(packet.opcode).transport != r::Transport::ud) return drop(Drop::wrong_transport);
  const std::size_t at = port_of(arrival.flow.destination);
  if (at == ports_.size()) return drop(Drop::wrong_address);
  const bool whole = arrival.id_unknown ? roce::check(arrival.flow, arrival.bytes, true)
                                        : roce::check_with_id(arrival.flow, arrival.ip_id, arrival.bytes);
  if (!whole) return drop(Drop::bad_icrc);
  if (packet.qkey != kGsiQkey) return drop(Drop::bad_qkey);
  GsiMessage message;
  message.source = arrival.flow.source.gid;
  message.destination = arrival.flow.destination.gid;
  message.sgid_index = static_cast<std::uint8_t>(at);
  message.source_qpn = packet.src_qpn;
  message.payload = packet.payload;
  engine_.gsi_sink_->on_gsi(message);
}

Status Packets::send_gsi(std::uint8_t from, const roce::IpAddress& to, std::uint32_t to_qpn,
                         std::span<const std::byte> payload) {
  if (from >= ports_.size())
    return fail(Code::invalid, "source GID {}: this NIC has {} addresses", int{from}, ports_.size());
  if (payload.size() > kMadBytes)
    return fail(Code::invalid, "a management datagram of {} bytes: it has at most {}", payload.size(), kMadBytes);
  if (to.is_v4() != port(from).address().is_v4())
    return fail(Code::invalid, "{} cannot be reached from {}", to.text(), port(from).address().text());
  std::byte* const out = open_packet(from, to, kSourcePort, payload.size());
  if (out == nullptr) return fail(Code::again, "the port is full");
  roce::Headers headers;
  headers.opcode = r::Opcode::ud_send_only;
  headers.dest_qpn = to_qpn;
  headers.psn = gsi_psn_ = r::psn_add(gsi_psn_, 1);
  headers.qkey = kGsiQkey;
  headers.src_qpn = kGsiQpn;
  headers.pad = r::pad_of(payload.size());
  std::size_t bytes = roce::write_headers(headers, out);
  std::memcpy(out + bytes, payload.data(), payload.size());
  std::memset(out + bytes + payload.size(), 0, headers.pad);
  bytes += payload.size() + headers.pad + r::kIcrcBytes;
  leave({kGsiQpn, gsi_rolls_++, kSourcePort, kGsiQpn}, out, bytes);
  flush();
  return {};
}

}  // namespace strait::soft::nic
