// SPDX-License-Identifier: Apache-2.0
// Fields of so many bits in an array of 64-bit words, counted from bit 0 of word 0, as the CXI formats count them.
// Whole words, so that a command can be built in registers and stored in stores of 8 or 16 bytes; and no C++
// bit-fields, because where a compiler puts those is not ours to promise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "strait/wire/target.hpp"

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "strait/wire/cxi_bits.hpp: the CXI formats are read in place and need a little-endian target"
#endif

namespace strait::wire::cxi {

// What a field of that width is as a number: one bit is a bool.
template <unsigned Width>
using Number = std::conditional_t<Width == 1, bool, std::conditional_t<Width <= 32, std::uint32_t, std::uint64_t>>;

template <unsigned Width>
STRAIT_HD constexpr std::uint64_t low_bits() {
  static_assert(Width >= 1 && Width <= 64);
  return ~std::uint64_t{0} >> (64 - Width);
}

template <unsigned Bit, unsigned Width>
STRAIT_HD constexpr Number<Width> bits(std::uint64_t word) {
  static_assert(Bit + Width <= 64, "a field does not leave its word");
  return static_cast<Number<Width>>(word >> Bit & low_bits<Width>());
}

// The word with the field replaced; what does not fit the field is cut off.
template <unsigned Bit, unsigned Width>
STRAIT_HD constexpr std::uint64_t with_bits(std::uint64_t word, std::uint64_t value) {
  static_assert(Bit + Width <= 64, "a field does not leave its word");
  return (word & ~(low_bits<Width>() << Bit)) | (value & low_bits<Width>()) << Bit;
}

template <unsigned Bit, unsigned Width, std::size_t Words>
STRAIT_HD constexpr Number<Width> bits(const std::uint64_t (&words)[Words]) {
  static_assert(Bit / 64 < Words);
  return bits<Bit % 64, Width>(words[Bit / 64]);
}

template <unsigned Bit, unsigned Width, std::size_t Words>
STRAIT_HD constexpr void put_bits(std::uint64_t (&words)[Words], std::uint64_t value) {
  static_assert(Bit / 64 < Words);
  words[Bit / 64] = with_bits<Bit % 64, Width>(words[Bit / 64], value);
}

static_assert(bits<4, 8>(0xabcd) == 0xbc && bits<63, 1>(std::uint64_t{1} << 63));
static_assert(with_bits<4, 8>(0xabcd, 0x112) == 0xa12d && with_bits<0, 64>(1, 2) == 2);

}  // namespace strait::wire::cxi
