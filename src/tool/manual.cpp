// SPDX-License-Identifier: Apache-2.0
// The sections of a manual page.
#include "tool/manual.hpp"

#include <fmt/format.h>

#include "tool/text.hpp"

namespace strait::tool {
namespace {

constexpr std::size_t kIndent = 2;
constexpr std::size_t kText = 6;

void heading(std::string& out, std::string_view title) {
  out += fmt::format("\n{}\n", tinted(title, Tint::strong));
}

void entry(std::string& out, std::string_view left, std::string_view text) {
  out += fmt::format("{:>{}}{}\n", "", kIndent, left);
  out += wrap(text, kText, kText);
}

void as_it_is(std::string& out, std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    out += fmt::format("{:>{}}{}\n", "", kIndent, text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

std::string option_title(const CLI::Option& option) {
  std::string names = option.get_positional() ? option.get_name(true, false) : option.get_name(false, true);
  if (const std::size_t comma = names.find(','); comma != std::string::npos) names.replace(comma, 1, ", ");
  // The parser appends what its checks accept ("N:INT in [0 - 9]"); the description says that in words.
  const std::string type = option.get_type_name();
  if (!type.empty() && !option.get_positional()) names += " " + type.substr(0, type.find(':'));
  if (!option.get_default_str().empty()) names += fmt::format("  (default {})", option.get_default_str());
  return names;
}

void options(std::string& out, const CLI::App& app) {
  heading(out, "OPTIONS");
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // hidden
    entry(out, option_title(*option), option->get_description());
  }
}

void commands(std::string& out, const CLI::App& app) {
  bool first = true;
  for (const CLI::App* command : app.get_subcommands(static_cast<bool (*)(const CLI::App*)>(nullptr))) {
    if (command->get_group().empty()) continue;
    if (first) heading(out, "COMMANDS");
    first = false;
    entry(out, "strait " + command->get_name(), command->get_description());
  }
}

void exit_status(std::string& out) {
  heading(out, "EXIT STATUS");
  out +=
      "  0  done\n  1  failed; the cause and what to try are on stderr\n  2  wrong use\n"
      "  3  not possible here (this machine, memory or NIC); the reason is on stderr\n";
}

void environment(std::string& out, const std::string& extra) {
  heading(out, "ENVIRONMENT");
  entry(out, "STRAIT_*",
        "Every option of the library: STRAIT_PROGRESS for progress, and so on. `strait info --options` "
        "prints them all with value and origin.");
  entry(out, "NO_COLOR", "When set and not empty: no colour. There is none anyway when stdout is not a terminal.");
  out += extra;
}

}  // namespace

std::string ManualPage::make_help(const CLI::App* app, std::string, CLI::AppFormatMode) const {
  std::string out = tinted("NAME", Tint::strong) + "\n" + wrap(manual_.name, kIndent, kText);
  heading(out, "SYNOPSIS");
  as_it_is(out, manual_.synopsis);
  heading(out, "DESCRIPTION");
  std::string_view left = manual_.description;
  while (!left.empty()) {
    const std::size_t end = left.find('\n');
    const std::string_view line = left.substr(0, end);
    out += line.starts_with("  ") ? fmt::format("  {}\n", line) : line.empty() ? "\n" : wrap(line, kIndent, kIndent);
    left.remove_prefix(end == std::string_view::npos ? left.size() : end + 1);
  }
  commands(out, *app);
  options(out, *app);
  exit_status(out);
  environment(out, manual_.environment);
  heading(out, "EXAMPLES");
  as_it_is(out, manual_.examples);
  return out;
}

}  // namespace strait::tool
