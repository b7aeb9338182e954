// SPDX-License-Identifier: Apache-2.0
// What the devices of a run tell `strait run` when they are closed, for its last line. Files in the root: a process
// that was killed leaves what it had written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "soft/host/path.hpp"

namespace strait::soft::host {

// From inside the program. `counters`: "packets_sent=3,packets_resent=0", as engines write them; given again for the
// same device of the same process, the newer stand. Failure is nothing that a program should hear of.
void leave_report(const std::string& root, std::string_view device, std::string_view counters);

struct RunTotals {
  std::uint64_t processes = 0;                                 // that opened a device
  std::map<std::string, std::uint64_t, std::less<>> counters;  // summed
  [[nodiscard]] std::uint64_t get(std::string_view name) const;
};
// Of all reports. What is no number is left out: the files were written in other people's processes.
[[nodiscard]] RunTotals read_reports(const std::string& root);

// The plain files of a folder, by name; links are left out.
[[nodiscard]] std::vector<std::filesystem::path> files_in(const std::string& folder);

// The captures of all processes as one file, by the time of their packets. How many were joined.
[[nodiscard]] Result<std::uint64_t> join_captures(const std::string& root, const std::string& file);

}  // namespace strait::soft::host
