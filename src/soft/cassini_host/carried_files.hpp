// SPDX-License-Identifier: Apache-2.0
// The device memory that came with one command: what its process knew of it.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "soft/cassini/client.hpp"
#include "soft/cassini_host/asked_memory.hpp"
#include "soft/cassini_host/protocol.hpp"
#include "sys/fd.hpp"

namespace strait::soft::cassini {

// Of [start, start + bytes) the part that is in a piece of `length` bytes. False: nothing is.
struct PartOf {
  std::uint64_t gap = 0, start = 0, bytes = 0;
};
[[nodiscard]] bool part_of(std::uint64_t piece, std::uint64_t length, std::uint64_t start, std::uint64_t bytes,
                           PartOf& out);

class CarriedFiles final : public CommandFiles {
 public:
  explicit CarriedFiles(std::shared_ptr<MemoryAsker> asker) : asker_(std::move(asker)) {}
  void add(const protocol::Carried& piece, sys::Fd file) { pieces_.emplace_back(piece, std::move(file)); }

  int dmabuf(int fd, std::uint64_t offset, std::uint64_t bytes, std::unique_ptr<UserMemory>& out) override;
  int device_pages(std::uint64_t address, std::uint64_t bytes, std::unique_ptr<UserMemory>& out) override;

 private:
  using Piece = std::pair<protocol::Carried, sys::Fd>;
  [[nodiscard]] int open(const Piece& piece, const PartOf& part, std::unique_ptr<UserMemory>& out) const;
  std::shared_ptr<MemoryAsker> asker_;
  std::vector<Piece> pieces_;
};

}  // namespace strait::soft::cassini
