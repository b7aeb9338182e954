// SPDX-License-Identifier: Apache-2.0
// What tests of CM messages share, in this folder and in tests/interop.
#pragma once

#include <vector>

#include "soft/cm/message.hpp"

namespace strait::soft::cm::testing {

// One of each, every field different, so that a swapped or shifted one shows.
inline std::vector<Message> telling_messages() {
  Req req;
  req.local_comm_id = 0x01020304;
  req.service_id = wire::mad::service_id(wire::mad::PortSpace::tcp, 7471);
  req.ca_guid = 0x1112131415161718;
  req.qkey = 0x21222324;
  req.qpn = 0x313233;
  req.responder_resources = 0x10;
  req.initiator_depth = 0x0f;
  req.remote_response_timeout = 0x14;
  req.transport = wire::mad::Transport::extended;
  req.flow_control = true;
  req.starting_psn = 0x414243;
  req.local_response_timeout = 0x13;
  req.retry_count = 5;
  req.pkey = 0x8001;
  req.mtu_code = 5;
  req.rnr_retry_count = 6;
  req.max_cm_retries = 15;
  req.srq = true;
  req.extended_transport = wire::mad::kExtendedXrc;
  req.primary.local_gid = IpAddress::v4(10, 0, 0, 1);
  req.primary.remote_gid = IpAddress::v4(10, 0, 0, 2);
  req.primary.flow_label = 0xabcde;
  req.primary.rate = 0x12;
  req.primary.traffic_class = 0x68;
  req.primary.hop_limit = 0x40;
  req.primary.sl = 9;
  req.primary.subnet_local = true;
  req.primary.ack_timeout = 0x12;
  write_ip_header({0x5152, req.primary.local_gid, req.primary.remote_gid}, req.private_data);
  req.private_data[kIpHeaderBytes] = std::byte{0x5a};

  Mra mra{0x02030405, 0x12131415, 1, 0x15, {}};
  Rej rej{0x03040506, 0x13141516, kRejectsRep, 28, 3, {}, {}};
  rej.info[0] = std::byte{0x31};
  rej.private_data[0] = std::byte{0x41};
  Rep rep;
  rep.local_comm_id = 0x04050607;
  rep.remote_comm_id = 0x14151617;
  rep.qkey = 0x24252627;
  rep.qpn = 0x343536;
  rep.starting_psn = 0x444546;
  rep.responder_resources = 7;
  rep.initiator_depth = 8;
  rep.ack_delay = 15;
  rep.failover = 1;
  rep.flow_control = true;
  rep.rnr_retry_count = 6;
  rep.srq = true;
  rep.ca_guid = 0x5152535455565758;
  rep.private_data[0] = std::byte{0x77};
  Rtu rtu{0x05060708, 0x15161718, {}};
  rtu.private_data[0] = std::byte{0x21};
  Dreq dreq{0x06070809, 0x16171819, 0x262728, {}};
  dreq.private_data[0] = std::byte{0x22};
  Drep drep{0x0708090a, 0x1718191a, {}};
  drep.private_data[0] = std::byte{0x23};
  SidrReq sidr_req{0x08090a0b, 0x7fff, wire::mad::service_id(wire::mad::PortSpace::udp, 7174), {}};
  write_ip_header({0x5354, IpAddress::v4(10, 0, 0, 1), IpAddress::v4(10, 0, 0, 2)}, sidr_req.private_data);
  SidrRep sidr_rep{0x090a0b0c, 1, 0x292a2b, 0x3132333435363738, 0x01234567, 2, {}, {}};
  sidr_rep.private_data[0] = std::byte{0x61};
  return {
      {0xa1a2a3a4a5a6a7a0, req},
      {0xa1a2a3a4a5a6a7a1, mra},
      {0xa1a2a3a4a5a6a7a2, rej},
      {0xa1a2a3a4a5a6a7a3, rep},
      {0xa1a2a3a4a5a6a7a4, rtu},
      {0xa1a2a3a4a5a6a7a5, dreq},
      {0xa1a2a3a4a5a6a7a6, drep},
      {0xa1a2a3a4a5a6a7a7, sidr_req},
      {0xa1a2a3a4a5a6a7a8, sidr_rep},
      {0xa1a2a3a4a5a6a7a9, Lap{0x0a0b0c0d, 0x1a1b1c1d, 0x2a2b2c}},
      {0xa1a2a3a4a5a6a7aa, Apr{0x0b0c0d0e, 0x1b1c1d1e, 2, 0, {}, {}}},
  };
}

}  // namespace strait::soft::cm::testing
