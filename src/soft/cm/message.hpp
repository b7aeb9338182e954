// SPDX-License-Identifier: Apache-2.0
// CM messages between their 256 bytes and their meaning.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>

#include "soft/roce/address.hpp"
#include "strait/wire/mad.hpp"

namespace strait::soft::cm {

using roce::IpAddress;
using Mad = std::array<std::byte, wire::mad::kBytes>;
template <std::size_t count>
using PrivateData = std::array<std::byte, count>;

struct Path {
  std::uint16_t local_lid = wire::mad::kNoLid;
  std::uint16_t remote_lid = wire::mad::kNoLid;
  IpAddress local_gid;
  IpAddress remote_gid;
  std::uint32_t flow_label = 0;  // 20 bits
  std::uint8_t rate = 0;         // 6 bits
  std::uint8_t traffic_class = 0;
  std::uint8_t hop_limit = 0;
  std::uint8_t sl = 0;  // 4 bits
  bool subnet_local = false;
  std::uint8_t ack_timeout = 0;  // 5 bits
  friend bool operator==(const Path&, const Path&) = default;
};

// An alternate path that is not there: all zero.
inline Path no_path() {
  Path path;
  path.local_lid = path.remote_lid = 0;
  return path;
}

struct Req {
  std::uint32_t local_comm_id = 0;
  std::uint64_t service_id = 0;
  std::uint64_t ca_guid = 0;
  std::uint32_t qkey = 0;
  std::uint32_t qpn = 0;
  std::uint8_t responder_resources = 0;
  std::uint8_t initiator_depth = 0;
  std::uint8_t remote_response_timeout = 0;  // 5 bits
  wire::mad::Transport transport = wire::mad::Transport::rc;
  bool flow_control = false;
  std::uint32_t starting_psn = 0;
  std::uint8_t local_response_timeout = 0;  // 5 bits
  std::uint8_t retry_count = 0;             // 3 bits
  std::uint16_t pkey = 0xffff;
  std::uint8_t mtu_code = 0;         // 4 bits
  std::uint8_t rnr_retry_count = 0;  // 3 bits
  std::uint8_t max_cm_retries = 0;   // 4 bits
  bool srq = false;
  std::uint8_t extended_transport = 0;  // 3 bits
  Path primary;
  Path alternate = no_path();
  PrivateData<92> private_data{};
  friend bool operator==(const Req&, const Req&) = default;
};

struct Mra {
  std::uint32_t local_comm_id = 0;
  std::uint32_t remote_comm_id = 0;
  std::uint8_t message = 0;
  std::uint8_t service_timeout = 0;
  PrivateData<222> private_data{};
  friend bool operator==(const Mra&, const Mra&) = default;
};

struct Rej {
  std::uint32_t local_comm_id = 0;
  std::uint32_t remote_comm_id = 0;
  std::uint8_t message = 0;  // kRejectsReq, kRejectsRep, kRejectsOther
  std::uint16_t reason = 0;
  std::uint8_t info_length = 0;
  std::array<std::byte, 72> info{};
  PrivateData<148> private_data{};
  friend bool operator==(const Rej&, const Rej&) = default;
};
inline constexpr std::uint8_t kRejectsReq = 0, kRejectsRep = 1, kRejectsOther = 2;

struct Rep {
  std::uint32_t local_comm_id = 0;
  std::uint32_t remote_comm_id = 0;
  std::uint32_t qkey = 0;
  std::uint32_t qpn = 0;
  std::uint32_t starting_psn = 0;
  std::uint8_t responder_resources = 0;
  std::uint8_t initiator_depth = 0;
  std::uint8_t ack_delay = 0;  // 5 bits
  std::uint8_t failover = 0;   // 2 bits
  bool flow_control = false;
  std::uint8_t rnr_retry_count = 0;  // 3 bits
  bool srq = false;
  std::uint64_t ca_guid = 0;
  PrivateData<196> private_data{};
  friend bool operator==(const Rep&, const Rep&) = default;
};

struct Rtu {
  std::uint32_t local_comm_id = 0;
  std::uint32_t remote_comm_id = 0;
  PrivateData<224> private_data{};
  friend bool operator==(const Rtu&, const Rtu&) = default;
};

struct Dreq {
  std::uint32_t local_comm_id = 0;
  std::uint32_t remote_comm_id = 0;
  std::uint32_t remote_qpn = 0;
  PrivateData<220> private_data{};
  friend bool operator==(const Dreq&, const Dreq&) = default;
};

struct Drep {
  std::uint32_t local_comm_id = 0;
  std::uint32_t remote_comm_id = 0;
  PrivateData<224> private_data{};
  friend bool operator==(const Drep&, const Drep&) = default;
};

struct SidrReq {
  std::uint32_t request_id = 0;
  std::uint16_t pkey = 0xffff;
  std::uint64_t service_id = 0;
  PrivateData<216> private_data{};
  friend bool operator==(const SidrReq&, const SidrReq&) = default;
};

struct SidrRep {
  std::uint32_t request_id = 0;
  std::uint8_t status = 0;
  std::uint32_t qpn = 0;
  std::uint64_t service_id = 0;
  std::uint32_t qkey = 0;
  std::uint8_t info_length = 0;
  std::array<std::byte, 72> info{};
  PrivateData<136> private_data{};
  friend bool operator==(const SidrRep&, const SidrRep&) = default;
};

// Of the path it proposes nothing is used: it is always refused.
struct Lap {
  std::uint32_t local_comm_id = 0;
  std::uint32_t remote_comm_id = 0;
  std::uint32_t remote_qpn = 0;
  friend bool operator==(const Lap&, const Lap&) = default;
};

struct Apr {
  std::uint32_t local_comm_id = 0;
  std::uint32_t remote_comm_id = 0;
  std::uint8_t status = 0;
  std::uint8_t info_length = 0;
  std::array<std::byte, 72> info{};
  PrivateData<148> private_data{};
  friend bool operator==(const Apr&, const Apr&) = default;
};

using Body = std::variant<Req, Mra, Rej, Rep, Rtu, Dreq, Drep, SidrReq, SidrRep, Lap, Apr>;
struct Message {
  std::uint64_t tid = 0;
  Body body;
  friend bool operator==(const Message&, const Message&) = default;
};

// Reserved bits are 0.
[[nodiscard]] Mad write(const Message& message);

enum class Refusal : std::uint8_t {
  none,
  wrong_size,     // not 256 bytes
  wrong_version,  // of the base or the class
  wrong_class,    // not for the communication manager
  wrong_method,
  unknown_attribute,
};
inline constexpr std::size_t kRefusals = static_cast<std::size_t>(Refusal::unknown_attribute) + 1;
[[nodiscard]] const char* refusal_text(Refusal refusal);
// Reserved bits are not looked at. `out` is meaningful only when the answer is none.
[[nodiscard]] Refusal parse(std::span<const std::byte> bytes, Message& out);
// "REQ", for captures and traces.
[[nodiscard]] const char* name_of(const Body& body);

// The addresses that stand before a caller's private data in REQ and SIDR_REQ (InfiniBand specification, annex 11).
struct IpHeader {
  std::uint16_t source_port = 0;
  IpAddress source;
  IpAddress destination;  // of the same IP version as the source
  friend bool operator==(const IpHeader&, const IpHeader&) = default;
};
inline constexpr std::size_t kIpHeaderBytes = sizeof(wire::mad::IpHeader);
// `out` has kIpHeaderBytes or more.
void write_ip_header(const IpHeader& header, std::span<std::byte> out);
// Nothing for another version, or an IP version that is neither 4 nor 6, or fewer bytes than it has.
[[nodiscard]] std::optional<IpHeader> parse_ip_header(std::span<const std::byte> private_data);

}  // namespace strait::soft::cm
