// SPDX-License-Identifier: Apache-2.0
#include "buffer/providers.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "buffer/host.hpp"
#include "soft/accel/plugin.hpp"
#include "sys/aligned.hpp"

namespace strait::buffer {
namespace {

using namespace std::string_literals;

constexpr std::uint64_t kMiB = 1 << 20;

sys::Deadline soon() {
  return sys::Deadline::after_ns(20'000'000'000);
}

std::unique_ptr<Providers> open_with_soft(const std::string& config = "devices=2,memory=16777216,udmabuf=off") {
  std::vector<Plugin> plugins;
  plugins.push_back(use_plugin(strait_provider_plugin(), config).value());
  return Providers::open(std::move(plugins)).value();
}

void expect_refused(const Result<Claim>& answer, const std::string& says) {
  ASSERT_FALSE(answer) << says;
  EXPECT_EQ(answer.error().code, Code::invalid);
  EXPECT_NE(answer.error().text.find(says), std::string::npos) << answer.error().text;
}

class ProvidersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fds_before_ = sys::count_open_fds();
    all_ = open_with_soft();
  }
  void TearDown() override {
    all_.reset();
    EXPECT_EQ(sys::count_open_fds(), fds_before_);
  }
  int fds_before_ = 0;
  std::unique_ptr<Providers> all_;
};

TEST_F(ProvidersTest, ListsHostFirst) {
  const auto devices = all_->devices();
  ASSERT_EQ(devices.size(), 3u);
  EXPECT_EQ(devices[0]->name, "host");
  EXPECT_FALSE(devices[0]->software);
  EXPECT_EQ(devices[1]->name, "soft:0");
  EXPECT_EQ(devices[2]->name, "soft:1");
  EXPECT_EQ(devices[2]->kind, "soft");
  EXPECT_TRUE(devices[2]->software);
}

TEST_F(ProvidersTest, RecognisesDeviceMemory) {
  const Memory memory = all_->allocate("soft:1", 64 * 1024).value();
  const auto claim = all_->classify(static_cast<char*>(memory.data()) + 100, 1000);
  ASSERT_TRUE(claim);
  EXPECT_EQ(claim->device->name, "soft:1");
  EXPECT_EQ(claim->whole, memory.range());
  EXPECT_EQ(claim->asked, (Range{memory.range().address + 100, 1000}));
  EXPECT_NE(claim->identity, 0u);
  EXPECT_FALSE(claim->cpu_accessible());
  EXPECT_TRUE(claim->can_export());
  EXPECT_EQ(describe(*claim), fmt::format("soft:1 {:#x} + 1000 B (whole allocation 64 KiB)", claim->asked.address));
}

TEST_F(ProvidersTest, RecognisesHostMemoryOfAnySort) {
  int on_the_stack = 0;
  const std::vector<char> on_the_heap(1 << 20);
  static char in_data[100];
  const std::pair<const void*, std::uint64_t> cases[] = {
      {&on_the_stack, sizeof on_the_stack}, {on_the_heap.data(), on_the_heap.size()}, {in_data, sizeof in_data}};
  for (const auto& [address, length] : cases) {
    const auto claim = all_->classify(address, length);
    ASSERT_TRUE(claim) << claim.error().text;
    EXPECT_EQ(claim->device->name, "host");
    EXPECT_EQ(claim->whole, claim->asked) << "nobody knows how large somebody else's allocation is";
    EXPECT_EQ(claim->identity, 0u);
    EXPECT_TRUE(claim->cpu_accessible());
    EXPECT_TRUE(claim->writable);
  }
  static const char read_only[] = "in the text segment";
  const auto claim = all_->classify(read_only, sizeof read_only);
  ASSERT_TRUE(claim) << claim.error().text;
  EXPECT_FALSE(claim->writable);
}

TEST_F(ProvidersTest, KnowsTheWholeOfItsOwnHostMemory) {
  const Memory memory = all_->allocate("", 3 * kMiB + 1).value();
  EXPECT_EQ(memory.range().address % sys::kHugePageBytes, 0u);
  std::memset(memory.data(), 7, memory.size());
  const auto claim = all_->classify(static_cast<char*>(memory.data()) + 10, 10);
  ASSERT_TRUE(claim);
  EXPECT_EQ(claim->whole, memory.range());
  EXPECT_NE(claim->identity, 0u);
  expect_refused(all_->classify(memory.data(), memory.size() + 1),
                 "the range ends 1 bytes past the allocation of 3.0 MiB");
}

TEST_F(ProvidersTest, BadRangesGetASentence) {
  const Memory memory = all_->allocate("soft:0", kMiB).value();
  char byte = 0;
  expect_refused(all_->classify(nullptr, 10), "null address");
  expect_refused(all_->classify(&byte, 0), "0 bytes");
  expect_refused(all_->classify(&byte, UINT64_MAX), "wrap around");
  expect_refused(
      all_->classify(memory.data(), kMiB + 4096),
      fmt::format("the range ends 4096 bytes past the allocation of 1 MiB at {:#x} (soft:0)", memory.range().address));
  expect_refused(all_->classify(static_cast<char*>(memory.data()) + kMiB, 1), "no accelerator claims it");
  expect_refused(all_->classify(Range{0x10, 16}), "0x10 is not mapped in this process");
  expect_refused(all_->classify(Range{0xdead'0000'0000'0000, 16}), "is not mapped in this process");
}

TEST_F(ProvidersTest, FreedDeviceMemoryIsNobodys) {
  Memory memory = all_->allocate("soft:0", kMiB).value();
  const Range range = memory.range();
  ASSERT_TRUE(memory.free());
  const auto claim = all_->classify(range);
  expect_refused(claim, "is reserved but not accessible, and no accelerator claims it");
  EXPECT_NE(claim.error().remedy.find("freed"), std::string::npos);
  EXPECT_EQ(memory.free().error().code, Code::gone);
}

TEST_F(ProvidersTest, HolesInHostMemoryAreFound) {
  const std::size_t page = sys::page_bytes();
  auto pages = sys::map_anonymous(5 * page, sys::Protect::read_write).value();
  std::byte* base = pages.data();
  ASSERT_EQ(::mprotect(base + page, page, PROT_READ), 0);
  ASSERT_EQ(::mprotect(base + 3 * page, page, PROT_NONE), 0);
  EXPECT_TRUE(all_->classify(base, page)->writable);
  EXPECT_FALSE(all_->classify(base, page + 1)->writable) << "one read-only byte makes the range read-only";
  EXPECT_TRUE(all_->classify(base, 3 * page));
  expect_refused(all_->classify(base, 3 * page + 1),
                 fmt::format("{:#x} (inside the range) is reserved", reinterpret_cast<std::uint64_t>(base + 3 * page)));
  ASSERT_EQ(::munmap(base + 3 * page, page), 0);
  expect_refused(all_->classify(base, 5 * page), "(inside the range) is not mapped in this process");
  expect_refused(all_->classify(base + 3 * page + 5, 1), "is not mapped in this process");
}

TEST_F(ProvidersTest, CopiesBetweenAllKinds) {
  std::vector<unsigned char> in(100'000);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<unsigned char>(i * 7 + i / 256);
  std::vector<unsigned char> out(in.size());
  const Memory a = all_->allocate("soft:0", in.size()).value();
  const Memory b = all_->allocate("soft:1", in.size()).value();
  const Memory h = all_->allocate("host", in.size()).value();
  ASSERT_TRUE(all_->copy(a.data(), in.data(), in.size(), soon()));
  ASSERT_TRUE(all_->copy(b.data(), a.data(), in.size(), soon()));
  ASSERT_TRUE(all_->copy(h.data(), b.data(), in.size(), soon()));
  ASSERT_TRUE(all_->copy(out.data(), h.data(), in.size(), soon()));
  EXPECT_EQ(in, out);
  EXPECT_TRUE(all_->copy(nullptr, nullptr, 0, soon())) << "nothing to do";
}

TEST_F(ProvidersTest, BadCopiesAreRefusedBeforeAnyByteMoves) {
  const Memory a = all_->allocate("soft:0", 4096).value();
  std::vector<char> bytes(8192, 'x');
  static const char read_only[4096] = "text segment";
  EXPECT_EQ(all_->copy(a.data(), bytes.data(), 4097, soon()).error().code, Code::invalid);
  EXPECT_EQ(all_->copy(bytes.data(), nullptr, 1, soon()).error().code, Code::invalid);
  const auto refused = all_->copy(const_cast<char*>(read_only), a.data(), 10, soon());
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text.find("this process may only read it"), std::string::npos);
  EXPECT_EQ(read_only[0], 't');
}

TEST_F(ProvidersTest, AllocationsFailWithNamesAndLimits) {
  const auto unknown = all_->allocate("cuda:0", 1);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().text, "there is no memory device \"cuda:0\"");
  EXPECT_EQ(unknown.error().remedy, "Here are: host, soft:0, soft:1.");
  EXPECT_EQ(all_->allocate("soft:0", 17 * kMiB).error().code, Code::limit);
  EXPECT_EQ(all_->allocate("host", 0).error().code, Code::invalid);
  EXPECT_EQ(all_->allocate("host", UINT64_MAX).error().code, Code::limit);
  EXPECT_FALSE(all_->allocate("host", std::uint64_t{1} << 62));
  EXPECT_NE(all_->providers()[0]->counters().find("live_allocations=0"), std::string::npos);
}

// The two Nodes of one process have an accelerator each; one's memory means nothing to the other.
TEST_F(ProvidersTest, AnotherNodesDeviceMemoryIsRefused) {
  const auto other = open_with_soft();
  const Memory theirs = other->allocate("soft:0", 4096).value();
  expect_refused(all_->classify(theirs.data(), 4096), "no accelerator claims it");
}

TEST_F(ProvidersTest, ClassifyFromManyThreads) {
  const Memory mine = all_->allocate("soft:0", 8192).value();
  const Memory host = all_->allocate("host", 8192).value();
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        ASSERT_TRUE(all_->classify(mine.data(), 8192));
        ASSERT_TRUE(all_->classify(host.data(), 8192));
        ASSERT_TRUE(all_->classify(&t, sizeof t));
        const auto brief = all_->allocate(t == 0 ? "host" : "soft:1", 4096);
        ASSERT_TRUE(brief);
        ASSERT_TRUE(all_->classify(brief->data(), 4096));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(ProvidersOpen, TheFirstThatFailsClosesTheOthers) {
  const int fds_before = sys::count_open_fds();
  char before[512];
  strait_provider_plugin()->counters(nullptr, before, sizeof before);
  std::vector<Plugin> plugins;
  plugins.push_back(use_plugin(strait_provider_plugin(), "devices=1").value());
  plugins.push_back(use_plugin(strait_provider_plugin(), "devices=none").value());
  const auto opened = Providers::open(std::move(plugins));
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().text.find("devices=\"none\" is not a number"), std::string::npos) << opened.error().text;
  EXPECT_EQ(sys::count_open_fds(), fds_before);

  std::vector<Plugin> twice;
  twice.push_back(use_plugin(strait_provider_plugin(), "devices=1").value());
  twice.push_back(use_plugin(strait_provider_plugin(), "devices=1").value());
  EXPECT_EQ(Providers::open(std::move(twice)).error().text, "two memory providers have a device named soft:0");
  char after[512];
  strait_provider_plugin()->counters(nullptr, after, sizeof after);
  const auto number = [](const std::string& text, const std::string& name) {
    return std::stoi(text.substr(text.find(name + "=") + name.size() + 1));
  };
  EXPECT_EQ(number(after, "opens") - number(before, "opens"), number(after, "closes") - number(before, "closes"));
  EXPECT_EQ(number(after, "opens") - number(before, "opens"), 3);
}

TEST(SizeText, IsExactWhereItCanBe) {
  EXPECT_EQ(size_text(0), "0 B");
  EXPECT_EQ(size_text(1023), "1023 B");
  EXPECT_EQ(size_text(1024), "1 KiB");
  EXPECT_EQ(size_text(16 * kMiB), "16 MiB");
  EXPECT_EQ(size_text(1536 * kMiB), "1.5 GiB");
  EXPECT_EQ(size_text(UINT64_MAX), "16777216.0 TiB");
}

}  // namespace
}  // namespace strait::buffer
