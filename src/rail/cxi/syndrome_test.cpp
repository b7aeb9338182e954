// SPDX-License-Identifier: Apache-2.0
// docs/rail-cxi.md says which return code becomes which syndrome: every code is compared with it.
#include "rail/cxi/syndrome.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <string>

namespace strait::rail::cxi {
namespace {
namespace m = wire::mlx5;
using wire::cxi::ReturnCode;

constexpr std::uint32_t kCodes = 64;  // six bits of an event
constexpr std::uint32_t kRest = UINT32_MAX;

// "| words (5 6 8) | 0x13 words |" and "| everything else | 0x14 words |", under "| return code | syndrome |".
std::map<std::uint32_t, std::uint32_t> read_page() {
  std::ifstream page(STRAIT_SOURCE_DIR "/docs/rail-cxi.md");
  std::map<std::uint32_t, std::uint32_t> out;
  std::string line;
  while (std::getline(page, line) && !line.starts_with("| return code | syndrome |")) {
  }
  std::getline(page, line);
  const std::regex row(R"(\| (?:everything else|.*\(([0-9 ]+)\)) \| (0x[0-9a-f]+) .*\|)");
  while (std::getline(page, line) && line.starts_with("|")) {
    std::smatch found;
    if (!std::regex_match(line, found, row)) {
      ADD_FAILURE() << "not a row: " << line;
      continue;
    }
    const auto syndrome = static_cast<std::uint32_t>(std::stoul(found[2], nullptr, 16));
    if (!found[1].matched) out.emplace(kRest, syndrome);
    std::istringstream numbers(found[1]);
    for (std::uint32_t code = 0; numbers >> code;) {
      EXPECT_TRUE(out.emplace(code, syndrome).second) << "twice: " << code;
    }
  }
  return out;
}

TEST(CxiSyndrome, EveryReturnCodeIsAsThePageSays) {
  const auto page = read_page();
  ASSERT_TRUE(page.contains(kRest));
  EXPECT_EQ(syndrome_of(ReturnCode::ok), m::Syndrome::none);
  for (std::uint32_t code = 0; code < kCodes; ++code) {
    if (code == static_cast<std::uint32_t>(ReturnCode::ok)) continue;
    const auto row = page.find(code);
    EXPECT_EQ(static_cast<std::uint32_t>(syndrome_of(static_cast<ReturnCode>(code))),
              row != page.end() ? row->second : page.at(kRest))
        << "return code " << code;
  }
}

TEST(CxiSyndrome, AReceiveFailsWhereItIs) {
  EXPECT_EQ(receive_syndrome_of(ReturnCode::ok), m::Syndrome::none);
  for (std::uint32_t code = 0; code < kCodes; ++code) {
    if (code == static_cast<std::uint32_t>(ReturnCode::ok)) continue;
    EXPECT_EQ(receive_syndrome_of(static_cast<ReturnCode>(code)),
              code >= 33 && code <= 37 ? m::Syndrome::local_protection : m::Syndrome::local_qp_operation)
        << "return code " << code;
  }
}

}  // namespace
}  // namespace strait::rail::cxi
