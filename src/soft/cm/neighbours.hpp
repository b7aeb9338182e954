// SPDX-License-Identifier: Apache-2.0
// Several processes on one address: a message to queue pair 1 comes to all of them, and each has to know whether it is
// its own, another's, or nobody's. Ids say it by their top byte, services by their number; both are claimed by an
// abstract local socket, which the kernel frees when the process ends however.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "soft/roce/address.hpp"
#include "sys/local_datagram.hpp"

namespace strait::soft::cm {

class Neighbours {
 public:
  // Claims a range of ids. `scope`: processes with different ones do not see each other's claims (tests).
  // Code::limit when all 255 are taken.
  [[nodiscard]] static Result<Neighbours> join(std::string scope, std::uint32_t seed);

  [[nodiscard]] std::uint8_t range() const { return range_; }
  [[nodiscard]] bool is_range_alive(std::uint8_t range) const;

  // A service of one address, or of any. Error::sys_errno EADDRINUSE when another has it: this process or not.
  [[nodiscard]] Status claim(std::uint64_t service_id, const roce::IpAddress& address);
  void drop(std::uint64_t service_id, const roce::IpAddress& address);
  // Held by another process than this one.
  [[nodiscard]] bool is_claimed_elsewhere(std::uint64_t service_id, const roce::IpAddress& address) const;

 private:
  Neighbours(std::string scope, sys::LocalDatagram self, std::uint8_t range)
      : scope_(std::move(scope)), self_(std::move(self)), range_(range) {}
  [[nodiscard]] sys::LocalName range_name(std::uint8_t range) const;
  [[nodiscard]] sys::LocalName service_name(std::uint64_t service_id, const roce::IpAddress& address) const;
  [[nodiscard]] bool is_held(const sys::LocalName& name) const;
  std::string scope_;
  sys::LocalDatagram self_;
  std::uint8_t range_;
  std::map<std::string, sys::LocalDatagram> claims_;
};

}  // namespace strait::soft::cm
