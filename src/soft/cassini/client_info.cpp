// SPDX-License-Identifier: Apache-2.0
// What the device says of itself.
#include <cerrno>
#include <cstring>

#include "soft/cassini/client.hpp"
#include "soft/cassini/services.hpp"

namespace strait::soft::cassini {

wire::DevInfo device_info(const CardSettings& card) {
  const auto totals = device_totals();
  wire::DevInfo info{};
  info.nid = card.nid;
  info.pid_bits = wire::kMaxPidBits;
  info.pid_count = wire::kPidAny;
  info.pid_granule = wire::pid_granule(wire::kMaxPidBits);
  info.min_free_shift = 0;
  info.rdzv_get_idx = info.pid_granule - 1;
  info.vendor_id = wire::kVendorId;
  info.device_id = wire::kCassini1DeviceId;
  info.device_rev = 1;
  info.device_proto = 1;
  info.device_platform = wire::Platform::netsim;
  info.pct_eq = 0;  // none: no retry handler is needed
  info.uc_nic = 0;  // every card has one NIC
  info.link_mtu = 2112;
  info.link_speed = 200'000;
  info.link_state = 1;
  info.num_ptes = totals[0];
  info.num_txqs = totals[1];
  info.num_tgqs = totals[2];
  info.num_eqs = totals[3];
  info.num_cts = totals[4];
  info.num_les = totals[5];
  info.num_tles = totals[6];
  info.num_acs = totals[7];
  std::strncpy(info.fru_description, "Not Available", sizeof info.fru_description - 1);
  info.cassini_version = card.version;
  info.system_type_identifier = wire::SystemType::cassini_1_only;
  return info;
}

int Client::dev_info_get(const wire::DevInfoGetCmd& c) {
  return respond(c.resp, device_info(card_.settings()));
}

int Client::get_dev_properties(const wire::GetDevPropertiesCmd& c) {
  const auto totals = device_totals();
  wire::DevProperties info{};
  info.nid = card_.settings().nid;
  info.nid_configured = 1;
  info.pid_bits = wire::kMaxPidBits;
  info.pid_count = wire::kPidAny;
  info.pid_granule = wire::pid_granule(wire::kMaxPidBits);
  info.rdzv_get_idx = info.pid_granule - 1;
  for (std::size_t i = 0; i < kResources; ++i) info.rsrcs[i] = {.max = totals[i], .res = 0};
  info.device_rev = 1;
  info.device_proto = 1;
  info.device_platform = wire::Platform::netsim;
  info.cassini_version = card_.settings().version;
  info.rdzv_get_en = card_.settings().rendezvous_get ? 1 : 0;
  info.amo_remap_to_pcie_fadd = -1;
  return respond(c.resp, info);
}

// One page, not all 640 MiB: who asks libcxi for a register that is not in it hears so, and reads no made-up zero.
int Client::map_csrs(const wire::MapCsrsCmd& c) {
  if (registers_ != nullptr) return -EALREADY;
  wire::MapCsrsResp answer{};
  Cookie* cookie = make_cookie(Page::registers, wire::kMappedPageBytes, registers_mapped_, answer.csr);
  if (cookie == nullptr) return -ENOMEM;
  if (const int failed = respond(c.resp, answer); failed != 0) {
    drop_cookies(registers_mapped_);
    return failed;
  }
  registers_ = reinterpret_cast<std::uint64_t*>(cookie->mapping.data());
  card_.registers.show(registers_);
  return 0;
}

// Everything that came in has landed when a command is looked at.
int Client::inbound_wait(const wire::InboundWaitCmd&) {
  return 0;
}

}  // namespace strait::soft::cassini
