// SPDX-License-Identifier: Apache-2.0
// Slingshot/CXI hardware formats: command and event queues, counters, fabric addresses and the pages a client maps.
// Layout only, no behaviour. Words follow the hardware's: a slot is 32 bytes, a block 64; CT = counting event,
// PTE = portal table entry, DFA = destination fabric address. docs/wire-cxi.md explains the page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "strait/wire/cxi_bits.hpp"
#include "strait/wire/cxi_command.hpp"
#include "strait/wire/cxi_event.hpp"
#include "strait/wire/cxi_values.hpp"

namespace strait::wire::cxi {

// ---- Command queue ring -------------------------------------------------------------------------------------------

inline constexpr std::uint32_t kSlotBytes = 32;
inline constexpr std::uint32_t kBlockBytes = 64;
inline constexpr std::uint32_t kFirstBlock = 4;  // the status area is before it; a wrap comes back to here, never to 0
inline constexpr std::uint32_t kFirstSlot = 8;
inline constexpr std::uint32_t kStatusAreaBytes = kFirstBlock * kBlockBytes;
inline constexpr std::uint32_t kMaxCqBlocks = 65536;
inline constexpr std::uint32_t kMinCqBlocks = 64;  // a page

// First word of the ring. Software starts it with rd_ptr 4 and return code 1; for a ring that the client brought along
// that is the client's to do.
struct QueueStatus {
  std::uint64_t word;

