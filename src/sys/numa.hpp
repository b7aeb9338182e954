// SPDX-License-Identifier: Apache-2.0
// NUMA: which nodes a machine has, and where memory and threads are wished to be. Plain system calls, no libnuma.
//
// A wish is MPOL_PREFERRED: when a node is full the kernel takes another, and nothing fails.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace strait::sys {

// A test hands in its own.
struct NumaCalls {
  long (*mbind)(void* address, unsigned long length_bytes, int mode, const unsigned long* nodes, unsigned long bits,
                unsigned flags);
  long (*get_mempolicy)(int* mode, unsigned long* nodes, unsigned long bits);  // of the calling thread
  long (*set_mempolicy)(int mode, const unsigned long* nodes, unsigned long bits);
  int (*current_node)();                        // of the CPU the calling thread is on; -1: the kernel does not say
  long (*run_on)(const int* cpus, int n_cpus);  // the calling thread; -1 and EINVAL: it may use none of them
};
[[nodiscard]] const NumaCalls& real_numa_calls();

// "0-2,8" as the kernel writes sets of nodes and CPUs; what is no number ends it.
[[nodiscard]] std::vector<int> parse_numbers(std::string_view text);
// `sysfs`: the folder that stands for /sys. Nodes that have memory; empty where the machine shows none.
[[nodiscard]] std::vector<int> numa_nodes(const std::string& sysfs);
[[nodiscard]] std::vector<int> numa_cpus(const std::string& sysfs, int node);

// Pages of the range that nobody has touched yet; of a memory file those of everybody who maps it. Whole pages.
[[nodiscard]] Status prefer_node(void* address, std::size_t length_bytes, int node,
                                 const NumaCalls& calls = real_numa_calls());
// The calling thread, on CPUs that it may use.
[[nodiscard]] Status run_on_cpus(std::span<const int> cpus, const NumaCalls& calls = real_numa_calls());

// While it lives, memory that this thread touches first is wished to be on that node; then as it was. -1: no wish.
class NodeWish {
 public:
  explicit NodeWish(int node, const NumaCalls& calls = real_numa_calls());
  ~NodeWish();
  NodeWish(const NodeWish&) = delete;
  NodeWish& operator=(const NodeWish&) = delete;
  [[nodiscard]] const Status& status() const { return status_; }

 private:
  static constexpr std::size_t kWords = 1024 / (8 * sizeof(unsigned long));
  const NumaCalls& calls_;
  bool made_ = false;
  int mode_ = 0;
  unsigned long nodes_[kWords] = {};
  Status status_;
};

}  // namespace strait::sys
