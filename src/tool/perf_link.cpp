// SPDX-License-Identifier: Apache-2.0
// Messages over put and signal, tickets as text.
#include "tool/perf_link.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "sys/clock.hpp"
#include "sys/terminal.hpp"

namespace strait::tool {
namespace {

constexpr std::uint64_t kBox = 16u << 10;  // inbox, then outbox
constexpr std::uint32_t kMessageSignal = 0;
constexpr std::int64_t kInterruptTempoNs = 200'000'000;  // how often a wait looks for Ctrl-C

}  // namespace

Result<Link> Link::make(Node& node) {
  STRAIT_TRY(auto memory, node.allocate(2 * kBox));
  STRAIT_TRY(auto region, node.share(memory, access::remote_write));
  return Link(std::move(memory), std::move(region));
}

Status Link::send(Peer& peer, const Json& message, Duration timeout) {
  const std::string text = json_text(message);
  const std::uint64_t length = text.size();
  if (length + 8 > kBox) return fail(Code::invalid, "a message of {} bytes does not fit", length);
  auto* outbox = static_cast<char*>(memory_.data()) + kBox;
  std::memcpy(outbox, &length, 8);
  std::memcpy(outbox + 8, text.data(), length);
  auto done = peer.put(region_.slice(kBox, 8 + length), other_.at(0), {.signal = kMessageSignal}).wait(timeout);
  if (!done) return done.error();
  return {};
}

Result<Json> Link::receive(Duration timeout) {
  const auto deadline = sys::Deadline::after_ns(timeout.count());
  auto signal = region_.signal(kMessageSignal);
  for (;;) {
    auto seen = signal.wait_until_at_least(received_ + 1, Duration(std::min(kInterruptTempoNs, deadline.left_ns())));
    if (seen) break;
    if (seen.error().code != Code::timeout) return seen.error();
    if (sys::interrupted()) return fail(Code::gone, "interrupted");
    if (deadline.passed())
      return fail(Code::timeout, "no message came within {:.1f} s", static_cast<double>(timeout.count()) * 1e-9);
  }
  ++received_;
  const auto* inbox = static_cast<const char*>(memory_.data());
  std::uint64_t length = 0;
  std::memcpy(&length, inbox, 8);
  if (length > kBox - 8) return fail(Code::invalid, "the other side announced a message of {} bytes", length);
  Json message = parse_json(std::string_view(inbox + 8, length));
  if (!message.is_object()) return fail(Code::invalid, "the other side sent something that is not JSON");
  return message;
}

bool Link::waiting() const {
  const auto value = region_.signal(kMessageSignal).read();
  return !value || *value > received_;
}

std::string ticket_text(const Ticket& ticket) {
  std::string hex;
  for (const std::uint8_t byte : ticket.bytes()) hex += fmt::format("{:02x}", byte);
  return hex;
}

Result<Ticket> ticket_from(std::string_view hex) {
  const auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; };
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    const int high = digit(hex[i]);
    const int low = digit(hex[i + 1]);
    if (high < 0 || low < 0) return fail(Code::invalid, "a ticket came with letters that are no hexadecimal digits");
    bytes.push_back(static_cast<std::uint8_t>(high * 16 + low));
  }
  return Ticket::from(bytes);
}

Json error_message(const Error& error) {
  return {{"error", error.text}, {"remedy", error.remedy}, {"code", static_cast<int>(error.code)}};
}

std::optional<Error> error_in(const Json& message, std::string_view who) {
  if (!message.contains("error")) return std::nullopt;
  return Error{static_cast<Code>(message.value("code", 9)), 0, 0,
               fmt::format("{}: {}", who, message.value("error", "")), message.value("remedy", "")};
}

Result<Arena> Arena::make(Node& node, std::uint64_t largest, const std::string& kind, access::Access rights) {
  constexpr std::uint64_t kPage = 4096;
  const std::uint64_t capacity = (largest + kPage - 1) / kPage * kPage;
  STRAIT_TRY(auto memory, node.allocate(2 * capacity, {.near = kind}));
  STRAIT_TRY(auto region, node.share(memory, rights));
  return Arena{std::move(memory), std::move(region), capacity, rights != access::local};
}

}  // namespace strait::tool
