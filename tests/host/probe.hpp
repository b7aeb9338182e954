// SPDX-License-Identifier: Apache-2.0
// The probe: a program that knows nothing of us and looks at everything. One check a name; the first thing that is not
// as it should be is printed, and the exit status is 1.
#pragma once

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(condition)                                                                                            \
  do {                                                                                                               \
    errno = 0;                                                                                                       \
    if (!(condition)) {                                                                                              \
      fprintf(stderr, "%s:%d: not so: %s (errno %d: %s)\n", __FILE__, __LINE__, #condition, errno, strerror(errno)); \
      exit(1);                                                                                                       \
    }                                                                                                                \
  } while (0)

namespace probe {

// How many files of devices are open, seen from one of its own, which is not counted.
int open_files();

void open_and_use();
void mapped_nodes();
void look_at_nodes();
void duplicates();
void high_numbers();
void ranges();
void behind_our_back();
void refusals();

void folders();
void names();
void relative();
void patterns();
void parents();
void streams();

void forks();
void vforks();
void spawns();
void threads();
void signals();
void early();

}  // namespace probe
