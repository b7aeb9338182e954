// SPDX-License-Identifier: Apache-2.0
// Fuzz target: a peer that says whatever it likes at the door where map and copy grants are given.
//
// The input is a row of notes, each begun by one byte: bit 0, the first fields are those of a real note; bits 1 and 2,
// how many descriptors come with it; bit 3, the peer listens. After it a well-behaved peer gets its grant.
#include <array>
#include <cstring>
#include <span>

#include "grant/door.hpp"
#include "grant/host.hpp"
#include "require.hpp"
#include "sys/process.hpp"
#include "sys/socket.hpp"

namespace {

using namespace strait;
using strait::fuzz::require;

constexpr std::int64_t kLongNs = 60'000'000'000;
constexpr std::size_t kPayload = 64;  // of a note: the rest is zero

struct Clerk final : grant::Clerk {
  Result<grant::Offer> on_ask(const grant::Subject& subject, const grant::Proof&, grant::Way) override {
    if (subject.region_id % 4 == 3) return fail(Code::denied, "no");
    grant::Offer offer;
    offer.way = grant::Way::map;
    STRAIT_TRY(offer.memory, memory.duplicate());
    return offer;
  }
  bool still_shared(const grant::Subject& subject) override { return subject.region_id % 4 != 2; }
  sys::Fd memory = sys::make_grantable_memfd("fuzz", 4096).value();
};

void visit_badly(const grant::NodeId& node, std::span<const std::byte> input) {
  const auto deadline = sys::Deadline::after_ns(kLongNs);
  auto socket = sys::unix_connect(grant::door_name(node), deadline);
  require(static_cast<bool>(socket), "the door is open");
  const auto marks = sys::make_published_file("fuzz marks", grant::kMarksBytes).value();
  while (!input.empty()) {
    const auto how = std::to_integer<unsigned>(input[0]);
    input = input.subspan(1);
    std::array<std::byte, sizeof(grant::Note)> bytes{};
    grant::Note note;
    std::size_t at = 0;
    if ((how & 1) != 0) {
      std::memcpy(bytes.data(), &note, sizeof note);
      at = offsetof(grant::Note, what);
    }
    const std::size_t n = std::min(input.size(), std::min(kPayload, bytes.size() - at));
    if (n != 0) std::memcpy(bytes.data() + at, input.data(), n);
    input = input.subspan(n);
    std::array<int, 3> fds{};
    fds.fill(marks.fd.get());
    if (!sys::send_packet(socket->get(), bytes, std::span(fds).first(how >> 1 & 3))) break;
    if ((how & 8) != 0) (void)sys::receive_packet(socket->get(), sizeof(grant::Note));
  }
}

void visit_well(const grant::NodeId& node, std::uint64_t region) {
  const auto deadline = sys::Deadline::after_ns(kLongNs);
  const auto host = grant::Host::visit(node, deadline);
  require(static_cast<bool>(host), "a peer that behaves is let in");
  const auto visits = grant::Visits::start().value();
  require(static_cast<bool>(visits->add(*host)), "and is heard");
  const grant::Subject subject{region, 1, 4096, 4096, 3, 9};
  const auto way = (*host)->ask(subject, {}, deadline);
  require(way && *way == grant::Way::map, "and gets what it asks for");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Clerk clerk;
  static const grant::NodeId node = [] {
    grant::NodeId id{};
    (void)sys::fill_random(id);
    return id;
  }();
  static const std::unique_ptr<grant::Door> door = grant::Door::open(node, clerk).value();
  static std::uint64_t region = 1000;
  const auto bytes = std::as_bytes(std::span(data, size));
  if (const auto note = grant::read_note(bytes)) require(note->text.back() == '\0', "a note's text ends");
  visit_badly(node, bytes);
  region += 4;
  visit_well(node, region);
  require(door->revoke(region, sys::Deadline::after_ns(kLongNs)).empty(), "and lets go");
  return 0;
}
