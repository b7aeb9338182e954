// SPDX-License-Identifier: Apache-2.0
// gdrcopy in software, on memory of the CUDA driver in software; both loaded from their files, as a program does it.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "sys/fd.hpp"
#include "sys/library.hpp"

namespace strait::soft::gdrcopy {
namespace {

struct Pin {  // gdr_mh_t
  unsigned long h = 0;
};
constexpr std::size_t kPage = 65536;

class GdrCopy : public ::testing::Test {
 protected:
  static const sys::Library& library(const char* file) {
    auto opened = sys::Library::open(std::string(STRAIT_STAND_INS "/") + file);
    EXPECT_TRUE(opened) << opened.error().text;
    return *new sys::Library(opened ? std::move(*opened) : sys::Library());
  }
  template <class Function>
  static Function cuda(const char* name) {
    static const sys::Library& driver = library("libcuda.so.1");
    return driver.symbol<Function>(name).value();
  }
  template <class Function>
  static Function gdr(const char* name) {
    static const sys::Library& api = library("libgdrapi.so.2");
    return api.symbol<Function>(name).value();
  }
  void SetUp() override {
    ::setenv("STRAIT_SOFT_ACCELERATORS", "cuda:1x64M", 1);
    ASSERT_EQ(cuda<int (*)(unsigned)>("cuInit")(0), 0);
    void* context = nullptr;
    ASSERT_EQ((cuda<int (*)(void**, int)>("cuDevicePrimaryCtxRetain")(&context, 0)), 0);
    ASSERT_EQ(cuda<int (*)(void*)>("cuCtxSetCurrent")(context), 0);
    ASSERT_EQ((cuda<int (*)(std::uint64_t*, std::size_t)>("cuMemAlloc_v2")(&memory_, 1 << 20)), 0);
    descriptors_ = sys::count_open_fds();
    gdr_ = gdr<void* (*)()>("gdr_open")();
    ASSERT_NE(gdr_, nullptr);
    first_ = memory_ / kPage * kPage;
  }
  void TearDown() override {
    EXPECT_EQ(gdr<int (*)(void*)>("gdr_close")(gdr_), 0);
    EXPECT_EQ(gdr<int (*)(void*)>("gdr_close")(gdr_), EINVAL);
    EXPECT_EQ(sys::count_open_fds(), descriptors_);
    EXPECT_EQ(cuda<int (*)(std::uint64_t)>("cuMemFree_v2")(memory_), 0);
    EXPECT_EQ(cuda<int (*)(int)>("cuDevicePrimaryCtxRelease_v2")(0), 0);
  }
  int pin(std::uint64_t address, std::size_t bytes, Pin* out) const {
    return gdr<int (*)(void*, unsigned long, std::size_t, std::uint64_t, std::uint32_t, Pin*)>("gdr_pin_buffer")(
        gdr_, address, bytes, 0, 0, out);
  }
  int map(Pin handle, void** mapped, std::size_t bytes) const {
    return gdr<int (*)(void*, Pin, void**, std::size_t)>("gdr_map")(gdr_, handle, mapped, bytes);
  }
  int unmap(Pin handle, void* mapped, std::size_t bytes) const {
    return gdr<int (*)(void*, Pin, void*, std::size_t)>("gdr_unmap")(gdr_, handle, mapped, bytes);
  }
  int unpin(Pin handle) const { return gdr<int (*)(void*, Pin)>("gdr_unpin_buffer")(gdr_, handle); }

  void* gdr_ = nullptr;
  std::uint64_t memory_ = 0;
  std::uint64_t first_ = 0;
  int descriptors_ = 0;
};

TEST_F(GdrCopy, TheMappingIsTheDevicesMemory) {
  Pin handle;
  void* mapped = nullptr;
  ASSERT_EQ(pin(first_, 2 * kPage, &handle), 0);
  ASSERT_EQ(map(handle, &mapped, 2 * kPage), 0);
  auto* const at = static_cast<char*>(mapped) + (memory_ - first_);
  EXPECT_EQ((cuda<int (*)(std::uint64_t, const void*, std::size_t)>("cuMemcpyHtoD_v2")(memory_, "device", 7)), 0);
  EXPECT_STREQ(at, "device");
  const auto in = gdr<int (*)(Pin, void*, const void*, std::size_t)>("gdr_copy_to_mapping");
  const auto out = gdr<int (*)(Pin, void*, const void*, std::size_t)>("gdr_copy_from_mapping");
  EXPECT_EQ(in(handle, at, "window", 7), 0);
  char text[7] = {};
  EXPECT_EQ((cuda<int (*)(void*, std::uint64_t, std::size_t)>("cuMemcpyDtoH_v2")(text, memory_, 7)), 0);
  EXPECT_STREQ(text, "window");
  EXPECT_EQ(out(handle, text, at + 3, 4), 0);
  EXPECT_STREQ(text, "dow");
  EXPECT_EQ(in(handle, at, text, 3 * kPage), EINVAL) << "past the window";
  EXPECT_EQ(out(Pin{handle.h + 1}, text, at, 1), EINVAL);
  EXPECT_EQ(unmap(handle, at + 1, kPage), EINVAL);
  EXPECT_EQ(unmap(handle, mapped, 2 * kPage), 0);
  EXPECT_EQ(in(handle, mapped, text, 1), EINVAL) << "not mapped any more";
  EXPECT_EQ(unpin(handle), 0);
  EXPECT_EQ(unpin(handle), EINVAL);
}

TEST_F(GdrCopy, OnlyPinnableMemoryIsPinned) {
  Pin handle;
  static char here[3 * kPage];
  const auto host = (reinterpret_cast<std::uint64_t>(here) + kPage) / kPage * kPage;
  EXPECT_EQ(pin(host, kPage, &handle), EINVAL) << "host memory";
  EXPECT_EQ(pin(first_ + 4096, kPage, &handle), EINVAL) << "pages of 64 KiB";
  EXPECT_EQ(pin(first_, kPage + 1, &handle), EINVAL);
  EXPECT_EQ(pin(first_, 0, &handle), EINVAL);
  EXPECT_EQ(pin(first_, kPage, nullptr), EINVAL);
  EXPECT_EQ(pin(first_, 1024 * kPage, &handle), EINVAL) << "more than there is";
  EXPECT_EQ(pin(first_, UINT64_MAX / kPage * kPage, &handle), EINVAL);
  std::uint64_t managed = 0;
  ASSERT_EQ((cuda<int (*)(std::uint64_t*, std::size_t, unsigned)>("cuMemAllocManaged")(&managed, 1 << 20, 1)), 0);
  EXPECT_EQ(pin((managed + kPage - 1) / kPage * kPage, kPage, &handle), EINVAL) << "it moves";
  EXPECT_EQ(cuda<int (*)(std::uint64_t)>("cuMemFree_v2")(managed), 0);
}

TEST_F(GdrCopy, CloseUnpins) {
  Pin handle;
  void* mapped = nullptr;
  ASSERT_EQ(pin(first_, kPage, &handle), 0);
  ASSERT_EQ(map(handle, &mapped, kPage), 0);
  EXPECT_EQ(map(handle, &mapped, kPage), EAGAIN) << "once";
}  // TearDown counts descriptors

}  // namespace
}  // namespace strait::soft::gdrcopy
