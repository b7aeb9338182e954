// SPDX-License-Identifier: Apache-2.0
// Latencies of one run: a fixed amount of memory however long it lasts, touched before the clock starts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace strait::tool {

// Reorders them. There must be at least one.
[[nodiscard]] inline double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

class Samples {
 public:
  explicit Samples(std::size_t capacity = std::size_t{1} << 20) : kept_(std::max<std::size_t>(capacity, 2)) {}

  void add(std::int64_t ns) {
    min_ = std::min(min_, ns);
    max_ = std::max(max_, ns);
    if (++seen_ % stride_ != 0) return;
    if (count_ == kept_.size()) thin_out();
    kept_[count_++] = static_cast<std::uint32_t>(std::clamp<std::int64_t>(ns, 0, UINT32_MAX));
  }
  [[nodiscard]] std::uint64_t seen() const { return seen_; }
  [[nodiscard]] std::int64_t min_ns() const { return seen_ == 0 ? 0 : min_; }
  [[nodiscard]] std::int64_t max_ns() const { return max_; }
  // The smallest kept sample that `percent` of all are not above. Sorts: call it after the run.
  [[nodiscard]] std::uint32_t percentile(double percent) {
    if (count_ == 0) return 0;
    const auto end = kept_.begin() + static_cast<std::ptrdiff_t>(count_);
    std::sort(kept_.begin(), end);
    const auto rank = static_cast<std::size_t>(percent / 100.0 * static_cast<double>(count_));
    return kept_[std::min(rank, count_ - 1)];
  }

 private:
  // Full: keeps every second one and from now on takes half as many. Minimum and maximum stay exact.
  void thin_out() {
    for (std::size_t i = 0; i < count_ / 2; ++i) kept_[i] = kept_[2 * i + 1];
    count_ /= 2;
    stride_ *= 2;
  }
  std::vector<std::uint32_t> kept_;
  std::size_t count_ = 0;
  std::uint64_t stride_ = 1;
  std::uint64_t seen_ = 0;
  std::int64_t min_ = INT64_MAX;
  std::int64_t max_ = 0;
};

}  // namespace strait::tool
