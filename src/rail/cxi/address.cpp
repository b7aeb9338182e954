// SPDX-License-Identifier: Apache-2.0
#include "rail/cxi/address.hpp"

#include <cstring>

namespace strait::rail::cxi {
namespace {

constexpr char kMark[8] = {'c', 'x', 'i', ' ', 'r', 'a', 'i', 'l'};
constexpr std::uint32_t kVersion = 1;

struct Packed {
  char mark[8];
  std::uint32_t version, nid, pid, pid_bits, vni, secret;
};
static_assert(sizeof(Packed) <= sizeof(strait_nic_address));

}  // namespace

strait_nic_address Address::bytes() const {
  Packed packed{{}, kVersion, nid, pid, pid_bits, vni, secret};
  std::memcpy(packed.mark, kMark, sizeof kMark);
  strait_nic_address out{};
  std::memcpy(out.bytes, &packed, sizeof packed);
  return out;
}

Result<Address> Address::parse(const strait_nic_address& bytes) {
  Packed packed;
  std::memcpy(&packed, bytes.bytes, sizeof packed);
  if (std::memcmp(packed.mark, kMark, sizeof kMark) != 0)
    return fail(Code::unsupported, "the other end is not a CXI NIC: Slingshot reaches only its own kind");
  if (packed.version != kVersion)
    return fail(Code::unsupported, "the other end speaks version {} of the CXI rail, this one {}", packed.version,
                kVersion);
  Address out{packed.nid, packed.pid, packed.pid_bits, packed.vni, packed.secret};
  if (out.pid_bits < wire::cxi::kMinPidBits || out.pid_bits > wire::cxi::kMaxPidBits || out.nid > wire::cxi::kNidAny ||
      out.pid >> out.pid_bits != 0)
    return fail(Code::invalid, "the address of the other end makes no sense ({})", out.text());
  return out;
}

std::string Address::text() const {
  return fmt::format("nid {:#x} pid {}", nid, pid);
}

}  // namespace strait::rail::cxi
