// SPDX-License-Identifier: Apache-2.0
// Trials: whether a NIC reaches memory by a way, found out by doing it: export, register, deregister. What a driver or
// a module says about itself is no proof; most of them say yes.
//
// Nothing stays registered or exported, however a trial ends. Threads: any, one Trials each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "buffer/claim.hpp"
#include "buffer/providers.hpp"
#include "export/reach.hpp"
#include "rail/mlx5/nic.hpp"

namespace strait::node {

// missing: `text` says what. unneeded: this memory has no use for the way. unknown: it works, but by which way it did
// the kernel does not say.
enum class TrialState { proved, missing, unneeded, unknown };
[[nodiscard]] const char* trial_state_name(TrialState state);

struct Trial {
  exports::Way way = exports::Way::host_pages;
  TrialState state = TrialState::missing;
  std::string text;
  std::int64_t ns = 0;  // how long it took, where it was made
};

class Trials {
 public:
  // `abilities` as the NIC itself states them. All of them outlive it.
  Trials(buffer::Providers& providers, const rail::Nic& nic, exports::NicAbilities abilities);

  // Of memory that is there, at least a page: one answer per way, in the order of Way.
  [[nodiscard]] std::vector<Trial> of(const buffer::Claim& claim) const;
  // Of a device that gave no memory to try with.
  [[nodiscard]] static std::vector<Trial> none(const std::string& because);

 private:
  [[nodiscard]] Trial host_pages(const buffer::Claim& claim) const;
  [[nodiscard]] Trial by(const buffer::Claim& claim, exports::Way way, Trial& mapped) const;
  [[nodiscard]] Trial staged(const buffer::Claim& claim) const;
  [[nodiscard]] std::string needs(const buffer::Claim& claim, exports::Way way, bool of_both = false) const;
  [[nodiscard]] std::string refusal(const Error& error, const rail::MemoryRequest& request) const;

  buffer::Providers& providers_;
  const rail::Nic& nic_;
  const exports::NicAbilities abilities_;
};

}  // namespace strait::node
