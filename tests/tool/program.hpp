// SPDX-License-Identifier: Apache-2.0
// Runs a built program as a stranger would: arguments in, exit status and text out.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace strait::testing {

struct Outcome {
  int status = -1;  // exit status, or 128 + the signal that ended it
  std::string out;
  std::string err;
  double seconds = 0;
};

// A program that runs. Killed and reaped when it goes out of scope.
class Program {
 public:
  // What it is connected to. By default it has nothing to read from its standard input. On a terminal of 80 columns it
  // says everything in one stream, where lines end as they do on terminals: with "\r\n".
  enum class By { pipes, talk, terminal };
  explicit Program(const std::vector<std::string>& command,
                   const std::vector<std::pair<std::string, std::string>>& env = {}, By by = By::pipes);
  Program(const Program&) = delete;
  ~Program();

  // The next line of its standard output; empty at the end of it or after `seconds`.
  [[nodiscard]] std::string read_line(double seconds = 20);
  // False: it does not read any more.
  [[nodiscard]] bool write_line(const std::string& line) const;
  // Everything it said so far, once `words` are in it so often; empty at the end of it or after `seconds`.
  [[nodiscard]] std::string read_until(const std::string& words, int times, double seconds = 20);
  // Everything until it ends; kills it after `seconds`.
  [[nodiscard]] Outcome finish(double seconds = 60);
  void signal(int number) const;
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  bool pump(double until);  // false when both streams are at their end, or time is up
  pid_t pid_ = -1;
  int in_fd_ = -1;
  int out_fd_ = -1;
  int err_fd_ = -1;
  double start_ = 0;
  std::string out_;
  std::string err_;
  std::size_t read_ = 0;
};

[[nodiscard]] Outcome run(const std::vector<std::string>& command, double seconds = 170,
                          const std::vector<std::pair<std::string, std::string>>& env = {});
// `strait` with these arguments.
[[nodiscard]] Outcome strait(std::vector<std::string> arguments, double seconds = 60,
                             const std::vector<std::pair<std::string, std::string>>& env = {});
[[nodiscard]] std::vector<std::string> strait_command(std::vector<std::string> arguments);

// The text with every run of blanks and line ends as one blank: for sentences that were wrapped.
[[nodiscard]] std::string unwrapped(const std::string& text);

// Columns of the longest line.
[[nodiscard]] std::size_t widest(const std::string& text);

// Processes whose parent is `parent`.
[[nodiscard]] std::vector<pid_t> children_of(pid_t parent);
[[nodiscard]] bool runs(pid_t pid);  // and is no zombie

}  // namespace strait::testing
