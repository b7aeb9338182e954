// SPDX-License-Identifier: Apache-2.0
// strait_provider_conformance: the suite that every memory provider passes.
//
//   strait_provider_conformance --kind host|cuda|rocm|gaudi
//   strait_provider_conformance --plugin ./my_provider.so [--config name=value,...]
//
// All other arguments are GoogleTest's. On a machine with a GPU, --kind cuda runs against its driver.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "buffer/built_in.hpp"
#include "buffer/conformance/target.hpp"

namespace strait::buffer::conformance {
namespace {

struct Target {
  std::string kind;
  std::string plugin;
  std::string config;
  bool second = false;
};
Target& target() {
  static Target named;
  return named;
}

[[noreturn]] void give_up(const std::string& why) {
  fmt::print(stderr,
             "{}\nusage: strait_provider_conformance --kind host|cuda|rocm|gaudi | --plugin PATH "
             "[--config TEXT] [--gtest_...]\n",
             why);
  std::exit(2);
}

void parse(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    std::string* value = argument == "--kind"     ? &target().kind
                         : argument == "--plugin" ? &target().plugin
                         : argument == "--config" ? &target().config
                                                  : nullptr;
    if (argument == "--second-process") {
      target().second = true;
    } else if (value == nullptr || i + 1 == argc) {
      give_up(fmt::format("what is {}?", argument));
    } else {
      *value = argv[++i];
    }
  }
  if (target().kind.empty() == target().plugin.empty()) give_up("which provider?");
}

}  // namespace

Plugin make_plugin() {
  if (!target().plugin.empty()) {
    auto loaded = load_plugin(target().plugin, target().config);
    if (!loaded) give_up(loaded.error().explain());
    return std::move(*loaded);
  }
  const strait_provider_ops* const ops = built_in_provider(target().kind);
  if (ops == nullptr) give_up(fmt::format("no provider \"{}\" is built in", target().kind));
  auto used = use_plugin(ops, target().config);
  if (!used) give_up(used.error().explain());
  return std::move(*used);
}

std::vector<std::string> same_target() {
  std::vector<std::string> arguments;
  const auto add = [&](const char* name, const std::string& value) {
    if (value.empty()) return;
    arguments.emplace_back(name);
    arguments.push_back(value);
  };
  add("--kind", target().kind);
  add("--plugin", target().plugin);
  add("--config", target().config);
  arguments.emplace_back("--second-process");
  return arguments;
}

}  // namespace strait::buffer::conformance

int main(int argc, char** argv) {
  using namespace strait::buffer::conformance;
  ::testing::InitGoogleTest(&argc, argv);
  parse(argc, argv);
  if (target().second) return open_in_second_process();
  // Some drivers keep descriptors from their first initialisation on: the tests count from the second.
  if (const auto first = strait::buffer::Provider::open(make_plugin()); !first) {
    fmt::print(stderr, "the provider does not open: {}\n", first.error().explain());
    return 1;
  }
  return RUN_ALL_TESTS();
}
