// SPDX-License-Identifier: Apache-2.0
// What strait perf prints: the table perftest users know, a progress line on long runs, or JSON.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tool/perf.hpp"

namespace strait::tool {

class PerfReport {
 public:
  PerfReport(const PerfOptions& options, bool software);
  void begin_test(const TestRow& test, const std::string& path);
  // For Goal::tick: draws the progress line once a run has lasted two seconds and stderr is a terminal.
  [[nodiscard]] std::function<void(std::uint64_t, double)> ticker(const TestRow& test, std::uint64_t bytes);
  void add(const TestRow& test, const Measured& measured);
  void counters(const Json& info);
  void failed(const Error& error);
  // Prints what JSON there is. True when everything was verified.
  [[nodiscard]] bool finish();

 private:
  void clear_progress();
  const PerfOptions& options_;
  bool software_;
  bool drawn_ = false;
  bool all_verified_ = true;
  Json document_;
};

}  // namespace strait::tool
