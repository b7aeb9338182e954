// SPDX-License-Identifier: Apache-2.0
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "soft/hsa/testing.hpp"

namespace strait::soft::hsa::testing {
namespace {

class HsaMachine : public HsaTest {};

TEST(HsaOpen, WithoutDevicesThereIsNoRuntime) {
  ::setenv("STRAIT_SOFT_ACCELERATORS", "cuda:2", 1);
  EXPECT_EQ(HSA(hsa_init)(), kOutOfResources);
  EXPECT_EQ(HSA(hsa_shut_down)(), kNotInitialized);
  EXPECT_EQ(HSA(hsa_iterate_agents)([](Agent, void*) { return kSuccess; }, nullptr), kNotInitialized);
}

TEST(HsaOpen, OpensAreCounted) {
  ::setenv("STRAIT_SOFT_ACCELERATORS", "rocm:1x16M", 1);
  ASSERT_EQ(HSA(hsa_init)(), kSuccess);
  ASSERT_EQ(HSA(hsa_init)(), kSuccess);
  EXPECT_EQ(HSA(hsa_shut_down)(), kSuccess);
  bool dmabuf = false;
  EXPECT_EQ(HSA(hsa_system_get_info)(0x204, &dmabuf), kSuccess);
  EXPECT_TRUE(dmabuf);
  EXPECT_EQ(HSA(hsa_shut_down)(), kSuccess);
  EXPECT_EQ(HSA(hsa_system_get_info)(0x204, &dmabuf), kNotInitialized);
  EXPECT_EQ(HSA(hsa_shut_down)(), kNotInitialized);
}

TEST(HsaOpen, StatusesHaveNames) {
  const char* text = nullptr;
  EXPECT_EQ(HSA(hsa_status_string)(kInvalidAllocation, &text), kSuccess);
  EXPECT_EQ(std::string(text).rfind("HSA_STATUS_ERROR_INVALID_ALLOCATION", 0), 0u);
  EXPECT_EQ(HSA(hsa_status_string)(0x9999, &text), kInvalidArgument);
  EXPECT_EQ(HSA(hsa_status_string)(0, nullptr), kInvalidArgument);
}

TEST(HsaOpen, VisibleDevicesAreChosenAndOrdered) {
  ::setenv("STRAIT_SOFT_ACCELERATORS", "rocm:4x16M", 1);
  const auto nodes = [](const char* chosen) {
    ::setenv("ROCR_VISIBLE_DEVICES", chosen, 1);
    std::string seen;
    EXPECT_EQ(HSA(hsa_init)(), kSuccess);
    const auto add = [](Agent agent, void* data) {
      std::uint32_t node = 99;
      EXPECT_EQ(HSA(hsa_agent_get_info)(agent, kAgentNode, &node), kSuccess);
      *static_cast<std::string*>(data) += std::to_string(node);
      return kSuccess;
    };
    EXPECT_EQ(HSA(hsa_iterate_agents)(add, &seen), kSuccess);
    EXPECT_EQ(HSA(hsa_shut_down)(), kSuccess);
    ::unsetenv("ROCR_VISIBLE_DEVICES");
    return seen;
  };
  EXPECT_EQ(nodes("2,0"), "031");
  EXPECT_EQ(nodes("GPU-5374726169740003,1"), "042");
  EXPECT_EQ(nodes("1,9,0"), "02") << "what names none ends the list";
  EXPECT_EQ(nodes("0,0"), "01");
  EXPECT_EQ(nodes(""), "0");
  EXPECT_EQ(nodes("-1"), "0");
}

TEST_F(HsaMachine, AgentsSayWhatTheyAre) {
  ASSERT_EQ(agents_.size(), 3u);
  char name[64] = {};
  std::uint32_t device = 9, bdf[2] = {}, domain = 9;
  EXPECT_EQ(HSA(hsa_agent_get_info)(cpu_, kAgentDevice, &device), kSuccess);
  EXPECT_EQ(device, kDeviceCpu);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(HSA(hsa_agent_get_info)(agents_[1 + i], kAgentDevice, &device), kSuccess);
    EXPECT_EQ(device, kDeviceGpu);
    EXPECT_EQ(HSA(hsa_agent_get_info)(agents_[1 + i], 0xA006, &bdf[i]), kSuccess);
    EXPECT_EQ(HSA(hsa_agent_get_info)(agents_[1 + i], 0xA00F, &domain), kSuccess);
    EXPECT_EQ(domain, 0u);
  }
  EXPECT_EQ(bdf[0], 0xc100u);
  EXPECT_EQ(bdf[1], 0xc200u);
  EXPECT_EQ(HSA(hsa_agent_get_info)(gpu_, kAgentName, name), kSuccess);
  EXPECT_STREQ(name, "gfx942");
  EXPECT_EQ(HSA(hsa_agent_get_info)(gpu_, kAgentProductName, name), kSuccess);
  EXPECT_STREQ(name, "strait software GPU");
  EXPECT_EQ(HSA(hsa_agent_get_info)(gpu_, 0x7777, name), kInvalidArgument);
  EXPECT_EQ(HSA(hsa_agent_get_info)(Agent{12345}, kAgentName, name), kInvalidAgent);
  EXPECT_EQ(HSA(hsa_agent_get_info)(Agent{gpu_.handle + 7}, kAgentName, name), kInvalidAgent);
  EXPECT_EQ(HSA(hsa_agent_get_info)(gpu_, kAgentName, nullptr), kInvalidArgument);
}

TEST_F(HsaMachine, PoolsSayWhatTheyHold) {
  std::size_t size = 0;
  EXPECT_EQ(HSA(hsa_amd_memory_pool_get_info)(pool(gpu_, kFlagCoarseGrained), kPoolSize, &size), kSuccess);
  EXPECT_EQ(size, std::size_t{64} << 20);
  bool allowed = false;
  EXPECT_EQ(HSA(hsa_amd_memory_pool_get_info)(pool(cpu_, kFlagFineGrained), kPoolAllocAllowed, &allowed), kSuccess);
  EXPECT_TRUE(allowed);
  std::int32_t access = 9;
  EXPECT_EQ(HSA(hsa_amd_agent_memory_pool_get_info)(cpu_, pool(gpu_, kFlagCoarseGrained), kAgentPoolAccess, &access),
            kSuccess);
  EXPECT_EQ(access, kAccessNeverAllowed) << "no large BAR";
  EXPECT_EQ(
      HSA(hsa_amd_agent_memory_pool_get_info)(agents_[2], pool(gpu_, kFlagCoarseGrained), kAgentPoolAccess, &access),
      kSuccess);
  EXPECT_EQ(access, kAccessDisallowedByDefault);
  EXPECT_EQ(HSA(hsa_amd_memory_pool_get_info)(MemoryPool{42}, kPoolSize, &size), kInvalidMemoryPool);
  void* pointer = nullptr;
  EXPECT_EQ(HSA(hsa_amd_memory_pool_allocate)(MemoryPool{42}, 4096, 0, &pointer), kInvalidMemoryPool);
}

TEST_F(HsaMachine, ChildOfForkIsRefused) {
  const pid_t child = ::fork();
  if (child == 0) {
    void* pointer = nullptr;
    const bool refused = HSA(hsa_init)() == kOutOfResources &&
                         HSA(hsa_amd_memory_pool_free)(&pointer) == kNotInitialized &&
                         HSA(hsa_shut_down)() == kNotInitialized;
    ::_exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(HsaMachine, EveryOtherNameIsThereAndSaysItCannot) {
  int names = 0;
#define HSA_ANSWER(name, answer)                                              \
  EXPECT_EQ(static_cast<Answer>(named<std::int64_t (*)()>(#name)()), answer); \
  ++names;
#define HSA_UNSUPPORTED(name) HSA_ANSWER(name, kError)
#define HSA_NO_QUEUE(name) HSA_ANSWER(name, 0)
#include "soft/hsa/unsupported.inc"
  EXPECT_EQ(names, 134);
  int functions = 0;
#define HSA_FUNCTION(returns, name, arguments)          \
  EXPECT_TRUE(library().symbol<void*>(#name)) << #name; \
  ++functions;
#define HSA_NEWER(returns, name, arguments) HSA_FUNCTION(returns, name, arguments)
#include "soft/hsa/functions.inc"
  EXPECT_GT(functions, 120);
}

TEST_F(HsaMachine, NullsAndNonsenseAreAnswered) {
  void* pointer = nullptr;
  const MemoryPool from = pool(gpu_, kFlagCoarseGrained);
  EXPECT_EQ(HSA(hsa_iterate_agents)(nullptr, nullptr), kInvalidArgument);
  EXPECT_EQ(HSA(hsa_system_get_info)(0, nullptr), kInvalidArgument);
  EXPECT_EQ(HSA(hsa_system_get_info)(-1, &pointer), kInvalidArgument);
  EXPECT_EQ(HSA(hsa_amd_memory_pool_allocate)(from, 0, 0, &pointer), kInvalidArgument);
  EXPECT_EQ(HSA(hsa_amd_memory_pool_allocate)(from, 4096, 0, nullptr), kInvalidArgument);
  EXPECT_EQ(HSA(hsa_amd_memory_pool_allocate)(from, SIZE_MAX, 0, &pointer), kInvalidAllocation);
  EXPECT_EQ(HSA(hsa_amd_memory_pool_allocate)(from, std::size_t{65} << 20, 0, &pointer), kInvalidAllocation);
  EXPECT_EQ(free(nullptr), kSuccess);
  EXPECT_EQ(free(&pointer), kInvalidAllocation);
  EXPECT_EQ(HSA(hsa_amd_pointer_info)(nullptr, nullptr, nullptr, nullptr, nullptr), kInvalidArgument);
  EXPECT_EQ(HSA(hsa_signal_create)(0, 3, nullptr, &done_), kInvalidArgument);
  EXPECT_EQ(HSA(hsa_signal_create)(0, 0, nullptr, nullptr), kInvalidArgument);
  EXPECT_EQ(HSA(hsa_signal_destroy)(Signal{0}), kInvalidArgument);
  EXPECT_EQ(HSA(hsa_signal_destroy)(Signal{77}), kInvalidSignal);
  EXPECT_EQ(HSA(hsa_signal_load_relaxed)(Signal{77}), 0);
  HSA(hsa_signal_store_relaxed)(Signal{77}, 1);
  EXPECT_EQ(HSA(hsa_amd_memory_async_copy)(&pointer, gpu_, &pointer, gpu_, 8, 0, nullptr, Signal{77}), kInvalidSignal);
  EXPECT_EQ(HSA(hsa_amd_memory_async_copy)(&pointer, Agent{1}, &pointer, gpu_, 8, 0, nullptr, done_), kInvalidAgent);
  EXPECT_EQ(HSA(hsa_amd_memory_async_copy)(&pointer, gpu_, &pointer, gpu_, 8, 1, nullptr, done_), kInvalidArgument);
  EXPECT_EQ(HSA(hsa_amd_memory_async_copy)(&pointer, gpu_, &pointer, gpu_, 8, 0, &done_, done_), kInvalidArgument);
  EXPECT_EQ(HSA(hsa_amd_ipc_memory_detach)(&pointer), kInvalidArgument);
  EXPECT_EQ(HSA(hsa_amd_interop_unmap_buffer)(&pointer), kInvalidArgument);
  EXPECT_EQ(HSA(hsa_amd_memory_unlock)(&pointer), kInvalidArgument);
  EXPECT_EQ(HSA(hsa_amd_portable_close_dmabuf)(-1), kResourceFree);
}

}  // namespace
}  // namespace strait::soft::hsa::testing
