// SPDX-License-Identifier: Apache-2.0
#include "node/ki_reach.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <new>

namespace strait::node {
namespace {

// A device that sees memory a gigabyte further on, and refuses what it is told to.
struct FakeGpu {
  std::vector<std::uint32_t> flags;
  bool refuse_registers = false;
  unsigned released = 0;

  buffer::HostPages::Way way() {
    return {this,
            [](void* self, std::uint32_t, buffer::Range range, std::uint32_t how) -> Result<std::uint64_t> {
              auto* const gpu = static_cast<FakeGpu*>(self);
              if (gpu->refuse_registers && how == STRAIT_HOST_IO_MEMORY)
                return fail(Code::unsupported, "the driver maps no registers");
              gpu->flags.push_back(how);
              return range.address + (1u << 30);
            },
            [](void* self, buffer::Range) -> Status {
              ++static_cast<FakeGpu*>(self)->released;
              return {};
            },
            [](void*, std::uint32_t) -> std::string { return "cuda:0"; }};
  }
};

struct KiPages {
  KiPages() : base(static_cast<std::byte*>(::operator new(16384, std::align_val_t{4096}))) {}
  ~KiPages() { ::operator delete(base, std::align_val_t{4096}); }
  KiPages(const KiPages&) = delete;
  KiPages& operator=(const KiPages&) = delete;
  std::vector<rail::cxi::KiQueue::Part> parts() const {
    return {{{base, 4096}, false, "the ring of the transmit queue"},
            {{base + 8192, 4096}, true, "the launch page of the transmit queue"}};
  }
  std::byte* base;
};

TEST(KiReach, RegistersAreAskedForAsIoMemory) {
  FakeGpu gpu;
  KiPages memory;
  buffer::HostPages pages;
  {
    const auto reach = reach_parts(memory.parts(), pages, gpu.way(), 0, 640);
    ASSERT_TRUE(reach) << reach.error().explain();
    EXPECT_EQ(gpu.flags, (std::vector<std::uint32_t>{0, STRAIT_HOST_IO_MEMORY}));
    EXPECT_EQ(reach->view.state, 640u);
    ASSERT_EQ(reach->view.parts.size(), 2u);
    EXPECT_EQ(reach->view.parts[1], reinterpret_cast<std::uint64_t>(memory.base) + 8192 + (1u << 30));
    EXPECT_EQ(pages.counts().now, 2u);
  }
  EXPECT_EQ(pages.counts().now, 0u);
  EXPECT_EQ(gpu.released, 2u);
}

TEST(KiReach, ARefusalNamesThePartAndLeavesNothing) {
  FakeGpu gpu;
  gpu.refuse_registers = true;
  KiPages memory;
  buffer::HostPages pages;
  const auto reach = reach_parts(memory.parts(), pages, gpu.way(), 0, 0);
  ASSERT_FALSE(reach);
  EXPECT_EQ(reach.error().code, Code::unsupported);
  EXPECT_EQ(reach.error().text,
            "the launch page of the transmit queue cannot be reached from cuda:0: the driver maps no registers");
  EXPECT_EQ(pages.counts().now, 0u);
}

}  // namespace
}  // namespace strait::node
