// SPDX-License-Identifier: Apache-2.0
// strait_gaudi_keeper SPEC PROGRAM [ARGUMENT...]: a machine with Gaudis for the processes of a test, where `strait run`
// cannot be: a sanitizer's run time wants to be first in a process. Nothing is preloaded; libraries are found by
// LD_LIBRARY_PATH.
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <vector>

#include "soft/accel/spec.hpp"
#include "soft/gaudi/machine.hpp"
#include "sys/command.hpp"
#include "sys/scratch.hpp"

namespace strait::soft::gaudi {
namespace {

Result<int> keep(const std::string& text, const std::vector<std::string>& words) {
  STRAIT_TRY(const accel::Spec spec, accel::parse_spec(text));
  STRAIT_TRY(const sys::Scratch root, sys::Scratch::create(sys::temporary_folder(), "strait-gaudi-keeper"));
  STRAIT_TRY(const Machine machine, Machine::create(root.path(), spec.of(accel::Vendor::gaudi)));
  STRAIT_TRY(const auto status,
             sys::run_command({.program = words.front(),
                               .arguments = words,
                               .environment = {{accel::kSpecVariable, text}, {"STRAIT_HOST_ROOT", root.path()}},
                               .heard = nullptr}));
  return status;
}

}  // namespace
}  // namespace strait::soft::gaudi

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: strait_gaudi_keeper SPEC PROGRAM [ARGUMENT...]\n");
    return 2;
  }
  const auto status = strait::soft::gaudi::keep(argv[1], std::vector<std::string>(argv + 2, argv + argc));
  if (!status) fmt::print(stderr, "{}\n", status.error().explain());
  return status ? *status : 1;
}
