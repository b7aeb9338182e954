// SPDX-License-Identifier: Apache-2.0
// CopyPort: a MemoryPort made of a vendor's copies, for a software NIC in the same process and memory that nobody can
// map.
//
// A copy engine has no atomics: those are read, changed and written back under a lock of this port. They are atomic to
// everybody who uses the same port, not to a kernel that runs on the device at the same time.
//
// Host memory that a NIC prepares is pinned through the table of all who pin pages for this vendor (HostPages).
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "base/counters.hpp"
#include "base/error.hpp"
#include "buffer/host_pages.hpp"
#include "strait/plugin.h"

namespace strait::buffer {

class CopyPort {
 public:
  CopyPort() = default;
  CopyPort(const CopyPort&) = delete;
  CopyPort& operator=(const CopyPort&) = delete;
  virtual ~CopyPort() = default;

  // The port refers to this object.
  [[nodiscard]] strait_memory_port port();
  // Copies that a NIC made through it.
  [[nodiscard]] std::uint64_t used() const { return used_.load(); }

 protected:
  // Complete when they return. The range is checked against live allocations.
  [[nodiscard]] virtual Status read(std::uint64_t address, void* into, std::uint64_t length_bytes) = 0;
  [[nodiscard]] virtual Status write(std::uint64_t address, const void* from, std::uint64_t length_bytes) = 0;
  [[nodiscard]] virtual bool in_child() const = 0;

  // Copies that go on by themselves, as strait_provider_ops.copy and copy_done have them.
  [[nodiscard]] virtual Result<std::uint64_t> start(std::uint64_t to, std::uint64_t from,
                                                    std::uint64_t length_bytes) = 0;
  [[nodiscard]] virtual std::int32_t done(std::uint64_t ticket) = 0;

  // Whole pages of host memory, which these copies then reach without a detour. Not all vendors need it.
  [[nodiscard]] virtual const char* kind() const = 0;
  // The address at which a device finds them.
  [[nodiscard]] virtual Result<std::uint64_t> pin(Range) {
    return fail(Code::unsupported, "{} pins no host memory", kind());
  }
  [[nodiscard]] virtual Status unpin(Range) { return {}; }
  // In the destructor of who overrides unpin: what a NIC has not released.
  void unpin_all();

 private:
  [[nodiscard]] Status prepare(Range pages);
  template <class Next>
  std::int32_t change(std::uint64_t address, std::uint32_t width, std::uint64_t* old, Next next) noexcept;
  template <class Call>
  std::int32_t guarded(Call call) noexcept;

  std::mutex atomics_;
  std::mutex prepared_mutex_;
  std::multimap<std::uint64_t, HostPages::Hold> prepared_;  // by first byte
  Counter used_;
};

}  // namespace strait::buffer