  STRAIT_HD constexpr std::uint32_t rd_ptr() const { return bits<0, 16>(word); }
  STRAIT_HD constexpr void set_rd_ptr(std::uint32_t v) { word = with_bits<0, 16>(word, v); }
  STRAIT_HD constexpr std::uint32_t num_write_cmds_rejected() const { return bits<16, 16>(word); }
  STRAIT_HD constexpr void set_num_write_cmds_rejected(std::uint32_t v) { word = with_bits<16, 16>(word, v); }
  STRAIT_HD constexpr std::uint32_t fail_command() const { return bits<32, 8>(word); }
  STRAIT_HD constexpr void set_fail_command(std::uint32_t v) { word = with_bits<32, 8>(word, v); }
  STRAIT_HD constexpr ReturnCode return_code() const { return static_cast<ReturnCode>(bits<48, 6>(word)); }
  STRAIT_HD constexpr void set_return_code(ReturnCode v) {
    word = with_bits<48, 6>(word, static_cast<std::uint64_t>(v));
  }
  STRAIT_HD constexpr bool fail_loc_32() const { return bits<61, 1>(word); }
  STRAIT_HD constexpr void set_fail_loc_32(bool v) { word = with_bits<61, 1>(word, v); }
  STRAIT_HD constexpr bool fail_ll() const { return bits<62, 1>(word); }
  STRAIT_HD constexpr void set_fail_ll(bool v) { word = with_bits<62, 1>(word, v); }
  STRAIT_HD constexpr bool ll_disabled() const { return bits<63, 1>(word); }
  STRAIT_HD constexpr void set_ll_disabled(bool v) { word = with_bits<63, 1>(word, v); }
};
static_assert(sizeof(QueueStatus) == 8 && offsetof(QueueStatus, word) == 0 && std::is_trivial_v<QueueStatus>);

STRAIT_HD constexpr QueueStatus initial_queue_status() {
  QueueStatus s{};
  s.set_rd_ptr(kFirstBlock);
  s.set_return_code(ReturnCode::ok);
  return s;
}

// ---- Pages that a client maps -------------------------------------------------------------------------------------

inline constexpr std::uint32_t kMappedPageBytes = 4096;  // of each of the three kinds, though they are 64 KiB apart

// Page of a command queue. The write pointer counts blocks of 64 bytes; 16 bits count, stored as one 64-bit word.
inline constexpr std::uint32_t kWritePointerOffset = 0;
inline constexpr std::uint32_t kLowLatency64Offset = 1024;            // writes of 64 bytes
inline constexpr std::uint32_t kLowLatency128Offset = 2048;           // of 128, aligned
inline constexpr std::uint32_t kLowLatency128UnalignedOffset = 3072;  // of 128, with one block skipped first
inline constexpr std::uint32_t kLowLatencyWindowBytes = 1024;

// Where in a window the block goes.
STRAIT_HD constexpr std::uint32_t low_latency_offset(std::uint64_t slot) {
  return static_cast<std::uint32_t>(slot / 2 & 15) * kBlockBytes;
}

// Page of a counter: 64-bit stores. Each store counts, also one equal to the store before it.
inline constexpr std::uint32_t kCtAddSuccessOffset = 0;
inline constexpr std::uint32_t kCtAddFailureOffset = 64;
inline constexpr std::uint32_t kCtResetSuccessOffset = 128;  // the value stored is ignored
inline constexpr std::uint32_t kCtResetFailureOffset = 192;
// Software devices only, whose page is memory: what an accelerator adds has words of its own, at this distance. An
// accelerator's addition to host memory is atomic to its own others, and not to a CPU's: the device reads these words,
// takes the difference to what it read last, and never writes them. One accelerator for each counter.
inline constexpr std::uint32_t kCtSumsOffset = 1024;
inline constexpr std::uint64_t kCtSuccessMask = low_bits<48>();
inline constexpr std::uint64_t kCtFailureMask = low_bits<7>();

// Page of an event queue.
inline constexpr std::uint32_t kEqSwStateOffset = 0;

// In the device's BAR 0.
inline constexpr std::uint32_t kBarPageStride = 0x10000;
inline constexpr std::uint32_t kBarTransmitCqs = 0x00000000;
inline constexpr std::uint32_t kBarTargetCqs = 0x04000000;
inline constexpr std::uint32_t kBarCts = 0x08000000;
inline constexpr std::uint32_t kBarEqs = 0x10000000;
inline constexpr std::uint32_t kBarCsrs = 0x40000000;
inline constexpr std::uint32_t kBarCsrBytes = 0x28000000;
// Registers, from kBarCsrs on, one of 8 bytes for each pool: triggered entries in use, and the most since it was
// cleared.
inline constexpr std::uint32_t kTlePools = 4;
inline constexpr std::uint32_t kCsrTlesInUse = 0x850;
inline constexpr std::uint32_t kCsrMostTlesInUse = 0x870;

// ---- Counter write-back -------------------------------------------------------------------------------------------

// The device stores the word whole with `written` set; software clears that bit to learn of the next store. It is a
// mark, not an enable. A success that is counted does not by itself make the device store.
struct CtWriteback {
  std::uint64_t word;

