// SPDX-License-Identifier: Apache-2.0
#include "versus/machine.hpp"

#include <fmt/format.h>

#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "sys/captured.hpp"
#include "sys/kernel_name.hpp"

namespace strait::versus {
namespace {

std::string line_of(const std::string& file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t at = line.find_first_not_of(" \t", line.find(':') + 1);
    return at == std::string::npos ? std::string() : line.substr(at);
  }
  return {};
}

std::string package_version(const std::string& package) {
  const sys::Ran ran =
      sys::run_captured({"dpkg-query", "-W", "-f=${Version}", package}, sys::Deadline::after_ns(10'000'000'000));
  return ran.ok && !ran.out.empty() ? ran.out : "not installed";
}

}  // namespace

nlohmann::json describe_machine(const std::string& strait_version) {
  return {{"cpu", line_of("/proc/cpuinfo", "model name")},
          {"cpus", std::thread::hardware_concurrency()},
          {"memory", line_of("/proc/meminfo", "MemTotal")},
          {"kernel", sys::kernel_name()},
          {"hypervisor", line_of("/proc/cpuinfo", "flags").find(" hypervisor") != std::string::npos},
          {"compiler", __VERSION__},
          {"strait", strait_version},
          {"libfabric", package_version("libfabric1")},
          {"ucx", package_version("libucx0")},
          {"valgrind", package_version("valgrind")}};
}

std::string machine_text(const nlohmann::json& machine) {
  return fmt::format("{}, {} CPUs{}, {}, {}", machine.value("cpu", ""), machine.value("cpus", 0),
                     machine.value("hypervisor", false) ? " (virtual)" : "", machine.value("memory", ""),
                     machine.value("kernel", ""));
}

std::string versions_text(const nlohmann::json& machine) {
  return fmt::format("g++ {}; strait {}, libfabric {}, UCX {}, valgrind {}", machine.value("compiler", ""),
                     machine.value("strait", ""), machine.value("libfabric", ""), machine.value("ucx", ""),
                     machine.value("valgrind", ""));
}

double load_average() {
  std::ifstream in("/proc/loadavg");
  double load = -1;
  in >> load;
  return load;
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

}  // namespace strait::versus
