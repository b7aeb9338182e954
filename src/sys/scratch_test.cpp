// SPDX-License-Identifier: Apache-2.0
#include "sys/scratch.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

namespace strait::sys {
namespace {

namespace fs = std::filesystem;

TEST(Scratch, OfOneThatWasKilledIsSweptAndOfTheLivingIsNot) {
  const Scratch outer = Scratch::create(temporary_folder(), "strait-scratch-test").value();
  const std::string& parent = outer.path();
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto mine = Scratch::create(parent, "x");
    const char said = mine ? '+' : '-';
    (void)!::write(ready[1], &said, 1);
    ::pause();
    ::_exit(0);
  }
  char said = 0;
  ASSERT_EQ(::read(ready[0], &said, 1), 1);
  ASSERT_EQ(said, '+');
  ::close(ready[0]);
  ::close(ready[1]);
  EXPECT_EQ(Scratch::sweep(parent, "x"), 0) << "it is alive";
  EXPECT_EQ(Scratch::sweep(parent, "y"), 0);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(Scratch::sweep(parent, "y"), 0) << "another name";
  EXPECT_EQ(Scratch::sweep(parent, "x"), 1);
  EXPECT_EQ(Scratch::sweep(parent, "x"), 0);
}

TEST(Scratch, LinksAndStrangersAreLeftAlone) {
  const Scratch outer = Scratch::create(temporary_folder(), "strait-scratch-test").value();
  const std::string& parent = outer.path();
  fs::create_directory(parent + "/target");
  std::ofstream(parent + "/target/lock") << "";
  fs::create_directory_symlink(parent + "/target", parent + "/x.link");
  fs::create_directory(parent + "/x.new.making");  // nothing in it yet
  fs::create_directory(parent + "/x.without");     // no lock: nobody knows whose it is
  std::ofstream(parent + "/x.without/something") << "";
  EXPECT_EQ(Scratch::sweep(parent, "x"), 0);
  EXPECT_TRUE(fs::exists(parent + "/target/lock"));
  EXPECT_TRUE(fs::exists(parent + "/x.without"));
  fs::last_write_time(parent + "/x.without", fs::file_time_type::clock::now() - std::chrono::hours(2));
  EXPECT_EQ(Scratch::sweep(parent, "x"), 1) << "nobody has finished or removed it for hours";
  EXPECT_TRUE(fs::exists(parent + "/x.new.making"));
}

TEST(Scratch, RemovedHalfWayIsSwept) {
  const Scratch outer = Scratch::create(temporary_folder(), "strait-scratch-test").value();
  const std::string& parent = outer.path();
  fs::create_directory(parent + "/x.locked");
  std::ofstream(parent + "/x.locked/lock") << "";
  fs::create_directory(parent + "/x.empty");
  EXPECT_EQ(Scratch::sweep(parent, "x"), 2);
  EXPECT_FALSE(fs::exists(parent + "/x.locked"));
  EXPECT_FALSE(fs::exists(parent + "/x.empty"));
}

TEST(Scratch, AForkedChildDoesNotRemoveIt) {
  const Scratch outer = Scratch::create(temporary_folder(), "strait-scratch-test").value();
  auto* inner = new Scratch(Scratch::create(outer.path(), "x").value());
  const std::string path = inner->path();
  const pid_t child = ::fork();
  if (child == 0) {
    delete inner;
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(fs::exists(path));
  delete inner;
  EXPECT_FALSE(fs::exists(path));
}

TEST(Scratch, SaysWhereItCouldNotBeMade) {
  const auto made = Scratch::create("/nowhere/at/all", "x");
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().text.find("/nowhere/at/all"), std::string::npos);
}

}  // namespace
}  // namespace strait::sys
