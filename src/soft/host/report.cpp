// SPDX-License-Identifier: Apache-2.0
#include "soft/host/report.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <set>
#include <vector>

#include "sys/host.hpp"

namespace strait::soft::host {
namespace {

namespace fs = std::filesystem;

void add(std::string_view text, RunTotals& totals) {
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view pair = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view number = pair.substr(equals + 1);
    std::uint64_t value = 0;
    const auto [end, wrong] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (wrong == std::errc() && end == number.data() + number.size())
      totals.counters[std::string(pair.substr(0, equals))] += value;
  }
}

}  // namespace

void leave_report(const std::string& root, std::string_view device, std::string_view counters) {
  const std::string name = fmt::format("{}{}/{}.{}", root, kReports, sys::process_id(), device);
  std::error_code ignored;
  {
    std::ofstream out(name + ".new", std::ios::trunc);
    out << counters;
  }
  fs::rename(name + ".new", name, ignored);  // never half of one
}

std::uint64_t RunTotals::get(std::string_view name) const {
  const auto found = counters.find(name);
  return found == counters.end() ? 0 : found->second;
}

std::vector<fs::path> files_in(const std::string& folder) {
  std::vector<fs::path> files;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    std::error_code unknown;
    if (at->symlink_status(unknown).type() == fs::file_type::regular) files.push_back(at->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

RunTotals read_reports(const std::string& root) {
  RunTotals totals;
  std::set<std::string> processes;
  for (const fs::path& file : files_in(root + kReports)) {
    if (file.extension() == ".new") continue;
    const std::string name = file.filename().string();
    processes.insert(name.substr(0, name.find('.')));
    std::ifstream in(file);
    std::string text(std::size_t{1} << 16, '\0');
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(std::max<std::streamsize>(in.gcount(), 0)));
    while (!text.empty() && text.back() == '\n') text.pop_back();
    add(text, totals);
  }
  totals.processes = processes.size();
  return totals;
}

}  // namespace strait::soft::host
