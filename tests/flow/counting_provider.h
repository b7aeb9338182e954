/* SPDX-License-Identifier: Apache-2.0 */
/* How a test drives the counting provider: the plug-in's own shared library, opened a second time by the test. */
#pragma once
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct counting_control {
  /* Counted. */
  uint64_t calls; /* into open and device_info, the steps of opening */
  uint64_t opens;
  uint64_t closes;
  uint64_t exports;
  uint64_t fd_closes;
  uint64_t wrong_fds; /* closed although never given out */
  /* Told. */
  uint64_t fail_call;      /* the call of that number (from 1) fails; 0: none */
  uint64_t place_next_at;  /* the next allocation's address; 0: anywhere */
  uint32_t keep_fds;       /* as Level Zero: one descriptor per allocation, which the provider keeps */
  uint32_t useless_fds;    /* descriptors that no NIC takes */
  uint64_t bump_identity;  /* added to what every allocation is called: as if freed and allocated again in place */
  int32_t kept_fd;         /* of the last export with keep_fds */
  uint32_t can_watch;      /* before it opens: it tells of frees */
  uint64_t watches;        /* now */
  uint64_t refuse_exports; /* so many exports fail first */
  uint32_t can_pin;        /* before it opens: it has a port, which pins host memory */
  uint64_t pinned;         /* now: ranges of host memory */
  uint64_t pinned_bytes;   /* of all times */
  /* Copies that go on by themselves: the bytes move when `may_end` says so. */
  void (*on_copy)(void* context, uint64_t to, uint64_t from, uint64_t length_bytes); /* one begins */
  int (*may_end)(void* context); /* asked about the one under way; null: copies are done when they return */
  void* context;
} counting_control;

#define COUNTING_CONTROL "counting_control_of_process"
typedef counting_control* (*counting_control_entry)(void);

#ifdef __cplusplus
}
#endif
