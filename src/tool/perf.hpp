// SPDX-License-Identifier: Apache-2.0
// strait perf: what both ends agree on, and the pieces each is made of.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strait/strait.hpp"
#include "tool/json.hpp"
#include "tool/tool.hpp"

namespace strait::tool {

enum class Test { put_lat, put_bw, get_lat, get_bw, fetch_add_lat, compare_swap_lat, send_lat, put_rate };

// What the figure is: the shape of its table, and what a reader may compare it with.
enum class Figure { half_round_trip, whole_operation, bandwidth };

struct TestRow {
  Test test;
  const char* name;
  const char* help;
  Figure figure;
  const char* sizes;     // when none are asked for
  bool word_only;        // 8 bytes, nothing else
  std::uint32_t window;  // operations under way, when not asked for
};
[[nodiscard]] std::span<const TestRow> test_table();
[[nodiscard]] const TestRow* find_test(std::string_view name);

// "8,64K,1M", or "8:16M" for every power of two between; 1 byte to 1 GiB.
[[nodiscard]] Result<std::vector<std::uint64_t>> parse_sizes(std::string_view text);

struct PerfOptions {
  std::string server;  // empty: be the server
  std::vector<const TestRow*> tests;
  std::vector<std::uint64_t> sizes;  // empty: each test's own
  std::uint64_t iterations = 0;      // 0: for `duration_ns`
  std::int64_t duration_ns = 500'000'000;
  std::uint64_t warmup = 1000;
  std::uint32_t window = 0;  // 0: the test's own
  std::string memory = "host";
  std::string progress = "caller";
  std::int64_t deadline_ns = 10'000'000'000;
  std::string listen;
  std::string capture;
  bool counters = false;
  int cpu = -1;  // the n-th CPU this process may use; -1: not pinned, with --spawn 0 here and 1 for the server
  bool once = false;
  bool spawn = false;
  bool bits = false;
  bool json = false;
  bool strict = false;
  bool staged = false;  // the client's buffers are reached by a copy only, and by nobody else
  Settings settings;
};

// One line of the table.
struct Measured {
  std::uint64_t bytes = 0;
  std::uint64_t iterations = 0;
  double seconds = 0;
  bool verified = false;
  std::string note;  // what was wrong
  double min_us = 0, p50_us = 0, p90_us = 0, p99_us = 0, max_us = 0;
};

int run_perf_server(const PerfOptions& options);
int run_perf_client(const PerfOptions& options);

[[nodiscard]] Result<Node> open_perf_node(const PerfOptions& options, bool server);
// What its strict NICs have found; none when none is strict.
[[nodiscard]] std::optional<std::uint64_t> strict_findings(const Json& info);

}  // namespace strait::tool
