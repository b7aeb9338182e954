// SPDX-License-Identifier: Apache-2.0
// Fuzz target: numbers with units. Never negative, and the plain number they stand for is read back the same.
#include <fmt/format.h>

#include <string_view>

#include "base/options.hpp"
#include "require.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using strait::fuzz::require;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto bytes = strait::parse_bytes(text)) {
    require(*bytes >= 0, "bytes are not negative");
    const auto again = strait::parse_bytes(fmt::format("{}", *bytes));
    require(again && *again == *bytes, "bytes are read back the same");
  }
  if (const auto duration = strait::parse_duration_ns(text)) {
    require(*duration >= 0, "a duration is not negative");
    const auto again = strait::parse_duration_ns(fmt::format("{}ns", *duration));
    require(again && *again == *duration, "a duration is read back the same");
  }
  return 0;
}
