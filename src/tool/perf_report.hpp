// SPDX-License-Identifier: Apache-2.0
// What strait perf prints: the table perftest users know, a progress line on long runs, or JSON.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

#include "tool/perf.hpp"

namespace strait::tool {

class PerfReport {
 public:
  PerfReport(const PerfOptions& options, bool software);
  void begin_test(const TestRow& test, const std::string& path, const std::string& reach);
  // For Goal::tick: draws the progress line once a run has lasted two seconds and stderr is a terminal.
  [[nodiscard]] std::function<void(std::uint64_t, double)> ticker(const TestRow& test, std::uint64_t bytes);
  void add(const TestRow& test, const Measured& measured);
  void counters(const Json& info);
  void failed(const Error& error);
  // What strict NICs of both sides found; none: nobody looked.
  void checked(std::optional<std::uint64_t> findings) { findings_ = findings; }
  [[nodiscard]] std::uint64_t findings() const { return findings_.value_or(0); }
  // Prints what JSON there is. True when everything was verified.
  [[nodiscard]] bool finish();

 private:
  void clear_progress();
  const PerfOptions& options_;
  bool software_;
  bool drawn_ = false;
  bool all_verified_ = true;
  std::optional<std::uint64_t> findings_;
  Json document_;
};

}  // namespace strait::tool
