// SPDX-License-Identifier: Apache-2.0
#include "soft/cm/neighbours.hpp"

#include <cerrno>

namespace strait::soft::cm {
namespace {

sys::LocalName abstract_name(std::string text) {
  return {std::move(text), true};
}

}  // namespace

sys::LocalName Neighbours::range_name(std::uint8_t range) const {
  return abstract_name(fmt::format("{}/ids/{}", scope_, range));
}
sys::LocalName Neighbours::service_name(std::uint64_t service_id, const roce::IpAddress& address) const {
  return abstract_name(
      fmt::format("{}/service/{:x}/{}", scope_, service_id, address.is_any() ? std::string("any") : address.text()));
}

Result<Neighbours> Neighbours::join(std::string scope, std::uint32_t seed) {
  for (unsigned i = 0; i < 255; ++i) {
    const auto range = static_cast<std::uint8_t>((seed + i) % 255 + 1);
    auto self = sys::LocalDatagram::bind(abstract_name(fmt::format("{}/ids/{}", scope, range)));
    if (self) return Neighbours(std::move(scope), std::move(*self), range);
    if (self.error().code != Code::again) return std::move(self).error();
  }
  return Error{Code::limit, ENOSPC, 0,
               "255 processes of this network namespace use rdma_cm, and there is room for no more.",
               "End some of them."};
}

// A datagram without content: that it can be sent, or only waits for room, shows a holder.
bool Neighbours::is_held(const sys::LocalName& name) const {
  const int error = self_.send(name, {}, {});
  return error != ECONNREFUSED && error != ENOENT;
}
bool Neighbours::is_range_alive(std::uint8_t range) const {
  return range == range_ || (range != 0 && is_held(range_name(range)));
}

Status Neighbours::claim(std::uint64_t service_id, const roce::IpAddress& address) {
  const Error taken{Code::again, EADDRINUSE, 0,
                    fmt::format("Service {:#x} of {} is taken.", service_id, address.text()), "Choose another port."};
  const sys::LocalName name = service_name(service_id, address);
  if (claims_.count(name.text) != 0) return taken;
  // Who has it for all addresses has it for each.
  const sys::LocalName any = service_name(service_id, roce::IpAddress{});
  if (name.text != any.text && (claims_.count(any.text) != 0 || is_held(any))) return taken;
  auto held = sys::LocalDatagram::bind(name);
  if (!held) return held.error().code == Code::again ? taken : std::move(held).error();
  claims_.emplace(name.text, std::move(*held));
  return {};
}

void Neighbours::drop(std::uint64_t service_id, const roce::IpAddress& address) {
  claims_.erase(service_name(service_id, address).text);
}

bool Neighbours::is_claimed_elsewhere(std::uint64_t service_id, const roce::IpAddress& address) const {
  const sys::LocalName name = service_name(service_id, address);
  return claims_.count(name.text) == 0 && is_held(name);
}

}  // namespace strait::soft::cm
