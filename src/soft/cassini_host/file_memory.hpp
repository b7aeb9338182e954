// SPDX-License-Identifier: Apache-2.0
// Memory on a file that this process maps too: an accelerator's, or what a client said it shares.
#pragma once

#include <cstdint>
#include <memory>

#include "base/error.hpp"
#include "soft/cassini/user_memory.hpp"
#include "sys/mapping.hpp"

namespace strait::soft::cassini {

// Bytes of a file from `offset` on, which need not be a page's first. The file has to be sealed against shrinking:
// nobody who holds it may be able to take its pages from under us.
class FileBytes {
 public:
  [[nodiscard]] static Result<FileBytes> map(int fd, std::uint64_t offset, std::uint64_t bytes);
  [[nodiscard]] std::byte* data() const { return mapping_.data() + skip_; }
  [[nodiscard]] std::uint64_t size() const { return bytes_; }

 private:
  FileBytes(sys::Mapping mapping, std::uint64_t skip, std::uint64_t bytes)
      : mapping_(std::move(mapping)), skip_(skip), bytes_(bytes) {}
  sys::Mapping mapping_;
  std::uint64_t skip_;
  std::uint64_t bytes_;
};

class FileMemory final : public UserMemory {
 public:
  // `gap`: at that address the bytes begin; what is before and behind them is nothing.
  explicit FileMemory(FileBytes bytes, std::uint64_t gap = 0) : bytes_(std::move(bytes)), gap_(gap) {}
  [[nodiscard]] bool read(std::uint64_t address, void* into, std::size_t bytes) override;
  [[nodiscard]] bool write(std::uint64_t address, const void* from, std::size_t bytes) override;
  [[nodiscard]] bool reaches(std::uint64_t address, std::uint64_t bytes, bool /*writable*/) override {
    return direct(address, bytes) != nullptr;
  }
  [[nodiscard]] std::byte* direct(std::uint64_t address, std::uint64_t bytes) override {
    if (address < gap_ || bytes > bytes_.size() || address - gap_ > bytes_.size() - bytes) return nullptr;
    return bytes_.data() + (address - gap_);
  }

 private:
  FileBytes bytes_;
  std::uint64_t gap_;
};

}  // namespace strait::soft::cassini
