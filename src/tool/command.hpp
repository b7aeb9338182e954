// SPDX-License-Identifier: Apache-2.0
// The command line: commands, their options, and --help as a manual page made from those very options, so that none can
// be forgotten. Only command.cpp sees the parser behind it, which takes seconds to compile.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace strait::tool {

struct Manual {
  std::string name;         // "strait perf - measure latency and bandwidth between two processes"
  std::string synopsis;     // one use a line
  std::string description;  // paragraphs; lines are filled, a line that begins with two blanks stays as it is
  std::string examples;     // as it is
  std::string environment;  // "NAME  text" a line; added to what every command has
  std::string exits = {};   // lines about exit codes; empty: what every command has
};

// What an option takes.
struct Takes {
  const char* type;      // "BYTES"
  std::string help;      // a sentence or more
  std::string fallback;  // shown as the default; empty: none is shown
  // Empty when the value will do, otherwise the sentence that says why not.
  std::function<std::string(const std::string&)> check;
};

// A check: one of these words.
[[nodiscard]] std::function<std::string(const std::string&)> one_of(std::vector<std::string> words);

class Command {
 public:
  // What is written to must live as long as the command line does; commands keep it in what they hand to on_run.
  void flag(const char* name, bool& into, const char* help);
  void hidden_flag(const char* name, bool& into);
  void hidden_text(const char* name, std::string& into);
  void text(const char* name, std::string& into, Takes takes);
  void number(const char* name, std::uint64_t& into, Takes takes, std::uint64_t least, std::uint64_t most);
  void number(const char* name, std::uint32_t& into, Takes takes, std::uint32_t least, std::uint32_t most);
  void number(const char* name, int& into, Takes takes, int least, int most);
  // The value may be left away, and is then the fallback.
  void optional_text(const char* name, std::string& into, Takes takes);
  // Without a name in front: the first word that is no option.
  void word(const char* name, std::string& into, const char* help, bool required = false);
  // As often as wanted.
  void many(const char* name, std::vector<std::string>& into, Takes takes);
  // Everything from the first word on that is no option, or from behind "--": another command line.
  void rest(std::vector<std::string>& into);
  void not_both(const char* name, const char* other);
  void needs(const char* name, const char* other);

  // Called once the command line is known to be right; gives the exit code.
  void on_run(std::function<int()> run);

 private:
  friend class CommandLine;
  struct Parts;
  explicit Command(Parts& parts) : parts_(&parts) {}
  Parts* parts_;
};

class CommandLine {
 public:
  CommandLine(Manual manual, std::string version);
  ~CommandLine();
  [[nodiscard]] Command add(const char* name, const char* summary, Manual manual);
  // Reads the command line and runs what it names; the exit code. Wrong use is said on stderr.
  [[nodiscard]] int run(int argc, char** argv);

 private:
  struct Parts;
  [[nodiscard]] int end_of_options(int argc, char** argv) const;
  std::unique_ptr<Parts> parts_;
};

}  // namespace strait::tool
