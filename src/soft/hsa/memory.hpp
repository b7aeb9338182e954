// SPDX-License-Identifier: Apache-2.0
// What the runtime knows of memory: pages, and ranges of addresses that show them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/error.hpp"
#include "soft/accel/arena.hpp"
#include "soft/hsa/abi.hpp"
#include "sys/fd.hpp"
#include "sys/mapping.hpp"

namespace strait::soft::hsa {

// Pages of one file. Device memory is charged to its device until the last who holds this lets go.
class Pages {
 public:
  // Device memory, just allocated in `arena`.
  explicit Pages(std::shared_ptr<accel::Allocation> device) : device_(std::move(device)) {}
  // System memory, and what was imported.
  Pages(sys::Fd file, sys::Mapping alias) : file_(std::move(file)), alias_(std::move(alias)) {}
  [[nodiscard]] static Result<std::shared_ptr<Pages>> of_file(sys::Fd file, std::uint64_t length_bytes);

  [[nodiscard]] int fd() const { return device_ ? device_->memfd.get() : file_.get(); }
  // Where the copy engine finds the bytes, whatever address the program knows them by.
  [[nodiscard]] std::byte* bytes() const { return device_ ? device_->alias.data() : alias_.data(); }
  [[nodiscard]] std::uint64_t length_bytes() const { return device_ ? device_->alias.size() : alias_.size(); }
  [[nodiscard]] std::uint64_t device_base() const { return device_ ? device_->base : 0; }

 private:
  std::shared_ptr<accel::Allocation> device_;
  sys::Fd file_;
  sys::Mapping alias_;
};

struct Notifier {
  void* pointer = nullptr;
  DeallocationCallback call = nullptr;
  void* argument = nullptr;
};

// Addresses that mean memory: an allocation, an import, or a mapping made by the program.
struct Range {
  std::uint64_t base = 0;
  std::uint64_t asked_bytes = 0;  // what pointer_info reports
  std::uint64_t room_bytes = 0;   // whole pages
  std::int32_t type = kPointerUnknown;
  std::uint32_t owner = 0;  // node; 0 is the CPU
  std::uint32_t flags = 0;
  std::shared_ptr<Pages> pages;
  std::uint64_t offset = 0;  // of `base` in the pages
  bool piece = false;        // cut from a block
  bool host_access = false;  // the CPU may follow the address
  std::uint64_t access = 0;  // bit per node
  void* user_data = nullptr;
  std::vector<Notifier> notifiers;
  sys::Mapping place;                                 // addresses that this range alone reserved
  std::uint64_t identity = 0;                         // 0: the kernel was not told
  std::uint64_t vmem = 0;                             // handle that is mapped here
  std::map<std::uint32_t, std::int32_t> permissions;  // of such a mapping, per node

  [[nodiscard]] bool holds(std::uint64_t address) const { return address - base < room_bytes; }
};

// Sorted by base; ranges do not overlap.
class Ranges {
 public:
  [[nodiscard]] Range* at(std::uint64_t base);
  [[nodiscard]] Range* around(std::uint64_t address);  // base <= address < base + room_bytes
  [[nodiscard]] bool overlaps(std::uint64_t base, std::uint64_t length_bytes) const;
  Range& add(Range range);
  [[nodiscard]] Range take(std::uint64_t base);
  [[nodiscard]] std::map<std::uint64_t, Range>& all() { return ranges_; }
  [[nodiscard]] std::size_t size() const { return ranges_.size(); }

 private:
  std::map<std::uint64_t, Range> ranges_;
};

// Small device allocations are cut from blocks of 2 MiB, as AMD's runtime cuts them, so that an export of one is the
// block and an offset. The first page of a block is kept back: no piece starts at offset 0, and who passes 0 is wrong
// every time and not only for the second piece.
class Blocks {
 public:
  static constexpr std::uint64_t kBlockBytes = std::uint64_t{2} << 20;
  explicit Blocks(accel::Arena& arena) : arena_(&arena) {}

  struct Piece {
    std::shared_ptr<Pages> pages;
    std::uint64_t base = 0;
    std::uint64_t offset = 0;
  };
  [[nodiscard]] Result<Piece> allocate(std::uint64_t length_bytes);
  void free(std::uint64_t base, std::uint64_t length_bytes);
  [[nodiscard]] std::size_t size() const { return blocks_.size(); }

 private:
  struct Block {
    std::shared_ptr<Pages> pages;
    std::vector<bool> taken;  // per page
    std::size_t pieces = 0;
  };
  [[nodiscard]] Result<Piece> new_block(std::size_t pages);
  accel::Arena* arena_;
  std::map<std::uint64_t, Block> blocks_;
};

}  // namespace strait::soft::hsa
