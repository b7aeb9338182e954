// SPDX-License-Identifier: Apache-2.0
// Fuzz target: the decoder of stores to a doorbell. Whatever instruction it is shown, it takes only bytes
// that are there, says of a store what fits a word, and says the same again of the same bytes.
//
// Input: how many bytes are code (1 byte), the code, and what fills the registers.
#include <algorithm>
#include <cstring>
#include <memory>
#include <span>

#include "require.hpp"
#include "soft/host/store.hpp"

namespace {

namespace host = strait::soft::host;
using host::Store;
using strait::fuzz::require;
using strait::sys::ProcessorState;
using Decoder = std::optional<Store> (*)(std::span<const std::uint8_t>, const ProcessorState&);

bool same(const Store& a, const Store& b) {
  return a.address == b.address && a.width == b.width && a.count == b.count && a.values[0] == b.values[0] &&
         a.values[1] == b.values[1] && a.length == b.length && a.base == b.base && a.base_after == b.base_after;
}

// Code of exactly its size: AddressSanitizer sees the first byte read beyond it.
std::optional<Store> decode(Decoder decoder, const std::uint8_t* code, std::size_t bytes, const ProcessorState& state) {
  const std::unique_ptr<std::uint8_t[]> exact(new std::uint8_t[bytes]);
  if (bytes != 0) std::memcpy(exact.get(), code, bytes);
  return decoder({exact.get(), bytes}, state);
}

void check(Decoder decoder, const std::uint8_t* code, std::size_t bytes, const ProcessorState& state, bool fixed) {
  const std::optional<Store> store = decode(decoder, code, bytes, state);
  if (!store) return;
  require(store->length >= 1 && store->length <= bytes, "an instruction ends within what was shown");
  require(!fixed || store->length == 4, "instructions of arm64 have four bytes");
  require(store->width == 1 || store->width == 2 || store->width == 4 || store->width == 8, "a value has a width");
  require(store->count == 1 || store->count == 2, "a store has one value or two");
  require(store->base >= -1 && store->base < 32, "a register has a number");
  for (std::uint32_t i = 0; i < store->count; ++i) {
    require(store->width == 8 || store->values[i] >> (8 * store->width) == 0, "a value fits its width");
  }
  const std::optional<Store> again = decode(decoder, code, bytes, state);
  require(again && same(*store, *again), "the same bytes are the same store");
  const std::optional<Store> alone = decode(decoder, code, store->length, state);
  require(alone && same(*store, *alone), "what follows an instruction is no part of it");
  for (std::size_t shorter = 0; shorter < store->length; ++shorter) {
    require(!decode(decoder, code, shorter, state), "a part of an instruction is none");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const std::size_t bytes = std::min<std::size_t>(data[0] % 24, size - 1);
  const std::uint8_t* const code = data + 1;
  const std::uint8_t* rest = code + bytes;
  std::size_t left = size - 1 - bytes;
  ProcessorState state;
  const auto fill = [&](std::uint64_t& word, std::uint64_t otherwise) {
    word = otherwise;
    const std::size_t n = std::min<std::size_t>(8, left);
    if (n != 0) std::memcpy(&word, rest, n);
    rest += n, left -= n;
  };
  fill(state.at, 0x400000);
  for (std::size_t i = 0; i < 32; ++i) fill(state.registers[i], 0x7f0000001000 + 0x0101010101010101 * i);
  for (std::size_t i = 0; i < 32; ++i) fill(state.vectors[i], 0xfedcba9876543210 ^ i);
  check(host::decode_store_x86, code, bytes, state, false);
  check(host::decode_store_arm64, code, bytes, state, true);
  return 0;
}
