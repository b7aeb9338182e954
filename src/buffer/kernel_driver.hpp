// SPDX-License-Identifier: Apache-2.0
// What the kernel says of a vendor's driver, for requirements: for people.
#pragma once

#include <fmt/format.h>

#include <string>

#include "sys/files.hpp"

namespace strait::buffer {

// "version 1.20.1, Linux 6.8.0"; a driver that comes with the kernel mostly has no version of its own.
[[nodiscard]] inline std::string kernel_driver_text(const std::string& module) {
  const auto line = [](const std::string& path) {
    std::string text = sys::read_small_file(path.c_str());
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    return text;
  };
  const std::string version = line("/sys/module/" + module + "/version");
  const std::string kernel = "Linux " + line("/proc/sys/kernel/osrelease");
  return version.empty() ? fmt::format("no version of its own, {}", kernel)
                         : fmt::format("version {}, {}", version, kernel);
}

}  // namespace strait::buffer
