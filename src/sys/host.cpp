// SPDX-License-Identifier: Apache-2.0
// The boot id: unlike a machine id it also tells apart a cloned disk image, and it is there in every container.
#include "sys/host.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

namespace strait::sys {

std::array<std::byte, 16> host_id(const std::string& root) {
  std::array<std::byte, 16> id{};
  std::ifstream file(root + "/proc/sys/kernel/random/boot_id");
  std::string text;
  if (!std::getline(file, text)) return id;
  std::size_t nibble = 0;
  for (const char c : text) {
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) continue;  // the dashes
    if (nibble >= 32) break;
    id[nibble / 2] |= static_cast<std::byte>(nibble % 2 == 0 ? digit << 4 : digit);
    ++nibble;
  }
  return id;
}

std::uint64_t network_namespace(const std::string& root) {
  struct stat info {};
  return ::stat((root + "/proc/self/ns/net").c_str(), &info) == 0 ? info.st_ino : 0;
}

std::int32_t process_id() {
  return static_cast<std::int32_t>(::getpid());
}

}  // namespace strait::sys
