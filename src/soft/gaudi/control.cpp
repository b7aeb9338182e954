// SPDX-License-Identifier: Apache-2.0
#include "soft/gaudi/control.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "soft/gaudi/driver.hpp"

std::size_t strait_soft_gaudi_counters(char* text, std::size_t room) {
  auto* driver = strait::soft::gaudi::Driver::get();
  const std::string line = driver == nullptr ? "" : driver->counters();
  if (text != nullptr && room != 0) {
    const std::size_t fits = std::min(line.size(), room - 1);
    std::memcpy(text, line.data(), fits);
    text[fits] = 0;
  }
  return line.size();
}

int strait_soft_gaudi_reset(std::uint32_t slot) {
  auto* driver = strait::soft::gaudi::Driver::get();
  return driver == nullptr ? -ENODEV : driver->reset(slot);
}
