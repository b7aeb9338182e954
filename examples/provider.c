/* SPDX-License-Identifier: Apache-2.0
 * A memory provider in one file: what a plug-in for another accelerator starts from.
 *
 * Its device is called desk:0 and its memory comes from the C library, so that it runs anywhere. A real one asks its
 * vendor's driver instead, and adds export_fd, so that NICs reach the memory. Every function that is not filled in is
 * answered with "unsupported" on its behalf.
 *
 *   cc -shared -fPIC provider.c -o libdesk.so
 *   strait_provider_conformance --plugin ./libdesk.so        the suite that every provider passes (docs/buffer.md)
 *   STRAIT_PLUGINS=./libdesk.so strait info                  and use it
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "strait/plugin.h"

enum { OK = 0, INVALID = 1, GONE = 6, LIMIT = 7 }; /* strait_code, of strait/c.h */
enum { MOST_BLOCKS = 4096 };

typedef struct block {
  uint64_t base; /* 0: free */
  uint64_t length_bytes;
  uint64_t identity;
} block;

struct strait_provider {
  pid_t owner; /* a forked child has a copy of all this, and may not use it */
  pthread_mutex_t mutex;
  uint64_t last_identity;
  uint64_t allocations;
  uint64_t frees;
  block blocks[MOST_BLOCKS];
};

/* The cause, in one sentence. */
static int32_t refuse(strait_plugin_error* error, int32_t code, const char* text) {
  if (error != NULL) {
    error->code = code;
    error->sys_errno = 0;
    snprintf(error->text, sizeof error->text, "%s", text);
  }
  return code;
}

static int in_child(const strait_provider* desk) {
  return desk->owner != getpid();
}

/* With the lock held. */
static block* find(strait_provider* desk, uint64_t address) {
  for (int i = 0; i < MOST_BLOCKS; ++i) {
    block* one = &desk->blocks[i];
    if (one->base != 0 && address - one->base < one->length_bytes) return one;
  }
  return NULL;
}

static int32_t desk_open(const char* config, strait_provider** out, strait_plugin_error* error) {
  if (config != NULL && config[0] != '\0') return refuse(error, INVALID, "the desk has nothing to configure");
  strait_provider* desk = calloc(1, sizeof *desk);
  if (desk == NULL) return refuse(error, LIMIT, "out of memory");
  desk->owner = getpid();
  pthread_mutex_init(&desk->mutex, NULL);
  *out = desk;
  return OK;
}

static void desk_close(strait_provider* desk) {
  if (!in_child(desk)) {
    for (int i = 0; i < MOST_BLOCKS; ++i) free((void*)desk->blocks[i].base);
    pthread_mutex_destroy(&desk->mutex);
  }
  free(desk);
}

static uint32_t desk_device_count(strait_provider* desk) {
  (void)desk;
  return 1;
}

static int32_t desk_device_info(strait_provider* desk, uint32_t device, strait_device_info* out) {
  if (in_child(desk)) return GONE;
  if (device != 0) return INVALID;
  snprintf(out->name, sizeof out->name, "desk:0");
  snprintf(out->description, sizeof out->description, "an example, on the C library's memory");
  out->capabilities = STRAIT_CAN_ALLOCATE | STRAIT_CAN_COPY | STRAIT_CAN_IDENTIFY | STRAIT_CPU_ACCESSIBLE;
  out->software = 1;
  return OK;
}

static int32_t desk_classify(strait_provider* desk, uint64_t address, strait_claim* out) {
  if (in_child(desk)) return 0;
  pthread_mutex_lock(&desk->mutex);
  const block* one = find(desk, address);
  if (one != NULL) {
    out->base = out->cpu_address = one->base;
    out->length_bytes = one->length_bytes;
    out->identity = one->identity;
    out->device = 0;
    out->capabilities = STRAIT_CAN_COPY | STRAIT_CAN_IDENTIFY | STRAIT_CPU_ACCESSIBLE;
    out->sort = STRAIT_SORT_DEVICE;
  }
  pthread_mutex_unlock(&desk->mutex);
  return one != NULL;
}

