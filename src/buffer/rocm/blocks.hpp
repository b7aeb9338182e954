// SPDX-License-Identifier: Apache-2.0
// Blocks: what is known about allocations of the HSA runtime, until it says that they were freed.
//
// The runtime has no identity for an allocation, and asking it about a pointer takes its memory lock. So an answer is
// kept together with a deallocation callback that removes it, and numbered: that number is the identity. One table per
// process: the runtime knows a callback by its function alone, so two tables could not tell theirs apart.
//
// The callback runs inside the program's free, under locks of the runtime: it takes only locks that are never held
// while the runtime is called.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "base/error.hpp"
#include "buffer/rocm/runtime.hpp"
#include "strait/plugin.h"

namespace strait::buffer::rocm {

struct Block {
  std::uint64_t base = 0;
  std::uint64_t length_bytes = 0;
  std::uint64_t host_base = 0;  // where the CPU sees it; 0: it does not
  std::uint64_t identity = 0;   // 0: the runtime would not tell when it is freed
  std::uint64_t owner = 0;      // agent
  int type = 0;
};

class Blocks {
 public:
  [[nodiscard]] static Blocks& of_process();

  // Between hsa_init and hsa_shut_down of one provider. The last one forgets everything.
  void enter(const Hsa& hsa);
  void leave();

  // False: the runtime does not know the address.
  [[nodiscard]] bool find(std::uint64_t address, Block& out);
  // 0: unknown or not all of it in one allocation.
  [[nodiscard]] std::uint64_t identity(std::uint64_t address, std::uint64_t length_bytes);

  [[nodiscard]] Result<std::uint64_t> watch(std::uint64_t address, strait_freed_callback call, void* context);
  void unwatch(std::uint64_t watch);

 private:
  struct Watch {
    std::uint64_t base = 0;
    strait_freed_callback call = nullptr;
    void* context = nullptr;
  };
  [[nodiscard]] bool find_known(std::uint64_t address, Block& out) const;
  [[nodiscard]] bool learn(std::uint64_t address, Block& out);
  static void freed(void* pointer, void* self);

  const Hsa* hsa_ = nullptr;
  std::mutex learning_;  // one at a time asks the runtime; never taken by the callback
  std::uint64_t users_ = 0;
  mutable std::shared_mutex table_;  // never held while the runtime is called
  std::map<std::uint64_t, Block> blocks_;
  std::uint64_t last_identity_ = 0;
  std::mutex watching_;  // held while callbacks run: unwatch then waits for them
  std::map<std::uint64_t, Watch> watches_;
  std::uint64_t last_watch_ = 0;
};

}  // namespace strait::buffer::rocm
