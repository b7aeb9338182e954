// SPDX-License-Identifier: Apache-2.0
// Which way a queue pair's bytes go: over the ring grant between processes of one host, or as packets.
#include <algorithm>
#include <cstring>

#include "soft/nic/engine.hpp"
#include "soft/roce/udp_port.hpp"
#include "sys/interfaces.hpp"

namespace strait::soft::nic {
namespace r = wire::roce;

namespace {

constexpr std::uint32_t kReadsOut = 16;

// Both ends must come to the same number: where the packets of this direction begin. Old packets of another connection
// are then far away from it.
std::uint32_t first_psn(const EngineId& from, std::uint32_t from_qpn, const EngineId& to, std::uint32_t to_qpn) {
  std::uint64_t hash = 1469598103934665603ull;
  const auto mix = [&](std::uint8_t byte) { hash = (hash ^ byte) * 1099511628211ull; };
  for (const std::uint8_t byte : from) mix(byte);
  for (const std::uint8_t byte : to) mix(byte);
  for (const std::uint32_t qpn : {from_qpn, to_qpn}) {
    for (unsigned shift = 0; shift < 24; shift += 8) mix(static_cast<std::uint8_t>(qpn >> shift));
  }
  return static_cast<std::uint32_t>(hash >> 20) & r::kPsnMask;
}

}  // namespace

Status Engine::open_port() {
  roce::UdpPortSettings settings;
  if (config_.packet_address == "loopback") {
    // Everything in 127/8 is this host. One address each, so that no packet goes to the wrong process first.
    const auto part = [&](std::size_t i) { return static_cast<std::uint8_t>(1 + id_[i] % 254); };
    settings.address = roce::IpAddress::v4(127, part(0), part(1), part(2));
  } else {
    STRAIT_TRY(settings.address, roce::IpAddress::parse(config_.packet_address));
  }
  STRAIT_TRY(auto port, roce::UdpPort::open(settings));
  const std::uint8_t range = port->qpn_range();
  return attach_port(std::move(port), range);
}

Status Engine::attach_port(std::unique_ptr<roce::Port> port, std::uint8_t qpn_range) {
  const std::scoped_lock lock(mutex_);
  const std::uint32_t room = port->mtu_bytes();
  std::uint32_t largest = 0;
  for (std::uint8_t code = 1; code <= 5; ++code) {
    if (r::pmtu_bytes(code) + r::kMaxHeaderBytes + r::kIcrcBytes <= room) largest = r::pmtu_bytes(code);
  }
  if (largest == 0) return fail(Code::unsupported, "a port whose packets have {} bytes is too small", room);
  if (config_.packet_bytes != 0 && r::pmtu_code(config_.packet_bytes) == 0) {
    return fail(Code::invalid, "a path MTU of {} bytes: it is 256, 512, 1024, 2048 or 4096", config_.packet_bytes);
  }
  if (config_.packet_bytes > largest) {
    return fail(Code::invalid, "a path MTU of {} bytes does not fit the interface; {} does", config_.packet_bytes,
                largest);
  }
  if (config_.packet_bytes == 0) config_.packet_bytes = largest;
  if (port->fd() >= 0) STRAIT_CHECK(poller_.add(port->fd()));
  packets_ = std::make_unique<Packets>(*this, std::move(port));
  if (!config_.capture.empty()) STRAIT_CHECK(packets_->capture_to(config_.capture));
  qpn_range_ = qpn_range;
  return {};
}

strait_nic_address Engine::address() const {
  Address mine{};
  mine.magic = kAddressMagic;
  mine.version = kAddressVersion;
  mine.engine = id_;
  mine.host = this_host();
  if (packets_) {
    mine.gid = packets_->port().address().gid;
    mine.packet_bytes = static_cast<std::uint16_t>(config_.packet_bytes);
    mine.wants_packets = config_.carrier == Carrier::packets ? 1 : 0;
  }
  strait_nic_address out{};
  std::memcpy(out.bytes, &mine, sizeof mine);
  return out;
}

PacketPath Engine::path_to(const QueuePair& qp, const Address& to, const strait_nic_connect_request& request) const {
  PacketPath path;
  path.to.gid = to.gid;
  path.remote_qpn = request.remote_qpn;
  path.send_psn = first_psn(id_, qp.qpn, to.engine, request.remote_qpn);
  path.receive_psn = first_psn(to.engine, request.remote_qpn, id_, qp.qpn);
  path.pmtu_bytes = std::min<std::uint32_t>(config_.packet_bytes, to.packet_bytes);
  path.ack_timeout_ns = request.ack_timeout_ns;
  path.retries = request.retries;
  path.rnr_retries = request.rnr_retries;
  path.rnr_timer = r::rnr_timer_code(static_cast<std::uint64_t>(std::max<std::int64_t>(request.rnr_wait_ns, 0)));
  path.max_reads_out = path.max_reads_in = kReadsOut;
  return path;
}

Status Engine::connect_over_packets(QueuePair& qp, const Address& to, const strait_nic_connect_request& request,
                                    std::string reason) {
  if (config_.carrier == Carrier::grant)
    return fail(Code::unsupported, "{}, and option carrier=grant allows no packets", reason);
  if (!packets_) {
    return with_remedy(fail(Code::unsupported, "{}, and this NIC has no port for packets", reason),
                       "open the Node with carrier=roce, or let it listen on an address that others can reach");
  }
  if (to.packet_bytes == 0) {
    return with_remedy(fail(Code::unsupported, "{}, and the peer's NIC has no port for packets", reason),
                       "open the peer's Node with carrier=roce, or let it listen on an address that others can reach");
  }
  STRAIT_CHECK(packets_->connect(qp, path_to(qp, to, request)));
  qp.packets->reason = std::move(reason);
  qp.state = QpState::ready;
  return {};
}

}  // namespace strait::soft::nic
