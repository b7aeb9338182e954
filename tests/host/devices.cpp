// SPDX-License-Identifier: Apache-2.0
// A family of devices in its smallest form: the C table, without the house's libraries.
#include "devices.hpp"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "soft/host/backend.h"

struct strait_host_file {
  char text[64];
  size_t length;
  int process;
  int mapped;  // bytes
};

namespace strait::testing {
namespace {

std::atomic<int> open_files{0};

int open_node(const char* node, int, strait_host_file** file) {
  if (strcmp(node, kBusy) == 0) return -EBUSY;
  if (strcmp(node, kNode) != 0 && strcmp(node, kOther) != 0) return -ENXIO;
  const int fd = memfd_create("strait-test", MFD_CLOEXEC);
  if (fd < 0) return -errno;
  if (ftruncate(fd, 65536) != 0) {
    close(fd);
    return -ENOMEM;
  }
  *file = static_cast<strait_host_file*>(calloc(1, sizeof(strait_host_file)));
  (*file)->process = getpid();
  ++open_files;
  return fd;
}

long ioctl_node(strait_host_file* file, unsigned long request, void* argument) {
  switch (request) {
    case kAdd: return ++*static_cast<int*>(argument), 0;
    case kOpened: return *static_cast<int*>(argument) = open_files, 0;
    case kProcess: return *static_cast<int*>(argument) = file->process, 0;
    case kMapped: return *static_cast<int*>(argument) = file->mapped, 0;
    case kRefuse: return -EPROTO;
    default: return -ENOTTY;
  }
}

long write_node(strait_host_file* file, const void* bytes, size_t length) {
  if (length > sizeof file->text) return -EINVAL;
  memcpy(file->text, bytes, length);
  file->length = length;
  return static_cast<long>(length);
}

long read_node(strait_host_file* file, void* bytes, size_t length) {
  const size_t n = length < file->length ? length : file->length;
  memcpy(bytes, file->text, n);
  return static_cast<long>(n);
}

long read_node_at(strait_host_file* file, void* bytes, size_t length, uint64_t offset) {
  if (offset >= file->length) return 0;
  const size_t n = length < file->length - offset ? length : file->length - offset;
  memcpy(bytes, file->text + offset, n);
  return static_cast<long>(n);
}

long map_node(strait_host_file* file, void* address, size_t length, int protect, int flags, uint64_t offset) {
  if (offset < kCounted) return -ENOSYS;
  if (offset > kCounted) return -EACCES;
  void* at = mmap(address, length, protect, flags | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return -errno;
  file->mapped += static_cast<int>(length);
  return reinterpret_cast<long>(at);
}

void unmapped_node(strait_host_file* file, void*, size_t length) {
  file->mapped -= static_cast<int>(length);
}

void close_node(strait_host_file* file) {
  --open_files;
  free(file);
}

constexpr strait_host_ops kOps = {STRAIT_HOST_ABI, sizeof(strait_host_ops),
                                  open_node,       ioctl_node,
                                  write_node,      read_node,
                                  close_node,      read_node_at,
                                  map_node,        unmapped_node};

}  // namespace
}  // namespace strait::testing

extern "C" __attribute__((visibility("default"))) const strait_host_ops* strait_host_devices(void) {
  return &strait::testing::kOps;
}
