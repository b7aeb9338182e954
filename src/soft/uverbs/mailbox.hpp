// SPDX-License-Identifier: Apache-2.0
// Mailbox: one command to the device's firmware, and its answer. DevX programs write both in the device's own format
// (strait/wire/prm.hpp); a command that is refused says why in its answer, and the call fails with EREMOTEIO as the
// kernel's does.
#pragma once

#include <cstdint>
#include <vector>

#include "soft/uverbs/request.hpp"
#include "strait/wire/prm.hpp"

namespace strait::soft::uverbs {

// What the syndrome of a refusal says. Hardware has thousands of its own; these are ours, and docs/soft-uverbs.md has
// them in words.
enum class Syndrome : std::uint32_t {
  none = 0,
  unknown_command = 0x57a001,
  input_too_short = 0x57a002,
  output_too_short = 0x57a003,
  no_such_pd = 0x57a004,
  no_such_cq = 0x57a005,
  no_such_srq = 0x57a006,
  no_such_umem = 0x57a007,
  outside_umem = 0x57a008,
  umem_read_only = 0x57a009,
  no_such_uar = 0x57a00a,
  bad_value = 0x57a00b,
  not_supported = 0x57a00c,
  wrong_state = 0x57a00d,
  refused = 0x57a00e,  // the queues do not fit each other, or the rings what was said of them
  no_resources = 0x57a00f,
  no_such_key = 0x57a010,
};

// Features that are not there have the status of commands that are not, and are EOPNOTSUPP: programs go another way.
struct Verdict {
  wire::prm::Status status = wire::prm::Status::ok;
  Syndrome syndrome = Syndrome::none;

  [[nodiscard]] bool ok() const { return status == wire::prm::Status::ok; }
};

class Mailbox {
 public:
  // 0 or -errno.
  [[nodiscard]] int read(const Request& request, std::uint16_t in, std::uint16_t out);

  [[nodiscard]] wire::prm::Command command() const { return static_cast<wire::prm::Command>(get(wire::prm::kOpcode)); }
  // What the program did not send is zero.
  [[nodiscard]] std::uint64_t get(wire::prm::Field field) const {
    return wire::prm::end_of(field) <= in_.size() ? wire::prm::get(in_.data(), field) : 0;
  }
  [[nodiscard]] std::uint32_t get32(wire::prm::Field field) const { return static_cast<std::uint32_t>(get(field)); }
  [[nodiscard]] std::size_t in_bytes() const { return in_.size(); }
  [[nodiscard]] std::size_t out_bytes() const { return out_.size(); }
  [[nodiscard]] const std::vector<std::uint8_t>& in() const { return in_; }

  // What the program has no room for is left out.
  void put(wire::prm::Field field, std::uint64_t value) {
    if (wire::prm::end_of(field) <= out_.size()) wire::prm::put(out_.data(), field, value);
  }
  // A refusal says nothing but that.
  void set(Verdict verdict);
  // Hands the answer to the program. 0 or -errno; EREMOTEIO when it is a refusal, EOPNOTSUPP when a feature is not
  // there.
  [[nodiscard]] int answer(Request& request) const;

 private:
  std::uint16_t out_id_ = 0;
  std::vector<std::uint8_t> in_;
  std::vector<std::uint8_t> out_;
};

}  // namespace strait::soft::uverbs
