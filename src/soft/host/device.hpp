// SPDX-License-Identifier: Apache-2.0
// Device nodes without a kernel driver: what a family of software devices answers for.
//
// `strait run` starts a program with libstrait-host.so in front of its C library. Opens of device nodes that a family
// owns come here; what the program does with the descriptor afterwards comes to the File. Everything is called on the
// program's own threads, several at once, and nothing may be thrown.
//
// A fork: the child inherits descriptors, and its calls on them are refused before they get here; no File of the parent
// is destroyed in the child. A child may open nodes of its own, so a family has to tell by sys::ForkMark that what it
// remembers is a copy of its parent's.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/error.hpp"
#include "sys/fd.hpp"

namespace strait::soft::host {

// What stands behind one open of a device node. Destroyed when the last descriptor that names it is closed, and no call
// is under way.
class File {
 public:
  File() = default;
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  virtual ~File() = default;

  // All three: >= 0, or -errno.
  virtual long ioctl([[maybe_unused]] unsigned long request, [[maybe_unused]] void* argument) { return -ENOTTY; }
  virtual long write([[maybe_unused]] const void* bytes, [[maybe_unused]] std::size_t length) { return -EINVAL; }
  virtual long read([[maybe_unused]] void* bytes, [[maybe_unused]] std::size_t length) { return -EINVAL; }
  // pread(2).
  virtual long read_at([[maybe_unused]] void* bytes, [[maybe_unused]] std::size_t length,
                       [[maybe_unused]] std::uint64_t offset) {
    return -ESPIPE;
  }
  // mmap(2): the address, or -errno. kMapsItself: the descriptor is mapped as it is, and nobody wants to know.
  static constexpr long kMapsItself = -ENOSYS;
  virtual long map([[maybe_unused]] void* address, [[maybe_unused]] std::size_t length, [[maybe_unused]] int protect,
                   [[maybe_unused]] int flags, [[maybe_unused]] std::uint64_t offset) {
    return kMapsItself;
  }
  // A range in which map() has put something is about to be unmapped, or something else is put there. Until then the
  // file stays, also when its last descriptor was closed.
  virtual void unmapped([[maybe_unused]] void* address, [[maybe_unused]] std::size_t length) {}
};

struct Opened {
  // A real object, which the program maps and polls with real system calls (a sparse memfd, an eventfd). It becomes the
  // program's; who needs it longer keeps a duplicate.
  sys::Fd fd;
  std::shared_ptr<File> file;  // null: the descriptor is all there is, a file like any other
};

class Family {
 public:
  virtual ~Family() = default;
  [[nodiscard]] virtual bool owns(std::string_view node) const = 0;                    // "/dev/infiniband/uverbs0"
  [[nodiscard]] virtual std::uint64_t device_number(std::string_view node) const = 0;  // st_rdev
  [[nodiscard]] virtual Result<Opened> open(std::string_view node, int flags) = 0;  // Error::sys_errno is what is seen
};

}  // namespace strait::soft::host
