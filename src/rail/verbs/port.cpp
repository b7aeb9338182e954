// SPDX-License-Identifier: Apache-2.0
#include "rail/verbs/port.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <span>

#include "sys/mapping.hpp"
#include "sys/process.hpp"

namespace strait::rail::verbs {
namespace {

constexpr std::uint32_t kMagic = 0x62727653;  // "Svrb"
constexpr std::uint8_t kVersion = 1;
constexpr std::uint32_t kMostReads = 16;

struct Packed {
  std::uint32_t magic;
  std::uint8_t version;
  std::uint8_t mtu;
  std::uint8_t reads;
  std::uint8_t ethernet;
  std::uint8_t gid[16];
  std::uint64_t seed;
  std::uint16_t lid;
  std::uint8_t zero[30];
};
static_assert(sizeof(Packed) == sizeof(strait_nic_address));

bool is_ipv4(const ibv_gid& gid) {
  return std::all_of(gid.raw, gid.raw + 10, [](std::uint8_t byte) { return byte == 0; }) && gid.raw[10] == 0xff &&
         gid.raw[11] == 0xff;
}
bool is_link_local(const ibv_gid& gid) {
  return gid.raw[0] == 0xfe && (gid.raw[1] & 0xc0) == 0x80;
}

// Smaller is better: routable before link-local, RoCEv2 before RoCEv1, which few switches carry.
int rank(const ibv_gid_entry& entry) {
  const int kind = is_ipv4(entry.gid) ? 0 : is_link_local(entry.gid) ? 2 : 1;
  return (entry.gid_type == IBV_GID_TYPE_ROCE_V1 ? 10 : 0) + kind;
}

}  // namespace

strait_nic_address Address::bytes() const {
  Packed packed{};
  packed.magic = kMagic;
  packed.version = kVersion;
  packed.mtu = mtu;
  packed.reads = reads;
  packed.ethernet = ethernet ? 1 : 0;
  std::memcpy(packed.gid, gid.raw, sizeof packed.gid);
  packed.seed = seed;
  packed.lid = lid;
  strait_nic_address out;
  std::memcpy(out.bytes, &packed, sizeof packed);
  return out;
}

Result<Address> Address::parse(const strait_nic_address& bytes) {
  Packed packed;
  std::memcpy(&packed, bytes.bytes, sizeof packed);
  if (packed.magic != kMagic || packed.version != kVersion) {
    return with_remedy(fail(Code::unsupported, "the peer's NIC address is not that of a verbs NIC of this version"),
                       "open both Nodes with nics=verbs:NAME, or both without");
  }
  if (packed.mtu < IBV_MTU_256 || packed.mtu > IBV_MTU_4096 || packed.ethernet > 1)
    return fail(Code::invalid, "the peer's NIC address is damaged");
  Address address;
  std::memcpy(address.gid.raw, packed.gid, sizeof packed.gid);
  address.lid = packed.lid;
  address.mtu = packed.mtu;
  address.reads = packed.reads;
  address.ethernet = packed.ethernet != 0;
  address.seed = packed.seed;
  return address;
}

std::uint32_t Address::psn(std::uint32_t qpn) const {
  std::uint64_t mixed = seed + qpn * 0x9e3779b97f4a7c15u;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
  return static_cast<std::uint32_t>(mixed >> 40);
}

std::string gid_text(const ibv_gid& gid) {
  if (is_ipv4(gid)) return fmt::format("::ffff:{}.{}.{}.{}", gid.raw[12], gid.raw[13], gid.raw[14], gid.raw[15]);
  std::string text;
  for (std::size_t i = 0; i < sizeof gid.raw; i += 2)
    text += fmt::format("{}{:x}", i == 0 ? "" : ":", gid.raw[i] << 8 | gid.raw[i + 1]);
  return text;
}

std::uint8_t timeout_code(std::int64_t ns) {
  std::uint8_t code = 1;
  while (code < 31 && (std::int64_t{4096} << code) < ns) ++code;
  return code;
}

std::uint8_t rnr_code(std::int64_t ns) {
  // Hundredths of a millisecond; code 0 is the longest, 655.36 ms.
  static constexpr std::array<std::int32_t, 32> kHundredths = {
      65536, 1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,   192,
      256,   384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
  for (std::uint8_t code = 1; code < kHundredths.size(); ++code)
    if (std::int64_t{kHundredths[code]} * 10'000 >= ns) return code;
  return 0;
}

std::uint32_t mtu_bytes(std::uint8_t mtu) {
  return 128u << mtu;
}

Result<Port> Port::open(const std::string& device) {
  const std::size_t slash = device.find('/');
  const std::string wanted = device.substr(0, slash);
  int index = -1;
  if (slash != std::string::npos) {
    const char* const end = device.data() + device.size();
    const auto [stop, error] = std::from_chars(device.data() + slash + 1, end, index);
    if (error != std::errc{} || stop != end || index < 0 || index > 255)
      return fail(Code::invalid, "\"{}\" does not name a GID index behind the slash (0 to 255)", device);
  }
  const Owner<ibv_device*, ibv_free_device_list> list(ibv_get_device_list(nullptr));
  if (!list) {
    // It says the same when it had no descriptor to look with.
    const int why = errno;
    if (auto any = sys::make_sealed_memfd("strait-any", sys::page_bytes()); !any) return any.error();
    errno = why;
    return with_remedy(fail_errno(errno, "this machine has no RDMA devices that libibverbs can see"),
                       "load the NIC's driver, or rdma_rxe: rdma link add rxe0 type rxe netdev eth0");
  }
  Port port;
  std::string known;
  for (ibv_device** at = list.get(); *at != nullptr; ++at) {
    const char* const name = ibv_get_device_name(*at);
    known += fmt::format("{}{}", known.empty() ? "" : ", ", name);
    if (port.context_ || (!wanted.empty() && wanted != name)) continue;
    port.name_ = name;
    port.context_.reset(ibv_open_device(*at));
    if (!port.context_) return fail_errno(errno, fmt::format("cannot open the RDMA device {}", name));
  }
  if (!port.context_) {
    return with_remedy(fail(Code::invalid, "there is no RDMA device \"{}\"", wanted),
                       fmt::format("there {}: {}", known.empty() ? "is" : "are", known.empty() ? "none" : known));
  }
  if (const int error = ibv_query_device(port.context(), &port.limits_); error != 0)
    return fail_errno(error, fmt::format("cannot ask {} for its limits", port.name_));
  ibv_port_attr attributes{};
  if (const int error = ibv_query_port(port.context(), kPortNumber, &attributes); error != 0)
    return fail_errno(error, fmt::format("cannot ask {} about port {}", port.name_, kPortNumber));
  if (attributes.state != IBV_PORT_ACTIVE) {
    return with_remedy(
        fail(Code::unsupported, "port {} of {} is {}", kPortNumber, port.name_, ibv_port_state_str(attributes.state)),
        "bring the link up");
  }
  port.address_.lid = attributes.lid;
  port.address_.mtu = static_cast<std::uint8_t>(attributes.active_mtu);
  port.address_.ethernet = attributes.link_layer == IBV_LINK_LAYER_ETHERNET;
  port.address_.reads = static_cast<std::uint8_t>(
      std::clamp<std::uint32_t>(static_cast<std::uint32_t>(std::max(port.limits_.max_qp_rd_atom, 0)), 1, kMostReads));
  port.gid_count_ = attributes.gid_tbl_len;
  port.max_message_bytes_ = attributes.max_msg_sz;
  STRAIT_CHECK(port.choose_gid(index));
  STRAIT_CHECK(sys::fill_random(std::as_writable_bytes(std::span(&port.address_.seed, 1))));
  return port;
}

Status Port::choose_gid(int wanted) {
  std::optional<ibv_gid_entry> best;
  for (int i = wanted < 0 ? 0 : wanted; i < (wanted < 0 ? gid_count_ : wanted + 1); ++i) {
    ibv_gid_entry entry{};
    if (ibv_query_gid_ex(context(), kPortNumber, static_cast<std::uint32_t>(i), &entry, 0) != 0) continue;
    if (!best || rank(entry) < rank(*best)) best = entry;
  }
  if (!best) {
    return with_remedy(fail(Code::unsupported, "{} has no GID{}", name_,
                            wanted < 0 ? std::string() : fmt::format(" of index {}", wanted)),
                       "give its network interface an address");
  }
  address_.gid = best->gid;
  gid_index_ = static_cast<std::uint8_t>(best->gid_index);
  return {};
}

bool Port::software() const {
  return limits_.vendor_id == 0 || limits_.vendor_id == 0xffffff;  // siw and rxe; no vendor has these numbers
}

ibv_ah_attr Port::way_to(const Address& to) const {
  ibv_ah_attr way{};
  way.port_num = kPortNumber;
  way.dlid = to.lid;
  way.is_global = address_.ethernet ? 1 : 0;
  if (address_.ethernet) {
    way.grh.dgid = to.gid;
    way.grh.sgid_index = gid_index_;
    way.grh.hop_limit = 64;
  }
  return way;
}

}  // namespace strait::rail::verbs
