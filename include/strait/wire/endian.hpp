// SPDX-License-Identifier: Apache-2.0
// Integers that carry their byte order in their type. beN is aligned like uintN_t; packed_beN has alignment 1.
// Reading one as a number takes value(), making one takes braces: a forgotten swap does not compile.
#pragma once

#include <cstdint>
#include <type_traits>

#include "strait/wire/target.hpp"

#if !defined(__BYTE_ORDER__) || (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__ && __BYTE_ORDER__ != __ORDER_BIG_ENDIAN__)
#error "strait/wire/endian.hpp: this target's byte order is not known"
#endif

namespace strait::wire {

// Shifts, not builtins: nvcc has none for device code, and every compiler here turns these into its one instruction.
STRAIT_HD constexpr std::uint16_t swap_bytes(std::uint16_t v) {
  return static_cast<std::uint16_t>(v << 8 | v >> 8);
}
STRAIT_HD constexpr std::uint32_t swap_bytes(std::uint32_t v) {
  return v << 24 | (v & 0xff00u) << 8 | (v >> 8 & 0xff00u) | v >> 24;
}
STRAIT_HD constexpr std::uint64_t swap_bytes(std::uint64_t v) {
  return v << 56 | (v & 0xff00u) << 40 | (v & 0xff0000u) << 24 | (v & 0xff000000u) << 8 | (v >> 8 & 0xff000000u) |
         (v >> 24 & 0xff0000u) | (v >> 40 & 0xff00u) | v >> 56;
}

template <class Integer>
STRAIT_HD constexpr Integer swap_to_big(Integer v) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  return swap_bytes(v);
#else
  return v;
#endif
}

// Big-endian integer. Trivial, so that arrays of format structs can lie over ring memory.
template <class Integer>
struct BigEndian {
  static_assert(std::is_unsigned_v<Integer>);

  BigEndian() = default;
  STRAIT_HD constexpr explicit BigEndian(Integer v) : raw_(swap_to_big(v)) {}

  // The memory image, for loads and stores of a whole word and for bytes that are opaque to us.
  STRAIT_HD static constexpr BigEndian from_raw(Integer raw) {
    BigEndian out{};
    out.raw_ = raw;
    return out;
  }
  STRAIT_HD constexpr Integer value() const { return swap_to_big(raw_); }
  STRAIT_HD constexpr Integer raw() const { return raw_; }

  STRAIT_HD friend constexpr bool operator==(BigEndian a, BigEndian b) { return a.raw_ == b.raw_; }
  STRAIT_HD friend constexpr bool operator!=(BigEndian a, BigEndian b) { return a.raw_ != b.raw_; }

 private:
  Integer raw_;
};

// The same number at an address of any alignment: a byte array, most significant byte first.
template <class Integer>
struct PackedBigEndian {
  static_assert(std::is_unsigned_v<Integer>);

  PackedBigEndian() = default;
  STRAIT_HD constexpr explicit PackedBigEndian(Integer v) : bytes_{} {
    for (unsigned i = 0; i < sizeof(Integer); ++i)
      bytes_[i] = static_cast<std::uint8_t>(v >> (8 * (sizeof(Integer) - 1 - i)));
  }

  STRAIT_HD constexpr Integer value() const {
    std::uint64_t v = 0;
    for (unsigned i = 0; i < sizeof(Integer); ++i) v = v << 8 | bytes_[i];
    return static_cast<Integer>(v);
  }

  STRAIT_HD friend constexpr bool operator==(const PackedBigEndian& a, const PackedBigEndian& b) {
    return a.value() == b.value();
  }
  STRAIT_HD friend constexpr bool operator!=(const PackedBigEndian& a, const PackedBigEndian& b) { return !(a == b); }

 private:
  std::uint8_t bytes_[sizeof(Integer)];
};

// 24 bits, as the RoCE headers have them; the upper byte of what is stored is cut off.
struct packed_be24 {
  packed_be24() = default;
  STRAIT_HD constexpr explicit packed_be24(std::uint32_t v)
      : bytes_{static_cast<std::uint8_t>(v >> 16), static_cast<std::uint8_t>(v >> 8), static_cast<std::uint8_t>(v)} {}
  STRAIT_HD constexpr std::uint32_t value() const {
    return std::uint32_t{bytes_[0]} << 16 | std::uint32_t{bytes_[1]} << 8 | bytes_[2];
  }

 private:
  std::uint8_t bytes_[3];
};

using be16 = BigEndian<std::uint16_t>;
using be32 = BigEndian<std::uint32_t>;
using be64 = BigEndian<std::uint64_t>;
using packed_be16 = PackedBigEndian<std::uint16_t>;
using packed_be32 = PackedBigEndian<std::uint32_t>;
using packed_be64 = PackedBigEndian<std::uint64_t>;

static_assert(sizeof(be16) == 2 && alignof(be16) == alignof(std::uint16_t) && std::is_trivial_v<be16>);
static_assert(sizeof(be32) == 4 && alignof(be32) == alignof(std::uint32_t) && std::is_trivial_v<be32>);
static_assert(sizeof(be64) == 8 && alignof(be64) == alignof(std::uint64_t) && std::is_trivial_v<be64>);
static_assert(sizeof(packed_be16) == 2 && alignof(packed_be16) == 1 && std::is_trivial_v<packed_be16>);
static_assert(sizeof(packed_be32) == 4 && alignof(packed_be32) == 1 && std::is_trivial_v<packed_be32>);
static_assert(sizeof(packed_be64) == 8 && alignof(packed_be64) == 1 && std::is_trivial_v<packed_be64>);
static_assert(sizeof(packed_be24) == 3 && alignof(packed_be24) == 1 && std::is_trivial_v<packed_be24>);
static_assert(packed_be24{0xff112233u}.value() == 0x112233u);
static_assert(be32{0x11223344u}.value() == 0x11223344u && packed_be32{0x11223344u}.value() == 0x11223344u);

}  // namespace strait::wire
