// SPDX-License-Identifier: Apache-2.0
// docs/options.md shows the table of options: this writes the rows as they must be and compares.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "base/options.hpp"

namespace strait {
namespace {

constexpr const char* kBegin = "<!-- begin: rows of src/base/option_table.cpp -->\n";
constexpr const char* kEnd = "<!-- end -->\n";

std::string kind_of(const OptionRow& row) {
  const std::string range =
      row.most != INT64_MAX ? fmt::format(", {} to {}", row.least, row.most)
      : row.least != 0      ? fmt::format(", at least {}{}", row.least, row.type == OptionType::duration ? " ns" : "")
                            : "";
  switch (row.type) {
    case OptionType::text: return row.secret ? "text, never shown" : "text";
    case OptionType::flag: return "flag";
    case OptionType::integer: return "number" + range;
    case OptionType::bytes: return "bytes" + range;
    case OptionType::duration: return "duration" + range;
    case OptionType::choice: {
      std::string words;
      std::istringstream choices(row.choices);
      for (std::string word; std::getline(choices, word, '|');) words += (words.empty() ? "`" : " `") + word + "`";
      return words;
    }
  }
  return "";
}

std::string rows() {
  std::string text = "| option | variable | values | default | what it does |\n|---|---|---|---|---|\n";
  for (const OptionRow& row : option_table()) {
    const std::string fallback = *row.fallback == '\0' ? "empty" : fmt::format("`{}`", row.fallback);
    text += fmt::format("| `{}` | `{}` | {} | {} | {} |\n", row.name, environment_name(row.name), kind_of(row),
                        fallback, row.help);
  }
  return text;
}

TEST(OptionsPage, ShowsTheTableAsItIs) {
  const std::string path = STRAIT_SOURCE_DIR "/docs/options.md";
  std::ifstream file(path);
  ASSERT_TRUE(file) << path;
  std::stringstream whole;
  whole << file.rdbuf();
  const std::string page = whole.str();
  const std::size_t begin = page.find(kBegin);
  const std::size_t end = page.find(kEnd);
  ASSERT_NE(begin, std::string::npos) << path << " has lost its first mark";
  ASSERT_NE(end, std::string::npos) << path << " has lost its second mark";
  const std::size_t first = begin + std::string(kBegin).size();
  EXPECT_EQ(page.substr(first, end - first), rows())
      << "Replace what is between the marks of " << path << " by these lines:\n\n"
      << rows();
}

}  // namespace
}  // namespace strait
