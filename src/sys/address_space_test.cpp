// SPDX-License-Identifier: Apache-2.0
#include "sys/address_space.hpp"

#include <gtest/gtest.h>

#include "sys/aligned.hpp"
#include "sys/mapping.hpp"
#include "sys/udmabuf.hpp"

namespace strait::sys {
namespace {

using Kind = RangeAccess::Kind;
using Source = AddressSpace::Source;

std::uint64_t at(const std::byte* byte) {
  return reinterpret_cast<std::uint64_t>(byte);
}

class AddressSpaceTest : public ::testing::Test {
 protected:
  // read-write, read-only, no access, unmapped, read-write
  void SetUp() override {
    page_ = page_bytes();
    pages_ = map_anonymous(5 * page_, Protect::read_write).value();
    base_ = pages_.data();
    ASSERT_EQ(::mprotect(base_ + page_, page_, PROT_READ), 0);
    ASSERT_EQ(::mprotect(base_ + 2 * page_, page_, PROT_NONE), 0);
    ASSERT_EQ(::munmap(base_ + 3 * page_, page_), 0);
  }
  // Everything a source that lists mappings must know.
  void expect_exact(const AddressSpace& space) {
    const auto look = [&](std::size_t from, std::size_t n) { return space.look(at(base_) + from, n); };
    EXPECT_EQ(look(0, page_).kind, Kind::read_write);
    EXPECT_EQ(look(page_ - 1, 1).kind, Kind::read_write);
    EXPECT_EQ(look(page_ - 1, 2).kind, Kind::read_only);
    EXPECT_EQ(look(page_ - 1, 2).weak_from, at(base_) + page_);
    EXPECT_EQ(look(0, 2 * page_ + 1).kind, Kind::no_access);
    EXPECT_EQ(look(0, 2 * page_ + 1).weak_from, at(base_) + 2 * page_);
    EXPECT_EQ(look(0, 5 * page_).kind, Kind::unmapped);
    EXPECT_EQ(look(0, 5 * page_).weak_from, at(base_) + 3 * page_);
    EXPECT_EQ(look(3 * page_ + 7, 1).kind, Kind::unmapped);
    EXPECT_EQ(look(3 * page_ + 7, 1).weak_from, at(base_) + 3 * page_ + 7);
    EXPECT_EQ(look(4 * page_, page_).kind, Kind::read_write);
    EXPECT_EQ(space.look(UINT64_MAX - 10, 5).kind, Kind::unmapped);
    EXPECT_EQ(space.look(1, 1).kind, Kind::unmapped);
    EXPECT_TRUE(look(0, 2 * page_).anonymous);
    EXPECT_FALSE(look(0, 5 * page_).anonymous) << "a hole is nobody's";
    const Fd file = make_sealed_memfd("a file", page_).value();
    const Mapping shared = map_file(file.get(), 0, page_, Protect::read_write).value();
    EXPECT_FALSE(space.look(at(shared.data()), page_).anonymous);
    static const int in_the_program = 7;
    EXPECT_FALSE(space.look(reinterpret_cast<std::uint64_t>(&in_the_program), 4).anonymous);
  }
  std::size_t page_ = 0;
  Mapping pages_;
  std::byte* base_ = nullptr;
};

TEST_F(AddressSpaceTest, TheTextOfMapsIsExact) {
  const auto space = AddressSpace::open_with(Source::text);
  ASSERT_TRUE(space) << space.error().text;
  expect_exact(*space);
}

// The ioctl is tested wherever the kernel has it; elsewhere open() must have settled for the text.
TEST_F(AddressSpaceTest, TheBestSourceIsExact) {
  const AddressSpace best = AddressSpace::open();
  EXPECT_EQ(best.source(), AddressSpace::open_with(Source::query) ? Source::query : Source::text);
  expect_exact(best);
}

TEST_F(AddressSpaceTest, ProbingSeesBothEnds) {
  const auto space = AddressSpace::open_with(Source::probe);
  ASSERT_TRUE(space);
  EXPECT_EQ(space->look(at(base_), page_).kind, Kind::read_write);
  EXPECT_EQ(space->look(at(base_) + page_, page_ + 1).kind, Kind::unmapped);
  EXPECT_EQ(space->look(at(base_) + page_, page_ + 1).weak_from, at(base_) + 2 * page_);
  EXPECT_EQ(space->look(at(base_) + 2 * page_, 1).kind, Kind::unmapped);
  EXPECT_EQ(space->look(UINT64_MAX - 10, 5).kind, Kind::unmapped);
}

TEST(Aligned, LongFilesAreMappedOnHugePageBoundsAndNothingElseIsLeft) {
  const Fd file = make_sealed_memfd("aligned", 3 * kHugePageBytes).value();
  const AddressSpace space = AddressSpace::open();
  const Mapping mapping = map_file_aligned(file.get(), 3 * kHugePageBytes - page_bytes(), Protect::read_write).value();
  EXPECT_EQ(at(mapping.data()) % kHugePageBytes, 0u);
  EXPECT_EQ(space.look(at(mapping.data()), mapping.size()).kind, Kind::read_write);
  mapping.data()[0] = std::byte{1};
  mapping.data()[mapping.size() - 1] = std::byte{1};
  const Mapping small = map_file_aligned(file.get(), 4096, Protect::read_write).value();
  EXPECT_EQ(small.data()[0], std::byte{1});
}

TEST(Udmabuf, SaysWhatIsMissing) {
  const Fd file = make_sealed_memfd("udmabuf", page_bytes()).value();
  const auto missing = make_udmabuf(file.get(), 0, page_bytes(), "/nowhere/udmabuf");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::unsupported);
  EXPECT_EQ(missing.error().text.find("there is no /nowhere/udmabuf on this machine"), 0u) << missing.error().text;
  const auto wrong = make_udmabuf(file.get(), 0, page_bytes(), "/dev/null");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, Code::system);
  EXPECT_NE(wrong.error().text.find("/dev/null refused"), std::string::npos) << wrong.error().text;
}

TEST_F(AddressSpaceTest, OrdinaryPagesAreNotHuge) {
  for (const Source source : {Source::query, Source::text, Source::probe}) {
    auto space = AddressSpace::open_with(source);
    if (!space) continue;  // a kernel before 6.11 has no query; text and probe are everywhere
    EXPECT_EQ(space->huge_shift(at(base_), page_), 0u);
    EXPECT_EQ(space->huge_shift(at(base_) + 3 * page_, page_), 0u) << "unmapped";
  }
}

// Where the machine has a huge page to spare it is told; where it has none, mmap says so and there is nothing to tell.
TEST(AddressSpaceHuge, HugePagesAreTold) {
  constexpr std::size_t kHuge = std::size_t{1} << 21;
  constexpr int kSize2M = 21 << 26;  // MAP_HUGE_2MB
  void* const memory =
      ::mmap(nullptr, kHuge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | kSize2M, -1, 0);
  if (memory == MAP_FAILED) {
    EXPECT_EQ(errno, ENOMEM);
    return;
  }
  const auto address = reinterpret_cast<std::uint64_t>(memory);
  for (const Source source : {Source::query, Source::text}) {
    auto space = AddressSpace::open_with(source);
    if (!space) continue;
    EXPECT_EQ(space->huge_shift(address, kHuge), 21u);
    EXPECT_EQ(space->huge_shift(address + 4096, 1), 21u);
  }
  ::munmap(memory, kHuge);
}

}  // namespace
}  // namespace strait::sys
