// SPDX-License-Identifier: Apache-2.0
#include "buffer/cpu_limits.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "sys/clock.hpp"

namespace strait::buffer {
namespace {

constexpr std::size_t kTimesMost = 25;
constexpr std::size_t kTimesLeast = 3;  // however slow: a median of fewer is none
constexpr std::int64_t kBudgetNs = 250'000;

std::optional<std::uint64_t> limit_of(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc{} || end != text.data() + text.size() || value > kCpuCopiesMost) return std::nullopt;
  return value;
}

}  // namespace

Result<CpuCopies> CpuCopies::parse(std::string_view text, const char* kind) {
  if (text == "auto") return CpuCopies{};
  if (text == "off") return CpuCopies{false, {0, 0}};
  const std::size_t slash = text.find('/');
  if (slash != std::string_view::npos) {
    const auto in = limit_of(text.substr(0, slash));
    const auto out = limit_of(text.substr(slash + 1));
    if (in && out) return CpuCopies{false, {*in, *out}};
  }
  return with_remedy(fail(Code::invalid, "the {} provider: cpu_copies=\"{}\" says no lengths", kind, text),
                     fmt::format("Write auto, off, or two numbers up to {} (in/out) as in 4096/64.", kCpuCopiesMost));
}

std::uint64_t window_wins_up_to(CopyTimes window, CopyTimes engine) {
  if (window.short_ns >= engine.short_ns) return 0;
  // A long copy that was the faster one shows noise, not a slope.
  const auto slope = [](const CopyTimes& times) {
    return static_cast<double>(std::max<std::int64_t>(times.long_ns - times.short_ns, 0)) / (kLongCopy - kShortCopy);
  };
  const double apart = slope(window) - slope(engine);  // lost with every byte
  if (apart <= 0) return kCpuCopiesMost;
  const double more = static_cast<double>(engine.short_ns - window.short_ns) / apart;
  return more >= kCpuCopiesMost - kShortCopy ? kCpuCopiesMost : kShortCopy + static_cast<std::uint64_t>(more);
}

std::optional<CopyTimes> time_copies(const std::function<bool(std::uint64_t length_bytes)>& copy) {
  const auto median = [&](std::uint64_t length_bytes) -> std::optional<std::int64_t> {
    std::array<std::int64_t, kTimesMost> took{};
    std::size_t count = 0;
    if (!copy(length_bytes)) return std::nullopt;  // cold
    const std::int64_t begun = sys::now_ns();
    for (std::int64_t last = begun; count < kTimesMost && (count < kTimesLeast || last - begun < kBudgetNs);) {
      if (!copy(length_bytes)) return std::nullopt;
      const std::int64_t now = sys::now_ns();
      took[count++] = now - last;
      last = now;
    }
    const auto middle = took.begin() + static_cast<std::ptrdiff_t>(count / 2);
    std::nth_element(took.begin(), middle, took.begin() + static_cast<std::ptrdiff_t>(count));
    return *middle;
  };
  const auto at_short = median(kShortCopy);
  const auto at_long = at_short ? median(kLongCopy) : std::nullopt;
  if (!at_long) return std::nullopt;
  return CopyTimes{*at_short, *at_long};
}

void DeviceCpuLimits::time(const Copy& window, const Copy& engine) {
  CpuLimits found;
  for (const bool to_device : {true, false}) {
    const auto by_cpu = time_copies([&](std::uint64_t length_bytes) { return window(to_device, length_bytes); });
    const auto by_engine = time_copies([&](std::uint64_t length_bytes) { return engine(to_device, length_bytes); });
    if (!by_cpu || !by_engine) return cannot_time("a copy failed");
    (to_device ? found.in : found.out) = window_wins_up_to(*by_cpu, *by_engine);
  }
  in_.store(found.in, std::memory_order_relaxed);
  out_.store(found.out, std::memory_order_relaxed);
  was_timed_.store(true);
}

void DeviceCpuLimits::cannot_time(const std::string& because) {
  const std::lock_guard lock(mutex_);
  because_ = because;
}

std::string DeviceCpuLimits::text() const {
  const std::lock_guard lock(mutex_);
  return fmt::format("copies of up to {} bytes to it and {} from it, {}", of(true), of(false),
                     was_timed()        ? "as timed"
                     : !timed_          ? "as cpu_copies in the provider's config says"
                     : because_.empty() ? "until the first one is timed"
                                        : "not timed: " + because_);
}

}  // namespace strait::buffer