  STRAIT_HD constexpr std::uint64_t success() const { return bits<0, 48>(word); }
  STRAIT_HD constexpr void set_success(std::uint64_t v) { word = with_bits<0, 48>(word, v); }
  STRAIT_HD constexpr std::uint32_t failure() const { return bits<48, 7>(word); }
  STRAIT_HD constexpr void set_failure(std::uint32_t v) { word = with_bits<48, 7>(word, v); }
  STRAIT_HD constexpr bool written() const { return bits<63, 1>(word); }
  STRAIT_HD constexpr void set_written(bool v) { word = with_bits<63, 1>(word, v); }
};
static_assert(sizeof(CtWriteback) == 8 && offsetof(CtWriteback, word) == 0 && std::is_trivial_v<CtWriteback>);

// ---- Fabric addresses ---------------------------------------------------------------------------------------------

inline constexpr std::uint32_t kEndpointBits = 12;
inline constexpr std::uint32_t kIndexExtBits = 5;
inline constexpr std::uint32_t kNidBits = 20;
inline constexpr std::uint32_t kNidAny = 0xfffff;
inline constexpr std::uint32_t kMinPidBits = 6;
inline constexpr std::uint32_t kMaxPidBits = 9;
inline constexpr std::uint32_t kPidAny = 511;  // with nine bits of PID
inline constexpr std::uint32_t kRankAny = (1u << 23) - 1;
inline constexpr std::uint32_t kMatchAnyone = 0xffffffffu;
inline constexpr std::uint32_t kMulticastIdBits = 13;
inline constexpr std::uint32_t kMulticastAction = 7;
inline constexpr std::uint32_t kMulticastFormat = 0x1ff;

// How many PTE indices a PID has: 256 with nine bits of PID.
STRAIT_HD constexpr std::uint32_t pid_granule(std::uint32_t pid_bits) {
  return 1u << (kEndpointBits + kIndexExtBits - pid_bits);
}

// A PTE index takes its upper bits from the address and its lower five from the command's index_ext.
STRAIT_HD constexpr std::uint32_t endpoint_of(std::uint32_t pid, std::uint32_t pid_bits, std::uint32_t index) {
  return ((index >> kIndexExtBits) << pid_bits) + pid;
}
STRAIT_HD constexpr std::uint32_t index_ext_of(std::uint32_t index) {
  return index & ((1u << kIndexExtBits) - 1);
}
STRAIT_HD constexpr std::uint32_t unicast_dfa(std::uint32_t nid, std::uint32_t endpoint) {
  return nid << kEndpointBits | (endpoint & ((1u << kEndpointBits) - 1));
}
STRAIT_HD constexpr std::uint32_t nid_of_dfa(std::uint32_t dfa) {
  return dfa >> kEndpointBits;
}
STRAIT_HD constexpr std::uint32_t endpoint_of_dfa(std::uint32_t dfa) {
  return dfa & ((1u << kEndpointBits) - 1);
}
STRAIT_HD constexpr std::uint32_t pid_of_dfa(std::uint32_t dfa, std::uint32_t pid_bits) {
  return dfa & ((1u << pid_bits) - 1);
}
STRAIT_HD constexpr std::uint32_t index_of_dfa(std::uint32_t dfa, std::uint32_t pid_bits, std::uint32_t index_ext) {
  return endpoint_of_dfa(dfa) >> pid_bits << kIndexExtBits | index_ext;
}

STRAIT_HD constexpr std::uint32_t multicast_dfa(std::uint32_t id, std::uint32_t reduction_id) {
  return kMulticastAction | (id & ((1u << kMulticastIdBits) - 1)) << 3 | (reduction_id & 7) << 18 |
         kMulticastFormat << 23;
}
STRAIT_HD constexpr bool is_multicast(std::uint32_t dfa) {
  return dfa >> 23 == kMulticastFormat;
}
STRAIT_HD constexpr std::uint32_t multicast_id_of_dfa(std::uint32_t dfa) {
  return dfa >> 3 & ((1u << kMulticastIdBits) - 1);
}
STRAIT_HD constexpr std::uint32_t reduction_id_of_dfa(std::uint32_t dfa) {
  return dfa >> 18 & 7;
}
// What PTE_MAP takes as its offset when the address is a multicast one.
STRAIT_HD constexpr std::uint32_t multicast_pid_offset(std::uint32_t id, std::uint32_t index) {
  return (id & ((1u << kMulticastIdBits) - 1)) | index << kMulticastIdBits;
}

// Who sent, and from whom a list entry takes: the PID above, a NID or a rank below.
STRAIT_HD constexpr std::uint32_t match_id(std::uint32_t pid_bits, std::uint32_t pid, std::uint32_t endpoint) {
  return (pid & ((1u << pid_bits) - 1)) << (32 - pid_bits) | (endpoint & ((1u << (32 - pid_bits)) - 1));
}
STRAIT_HD constexpr std::uint32_t pid_of_match_id(std::uint32_t pid_bits, std::uint32_t id) {
  return id >> (32 - pid_bits);
}
STRAIT_HD constexpr std::uint32_t endpoint_of_match_id(std::uint32_t pid_bits, std::uint32_t id) {
  return id & ((1u << (32 - pid_bits)) - 1);
}
static_assert(match_id(9, kPidAny, kRankAny) == kMatchAnyone && pid_granule(9) == 256);

}  // namespace strait::wire::cxi
