// SPDX-License-Identifier: Apache-2.0
// Pairs: ours and a peer within seconds, each first as often as the other, with a look at the machine before and after.
// The ratio is taken pair by pair, and a pair during which the machine changed is left out.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "versus/probe.hpp"
#include "versus/spread.hpp"

namespace strait::versus {

using Json = nlohmann::json;

// What one program measured once.
struct Figure {
  bool ok = false;
  double value = 0;
  std::string problem;
  std::string path;
  double beside = 0;  // the limit, where the same run measures both in turn
};
[[nodiscard]] Figure no_figure(std::string problem);

// How each is run. `peer` and `copy` may be empty.
struct Sides {
  std::function<Figure()> ours;
  std::function<Figure()> peer;
  std::function<double()> copy;  // memcpy, in the same pair
  bool beside = false;           // the peer's figure is what ours measured beside itself
};

struct Sample {
  Calm calm;
  double ours = 0;
  std::optional<double> peer;
  std::optional<double> copy;
};

struct Pairs {
  std::vector<Sample> samples;
  std::vector<std::string> failures;
  std::string our_path;
  std::string peer_path;
};

// `count` pairs; gives up after three that failed. `next` hears which pair is about to begin, from 0, and may end it
// all by answering false. An error when the machine cannot be looked at.
[[nodiscard]] Result<Pairs> measure_pairs(const Cpus& cpus, int count, const Sides& sides,
                                          const std::function<bool(int)>& next);

// The same samples with memcpy in the place of the peer.
[[nodiscard]] Pairs beside_copy(const Pairs& pairs);

// samples[], kept, discarded (and of these line_moved, lost_cpu), noisy; the spread of strait, peer, ratio, memcpy and
// so on over the pairs that were kept. When none was, over all of them, and noisy says so.
[[nodiscard]] Json pairs_json(const Pairs& pairs);
[[nodiscard]] Json spread_json(const std::optional<Spread>& spread);

}  // namespace strait::versus
