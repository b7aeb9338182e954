// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <thread>

#include "soft/hsa/testing.hpp"

namespace strait::soft::hsa::testing {
namespace {

constexpr std::uint64_t kLongNs = 20'000'000'000;

class HsaCopy : public HsaTest {};

TEST_F(HsaCopy, BytesGoInAcrossAndOut) {
  const std::size_t size = (std::size_t{3} << 20) + 77;
  const auto bytes = pattern(size, 5);
  std::byte* first = device(size);
  std::byte* second = allocate(pool(agents_[2], kFlagCoarseGrained), size);
  put(first, bytes);
  EXPECT_EQ(copy(second, agents_[2], first, gpu_, size), 0);
  EXPECT_EQ(get(second, size), bytes);
  EXPECT_EQ(copy(second + 1, agents_[2], second, agents_[2], 1000), 0) << "overlapping";
  EXPECT_EQ(get(second + 1, 1000), std::vector<std::byte>(bytes.begin(), bytes.begin() + 1000));
  EXPECT_EQ(free(first), kSuccess);
  EXPECT_EQ(free(second), kSuccess);
}

TEST_F(HsaCopy, MemoryThatIsNotLockedFaultsBelowZero) {
  std::byte* memory = device(8192);
  std::vector<std::byte> mine(8192);
  EXPECT_LT(copy(memory, gpu_, mine.data(), cpu_, mine.size()), 0);
  EXPECT_LT(copy(memory, gpu_, memory + 4096, gpu_, 8192), 0) << "beyond the allocation";
  std::byte* gone = device(8192);
  EXPECT_EQ(free(gone), kSuccess);
  EXPECT_LT(copy(memory, gpu_, gone, gpu_, 8), 0);
  EXPECT_LT(copy(memory, gpu_, reinterpret_cast<void*>(std::uintptr_t{1} << 40), gpu_, SIZE_MAX), 0);
  EXPECT_EQ(free(memory), kSuccess);
}

TEST_F(HsaCopy, TheCpuCopiesItsOwn) {
  const auto bytes = pattern(10'000, 9);
  std::vector<std::byte> into(bytes.size());
  EXPECT_EQ(copy(into.data(), cpu_, bytes.data(), cpu_, bytes.size()), 0);
  EXPECT_EQ(into, bytes);
  std::byte* memory = device(10'000);
  EXPECT_EQ(HSA(hsa_memory_copy)(memory, bytes.data(), bytes.size()), kSuccess) << "this one locks for the program";
  into.assign(bytes.size(), std::byte{0});
  EXPECT_EQ(HSA(hsa_memory_copy)(into.data(), memory, bytes.size()), kSuccess);
  EXPECT_EQ(into, bytes);
  EXPECT_EQ(HSA(hsa_memory_copy)(memory, bytes.data(), std::size_t{1} << 30), kInvalidAllocation);
  EXPECT_EQ(free(memory), kSuccess);
  EXPECT_EQ(HSA(hsa_memory_copy)(memory, bytes.data(), 8), kInvalidAllocation) << "freed";
}

TEST_F(HsaCopy, ACopyWaitsForItsSignals) {
  std::byte* memory = device(8192);
  ASSERT_EQ(HSA(hsa_amd_memory_fill)(memory, 0x01010101, 2048), kSuccess);
  Signal first{}, second{};
  ASSERT_EQ(HSA(hsa_signal_create)(1, 0, nullptr, &first), kSuccess);
  ASSERT_EQ(HSA(hsa_signal_create)(2, 0, nullptr, &second), kSuccess);
  const Signal after[] = {first, second};
  ASSERT_EQ(HSA(hsa_amd_memory_async_copy)(memory, gpu_, memory + 4096, gpu_, 4096, 2, after, done_), kSuccess);
  // One that waits for nothing is not held up behind it.
  Signal other{};
  ASSERT_EQ(HSA(hsa_signal_create)(5, 0, nullptr, &other), kSuccess);
  ASSERT_EQ(HSA(hsa_amd_memory_async_copy)(memory, gpu_, memory + 4096, gpu_, 64, 0, nullptr, other), kSuccess);
  EXPECT_EQ(HSA(hsa_signal_wait_scacquire)(other, kConditionEq, 4, kLongNs, 0), 4);
  HSA(hsa_signal_subtract_screlease)(first, 1);
  EXPECT_EQ(HSA(hsa_signal_load_scacquire)(done_), 1);
  HSA(hsa_signal_store_screlease)(second, 0);
  EXPECT_EQ(HSA(hsa_signal_wait_scacquire)(done_, kConditionLt, 1, kLongNs, 0), 0);
  for (const Signal each : {first, second, other}) EXPECT_EQ(HSA(hsa_signal_destroy)(each), kSuccess);
  EXPECT_EQ(free(memory), kSuccess);
}

TEST_F(HsaCopy, MemoryFreedMeanwhileLivesUntilTheCopyIsOver) {
  std::byte* from = device(std::size_t{8} << 20);
  std::byte* to = device(std::size_t{8} << 20);
  ASSERT_EQ(HSA(hsa_amd_memory_fill)(from, 7, std::size_t{2} << 20), kSuccess);
  Signal gate{};
  ASSERT_EQ(HSA(hsa_signal_create)(1, 0, nullptr, &gate), kSuccess);
  ASSERT_EQ(HSA(hsa_amd_memory_async_copy)(to, gpu_, from, gpu_, std::size_t{8} << 20, 1, &gate, done_), kSuccess);
  EXPECT_EQ(free(from), kSuccess);
  HSA(hsa_signal_store_screlease)(gate, 0);
  EXPECT_EQ(HSA(hsa_signal_wait_scacquire)(done_, kConditionLt, 1, kLongNs, 0), 0);
  EXPECT_EQ(get(to, 4)[0], std::byte{7});
  EXPECT_EQ(HSA(hsa_signal_destroy)(gate), kSuccess);
  EXPECT_EQ(free(to), kSuccess);
}

TEST_F(HsaCopy, EnginesAreNamedAndChecked) {
  std::uint32_t mask = 0;
  EXPECT_EQ(HSA(hsa_amd_memory_copy_engine_status)(gpu_, cpu_, &mask), kSuccess);
  EXPECT_NE(mask, 0u);
  std::byte* memory = device(8192);
  EXPECT_EQ(
      HSA(hsa_amd_memory_async_copy_on_engine)(memory, gpu_, memory + 4096, gpu_, 64, 0, nullptr, done_, 1, false),
      kSuccess);
  EXPECT_EQ(HSA(hsa_signal_wait_scacquire)(done_, kConditionLt, 1, kLongNs, 0), 0);
  EXPECT_EQ(HSA(hsa_amd_memory_async_copy_on_engine)(memory, gpu_, memory, gpu_, 64, 0, nullptr, done_, 0x100, false),
            kInvalidArgument);
  EXPECT_EQ(free(memory), kSuccess);
}

TEST_F(HsaCopy, ZeroBytesLeaveTheSignalAlone) {
  std::byte* memory = device(8192);
  EXPECT_EQ(HSA(hsa_amd_memory_async_copy)(memory, gpu_, memory, gpu_, 0, 0, nullptr, done_), kSuccess);
  EXPECT_EQ(HSA(hsa_signal_wait_scacquire)(done_, kConditionLt, 1, 5'000'000, 0), 1);
  EXPECT_EQ(free(memory), kSuccess);
}

TEST_F(HsaCopy, FillsWholeWordsInsideOneAllocation) {
  std::byte* memory = device(8192);
  EXPECT_EQ(HSA(hsa_amd_memory_fill)(memory + 4, 0xaabbccdd, 3), kSuccess);
  const auto bytes = get(memory, 20);
  EXPECT_EQ(bytes[3], std::byte{0});
  EXPECT_EQ(bytes[4], std::byte{0xdd});
  EXPECT_EQ(bytes[15], std::byte{0xaa});
  EXPECT_EQ(bytes[16], std::byte{0});
  EXPECT_EQ(HSA(hsa_amd_memory_fill)(memory + 1, 0, 1), kInvalidArgument);
  EXPECT_EQ(HSA(hsa_amd_memory_fill)(memory, 0, 2049), kInvalidAllocation);
  EXPECT_EQ(HSA(hsa_amd_memory_fill)(memory, 0, SIZE_MAX), kInvalidAllocation);
  EXPECT_EQ(free(memory), kSuccess);
}

TEST_F(HsaCopy, SignalsCountCompareAndCall) {
  Signal signal{};
  ASSERT_EQ(HSA(hsa_signal_create)(10, 1, &gpu_, &signal), kSuccess);
  HSA(hsa_signal_add_relaxed)(signal, 5);
  HSA(hsa_signal_xor_acq_rel)(signal, 1);
  HSA(hsa_signal_or_release)(signal, 64);
  HSA(hsa_signal_and_acquire)(signal, 0x4e);
  EXPECT_EQ(HSA(hsa_signal_exchange_scacq_screl)(signal, 3), 0x4e);
  EXPECT_EQ(HSA(hsa_signal_cas_relaxed)(signal, 4, 9), 3);
  EXPECT_EQ(HSA(hsa_signal_cas_relaxed)(signal, 3, 9), 3);
  EXPECT_EQ(HSA(hsa_signal_load_relaxed)(signal), 9);
  volatile SignalValue* word = nullptr;
  ASSERT_EQ(HSA(hsa_amd_signal_value_pointer)(signal, &word), kSuccess);
  EXPECT_EQ(*word, 9);

  static std::atomic<int> calls;
  calls = 0;
  const SignalHandler handler = [](SignalValue value, void* data) {
    const bool again = ++calls < 3;  // before the store: the test looks as soon as it sees that
    HSA(hsa_signal_store_relaxed)(*static_cast<Signal*>(data), value - 1);
    return again;
  };
  ASSERT_EQ(HSA(hsa_amd_signal_async_handler)(signal, kConditionGte, 1, handler, &signal), kSuccess);
  EXPECT_EQ(HSA(hsa_signal_wait_relaxed)(signal, kConditionEq, 6, kLongNs, 0), 6);
  EXPECT_EQ(calls.load(), 3);

  std::thread later([&] { HSA(hsa_signal_store_screlease)(done_, 0); });
  Signal both[] = {signal, done_};
  std::int32_t conditions[] = {kConditionLt, kConditionEq};
  SignalValue compared[] = {0, 0}, seen = 99;
  EXPECT_EQ(HSA(hsa_amd_signal_wait_any)(2, both, conditions, compared, kLongNs, 0, &seen), 1u);
  EXPECT_EQ(seen, 0);
  later.join();
  EXPECT_EQ(HSA(hsa_amd_signal_wait_any)(1, both, conditions, compared, 1'000'000, 0, &seen), UINT32_MAX);
  EXPECT_EQ(HSA(hsa_signal_destroy)(signal), kSuccess);
  EXPECT_EQ(HSA(hsa_signal_destroy)(signal), kInvalidSignal);
}

}  // namespace
}  // namespace strait::soft::hsa::testing
