// SPDX-License-Identifier: Apache-2.0
#include "soft/host/store.hpp"

namespace strait::soft::host {
namespace {

std::uint32_t word_of(std::span<const std::uint8_t> code) {
  return static_cast<std::uint32_t>(code[0]) | static_cast<std::uint32_t>(code[1]) << 8 |
         static_cast<std::uint32_t>(code[2]) << 16 | static_cast<std::uint32_t>(code[3]) << 24;
}

std::int64_t signed_field(std::uint32_t word, unsigned low, unsigned bits) {
  const std::uint64_t field = word >> low & ((std::uint64_t{1} << bits) - 1);
  return static_cast<std::int64_t>(field << (64 - bits)) >> (64 - bits);
}

// Number 31 is zero as a source; as a base it is the stack pointer, which the state has under that number.
std::uint64_t general_value(const sys::ProcessorState& state, unsigned number) {
  return number == 31 ? 0 : state.registers[number];
}

std::uint64_t cut_to(std::uint64_t value, std::uint32_t width) {
  return width >= 8 ? value : value & ((std::uint64_t{1} << (8 * width)) - 1);
}

// How an index register is taken: 010 uxtw, 011 lsl, 110 sxtw, 111 sxtx.
std::optional<std::uint64_t> extended(std::uint64_t value, unsigned option) {
  switch (option) {
    case 2: return value & 0xffffffffu;
    case 3:
    case 7: return value;
    case 6: return static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::int32_t>(value)));
    default: return std::nullopt;
  }
}

std::optional<Store> single(std::uint32_t word, const sys::ProcessorState& state) {
  const bool vector = (word >> 26 & 1u) != 0;
  const unsigned size = word >> 30, base = word >> 5 & 31u, source = word & 31u;
  if ((word >> 22 & 3u) != 0) return std::nullopt;  // a load, or 16 bytes
  Store out;
  out.width = 1u << size;
  const std::uint64_t start = state.registers[base];
  if ((word >> 24 & 1u) != 0) {  // unsigned offset
    out.address = start + (std::uint64_t{word >> 10 & 0xfffu} << size);
  } else if ((word >> 21 & 1u) != 0) {                // register offset
    if ((word >> 10 & 3u) != 2) return std::nullopt;  // an atomic
    const auto index = extended(general_value(state, word >> 16 & 31u), word >> 13 & 7u);
    if (!index) return std::nullopt;
    out.address = start + (*index << ((word >> 12 & 1u) != 0 ? size : 0));
  } else {
    const unsigned kind = word >> 10 & 3u;  // 0 unscaled, 1 post-index, 2 unprivileged, 3 pre-index
    const std::uint64_t moved = start + static_cast<std::uint64_t>(signed_field(word, 12, 9));
    if (kind == 2) return std::nullopt;
    out.address = kind == 1 ? start : moved;
    if (kind != 0) {
      out.base = static_cast<int>(base);
      out.base_after = moved;
    }
  }
  out.values[0] = cut_to(vector ? state.vectors[source] : general_value(state, source), out.width);
  return out;
}

std::optional<Store> pair(std::uint32_t word, const sys::ProcessorState& state) {
  const bool vector = (word >> 26 & 1u) != 0;
  const unsigned size = word >> 30, kind = word >> 23 & 7u;  // 0 no-allocate, 1 post, 2 offset, 3 pre
  if ((word >> 22 & 1u) != 0 || kind > 3) return std::nullopt;
  Store out;
  if (vector) {
    if (size > 1) return std::nullopt;  // 16 bytes each
    out.width = 4u << size;
  } else {
    if (size != 0 && size != 2) return std::nullopt;
    out.width = size == 2 ? 8 : 4;
  }
  const unsigned base = word >> 5 & 31u;
  const std::uint64_t start = state.registers[base];
  const std::uint64_t moved = start + static_cast<std::uint64_t>(signed_field(word, 15, 7)) * out.width;
  out.address = kind == 1 ? start : moved;
  if (kind == 1 || kind == 3) {
    out.base = static_cast<int>(base);
    out.base_after = moved;
  }
  out.count = 2;
  const unsigned sources[2] = {word & 31u, word >> 10 & 31u};
  for (int i = 0; i < 2; ++i)
    out.values[i] = cut_to(vector ? state.vectors[sources[i]] : general_value(state, sources[i]), out.width);
  return out;
}

}  // namespace

std::optional<std::uint32_t> wide_store_arm64(std::span<const std::uint8_t> code) {
  if (code.size() < 4) return std::nullopt;
  const std::uint32_t word = word_of(code);
  const bool one = (word & 0xffc00000u) == 0x3d800000u;                                         // str q
  const bool two = (word & 0xffc00000u) == 0xad000000u || (word & 0xffc00000u) == 0xac000000u;  // stp q, stnp q
  const bool many = (word & 0xffff0000u) == 0x4c000000u;                                        // st1 .. st4
  return one || two || many ? std::optional<std::uint32_t>(4) : std::nullopt;
}

std::optional<Store> decode_store_arm64(std::span<const std::uint8_t> code, const sys::ProcessorState& state) {
  if (code.size() < 4) return std::nullopt;
  const std::uint32_t word = word_of(code);
  std::optional<Store> out;
  if ((word & 0x3a000000u) == 0x38000000u) {
    out = single(word, state);
  } else if ((word & 0x3a000000u) == 0x28000000u) {
    out = pair(word, state);
  } else if ((word & 0x3ffffc00u) == 0x089ffc00u || (word & 0x3ffffc00u) == 0x089f7c00u) {  // stlr, stllr
    out.emplace();
    out->width = 1u << (word >> 30);
    out->address = state.registers[word >> 5 & 31u];
    out->values[0] = cut_to(general_value(state, word & 31u), out->width);
  }
  if (out) out->length = 4;
  return out;
}

#if defined(__aarch64__)
std::optional<std::uint32_t> wide_store(std::span<const std::uint8_t> code) {
  return wide_store_arm64(code);
}
std::optional<Store> decode_store(std::span<const std::uint8_t> code, const sys::ProcessorState& state) {
  return decode_store_arm64(code, state);
}
#endif

}  // namespace strait::soft::host
