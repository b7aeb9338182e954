// SPDX-License-Identifier: Apache-2.0
// A sweep: latency and bandwidth over size, strait's beside its peers', in pairs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "versus/peer.hpp"

namespace strait::versus {

struct SweepPlan {
  std::string strait;                       // the tool
  std::vector<std::string> strait_options;  // of `strait perf`: --memory, --carrier, ...
  std::vector<Peer> peers;
  std::vector<std::uint64_t> sizes;
  int pairs = 10;
  double seconds = 0.1;  // of each timed part
  Cpus cpus = {};
  std::int64_t deadline_ns = 120'000'000'000;  // of one run of one program
  std::function<void(const std::string&)> say = {};
  std::function<bool()> stop = {};  // asked between runs
};

inline constexpr const char* kSweepSizes = "8,64,512,4K,32K,256K,2M,16M";

// {"software": bool, "carrier": text, "path": text, "peers": [{"name", "title"}], "pairs": n, "seconds": n, "ok": bool,
//  "tests": [{"test", "title", "unit", "lower_is_better", "results": [{"bytes", "strait": spread, "peers": [{"name",
//  "left_out": why, or what pairs_json() has}]}]}]}. `ok` is false when somebody failed: "failures" then says what.
// An error when it was stopped, or when the machine cannot be looked at.
[[nodiscard]] Result<Json> measure_sweep(const SweepPlan& plan);

// The table, in at most 80 columns; markdown for docs; the picture; the page. `results` is what measure_sweep() gave.
[[nodiscard]] std::string sweep_table(const Json& results);
[[nodiscard]] std::string sweep_markdown(const Json& results);
[[nodiscard]] std::string sweep_svg(const Json& results);

struct Origin {
  std::string command;
  std::string date;
  std::string machine;
  std::string versions;
  std::string load;
};
[[nodiscard]] std::string sweep_page(const Json& results, const Origin& origin);
// "12 of 320 pairs were discarded: ...", in one line. Empty when there are no pairs.
[[nodiscard]] std::string sweep_discarded(const Json& results);
[[nodiscard]] std::string discarded_text(std::size_t pairs, std::size_t discarded, std::size_t line_moved,
                                         std::size_t lost_cpu);

}  // namespace strait::versus
