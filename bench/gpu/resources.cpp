// SPDX-License-Identifier: Apache-2.0
#include "resources.hpp"

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <stdexcept>

namespace bench::gpu {

std::vector<Resources> read_ptxas(const std::string& text) {
  std::vector<Resources> found;
  std::vector<bool> complete;
  bool sized = false;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto after = [&line](const char* words) {
      const std::size_t at = line.find(words);
      return at == std::string::npos ? nullptr : line.c_str() + at + std::char_traits<char>::length(words);
    };
    if (const char* name = after("Compiling entry function '")) {
      found.push_back({std::string(name, std::find(name, line.c_str() + line.size(), '\''))});
      complete.push_back(false);
      sized = false;
      continue;
    }
    if (found.empty()) continue;
    Resources& here = found.back();
    int stack = 0, stores = 0, loads = 0;
    if (std::sscanf(line.c_str(), " %d bytes stack frame, %d bytes spill stores, %d bytes spill loads", &stack, &stores,
                    &loads) == 3) {
      // Also said of every function that was not inlined.
      here.stack_bytes += stack;
      here.spill_store_bytes += stores;
      here.spill_load_bytes += loads;
      sized = true;
    }
    if (const char* used = after(": Used ")) {
      if (std::sscanf(used, "%d registers", &here.registers) == 1 && sized) complete.back() = true;
    }
  }
  if (found.empty()) throw std::runtime_error("ptxas named no kernel");
  for (std::size_t i = 0; i < found.size(); ++i)
    if (!complete[i]) throw std::runtime_error("ptxas said too little about " + found[i].kernel);
  return found;
}

}  // namespace bench::gpu
