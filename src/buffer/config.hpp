// SPDX-License-Identifier: Apache-2.0
// What the built-in vendors' providers can be told: "name=value,...".
#pragma once

#include <charconv>
#include <cstddef>
#include <string_view>

#include "base/error.hpp"
#include "buffer/cpu_limits.hpp"

namespace strait::buffer {

enum class CpuMapWay { automatic, dmabuf, gdrcopy, none };

struct ProviderConfig {
  std::size_t ipc_cache = 0;                 // handles of other processes that stay open while nobody uses them
  CpuMapWay cpu_map = CpuMapWay::automatic;  // CUDA: how the CPU gets at device memory
  CpuCopies cpu_copies;                      // CUDA, ROCm: which copies go through that
  bool acquire_at_open = false;              // Gaudi: the compute nodes, and not at the first allocation

  [[nodiscard]] static Result<ProviderConfig> parse(std::string_view text, const char* kind,
                                                    std::size_t ipc_cache = 64) {
    ProviderConfig config;
    config.ipc_cache = ipc_cache;
    while (!text.empty()) {
      const std::size_t comma = std::min(text.find(','), text.size());
      const std::string_view item = text.substr(0, comma);
      text.remove_prefix(std::min(comma + 1, text.size()));
      constexpr std::string_view kCache = "ipc_cache=", kMap = "cpu_map=", kCopies = "cpu_copies=";
      if (item.empty()) continue;
      if (item.starts_with(kMap)) {
        STRAIT_TRY(config.cpu_map, parse_way(item.substr(kMap.size()), kind));
        continue;
      }
      const bool has_window = std::string_view(kind) == "cuda" || std::string_view(kind) == "rocm";
      if (has_window && item.starts_with(kCopies)) {
        STRAIT_TRY(config.cpu_copies, CpuCopies::parse(item.substr(kCopies.size()), kind));
        continue;
      }
      if (std::string_view(kind) == "gaudi" && (item == "acquire=open" || item == "acquire=first")) {
        config.acquire_at_open = item == "acquire=open";
        continue;
      }
      if (!item.starts_with(kCache)) return fail(Code::invalid, "the {} provider knows no \"{}\"", kind, item);
      const char* const first = item.data() + kCache.size();
      const char* const last = item.data() + item.size();
      const auto [end, failed] = std::from_chars(first, last, config.ipc_cache);
      if (failed != std::errc{} || end != last || config.ipc_cache > 65536)
        return fail(Code::invalid, "the {} provider: {} is not a number from 0 to 65536", kind, item);
    }
    return config;
  }

 private:
  [[nodiscard]] static Result<CpuMapWay> parse_way(std::string_view text, const char* kind) {
    if (std::string_view(kind) == "cuda") {
      if (text == "auto") return CpuMapWay::automatic;
      if (text == "dmabuf") return CpuMapWay::dmabuf;
      if (text == "gdrcopy") return CpuMapWay::gdrcopy;
      if (text == "none") return CpuMapWay::none;
    }
    return fail(Code::invalid, "the {} provider maps memory for the CPU in no way called \"{}\"", kind, text);
  }
};

}  // namespace strait::buffer
