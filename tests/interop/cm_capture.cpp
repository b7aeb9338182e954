// SPDX-License-Identifier: Apache-2.0
// Writes a capture with one of each CM message in a packet to queue pair 1, over IPv4 and over IPv6, and prints per
// packet the fields that another dissector should find in it.
//
//   cm_capture FILE
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "soft/cm/testing.hpp"
#include "soft/roce/capture.hpp"
#include "soft/roce/icrc.hpp"
#include "soft/roce/packet.hpp"

namespace {

namespace cm = strait::soft::cm;
namespace roce = strait::soft::roce;
namespace mad = strait::wire::mad;

std::vector<std::byte> packet_of(const roce::Flow& flow, const cm::Mad& body) {
  roce::Headers h;
  h.opcode = strait::wire::roce::Opcode::ud_send_only;
  h.dest_qpn = h.src_qpn = mad::kQpn;
  h.qkey = mad::kQkey;
  std::vector<std::byte> packet(strait::wire::roce::kMaxHeaderBytes);
  packet.resize(roce::write_headers(h, packet.data()));
  packet.insert(packet.end(), body.begin(), body.end());
  packet.resize(packet.size() + strait::wire::roce::kIcrcBytes);
  roce::seal(flow, packet);
  return packet;
}

std::string address_of(const cm::IpAddress& a, bool want_v4) {
  return a.is_v4() == want_v4 ? a.text() : "";
}

template <class... Numbers>
std::string small(Numbers... numbers) {
  return (fmt::format("|0x{:02x}", static_cast<unsigned>(numbers)) + ...);
}

// As `tshark -T fields` prints them, in the order that tshark_cm.sh asks for. It has no fields for SIDR, MRA and APR.
struct Printer {
  std::string operator()(const cm::Req& m) const {
    const auto ip = cm::parse_ip_header(m.private_data).value();
    std::string line =
        fmt::format("req|0x{:08x}|{:010x}|0x{:02x}|0x{:04x}|0x{:016x}|0x{:08x}|0x{:06x}", m.local_comm_id,
                    m.service_id >> 24, m.service_id >> 16 & 0xff, m.service_id & 0xffff, m.ca_guid, m.qkey, m.qpn);
    line += small(m.responder_resources, m.initiator_depth, m.remote_response_timeout,
                  static_cast<unsigned>(m.transport), m.flow_control);
    line += fmt::format("|0x{:06x}", m.starting_psn) + small(m.local_response_timeout, m.retry_count);
    line += fmt::format("|0x{:04x}", m.pkey);
    line += small(m.mtu_code, m.rnr_retry_count, m.max_cm_retries, m.srq, m.extended_transport);
    line += fmt::format("|{}|{}", m.primary.local_lid, m.primary.remote_lid);
    line += small(m.primary.traffic_class, m.primary.hop_limit, m.primary.sl, m.primary.subnet_local,
                  m.primary.ack_timeout);
    return line + fmt::format("|0x{:04x}|{}|{}|{}|{}", ip.source_port, address_of(ip.source, true),
                              address_of(ip.destination, true), address_of(ip.source, false),
                              address_of(ip.destination, false));
  }
  std::string operator()(const cm::Rep& m) const {
    return fmt::format("rep|0x{:08x}|0x{:08x}|0x{:08x}|0x{:06x}|0x{:06x}", m.local_comm_id, m.remote_comm_id, m.qkey,
                       m.qpn, m.starting_psn) +
           small(m.responder_resources, m.initiator_depth, m.ack_delay, m.failover, m.flow_control, m.rnr_retry_count,
                 m.srq) +
           fmt::format("|0x{:016x}", m.ca_guid);
  }
  std::string operator()(const cm::Rej& m) const {
    return fmt::format("rej|0x{:08x}|0x{:08x}|0x{:02x}|0x{:02x}|0x{:04x}", m.local_comm_id, m.remote_comm_id, m.message,
                       m.info_length, m.reason);
  }
  std::string operator()(const cm::Rtu& m) const {
    return fmt::format("rtu|0x{:08x}|0x{:08x}", m.local_comm_id, m.remote_comm_id);
  }
  std::string operator()(const cm::Dreq& m) const {
    return fmt::format("dreq|0x{:08x}|0x{:08x}|0x{:06x}", m.local_comm_id, m.remote_comm_id, m.remote_qpn);
  }
  std::string operator()(const cm::Drep& m) const {
    return fmt::format("drep|0x{:08x}|0x{:08x}", m.local_comm_id, m.remote_comm_id);
  }
  template <class Other>
  std::string operator()(const Other&) const {
    return "other";
  }
};

int run(const char* path) {
  auto capture = roce::Capture::open(path);
  if (!capture) {
    std::fprintf(stderr, "%s\n", capture.error().explain().c_str());
    return 1;
  }
  std::int64_t ns = 1'700'000'000'000'000'000;
  for (const char* net : {"10.1.2.", "fd00::"}) {
    const roce::Flow flow{roce::IpAddress::parse(net + std::string("1")).value(),
                          roce::IpAddress::parse(net + std::string("2")).value(), 0xc0de};
    for (cm::Message message : cm::testing::telling_messages()) {
      if (auto* req = std::get_if<cm::Req>(&message.body)) {
        req->primary.local_gid = flow.source;
        req->primary.remote_gid = flow.destination;
        cm::write_ip_header({0x5152, flow.source, flow.destination}, req->private_data);
      }
      const auto packet = packet_of(flow, cm::write(message));
      if (!capture->write(flow, ns += 1000, packet, cm::name_of(message.body), true)) return 1;
      std::puts(fmt::format("0x{:016x}|{}", message.tid, std::visit(Printer{}, message.body)).c_str());
    }
  }
  return capture->flush() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: cm_capture FILE\n");
    return 2;
  }
  return run(argv[1]);
}
