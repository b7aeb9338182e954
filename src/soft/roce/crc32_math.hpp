// SPDX-License-Identifier: Apache-2.0
// Arithmetic of polynomials over two elements, modulo that of CRC-32, in the reflected form: bit 31 is x^0, bit 0 is
// x^31. What the tables and folding constants are made from, at compile time.
#pragma once

#include <cstdint>

namespace strait::soft::roce::crc_math {

inline constexpr std::uint32_t kPolynomial = 0xedb88320;  // x^32 is implied
inline constexpr std::uint32_t kOne = 0x80000000;

constexpr std::uint32_t times_x(std::uint32_t a) {
  return (a >> 1) ^ ((a & 1) != 0 ? kPolynomial : 0);
}

constexpr std::uint32_t times(std::uint32_t a, std::uint32_t b) {
  std::uint32_t sum = 0;
  for (std::uint32_t mask = kOne; mask != 0; mask >>= 1) {
    sum ^= (b & mask) != 0 ? a : 0;  // here a has been multiplied by x as often as mask was moved
    a = times_x(a);
  }
  return sum;
}

// x^n, for any n below 2^32 - 1, the order of x: a negative power is that of the order minus it.
constexpr std::uint32_t power_of_x(std::uint64_t n) {
  std::uint32_t result = kOne;
  std::uint32_t square = kOne >> 1;  // x
  for (; n != 0; n >>= 1) {
    if ((n & 1) != 0) result = times(result, square);
    square = times(square, square);
  }
  return result;
}
inline constexpr std::uint64_t kOrder = 0xffffffff;
static_assert(power_of_x(kOrder) == kOne && power_of_x(32) == kPolynomial);

}  // namespace strait::soft::roce::crc_math
