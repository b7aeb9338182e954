// SPDX-License-Identifier: Apache-2.0
#include "ucx.hpp"

#include <algorithm>
#include <string_view>

#include "versus/ucx.hpp"

namespace bench {
namespace {

constexpr const char* kLater = "later=1";

// About as long as our own run takes, judged by what UCX does on an ordinary machine.
std::uint64_t iterations_for(const std::string_view unit, const Workload& w) {
  const double per_s = unit == "us" ? 5e6 : unit == "M/s" ? 3e7 : 1e10 / static_cast<double>(w.size_bytes);
  return std::max<std::uint64_t>(static_cast<std::uint64_t>(w.seconds * per_s), 20);
}

double value_of(const strait::versus::UcxLine& line, const std::string_view unit) {
  if (unit == "us") return line.latency_us;
  if (unit == "M/s") return line.messages_per_s / 1e6;
  return line.mib_per_s * 1048576 / 1e9;
}

}  // namespace

std::string why_no_ucx(const Setup& setup, const PairRow& row) {
  if (setup.ucx.empty()) return "ucx_perftest is not installed (ucx-utils)";
  const bool later = std::find(row.peer_options.begin(), row.peer_options.end(), kLater) != row.peer_options.end();
  return later && !setup.ucx_named ? "UCX 1.13 gets by a load that nobody checks; name a later ucx_perftest with --ucx"
                                   : "";
}

Figure run_ucx(const Setup& setup, const PairRow& row, const Workload& w) {
  strait::versus::UcxRun how{.program = setup.ucx,
                             .test = {},
                             .transports = {},
                             .bytes = w.size_bytes,
                             .count = iterations_for(row.unit, w),
                             .cpus = {setup.cpu[0], setup.cpu[1]}};
  for (const std::string& option : row.peer_options) {
    if (option.starts_with("tls="))
      how.transports = option.substr(4);
    else if (option.starts_with("alloc="))
      how.allocation = option.substr(6);
    else if (option != kLater)
      how.test.push_back(option);
  }
  const auto line = strait::versus::run_ucx(how);
  if (!line) return strait::versus::no_figure(line.error().text);
  return {true, value_of(*line, row.unit), {}, row.peer_title};
}

}  // namespace bench
