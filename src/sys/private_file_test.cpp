// SPDX-License-Identifier: Apache-2.0
// Secrets on disk: who may have written them, who may read them, and that nobody ever sees half of one.
#include "sys/private_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <thread>

namespace strait::sys {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

class PrivateFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "strait-private-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    folder_ = open_private_folder(root_ + "/mine").value();
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  [[nodiscard]] Result<std::optional<std::vector<std::byte>>> read(const std::string& name,
                                                                   std::size_t max = 64) const {
    return read_private_file(folder_.get(), name, root_ + "/mine/" + name, max);
  }
  std::string root_;
  Fd folder_;
};

TEST_F(PrivateFile, IsReadBackAndHasNoRightsForOthers) {
  ASSERT_TRUE(create_private_file(folder_.get(), "secret", "secret", bytes_of("abc")).value());
  const auto found = read("secret").value();
  ASSERT_TRUE(found);
  EXPECT_TRUE(std::ranges::equal(*found, bytes_of("abc")));
  struct stat seen {};
  ASSERT_EQ(::stat((root_ + "/mine/secret").c_str(), &seen), 0);
  EXPECT_EQ(seen.st_mode & 0777, 0600U);
  ASSERT_EQ(::stat((root_ + "/mine").c_str(), &seen), 0);
  EXPECT_EQ(seen.st_mode & 0777, 0700U);
}

TEST_F(PrivateFile, AMissingOneIsNotAnError) {
  EXPECT_EQ(read("nothing").value(), std::nullopt);
}

TEST_F(PrivateFile, TheFirstOfManyWins) {
  std::vector<std::thread> threads;
  std::atomic<int> winners{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      const std::string mine(32, static_cast<char>('a' + i));
      if (create_private_file(folder_.get(), "secret", "secret", bytes_of(mine)).value()) ++winners;
      // Whoever won, what everybody reads from now on is whole.
      const auto found = read("secret").value();
      EXPECT_TRUE(found && found->size() == 32 && std::ranges::count(*found, found->front()) == 32);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(winners, 1);
  const auto left = std::distance(std::filesystem::directory_iterator(root_ + "/mine"), {});
  EXPECT_EQ(left, 1) << "drafts must not stay";
}

TEST_F(PrivateFile, OneThatOthersMayReadIsRefusedWithTheRemedy) {
  ASSERT_TRUE(create_private_file(folder_.get(), "secret", "secret", bytes_of("abc")).value());
  ASSERT_EQ(::fchmodat(folder_.get(), "secret", 0640, 0), 0);
  const auto found = read("secret");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Code::denied);
  EXPECT_NE(found.error().text.find("mode 0640"), std::string::npos);
  EXPECT_NE(found.error().remedy.find("chmod 600"), std::string::npos);
}

TEST_F(PrivateFile, LinksPipesAndFoldersAreRefused) {
  ASSERT_EQ(::symlinkat("/etc/hostname", folder_.get(), "link"), 0);
  EXPECT_EQ(read("link").error().code, Code::denied);
  ASSERT_EQ(::mkfifoat(folder_.get(), "pipe", 0600), 0);
  EXPECT_EQ(read("pipe").error().code, Code::denied) << "and it must not wait for a writer";
  ASSERT_EQ(::mkdirat(folder_.get(), "folder", 0700), 0);
  EXPECT_EQ(read("folder").error().code, Code::denied);
}

TEST_F(PrivateFile, TooLongIsRefused) {
  ASSERT_TRUE(create_private_file(folder_.get(), "secret", "secret", bytes_of("12345")).value());
  EXPECT_TRUE(read("secret", 5));
  EXPECT_EQ(read("secret", 4).error().code, Code::invalid);
}

TEST_F(PrivateFile, FoldersAreCheckedToo) {
  ASSERT_EQ(::mkdir((root_ + "/open").c_str(), 0700), 0);
  ASSERT_EQ(::chmod((root_ + "/open").c_str(), 0755), 0);
  EXPECT_EQ(open_private_folder(root_ + "/open").error().code, Code::denied);
  ASSERT_EQ(::symlink((root_ + "/mine").c_str(), (root_ + "/link").c_str()), 0);
  EXPECT_EQ(open_private_folder(root_ + "/link").error().code, Code::denied);
  std::ofstream(root_ + "/file") << "x";
  EXPECT_EQ(open_private_folder(root_ + "/file").error().code, Code::denied);
  EXPECT_EQ(open_private_folder(root_ + "/no/such").error().sys_errno, ENOENT);
  EXPECT_TRUE(is_folder(root_));
  EXPECT_FALSE(is_folder(root_ + "/file"));
}

}  // namespace
}  // namespace strait::sys
