// SPDX-License-Identifier: Apache-2.0
// What the tests share: the built library, loaded from its file as any program would, and its functions by name.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "soft/hsa/functions.hpp"
#include "sys/library.hpp"

#ifndef STRAIT_STAND_INS
#define STRAIT_STAND_INS "."  // where this header is compiled alone
#endif

namespace strait::soft::hsa::testing {

inline const sys::Library& library() {
  static const auto* const opened = [] {
    // Under `strait run` it is found by its name alone.
    const std::string folder = std::getenv("STRAIT_HOST_ROOT") != nullptr ? "" : STRAIT_STAND_INS "/";
    auto library = sys::Library::open(folder + "libhsa-runtime64.so.1");
    if (!library) ADD_FAILURE() << library.error().text;
    return new sys::Library(library ? std::move(*library) : sys::Library());
  }();
  return *opened;
}

template <class Function>
Function named(const char* name) {
  auto found = library().symbol<Function>(name);
  EXPECT_TRUE(found) << name;
  return found ? *found : nullptr;
}

// HSA(hsa_init)(): the function of the library that was loaded; nothing is linked.
#define HSA(name) (::strait::soft::hsa::testing::named<decltype(&::strait::soft::hsa::name)>(#name))

inline std::uint64_t counter(const std::string& wanted) {
  std::vector<char> text(4096);
  HSA(strait_soft_hsa_counters)(text.data(), text.size());
  const std::string all = "," + std::string(text.data());
  const std::size_t at = all.find("," + wanted + "=");
  EXPECT_NE(at, std::string::npos) << wanted << " is not in " << all;
  return at == std::string::npos ? 0 : std::stoull(all.substr(at + wanted.size() + 2));
}

inline std::vector<std::byte> pattern(std::size_t n, std::uint32_t seed) {
  std::vector<std::byte> bytes(n);
  for (std::byte& each : bytes) each = static_cast<std::byte>((seed = seed * 1664525u + 1013904223u) >> 24);
  return bytes;
}

// An open runtime on `machine`, with its agents; closed and looked over for leaks at the end.
class HsaTest : public ::testing::Test {
 protected:
  explicit HsaTest(const char* machine = "rocm:2x64M") { ::setenv("STRAIT_SOFT_ACCELERATORS", machine, 1); }
  void SetUp() override {
    ASSERT_EQ(HSA(hsa_init)(), kSuccess);
    const auto add = [](Agent agent, void* list) {
      static_cast<std::vector<Agent>*>(list)->push_back(agent);
      return kSuccess;
    };
    ASSERT_EQ(HSA(hsa_iterate_agents)(add, &agents_), kSuccess);
    ASSERT_GE(agents_.size(), 2u);
    cpu_ = agents_[0];
    gpu_ = agents_[1];
    ASSERT_EQ(HSA(hsa_signal_create)(1, 0, nullptr, &done_), kSuccess);
  }
  void TearDown() override {
    EXPECT_EQ(HSA(hsa_signal_destroy)(done_), kSuccess);
    for (const char* what :
         {"live_ranges", "live_locks", "live_exports", "live_handles", "live_signals", "used_bytes", "blocks"})
      EXPECT_EQ(counter(what), 0u) << what;
    EXPECT_EQ(HSA(hsa_shut_down)(), kSuccess);
    EXPECT_EQ(counter("opens"), counter("closes"));
  }

  static MemoryPool pool(Agent agent, std::uint32_t flags) {
    struct Search {
      std::uint32_t flags;
      MemoryPool found;
    } search{flags, {0}};
    const auto look = [](MemoryPool pool, void* data) {
      auto* wanted = static_cast<Search*>(data);
      std::uint32_t segment = 1, has = 0;
      EXPECT_EQ(HSA(hsa_amd_memory_pool_get_info)(pool, kPoolSegment, &segment), kSuccess);
      EXPECT_EQ(HSA(hsa_amd_memory_pool_get_info)(pool, kPoolGlobalFlags, &has), kSuccess);
      if (segment != kSegmentGlobal || has != wanted->flags) return kSuccess;
      wanted->found = pool;
      return kInfoBreak;
    };
    EXPECT_EQ(HSA(hsa_amd_agent_iterate_memory_pools)(agent, look, &search), kInfoBreak);
    return search.found;
  }
  static std::byte* allocate(MemoryPool from, std::size_t size) {
    void* pointer = nullptr;
    EXPECT_EQ(HSA(hsa_amd_memory_pool_allocate)(from, size, 0, &pointer), kSuccess) << size;
    return static_cast<std::byte*>(pointer);
  }
  std::byte* device(std::size_t size) { return allocate(pool(gpu_, kFlagCoarseGrained), size); }
  static Answer free(void* pointer) { return HSA(hsa_amd_memory_pool_free)(pointer); }

  static PointerInfo info_of(const void* pointer) {
    PointerInfo info{};
    info.size = sizeof info;
    EXPECT_EQ(HSA(hsa_amd_pointer_info)(pointer, &info, nullptr, nullptr, nullptr), kSuccess);
    return info;
  }
  // The value of the signal when the copy was over.
  SignalValue copy(void* to, Agent to_agent, const void* from, Agent from_agent, std::size_t size) {
    HSA(hsa_signal_store_relaxed)(done_, 1);
    EXPECT_EQ(HSA(hsa_amd_memory_async_copy)(to, to_agent, from, from_agent, size, 0, nullptr, done_), kSuccess);
    return HSA(hsa_signal_wait_scacquire)(done_, kConditionLt, 1, 20'000'000'000, 0);
  }
  // Through locked memory, as a program has to.
  void put(void* to, const std::vector<std::byte>& bytes) {
    auto copied = bytes;
    void* locked = nullptr;
    ASSERT_EQ(HSA(hsa_amd_memory_lock)(copied.data(), copied.size(), &gpu_, 1, &locked), kSuccess);
    EXPECT_EQ(copy(to, gpu_, locked, cpu_, copied.size()), 0);
    EXPECT_EQ(HSA(hsa_amd_memory_unlock)(copied.data()), kSuccess);
  }
  std::vector<std::byte> get(const void* from, std::size_t size) {
    std::vector<std::byte> bytes(size);
    void* locked = nullptr;
    EXPECT_EQ(HSA(hsa_amd_memory_lock)(bytes.data(), size, &gpu_, 1, &locked), kSuccess);
    EXPECT_EQ(copy(locked, cpu_, from, gpu_, size), 0);
    EXPECT_EQ(HSA(hsa_amd_memory_unlock)(bytes.data()), kSuccess);
    return bytes;
  }
  std::uint64_t available() {
    std::uint64_t bytes = 0;
    EXPECT_EQ(HSA(hsa_agent_get_info)(gpu_, kAgentMemoryAvail, &bytes), kSuccess);
    return bytes;
  }

  std::vector<Agent> agents_;
  Agent cpu_{}, gpu_{};
  Signal done_{};
};

}  // namespace strait::soft::hsa::testing
