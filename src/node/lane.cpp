// SPDX-License-Identifier: Apache-2.0
// Sentences for what went wrong on a lane.
#include "node/lane.hpp"

#include <optional>
#include <string>
#include <string_view>

#include "node/core.hpp"
#include "node/near.hpp"
#include "strait/wire/mlx5.hpp"

strait_lane::strait_lane(strait::post::Lane lane) : core(std::move(lane)) {}
strait_lane::~strait_lane() = default;

namespace strait::node {

using wire::mlx5::Syndrome;

Code code_of(Syndrome syndrome) {
  switch (syndrome) {
    case Syndrome::remote_access: return Code::denied;
    case Syndrome::transport_retry_exceeded: return Code::gone;
    default: return Code::device;
  }
}

namespace {

const char* remedy_of(Syndrome syndrome) {
  switch (syndrome) {
    case Syndrome::transport_retry_exceeded:
      return "check that the peer's process runs and drives its node; then connect again";
    case Syndrome::rnr_retry_exceeded:
      return "let the peer post receives before this side sends; then open another lane";
    case Syndrome::local_length:
    case Syndrome::remote_invalid_request:
      return "post a receive at least as long as the message; then open another lane";
    default: return "open another lane";
  }
}

}  // namespace

bool peer_alive(const strait_lane& lane) {
  if (lane.peer_gone.load(std::memory_order_relaxed)) return false;
  return !lane.client || lane.client->alive();
}

namespace {

// The NIC may notice that a process died before its rendezvous connection is seen to close: gives that a moment.
bool stays_alive(const strait_lane& lane) {
  for (int i = 0; i < 50; ++i) {
    if (!peer_alive(lane)) return false;
    (void)sys::nap_on(-1, 1'000'000);
  }
  return true;
}

}  // namespace

namespace {

// Beside a syndrome, as the NICs of this project say what became of them.
constexpr std::uint8_t kVendorDeviceGone = 0xa3;
constexpr std::uint8_t kVendorPortDown = 0xa4;
constexpr std::uint8_t kVendorQueueFatal = 0xa5;

// Why a key did not open the owner's memory, as the software NICs of both ends say it to each other.
enum class Refusal : std::uint8_t { unknown_key = 0x81, wrong_domain, out_of_bounds, not_allowed };

// The byte is every vendor's own: that of another NIC, and of packets, which do not carry it, says nothing here.
std::optional<Refusal> refusal_of(strait_lane& lane) {
  const post::FirstError& first = lane.core.first_error();
  if (lane.core.queue().nic().ops()->kind != std::string_view("soft") ||
      static_cast<Syndrome>(first.syndrome) != Syndrome::remote_access)
    return std::nullopt;
  const auto refusal = static_cast<Refusal>(first.vendor);
  return refusal >= Refusal::unknown_key && refusal <= Refusal::not_allowed ? std::optional(refusal) : std::nullopt;
}

const char* right_for(post::Kind kind) {
  switch (kind) {
    case post::Kind::get: return "remote read";
    case post::Kind::fetch_add:
    case post::Kind::compare_swap: return "remote atomic";
    default: return "remote write";
  }
}

Error access_refused(strait_lane& lane, const char* name, const post::Outcome& outcome) {
  const auto with = [&](std::string cause, const char* remedy) {
    return with_remedy(fail(Code::denied, "the {} to {} was refused by the owner's NIC: {} (syndrome {:#04x})", name,
                            lane.peer_name, cause, outcome.syndrome),
                       fmt::format("{}; this lane is in error, open another", remedy));
  };
  const auto refusal = refusal_of(lane);
  if (!refusal) {
    return with("wrong or revoked key, out of bounds, or right not granted",
                "look the region up again: it may have been revoked, or shared with fewer rights");
  }
  switch (*refusal) {
    case Refusal::unknown_key:
      return with("it has no such key, or none any more",
                  "look the region up again: its owner has revoked or dropped it, or the target is of another Node");
    case Refusal::wrong_domain:
      return with("the key is not one for this connection",
                  "use a target with the peer that it was looked up at or redeemed by");
    case Refusal::out_of_bounds:
      return with("the bytes are not all inside what the key is for",
                  "stay within the target's length; one put together by hand is best looked up again");
    case Refusal::not_allowed: break;
  }
  return with(fmt::format("the key does not grant {}", right_for(outcome.kind)),
              "let the owner share the region, or make the ticket, with that right");
}

bool nic_gone(strait_lane& lane) {
  const post::FirstError& first = lane.core.first_error();
  return static_cast<Syndrome>(first.syndrome) == Syndrome::flushed && first.vendor == kVendorDeviceGone;
}

Error without_nic(const strait_lane& lane, const char* name) {
  Error error = fail(Code::gone, "the {} to {} did not complete: this Node's NIC is no longer there (syndrome {:#04x})",
                     name, lane.peer_name, static_cast<unsigned>(Syndrome::flushed));
  error.syndrome = static_cast<std::uint32_t>(Syndrome::flushed);
  return with_remedy(std::move(error),
                     "Was it removed, or its driver unloaded? Open the Node again when it is back; what was put before "
                     "may or may not have arrived");
}

// What a verbs device said about this lane by itself; nothing: an ordinary failure.
std::optional<Error> by_event(strait_lane& lane, const char* name) {
  const post::FirstError& first = lane.core.first_error();
  const auto syndrome = static_cast<Syndrome>(first.syndrome);
  std::optional<Error> error;
  if (nic_gone(lane)) {
    error = without_nic(lane, name);
  } else if (syndrome == Syndrome::transport_retry_exceeded && first.vendor == kVendorPortDown) {
    error = with_remedy(
        fail(Code::gone, "the {} to {} did not complete: the port of this Node's NIC is down (syndrome {:#04x})", name,
             lane.peer_name, first.syndrome),
        "look at the cable and the switch, and connect again when it is up; what was put before may or may "
        "not have arrived");
  } else if (syndrome == Syndrome::flushed && first.vendor == kVendorQueueFatal) {
    error = with_remedy(
        fail(Code::device, "the {} to {} did not complete: this Node's NIC gave its queue pair up (syndrome {:#04x})",
             name, lane.peer_name, first.syndrome),
        "open another lane; the kernel's log may say why");
  }
  if (error) error->syndrome = first.syndrome;
  return error;
}

}  // namespace

Error why_unusable(strait_lane& lane) {
  if (lane.mark->in_child()) return dead_after_fork("lane");
  if (lane.closed.load()) return fail(Code::gone, "the Node of this lane was closed");
  return with_remedy(
      fail(Code::invalid, "this lane to {} is owned by another thread: a lane has one owner and takes no lock",
           lane.peer_name),
      "open one lane per thread, or use the peer's own lane, which any thread may use");
}

Error why_refused(strait_lane& lane, post::Posted posted, post::Kind kind) {
  const char* const name = post::kind_name(kind);
  switch (posted) {
    case post::Posted::no_place:
      return with_remedy(
          fail(Code::again, "the lane to {} is full: {} operations are under way", lane.peer_name, lane.core.depth()),
          "wait for or detach earlier operations, or open the lane with a larger depth");
    case post::Posted::ring_full:
      return with_remedy(
          fail(Code::again, "the ring of the lane to {} has no room for this {} now", lane.peer_name, name),
          "wait for earlier operations, then try again");
    case post::Posted::too_long:
      return with_remedy(
          fail(Code::invalid, "this {} is too long: it does not fit the ring of the lane to {} even when that is empty",
               name, lane.peer_name),
          kind == post::Kind::send ? "send at most 1 GiB at once, or put"
                                   : "split it, or open the lane with a larger depth");
    case post::Posted::broken: {
      const auto first = static_cast<Syndrome>(lane.core.first_error().syndrome);
      if (auto said = by_event(lane, name)) return *std::move(said);
      if (!peer_alive(lane))
        return with_remedy(fail(Code::gone, "the peer {} is gone", lane.peer_name), "connect again");
      Error error = fail(code_of(first), "the lane to {} is in error since a {} failed: {} (syndrome {:#04x})",
                         lane.peer_name, post::kind_name(lane.core.first_error().kind), wire::mlx5::sentence(first),
                         lane.core.first_error().syndrome);
      error.syndrome = lane.core.first_error().syndrome;
      return with_remedy(std::move(error), "open another lane");
    }
    case post::Posted::ok: break;
  }
  return fail(Code::invalid, "the {} was not posted", name);
}

namespace {

Error failure_of(strait_lane& lane, const post::Outcome& outcome) {
  const char* const name = post::kind_name(outcome.kind);
  if (outcome.unstaging_failed) {
    return fail(Code::device,
                "the bytes of this {} arrived, but the accelerator could not copy them out of the bounce buffer", name);
  }
  auto syndrome = static_cast<Syndrome>(outcome.syndrome);
  if (syndrome == Syndrome::flushed || syndrome == Syndrome::transport_retry_exceeded) {
    if (auto said = by_event(lane, name)) return *std::move(said);
  }
  // A peer that ended is the reason for everything that happens to its queues afterwards.
  const auto began_with = static_cast<Syndrome>(lane.core.first_error().syndrome);
  if ((began_with == Syndrome::flushed || began_with == Syndrome::transport_retry_exceeded) && !stays_alive(lane)) {
    Error error = fail(Code::gone, "the {} did not complete: the peer {} is gone (syndrome {:#04x})", name,
                       lane.peer_name, outcome.syndrome);
    error.syndrome = outcome.syndrome;
    return with_remedy(std::move(error), "connect again; what was put before may or may not have arrived");
  }
  if (syndrome == Syndrome::flushed) {
    const post::FirstError& first = lane.core.first_error();
    syndrome = static_cast<Syndrome>(first.syndrome);
    Error error = fail(
        code_of(syndrome), "the {} to {} was dropped because an earlier {} on this lane failed: {} (syndrome {:#04x})",
        name, lane.peer_name, post::kind_name(first.kind), wire::mlx5::sentence(syndrome), first.syndrome);
    if (first.syndrome == outcome.syndrome)
      error = fail(Code::gone, "the {} to {} was dropped because its queue was closed (syndrome {:#04x})", name,
                   lane.peer_name, first.syndrome);
    error.syndrome = outcome.syndrome;
    return with_remedy(std::move(error), "open another lane");
  }
  Error error = fail(code_of(syndrome), "the {} to {} failed: {} (syndrome {:#04x})", name, lane.peer_name,
                     wire::mlx5::sentence(syndrome), outcome.syndrome);
  error = with_remedy(std::move(error), remedy_of(syndrome));
  if (syndrome == Syndrome::remote_access) error = access_refused(lane, name, outcome);
  error.syndrome = outcome.syndrome;
  return error;
}

}  // namespace

Error why_failed(strait_lane& lane, const post::Outcome& outcome) {
  Error error = failure_of(lane, outcome);
  // What fails behind the first has the same cause.
  if (lane.node && !lane.failure_told.exchange(true)) lane.node->log().write(Level::warn, "{}", error.text);
  return error;
}

}  // namespace strait::node
