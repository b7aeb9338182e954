// SPDX-License-Identifier: Apache-2.0
// Filling before and checking after a run.
#include "tool/perf_session.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tool/pattern.hpp"
#include "tool/perf_arrival.hpp"

namespace strait::tool {

Expect expected_at_server(Test test, bool polled_word) {
  switch (test) {
    case Test::put_lat: return polled_word ? Expect::count : Expect::other_pattern;
    case Test::put_bw:
    case Test::put_rate:
    case Test::send_lat: return Expect::other_pattern;
    case Test::fetch_add_lat:
    case Test::compare_swap_lat: return Expect::count;
    case Test::get_lat:
    case Test::get_bw: break;
  }
  return Expect::nothing;
}

Expect expected_at_client(Test test, bool polled_word) {
  switch (test) {
    case Test::put_lat: return polled_word ? Expect::count : Expect::other_pattern;
    case Test::get_lat:
    case Test::get_bw:
    case Test::send_lat: return Expect::other_pattern;
    default: return Expect::nothing;
  }
}

Status prepare(Node& node, Arena& arena, std::uint64_t bytes, std::uint64_t seed) {
  const std::uint64_t none = 0;
  STRAIT_CHECK(fill_memory(node, arena.outbox(), bytes, seed));
  STRAIT_CHECK(fill_memory(node, arena.inbox(), bytes, ~seed));
  STRAIT_CHECK(node.copy(arena.inbox(), &none, 8));
  // A staged buffer is nobody else's: no signal arrives there.
  return arena.shared ? arena.region.signal(kArrivalSignal).write(0) : Status{};
}

Result<std::string> verify(Node& node, const Arena& arena, std::uint64_t bytes, Expect expect, std::uint64_t other_seed,
                           std::uint64_t operations) {
  if (expect == Expect::other_pattern) {
    STRAIT_TRY(const auto wrong, check_memory(node, arena.inbox(), bytes, other_seed));
    return wrong ? wrong->text() : std::string();
  }
  if (expect == Expect::count) {
    std::uint64_t found = 0;
    STRAIT_CHECK(node.copy(&found, arena.inbox(), std::min<std::uint64_t>(bytes, 8)));
    const std::uint64_t mask = bytes >= 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * bytes)) - 1;
    if (found != (operations & mask)) return fmt::format("the word is {} instead of {}", found, operations & mask);
  }
  return std::string();
}

}  // namespace strait::tool
