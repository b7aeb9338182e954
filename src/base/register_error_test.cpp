// SPDX-License-Identifier: Apache-2.0
#include "base/register_error.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <fstream>
#include <sstream>

namespace strait {
namespace {

constexpr const char* kPageBegin = "<!-- begin: sentences of src/base/register_error.cpp -->\n";
constexpr const char* kPageEnd = "<!-- end -->\n";

// "| EPERM | cause. Remedy. |" for each.
std::string errno_rows() {
  std::string out = "| by | errno | what it means, and what to do |\n|---|---|---|\n";
  const auto add = [&](RegisteredBy by, const char* name, std::initializer_list<int> errors) {
    for (const int each : errors) {
      const Error error = register_failed(each, by, "mlx5_0");
      const std::size_t from = error.text.find(": ") + 2;
      const std::size_t to = error.text.rfind(" (");
      out += fmt::format("| {} | {} | {}. {} |\n", name, error.text.substr(to + 2, error.text.size() - to - 3),
                         error.text.substr(from, to - from), error.remedy);
    }
  };
  add(RegisteredBy::dmabuf, "dma-buf", {524, EOPNOTSUPP, EPROTONOSUPPORT, EINVAL, EPERM, EBUSY, ENOMEM, ENODEV, EBADF});
  add(RegisteredBy::device_address, "address", {EFAULT, 524, EINVAL, ENOMEM, EOPNOTSUPP, ENODEV});
  return out;
}

TEST(RegisterError, ThePageHasTheSentences) {
  const std::string path = STRAIT_SOURCE_DIR "/docs/export.md";
  std::ifstream file(path);
  std::stringstream whole;
  whole << file.rdbuf();
  const std::string page = whole.str();
  const std::size_t begin = page.find(kPageBegin);
  const std::size_t end = page.find(kPageEnd);
  ASSERT_TRUE(begin != std::string::npos && end != std::string::npos) << path << " has lost its marks";
  const std::size_t first = begin + std::string(kPageBegin).size();
  EXPECT_EQ(page.substr(first, end - first), errno_rows())
      << "Replace what is between the marks of " << path << " by these lines:\n\n"
      << errno_rows();
}

TEST(RegisterError, EveryErrnoOfTheTableHasACauseAndARemedy) {
  struct {
    int error;
    Code code;
    const char* says;
  } const dmabuf[] = {{524, Code::unsupported, "refused this NIC"},
                      {EOPNOTSUPP, Code::unsupported, "no dma-buf registration"},
                      {EPROTONOSUPPORT, Code::unsupported, "no dma-buf registration"},
                      {EINVAL, Code::invalid, "same place in a page"},
                      {EPERM, Code::unsupported, "no peer-to-peer path"},
                      {EBUSY, Code::again, "in reset"},
                      {ENOMEM, Code::limit, "BAR"},
                      {EBADF, Code::invalid, "not open"}};
  for (const auto& row : dmabuf) {
    const Error error = register_failed(row.error, RegisteredBy::dmabuf, "mlx5_0");
    EXPECT_EQ(error.sys_errno, row.error);
    EXPECT_EQ(error.code, row.code) << error.text;
    EXPECT_NE(error.text.find(row.says), std::string::npos) << error.text;
    EXPECT_EQ(error.text.rfind("mlx5_0 did not register the dma-buf: ", 0), 0u) << error.text;
    EXPECT_FALSE(error.remedy.empty()) << error.text;
  }
  for (const int each : {EFAULT, 524, EINVAL, ENOMEM, EOPNOTSUPP}) {
    const Error error = register_failed(each, RegisteredBy::device_address, "mlx5_0");
    EXPECT_EQ(error.sys_errno, each);
    EXPECT_FALSE(error.remedy.empty()) << error.text;
  }
  EXPECT_NE(register_failed(EFAULT, RegisteredBy::device_address, "n").text.find("no peer-memory client"),
            std::string::npos);
}

TEST(RegisterError, AnyOtherErrnoStillSaysWhatFailed) {
  const Error error = register_failed(EIO, RegisteredBy::dmabuf, "mlx5_0");
  EXPECT_EQ(error.sys_errno, EIO);
  EXPECT_NE(error.text.find("EIO"), std::string::npos) << error.text;
}

TEST(RegisterError, FiveHundredTwentyFourIsNeverAnUnknownError) {
  const Error error = register_failed(524, RegisteredBy::dmabuf, "mlx5_0");
  EXPECT_EQ(error.text.find("Unknown error"), std::string::npos);
  EXPECT_NE(error.text.find("errno 524"), std::string::npos) << error.text;
  EXPECT_NE(error.remedy.find("same PCI switch"), std::string::npos) << error.remedy;
}

}  // namespace
}  // namespace strait
