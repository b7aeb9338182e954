// SPDX-License-Identifier: Apache-2.0
#include "probe.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "devices.hpp"

namespace {

struct Check {
  const char* name;
  void (*run)();
};
constexpr Check kChecks[] = {
    {"open_and_use", probe::open_and_use},
    {"mapped_nodes", probe::mapped_nodes},
    {"look_at_nodes", probe::look_at_nodes},
    {"duplicates", probe::duplicates},
    {"high_numbers", probe::high_numbers},
    {"ranges", probe::ranges},
    {"behind_our_back", probe::behind_our_back},
    {"refusals", probe::refusals},
    {"folders", probe::folders},
    {"names", probe::names},
    {"relative", probe::relative},
    {"patterns", probe::patterns},
    {"parents", probe::parents},
    {"streams", probe::streams},
    {"forks", probe::forks},
    {"vforks", probe::vforks},
    {"spawns", probe::spawns},
    {"threads", probe::threads},
    {"signals", probe::signals},
    {"early", probe::early},
};

}  // namespace

int probe::open_files() {
  const int fd = open(strait::testing::kOther, O_RDWR | O_CLOEXEC);
  EXPECT(fd >= 0);
  int count = -1;
  EXPECT(ioctl(fd, strait::testing::kOpened, &count) == 0);
  close(fd);
  return count - 1;
}

int main(int argc, char** argv) {
  // Past the C library.
  if (argc == 3 && strcmp(argv[1], "raw") == 0) return syscall(SYS_openat, AT_FDCWD, argv[2], O_RDWR) < 0 ? 0 : 1;
  for (const Check& check : kChecks) {
    if (argc == 2 && strcmp(argv[1], "list") == 0) {
      puts(check.name);
    } else if (argc == 2 && strcmp(argv[1], check.name) == 0) {
      check.run();
      printf("fine\n");
      return 0;
    }
  }
  return argc == 2 && strcmp(argv[1], "list") == 0 ? 0 : 2;
}
