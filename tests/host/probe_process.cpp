// SPDX-License-Identifier: Apache-2.0
// Forks, threads, signals, and the time before main().
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "devices.hpp"
#include "probe.hpp"

using namespace strait::testing;

extern char** environ;

namespace {

int before_main = -1;
__attribute__((constructor)) void open_early() {
  if (const char* wanted = getenv("PROBE_EARLY"); wanted != nullptr && *wanted != 0) before_main = open(kNode, O_RDWR);
}

int open_one() {
  const int fd = open(kNode, O_RDWR);
  EXPECT(fd >= 0);
  return fd;
}

bool works(int fd) {
  int value = 1;
  return ioctl(fd, kAdd, &value) == 0 && value == 2;
}

void ended_well(pid_t child) {
  int status = -1;
  EXPECT(waitpid(child, &status, 0) == child);
  EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace

void probe::forks() {
  const int fd = open_one();
  const int copy = dup(fd);
  const pid_t child = fork();
  if (child == 0) {
    // The parent's: not ours to use, still ours to close.
    int value = 1;
    EXPECT(ioctl(fd, kAdd, &value) == -1 && errno == EIO);
    EXPECT(write(copy, "x", 1) == -1 && errno == EIO);
    EXPECT(close(fd) == 0 && close(copy) == 0);
    EXPECT(open_files() == 1);  // the copy of the parent's count: nothing of the parent's was closed here
    // Our own are as good as any.
    const int own = open_one();
    EXPECT(works(own));
    int process = 0;
    EXPECT(ioctl(own, kProcess, &process) == 0 && process == getpid());
    close(own);
    const pid_t grandchild = fork();
    if (grandchild == 0) {
      const int third = open_one();
      EXPECT(works(third));
      _exit(0);
    }
    ended_well(grandchild);
    _exit(0);
  }
  ended_well(child);
  EXPECT(works(fd) && works(copy));
  EXPECT(open_files() == 1);
}

void probe::vforks() {
  const int fd = open_one();
  const pid_t child = vfork();
  if (child == 0) {
    // In the parent's memory: what happens to descriptors here is no business of the parent's.
    close(fd);
    dup2(1, fd);
    open("/dev/null", O_RDWR);
    if (open(kNode, O_RDWR) >= 0) _exit(1);
    closefrom(3);
    execl("/bin/true", "true", nullptr);
    _exit(127);
  }
  ended_well(child);
  EXPECT(works(fd));
  EXPECT(open_files() == 1);
  close(fd);
  EXPECT(open_files() == 0);
}

void probe::spawns() {
  const int fd = open_one();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addclose(&actions, fd);
  char program[] = "/bin/sh", option[] = "-c", script[] = "test -c /dev/strait-test/node0";
  char* arguments[] = {program, option, script, nullptr};
  pid_t child = -1;
  EXPECT(posix_spawn(&child, program, &actions, nullptr, arguments, environ) == 0);
  ended_well(child);
  EXPECT(works(fd));
  EXPECT(system("test \"$(cat /sys/class/strait-test/version)\" = 7") == 0);
  EXPECT(works(fd));
  close(fd);
  EXPECT(open_files() == 0);
}

void probe::threads() {
  // Some open and close, some use what may be gone at any time.
  std::atomic<int> shared{open_one()};
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> users;
  for (int i = 0; i < 3; ++i) {
    users.emplace_back([&] {
      while (!stop) {
        int value = 1;
        if (ioctl(shared, kAdd, &value) == 0 && value != 2) ++wrong;
        const int copy = dup(shared);
        if (copy >= 0) close(copy);
      }
    });
  }
  for (int i = 0; i < 3000; ++i) {
    const int before = shared.exchange(open_one());
    close(before);
  }
  stop = true;
  for (std::thread& user : users) user.join();
  close(shared);
  EXPECT(wrong == 0);
  EXPECT(open_files() == 0);
}

namespace {
volatile sig_atomic_t strikes = 0;
volatile int struck_fd = -1;
void strike(int) {
  const int before = errno;
  int value = 1;
  if (ioctl(struck_fd, kAdd, &value) != 0) _exit(9);
  const int fd = open("/sys/class/strait-test/version", O_RDONLY);
  char byte;
  if (fd < 0 || read(fd, &byte, 1) != 1 || byte != '7' || close(fd) != 0) _exit(9);
  strikes = strikes + 1;
  errno = before;
}
}  // namespace

void probe::signals() {
  struck_fd = open_one();
  struct sigaction action {};
  action.sa_handler = strike;
  action.sa_flags = SA_RESTART;
  EXPECT(sigaction(SIGALRM, &action, nullptr) == 0);
  const itimerval often{{0, 200}, {0, 200}};
  EXPECT(setitimer(ITIMER_REAL, &often, nullptr) == 0);
  // Until it has struck often, in whatever we were doing; the test has a time limit of its own.
  while (strikes < 500) {
    const int fd = open(kNode, O_RDWR);
    int value = 1;
    if (fd < 0 || ioctl(fd, kAdd, &value) != 0 || dup2(fd, 300) != 300 || close(fd) != 0 || close(300) != 0) _exit(8);
    FILE* stream = fopen("/sys/class/strait-test/version", "r");
    if (stream == nullptr) _exit(7);
    fclose(stream);
  }
  const itimerval never{};
  EXPECT(setitimer(ITIMER_REAL, &never, nullptr) == 0);
  EXPECT(open_files() == 1);
}

void probe::early() {
  EXPECT(before_main >= 0);
  EXPECT(works(before_main));
  EXPECT(open_files() == 1);
}
