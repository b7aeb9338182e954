// SPDX-License-Identifier: Apache-2.0
#include "process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "workload.hpp"

namespace bench {

Child::Child(const std::vector<std::string>& command, const Environment& environment) {
  int out[2];
  int err[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0)
    give_up(std::string("no pipe: ") + std::strerror(errno));
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  pid_ = fork();
  if (pid_ < 0) give_up(std::string("cannot fork: ") + std::strerror(errno));
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0);  // so that what the child forks can be ended with it
    dup2(out[1], 1);
    dup2(err[1], 2);
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    execvp(words[0], words.data());
    dprintf(2, "cannot run %s: %s\n", words[0], std::strerror(errno));
    _exit(127);
  }
  setpgid(pid_, pid_);
  close(out[1]);
  close(err[1]);
  out_ = out[0];
  err_ = err[0];
}

Child::~Child() {
  if (out_ >= 0) close(out_);
  if (err_ >= 0) close(err_);
  if (pid_ <= 0) return;
  kill(-pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

Ran Child::finish(double deadline_s) {
  Ran ran;
  const std::uint64_t until = now_ns() + static_cast<std::uint64_t>(deadline_s * 1e9);
  pollfd waits[2] = {{out_, POLLIN, 0}, {err_, POLLIN, 0}};
  std::string* texts[2] = {&ran.out, &ran.problem};
  while (waits[0].fd >= 0 || waits[1].fd >= 0) {
    const std::uint64_t now = now_ns();
    if (now >= until) {
      ran.problem += "it did not end within " + std::to_string(static_cast<int>(deadline_s)) + " s";
      return ran;
    }
    if (poll(waits, 2, static_cast<int>((until - now) / 1'000'000 + 1)) <= 0) continue;
    for (int i = 0; i < 2; ++i) {
      if (waits[i].fd < 0 || waits[i].revents == 0) continue;
      char piece[4096];
      const ssize_t got = read(waits[i].fd, piece, sizeof piece);
      if (got > 0)
        texts[i]->append(piece, static_cast<std::size_t>(got));
      else if (got == 0)
        waits[i].fd = -1;
    }
  }
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  ran.ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (!ran.ok && ran.problem.empty()) ran.problem = "it ended with status " + std::to_string(status);
  return ran;
}

Ran run(const std::vector<std::string>& command, double deadline_s, const Environment& environment) {
  Child child(command, environment);
  return child.finish(deadline_s);
}

std::string which(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string full = folder + "/" + name;
    if (access(full.c_str(), X_OK) == 0) return full;
  }
  return {};
}

}  // namespace bench
