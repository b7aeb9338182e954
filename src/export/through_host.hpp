// SPDX-License-Identifier: Apache-2.0
// HostRelay: between devices of two vendors, which have no copies between them. Through host memory, in pieces, so that
// one piece leaves the host while the next comes in. Only for who has allowed staging.
//
// Threads: any; copies of one vendor's memory take turns.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "base/error.hpp"
#include "buffer/providers.hpp"
#include "sys/clock.hpp"

namespace strait::exports {

class HostRelay {
 public:
  static constexpr std::uint64_t kPieceBytes = std::uint64_t{4} << 20;
  static constexpr std::uint64_t kPieces = 4;

  // The Providers must outlive it.
  explicit HostRelay(buffer::Providers& providers, std::uint64_t piece_bytes = kPieceBytes);
  ~HostRelay();
  HostRelay(const HostRelay&) = delete;
  HostRelay& operator=(const HostRelay&) = delete;

  // Copies `from.asked` to `to.asked`, which are equally long. At the deadline: Code::timeout, and what is under way
  // still owns both ranges. The buffers are made with the first copy of a vendor's memory and kept: of the vendor's
  // own pinned host memory where it has such, since pinning takes longer than many a copy.
  [[nodiscard]] Status copy(const buffer::Claim& to, const buffer::Claim& from, sys::Deadline deadline);

 private:
  class Piece;
  struct Ring;  // of one vendor
  [[nodiscard]] Result<Ring*> ring_of(buffer::Provider& vendor);

  buffer::Providers& providers_;
  const std::uint64_t piece_bytes_;
  std::mutex mutex_;
  std::map<buffer::Provider*, std::unique_ptr<Ring>> rings_;
};

}  // namespace strait::exports
