// SPDX-License-Identifier: Apache-2.0
// Text for people: 80 columns, sizes and speeds with units, colour only where a terminal wants it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace strait::tool {

inline constexpr std::size_t kColumns = 80;

// Breaks at blanks; the first line begins at column `indent`, the others at `hanging`. Lines that the text breaks
// itself stay broken. Ends with a newline.
[[nodiscard]] std::string wrap(std::string_view text, std::size_t indent, std::size_t hanging,
                               std::size_t columns = kColumns);

[[nodiscard]] std::string size_text(std::uint64_t bytes);       // "16 MiB", "8 B", "1000 B"
[[nodiscard]] std::string rate_text(double bytes_per_second);   // "13.2 GB/s"
[[nodiscard]] std::string time_text(double seconds);            // "84 ns", "0.31 us", "12.5 ms", "3.9 s"
[[nodiscard]] std::string address_text(std::uint64_t address);  // "0x7e00_0000_0000"

enum class Tint { plain, strong, good, bad, faint };
// The text itself when stdout is no terminal or colour is not wanted.
[[nodiscard]] std::string tinted(std::string_view text, Tint tint);

}  // namespace strait::tool
