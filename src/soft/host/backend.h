/* SPDX-License-Identifier: Apache-2.0
 * Between libstrait-host.so, which is in front of a program's C library and needs no other, and libstrait-soft.so,
 * which it opens when the first device node is opened: the families of devices, seen through C. */
#ifndef STRAIT_SOFT_HOST_BACKEND_H
#define STRAIT_SOFT_HOST_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STRAIT_HOST_ABI 1

struct strait_host_file; /* one open of a node */

struct strait_host_ops {
  uint32_t abi_version;
  uint32_t struct_size;
  /* The program's descriptor, or -errno. *file stays null for one that nobody has to answer for. */
  int (*open)(const char* node, int flags, struct strait_host_file** file);
  long (*ioctl)(struct strait_host_file* file, unsigned long request, void* argument);
  long (*write)(struct strait_host_file* file, const void* bytes, size_t length);
  long (*read)(struct strait_host_file* file, void* bytes, size_t length);
  void (*close)(struct strait_host_file* file);
  /* Absent in libraries whose struct ends here. pread(2); mmap(2): the address, -errno, or -ENOSYS: map the descriptor
   * itself; before munmap(2) of a range that has something of the file in it. */
  long (*read_at)(struct strait_host_file* file, void* bytes, size_t length, uint64_t offset);
  long (*map)(struct strait_host_file* file, void* address, size_t length, int protect, int flags, uint64_t offset);
  void (*unmapped)(struct strait_host_file* file, void* address, size_t length);
};
#define STRAIT_HOST_OPS_LEAST offsetof(struct strait_host_ops, read_at)

/* The one symbol that is looked for. */
const struct strait_host_ops* strait_host_devices(void);

#ifdef __cplusplus
}
#endif
#endif
