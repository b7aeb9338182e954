// SPDX-License-Identifier: Apache-2.0
// Parts of `strait run`.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "soft/gaudi/machine.hpp"
#include "soft/host/report.hpp"
#include "soft/host/root.hpp"
#include "sys/fd.hpp"
#include "tool/tool.hpp"

namespace strait::tool {

inline constexpr std::uint32_t kMostNics = 16;

// Device nodes and what sysfs says about them.
[[nodiscard]] Status make_devices(soft::host::Root& root, std::uint32_t nics, std::uint32_t cassinis);

// The process that has the Cassinis: kept from before the program until after it, so that what one of its processes set
// up is there for the next, and so that somebody can say what was done.
class Cassinis {
 public:
  [[nodiscard]] static Result<Cassinis> start(const std::string& name, Settings& settings);
  // What has been done since start(), as "cxi.commands" and so on.
  void add_to(soft::host::RunTotals& totals) const;

 private:
  Cassinis(sys::Fd server, std::string before) : server_(std::move(server)), before_(std::move(before)) {}
  sys::Fd server_;
  std::string before_;
};

// What outlives every process of a run; to be kept until the last has ended.
struct Hardware {
  std::unique_ptr<soft::gaudi::Machine> gaudis;
};
// What a program needs in its environment to find them; `root` is the run's. Code::unsupported: a library of theirs is
// not installed.
[[nodiscard]] Result<Hardware> add_accelerators(const std::string& text, soft::host::Root& root, Settings& settings);
// Empty: they can be read; else what is wrong.
[[nodiscard]] std::string check_accelerators(const std::string& text);

// The last line; `capture` empty: none was made. `watched`: opens past the devices have been reported.
[[nodiscard]] std::string run_summary(const soft::host::RunTotals& totals, const std::string& capture,
                                      bool watched = false);

}  // namespace strait::tool
