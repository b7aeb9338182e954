// SPDX-License-Identifier: Apache-2.0
// Patience: how long the one thread of the device waits for the answers of one process, all of them together. A limit
// for each answer would not do: who answers each time just before it would have the thread for itself.
#pragma once

#include <algorithm>
#include <cstdint>

namespace strait::soft::cassini {

class Patience {
 public:
  // An answer as soon as this is prompt, and costs nothing: a thread that has to be woken on a busy machine needs it.
  static constexpr std::int64_t kPromptNs = 500'000;
  // What may be waited beyond that, in one go or in many.
  static constexpr std::int64_t kMostNs = 500'000'000;
  // It comes back at a tenth of the time that passes: more than that nobody has of the device in the long run.
  static constexpr std::int64_t kComesBack = 10;

  explicit Patience(std::int64_t now_ns) : since_ns_(now_ns) {}
  [[nodiscard]] std::int64_t left_ns(std::int64_t now_ns) const {
    return std::min(kMostNs, left_ns_ + std::max<std::int64_t>(now_ns - since_ns_, 0) / kComesBack);
  }
  // How long to wait for an answer that is asked for now.
  [[nodiscard]] std::int64_t longest_ns(std::int64_t now_ns) const { return kPromptNs + left_ns(now_ns); }
  void waited(std::int64_t from_ns, std::int64_t until_ns) {
    const std::int64_t slow_ns = std::max<std::int64_t>(until_ns - from_ns - kPromptNs, 0);
    left_ns_ = std::max<std::int64_t>(left_ns(until_ns) - slow_ns, 0);
    since_ns_ = until_ns;
  }
  // A copy of its memory did not come back: no copy of it is begun again, over no connection of the process.
  void give_up() { given_up_ = true; }
  [[nodiscard]] bool given_up() const { return given_up_; }
  // As if it were new: nothing has to be remembered.
  [[nodiscard]] bool whole(std::int64_t now_ns) const { return !given_up_ && left_ns(now_ns) == kMostNs; }

 private:
  bool given_up_ = false;
  std::int64_t left_ns_ = kMostNs;
  std::int64_t since_ns_;
};

}  // namespace strait::soft::cassini
