// SPDX-License-Identifier: Apache-2.0
// Fuzz target: options. A line is an environment variable (NAME=VALUE); with a leading '+' it is a pair from the
// caller.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/options.hpp"
#include "require.hpp"

namespace {

using strait::Options;
using strait::fuzz::require;

// A value that was accepted is accepted from the caller too, and means the same.
void check_accepted(const Options& options) {
  std::vector<Options::Pair> pairs;
  for (const auto& row : options.table()) pairs.emplace_back(row.name, options.text(row.name));
  const auto again = Options::read(pairs, {});
  require(again.has_value(), "accepted values are accepted again");
  for (const auto& row : options.table()) {
    require(again->integer(row.name) == options.integer(row.name), "and mean the same");
    const bool number = row.type == strait::OptionType::integer || row.type == strait::OptionType::bytes ||
                        row.type == strait::OptionType::duration;
    const auto value = options.integer(row.name);
    require(!number || (value >= row.least && value <= row.most), "numbers lie within their row's range");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  std::vector<std::string> lines;  // environ holds C strings: what follows a NUL is cut off below
  std::vector<Options::Pair> caller;
  while (!rest.empty() && lines.size() + caller.size() < 64) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (!line.starts_with('+')) {
      lines.emplace_back(line);
      continue;
    }
    const auto equals = line.find('=');
    const auto value = equals == std::string_view::npos ? std::string_view() : line.substr(equals + 1);
    caller.emplace_back(line.substr(1, equals == std::string_view::npos ? equals : equals - 1), value);
  }
  std::vector<const char*> environment;
  for (const std::string& line : lines) environment.push_back(line.c_str());

  const auto options = Options::read(caller, environment);
  if (!options) {
    require(options.error().code == strait::Code::invalid && !options.error().text.empty(), "a refusal says why");
    return 0;
  }
  require(options->warnings().size() <= environment.size(), "at most one warning for each variable");
  check_accepted(*options);
  return 0;
}
