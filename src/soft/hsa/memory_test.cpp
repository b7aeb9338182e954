// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <thread>

#include "soft/hsa/testing.hpp"
#include "soft/kernel/driver.h"
#include "sys/files.hpp"

namespace strait::soft::hsa::testing {
namespace {

class HsaMemory : public HsaTest {};

TEST_F(HsaMemory, PointerInfoTellsWhatAndWhose) {
  std::byte* memory = device(10'000);
  for (const std::size_t at : {0u, 1u, 4096u, 9'999u}) {
    const PointerInfo info = info_of(memory + at);
    EXPECT_EQ(info.type, kPointerHsa) << at;
    EXPECT_EQ(info.agent_base, memory);
    EXPECT_EQ(info.size_in_bytes, 10'000u);
    EXPECT_EQ(info.host_base, nullptr);
    EXPECT_EQ(info.agent_owner.handle, gpu_.handle);
    EXPECT_EQ(info.global_flags, kFlagCoarseGrained);
  }
  EXPECT_EQ(info_of(memory + 10'000).type, kPointerUnknown) << "one past the end";
  EXPECT_EQ(info_of(memory - 1).type, kPointerUnknown);
  int local = 0;
  EXPECT_EQ(info_of(&local).type, kPointerUnknown) << "and success, as there";
  EXPECT_EQ(info_of(reinterpret_cast<void*>(0x10)).type, kPointerUnknown);

  EXPECT_EQ(HSA(hsa_amd_pointer_info_set_userdata)(memory, &local), kSuccess);
  EXPECT_EQ(info_of(memory + 5).user_data, &local);
  EXPECT_EQ(HSA(hsa_amd_pointer_info_set_userdata)(&local, &local), kInvalidArgument);
  EXPECT_EQ(free(memory), kSuccess);
  EXPECT_EQ(info_of(memory).type, kPointerUnknown);
  EXPECT_EQ(free(memory), kInvalidAllocation) << "twice";
}

TEST_F(HsaMemory, PointerInfoWritesNoMoreThanTheCallersStruct) {
  std::byte* memory = device(8192);
  PointerInfo info;
  std::memset(&info, 0x77, sizeof info);
  info.size = 24;  // an old program: up to hostBaseAddress
  ASSERT_EQ(HSA(hsa_amd_pointer_info)(memory, &info, nullptr, nullptr, nullptr), kSuccess);
  EXPECT_EQ(info.size, 24u);
  EXPECT_EQ(info.agent_base, memory);
  EXPECT_EQ(info.size_in_bytes, 0x7777777777777777u);
  std::vector<std::byte> larger(sizeof info + 64, std::byte{0x55});
  const auto bytes = static_cast<std::uint32_t>(larger.size());
  std::memcpy(larger.data(), &bytes, sizeof bytes);
  ASSERT_EQ(HSA(hsa_amd_pointer_info)(memory, reinterpret_cast<PointerInfo*>(larger.data()), nullptr, nullptr, nullptr),
            kSuccess);
  EXPECT_EQ(larger[sizeof info], std::byte{0x55});
  info.size = 0;
  EXPECT_EQ(HSA(hsa_amd_pointer_info)(memory, &info, nullptr, nullptr, nullptr), kInvalidArgument);
  EXPECT_EQ(free(memory), kSuccess);
}

TEST_F(HsaMemory, AccessIsGrantedAndListed) {
  std::byte* memory = device(8192);
  const auto seen = [&] {
    PointerInfo info{};
    info.size = sizeof info;
    std::uint32_t n = 99;
    Agent* list = nullptr;
    EXPECT_EQ(HSA(hsa_amd_pointer_info)(memory, &info, &std::malloc, &n, &list), kSuccess);
    std::vector<std::uint64_t> handles;
    for (std::uint32_t i = 0; i < n; ++i) handles.push_back(list[i].handle);
    std::free(list);
    return handles;
  };
  EXPECT_EQ(seen(), std::vector<std::uint64_t>{gpu_.handle});
  const Agent both[] = {agents_[1], agents_[2]};
  EXPECT_EQ(HSA(hsa_amd_agents_allow_access)(2, both, nullptr, memory), kSuccess);
  EXPECT_EQ(seen(), (std::vector<std::uint64_t>{agents_[1].handle, agents_[2].handle}));
  EXPECT_EQ(HSA(hsa_amd_agents_allow_access)(1, both, nullptr, memory + 1), kInvalidAllocation);
  const Agent nobody{5};
  EXPECT_EQ(HSA(hsa_amd_agents_allow_access)(1, &nobody, nullptr, memory), kInvalidAgent);
  EXPECT_EQ(free(memory), kSuccess);
}

TEST_F(HsaMemory, HostMemoryOfTheRuntimeIsTheCpus) {
  std::byte* memory = allocate(pool(cpu_, kFlagFineGrained), 5000);
  std::memset(memory, 1, 5000);
  const PointerInfo info = info_of(memory + 17);
  EXPECT_EQ(info.type, kPointerHsa);
  EXPECT_EQ(info.host_base, memory);
  EXPECT_EQ(info.agent_owner.handle, cpu_.handle);
  int fd = -1;
  std::uint64_t offset = 0;
  EXPECT_EQ(HSA(hsa_amd_portable_export_dmabuf)(memory, 4096, &fd, &offset), kInvalidAgent);
  EXPECT_EQ(free(memory), kSuccess);
}

TEST_F(HsaMemory, LockedMemoryIsKnownUntilUnlocked) {
  std::vector<std::byte> mine(6000);
  void* agent_pointer = nullptr;
  ASSERT_EQ(HSA(hsa_amd_memory_lock)(mine.data(), mine.size(), nullptr, 0, &agent_pointer), kSuccess);
  EXPECT_EQ(agent_pointer, mine.data());
  const PointerInfo info = info_of(mine.data() + 5999);
  EXPECT_EQ(info.type, kPointerLocked);
  EXPECT_EQ(info.size_in_bytes, mine.size());
  EXPECT_EQ(info.agent_owner.handle, cpu_.handle);
  EXPECT_EQ(HSA(hsa_amd_memory_unlock)(mine.data()), kSuccess);
  EXPECT_EQ(info_of(mine.data()).type, kPointerUnknown);
  EXPECT_EQ(HSA(hsa_amd_memory_unlock)(mine.data()), kInvalidArgument);
}

TEST_F(HsaMemory, DevicePointersAreNotForTheCpu) {
  std::byte* memory = device(8192);
  EXPECT_DEATH(memory[0] = std::byte{1}, "");
  EXPECT_EQ(free(memory), kSuccess);
}

class HsaLargeBar : public HsaTest {
 protected:
  HsaLargeBar() : HsaTest("rocm:1x64M@bar") {}
};

TEST_F(HsaLargeBar, TheCpuReachesDeviceMemoryAtItsAddress) {
  std::byte* small = device(8192);
  std::byte* large = device(std::size_t{4} << 20);
  for (std::byte* memory : {small, large}) {
    EXPECT_EQ(info_of(memory).host_base, memory);
    const auto bytes = pattern(5000, 3);
    std::memcpy(memory, bytes.data(), bytes.size());
    EXPECT_EQ(get(memory, bytes.size()), bytes);
  }
  std::int32_t access = 9;
  EXPECT_EQ(HSA(hsa_amd_agent_memory_pool_get_info)(cpu_, pool(gpu_, kFlagCoarseGrained), kAgentPoolAccess, &access),
            kSuccess);
  EXPECT_EQ(access, kAccessAllowedByDefault);
  EXPECT_EQ(free(small), kSuccess);
  EXPECT_EQ(free(large), kSuccess);
  EXPECT_DEATH(large[0] = std::byte{1}, "") << "freed";
}

TEST_F(HsaMemory, SmallAllocationsAreExportedAsTheirBlockAndAnOffset) {
  std::byte* first = device(5000);
  std::byte* second = device(4096);
  const auto bytes = pattern(4096, 11);
  put(second, bytes);
  int fd = -1;
  std::uint64_t offset = 0;
  ASSERT_EQ(HSA(hsa_amd_portable_export_dmabuf)(first, 5000, &fd, &offset), kSuccess);
  EXPECT_NE(offset, 0u) << "also the first";
  EXPECT_EQ(sys::file_bytes(fd), std::int64_t{2} << 20);
  EXPECT_EQ(HSA(hsa_amd_portable_close_dmabuf)(fd), kSuccess);
  ASSERT_EQ(HSA(hsa_amd_portable_export_dmabuf)(second + 100, 3996, &fd, &offset), kSuccess);
  EXPECT_EQ(offset % 4096, 100u);
  void* look = ::mmap(nullptr, std::size_t{2} << 20, PROT_READ, MAP_SHARED, fd, 0);
  ASSERT_NE(look, MAP_FAILED);
  EXPECT_EQ(std::memcmp(static_cast<std::byte*>(look) + offset, bytes.data() + 100, 3996), 0);
  ::munmap(look, std::size_t{2} << 20);
  EXPECT_EQ(HSA(hsa_amd_portable_close_dmabuf)(fd), kSuccess);
  EXPECT_EQ(HSA(hsa_amd_portable_close_dmabuf)(fd), kResourceFree) << "twice";

  EXPECT_EQ(HSA(hsa_amd_portable_export_dmabuf)(second, 4097, &fd, &offset), kInvalidAllocation) << "beyond its end";
  EXPECT_EQ(HSA(hsa_amd_portable_export_dmabuf)(first, 8192, &fd, &offset), kSuccess) << "whole pages are its own";
  EXPECT_EQ(HSA(hsa_amd_portable_close_dmabuf)(fd), kSuccess);
  int local = 0;
  EXPECT_EQ(HSA(hsa_amd_portable_export_dmabuf)(&local, 4, &fd, &offset), kInvalidAllocation);
  EXPECT_EQ(HSA(hsa_amd_portable_export_dmabuf)(first, 0, &fd, &offset), kInvalidArgument);
  EXPECT_EQ(HSA(hsa_amd_portable_export_dmabuf_v2)(first, 4096, &fd, &offset, 1), kSuccess);
  ::close(fd);
  EXPECT_EQ(HSA(hsa_amd_portable_export_dmabuf_v2)(first, 4096, &fd, &offset, 2), kInvalidArgument);
  EXPECT_EQ(free(first), kSuccess);
  EXPECT_EQ(HSA(hsa_amd_portable_export_dmabuf)(first, 4096, &fd, &offset), kInvalidAllocation) << "freed";
  EXPECT_EQ(free(second), kSuccess);
}

TEST_F(HsaMemory, AnExportKeepsTheMemoryWhoeverHasIt) {
  const std::uint64_t before = available();
  std::byte* memory = device(std::size_t{8} << 20);
  EXPECT_EQ(available(), before - (8u << 20));
  int fd = -1;
  std::uint64_t offset = 1;
  ASSERT_EQ(HSA(hsa_amd_portable_export_dmabuf)(memory, std::size_t{8} << 20, &fd, &offset), kSuccess);
  EXPECT_EQ(offset, 0u) << "a large one is a file of its own";
  const int copy = ::dup(fd);
  EXPECT_EQ(free(memory), kSuccess);
  EXPECT_EQ(available(), before - (8u << 20));
  EXPECT_EQ(counter("live_exports"), 1u);
  ::close(fd);  // the vendor's closer does the same
  EXPECT_EQ(available(), before - (8u << 20)) << "the duplicate has it";
  ::close(copy);
  EXPECT_EQ(available(), before);
}

TEST_F(HsaMemory, ItRunsOutAndComesBack) {
  std::vector<std::byte*> all;
  void* pointer = nullptr;
  const MemoryPool from = pool(gpu_, kFlagCoarseGrained);
  while (HSA(hsa_amd_memory_pool_allocate)(from, std::size_t{8} << 20, 0, &pointer) == kSuccess)
    all.push_back(static_cast<std::byte*>(pointer));
  EXPECT_EQ(all.size(), 8u);
  EXPECT_EQ(HSA(hsa_amd_memory_pool_allocate)(from, 4096, 0, &pointer), kOutOfResources);
  EXPECT_EQ(free(all.back()), kSuccess);
  EXPECT_EQ(HSA(hsa_amd_memory_pool_allocate)(from, 4096, 0, &pointer), kSuccess);
  all.back() = static_cast<std::byte*>(pointer);
  for (std::byte* each : all) EXPECT_EQ(free(each), kSuccess);
}

TEST_F(HsaMemory, CallbacksComeWhenMemoryGoes) {
  struct Heard {
    std::vector<void*> pointers;
    Answer again = kSuccess;
  } heard;
  const DeallocationCallback call = [](void* pointer, void* data) {
    auto* all = static_cast<Heard*>(data);
    all->pointers.push_back(pointer);
    all->again = HSA(hsa_amd_memory_pool_free)(pointer);
  };
  std::byte* memory = device(8192);
  EXPECT_EQ(HSA(hsa_amd_register_deallocation_callback)(memory + 100, call, &heard), kSuccess);
  EXPECT_EQ(HSA(hsa_amd_register_deallocation_callback)(memory, call, &heard), kSuccess);
  EXPECT_EQ(HSA(hsa_amd_register_deallocation_callback)(memory + 200, call, &heard), kSuccess);
  EXPECT_EQ(HSA(hsa_amd_deregister_deallocation_callback)(memory + 200, call), kSuccess);
  EXPECT_EQ(HSA(hsa_amd_deregister_deallocation_callback)(memory + 200, call), kInvalidArgument);
  EXPECT_EQ(HSA(hsa_amd_register_deallocation_callback)(memory + 8192, call, &heard), kInvalidAllocation);
  EXPECT_EQ(free(memory), kSuccess);
  EXPECT_EQ(heard.pointers, (std::vector<void*>{memory + 100, memory}));
  EXPECT_EQ(heard.again, kInvalidAllocation) << "it is gone already when the callback runs";
}

TEST_F(HsaMemory, TheKernelKnowsItWhileItLives) {
  auto soft = sys::Library::open(STRAIT_STAND_INS "/../libstrait-soft.so.0");
  ASSERT_TRUE(soft) << soft.error().text;
  const auto found = soft->symbol<decltype(&strait_soft_driver_find)>("strait_soft_driver_find");
  ASSERT_TRUE(found);
  const auto find = *found;
  std::byte* memory = device(5000);
  strait_soft_driver_memory known{};
  known.struct_size = sizeof known;
  ASSERT_EQ(find(reinterpret_cast<std::uint64_t>(memory) + 4999, &known), 1);
  EXPECT_EQ(known.vendor, static_cast<std::uint32_t>(STRAIT_SOFT_VENDOR_ROCM));
  EXPECT_EQ(known.device, 0u);
  EXPECT_EQ(known.base, reinterpret_cast<std::uint64_t>(memory));
  int fd = -1;
  std::uint64_t offset = 0;
  ASSERT_EQ(HSA(hsa_amd_portable_export_dmabuf)(memory, 5000, &fd, &offset), kSuccess);
  EXPECT_EQ(sys::file_id(fd), sys::file_id(known.memfd)) << "the same file: so the NIC recognises the dma-buf";
  EXPECT_EQ(offset, known.memfd_offset);
  ::close(fd);
  EXPECT_EQ(free(memory), kSuccess);
  EXPECT_EQ(find(reinterpret_cast<std::uint64_t>(memory), &known), 0);
}

TEST_F(HsaMemory, AdviceIsForTheProgramsOwnMemory) {
  std::vector<std::byte> mine(8192);
  SvmPair list[] = {{6, 1}, {4, gpu_.handle}};
  EXPECT_EQ(HSA(hsa_amd_svm_attributes_set)(mine.data(), mine.size(), list, 2), kSuccess);
  SvmPair asked[] = {{6, 0}, {4, 0}, {1, 7}};
  EXPECT_EQ(HSA(hsa_amd_svm_attributes_get)(mine.data(), mine.size(), asked, 3), kSuccess);
  EXPECT_EQ(asked[0].value, 1u);
  EXPECT_EQ(asked[1].value, gpu_.handle);
  EXPECT_EQ(asked[2].value, 0u);
  SvmPair unknown{0x99, 1}, nobody{4, 12345};
  EXPECT_EQ(HSA(hsa_amd_svm_attributes_set)(mine.data(), mine.size(), &unknown, 1), kInvalidArgument);
  EXPECT_EQ(HSA(hsa_amd_svm_attributes_set)(mine.data(), mine.size(), &nobody, 1), kInvalidAgent);
  std::byte* memory = device(8192);
  EXPECT_EQ(HSA(hsa_amd_svm_attributes_set)(memory, 8192, list, 1), kInvalidArgument);
  EXPECT_EQ(free(memory), kSuccess);
  EXPECT_EQ(HSA(hsa_amd_svm_prefetch_async)(mine.data(), mine.size(), gpu_, 0, nullptr, done_), kSuccess);
  EXPECT_EQ(HSA(hsa_signal_wait_scacquire)(done_, kConditionLt, 1, 20'000'000'000, 0), 0);
}

TEST_F(HsaMemory, ManyThreadsAllocateExportAndFree) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        void* memory = nullptr;
        const std::size_t size = 4096u * static_cast<std::size_t>(1 + (t + i) % 5);
        ASSERT_EQ(HSA(hsa_amd_memory_pool_allocate)(
                      pool(agents_[static_cast<std::size_t>(1 + t % 2)], kFlagCoarseGrained), size, 0, &memory),
                  kSuccess);
        int fd = -1;
        std::uint64_t offset = 0;
        ASSERT_EQ(HSA(hsa_amd_portable_export_dmabuf)(memory, size, &fd, &offset), kSuccess);
        EXPECT_EQ(HSA(hsa_amd_memory_fill)(memory, static_cast<std::uint32_t>(t), size / 4), kSuccess);
        EXPECT_EQ(info_of(memory).agent_base, memory);
        EXPECT_EQ(HSA(hsa_amd_portable_close_dmabuf)(fd), kSuccess);
        EXPECT_EQ(free(memory), kSuccess);
      }
    });
  }
  for (std::thread& each : threads) each.join();
}

}  // namespace
}  // namespace strait::soft::hsa::testing
