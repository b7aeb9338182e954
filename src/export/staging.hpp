// SPDX-License-Identifier: Apache-2.0
// Staging: a host bounce buffer in front of device memory that no NIC can reach. Local source or destination only: a
// peer never sees it, so nothing remote can depend on when the bytes are copied.
//
// The vendor pins the buffer where it can: copies of memory that is not pinned are not asynchronous with every driver
// (CUDA's are done when the call returns), and then none goes on while the NIC works. The pages stay the host's, so
// that a device's reset takes the pinning and not the memory.
//
// Threads: one at a time. Blocking: fill and drain, until their deadline.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/error.hpp"
#include "buffer/memory.hpp"
#include "buffer/providers.hpp"
#include "sys/clock.hpp"

namespace strait::exports {

class Staging {
 public:
  // A bounce buffer as long as `range`, pinned or, where the vendor does not, plain. The Providers must outlive it.
  [[nodiscard]] static Result<Staging> make(buffer::Providers& providers, const buffer::Claim& claim,
                                            buffer::Range range);
  Staging(Staging&& other) noexcept;
  Staging& operator=(Staging&&) = delete;
  // A copy that missed its deadline still uses the bounce buffer: waits for it a short while, and if it does not end
  // leaves the buffer to the provider until that closes.
  ~Staging();

  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(bounce_.data()); }
  [[nodiscard]] std::uint64_t size() const { return bounce_.size(); }
  [[nodiscard]] buffer::Range device_range() const { return range_; }
  [[nodiscard]] bool pinned() const { return pinned_by_ != nullptr; }

  // Before the NIC reads: device memory to bounce buffer.
  [[nodiscard]] Status fill(std::uint64_t offset, std::uint64_t length_bytes, sys::Deadline deadline);
  // The same in two steps, so that something else is done meanwhile; one at a time.
  [[nodiscard]] Result<std::uint64_t> start_fill(std::uint64_t offset, std::uint64_t length_bytes,
                                                 sys::Deadline deadline);
  [[nodiscard]] Status finish_fill(std::uint64_t ticket, std::uint64_t length_bytes, sys::Deadline deadline);
  // After the NIC wrote: bounce buffer to device memory.
  [[nodiscard]] Status drain(std::uint64_t offset, std::uint64_t length_bytes, sys::Deadline deadline);
  [[nodiscard]] std::uint64_t bytes_copied() const { return bytes_copied_; }

 private:
  Staging(buffer::Provider* provider, buffer::Range range, buffer::Memory bounce)
      : provider_(provider), range_(range), bounce_(std::move(bounce)) {}
  void pin();
  [[nodiscard]] Status check(std::uint64_t offset, std::uint64_t length_bytes) const;
  [[nodiscard]] Status run(std::uint64_t to, std::uint64_t from, std::uint64_t length_bytes, sys::Deadline deadline);
  [[nodiscard]] Status settle(sys::Deadline deadline);

  buffer::Provider* provider_;
  buffer::Range range_;
  buffer::Memory bounce_;
  const strait_memory_port* pinned_by_ = nullptr;  // its provider's
  std::uint64_t pending_ticket_ = 0;
  bool pending_ = false;
  std::uint64_t failed_ticket_ = 0;  // one that failed while somebody else waited for it
  bool failed_ = false;
  std::uint64_t bytes_copied_ = 0;
};

}  // namespace strait::exports
