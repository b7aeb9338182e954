// SPDX-License-Identifier: Apache-2.0
// How the two ends of a measurement talk: JSON messages, each a put into the other's inbox that raises a signal. And
// the memory that is measured.
#pragma once

#include <cstdint>
#include <optional>

#include "tool/perf.hpp"

namespace strait::tool {

inline constexpr const char* kPerfClientName = "perf/client";

// One per session on either side. The server's is reached by a ticket, so that it dies with the session.
class Link {
 public:
  [[nodiscard]] static Result<Link> make(Node& node);
  void reach(const Target& inbox) { other_ = inbox; }
  [[nodiscard]] Region& region() { return region_; }

  [[nodiscard]] Status send(Peer& peer, const Json& message, Duration timeout);
  // Ends early with Code::gone when the user interrupts.
  [[nodiscard]] Result<Json> receive(Duration timeout);
  // Cheap: for loops that wait for something else at the same time.
  [[nodiscard]] bool waiting() const;

 private:
  Link(Memory memory, Region region) : memory_(std::move(memory)), region_(std::move(region)) {}
  Memory memory_;
  Region region_;
  Target other_;
  std::uint64_t received_ = 0;
};

[[nodiscard]] std::string ticket_text(const Ticket& ticket);
[[nodiscard]] Result<Ticket> ticket_from(std::string_view hex);
[[nodiscard]] Json error_message(const Error& error);
// The error the other side sent, if the message is one.
[[nodiscard]] std::optional<Error> error_in(const Json& message, std::string_view who);

// The measured memory of one side: an outbox, then an inbox of the same size. Signal 0 counts what arrived.
struct Arena {
  Memory memory;
  Region region;
  std::uint64_t capacity = 0;
  bool shared = true;  // with the other side

  [[nodiscard]] static Result<Arena> make(Node& node, std::uint64_t largest, const std::string& kind,
                                          access::Access rights = access::all);
  [[nodiscard]] std::byte* outbox() const { return static_cast<std::byte*>(memory.data()); }
  [[nodiscard]] std::byte* inbox() const { return outbox() + capacity; }
};

}  // namespace strait::tool
