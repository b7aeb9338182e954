// SPDX-License-Identifier: Apache-2.0
#include "soft/cm/message.hpp"

#include <algorithm>
#include <cstring>

namespace strait::soft::cm {
namespace {

using wire::packed_be16;
using wire::packed_be24;
using wire::packed_be32;
using wire::packed_be64;
using wire::mad::at_bits;
using wire::mad::Attribute;
using wire::mad::bits;

wire::mad::Gid gid_of(const IpAddress& address) {
  wire::mad::Gid out;
  std::copy(address.gid.begin(), address.gid.end(), out.bytes);
  return out;
}
IpAddress address_of(const wire::mad::Gid& gid) {
  IpAddress out;
  std::copy(std::begin(gid.bytes), std::end(gid.bytes), out.gid.begin());
  return out;
}
template <std::size_t count>
void put(const std::array<std::byte, count>& from, std::uint8_t (&into)[count]) {
  std::memcpy(into, from.data(), count);
}
template <std::size_t count>
void get(const std::uint8_t (&from)[count], std::array<std::byte, count>& into) {
  std::memcpy(into.data(), from, count);
}
template <class Wire, class Plain>
void put_ids(Wire& w, const Plain& m) {
  w.local_comm_id = packed_be32{m.local_comm_id};
  w.remote_comm_id = packed_be32{m.remote_comm_id};
}
template <class Wire, class Plain>
void get_ids(const Wire& w, Plain& m) {
  m.local_comm_id = w.local_comm_id.value();
  m.remote_comm_id = w.remote_comm_id.value();
}

wire::mad::Path to_wire(const Path& p) {
  wire::mad::Path w{};
  w.local_lid = packed_be16{p.local_lid};
  w.remote_lid = packed_be16{p.remote_lid};
  w.local_gid = gid_of(p.local_gid);
  w.remote_gid = gid_of(p.remote_gid);
  w.flow_rate = packed_be32{(p.flow_label & 0xfffff) << 12 | (p.rate & 0x3fu)};
  w.traffic_class = p.traffic_class;
  w.hop_limit = p.hop_limit;
  w.sl_local = static_cast<std::uint8_t>(at_bits(p.sl, 4, 4) | at_bits(p.subnet_local, 3, 1));
  w.ack_timeout = at_bits(p.ack_timeout, 3, 5);
  return w;
}
Path from_wire(const wire::mad::Path& w) {
  Path p;
  p.local_lid = w.local_lid.value();
  p.remote_lid = w.remote_lid.value();
  p.local_gid = address_of(w.local_gid);
  p.remote_gid = address_of(w.remote_gid);
  p.flow_label = w.flow_rate.value() >> 12;
  p.rate = static_cast<std::uint8_t>(w.flow_rate.value() & 0x3f);
  p.traffic_class = w.traffic_class;
  p.hop_limit = w.hop_limit;
  p.sl = static_cast<std::uint8_t>(bits(w.sl_local, 4, 4));
  p.subnet_local = bits(w.sl_local, 3, 1) != 0;
  p.ack_timeout = static_cast<std::uint8_t>(bits(w.ack_timeout, 3, 5));
  return p;
}

// ---- one pair of functions per message: fill() to the wire, read() from it -----------------------------------------

Attribute fill(const Req& m, wire::mad::Req& w) {
  w.local_comm_id = packed_be32{m.local_comm_id};
  w.service_id = packed_be64{m.service_id};
  w.ca_guid = packed_be64{m.ca_guid};
  w.qkey = packed_be32{m.qkey};
  w.qpn = packed_be24{m.qpn};
  w.responder_resources = m.responder_resources;
  w.initiator_depth = m.initiator_depth;
  w.response_type_flow =
      static_cast<std::uint8_t>(at_bits(m.remote_response_timeout, 3, 5) |
                                at_bits(static_cast<unsigned>(m.transport), 1, 2) | at_bits(m.flow_control, 0, 1));
  w.starting_psn = packed_be24{m.starting_psn};
  w.response_retry = static_cast<std::uint8_t>(at_bits(m.local_response_timeout, 3, 5) | at_bits(m.retry_count, 0, 3));
  w.pkey = packed_be16{m.pkey};
  w.mtu_rnr = static_cast<std::uint8_t>(at_bits(m.mtu_code, 4, 4) | at_bits(m.rnr_retry_count, 0, 3));
  w.retries_srq = static_cast<std::uint8_t>(at_bits(m.max_cm_retries, 4, 4) | at_bits(m.srq, 3, 1) |
                                            at_bits(m.extended_transport, 0, 3));
  w.primary = to_wire(m.primary);
  w.alternate = to_wire(m.alternate);
  put(m.private_data, w.private_data);
  return Attribute::req;
}
void read(const wire::mad::Req& w, Req& m) {
  m.local_comm_id = w.local_comm_id.value();
  m.service_id = w.service_id.value();
  m.ca_guid = w.ca_guid.value();
  m.qkey = w.qkey.value();
  m.qpn = w.qpn.value();
  m.responder_resources = w.responder_resources;
  m.initiator_depth = w.initiator_depth;
  m.remote_response_timeout = static_cast<std::uint8_t>(bits(w.response_type_flow, 3, 5));
  m.transport = static_cast<wire::mad::Transport>(bits(w.response_type_flow, 1, 2));
  m.flow_control = bits(w.response_type_flow, 0, 1) != 0;
  m.starting_psn = w.starting_psn.value();
  m.local_response_timeout = static_cast<std::uint8_t>(bits(w.response_retry, 3, 5));
  m.retry_count = static_cast<std::uint8_t>(bits(w.response_retry, 0, 3));
  m.pkey = w.pkey.value();
  m.mtu_code = static_cast<std::uint8_t>(bits(w.mtu_rnr, 4, 4));
  m.rnr_retry_count = static_cast<std::uint8_t>(bits(w.mtu_rnr, 0, 3));
  m.max_cm_retries = static_cast<std::uint8_t>(bits(w.retries_srq, 4, 4));
  m.srq = bits(w.retries_srq, 3, 1) != 0;
  m.extended_transport = static_cast<std::uint8_t>(bits(w.retries_srq, 0, 3));
  m.primary = from_wire(w.primary);
  m.alternate = from_wire(w.alternate);
  get(w.private_data, m.private_data);
}

Attribute fill(const Mra& m, wire::mad::Mra& w) {
  put_ids(w, m);
  w.message = at_bits(m.message, 6, 2);
  w.service_timeout = at_bits(m.service_timeout, 3, 5);
  put(m.private_data, w.private_data);
  return Attribute::mra;
}
void read(const wire::mad::Mra& w, Mra& m) {
  get_ids(w, m);
  m.message = static_cast<std::uint8_t>(bits(w.message, 6, 2));
  m.service_timeout = static_cast<std::uint8_t>(bits(w.service_timeout, 3, 5));
  get(w.private_data, m.private_data);
}

Attribute fill(const Rej& m, wire::mad::Rej& w) {
  put_ids(w, m);
  w.message = at_bits(m.message, 6, 2);
  w.info_length = at_bits(m.info_length, 1, 7);
  w.reason = packed_be16{m.reason};
  put(m.info, w.info);
  put(m.private_data, w.private_data);
  return Attribute::rej;
}
void read(const wire::mad::Rej& w, Rej& m) {
  get_ids(w, m);
  m.message = static_cast<std::uint8_t>(bits(w.message, 6, 2));
  m.info_length = static_cast<std::uint8_t>(bits(w.info_length, 1, 7));
  m.reason = w.reason.value();
  get(w.info, m.info);
  get(w.private_data, m.private_data);
}

Attribute fill(const Rep& m, wire::mad::Rep& w) {
  put_ids(w, m);
  w.qkey = packed_be32{m.qkey};
  w.qpn = packed_be24{m.qpn};
  w.starting_psn = packed_be24{m.starting_psn};
  w.responder_resources = m.responder_resources;
  w.initiator_depth = m.initiator_depth;
  w.ack_delay_flow =
      static_cast<std::uint8_t>(at_bits(m.ack_delay, 3, 5) | at_bits(m.failover, 1, 2) | at_bits(m.flow_control, 0, 1));
  w.rnr_srq = static_cast<std::uint8_t>(at_bits(m.rnr_retry_count, 5, 3) | at_bits(m.srq, 4, 1));
  w.ca_guid = packed_be64{m.ca_guid};
  put(m.private_data, w.private_data);
  return Attribute::rep;
}
void read(const wire::mad::Rep& w, Rep& m) {
  get_ids(w, m);
  m.qkey = w.qkey.value();
  m.qpn = w.qpn.value();
  m.starting_psn = w.starting_psn.value();
  m.responder_resources = w.responder_resources;
  m.initiator_depth = w.initiator_depth;
  m.ack_delay = static_cast<std::uint8_t>(bits(w.ack_delay_flow, 3, 5));
  m.failover = static_cast<std::uint8_t>(bits(w.ack_delay_flow, 1, 2));
  m.flow_control = bits(w.ack_delay_flow, 0, 1) != 0;
  m.rnr_retry_count = static_cast<std::uint8_t>(bits(w.rnr_srq, 5, 3));
  m.srq = bits(w.rnr_srq, 4, 1) != 0;
  m.ca_guid = w.ca_guid.value();
  get(w.private_data, m.private_data);
}

Attribute fill(const Rtu& m, wire::mad::Rtu& w) {
  put_ids(w, m);
  put(m.private_data, w.private_data);
  return Attribute::rtu;
}
void read(const wire::mad::Rtu& w, Rtu& m) {
  get_ids(w, m);
  get(w.private_data, m.private_data);
}

Attribute fill(const Dreq& m, wire::mad::Dreq& w) {
  put_ids(w, m);
  w.remote_qpn = packed_be24{m.remote_qpn};
  put(m.private_data, w.private_data);
  return Attribute::dreq;
}
void read(const wire::mad::Dreq& w, Dreq& m) {
  get_ids(w, m);
  m.remote_qpn = w.remote_qpn.value();
  get(w.private_data, m.private_data);
}

Attribute fill(const Drep& m, wire::mad::Drep& w) {
  put_ids(w, m);
  put(m.private_data, w.private_data);
  return Attribute::drep;
}
void read(const wire::mad::Drep& w, Drep& m) {
  get_ids(w, m);
  get(w.private_data, m.private_data);
}

Attribute fill(const SidrReq& m, wire::mad::SidrReq& w) {
  w.request_id = packed_be32{m.request_id};
  w.pkey = packed_be16{m.pkey};
  w.service_id = packed_be64{m.service_id};
  put(m.private_data, w.private_data);
  return Attribute::sidr_req;
}
void read(const wire::mad::SidrReq& w, SidrReq& m) {
  m.request_id = w.request_id.value();
  m.pkey = w.pkey.value();
  m.service_id = w.service_id.value();
  get(w.private_data, m.private_data);
}

Attribute fill(const SidrRep& m, wire::mad::SidrRep& w) {
  w.request_id = packed_be32{m.request_id};
  w.status = m.status;
  w.info_length = m.info_length;
  w.qpn = packed_be24{m.qpn};
  w.service_id = packed_be64{m.service_id};
  w.qkey = packed_be32{m.qkey};
  put(m.info, w.info);
  put(m.private_data, w.private_data);
  return Attribute::sidr_rep;
}
void read(const wire::mad::SidrRep& w, SidrRep& m) {
  m.request_id = w.request_id.value();
  m.status = w.status;
  m.info_length = w.info_length;
  m.qpn = w.qpn.value();
  m.service_id = w.service_id.value();
  m.qkey = w.qkey.value();
  get(w.info, m.info);
  get(w.private_data, m.private_data);
}

Attribute fill(const Lap& m, wire::mad::Lap& w) {
  put_ids(w, m);
  w.remote_qpn = packed_be24{m.remote_qpn};
  return Attribute::lap;
}
void read(const wire::mad::Lap& w, Lap& m) {
  get_ids(w, m);
  m.remote_qpn = w.remote_qpn.value();
}

Attribute fill(const Apr& m, wire::mad::Apr& w) {
  put_ids(w, m);
  w.info_length = m.info_length;
  w.status = m.status;
  put(m.info, w.info);
  put(m.private_data, w.private_data);
  return Attribute::apr;
}
void read(const wire::mad::Apr& w, Apr& m) {
  get_ids(w, m);
  m.info_length = w.info_length;
  m.status = w.status;
  get(w.info, m.info);
  get(w.private_data, m.private_data);
}

template <class Wire, class Plain>
Attribute write_body(const Plain& plain, Mad& out) {
  Wire w{};
  const Attribute attribute = fill(plain, w);
  std::memcpy(out.data() + sizeof(wire::mad::Header), &w, sizeof w);
  return attribute;
}
template <class Wire, class Plain>
void read_body(std::span<const std::byte> bytes, Body& out) {
  Wire w;
  std::memcpy(&w, bytes.data() + sizeof(wire::mad::Header), sizeof w);
  read(w, out.emplace<Plain>());
}

struct Writer {
  Mad& out;
  Attribute operator()(const Req& m) const { return write_body<wire::mad::Req>(m, out); }
  Attribute operator()(const Mra& m) const { return write_body<wire::mad::Mra>(m, out); }
  Attribute operator()(const Rej& m) const { return write_body<wire::mad::Rej>(m, out); }
  Attribute operator()(const Rep& m) const { return write_body<wire::mad::Rep>(m, out); }
  Attribute operator()(const Rtu& m) const { return write_body<wire::mad::Rtu>(m, out); }
  Attribute operator()(const Dreq& m) const { return write_body<wire::mad::Dreq>(m, out); }
  Attribute operator()(const Drep& m) const { return write_body<wire::mad::Drep>(m, out); }
  Attribute operator()(const SidrReq& m) const { return write_body<wire::mad::SidrReq>(m, out); }
  Attribute operator()(const SidrRep& m) const { return write_body<wire::mad::SidrRep>(m, out); }
  Attribute operator()(const Lap& m) const { return write_body<wire::mad::Lap>(m, out); }
  Attribute operator()(const Apr& m) const { return write_body<wire::mad::Apr>(m, out); }
};

}  // namespace

Mad write(const Message& message) {
  Mad out{};
  wire::mad::Header header{};
  header.base_version = wire::mad::kBaseVersion;
  header.mgmt_class = wire::mad::kClassCm;
  header.class_version = wire::mad::kCmVersion;
  header.method = wire::mad::kMethodSend;
  header.tid = packed_be64{message.tid};
  header.attribute = packed_be16{static_cast<std::uint16_t>(std::visit(Writer{out}, message.body))};
  std::memcpy(out.data(), &header, sizeof header);
  return out;
}

const char* refusal_text(Refusal refusal) {
  switch (refusal) {
    case Refusal::none: return "accepted";
    case Refusal::wrong_size: return "not 256 bytes";
    case Refusal::wrong_version: return "another version";
    case Refusal::wrong_class: return "another management class";
    case Refusal::wrong_method: return "another method than Send";
    case Refusal::unknown_attribute: return "an unknown message";
  }
  return "unknown";
}

Refusal parse(std::span<const std::byte> bytes, Message& out) {
  if (bytes.size() != wire::mad::kBytes) return Refusal::wrong_size;
  wire::mad::Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.base_version != wire::mad::kBaseVersion) return Refusal::wrong_version;
  if (header.mgmt_class != wire::mad::kClassCm) return Refusal::wrong_class;
  if (header.class_version != wire::mad::kCmVersion) return Refusal::wrong_version;
  if (header.method != wire::mad::kMethodSend) return Refusal::wrong_method;
  out.tid = header.tid.value();
  switch (static_cast<Attribute>(header.attribute.value())) {
    case Attribute::req: read_body<wire::mad::Req, Req>(bytes, out.body); break;
    case Attribute::mra: read_body<wire::mad::Mra, Mra>(bytes, out.body); break;
    case Attribute::rej: read_body<wire::mad::Rej, Rej>(bytes, out.body); break;
    case Attribute::rep: read_body<wire::mad::Rep, Rep>(bytes, out.body); break;
    case Attribute::rtu: read_body<wire::mad::Rtu, Rtu>(bytes, out.body); break;
    case Attribute::dreq: read_body<wire::mad::Dreq, Dreq>(bytes, out.body); break;
    case Attribute::drep: read_body<wire::mad::Drep, Drep>(bytes, out.body); break;
    case Attribute::sidr_req: read_body<wire::mad::SidrReq, SidrReq>(bytes, out.body); break;
    case Attribute::sidr_rep: read_body<wire::mad::SidrRep, SidrRep>(bytes, out.body); break;
    case Attribute::lap: read_body<wire::mad::Lap, Lap>(bytes, out.body); break;
    case Attribute::apr: read_body<wire::mad::Apr, Apr>(bytes, out.body); break;
    default: return Refusal::unknown_attribute;
  }
  return Refusal::none;
}