static int32_t desk_allocate(strait_provider* desk, uint32_t device, uint64_t length_bytes, uint64_t* address,
                             strait_plugin_error* error) {
  if (in_child(desk)) return refuse(error, GONE, "the desk belongs to the process that opened it");
  if (device != 0) return refuse(error, INVALID, "there is no such device: the desk is one");
  if (length_bytes == 0) return refuse(error, INVALID, "cannot allocate 0 bytes on the desk");
  if (length_bytes > (uint64_t)1 << 40) return refuse(error, LIMIT, "no desk is that large");
  void* memory = malloc(length_bytes);
  if (memory == NULL) return refuse(error, LIMIT, "the desk is full");
  pthread_mutex_lock(&desk->mutex);
  for (int i = 0; i < MOST_BLOCKS; ++i) {
    if (desk->blocks[i].base != 0) continue;
    desk->blocks[i] = (block){(uint64_t)memory, length_bytes, ++desk->last_identity};
    ++desk->allocations;
    *address = (uint64_t)memory;
    pthread_mutex_unlock(&desk->mutex);
    return OK;
  }
  pthread_mutex_unlock(&desk->mutex);
  free(memory);
  return refuse(error, LIMIT, "the desk has room for 4096 allocations");
}

static int32_t desk_free(strait_provider* desk, uint64_t address, strait_plugin_error* error) {
  if (in_child(desk)) return refuse(error, GONE, "the desk belongs to the process that opened it");
  pthread_mutex_lock(&desk->mutex);
  block* one = find(desk, address);
  const int mine = one != NULL && one->base == address;
  if (mine) {
    one->base = 0;
    ++desk->frees;
  }
  pthread_mutex_unlock(&desk->mutex);
  if (!mine) return refuse(error, INVALID, "that is not the beginning of anything on the desk");
  free((void*)address);
  return OK;
}

/* True: all of it on the desk, or none of it. */
static int fits(strait_provider* desk, uint64_t address, uint64_t length_bytes, int* mine) {
  const block* one = find(desk, address);
  if (one == NULL) return address != 0;
  *mine = 1;
  return length_bytes <= one->base + one->length_bytes - address;
}

static int32_t desk_copy(strait_provider* desk, uint64_t to, uint64_t from, uint64_t length_bytes, uint64_t* ticket,
                         strait_plugin_error* error) {
  if (in_child(desk)) return refuse(error, GONE, "the desk belongs to the process that opened it");
  int mine = 0;
  pthread_mutex_lock(&desk->mutex);
  const int good = fits(desk, to, length_bytes, &mine) && fits(desk, from, length_bytes, &mine);
  pthread_mutex_unlock(&desk->mutex);
  if (!good || !mine) return refuse(error, INVALID, "that copy runs off the desk, or was never on it");
  memmove((void*)to, (const void*)from, length_bytes);
  *ticket = 1; /* complete: they all are */
  return OK;
}

static int32_t desk_copy_done(strait_provider* desk, uint64_t ticket) {
  if (in_child(desk)) return -GONE;
  return ticket == 1 ? 1 : -INVALID;
}

static void desk_counters(strait_provider* desk, char* text, size_t capacity) {
  snprintf(text, capacity, "allocations=%llu,frees=%llu", (unsigned long long)desk->allocations,
           (unsigned long long)desk->frees);
}

__attribute__((visibility("default"))) const strait_provider_ops* strait_provider_plugin(void);
const strait_provider_ops* strait_provider_plugin(void) {
  static const strait_provider_ops ops = {
      .abi_version = STRAIT_PROVIDER_ABI,
      .struct_size = sizeof(strait_provider_ops),
      .kind = "desk",
      .open = desk_open,
      .close = desk_close,
      .device_count = desk_device_count,
      .device_info = desk_device_info,
      .classify = desk_classify,
      .allocate = desk_allocate,
      .free = desk_free,
      .copy = desk_copy,
      .copy_done = desk_copy_done,
      .counters = desk_counters,
  };
  return &ops;
}
