// SPDX-License-Identifier: Apache-2.0
// Memory that only its process reaches: a thread over there is asked for every copy. The slow way, for sandboxes
// without process_vm_readv and for device memory that may move.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "soft/cassini/user_memory.hpp"
#include "soft/cassini_host/patience.hpp"
#include "soft/cassini_host/protocol.hpp"
#include "sys/clock.hpp"
#include "sys/fd.hpp"

namespace strait::soft::cassini {

// The asking end. Who has used up the patience of the device is not asked again: it cannot wait for one of its clients.
class MemoryAsker {
 public:
  // `patience`: of the process, however often it opens a device.
  MemoryAsker(sys::Fd socket, std::shared_ptr<Patience> patience)
      : socket_(std::move(socket)), patience_(std::move(patience)) {}
  [[nodiscard]] bool read(std::uint32_t memory, std::uint64_t address, void* into, std::size_t bytes);
  [[nodiscard]] bool write(std::uint32_t memory, std::uint64_t address, const void* from, std::size_t bytes);
  [[nodiscard]] bool reaches(std::uint32_t memory, std::uint64_t address, std::uint64_t bytes, bool writable);
  [[nodiscard]] bool dead() const { return dead_; }

 private:
  [[nodiscard]] bool ask(const protocol::MemoryAsk& ask, const void* payload, std::size_t payload_bytes, void* into,
                         std::size_t into_bytes);
  [[nodiscard]] bool ask_until(const protocol::MemoryAsk& ask, const void* payload, std::size_t payload_bytes,
                               void* into, std::size_t into_bytes, sys::Deadline deadline);
  sys::Fd socket_;
  std::shared_ptr<Patience> patience_;
  bool dead_ = false;
  std::vector<std::byte> packet_;
};

// One piece of device memory, from address 0 on.
class AskedMemory final : public UserMemory {
 public:
  AskedMemory(std::shared_ptr<MemoryAsker> asker, std::uint32_t memory, std::uint64_t start, std::uint64_t bytes)
      : asker_(std::move(asker)), memory_(memory), start_(start), bytes_(bytes) {}
  [[nodiscard]] bool read(std::uint64_t address, void* into, std::size_t bytes) override {
    return inside(address, bytes) && asker_->read(memory_, start_ + address, into, bytes);
  }
  [[nodiscard]] bool write(std::uint64_t address, const void* from, std::size_t bytes) override {
    return inside(address, bytes) && asker_->write(memory_, start_ + address, from, bytes);
  }
  [[nodiscard]] bool reaches(std::uint64_t address, std::uint64_t bytes, bool /*writable*/) override {
    return inside(address, bytes);
  }
  [[nodiscard]] std::byte* direct(std::uint64_t /*address*/, std::uint64_t /*bytes*/) override { return nullptr; }
  [[nodiscard]] bool lost() const override { return asker_->dead(); }

 private:
  [[nodiscard]] bool inside(std::uint64_t address, std::uint64_t bytes) const {
    return bytes <= bytes_ && address <= bytes_ - bytes;
  }
  std::shared_ptr<MemoryAsker> asker_;
  std::uint32_t memory_;
  std::uint64_t start_;
  std::uint64_t bytes_;
};

}  // namespace strait::soft::cassini
