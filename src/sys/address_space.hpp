// SPDX-License-Identifier: Apache-2.0
// AddressSpace: what the kernel says about ranges of this process's own address space, without touching them.
//
// Asked of the kernel's list of mappings: one ioctl per mapping since Linux 6.11, the text of /proc/self/maps before.
// With no /proc mounted, a one-byte process_vm_readv at both ends has to do; writability is then assumed.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/error.hpp"
#include "sys/calls.hpp"
#include "sys/fd.hpp"

namespace strait::sys {

struct RangeAccess {
  enum class Kind {
    read_write,
    read_only,
    no_access,  // mapped with PROT_NONE: a guard page, or addresses that only a device understands
    unmapped,
  };
  Kind kind = Kind::unmapped;   // the weakest of the range
  std::uint64_t weak_from = 0;  // first address of that kind, when it is not read_write
  // Every page is this process's own and of no file. False also when nobody can tell.
  bool anonymous = false;
};

class AddressSpace {
 public:
  enum class Source { query, text, probe };

  // The best source this machine has; never fails. Keeps one descriptor open.
  [[nodiscard]] static AddressSpace open(const Calls& calls = real_calls());
  // Of another process of this user. Code::denied or gone where it does not let us look; then there is no probing.
  [[nodiscard]] static Result<AddressSpace> open_of(pid_t pid, const Calls& calls = real_calls());
  // For tests: exactly this source. Code::unsupported where it does not exist.
  [[nodiscard]] static Result<AddressSpace> open_with(Source source, const Calls& calls = real_calls());

  // `length_bytes` at least 1, no wrap-around. Any thread.
  [[nodiscard]] RangeAccess look(std::uint64_t address, std::uint64_t length_bytes) const;
  // log2 of the smallest of the huge pages (hugetlbfs) that the range lies on, if it begins on such; 21 when it leaves
  // them. 0: it does not begin on one, or nobody can tell.
  [[nodiscard]] std::uint32_t huge_shift(std::uint64_t address, std::uint64_t length_bytes) const;
  [[nodiscard]] Source source() const { return source_; }

 private:
  AddressSpace(Source source, Fd maps, const Calls& calls, std::string path = "/proc/self/maps")
      : source_(source), maps_(std::move(maps)), path_(std::move(path)), calls_(&calls) {}
  Source source_;
  Fd maps_;
  std::string path_;
  const Calls* calls_;
};

}  // namespace strait::sys
