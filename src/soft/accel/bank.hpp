// SPDX-License-Identifier: Apache-2.0
// Bank: the memory chips of one device. It hands out blocks and counts the bytes, and nothing else: where a block
// appears in an address space is somebody else's business, and it may appear in several.
//
// A block goes back to the bank when its last holder in this process lets go of it *and* no descriptor of it is open
// anywhere any more: a leaked dma-buf is leaked device memory, as measured on an H200. That is noticed whenever the
// bank is asked how much is free. Threads: any.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "sys/calls.hpp"
#include "sys/fd.hpp"
#include "sys/mapping.hpp"

namespace strait::soft::accel {

class Bank;

// Whole pages of device memory. `id` is never used again in this process.
class Block {
 public:
  [[nodiscard]] std::uint64_t id() const { return id_; }
  [[nodiscard]] std::uint64_t length_bytes() const { return alias_.size(); }
  [[nodiscard]] std::byte* bytes() const { return alias_.data(); }  // for copy engines; no program is told
  [[nodiscard]] int file() const { return file_.get(); }

  // A descriptor of the whole block that the caller owns; the block is held while it is open.
  [[nodiscard]] Result<sys::Fd> open_file() const;
  // The block is also held while this file is open elsewhere: a window (window.hpp) over several blocks.
  void hold_while_open(std::shared_ptr<sys::Fd> file);
  [[nodiscard]] bool open_elsewhere() const;

 private:
  friend class Bank;
  Block(std::uint64_t id, sys::Fd file, sys::Mapping alias)
      : id_(id), file_(std::move(file)), alias_(std::move(alias)) {}

  const std::uint64_t id_;
  const sys::Fd file_;  // no holder (sys/file_hold.hpp): those are the descriptors that were given out
  const sys::Mapping alias_;
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<sys::Fd>> windows_;
};

class Bank : public std::enable_shared_from_this<Bank> {
 public:
  // `name` names the memory files, for people and for who gets one from another process.
  [[nodiscard]] static std::shared_ptr<Bank> make(std::string name, std::uint64_t memory_bytes,
                                                  const sys::Calls& calls = sys::real_calls());

  // Rounded up to whole pages. Code::limit when the bank is full.
  [[nodiscard]] Result<std::shared_ptr<Block>> take(std::uint64_t length_bytes);
  // A block of another process, by its file: not counted here, since it is there.
  [[nodiscard]] static Result<std::shared_ptr<Block>> adopt(sys::Fd file);

  [[nodiscard]] std::uint64_t memory_bytes() const { return memory_bytes_; }
  [[nodiscard]] std::uint64_t free_bytes();
  struct Leaks {
    std::uint64_t blocks = 0;  // freed, and held by open descriptors alone
    std::uint64_t bytes = 0;
  };
  [[nodiscard]] Leaks leaks();

 private:
  Bank(std::string name, std::uint64_t memory_bytes, const sys::Calls& calls)
      : name_(std::move(name)), memory_bytes_(memory_bytes), calls_(&calls) {}
  void give_back(std::unique_ptr<Block> block);
  void sweep_locked();

  const std::string name_;
  const std::uint64_t memory_bytes_;
  const sys::Calls* calls_;
  std::mutex mutex_;
  std::uint64_t used_bytes_ = 0;
  std::vector<std::unique_ptr<Block>> waiting_;  // freed, but still open somewhere
};

}  // namespace strait::soft::accel
