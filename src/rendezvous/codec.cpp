// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/codec.hpp"

#include "rendezvous/fields.hpp"

namespace strait::rendezvous {
namespace {

// The fields of each message in wire order, for Writer and Reader alike. `io` is one, `m` the message (const for
// Writer).
struct Fields {
  template <class Io, class M>
  static void signed_number(Io& io, M& value) {
    auto bits = static_cast<std::uint32_t>(value);
    io.number(bits);
    if constexpr (!std::is_const_v<M>) value = static_cast<std::int32_t>(bits);
  }
  static void list(auto& io, auto& m, const Hello*) { io.number(m.version), io.bytes(m.nonce); }
  static void list(auto& io, auto& m, const Challenge*) { io.number(m.version), io.bytes(m.nonce); }
  static void list(auto& io, auto& m, const Proof*) { io.bytes(m.mac); }
  static void list(auto& io, auto& m, const ConnectRequest*) {
    io.bytes(m.nic);
    io.number(m.qpn);
    io.choice(m.lane, 0, 1);
    io.number(m.depth);
    identity(io, m);
  }
  static void list(auto& io, auto& m, const ConnectReply*) {
    io.bytes(m.nic);
    io.number(m.qpn);
    identity(io, m);
  }
  static void list(auto& io, auto& m, const Ready*) { io.number(m.qpn); }
  static void list(auto&, auto&, const Done*) {}
  static void list(auto& io, auto& m, const Lookup*) { io.name(m.name, 1, kMaxNameBytes); }
  static void list(auto& io, auto& m, const LookupReply*) { target(io, m.target); }
  static void list(auto& io, auto& m, const Redeem*) { io.bytes(m.ticket); }
  static void list(auto& io, auto& m, const RedeemReply*) { target(io, m.target); }
  static void list(auto&, auto&, const Bye*) {}
  static void list(auto& io, auto& m, const Refusal*) {
    io.choice(m.code, static_cast<std::uint8_t>(Code::invalid), static_cast<std::uint8_t>(Code::system));
    io.text(m.text, kMaxTextBytes);
    io.text(m.remedy, kMaxTextBytes);
  }
  static void list(auto&, auto&, const Describe*) {}
  static void list(auto& io, auto& m, const Described*) { io.name(m.record, 2, kMaxRecordBytes); }
  static void list(auto&, auto&, const Count*) {}
  static void list(auto& io, auto& m, const Counted*) { io.name(m.record, 2, kMaxRecordBytes); }

 private:
  static void identity(auto& io, auto& m) {
    io.bytes(m.node);
    signed_number(io, m.pid);
    io.bytes(m.host);
    io.text(m.name, kMaxNameBytes);
    io.choice(m.rail, 0, kLastRail);
  }
  static void target(auto& io, auto& t) {
    io.number(t.access);
    io.number(t.region_id);
    io.number(t.epoch);
    io.number(t.address);
    io.number(t.length_bytes);
    io.number(t.rkey);
    io.number(t.signal_rkey);
    io.number(t.signal_address);
    io.number(t.grantable);
    io.bytes(t.proof);
    for (std::size_t i = 0; i < kLastRail; ++i) {
      io.number(t.more_rkeys[i]);
      io.number(t.more_signal_rkeys[i]);
    }
  }
};

// Type numbers are the place in Body plus one; appending to Body keeps them.
constexpr const char* kNames[] = {"hello",   "challenge", "proof",        "connect_request", "connect_reply", "ready",
                                  "done",    "lookup",    "lookup_reply", "redeem",          "redeem_reply",  "bye",
                                  "refusal", "describe",  "described",    "count",           "counted"};
static_assert(std::size(kNames) == std::variant_size_v<Body>);

std::uint32_t read32(std::span<const std::byte> bytes, std::size_t at) {
  std::uint32_t value = 0;
  Reader(bytes.subspan(at, 4)).number(value);
  return value;
}

template <std::size_t I = 0>
Result<Body> parse_body(std::size_t which, std::span<const std::byte> fields) {
  if constexpr (I == std::variant_size_v<Body>) {
    return fail(Code::unsupported, "message type {} is not known to this version ({})", which + 1, kProtocolVersion);
  } else {
    if (which != I) return parse_body<I + 1>(which, fields);
    std::variant_alternative_t<I, Body> message;
    Reader reader(fields);
    Fields::list(reader, message, static_cast<decltype(message)*>(nullptr));
    if (const char* problem = reader.problem()) {
      return fail(Code::invalid, "a {} message is malformed: {}", kNames[I], problem);
    }
    return Body(std::in_place_index<I>, std::move(message));
  }
}

}  // namespace

const char* type_name(const Body& body) {
  return kNames[body.index()];
}

Result<std::vector<std::byte>> encode(const Message& message) {
  Writer writer;
  writer.number(std::uint32_t{0});  // set below
  writer.number(static_cast<std::uint16_t>(message.body.index() + 1));
  writer.number(std::uint16_t{0});
  writer.number(message.id);
  std::visit([&](const auto& m) { Fields::list(writer, m, &m); }, message.body);
  if (const char* problem = writer.problem()) {
    return fail(Code::invalid, "a {} message cannot be sent: {}", type_name(message.body), problem);
  }
  Writer length;
  length.number(static_cast<std::uint32_t>(writer.out().size() - 4));
  std::ranges::copy(length.out(), writer.out().begin());
  return std::move(writer.out());
}

Result<std::size_t> frame_bytes(std::span<const std::byte> start, std::size_t max_bytes) {
  if (start.size() < 4) return std::size_t{0};
  const std::size_t whole = std::size_t{read32(start, 0)} + 4;
  if (whole < kHeaderBytes)
    return fail(Code::invalid, "this is not a rendezvous message: {} bytes hold no header", whole);
  if (whole > max_bytes) {
    return fail(Code::invalid, "this is not a rendezvous message: it says it has {} bytes, allowed are {}", whole,
                max_bytes);
  }
  return whole;
}

Result<Message> parse(std::span<const std::byte> frame, std::uint32_t* id) {
  STRAIT_TRY(const std::size_t whole, frame_bytes(frame));
  if (whole == 0 || whole != frame.size()) {
    return fail(Code::invalid, "this is not a rendezvous message: it says it has {} bytes, but there are {}", whole,
                frame.size());
  }
  const std::uint32_t type = read32(frame, 4);
  Message message;
  message.id = read32(frame, 8);
  if (id != nullptr) *id = message.id;
  if ((type & 0xffff) != 0) return fail(Code::invalid, "a message is malformed: bytes 6 and 7 are not zero");
  STRAIT_TRY(message.body, parse_body(std::size_t{type >> 16} - 1, frame.subspan(kHeaderBytes)));
  return message;
}

}  // namespace strait::rendezvous
