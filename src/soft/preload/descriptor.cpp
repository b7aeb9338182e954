// SPDX-License-Identifier: Apache-2.0
// What programs do with descriptors: close, dup and fcntl keep the table right; ioctl, read and write of device nodes
// go to their family.
#include <fcntl.h>
#include <stdarg.h>
#include <sys/ioctl.h>

#include "soft/host/backend.h"
#include "soft/preload/devices.hpp"
#include "soft/preload/real.hpp"
#include "soft/preload/table.hpp"

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1u << 2)
#endif

namespace strait::preload {
namespace {

// Answers that every file gives, and the real descriptor too.
bool is_generic(unsigned long request) {
  return request == FIOCLEX || request == FIONCLEX || request == FIONBIO || request == FIOASYNC;
}

// As the kernel answers a process that may not use a device that another one opened.
constexpr long kNotOurs = -EIO;

template <class Call>
long on_device(const Loan& loan, Call call) {
  const strait_host_ops* ops = loan.own() ? devices() : nullptr;
  if (ops == nullptr) return answer(kNotOurs);
  const int before = errno;
  const long result = call(*ops);
  errno = before;
  return answer(result);
}

// A library of devices may be older than this call.
bool has_read_at() {
  const strait_host_ops* ops = devices();
  return ops != nullptr && ops->struct_size >= sizeof *ops && ops->read_at != nullptr;
}

int fcntl_any(int fd, int command, void* argument, int (*call)(int, int, ...)) {
  const int result = call(fd, command, argument);
  if (result >= 0 && (command == F_DUPFD || command == F_DUPFD_CLOEXEC)) share(fd, result);
  return result;
}

}  // namespace
}  // namespace strait::preload

using namespace strait::preload;

extern "C" {

int close(int fd) {
  forget(fd);
  return STRAIT_NEXT(close)(fd);
}

int close_range(unsigned first, unsigned last, int flags) noexcept {
  if ((static_cast<unsigned>(flags) & CLOSE_RANGE_CLOEXEC) == 0 && first <= last) forget_range(first, last);
  if (auto* call = STRAIT_NEXT(close_range)) return call(first, last, flags);
  return static_cast<int>(answer(kernel(SYS_close_range, first, last, flags)));
}

void closefrom(int first) noexcept {
  forget_range(first < 0 ? 0 : static_cast<unsigned>(first), ~0u);
  if (auto* call = STRAIT_NEXT(closefrom)) return call(first);
  (void)kernel(SYS_close_range, first < 0 ? 0 : first, ~0u, 0);
}

int dup(int fd) noexcept {
  const int copy = STRAIT_NEXT(dup)(fd);
  if (copy >= 0) share(fd, copy);
  return copy;
}

int dup2(int fd, int copy) noexcept {
  const int result = STRAIT_NEXT(dup2)(fd, copy);
  if (result >= 0) share(fd, result);
  return result;
}

int dup3(int fd, int copy, int flags) noexcept {
  const int result = STRAIT_NEXT(dup3)(fd, copy, flags);
  if (result >= 0) share(fd, result);
  return result;
}

int fcntl(int fd, int command, ...) {
  va_list rest;
  va_start(rest, command);
  void* argument = va_arg(rest, void*);
  va_end(rest);
  return fcntl_any(fd, command, argument, STRAIT_NEXT(fcntl));
}

int fcntl64(int fd, int command, ...) {
  va_list rest;
  va_start(rest, command);
  void* argument = va_arg(rest, void*);
  va_end(rest);
  auto* call = STRAIT_NEXT(fcntl64);
  return fcntl_any(fd, command, argument, call != nullptr ? call : STRAIT_NEXT(fcntl));
}

int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list rest;
  va_start(rest, request);
  void* argument = va_arg(rest, void*);
  va_end(rest);
  if (const Loan loan(fd); loan && !is_generic(request)) {
    return static_cast<int>(
        on_device(loan, [&](const strait_host_ops& ops) { return ops.ioctl(loan.file(), request, argument); }));
  }
  return STRAIT_NEXT(ioctl)(fd, request, argument);
}

ssize_t read(int fd, void* bytes, size_t length) {
  if (const Loan loan(fd); loan)
    return on_device(loan, [&](const strait_host_ops& ops) { return ops.read(loan.file(), bytes, length); });
  return STRAIT_NEXT(read)(fd, bytes, length);
}

ssize_t pread(int fd, void* bytes, size_t length, off_t offset) {
  if (const Loan loan(fd); loan && has_read_at())
    return on_device(loan, [&](const strait_host_ops& ops) {
      return ops.read_at(loan.file(), bytes, length, static_cast<std::uint64_t>(offset));
    });
  return STRAIT_NEXT(pread)(fd, bytes, length, offset);
}

ssize_t pread64(int fd, void* bytes, size_t length, off64_t offset) {
  return pread(fd, bytes, length, offset);
}

ssize_t __pread_chk(int fd, void* bytes, size_t length, off_t offset, size_t capacity) {
  if (length > capacity) __builtin_trap();
  return pread(fd, bytes, length, offset);
}

ssize_t __pread64_chk(int fd, void* bytes, size_t length, off64_t offset, size_t capacity) {
  if (length > capacity) __builtin_trap();
  return pread(fd, bytes, length, offset);
}

ssize_t __read_chk(int fd, void* bytes, size_t length, size_t capacity) {
  if (length > capacity) __builtin_trap();
  return read(fd, bytes, length);
}

ssize_t write(int fd, const void* bytes, size_t length) {
  if (const Loan loan(fd); loan)
    return on_device(loan, [&](const strait_host_ops& ops) { return ops.write(loan.file(), bytes, length); });
  return STRAIT_NEXT(write)(fd, bytes, length);
}

}  // extern "C"
