// SPDX-License-Identifier: Apache-2.0
// Reports: the exit code of the process whatever main() says, lines in a file, and JSON that a parser takes.
#include "sys/report.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace strait::sys {
namespace {

// This program, started again with this word, reports and leaves by exit(0).
struct PlayTheChild {
  PlayTheChild() {
    const char* file = ::getenv("STRAIT_REPORT_TEST_FILE");
    if (file == nullptr) return;
    std::atexit([] { std::fputs("at exit\n", stdout); });
    deliver({"text\n", "{\"n\":1}", file, 66, false});
    std::atexit([] { std::fputs("later\n", stdout); });
    deliver({"more text\n", "{\"n\":2}", file, 66, true});
    std::fputs("not flushed, ", stdout);
    std::exit(0);
  }
} play_the_child;

std::string content(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

TEST(Report, TheProcessExitsWithTheCodeAfterAllElseIsDone) {
  const auto folder = std::filesystem::temp_directory_path() / ("strait-report-" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  const std::string file = folder / "lines", out = folder / "out", err = folder / "err";
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const std::string command = "STRAIT_REPORT_TEST_FILE=" + file + " " + self + " >" + out + " 2>" + err;
  const int status = std::system(command.c_str());
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 66);
  EXPECT_EQ(content(file), "{\"n\":1}\n{\"n\":2}\n");
  EXPECT_EQ(content(out), "not flushed, later\nat exit\n");
  EXPECT_EQ(content(err), "text\n");
  std::filesystem::remove_all(folder);
}

TEST(Report, AFileThatCannotBeWrittenIsNamed) {
  const Status status = check_report_file("/nowhere/at/all");
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().explain().find("/nowhere/at/all"), std::string::npos);
}

TEST(Report, StringsAreEscaped) {
  EXPECT_EQ(json_string("plain"), "\"plain\"");
  EXPECT_EQ(json_string("a\"b\\c"), R"("a\"b\\c")");
  EXPECT_EQ(json_string(std::string_view("\n\t\0x", 4)), R"("\u000a\u0009\u0000x")");
  EXPECT_EQ(json_string("\x7f"), R"("\u007f")");
  EXPECT_EQ(json_string("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80"),
            "\"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80\"");
}

TEST(Report, WhatIsNoUtf8IsReplaced) {
  EXPECT_EQ(json_string("\xff"), R"("\ufffd")");
  EXPECT_EQ(json_string("a\x80z"), R"("a\ufffdz")");
  EXPECT_EQ(json_string("\xc3"), R"("\ufffd")");                      // cut off
  EXPECT_EQ(json_string("\xc0\xaf"), R"("\ufffd\ufffd")");            // not the shortest form
  EXPECT_EQ(json_string("\xed\xa0\x80"), R"("\ufffd\ufffd\ufffd")");  // half of a pair
  EXPECT_EQ(json_string("\xf5\x80\x80\x80"), R"("\ufffd\ufffd\ufffd\ufffd")");
}

}  // namespace
}  // namespace strait::sys
