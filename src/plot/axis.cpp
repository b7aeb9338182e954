// SPDX-License-Identifier: Apache-2.0
#include "plot/axis.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace strait::plot {
namespace {

constexpr double kSteps[] = {1, 2, 5};

// The n-th of ..., 0.5, 1, 2, 5, 10, ...: 0 is 1.
double step_at(int n) {
  const int decade = n >= 0 ? n / 3 : -((2 - n) / 3);
  return kSteps[n - 3 * decade] * std::pow(10.0, decade);
}

}  // namespace

std::vector<Tick> decimal_ticks(Range values) {
  const double low = std::max(values.low, 1e-12);
  const double high = std::max(values.high, low);
  int first = 3 * static_cast<int>(std::floor(std::log10(low)));
  while (step_at(first + 1) <= low * 1.0000001) ++first;
  int last = first + 1;
  while (step_at(last) < high * 0.9999999) ++last;
  const bool few = last - first <= 8;
  std::vector<Tick> ticks;
  for (int n = first; n <= last; ++n) ticks.push_back({step_at(n), few || n % 3 == 0});
  return ticks;
}

std::vector<Tick> size_ticks(std::vector<double> sizes, std::size_t most) {
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  const std::size_t every = std::max<std::size_t>((sizes.size() + most - 1) / std::max<std::size_t>(most, 1), 1);
  std::vector<Tick> ticks;
  // Two that lie close together have room for one label.
  double labelled = 0;
  const double span = sizes.empty() ? 1 : std::log2(std::max(sizes.back() / sizes.front(), 2.0));
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const bool room = labelled == 0 || std::log2(sizes[i] / labelled) >=
                                           0.9 * span / static_cast<double>(std::max<std::size_t>(most, 1));
    const bool label = i % every == 0 && room;
    if (label) labelled = sizes[i];
    ticks.push_back({sizes[i], label});
  }
  return ticks;
}

std::vector<Tick> linear_ticks(double greatest) {
  const double wanted = std::max(greatest, 1e-9);
  int n = 3 * static_cast<int>(std::floor(std::log10(wanted))) - 3;
  while (wanted / step_at(n) > 6) ++n;
  std::vector<Tick> ticks;
  for (int i = 0;; ++i) {
    ticks.push_back({step_at(n) * i, true});
    if (step_at(n) * i >= wanted * 0.9999999) return ticks;
  }
}

}  // namespace strait::plot
