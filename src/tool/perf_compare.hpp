// SPDX-License-Identifier: Apache-2.0
// strait perf --compare: latency and bandwidth over size beside the peers that are installed, as a table, a picture, a
// page.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace strait::tool {

inline constexpr const char* kInstalledPeers = "installed";  // what --compare without a list means

struct CompareOptions {
  std::string peers;                        // "ucx,memcpy", or kInstalledPeers
  std::vector<std::uint64_t> sizes;         // empty: a sweep from 8 bytes to 16 MiB
  std::vector<std::string> strait_options;  // for our own runs
  int pairs = 10;
  std::int64_t duration_ns = 100'000'000;  // of each timed part
  std::int64_t deadline_ns = 10'000'000'000;
  std::string svg;
  std::string html;
  bool json = false;
};

// Empty when the text is a list of peers, or kInstalledPeers.
[[nodiscard]] std::string check_peers(const std::string& text);
[[nodiscard]] int run_perf_compare(const CompareOptions& options);

}  // namespace strait::tool
