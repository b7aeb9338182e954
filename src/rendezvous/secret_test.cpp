// SPDX-License-Identifier: Apache-2.0
// The secret: where it comes from, who may see it, and when it is not enough.
#include "rendezvous/secret.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "sys/fd.hpp"

namespace strait::rendezvous {
namespace {

namespace fs = std::filesystem;

struct SecretTest : testing::Test {
  SecretTest() {
    std::string pattern = fs::temp_directory_path() / "strait-secret-test-XXXXXX";
    root = ::mkdtemp(pattern.data());
    place.folder = root + "/strait";
    file = place.folder + "/secret";
  }
  ~SecretTest() override { fs::remove_all(root); }

  Result<Secret> find() { return find_secret("", "", place); }
  static std::string text(const Secret& secret) {
    return {reinterpret_cast<const char*>(secret.bytes.data()), secret.bytes.size()};
  }
  static unsigned mode(const std::string& path) {
    struct stat seen {};
    EXPECT_EQ(::stat(path.c_str(), &seen), 0) << path;
    return seen.st_mode & 07777;
  }
  void write(const std::string& path, const std::string& content, mode_t bits) {
    std::ofstream(path) << content;
    ::chmod(path.c_str(), bits);
  }

  std::string root;
  std::string file;
  SecretPlace place;
};

TEST_F(SecretTest, OptionComesFirstAndCountsAsGiven) {
  const Secret secret = find_secret("open sesame", "/does/not/matter", place).value();
  EXPECT_EQ(text(secret), "open sesame");
  EXPECT_TRUE(secret.given);
  EXPECT_FALSE(fs::exists(place.folder)) << "nothing is made when nothing is needed";
}

TEST_F(SecretTest, FileIsMadeOnceForThisUserOnly) {
  const ::mode_t before = ::umask(0);  // not even a careless umask opens it
  const Secret made = find().value();
  ::umask(before);
  EXPECT_EQ(made.bytes.size(), 64u);
  EXPECT_FALSE(made.given);
  EXPECT_EQ(mode(place.folder), 0700u);
  EXPECT_EQ(mode(file), 0600u);
  EXPECT_EQ(find().value().bytes, made.bytes) << "the next process finds the same";
  EXPECT_EQ(std::distance(fs::directory_iterator(place.folder), {}), 1) << "no drafts are left behind";
}

TEST_F(SecretTest, ManyAtOnceAgree) {
  std::vector<std::string> seen(8);
  std::vector<std::thread> threads;
  for (std::string& each : seen) threads.emplace_back([&] { each = text(find().value()); });
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(std::set<std::string>(seen.begin(), seen.end()).size(), 1u);
}

TEST_F(SecretTest, OpenFileOrFolderIsRefusedWithTheRemedy) {
  (void)find().value();
  ::chmod(file.c_str(), 0640);
  auto refused = find();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::denied);
  EXPECT_EQ(refused.error().text, "the file " + file + " is open to other users (mode 0640)");
  EXPECT_EQ(refused.error().remedy, "chmod 600 " + file);
  ::chmod(file.c_str(), 0600);
  ::chmod(place.folder.c_str(), 0755);
  refused = find();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text, "the folder " + place.folder + " is open to other users (mode 0755)");
}

TEST_F(SecretTest, SomebodyElsesFolderIsRefused) {
  // Only root can give a folder away; everybody else finds one that is not theirs.
  if (::geteuid() == 0) {
    fs::create_directory(place.folder);
    ::chmod(place.folder.c_str(), 0700);
    ASSERT_EQ(::chown(place.folder.c_str(), 12345, 12345), 0);
  } else {
    place.folder = "/usr";
  }
  const auto refused = find();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::denied);
  EXPECT_NE(refused.error().text.find(" belongs to user "), std::string::npos) << refused.error().text;
}

