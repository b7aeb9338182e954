// SPDX-License-Identifier: Apache-2.0
// Memory from the kernel: Mapping owns an mmap, memfds are files without a name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/error.hpp"
#include "sys/calls.hpp"
#include "sys/fd.hpp"

namespace strait::sys {

class Mapping {
 public:
  Mapping() = default;
  Mapping(void* base, std::size_t length_bytes) : base_(base), length_bytes_(length_bytes) {}
  Mapping(Mapping&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)), length_bytes_(std::exchange(other.length_bytes_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    if (this != &other) {
      reset();
      base_ = std::exchange(other.base_, nullptr);
      length_bytes_ = std::exchange(other.length_bytes_, 0);
    }
    return *this;
  }
  ~Mapping() { reset(); }

  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(base_); }
  [[nodiscard]] std::size_t size() const { return length_bytes_; }
  [[nodiscard]] bool valid() const { return base_ != nullptr; }
  void reset();
  // Forgets the range without unmapping it: for a child of fork, in which it may be somebody else's by now.
  void release() {
    base_ = nullptr;
    length_bytes_ = 0;
  }

 private:
  void* base_ = nullptr;
  std::size_t length_bytes_ = 0;
};

enum class Protect { none, read, read_write };

// Shared mapping of a file, whole pages.
[[nodiscard]] Result<Mapping> map_file(int fd, std::uint64_t offset, std::size_t length_bytes, Protect protect,
                                       const Calls& calls = real_calls());
// Private zeroed memory; Protect::none only reserves addresses. `hint` may be null.
[[nodiscard]] Result<Mapping> map_anonymous(std::size_t length_bytes, Protect protect, void* hint = nullptr,
                                            const Calls& calls = real_calls());

// Puts whole pages of a file over addresses that the caller has reserved and keeps owning; Protect::none makes them a
// bare reservation again (the file is then not looked at).
[[nodiscard]] Status map_file_over(void* addresses, int fd, std::uint64_t offset, std::size_t length_bytes,
                                   Protect protect, const Calls& calls = real_calls());

// mmap(2) and munmap(2) as a program asked for them: the address (or 0), or -errno.
[[nodiscard]] std::int64_t map_as_asked(void* address, std::size_t length_bytes, int protect, int flags, int fd,
                                        std::uint64_t offset, const Calls& calls = real_calls());
[[nodiscard]] int unmap_as_asked(void* address, std::size_t length_bytes);

// A memfd that can neither shrink nor grow, so that nobody who holds it can raise SIGBUS in who maps it.
[[nodiscard]] Result<Fd> make_sealed_memfd(const char* name, std::size_t length_bytes,
                                           const Calls& calls = real_calls());
// Refuses files that are not sealed against shrinking (they could be truncated under us), or shorter than asked.
[[nodiscard]] Status check_sealed(int fd, std::size_t at_least_bytes);

// A child of fork does not get this range at all.
void keep_from_children(const Mapping& mapping);

// Tells the kernel that the pages of the range will be used soon. Code::invalid: not all of it is mapped.
[[nodiscard]] Status will_need(std::uint64_t address, std::uint64_t length_bytes);

[[nodiscard]] std::size_t page_bytes();
[[nodiscard]] inline std::size_t round_up(std::size_t value, std::size_t to) {
  return (value + to - 1) / to * to;
}

}  // namespace strait::sys
