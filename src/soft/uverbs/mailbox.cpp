// SPDX-License-Identifier: Apache-2.0
#include "soft/uverbs/mailbox.hpp"

#include <algorithm>
#include <cerrno>

namespace strait::soft::uverbs {

namespace prm = wire::prm;

int Mailbox::read(const Request& request, std::uint16_t in, std::uint16_t out) {
  // The tables demand that both have a header's room.
  in_.resize(std::max(request.length(in), prm::kHeaderBytes));
  out_.resize(std::max(request.length(out), prm::kHeaderBytes));
  out_id_ = out;
  return request.get(in, in_.data(), in_.size());
}

void Mailbox::set(Verdict verdict) {
  if (!verdict.ok()) std::fill(out_.begin(), out_.end(), std::uint8_t{0});
  put(prm::kStatus, static_cast<std::uint64_t>(verdict.status));
  put(prm::kSyndrome, static_cast<std::uint64_t>(verdict.syndrome));
}

int Mailbox::answer(Request& request) const {
  if (const int failed = request.put(out_id_, out_.data(), out_.size())) return failed;
  if (prm::get(out_.data(), prm::kStatus) == 0) return 0;
  const auto syndrome = static_cast<Syndrome>(prm::get(out_.data(), prm::kSyndrome));
  return syndrome == Syndrome::not_supported ? -EOPNOTSUPP : -EREMOTEIO;
}

}  // namespace strait::soft::uverbs
