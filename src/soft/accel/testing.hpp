// SPDX-License-Identifier: Apache-2.0
// What the accelerator's tests share: bytes to recognise, counters by name, waiting for a copy.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "soft/accel/accelerator.hpp"
#include "sys/clock.hpp"
#include "sys/pause.hpp"

namespace strait::soft::accel::testing {

inline std::vector<std::byte> pattern(std::size_t n, std::uint32_t seed = 1) {
  std::vector<std::byte> bytes(n);
  std::uint32_t state = seed * 2654435761u + 1;
  for (std::byte& each : bytes) {
    state = state * 1664525u + 1013904223u;
    each = static_cast<std::byte>(state >> 24);
  }
  return bytes;
}

template <class Bytes>
std::uint64_t host(const Bytes& bytes) {
  return reinterpret_cast<std::uint64_t>(bytes.data());
}

// The value of `name` in "a=1,b=2"; a name that is not there fails the test.
inline std::uint64_t number_in(std::string_view text, std::string_view name) {
  const std::string all = "," + std::string(text);
  const std::string wanted = "," + std::string(name) + "=";
  const std::size_t at = all.find(wanted);
  EXPECT_NE(at, std::string::npos) << name << " is not in " << text;
  return at == std::string::npos ? 0 : std::stoull(all.substr(at + wanted.size()));
}

inline std::uint64_t count(const Accelerator& soft, std::string_view name) {
  return number_in(soft.counters(), name);
}

inline void finish(const Accelerator& soft, std::uint64_t ticket) {
  const sys::Deadline deadline = sys::Deadline::after_ns(20'000'000'000);
  std::int32_t done = 0;
  for (std::uint32_t turn = 0; (done = soft.copy_done(ticket)) == 0 && !deadline.passed(); ++turn)
    sys::pause_turn(turn);
  ASSERT_EQ(done, 1) << "ticket " << ticket;
}

}  // namespace strait::soft::accel::testing
