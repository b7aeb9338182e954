// SPDX-License-Identifier: Apache-2.0
#include "soft/accel/config.hpp"

#include <charconv>

namespace strait::soft::accel {
namespace {

constexpr std::uint64_t kMaxDevices = 64;
constexpr std::uint64_t kMaxMemoryBytes = std::uint64_t{1} << 40;

Result<std::uint64_t> number(std::string_view name, std::string_view text, std::uint64_t least, std::uint64_t most) {
  std::uint64_t value = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (ec != std::errc{} || end != text.data() + text.size() || value < least || value > most) {
    return fail(Code::invalid, "soft accelerator: {}=\"{}\" is not a number from {} to {}", name, text, least, most);
  }
  return value;
}

Status take(Config& config, std::string_view name, std::string_view value) {
  if (name == "devices") {
    STRAIT_TRY(const std::uint64_t count, number(name, value, 1, kMaxDevices));
    config.devices = static_cast<std::uint32_t>(count);
  } else if (name == "memory") {
    STRAIT_TRY(config.memory_bytes, number(name, value, 4096, kMaxMemoryBytes));
  } else if (name == "export") {
    STRAIT_TRY(const std::uint64_t flag, number(name, value, 0, 1));
    config.can_export = flag == 1;
  } else if (name == "udmabuf") {
    if (value.empty()) return fail(Code::invalid, "soft accelerator: udmabuf= wants a device path, or off");
    config.udmabuf = value;
  } else {
    return fail(Code::invalid, "soft accelerator: there is no setting \"{}\", only devices, memory, export and udmabuf",
                name);
  }
  return {};
}

}  // namespace

Result<Config> parse_config(std::string_view text) {
  Config config;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(item.size() == text.size() ? item.size() : item.size() + 1);
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos)
      return fail(Code::invalid, "soft accelerator: \"{}\" is not name=value", item);
    STRAIT_CHECK(take(config, item.substr(0, equals), item.substr(equals + 1)));
  }
  return config;
}

}  // namespace strait::soft::accel
