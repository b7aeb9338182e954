// SPDX-License-Identifier: Apache-2.0
// Management datagrams and the messages of the communication manager, as they lie in a packet to queue pair 1.
// docs/wire-cm.md is the same in words. Everything here has alignment 1.
#pragma once

#include <cstddef>
#include <cstdint>

#include "strait/wire/endian.hpp"

namespace strait::wire::mad {

inline constexpr std::size_t kBytes = 256;           // of every datagram
inline constexpr std::uint32_t kQpn = 1;             // general services
inline constexpr std::uint32_t kQkey = 0x80010000u;  // of queue pair 1

inline constexpr std::uint8_t kBaseVersion = 1;
inline constexpr std::uint8_t kClassCm = 7;
inline constexpr std::uint8_t kCmVersion = 2;
inline constexpr std::uint8_t kMethodSend = 3;  // the only one of the class

struct Header {
  std::uint8_t base_version;
  std::uint8_t mgmt_class;
  std::uint8_t class_version;
  std::uint8_t method;
  packed_be16 status;
  packed_be16 class_specific;
  packed_be64 tid;
  packed_be16 attribute;
  packed_be16 reserved;
  packed_be32 attribute_modifier;
};
static_assert(sizeof(Header) == 24 && alignof(Header) == 1);
static_assert(offsetof(Header, tid) == 8 && offsetof(Header, attribute) == 16);
static_assert(offsetof(Header, base_version) == 0 && offsetof(Header, mgmt_class) == 1);
static_assert(offsetof(Header, class_version) == 2 && offsetof(Header, method) == 3 && offsetof(Header, status) == 4);
static_assert(offsetof(Header, class_specific) == 6 && offsetof(Header, reserved) == 18);
static_assert(offsetof(Header, attribute_modifier) == 20);

inline constexpr std::size_t kBodyBytes = kBytes - sizeof(Header);

enum class Attribute : std::uint16_t {
  req = 0x10,
  mra = 0x11,
  rej = 0x12,
  rep = 0x13,
  rtu = 0x14,
  dreq = 0x15,
  drep = 0x16,
  sidr_req = 0x17,
  sidr_rep = 0x18,
  lap = 0x19,
  apr = 0x1a,
};

// How the bits of shared bytes are taken out and put in; `shift` counts from the least significant bit.
constexpr unsigned bits(unsigned byte, unsigned shift, unsigned width) {
  return byte >> shift & ((1u << width) - 1);
}
constexpr std::uint8_t at_bits(unsigned value, unsigned shift, unsigned width) {
  return static_cast<std::uint8_t>((value & ((1u << width) - 1)) << shift);
}

struct Gid {
  std::uint8_t bytes[16];
};
static_assert(sizeof(Gid) == 16);
static_assert(offsetof(Gid, bytes) == 0);

// ---- REQ -----------------------------------------------------------------------------------------------------------

struct Path {
  packed_be16 local_lid;
  packed_be16 remote_lid;
  Gid local_gid;
  Gid remote_gid;
  packed_be32 flow_rate;  // flow label << 12 | packet rate
  std::uint8_t traffic_class;
  std::uint8_t hop_limit;
  std::uint8_t sl_local;     // service level << 4 | subnet local << 3
  std::uint8_t ack_timeout;  // << 3
};
static_assert(sizeof(Path) == 44 && offsetof(Path, flow_rate) == 36 && offsetof(Path, ack_timeout) == 43);
static_assert(offsetof(Path, local_lid) == 0 && offsetof(Path, remote_lid) == 2 && offsetof(Path, local_gid) == 4);
static_assert(offsetof(Path, remote_gid) == 20 && offsetof(Path, traffic_class) == 40);
static_assert(offsetof(Path, hop_limit) == 41 && offsetof(Path, sl_local) == 42);

struct Req {
  packed_be32 local_comm_id;
  packed_be32 reserved0;
  packed_be64 service_id;
  packed_be64 ca_guid;
  packed_be32 reserved1;
  packed_be32 qkey;
  packed_be24 qpn;
  std::uint8_t responder_resources;
  packed_be24 local_eecn;
  std::uint8_t initiator_depth;
  packed_be24 remote_eecn;
  std::uint8_t response_type_flow;  // remote response timeout << 3 | transport service << 1 | flow control
  packed_be24 starting_psn;
  std::uint8_t response_retry;  // local response timeout << 3 | retry count
  packed_be16 pkey;
  std::uint8_t mtu_rnr;      // path MTU << 4 | RDC exists << 3 | RNR retry count
  std::uint8_t retries_srq;  // most CM retries << 4 | SRQ << 3 | extended transport
  Path primary;
  Path alternate;
  std::uint8_t private_data[92];
};
static_assert(sizeof(Req) == kBodyBytes);
static_assert(offsetof(Req, service_id) == 8 && offsetof(Req, qpn) == 32 && offsetof(Req, starting_psn) == 44);
static_assert(offsetof(Req, pkey) == 48 && offsetof(Req, primary) == 52 && offsetof(Req, alternate) == 96);
static_assert(offsetof(Req, private_data) == 140);
static_assert(offsetof(Req, local_comm_id) == 0 && offsetof(Req, reserved0) == 4 && offsetof(Req, ca_guid) == 16);
static_assert(offsetof(Req, reserved1) == 24 && offsetof(Req, qkey) == 28);
static_assert(offsetof(Req, responder_resources) == 35 && offsetof(Req, local_eecn) == 36);
static_assert(offsetof(Req, initiator_depth) == 39 && offsetof(Req, remote_eecn) == 40);
static_assert(offsetof(Req, response_type_flow) == 43 && offsetof(Req, response_retry) == 47);
static_assert(offsetof(Req, mtu_rnr) == 50 && offsetof(Req, retries_srq) == 51);

// ---- the other messages of a connection ----------------------------------------------------------------------------

struct Mra {
  packed_be32 local_comm_id;
  packed_be32 remote_comm_id;
  std::uint8_t message;          // << 6: 0 REQ, 1 REP, 2 LAP
  std::uint8_t service_timeout;  // << 3
  std::uint8_t private_data[222];
};
static_assert(sizeof(Mra) == kBodyBytes);
static_assert(offsetof(Mra, local_comm_id) == 0 && offsetof(Mra, remote_comm_id) == 4 && offsetof(Mra, message) == 8);
static_assert(offsetof(Mra, service_timeout) == 9 && offsetof(Mra, private_data) == 10);

struct Rej {
  packed_be32 local_comm_id;
  packed_be32 remote_comm_id;
  std::uint8_t message;      // << 6: 0 REQ, 1 REP, 2 none of them
  std::uint8_t info_length;  // << 1
  packed_be16 reason;
  std::uint8_t info[72];
  std::uint8_t private_data[148];
};
static_assert(sizeof(Rej) == kBodyBytes && offsetof(Rej, info) == 12 && offsetof(Rej, private_data) == 84);
static_assert(offsetof(Rej, local_comm_id) == 0 && offsetof(Rej, remote_comm_id) == 4 && offsetof(Rej, message) == 8);
static_assert(offsetof(Rej, info_length) == 9 && offsetof(Rej, reason) == 10);

struct Rep {
  packed_be32 local_comm_id;
  packed_be32 remote_comm_id;
  packed_be32 qkey;
  packed_be24 qpn;
  std::uint8_t reserved0;
  packed_be24 eecn;
  std::uint8_t reserved1;
  packed_be24 starting_psn;
  std::uint8_t reserved2;
  std::uint8_t responder_resources;
  std::uint8_t initiator_depth;
  std::uint8_t ack_delay_flow;  // target ACK delay << 3 | failover << 1 | flow control
  std::uint8_t rnr_srq;         // RNR retry count << 5 | SRQ << 4
  packed_be64 ca_guid;
  std::uint8_t private_data[196];
};
static_assert(sizeof(Rep) == kBodyBytes && offsetof(Rep, qpn) == 12 && offsetof(Rep, starting_psn) == 20);
static_assert(offsetof(Rep, ca_guid) == 28 && offsetof(Rep, private_data) == 36);
static_assert(offsetof(Rep, local_comm_id) == 0 && offsetof(Rep, remote_comm_id) == 4 && offsetof(Rep, qkey) == 8);
static_assert(offsetof(Rep, reserved0) == 15 && offsetof(Rep, eecn) == 16 && offsetof(Rep, reserved1) == 19);
static_assert(offsetof(Rep, reserved2) == 23 && offsetof(Rep, responder_resources) == 24);
static_assert(offsetof(Rep, initiator_depth) == 25 && offsetof(Rep, ack_delay_flow) == 26);
static_assert(offsetof(Rep, rnr_srq) == 27);

struct Rtu {
  packed_be32 local_comm_id;
  packed_be32 remote_comm_id;
  std::uint8_t private_data[224];
};
static_assert(sizeof(Rtu) == kBodyBytes);
static_assert(offsetof(Rtu, local_comm_id) == 0 && offsetof(Rtu, remote_comm_id) == 4);
static_assert(offsetof(Rtu, private_data) == 8);

struct Dreq {
  packed_be32 local_comm_id;
  packed_be32 remote_comm_id;
  packed_be24 remote_qpn;
  std::uint8_t reserved;
  std::uint8_t private_data[220];
};
static_assert(sizeof(Dreq) == kBodyBytes);
static_assert(offsetof(Dreq, local_comm_id) == 0 && offsetof(Dreq, remote_comm_id) == 4);
static_assert(offsetof(Dreq, remote_qpn) == 8 && offsetof(Dreq, reserved) == 11);
static_assert(offsetof(Dreq, private_data) == 12);

struct Drep {
  packed_be32 local_comm_id;
  packed_be32 remote_comm_id;
  std::uint8_t private_data[224];
};
static_assert(sizeof(Drep) == kBodyBytes);
static_assert(offsetof(Drep, local_comm_id) == 0 && offsetof(Drep, remote_comm_id) == 4);
static_assert(offsetof(Drep, private_data) == 8);

// ---- service id resolution, for datagrams --------------------------------------------------------------------------

struct SidrReq {
  packed_be32 request_id;
  packed_be16 pkey;
  packed_be16 reserved;
  packed_be64 service_id;
  std::uint8_t private_data[216];
};
static_assert(sizeof(SidrReq) == kBodyBytes);
static_assert(offsetof(SidrReq, request_id) == 0 && offsetof(SidrReq, pkey) == 4 && offsetof(SidrReq, reserved) == 6);
static_assert(offsetof(SidrReq, service_id) == 8 && offsetof(SidrReq, private_data) == 16);

struct SidrRep {
  packed_be32 request_id;
  std::uint8_t status;
  std::uint8_t info_length;
  packed_be16 reserved0;
  packed_be24 qpn;
  std::uint8_t reserved1;
  packed_be64 service_id;
  packed_be32 qkey;
  std::uint8_t info[72];
  std::uint8_t private_data[136];
};
static_assert(sizeof(SidrRep) == kBodyBytes && offsetof(SidrRep, service_id) == 12 && offsetof(SidrRep, qkey) == 20);
static_assert(offsetof(SidrRep, info) == 24 && offsetof(SidrRep, private_data) == 96);
static_assert(offsetof(SidrRep, request_id) == 0 && offsetof(SidrRep, status) == 4);
static_assert(offsetof(SidrRep, info_length) == 5 && offsetof(SidrRep, reserved0) == 6);
static_assert(offsetof(SidrRep, qpn) == 8 && offsetof(SidrRep, reserved1) == 11);

// ---- alternate paths -----------------------------------------------------------------------------------------------

struct Lap {
  packed_be32 local_comm_id;
  packed_be32 remote_comm_id;
  packed_be32 reserved0;
  packed_be24 remote_qpn;
  std::uint8_t response_timeout;  // << 3
  packed_be32 reserved1;
  packed_be16 local_lid;
  packed_be16 remote_lid;
  Gid local_gid;
  Gid remote_gid;
  packed_be24 flow;  // flow label << 4
  std::uint8_t traffic_class;
  std::uint8_t hop_limit;
  std::uint8_t rate;
  std::uint8_t sl_local;
  std::uint8_t ack_timeout;  // << 3
  std::uint8_t private_data[168];
};
static_assert(sizeof(Lap) == kBodyBytes && offsetof(Lap, local_gid) == 24 && offsetof(Lap, private_data) == 64);
static_assert(offsetof(Lap, local_comm_id) == 0 && offsetof(Lap, remote_comm_id) == 4);
static_assert(offsetof(Lap, reserved0) == 8 && offsetof(Lap, remote_qpn) == 12);
static_assert(offsetof(Lap, response_timeout) == 15 && offsetof(Lap, reserved1) == 16);
static_assert(offsetof(Lap, local_lid) == 20 && offsetof(Lap, remote_lid) == 22 && offsetof(Lap, remote_gid) == 40);
static_assert(offsetof(Lap, flow) == 56 && offsetof(Lap, traffic_class) == 59 && offsetof(Lap, hop_limit) == 60);
static_assert(offsetof(Lap, rate) == 61 && offsetof(Lap, sl_local) == 62 && offsetof(Lap, ack_timeout) == 63);

struct Apr {
  packed_be32 local_comm_id;
  packed_be32 remote_comm_id;
  std::uint8_t info_length;
  std::uint8_t status;
  packed_be16 reserved;
  std::uint8_t info[72];
  std::uint8_t private_data[148];
};
static_assert(sizeof(Apr) == kBodyBytes && offsetof(Apr, info) == 12 && offsetof(Apr, private_data) == 84);
static_assert(offsetof(Apr, local_comm_id) == 0 && offsetof(Apr, remote_comm_id) == 4);
static_assert(offsetof(Apr, info_length) == 8 && offsetof(Apr, status) == 9 && offsetof(Apr, reserved) == 10);

// ---- IP addresses in front of the private data of REQ and SIDR_REQ -------------------------------------------------

struct IpHeader {
  std::uint8_t version;     // 0
  std::uint8_t ip_version;  // 4 or 6, << 4
  packed_be16 source_port;
  std::uint8_t source[16];  // IPv4: in the last four bytes
  std::uint8_t destination[16];
};
static_assert(sizeof(IpHeader) == 36 && offsetof(IpHeader, source) == 4 && offsetof(IpHeader, destination) == 20);
static_assert(offsetof(IpHeader, version) == 0 && offsetof(IpHeader, ip_version) == 1);
static_assert(offsetof(IpHeader, source_port) == 2);

// Port space << 16 | port.
enum class PortSpace : std::uint16_t { ipoib = 0x0002, tcp = 0x0106, udp = 0x0111, ib = 0x013f };
constexpr std::uint64_t service_id(PortSpace space, std::uint16_t port) {
  return std::uint64_t{static_cast<std::uint16_t>(space)} << 16 | port;
}

// ---- numbers -------------------------------------------------------------------------------------------------------

enum class RejReason : std::uint16_t {
  no_qp = 1,
  timeout = 4,
  unsupported = 5,
  invalid_comm_id = 6,
  invalid_comm_instance = 7,
  invalid_service_id = 8,
  invalid_transport_type = 9,
  stale_connection = 10,
  invalid_mtu = 26,
  consumer = 28,
};
enum class SidrStatus : std::uint8_t { ok = 0, unsupported = 1, reject = 2, no_qp = 3 };
enum class AprStatus : std::uint8_t { ok = 0, invalid_comm_id = 1, unsupported = 2 };
enum class Transport : std::uint8_t { rc = 0, uc = 1, rd = 2, extended = 3 };
inline constexpr std::uint8_t kExtendedXrc = 1;  // the extended transport, where Transport::extended is said
inline constexpr std::uint16_t kNoLid = 0xffff;  // RoCE has none

}  // namespace strait::wire::mad
