// SPDX-License-Identifier: Apache-2.0
// ForkMark: tells a process from its forked children with one load, on paths where fork_generation() would cost too
// much.
#pragma once

#include <atomic>
#include <cstdint>

namespace strait::sys {

namespace detail {
extern std::atomic<std::uint32_t> forks;  // raised in every child
}

class ForkMark {
 public:
  // Marks the process it is made in.
  ForkMark();
  [[nodiscard]] bool in_child() const { return detail::forks.load(std::memory_order_relaxed) != made_at_; }

 private:
  std::uint32_t made_at_;
};

}  // namespace strait::sys
