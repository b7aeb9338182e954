// SPDX-License-Identifier: Apache-2.0
// Rules of a measurement that both ends must apply in the same way.
#pragma once

#include "tool/perf_loops.hpp"

namespace strait::tool {

inline constexpr std::uint64_t kLargestSize = std::uint64_t{1} << 30;
inline constexpr std::uint64_t kClientSeed = 0xc11e;
inline constexpr std::uint64_t kServerSeed = 0x5e1f;

// A word that arrives whole and lies where a CPU can look.
[[nodiscard]] inline bool polls_word(std::uint64_t bytes, const std::string& memory) {
  return memory == "host" && (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8);
}

// What must lie in an inbox when the run is over.
enum class Expect { nothing, other_pattern, count };
[[nodiscard]] Expect expected_at_server(Test test, bool polled_word);
[[nodiscard]] Expect expected_at_client(Test test, bool polled_word);

// Own outbox: the pattern. Own inbox: something else, word 0. Signal: 0.
[[nodiscard]] Status prepare(Node& node, Arena& arena, std::uint64_t bytes, std::uint64_t seed);
// Empty when all is as it must be, otherwise what is wrong.
[[nodiscard]] Result<std::string> verify(Node& node, const Arena& arena, std::uint64_t bytes, Expect expect,
                                         std::uint64_t other_seed, std::uint64_t operations);

}  // namespace strait::tool
