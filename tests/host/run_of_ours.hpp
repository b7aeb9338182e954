// SPDX-License-Identifier: Apache-2.0
// A run without the tool: a root with the test's own devices, and the environment that shows it to a program.
#pragma once

#include <sys/sysmacros.h>

#include <cstdlib>

#include "devices.hpp"
#include "program.hpp"
#include "soft/host/root.hpp"

namespace strait::testing {

class OurRun {
 public:
  OurRun() {
    for (const char* claim : {"/dev/strait-test", "/sys/class/strait-test", "/sys/devices/strait-test"})
      root_.claim(claim).value();
    for (const char* node : {kNode, kOther, kBusy}) root_.node(node, makedev(kMajor, kMinor)).value();
    root_.file("/sys/class/strait-test/version", "7").value();
    root_.link("/sys/class/strait-test/strait0", "../../devices/strait-test/pci0/strait0").value();
    root_.file("/sys/devices/strait-test/pci0/strait0/name", "strait0").value();
    root_.link("/sys/devices/strait-test/pci0/strait0/device", "../../pci0").value();
  }
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> environment() const {
    return {{"LD_PRELOAD", STRAIT_HOST_LIBRARY},
            {"STRAIT_HOST_ROOT", root_.path()},
            {"STRAIT_HOST_DEVICES", HOST_TEST_DEVICES}};
  }
  [[nodiscard]] Outcome run(const std::vector<std::string>& command, double seconds = 100,
                            const std::vector<std::pair<std::string, std::string>>& more = {}) const {
    auto all = environment();
    all.insert(all.end(), more.begin(), more.end());
    return testing::run(command, seconds, all);
  }

 private:
  soft::host::Root root_ = soft::host::Root::create().value();
};

}  // namespace strait::testing
