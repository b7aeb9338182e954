// SPDX-License-Identifier: Apache-2.0
// Packets between their bytes and their meaning: from the base transport header to the last byte before the iCRC.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "strait/wire/roce.hpp"

namespace strait::soft::roce {

// All fields that any opcode has; shape_of(opcode) says which of them are on the wire. After parse() those that are not
// there have their defaults.
struct Headers {
  wire::roce::Opcode opcode = wire::roce::Opcode::rc_send_first;
  bool solicited = false;
  bool ack_req = false;
  bool becn = false;
  bool fecn = false;
  std::uint8_t pad = 0;
  std::uint16_t pkey = wire::roce::kDefaultPkey;
  std::uint32_t dest_qpn = 0;
  std::uint32_t psn = 0;

  std::uint64_t va = 0;  // RETH and AtomicETH
  std::uint32_t rkey = 0;
  std::uint32_t dma_length = 0;

  std::uint8_t syndrome = 0;  // AETH
  std::uint32_t msn = 0;

  std::uint64_t swap_or_add = 0;  // AtomicETH
  std::uint64_t compare = 0;
  std::uint64_t original = 0;  // AtomicAckETH

  std::uint32_t imm_raw = 0;  // the four bytes as they lie in memory
  std::uint32_t inval_rkey = 0;
  std::uint32_t qkey = 0;  // DETH
  std::uint32_t src_qpn = 0;
  std::uint32_t xrc_srqn = 0;  // XRCETH

  // What ConnectX sends for a path that never migrated. Receivers ignore it.
  bool mig_req = true;

  friend bool operator==(const Headers&, const Headers&) = default;
};

// BTH and the extended headers of the opcode, with all reserved bits 0 (of a CNP also its 16 reserved bytes). Returns
// how many bytes that were, at most wire::roce::kMaxHeaderBytes; 0, and nothing is written, for an unknown opcode.
std::size_t write_headers(const Headers& headers, std::byte* out);

// Why a packet is dropped without an answer. Those after bad_icrc are for the users of this folder: one list, so that
// one table of counters can name every reason.
enum class Drop : std::uint8_t {
  none,
  too_short,
  bad_version,
  unknown_opcode,
  bad_pkey,
  bad_pad,
  bad_length,
  bad_icrc,
  unknown_qpn,
  wrong_transport,
  wrong_state,
  wrong_address,
  bad_qkey,
  stale_psn,
  unexpected_response,
  no_receiver,
  no_room,
  injected,
};
inline constexpr std::size_t kDropReasons = static_cast<std::size_t>(Drop::injected) + 1;
[[nodiscard]] const char* drop_text(Drop drop);  // for people
[[nodiscard]] const char* drop_name(Drop drop);  // as above, for names of counters

struct Packet : Headers {
  std::span<const std::byte> payload;  // without pad and iCRC; points into what was parsed
};

// `bth_to_icrc`: a whole packet as a Port hands it out. Does not look at the iCRC (icrc.hpp does); the last four bytes
// only count for the length. `out` is meaningful only when the answer is Drop::none.
[[nodiscard]] Drop parse(std::span<const std::byte> bth_to_icrc, Packet& out);

// The destination QPN of a packet of at least 8 bytes, for those who only pass it on.
[[nodiscard]] inline std::uint32_t peek_dest_qpn(std::span<const std::byte> bth_to_icrc) {
  return std::to_integer<std::uint32_t>(bth_to_icrc[5]) << 16 | std::to_integer<std::uint32_t>(bth_to_icrc[6]) << 8 |
         std::to_integer<std::uint32_t>(bth_to_icrc[7]);
}

}  // namespace strait::soft::roce
