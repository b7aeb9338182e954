// SPDX-License-Identifier: Apache-2.0
#include "sys/file_mappings.hpp"

#include <gtest/gtest.h>

#include "sys/mapping.hpp"

namespace strait::sys {
namespace {

TEST(FileMappings, SaysWhereAFileIsMappedAndNothingElse) {
  const std::size_t page = page_bytes();
  auto file = make_sealed_memfd("looked-for", 8 * page);
  auto other = make_sealed_memfd("another", 8 * page);
  ASSERT_TRUE(file && other);
  EXPECT_TRUE(mappings_of(file->get()).empty());
  const auto one = map_file(file->get(), 3 * page, page, Protect::read_write);
  const auto beside = map_file(other->get(), 3 * page, page, Protect::read_write);
  const auto read_only = map_file(file->get(), 6 * page, 2 * page, Protect::read);
  ASSERT_TRUE(one && beside && read_only);
  const auto found = mappings_of(file->get());
  ASSERT_EQ(found.size(), 2u);
  for (const FileMapping& each : found) {
    const bool first = each.address == reinterpret_cast<std::uint64_t>(one->data());
    EXPECT_EQ(each.address, reinterpret_cast<std::uint64_t>(first ? one->data() : read_only->data()));
    EXPECT_EQ(each.length_bytes, first ? page : 2 * page);
    EXPECT_EQ(each.offset, (first ? 3 : 6) * page);
    EXPECT_EQ(each.writable, first);
  }
}

TEST(FileMappings, ProtectionChangesBothWays) {
  auto file = make_sealed_memfd("protected", page_bytes());
  ASSERT_TRUE(file);
  const auto one = map_file(file->get(), 0, page_bytes(), Protect::read_write);
  ASSERT_TRUE(one);
  const auto at = reinterpret_cast<std::uint64_t>(one->data());
  ASSERT_TRUE(set_writable(at, page_bytes(), false));
  EXPECT_FALSE(mappings_of(file->get()).at(0).writable);
  ASSERT_TRUE(set_writable(at, page_bytes(), true));
  EXPECT_TRUE(mappings_of(file->get()).at(0).writable);
  *one->data() = std::byte{1};
}

}  // namespace
}  // namespace strait::sys
