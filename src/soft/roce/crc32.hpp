// SPDX-License-Identifier: Apache-2.0
// CRC-32 (IEEE 802.3, reflected polynomial 0xEDB88320), as fast as the CPU allows. Not the CRC-32C of SSE 4.2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace strait::soft::roce {

// Which code computes. `best` is chosen once, by what the CPU has.
enum class CrcPath : std::uint8_t {
  table,        // eight bytes at a time from 8 KiB of tables
  instruction,  // carry-less multiplication (x86) or the CRC instructions (arm64)
  wide,         // carry-less multiplication of 64 bytes at a time (x86 with AVX-512)
};
[[nodiscard]] bool crc_path_works(CrcPath path);
[[nodiscard]] CrcPath best_crc_path();
[[nodiscard]] const char* crc_path_name(CrcPath path);

// Continues a CRC whose inverted value is `state`: start with 0xffffffff, invert the end.
[[nodiscard]] std::uint32_t crc32_update(std::uint32_t state, std::span<const std::byte> bytes);
// The same on a chosen path, which must work here.
[[nodiscard]] std::uint32_t crc32_update(std::uint32_t state, std::span<const std::byte> bytes, CrcPath path);

// The state after 64 bytes of `head` and then `body`, begun with state 0. A leading zero byte leaves state 0 as it is,
// so a shorter head is one that begins with zeros. One call of this costs less than two of crc32_update.
inline constexpr std::size_t kCrcHeadBytes = 64;
[[nodiscard]] std::uint32_t crc32_head_and_body(const std::byte* head, std::span<const std::byte> body);
[[nodiscard]] std::uint32_t crc32_head_and_body(const std::byte* head, std::span<const std::byte> body, CrcPath path);

}  // namespace strait::soft::roce
