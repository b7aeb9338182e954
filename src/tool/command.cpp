// SPDX-License-Identifier: Apache-2.0
// The parser, and the sections of a manual page.
#include "tool/command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <CLI/CLI.hpp>
#include <cstdio>
#include <deque>

#include "tool/text.hpp"
#include "tool/tool.hpp"

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

void exit_status(std::string& out, const std::string& own) {
  heading(out, "EXIT STATUS");
  if (!own.empty()) return as_it_is(out, own);
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

std::string page(const Manual& manual, const CLI::App& app) {
  std::string out = tinted("NAME", Tint::strong) + "\n" + wrap(manual.name, kIndent, kText);
  heading(out, "SYNOPSIS");
  as_it_is(out, manual.synopsis);
  heading(out, "DESCRIPTION");
  std::string_view left = manual.description;
  while (!left.empty()) {
    const std::size_t end = left.find('\n');
    const std::string_view line = left.substr(0, end);
    out += line.starts_with("  ") ? fmt::format("  {}\n", line) : line.empty() ? "\n" : wrap(line, kIndent, kIndent);
    left.remove_prefix(end == std::string_view::npos ? left.size() : end + 1);
  }
  commands(out, app);
  options(out, app);
  exit_status(out, manual.exits);
  environment(out, manual.environment);
  heading(out, "EXAMPLES");
  as_it_is(out, manual.examples);
  return out;
}

class ManualPage : public CLI::FormatterBase {
 public:
  explicit ManualPage(Manual manual) : manual_(std::move(manual)) {}
  std::string make_help(const CLI::App* app, std::string, CLI::AppFormatMode) const override {
    return page(manual_, *app);
  }

 private:
  Manual manual_;
};

std::string command_names(const CLI::App& root) {
  std::string names;
  for (const CLI::App* command : root.get_subcommands(static_cast<bool (*)(const CLI::App*)>(nullptr))) {
    names += (names.empty() ? "" : ", ") + command->get_name();
  }
  return names;
}

int wrong_use(const CLI::ParseError& error, const CLI::App& root, std::string_view first) {
  if (root.get_subcommands().empty() && !first.starts_with("-")) {
    const std::string cause = first.empty() ? "no command was given" : fmt::format("there is no command '{}'", first);
    fmt::print(stderr, "strait: {}\n{}", cause,
               wrap(fmt::format("Commands: {}. `strait --help` says what they do.", command_names(root)), 2, 2));
    return kWrongUse;
  }
  std::string command = "strait";
  for (const CLI::App* chosen : root.get_subcommands()) command += " " + chosen->get_name();
  const std::string_view what = error.what();
  fmt::print(stderr, "{}{}", wrap(fmt::format("strait: {}", what.substr(0, what.find('\n'))), 0, 2),
             wrap(fmt::format("`{} --help` lists what it takes.", command), 2, 2));
  return kWrongUse;
}

CLI::Option& dress(CLI::Option& option, const Takes& takes) {
  option.type_name(takes.type);
  if (!takes.fallback.empty()) option.default_str(takes.fallback);
  if (takes.check) option.check(takes.check);
  return option;
}

}  // namespace

std::function<std::string(const std::string&)> one_of(std::vector<std::string> words) {
  return [words = std::move(words)](const std::string& text) {
    std::string known;
    for (const std::string& word : words) {
      if (word == text) return std::string();
      known += (known.empty() ? "" : ", ") + word;
    }
    return fmt::format("'{}' is not one of {}", text, known);
  };
}

struct Command::Parts {
  CLI::App* app;
  std::vector<std::string>* rest = nullptr;
  std::function<int()> run;
};

struct CommandLine::Parts {
  CLI::App root;
  std::deque<Command::Parts> commands;  // they are pointed at
};

void Command::flag(const char* name, bool& into, const char* help) {
  parts_->app->add_flag(name, into, help);
}

void Command::hidden_flag(const char* name, bool& into) {
  parts_->app->add_flag(name, into)->group("");
}

