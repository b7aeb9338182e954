// SPDX-License-Identifier: Apache-2.0
#include "far.hpp"

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <stdexcept>
#include <thread>

namespace bench::gpu {

Line::~Line() {
  ::close(fd_);
}

void Line::say(const std::string& text) const {
  if (::send(fd_, text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size()))
    throw std::runtime_error("the other process is gone");
}

std::string Line::hear() const {
  pollfd waiting{fd_, POLLIN, 0};
  if (::poll(&waiting, 1, 60000) != 1) throw std::runtime_error("the other process says nothing");
  char text[1024];
  const ssize_t got = ::recv(fd_, text, sizeof text, 0);
  if (got <= 0) throw std::runtime_error("the other process has ended");
  std::string heard(text, static_cast<std::size_t>(got));
  if (heard.rfind("failed", 0) == 0) throw std::runtime_error("the other process: " + heard);
  return heard;
}

void Line::expect(const std::string& text) const {
  if (const std::string heard = hear(); heard != text)
    throw std::runtime_error("the other process says \"" + heard + "\", not \"" + text + "\"");
}

int make_shared_memory(std::size_t bytes) {
  const int fd = ::memfd_create("gpu_bench", 0);
  if (fd < 0 || ::ftruncate(fd, static_cast<off_t>(bytes)) != 0) throw std::runtime_error("no shared memory");
  return fd;
}

FarProcess::FarProcess(int shared_memory, const std::string& near)
    : started_(start(shared_memory, near)), line_(started_.fd) {}

FarProcess::Started FarProcess::start(int shared_memory, const std::string& near) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0) throw std::runtime_error("no socket");
  const std::string fd = std::to_string(ends[1]), memory = std::to_string(shared_memory);
  const int pid = ::fork();
  if (pid < 0) throw std::runtime_error("fork failed");
  if (pid == 0) {
    ::close(ends[0]);
    ::execl("/proc/self/exe", "gpu_bench", "--far", fd.c_str(), memory.c_str(), near.c_str(), nullptr);
    ::_exit(127);
  }
  ::close(ends[1]);
  return {pid, ends[0]};
}

FarProcess::~FarProcess() {
  try {
    line_.say("quit");
  } catch (const std::exception&) {  // it has ended by itself
  }
  for (int i = 0; i < 200; ++i) {
    if (::waitpid(started_.pid, nullptr, WNOHANG) == started_.pid) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  ::kill(started_.pid, SIGKILL);
  (void)::waitpid(started_.pid, nullptr, 0);
}

}  // namespace bench::gpu
