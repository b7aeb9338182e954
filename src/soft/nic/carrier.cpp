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

// The largest path MTU whose packets fit.
std::uint32_t largest_pmtu(std::uint32_t packet_bytes) {
  std::uint32_t largest = 0;
  for (std::uint8_t code = 1; code <= 5; ++code) {
    if (r::pmtu_bytes(code) + r::kMaxHeaderBytes + r::kIcrcBytes <= packet_bytes) largest = r::pmtu_bytes(code);
  }
  return largest;
}

}  // namespace

Status Engine::open_port() {
  std::vector<roce::IpAddress> addresses(1);
  if (config_.packet_address == "loopback") {
    // Everything in 127/8 is this host. One address each, so that no packet goes to the wrong process first.
    const auto part = [&](std::size_t i) { return static_cast<std::uint8_t>(1 + id_[i] % 254); };
    addresses[0] = roce::IpAddress::v4(127, part(0), part(1), part(2));
  } else {
    STRAIT_TRY(addresses[0], roce::IpAddress::parse(config_.packet_address));
  }
  for (const std::string& text : config_.more_addresses) {
    STRAIT_TRY(const roce::IpAddress address, roce::IpAddress::parse(text));
    addresses.push_back(address);
  }
  // A queue pair has one number on all addresses, so one range must be free on all of them.
  std::uint8_t range = 0;
  for (unsigned tries = 0; tries < 256; ++tries) {
    std::vector<std::unique_ptr<roce::UdpPort>> ports;
    for (const roce::IpAddress& address : addresses) {
      roce::UdpPortSettings settings;
      settings.address = address;
      settings.qpn_range = range;
      if (config_.packet_address != "loopback") settings.shared = addresses;
      auto port = roce::UdpPort::open(settings);
      const bool taken = !port && port.error().code == Code::again;
      if (taken && tries != 255) break;
      if (!port) return std::move(port).error();
      range = (*port)->qpn_range();
      ports.push_back(std::move(*port));
    }
    if (ports.size() == addresses.size()) {
      for (const auto& port : ports) counts_.ports_private += port->is_public() ? 0u : 1u;
      for (auto& port : ports) STRAIT_CHECK(attach_port(std::move(port), range));
      return config_.carrier == Carrier::packets ? Status{} : open_doors();
    }
    range = static_cast<std::uint8_t>(range % 255 + 1);
  }
  return fail(Code::limit, "no range of queue pairs is free on all addresses");
}

Status Engine::attach_port(std::unique_ptr<roce::Port> port, std::uint8_t qpn_range) {
  const std::scoped_lock lock(mutex_);
  const std::uint32_t room = port->mtu_bytes();
  const std::uint32_t largest = largest_pmtu(room);
  if (largest == 0) return fail(Code::unsupported, "a port whose packets have {} bytes is too small", room);
  if (config_.packet_bytes != 0 && r::pmtu_code(config_.packet_bytes) == 0) {
    return fail(Code::invalid, "a path MTU of {} bytes: it is 256, 512, 1024, 2048 or 4096", config_.packet_bytes);
  }
  if (port->fd() >= 0) STRAIT_CHECK(poller_.add(port->fd()));
  if (packets_) {
    if (!mtu_given_) config_.packet_bytes = std::max(config_.packet_bytes, largest);
    packets_->add_port(std::move(port));
    return {};
  }
  if (config_.packet_bytes > largest) {
    return fail(Code::invalid, "a path MTU of {} bytes does not fit the interface; {} does", config_.packet_bytes,
                largest);
  }
  mtu_given_ = config_.packet_bytes != 0;
  if (!mtu_given_) config_.packet_bytes = largest;
  packets_ = std::make_unique<Packets>(*this, std::move(port));
  if (!config_.capture.empty()) STRAIT_CHECK(packets_->capture_to(config_.capture));
  qpn_range_ = qpn_range;
  return {};
}

std::vector<Gid> Engine::gids() const {
  std::vector<Gid> out;
  for (std::size_t i = 0; packets_ && i < packets_->port_count(); ++i) out.push_back(packets_->port(i).address().gid);
  return out;
}

std::uint32_t Engine::path_mtu(std::uint8_t sgid_index) const {
  if (!packets_ || sgid_index >= packets_->port_count()) return 0;
  return std::min(largest_pmtu(packets_->port(sgid_index).mtu_bytes()), config_.packet_bytes);
}

strait_nic_address Engine::address() const {
  Address mine{};
  mine.magic = kAddressMagic;
  mine.version = kAddressVersion;
  mine.engine = id_;
  mine.host = this_host();
  if (packets_) {
    mine.gid = packets_->port(0).address().gid;
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