const char* name_of(const Body& body) {
  static constexpr const char* kNames[] = {"REQ",  "MRA",      "REJ",      "REP", "RTU", "DREQ",
                                           "DREP", "SIDR_REQ", "SIDR_REP", "LAP", "APR"};
  static_assert(std::size(kNames) == std::variant_size_v<Body>);
  return kNames[body.index()];
}

void write_ip_header(const IpHeader& header, std::span<std::byte> out) {
  wire::mad::IpHeader w{};
  const bool v4 = header.source.is_v4();
  w.ip_version = at_bits(v4 ? 4 : 6, 4, 4);
  w.source_port = packed_be16{header.source_port};
  const std::size_t skip = v4 ? 12 : 0;
  std::copy(header.source.gid.begin() + skip, header.source.gid.end(), w.source + skip);
  std::copy(header.destination.gid.begin() + skip, header.destination.gid.end(), w.destination + skip);
  std::memcpy(out.data(), &w, sizeof w);
}

std::optional<IpHeader> parse_ip_header(std::span<const std::byte> private_data) {
  wire::mad::IpHeader w;
  if (private_data.size() < sizeof w) return std::nullopt;
  std::memcpy(&w, private_data.data(), sizeof w);
  const unsigned version = bits(w.ip_version, 4, 4);
  if (w.version != 0 || (version != 4 && version != 6)) return std::nullopt;
  IpHeader out;
  out.source_port = w.source_port.value();
  const auto address = [version](const std::uint8_t(&bytes)[16]) {
    if (version == 4) return IpAddress::v4(bytes[12], bytes[13], bytes[14], bytes[15]);
    IpAddress a;
    std::copy(std::begin(bytes), std::end(bytes), a.gid.begin());
    return a;
  };
  out.source = address(w.source);
  out.destination = address(w.destination);
  return out;
}

}  // namespace strait::soft::cm
