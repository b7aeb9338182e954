// SPDX-License-Identifier: Apache-2.0
// Memory of an accelerator that a program lends to its device: nothing maps it, a port of this process reads and writes
// it. What was taken back is gone, also for what was made of it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <shared_mutex>

#include "strait/plugin.h"

namespace strait::soft::cassini {

// One range, from address 0 on. Any thread.
class LentPort {
 public:
  LentPort(std::uint64_t address, std::uint64_t bytes, const strait_memory_port* behind);
  LentPort(const LentPort&) = delete;
  LentPort& operator=(const LentPort&) = delete;

  [[nodiscard]] std::uint64_t address() const { return address_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] const strait_memory_port* behind() const { return behind_; }
  [[nodiscard]] const strait_memory_port* port() const { return &port_; }
  // Waits for what is under way; nothing begins afterwards.
  void take_back();

 private:
  template <class Use>
  std::int32_t access(std::uint64_t offset, std::uint64_t bytes, Use use);

  const std::uint64_t address_;
  const std::uint64_t bytes_;
  const strait_memory_port* const behind_;
  strait_memory_port port_{};
  std::shared_mutex mutex_;
  bool taken_ = false;
};

// Those of one device. Under the lock of who has it.
class LentPorts {
 public:
  // 0 or -errno. Ranges may lie over each other where they are one port's.
  [[nodiscard]] int add(std::uint64_t address, std::uint64_t bytes, const strait_memory_port* port);
  // The range that was lent at this address, the last one if several were; null: none. To be taken back without locks.
  [[nodiscard]] std::shared_ptr<LentPort> remove(std::uint64_t address);
  // One that all of it lies in; null: none.
  [[nodiscard]] std::shared_ptr<LentPort> find(std::uint64_t address, std::uint64_t bytes) const;

 private:
  std::multimap<std::uint64_t, std::shared_ptr<LentPort>> ranges_;
};

}  // namespace strait::soft::cassini
