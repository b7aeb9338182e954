// SPDX-License-Identifier: Apache-2.0
// Tables and JSON of strait perf.
#include "tool/perf_report.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "sys/terminal.hpp"
#include "tool/counters.hpp"
#include "tool/text.hpp"

namespace strait::tool {

std::optional<std::uint64_t> strict_findings(const Json& info) {
  std::optional<std::uint64_t> found;
  if (!info.is_object()) return found;
  for (const Json& nic : info.value("nics", Json::array())) {
    const Json counters = nic.value("counters", Json::object());
    if (counters.contains("strict_findings"))
      found = found.value_or(0) + counters.value("strict_findings", std::uint64_t{0});
  }
  return found;
}
namespace {

const char* figure_text(Figure figure) {
  switch (figure) {
    case Figure::half_round_trip: return "half round trip";
    case Figure::whole_operation: return "whole operation, from post to completion";
    case Figure::bandwidth: break;
  }
  return "bandwidth";
}

// Why the figure means what it means, in a line under the title.
std::string remark(const TestRow& test, const PerfOptions& options) {
  switch (test.test) {
    case Test::put_lat:
      return options.memory == "host"
                 ? "half round trip; 1, 2, 4 and 8 bytes: the receiver polls the word; other sizes: put "
                   "with signal, the receiver polls the signal"
                 : "half round trip; put with signal, the receiver polls the signal (a CPU cannot poll "
                   "accelerator memory)";
    case Test::send_lat: return "half round trip; receives are posted ahead";
    case Test::get_lat:
    case Test::fetch_add_lat:
    case Test::compare_swap_lat: return "whole operation, from post to completion: a round trip by nature";
    default: break;
  }
  const std::uint32_t window = options.window != 0 ? options.window : test.window;
  return fmt::format("{} operations under way, each waited for", window);
}

double rate_of(const Measured& measured) {
  return measured.seconds > 0 ? static_cast<double>(measured.iterations) / measured.seconds : 0;
}

}  // namespace

PerfReport::PerfReport(const PerfOptions& options, bool software) : options_(options), software_(software) {
  document_ = {{"tests", Json::array()},       {"ok", false},          {"memory", options.memory},
               {"progress", options.progress}, {"software", software}, {"server", options.server}};
}

void PerfReport::begin_test(const TestRow& test, const std::string& path, const std::string& reach) {
  const std::uint32_t window = options_.window != 0 ? options_.window : test.window;
  document_["tests"].push_back({{"test", test.name},
                                {"figure", figure_text(test.figure)},
                                {"window", window},
                                {"path", path},
                                {"reach", reach},
                                {"carrier", carrier_of(path)},
                                {"results", Json::array()}});
  if (options_.json) return;
  fmt::print("\n{}\n", tinted(fmt::format("{}, {} memory to {} memory", test.name, options_.memory, options_.memory),
                              Tint::strong));
  if (software_) fmt::print("  software devices on this machine: not the speed of a NIC\n");
  fmt::print("{}",
             wrap(fmt::format("carrier: {}; memory reached by: {}; path: {}", carrier_of(path), reach, path), 2, 4));
  fmt::print("{}", wrap(remark(test, options_), 2, 4));
  if (test.figure == Figure::bandwidth) {
    fmt::print(" {:>10} {:>12} {:>16} {:>16}\n", "#bytes", "#iterations", options_.bits ? "BW[Gb/s]" : "BW[GB/s]",
               "MsgRate[M/s]");
  } else {
    fmt::print(" {:>10} {:>12} {:>9} {:>9} {:>9} {:>9} {:>10}\n", "#bytes", "#iterations", "min[us]", "50%[us]",
               "90%[us]", "99%[us]", "max[us]");
  }
  std::fflush(stdout);
}

std::function<void(std::uint64_t, double)> PerfReport::ticker(const TestRow& test, std::uint64_t bytes) {
  if (options_.json || !sys::is_terminal(STDERR_FILENO)) return nullptr;
  return [this, name = test.name, bytes](std::uint64_t done, double seconds) {
    if (seconds < 2) return;
    std::string goal = options_.iterations != 0 ? fmt::format("{} of {} operations", done, options_.iterations)
                                                : fmt::format("{:.0f} of {:.0f} s", seconds,
                                                              static_cast<double>(options_.duration_ns) * 1e-9);
    // Never wider than the terminal: what is drawn over it clears one row.
    fmt::print(stderr, "\r\033[K  {:.{}}",
               fmt::format("{} {}: {}, {:.3f} M operations/s", name, size_text(bytes), goal,
                           static_cast<double>(done) / seconds / 1e6),
               kColumns - 3);
    std::fflush(stderr);
    drawn_ = true;
  };
}

void PerfReport::clear_progress() {
  if (drawn_) fmt::print(stderr, "\r\033[K");
  drawn_ = false;
}

void PerfReport::add(const TestRow& test, const Measured& measured) {
  clear_progress();
  all_verified_ = all_verified_ && measured.verified;
  const double operations = rate_of(measured);
  const double bytes = operations * static_cast<double>(measured.bytes);
  Json result{{"bytes", measured.bytes},
              {"iterations", measured.iterations},
              {"seconds", measured.seconds},
              {"verified", measured.verified}};
  if (!measured.verified) result["note"] = measured.note;
  if (test.figure == Figure::bandwidth) {
    result["bytes_per_second"] = bytes;
    result["operations_per_second"] = operations;
  } else {
    result["min_us"] = measured.min_us;
    result["p50_us"] = measured.p50_us;
    result["p90_us"] = measured.p90_us;
    result["p99_us"] = measured.p99_us;
    result["max_us"] = measured.max_us;
  }
  document_["tests"].back()["results"].push_back(std::move(result));
  if (options_.json) return;
  if (test.figure == Figure::bandwidth) {
    fmt::print(" {:>10} {:>12} {:>16.3f} {:>16.4f}", measured.bytes, measured.iterations,
               bytes * (options_.bits ? 8 : 1) / 1e9, operations / 1e6);
  } else {
    fmt::print(" {:>10} {:>12} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f} {:>10.2f}", measured.bytes, measured.iterations,
               measured.min_us, measured.p50_us, measured.p90_us, measured.p99_us, measured.max_us);
  }
  fmt::print("{}\n", measured.verified ? "" : "\n" + wrap(tinted("WRONG: ", Tint::bad) + measured.note, 4, 6));
  std::fflush(stdout);
}

void PerfReport::counters(const Json& info) {
  document_["nics"] = info.value("nics", Json::array());
  if (!options_.json) fmt::print("{}", counters_page(info));
}

void PerfReport::failed(const Error& error) {
  clear_progress();
  if (!options_.json) return;
  document_["error"] = {{"text", error.text}, {"remedy", error.remedy}, {"code", static_cast<int>(error.code)}};
  fmt::print("{}\n", json_pages(document_));
}

bool PerfReport::finish() {
  document_["ok"] = all_verified_ && findings() == 0;
  if (findings_) document_["strict_findings"] = *findings_;
  if (options_.json) {
    fmt::print("{}\n", json_pages(document_));
  } else {
    fmt::print("\n  {}\n", all_verified_ ? "data verified after every line, outside the timed part"
                                         : tinted("data was WRONG", Tint::bad));
    if (findings_) fmt::print("  strict: {} finding{}\n", *findings_, *findings_ == 1 ? "" : "s");
  }
  return all_verified_;
}

}  // namespace strait::tool