void Command::hidden_text(const char* name, std::string& into) {
  parts_->app->add_option(name, into)->group("");
}

void Command::text(const char* name, std::string& into, Takes takes) {
  dress(*parts_->app->add_option(name, into, takes.help), takes);
}

void Command::optional_text(const char* name, std::string& into, Takes takes) {
  dress(*parts_->app->add_option(name, into, takes.help), takes).expected(0, 1);
}

void Command::number(const char* name, std::uint64_t& into, Takes takes, std::uint64_t least, std::uint64_t most) {
  dress(*parts_->app->add_option(name, into, takes.help), takes).check(CLI::Range(least, most));
}

void Command::number(const char* name, std::uint32_t& into, Takes takes, std::uint32_t least, std::uint32_t most) {
  dress(*parts_->app->add_option(name, into, takes.help), takes).check(CLI::Range(least, most));
}

void Command::number(const char* name, int& into, Takes takes, int least, int most) {
  dress(*parts_->app->add_option(name, into, takes.help), takes).check(CLI::Range(least, most));
}

void Command::word(const char* name, std::string& into, const char* help, bool required) {
  parts_->app->add_option(name, into, help)->required(required);
}

void Command::many(const char* name, std::vector<std::string>& into, Takes takes) {
  dress(*parts_->app->add_option(name, into, takes.help), takes)
      .expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void Command::rest(std::vector<std::string>& into) {
  parts_->app->prefix_command();
  parts_->rest = &into;
}

void Command::not_both(const char* name, const char* other) {
  parts_->app->get_option(name)->excludes(parts_->app->get_option(other));
}

void Command::needs(const char* name, const char* other) {
  parts_->app->get_option(name)->needs(parts_->app->get_option(other));
}

void Command::on_run(std::function<int()> run) {
  parts_->run = std::move(run);
}

CommandLine::CommandLine(Manual manual, std::string version) : parts_(std::make_unique<Parts>()) {
  CLI::App& root = parts_->root;
  root.name("strait");
  root.formatter(std::make_shared<ManualPage>(std::move(manual)));
  root.set_help_flag("-h,--help", "This page.");
  root.set_version_flag("--version", std::move(version), "The version, and nothing else.");
  root.require_subcommand(1);
}

CommandLine::~CommandLine() = default;

Command CommandLine::add(const char* name, const char* summary, Manual manual) {
  CLI::App& app = *parts_->root.add_subcommand(name, summary);
  app.formatter(std::make_shared<ManualPage>(std::move(manual)));
  app.set_help_flag("-h,--help", "This page.");
  return Command(parts_->commands.emplace_back(Command::Parts{&app, nullptr, nullptr}));
}

// Where "--" is, for commands that take another command line behind it: the parser would look for its own words there.
int CommandLine::end_of_options(int argc, char** argv) const {
  for (const Command::Parts& command : parts_->commands) {
    if (command.rest == nullptr || argc < 2 || command.app->get_name() != argv[1]) continue;
    for (int i = 2; i < argc; ++i) {
      if (std::string_view(argv[i]) == "--") return i;
    }
  }
  return argc;
}

int CommandLine::run(int argc, char** argv) {
  CLI::App& root = parts_->root;
  const int mark = end_of_options(argc, argv);
  const int cut = std::min(mark + 1, argc);
  try {
    root.parse(mark, argv);
  } catch (const CLI::Success& request) {  // help and version
    return root.exit(request);
  } catch (const CLI::ParseError& error) {
    return wrong_use(error, root, argc > 1 ? argv[1] : "");
  }
  for (const Command::Parts& command : parts_->commands) {
    if (!command.app->parsed()) continue;
    if (command.rest != nullptr) {
      *command.rest = command.app->remaining();
      if (!command.rest->empty() && command.rest->front().starts_with("-"))
        return wrong_use(CLI::ParseError("there is no option " + command.rest->front(), kWrongUse), root, argv[1]);
      command.rest->insert(command.rest->end(), argv + cut, argv + argc);
    }
    return command.run();
  }
  return kWrongUse;
}

}  // namespace strait::tool