TEST_F(SecretTest, LinksAreNotFollowed) {
  fs::create_directory(root + "/elsewhere");
  ::chmod((root + "/elsewhere").c_str(), 0700);
  fs::create_directory_symlink(root + "/elsewhere", place.folder);
  EXPECT_EQ(find().error().text, place.folder + " is not a folder but a file or a link");
  fs::remove(place.folder);
  fs::create_directory(place.folder);
  ::chmod(place.folder.c_str(), 0700);
  write(root + "/target", "0123456789abcdef0123456789abcdef", 0600);
  fs::create_symlink(root + "/target", file);
  EXPECT_EQ(find().error().text, file + " is a link: a secret has to be a plain file");
  fs::remove(file);
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  EXPECT_EQ(find().error().text, file + " is not a plain file");
}

TEST_F(SecretTest, DamagedFilesAreRefused) {
  (void)find().value();
  write(file, "short\n", 0600);
  EXPECT_EQ(find().error().text, "the secret file " + file + " holds less than 16 bytes");
  write(file, std::string(5000, 'x'), 0600);
  EXPECT_EQ(find().error().text, file + " is longer than 4096 bytes");
}

TEST_F(SecretTest, NamedFile) {
  const std::string named = root + "/named";
  EXPECT_EQ(find_secret("", named, place).error().text, "the secret file " + named + " does not exist");
  write(named, "from a file\n", 0600);
  const Secret secret = find_secret("", named, place).value();
  EXPECT_EQ(text(secret), "from a file");
  EXPECT_TRUE(secret.given);
  write(named, "\n", 0600);
  EXPECT_EQ(find_secret("", named, place).error().text, "the secret file " + named + " is empty");
  write(named, "from a file\n", 0644);
  EXPECT_EQ(find_secret("", named, place).error().code, Code::denied);
}

TEST_F(SecretTest, NothingLeaksWhenRefused) {
  (void)find().value();
  ::chmod(file.c_str(), 0644);
  const int before = sys::count_open_fds();
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(find());
  EXPECT_EQ(sys::count_open_fds(), before);
}

TEST_F(SecretTest, PlaceFollowsTheEnvironment) {
  ::setenv("XDG_RUNTIME_DIR", root.c_str(), 1);
  EXPECT_EQ(SecretPlace::from_environment().folder, root + "/strait");
  ::setenv("XDG_RUNTIME_DIR", (root + "/missing").c_str(), 1);
  EXPECT_EQ(SecretPlace::from_environment().folder, fmt::format("/tmp/strait-{}", unsigned{::geteuid()}));
  ::unsetenv("XDG_RUNTIME_DIR");
  EXPECT_EQ(SecretPlace::from_environment().folder, fmt::format("/tmp/strait-{}", unsigned{::geteuid()}));
}

TEST(SecretListen, OtherHostsNeedAGivenAndLongSecret) {
  Secret users{std::vector<std::byte>(64, std::byte{'a'}), false};
  EXPECT_TRUE(check_listen({"127.0.0.1", 0}, users));
  const auto refused = check_listen({"0.0.0.0", 7471}, users);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::denied);
  EXPECT_EQ(refused.error().text,
            "the rendezvous will not listen on 0.0.0.0:7471, where other hosts reach it, without a secret");
  EXPECT_FALSE(refused.error().remedy.empty());
  users.given = true;
  EXPECT_TRUE(check_listen({"0.0.0.0", 7471}, users));
  users.bytes.resize(15);
  EXPECT_EQ(check_listen({"::", 7471}, users).error().text,
            "the rendezvous will not listen on [::]:7471, where other hosts reach it, with a secret of 15 bytes: 16 "
            "are the least");
  EXPECT_TRUE(check_listen({"127.0.0.1", 0}, users));
  users.bytes.clear();
  EXPECT_EQ(check_listen({"127.0.0.1", 0}, users).error().text,
            "the rendezvous on 127.0.0.1:0 needs a secret, and it is empty");
}

}  // namespace
}  // namespace strait::rendezvous
