// SPDX-License-Identifier: Apache-2.0
// Where posters ring a NIC whose rings a CPU reads. What they store nobody looks at: the records say it all. It is a
// page with nothing else on it, since a device is let at whole pages, and a buffer that began on one its driver knows
// and ended on one it does not could not be copied any more.
#pragma once

#include <cstdint>

#include "base/error.hpp"
#include "sys/fork.hpp"
#include "sys/mapping.hpp"

namespace strait::rail::proxy {

class Doorbells {
 public:
  Doorbells() = default;
  Doorbells(const Doorbells&) = delete;
  Doorbells& operator=(const Doorbells&) = delete;
  // In a child of fork the page was never there: its addresses may belong to somebody else by now.
  ~Doorbells() {
    if (mark_.in_child()) page_.release();
  }
  [[nodiscard]] Status make() {
    STRAIT_TRY(page_, sys::map_anonymous(sys::page_bytes(), sys::Protect::read_write));
    sys::keep_from_children(page_);
    return {};
  }
  // A line each, as long as there are not too many.
  [[nodiscard]] void* of(std::uint32_t qpn) const { return page_.data() + std::size_t{qpn} * kLine % page_.size(); }

 private:
  static constexpr std::size_t kLine = 64;
  const sys::ForkMark mark_;
  sys::Mapping page_;
};

}  // namespace strait::rail::proxy
