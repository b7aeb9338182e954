// SPDX-License-Identifier: Apache-2.0
// CpuLimits: up to which length a copy goes through the CPU's window on device memory, and longer ones by the vendor's
// engine. A window writes fast and reads slowly, and how much so is the machine's: it is timed, once for each device.
//
// Threads: any. Reading the limits is two loads.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace strait::buffer {

// No limit is larger: beyond it a copy engine is what the device is for.
inline constexpr std::uint64_t kCpuCopiesMost = 65536;

struct CpuLimits {
  std::uint64_t in =
      4096;                // to the device. These two, where nothing can be timed: writes are combined into full lines,
  std::uint64_t out = 64;  // reads go word by word at some hundred MB/s
  friend bool operator==(const CpuLimits&, const CpuLimits&) = default;
};

// "cpu_copies=auto|IN/OUT|off" in a provider's config.
struct CpuCopies {
  bool timed = true;
  CpuLimits limits;
  [[nodiscard]] static Result<CpuCopies> parse(std::string_view text, const char* kind);
};

// What copies of kShortCopy and of kLongCopy bytes took.
inline constexpr std::uint64_t kShortCopy = 64;
inline constexpr std::uint64_t kLongCopy = 4096;
struct CopyTimes {
  std::int64_t short_ns = 0;
  std::int64_t long_ns = 0;
};

// The largest length for which the window is the faster of the two, when each takes its start-up and then so much for
// every byte. 0: the window loses at once.
[[nodiscard]] std::uint64_t window_wins_up_to(CopyTimes window, CopyTimes engine);

// Medians of some copies of both lengths, in no more than half a millisecond unless a single copy takes long. Nothing:
// a copy failed.
[[nodiscard]] std::optional<CopyTimes> time_copies(const std::function<bool(std::uint64_t length_bytes)>& copy);

// The limits of one device.
class DeviceCpuLimits {
 public:
  explicit DeviceCpuLimits(const CpuCopies& config)
      : in_(config.limits.in), out_(config.limits.out), untimed_(config.timed), timed_(config.timed) {}

  [[nodiscard]] std::uint64_t of(bool to_device) const {
    return (to_device ? in_ : out_).load(std::memory_order_relaxed);
  }
  // True for one caller, who times then; everybody else goes on with what is known.
  [[nodiscard]] bool take_turn() { return untimed_.load(std::memory_order_relaxed) && untimed_.exchange(false); }

  using Copy = std::function<bool(bool to_device, std::uint64_t length_bytes)>;
  void time(const Copy& window, const Copy& engine);
  // Of who took the turn and cannot time.
  void cannot_time(const std::string& because);
  // "copies of up to 4096 bytes to it and 64 from it, as timed"
  [[nodiscard]] std::string text() const;
  [[nodiscard]] bool was_timed() const { return was_timed_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> in_, out_;
  std::atomic<bool> untimed_;
  std::atomic<bool> was_timed_{false};
  const bool timed_;
  mutable std::mutex mutex_;
  std::string because_;  // why there are no times
};

}  // namespace strait::buffer
