// SPDX-License-Identifier: Apache-2.0
#include "soft/cassini/atomics.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>

#include "soft/cassini/engine_testing.hpp"

namespace strait::soft::cassini {
namespace {

using wire::AtomicOp;
using wire::AtomicType;
using wire::CswapOp;
using wire::ReturnCode;

template <class T>
std::uint64_t word_of(T value) {
  std::uint64_t word = 0;
  std::memcpy(&word, &value, sizeof value);
  return word;
}

template <class T>
T result_of(AtomicOp op, AtomicType type, T memory, T one, T two = T{}, CswapOp cswap = CswapOp::eq) {
  AtomicCommand command{.op = op, .type = type, .cswap = cswap};
  command.operand1[0] = word_of(one);
  command.operand2[0] = word_of(two);
  const std::uint64_t old[2] = {word_of(memory), 0};
  const Applied applied = apply(command, old);
  EXPECT_EQ(applied.code, ReturnCode::ok);
  T value;
  std::memcpy(&value, applied.value, sizeof value);
  return value;
}

template <class T>
void integers(AtomicType type) {
  const T high = std::numeric_limits<T>::max();
  const T low = std::numeric_limits<T>::min();
  EXPECT_EQ(result_of<T>(AtomicOp::min, type, high, 3), 3);
  EXPECT_EQ(result_of<T>(AtomicOp::max, type, low, 3), 3);
  EXPECT_EQ(result_of<T>(AtomicOp::sum, type, high, 1), low) << "wraps";
  EXPECT_EQ(result_of<T>(AtomicOp::lor, type, 0, 0), 0);
  EXPECT_EQ(result_of<T>(AtomicOp::lor, type, 6, 0), 1);
  EXPECT_EQ(result_of<T>(AtomicOp::land, type, 6, 2), 1);
  EXPECT_EQ(result_of<T>(AtomicOp::land, type, 6, 0), 0);
  EXPECT_EQ(result_of<T>(AtomicOp::lxor, type, 6, 2), 0);
  EXPECT_EQ(result_of<T>(AtomicOp::lxor, type, 6, 0), 1);
  EXPECT_EQ(result_of<T>(AtomicOp::bor, type, 6, 9), 15);
  EXPECT_EQ(result_of<T>(AtomicOp::band, type, 6, 12), 4);
  EXPECT_EQ(result_of<T>(AtomicOp::bxor, type, 6, 12), 10);
  EXPECT_EQ(result_of<T>(AtomicOp::swap, type, 6, 12), 12);
  EXPECT_EQ(result_of<T>(AtomicOp::axor, type, 0x11, 0x20, 0x70), 0x21) << "memory without the mask, then xor";
}

TEST(CassiniAtomics, IntegersOfEverySize) {
  integers<std::int8_t>(AtomicType::int8);
  integers<std::uint8_t>(AtomicType::uint8);
  integers<std::int16_t>(AtomicType::int16);
  integers<std::uint16_t>(AtomicType::uint16);
  integers<std::int32_t>(AtomicType::int32);
  integers<std::uint32_t>(AtomicType::uint32);
  integers<std::int64_t>(AtomicType::int64);
  integers<std::uint64_t>(AtomicType::uint64);
  EXPECT_EQ(result_of<std::int8_t>(AtomicOp::min, AtomicType::int8, -1, 1), -1);
  EXPECT_EQ(result_of<std::uint8_t>(AtomicOp::min, AtomicType::uint8, 255, 1), 1);
}

template <class T>
void compares(AtomicType type) {
  const struct {
    CswapOp op;
    bool below, equal, above;  // operand 2 against memory
  } rows[] = {{CswapOp::eq, false, true, false}, {CswapOp::ne, true, false, true}, {CswapOp::le, true, true, false},
              {CswapOp::lt, true, false, false}, {CswapOp::ge, false, true, true}, {CswapOp::gt, false, false, true}};
  for (const auto& row : rows) {
    const T kept = 100;
    const T one = 23;
    EXPECT_EQ(result_of<T>(AtomicOp::cswap, type, kept, one, 99, row.op), row.below ? one : kept);
    EXPECT_EQ(result_of<T>(AtomicOp::cswap, type, kept, one, 100, row.op), row.equal ? one : kept);
    EXPECT_EQ(result_of<T>(AtomicOp::cswap, type, kept, one, 101, row.op), row.above ? one : kept);
  }
}

TEST(CassiniAtomics, SixWaysToCompare) {
  compares<std::int8_t>(AtomicType::int8);
  compares<std::uint8_t>(AtomicType::uint8);
  compares<std::int16_t>(AtomicType::int16);
  compares<std::uint16_t>(AtomicType::uint16);
  compares<std::int32_t>(AtomicType::int32);
  compares<std::uint32_t>(AtomicType::uint32);
  compares<std::int64_t>(AtomicType::int64);
  compares<std::uint64_t>(AtomicType::uint64);
  compares<float>(AtomicType::float32);
  compares<double>(AtomicType::float64);
}

TEST(CassiniAtomics, FloatsAndWhatTheyRunInto) {
  EXPECT_EQ(result_of(AtomicOp::sum, AtomicType::float32, 1.5f, 2.25f), 3.75f);
  EXPECT_EQ(result_of(AtomicOp::min, AtomicType::float64, 1.5, -2.0), -2.0);
  EXPECT_EQ(result_of(AtomicOp::max, AtomicType::float64, 1.5, -2.0), 1.5);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(result_of(AtomicOp::min, AtomicType::float64, nan, 2.0), 2.0) << "the number wins";
  EXPECT_EQ(result_of(AtomicOp::max, AtomicType::float64, 2.0, nan), 2.0);
  EXPECT_EQ(result_of(AtomicOp::cswap, AtomicType::float64, 0.0, 7.0, -0.0), 7.0) << "as numbers, not as bits";
  EXPECT_EQ(result_of(AtomicOp::cswap, AtomicType::float64, nan, 7.0, nan, CswapOp::ne), 7.0);

  const auto flags = [](double memory, double one) {
    AtomicCommand command{.op = AtomicOp::sum, .type = AtomicType::float64};
    command.operand1[0] = word_of(one);
    const std::uint64_t old[2] = {word_of(memory), 0};
    return apply(command, old).floating;
  };
  const double inf = std::numeric_limits<double>::infinity();
  const double most = std::numeric_limits<double>::max();
  EXPECT_EQ(flags(1, 2), 0u);
  EXPECT_EQ(flags(inf, -inf), kFpInvalid);
  EXPECT_EQ(flags(most, most), kFpOverflow | kFpInexact);
  EXPECT_EQ(flags(1, 1e-30), kFpInexact);
}

TEST(CassiniAtomics, ComplexNumbersAndSixteenBytes) {
  AtomicCommand sum{.op = AtomicOp::sum, .type = AtomicType::complex_float64};
  sum.operand1[0] = word_of(1.0);
  sum.operand1[1] = word_of(2.0);
  const std::uint64_t old[2] = {word_of(10.0), word_of(20.0)};
  Applied applied = apply(sum, old);
  EXPECT_EQ(applied.value[0], word_of(11.0));
  EXPECT_EQ(applied.value[1], word_of(22.0));

  AtomicCommand swap = sum;
  swap.op = AtomicOp::cswap;
  swap.operand2[0] = old[0];
  swap.operand2[1] = word_of(21.0);
  EXPECT_FALSE(apply(swap, old).stores) << "one half differs";
  swap.cswap = CswapOp::ne;
  EXPECT_TRUE(apply(swap, old).stores);
  swap.cswap = CswapOp::lt;
  EXPECT_EQ(apply(swap, old).code, ReturnCode::amo_inval_op_error) << "complex numbers have no order";

  AtomicCommand wide{.op = AtomicOp::cswap, .type = AtomicType::uint128};
  wide.operand1[0] = 5;
  wide.operand1[1] = 6;
  wide.operand2[0] = old[0];
  wide.operand2[1] = old[1];
  applied = apply(wide, old);
  EXPECT_TRUE(applied.stores);
  EXPECT_EQ(applied.value[1], 6u);
  wide.operand2[1] ^= 1;
  EXPECT_FALSE(apply(wide, old).stores);

  AtomicCommand pair{.op = AtomicOp::sum, .type = AtomicType::complex_float32};
  const float one[2] = {1, 2};
  const float there[2] = {3, 4};
  std::uint64_t memory[2] = {};
  std::memcpy(pair.operand1, one, sizeof one);
  std::memcpy(memory, there, sizeof there);
  applied = apply(pair, memory);
  float result[2];
  std::memcpy(result, applied.value, sizeof result);
  EXPECT_EQ(result[0], 4.0f);
  EXPECT_EQ(result[1], 6.0f);
}

TEST(CassiniAtomics, OnlyWhatTheHardwareHas) {
  // By type: integers 0..7, float, complex, double, complex, 128 bits. One bit for each operation that exists.
  const auto ops = [](std::uint32_t type) {
    std::uint32_t valid = 0;
    for (std::uint32_t op = 0; op < 16; ++op) {
      const AtomicCommand command{.op = static_cast<AtomicOp>(op), .type = static_cast<AtomicType>(type)};
      const std::uint64_t memory[2] = {};
      if (apply(command, memory).code == ReturnCode::ok) valid |= 1u << op;
    }
    return valid;
  };
  for (std::uint32_t type = 0; type < 8; ++type) EXPECT_EQ(ops(type), 0x1ff7u);
  EXPECT_EQ(ops(8), 0x0c07u);
  EXPECT_EQ(ops(9), 0x0c04u);
  EXPECT_EQ(ops(10), 0x0c07u);
  EXPECT_EQ(ops(11), 0x0c04u);
  EXPECT_EQ(ops(12), 0x0800u);
  for (std::uint32_t type = 13; type < 16; ++type) EXPECT_EQ(ops(type), 0u);
  for (std::uint32_t compare = 6; compare < 8; ++compare) {
    const AtomicCommand command{
        .op = AtomicOp::cswap, .type = AtomicType::uint64, .cswap = static_cast<CswapOp>(compare)};
    EXPECT_FALSE(has_atomic(command));
  }
}

TEST(CassiniAtomics, LandingLooksAtTheAddress) {
  bench::Bytes bytes(64);
  bytes.value<std::uint64_t>(8) = 40;
  AtomicCommand command{.op = AtomicOp::sum, .type = AtomicType::uint64};
  command.operand1[0] = 2;
  for (const bool direct : {true, false}) {
    Extents at;
    at.push_back({.memory = &bytes, .address = 8, .direct = direct ? bytes.at(8) : nullptr, .bytes = 8});
    const Landed landed = land(command, at);
    EXPECT_EQ(landed.code, ReturnCode::ok);
    EXPECT_EQ(landed.fetched[0], direct ? 40u : 42u);
    Extents crooked;
    crooked.push_back({.memory = &bytes, .address = 12, .direct = direct ? bytes.at(12) : nullptr, .bytes = 8});
    EXPECT_EQ(land(command, crooked).code, ReturnCode::amo_align_error);
    Extents cut;
    cut.push_back({.memory = &bytes, .address = 8, .direct = nullptr, .bytes = 4});
    EXPECT_EQ(land(command, cut).code, ReturnCode::amo_align_error);
  }
  EXPECT_EQ(bytes.value<std::uint64_t>(8), 44u);
  EXPECT_EQ(land(command, {}).code, ReturnCode::no_translation);
  command.type = AtomicType::uint128;
  EXPECT_EQ(land(command, {}).code, ReturnCode::amo_inval_op_error);
}

TEST(CassiniAtomics, AnErrorThatIsSignalledLeavesMemoryAlone) {
  bench::Bytes bytes(64);
  bytes.value<double>(0) = std::numeric_limits<double>::infinity();
  AtomicCommand command{.op = AtomicOp::sum, .type = AtomicType::float64};
  command.operand1[0] = word_of(-std::numeric_limits<double>::infinity());
  Extents at;
  at.push_back({.memory = &bytes, .address = 0, .direct = bytes.at(0), .bytes = 8});
  EXPECT_EQ(land(command, at, kFpInvalid).code, ReturnCode::amo_fp_invalid);
  EXPECT_EQ(bytes.value<double>(0), std::numeric_limits<double>::infinity());
  EXPECT_EQ(land(command, at).code, ReturnCode::ok);
  EXPECT_TRUE(std::isnan(bytes.value<double>(0)));
}

// Processors add to the same words at the same time: no addition is lost.
TEST(CassiniAtomics, ProcessorsAndTheDeviceShareAWord) {
  alignas(16) std::uint64_t words[2] = {};
  constexpr std::uint64_t kRounds = 20000;
  std::thread processor([&] {
    for (std::uint64_t i = 0; i < kRounds; ++i) __atomic_fetch_add(words, 1, __ATOMIC_RELAXED);
  });
  AtomicCommand command{.op = AtomicOp::sum, .type = AtomicType::uint64};
  command.operand1[0] = 1;
  Extents at;
  at.push_back({.memory = nullptr, .address = 0, .direct = reinterpret_cast<std::byte*>(words), .bytes = 8});
  for (std::uint64_t i = 0; i < kRounds; ++i) EXPECT_EQ(land(command, at).code, ReturnCode::ok);
  processor.join();
  EXPECT_EQ(words[0], 2 * kRounds);

  Extents both;
  both.push_back({.memory = nullptr, .address = 0, .direct = reinterpret_cast<std::byte*>(words), .bytes = 16});
  AtomicCommand wide{.op = AtomicOp::cswap, .type = AtomicType::uint128};
  wide.operand2[0] = words[0];
  wide.operand1[0] = 1;
  wide.operand1[1] = 2;
  const Landed landed = land(wide, both);
  EXPECT_EQ(landed.code, ReturnCode::ok);
  EXPECT_EQ(landed.fetched[0], 2 * kRounds);
  EXPECT_EQ(words[1], 2u);
}

}  // namespace
}  // namespace strait::soft::cassini
