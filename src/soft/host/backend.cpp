// SPDX-License-Identifier: Apache-2.0
#include "soft/host/backend.hpp"

#include <exception>
#include <new>

struct strait_host_file {
  std::shared_ptr<strait::soft::host::File> file;
};

namespace strait::soft::host {
namespace {

// A program that expects a system call cannot be thrown at.
template <class Call>
auto guarded(Call call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return -ENOMEM;
  } catch (const std::exception&) {
    return -EIO;
  }
}

int errno_of(const Error& error) {
  return error.sys_errno != 0 ? error.sys_errno : error.code == Code::limit ? ENOMEM : EIO;
}

}  // namespace

int open_node(std::span<Family* const> families, const char* node, int flags, strait_host_file** file) {
  return guarded([&]() -> int {
    for (Family* family : families) {
      if (!family->owns(node)) continue;
      auto box = std::make_unique<strait_host_file>();
      auto opened = family->open(node, flags);
      if (!opened) return -errno_of(opened.error());
      if (opened->file) {
        box->file = std::move(opened->file);
        *file = box.release();
      }
      return opened->fd.release();
    }
    return -ENXIO;
  });
}

long ioctl_node(strait_host_file* file, unsigned long request, void* argument) {
  return guarded([&] { return file->file->ioctl(request, argument); });
}

long write_node(strait_host_file* file, const void* bytes, std::size_t length) {
  return guarded([&] { return file->file->write(bytes, length); });
}

long read_node(strait_host_file* file, void* bytes, std::size_t length) {
  return guarded([&] { return file->file->read(bytes, length); });
}

long read_node_at(strait_host_file* file, void* bytes, std::size_t length, std::uint64_t offset) {
  return guarded([&] { return file->file->read_at(bytes, length, offset); });
}

long map_node(strait_host_file* file, void* address, std::size_t length, int protect, int flags, std::uint64_t offset) {
  return guarded([&] { return file->file->map(address, length, protect, flags, offset); });
}

void unmapped_node(strait_host_file* file, void* address, std::size_t length) {
  (void)guarded([&] {
    file->file->unmapped(address, length);
    return 0;
  });
}

void close_node(strait_host_file* file) {
  (void)guarded([&] {
    delete file;
    return 0;
  });
}

}  // namespace strait::soft::host
