// SPDX-License-Identifier: Apache-2.0
// Operations on a peer's memory that this process reaches by itself: by a mapping (map grant) or by the kernel's copy
// between processes (copy grant). They are complete when they return.
//
// Everything a NIC of the owner would check is checked here against what the owner granted. What does not fit is not
// refused but posted to the NIC, so that there is one place that says no, and says why.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "grant/host.hpp"
#include "node/lane.hpp"
#include "node/region.hpp"
#include "strait/c.h"

namespace strait::node {

// What a lane needs for that. Set once, gone with the lane.
struct alignas(64) Near {
  Near(std::shared_ptr<grant::Host> whose, grant::Mark* taken)
      : mark(taken), needs_fence(whose->needs_fence()), host(std::move(whose)) {}
  ~Near() { host->give_back(mark); }
  Near(const Near&) = delete;
  Near& operator=(const Near&) = delete;

  grant::Mark* const mark;
  const sys::ForkMark fork;
  const bool needs_fence;
  // The maps that were found before, by region: good for as long as the mark is of this generation. No region is 0.
  std::uint64_t generation = 0;
  struct Found {
    std::uint64_t region_id = 0;  // beside it: who looks for another does not touch the window
    const grant::Window* window = nullptr;
  };
  std::array<Found, 16> found{};
  // Of the region; null: the host has to be asked. Inside only.
  [[nodiscard, gnu::always_inline]] const grant::Window* found_before(const grant::Mark& own,
                                                                      std::uint64_t region_id) const {
    const std::uint64_t now = own.generation.load(std::memory_order_acquire);
    if (generation != now) return nullptr;
    const Found& before = found[region_id % std::size(found)];
    return before.region_id == region_id ? before.window : nullptr;
  }
  const std::shared_ptr<grant::Host> host;
  // What atomics fetched, until somebody asks. One that nobody asks for keeps its place, and the next one for that
  // place goes the general way.
  struct Fetched {
    std::uint64_t number = 0;  // of the operation; 0: free
    std::uint64_t value = 0;
  };
  std::array<Fetched, 64> fetched{};
  std::uint64_t fetches = 0;
  std::string map_path, copy_path, copy_paths;  // for people; the last with the way of what is too short for a copy
};

// What the host has granted of the target, remembered if it is a map. Inside only.
[[nodiscard]] const grant::Window* look_up(Near& near, const strait_target& target);

// Does its memory lie in files that any process can map? The vendors' does not, nor does that of those who stand in for
// them, whatever their exports are made of.
[[nodiscard]] bool lies_in_files(const buffer::Device& device);

// Below, the ring is quicker than a system call.
inline constexpr std::uint64_t kCopyAtLeast = 8192;

// By which grant operations on the target go now.
[[nodiscard]] grant::Way way_to(strait_lane& lane, Near& near, const strait_target& target);

// True: done, and `id` says so (STRAIT_OP_COMPLETE, atomics: STRAIT_OP_BY_MAP). False: nothing happened; it is the
// NIC's.
[[nodiscard]] bool put_near(strait_lane& lane, Near& near, const strait_slice& from, const strait_target& to,
                            std::uint64_t to_offset, const strait_op_options* options, std::uint64_t& id);
[[nodiscard]] bool get_near(strait_lane& lane, Near& near, const strait_slice& into, const strait_target& from,
                            std::uint64_t from_offset, const strait_op_options* options, std::uint64_t& id);
[[nodiscard]] bool atomic_near(strait_lane& lane, Near& near, post::Kind kind, const strait_target& at,
                               std::uint64_t offset, std::uint64_t operand, std::uint64_t compare,
                               const strait_op_options* options, std::uint64_t& id);
// All items or none.
[[nodiscard]] bool batch_near(strait_lane& lane, Near& near, const strait_item* items, std::uint32_t n_items,
                              const strait_op_options* options, std::uint64_t& id);

}  // namespace strait::node
