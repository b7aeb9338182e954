// SPDX-License-Identifier: Apache-2.0
// The messages of the rendezvous, and their strict parser. Layout: docs/rendezvous.md.
//
// A frame is: u32 bytes that follow, u16 type, u16 zero, u32 request id, fields; everything big endian. Texts are u16
// length and bytes. A frame must be consumed exactly: trailing bytes, short fields and oversized texts are errors.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/error.hpp"

namespace strait::rendezvous {

inline constexpr std::uint16_t kProtocolVersion = 3;
inline constexpr std::uint8_t kLastRail = 3;  // of a Node's NICs, counted from 0
inline constexpr std::size_t kHeaderBytes = 12;
inline constexpr std::size_t kMaxFrameBytes = 64 * 1024;
inline constexpr std::size_t kMaxGreetingBytes = 256;  // until the other side has shown that it knows the secret
inline constexpr std::size_t kMaxNameBytes = 255;
inline constexpr std::size_t kMaxTextBytes = 4096;
inline constexpr std::size_t kMaxRecordBytes = 60000;

using Bytes16 = std::array<std::byte, 16>;
using Bytes32 = std::array<std::byte, 32>;
using NicAddress = std::array<std::byte, 64>;    // strait_nic_address
using TicketBytes = std::array<std::byte, 128>;  // strait_ticket

// Client to server, first.
struct Hello {
  std::uint16_t version = kProtocolVersion;
  Bytes32 nonce{};
};
// Server to client.
struct Challenge {
  std::uint16_t version = kProtocolVersion;
  Bytes32 nonce{};
};
// Client to server, then server to client: HMAC by the secret over role, both nonces.
struct Proof {
  Bytes32 mac{};
};

enum class LaneKind : std::uint8_t {
  peer = 0,   // the first queue between two Nodes: makes the peer
  extra = 1,  // a further lane of a peer that is connected already
};

struct ConnectRequest {
  NicAddress nic{};
  std::uint32_t qpn = 0;
  LaneKind lane = LaneKind::peer;
  std::uint32_t depth = 0;
  Bytes16 node{};  // of the client
  std::int32_t pid = 0;
  Bytes16 host{};         // the same on two Nodes of one host
  std::string name;       // how the client calls itself, for people
  std::uint8_t rail = 0;  // which of the client's NICs `nic` is
};
struct ConnectReply {
  NicAddress nic{};
  std::uint32_t qpn = 0;
  Bytes16 node{};
  std::int32_t pid = 0;
  Bytes16 host{};
  std::string name;
  std::uint8_t rail = 0;  // which of the server's NICs `nic` is: targets have a key of each
};
// The client's queue is connected: both may send. Answered by Done.
struct Ready {
  std::uint32_t qpn = 0;  // the client's
};
struct Done {};

struct Lookup {
  std::string name;
};
struct Redeem {
  TicketBytes ticket{};
};
// Remote memory: strait_target field by field.
struct Target {
  std::uint32_t access = 0;
  std::uint64_t region_id = 0;
  std::uint64_t epoch = 0;
  std::uint64_t address = 0;
  std::uint64_t length_bytes = 0;
  std::uint32_t rkey = 0;
  std::uint32_t signal_rkey = 0;
  std::uint64_t signal_address = 0;
  // For the door of the owner's Node, where a peer of the same host is given the memory itself.
  std::uint32_t grantable = 0;
  Bytes16 proof{};
  // Of the owner's second NIC and so on.
  std::array<std::uint32_t, kLastRail> more_rkeys{};
  std::array<std::uint32_t, kLastRail> more_signal_rkeys{};
};
struct LookupReply {
  Target target;
};
struct RedeemReply {
  Target target;
};
// What is there at the other end, for who plans a transfer.
struct Describe {};
struct Described {
  std::string record;  // JSON (plan/record.hpp); the parser here looks at its length only
};
// What was counted at the other end, for people.
struct Count {};
struct Counted {
  std::string record;  // JSON; the parser here looks at its length only
};
// Orderly end; no answer.
struct Bye {};
// The answer when a request failed.
struct Refusal {
  Code code = Code::invalid;
  std::string text;
  std::string remedy;
  [[nodiscard]] Error error() const { return Error{code, 0, 0, text, remedy}; }
};

using Body = std::variant<Hello, Challenge, Proof, ConnectRequest, ConnectReply, Ready, Done, Lookup, LookupReply,
                          Redeem, RedeemReply, Bye, Refusal, Describe, Described, Count, Counted>;

struct Message {
  std::uint32_t id = 0;  // an answer carries the id of its request
  Body body;
};

[[nodiscard]] const char* type_name(const Body& body);

// Code::invalid when a text is longer than the format allows.
[[nodiscard]] Result<std::vector<std::byte>> encode(const Message& message);
// Bytes of the whole frame whose first bytes these are; 0 while fewer than 4 are there. Code::invalid when shorter than
// a header or longer than `max_bytes`.
[[nodiscard]] Result<std::size_t> frame_bytes(std::span<const std::byte> start, std::size_t max_bytes = kMaxFrameBytes);
// One whole frame. Code::unsupported for a type this version does not know, Code::invalid for everything else; `id`
// (may be null) receives the request id as soon as the header could be read, so that the refusal can name it.
[[nodiscard]] Result<Message> parse(std::span<const std::byte> frame, std::uint32_t* id = nullptr);

}  // namespace strait::rendezvous
