// SPDX-License-Identifier: Apache-2.0
// What is different on a terminal: colour, and a line that says how far a measurement is and is drawn over itself.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "program.hpp"

namespace strait::testing {
namespace {

using Env = std::vector<std::pair<std::string, std::string>>;
const Env kColourful = {{"TERM", "xterm"}, {"NO_COLOR", ""}};
constexpr double kTerminalPatience = 170;

// What is to be seen of a stream in the end, on a terminal of 80 columns. It knows what the tool may write and no more.
class Screen {
 public:
  explicit Screen(const std::string& stream) {
    for (std::size_t i = 0; i < stream.size(); ++i) {
      const char c = stream[i];
      if (c == '\r')
        column_ = 0;
      else if (c == '\n')
        lines_.emplace_back();
      else if (c == '\033')
        i = escape(stream, i);
      else if ((static_cast<unsigned char>(c) & 0xc0) != 0x80)  // not the first byte of a letter
        put(c);
    }
  }
  [[nodiscard]] const std::vector<std::string>& lines() const { return lines_; }
  [[nodiscard]] std::string text() const {
    std::string all;
    for (const std::string& line : lines_) all += line + "\n";
    return all;
  }
  [[nodiscard]] const std::set<std::string>& colours() const { return colours_; }
  [[nodiscard]] const std::string& offence() const { return offence_; }

 private:
  void put(char c) {
    // The terminal would go on in the next line, and what is drawn over this one would leave the rest of it there.
    if (column_ >= 80) offence_ = "wider than the terminal: " + lines_.back();
    std::string& line = lines_.back();
    if (line.size() <= column_) line.resize(column_ + 1, ' ');
    line[column_++] = c;
  }
  std::size_t escape(const std::string& stream, std::size_t at) {
    const std::size_t end = stream.find_first_not_of("0123456789;", at + 2);
    if (end == std::string::npos || stream[at + 1] != '[') {
      offence_ = "an escape that is none";
      return at;
    }
    const std::string number = stream.substr(at + 2, end - at - 2);
    if (stream[end] == 'K' && number.empty())
      lines_.back().resize(std::min(lines_.back().size(), column_));
    else if (stream[end] == 'm')
      colours_.insert(number);
    else
      offence_ = "an escape that is neither colour nor clears a line: " + stream.substr(at + 1, end - at);
    return end;
  }

  std::vector<std::string> lines_{""};
  std::size_t column_ = 0;
  std::set<std::string> colours_;
  std::string offence_;
};

Outcome on_terminal(std::vector<std::string> arguments, const Env& env = kColourful) {
  return Program(strait_command(std::move(arguments)), env, Program::By::terminal).finish(kTerminalPatience);
}

TEST(Terminal, PerfSaysHowFarItIsAndLeavesNothingOfThat) {
  const Outcome outcome = on_terminal({"perf", "--spawn", "--test", "put_lat", "--sizes", "8", "--duration", "5s"});
  ASSERT_EQ(outcome.status, 0) << outcome.out;
  EXPECT_NE(outcome.out.find("\r\033[K  put_lat 8 B: "), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find(" of 5 s, "), std::string::npos) << outcome.out;
  const Screen screen(outcome.out);
  EXPECT_EQ(screen.offence(), "");
  EXPECT_EQ(screen.text().find("M operations/s"), std::string::npos) << screen.text();
  EXPECT_EQ(screen.text().find(" of 5 s"), std::string::npos) << screen.text();
  EXPECT_NE(screen.text().find("verified"), std::string::npos) << screen.text();
  EXPECT_TRUE(screen.colours().contains("1")) << outcome.out;
}

TEST(Terminal, ALongLineOfPerfIsCut) {
  Program perf(strait_command({"perf", "--spawn", "--test", "compare_swap_lat", "--iterations", "1099511627776"}),
               kColourful, Program::By::terminal);
  const std::string said = perf.read_until("\r\033[K  compare_swap_lat 8 B: ", 2, kTerminalPatience);
  ASSERT_NE(said, "");
  EXPECT_NE(said.find(" of 1099511627776 operations"), std::string::npos) << said;
  EXPECT_EQ(Screen(said).offence(), "");
  EXPECT_EQ(Screen(said + "\r\033[K").lines().back(), "");
}

TEST(Terminal, ComparingSaysWhatItMeasures) {
  const Outcome outcome = on_terminal(
      {"perf", "--pairs", "1", "--duration", "2ms", "--deadline", "60s", "--compare", "memcpy", "--sizes", "8"});
  ASSERT_EQ(outcome.status, 0) << outcome.out;
  EXPECT_NE(outcome.out.find("\r\033[K  "), std::string::npos) << outcome.out;
  const Screen screen(outcome.out);
  EXPECT_EQ(screen.offence(), "");
  EXPECT_TRUE(screen.colours().contains("1")) << outcome.out;
}

TEST(Terminal, TheDemoIsColourfulIn80Columns) {
  const Outcome outcome = on_terminal({"demo", "--size", "64K"});
  ASSERT_EQ(outcome.status, 0) << outcome.out;
  const Screen screen(outcome.out);
  EXPECT_EQ(screen.offence(), "");
  EXPECT_EQ(screen.colours(), (std::set<std::string>{"0", "1", "2", "32"})) << outcome.out;
  EXPECT_NE(screen.text().find("all 18 checks passed in"), std::string::npos) << screen.text();
  const Outcome wrong = on_terminal({"demo", "--no-packets", "--size", "64K", "--damage", "put"});
  EXPECT_EQ(wrong.status, 1) << wrong.out;
  EXPECT_NE(wrong.out.find("\033[1;31mWRONG"), std::string::npos) << wrong.out;
  EXPECT_EQ(Screen(wrong.out).offence(), "");
}

TEST(Terminal, WhoWantsNoColourGetsNone) {
  for (const Env& env : {Env{{"TERM", "xterm"}, {"NO_COLOR", "1"}}, Env{{"TERM", "dumb"}, {"NO_COLOR", ""}}}) {
    const Outcome outcome = on_terminal({"demo", "--no-packets", "--size", "64K"}, env);
    ASSERT_EQ(outcome.status, 0) << outcome.out;
    EXPECT_EQ(outcome.out.find('\033'), std::string::npos) << env[0].second << "\n" << outcome.out;
  }
}

TEST(Terminal, JsonIsJsonThereToo) {
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"demo", "--no-packets", "--size", "64K", "--json"},
        std::vector<std::string>{"perf", "--spawn", "--test", "put_lat", "--sizes", "8", "--duration", "3s", "--json"},
        std::vector<std::string>{"info", "--json"}}) {
    const Outcome outcome = on_terminal(command);
    EXPECT_EQ(outcome.status, 0) << outcome.out;
    EXPECT_TRUE(nlohmann::json::accept(outcome.out)) << outcome.out;
  }
}

}  // namespace
}  // namespace strait::testing
