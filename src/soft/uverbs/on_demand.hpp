// SPDX-License-Identifier: Apache-2.0
// Memory on demand: it may come and go while it is registered. The engine reaches it through the system, which says
// when it is not there; a work request that needs it then fails, and the program does not.
#pragma once

#include "soft/uverbs/user_memory.hpp"
#include "strait/plugin.h"

namespace strait::soft::uverbs {

class OnDemand {
 public:
  // `offset`: from what work requests call an address to where it is.
  OnDemand(const UserMemory& memory, std::uint64_t offset);
  OnDemand(const OnDemand&) = delete;
  OnDemand& operator=(const OnDemand&) = delete;
  [[nodiscard]] const strait_memory_port* port() const { return &port_; }

 private:
  template <class Word>
  [[nodiscard]] Word* word_at(std::uint64_t address) const;
  static int read(void* context, std::uint64_t address, void* into, std::uint64_t length_bytes);
  static int write(void* context, std::uint64_t address, const void* from, std::uint64_t length_bytes);
  static int compare_swap(void* context, std::uint64_t address, std::uint32_t width, std::uint64_t compare,
                          std::uint64_t compare_mask, std::uint64_t swap, std::uint64_t swap_mask, std::uint64_t* old);
  static int fetch_add(void* context, std::uint64_t address, std::uint32_t width, std::uint64_t add,
                       std::uint64_t boundary, std::uint64_t* old);

  const UserMemory& memory_;
  std::uint64_t offset_;
  strait_memory_port port_{};
};

}  // namespace strait::soft::uverbs
