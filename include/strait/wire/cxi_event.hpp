// SPDX-License-Identifier: Apache-2.0
// What a CXI event queue holds. Fields only; the two numbers of every accessor are the field's first bit and its width.
// A consumer looks at the event size and at the return code in the last byte, so a device stores the last word last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "strait/wire/cxi_bits.hpp"
#include "strait/wire/cxi_values.hpp"

namespace strait::wire::cxi {

inline constexpr std::uint32_t kEventBlockBytes = 64;  // an event never crosses from one to the next

template <std::size_t Words>
struct EventWords {
  std::uint64_t words[Words];

  STRAIT_HD constexpr EventSize event_size() const { return static_cast<EventSize>(bits<112, 2>(words)); }
  STRAIT_HD constexpr void set_event_size(EventSize v) { put_bits<112, 2>(words, static_cast<std::uint64_t>(v)); }
  STRAIT_HD constexpr EventType event_type() const { return static_cast<EventType>(bits<114, 5>(words)); }
  STRAIT_HD constexpr void set_event_type(EventType v) { put_bits<114, 5>(words, static_cast<std::uint64_t>(v)); }
  STRAIT_HD constexpr ReturnCode return_code() const { return static_cast<ReturnCode>(bits<Words * 64 - 8, 6>(words)); }
  STRAIT_HD constexpr void set_return_code(ReturnCode v) {
    put_bits<Words * 64 - 8, 6>(words, static_cast<std::uint64_t>(v));
  }
};
static_assert(sizeof(EventWords<2>) == 16 && alignof(EventWords<2>) == 8 && offsetof(EventWords<2>, words) == 0);

// Enough of any event to know its type and its size; the return code only of one of 16 bytes. Also EQ_SWITCH and NULL,
// which have nothing else.
using EventHead = EventWords<2>;

// ---- Initiator ----------------------------------------------------------------------------------------------------

// SEND, ACK and REPLY.
template <std::size_t Words>
struct InitiatorWords : EventWords<Words> {
  STRAIT_HD constexpr std::uint64_t user_ptr() const { return bits<0, 64>(this->words); }
  STRAIT_HD constexpr void set_user_ptr(std::uint64_t v) { put_bits<0, 64>(this->words, v); }
  STRAIT_HD constexpr std::uint32_t mlength() const { return bits<64, 32>(this->words); }
  STRAIT_HD constexpr void set_mlength(std::uint32_t v) { put_bits<64, 32>(this->words, v); }
  STRAIT_HD constexpr PtlList ptl_list() const { return static_cast<PtlList>(bits<96, 2>(this->words)); }
  STRAIT_HD constexpr void set_ptl_list(PtlList v) { put_bits<96, 2>(this->words, static_cast<std::uint64_t>(v)); }
  STRAIT_HD constexpr bool rendezvous() const { return bits<100, 1>(this->words); }
  STRAIT_HD constexpr void set_rendezvous(bool v) { put_bits<100, 1>(this->words, v); }
  STRAIT_HD constexpr bool retry() const { return bits<101, 1>(this->words); }
  STRAIT_HD constexpr void set_retry(bool v) { put_bits<101, 1>(this->words, v); }
  STRAIT_HD constexpr bool tgt_error() const { return bits<102, 1>(this->words); }
  STRAIT_HD constexpr void set_tgt_error(bool v) { put_bits<102, 1>(this->words, v); }
};

struct InitiatorShort : InitiatorWords<2> {};
static_assert(sizeof(InitiatorShort) == 16 && std::is_trivial_v<InitiatorShort> &&
              std::is_standard_layout_v<InitiatorShort>);
struct InitiatorLong : InitiatorWords<4> {
  STRAIT_HD constexpr std::uint32_t timestamp_ns() const { return bits<128, 30>(words); }
  STRAIT_HD constexpr void set_timestamp_ns(std::uint32_t v) { put_bits<128, 30>(words, v); }
  STRAIT_HD constexpr std::uint64_t timestamp_sec() const { return bits<192, 48>(words); }
  STRAIT_HD constexpr void set_timestamp_sec(std::uint64_t v) { put_bits<192, 48>(words, v); }
};
static_assert(sizeof(InitiatorLong) == 32 && std::is_trivial_v<InitiatorLong> &&
              std::is_standard_layout_v<InitiatorLong>);

// TRIGGERED_OP: what a TRIG_EVENT command with an event queue makes.
template <std::size_t Words>
struct TriggeredWords : EventWords<Words> {
  STRAIT_HD constexpr std::uint64_t threshold() const { return bits<0, 48>(this->words); }
  STRAIT_HD constexpr void set_threshold(std::uint64_t v) { put_bits<0, 48>(this->words, v); }
  STRAIT_HD constexpr std::uint32_t ct_handle() const { return bits<64, 11>(this->words); }
  STRAIT_HD constexpr void set_ct_handle(std::uint32_t v) { put_bits<64, 11>(this->words, v); }
};

struct TriggeredShort : TriggeredWords<2> {};
static_assert(sizeof(TriggeredShort) == 16 && std::is_trivial_v<TriggeredShort> &&
              std::is_standard_layout_v<TriggeredShort>);
struct TriggeredLong : TriggeredWords<4> {
  STRAIT_HD constexpr std::uint32_t timestamp_ns() const { return bits<128, 30>(words); }
  STRAIT_HD constexpr void set_timestamp_ns(std::uint32_t v) { put_bits<128, 30>(words, v); }
  STRAIT_HD constexpr std::uint64_t timestamp_sec() const { return bits<192, 48>(words); }
  STRAIT_HD constexpr void set_timestamp_sec(std::uint64_t v) { put_bits<192, 48>(words, v); }
};
static_assert(sizeof(TriggeredLong) == 32 && std::is_trivial_v<TriggeredLong> &&
              std::is_standard_layout_v<TriggeredLong>);

// fail_command is the first byte of the command refused, fail_loc says where in the queue it lies.
struct CommandFailure : EventWords<2> {
  STRAIT_HD constexpr std::uint32_t cq_id() const { return bits<0, 10>(words); }
  STRAIT_HD constexpr void set_cq_id(std::uint32_t v) { put_bits<0, 10>(words, v); }
  STRAIT_HD constexpr bool is_target() const { return bits<10, 1>(words); }
  STRAIT_HD constexpr void set_is_target(bool v) { put_bits<10, 1>(words, v); }
  STRAIT_HD constexpr std::uint32_t fail_loc() const { return bits<16, 16>(words); }
  STRAIT_HD constexpr void set_fail_loc(std::uint32_t v) { put_bits<16, 16>(words, v); }
  STRAIT_HD constexpr std::uint32_t fail_command() const { return bits<32, 8>(words); }
  STRAIT_HD constexpr void set_fail_command(std::uint32_t v) { put_bits<32, 8>(words, v); }
};
static_assert(sizeof(CommandFailure) == 16 && std::is_trivial_v<CommandFailure> &&
              std::is_standard_layout_v<CommandFailure>);

// ---- Target -------------------------------------------------------------------------------------------------------

template <std::size_t Words>
struct TargetWords : EventWords<Words> {
  STRAIT_HD constexpr std::uint64_t header_data() const { return bits<0, 64>(this->words); }
  STRAIT_HD constexpr void set_header_data(std::uint64_t v) { put_bits<0, 64>(this->words, v); }
  STRAIT_HD constexpr std::uint32_t initiator() const { return bits<64, 32>(this->words); }
  STRAIT_HD constexpr void set_initiator(std::uint32_t v) { put_bits<64, 32>(this->words, v); }
  STRAIT_HD constexpr std::uint32_t ptlte_index() const { return bits<96, 11>(this->words); }
  STRAIT_HD constexpr void set_ptlte_index(std::uint32_t v) { put_bits<96, 11>(this->words, v); }
  STRAIT_HD constexpr PtlList ptl_list() const { return static_cast<PtlList>(bits<120, 2>(this->words)); }
  STRAIT_HD constexpr void set_ptl_list(PtlList v) { put_bits<120, 2>(this->words, static_cast<std::uint64_t>(v)); }
  STRAIT_HD constexpr bool auto_unlinked() const { return bits<124, 1>(this->words); }
  STRAIT_HD constexpr void set_auto_unlinked(bool v) { put_bits<124, 1>(this->words, v); }
  STRAIT_HD constexpr std::uint64_t match_bits() const { return bits<128, 64>(this->words); }
  STRAIT_HD constexpr void set_match_bits(std::uint64_t v) { put_bits<128, 64>(this->words, v); }
  STRAIT_HD constexpr std::uint32_t buffer_id() const { return bits<192, 16>(this->words); }
  STRAIT_HD constexpr void set_buffer_id(std::uint32_t v) { put_bits<192, 16>(this->words, v); }
  STRAIT_HD constexpr std::uint32_t vni() const { return bits<208, 16>(this->words); }
  STRAIT_HD constexpr void set_vni(std::uint32_t v) { put_bits<208, 16>(this->words, v); }
};

struct TargetShort : TargetWords<4> {
  STRAIT_HD constexpr std::uint32_t length() const { return bits<224, 20>(words); }
  STRAIT_HD constexpr void set_length(std::uint32_t v) { put_bits<224, 20>(words, v); }
};
static_assert(sizeof(TargetShort) == 32 && std::is_trivial_v<TargetShort> && std::is_standard_layout_v<TargetShort>);

struct TargetLong : TargetWords<8> {
  // STATE_CHANGE: these three lie where the initiator does.
  STRAIT_HD constexpr PteState ptlte_state() const { return static_cast<PteState>(bits<64, 3>(words)); }
  STRAIT_HD constexpr void set_ptlte_state(PteState v) { put_bits<64, 3>(words, static_cast<std::uint64_t>(v)); }
  STRAIT_HD constexpr StateChangeReason sc_reason() const { return static_cast<StateChangeReason>(bits<72, 4>(words)); }
  STRAIT_HD constexpr void set_sc_reason(StateChangeReason v) { put_bits<72, 4>(words, static_cast<std::uint64_t>(v)); }
  STRAIT_HD constexpr bool sc_nic_auto() const { return bits<80, 1>(words); }
  STRAIT_HD constexpr void set_sc_nic_auto(bool v) { put_bits<80, 1>(words, v); }

  STRAIT_HD constexpr bool rendezvous() const { return bits<122, 1>(words); }
  STRAIT_HD constexpr void set_rendezvous(bool v) { put_bits<122, 1>(words, v); }
  STRAIT_HD constexpr bool get_issued() const { return bits<123, 1>(words); }
  STRAIT_HD constexpr void set_get_issued(bool v) { put_bits<123, 1>(words, v); }
  STRAIT_HD constexpr std::uint32_t timestamp_ns() const { return bits<224, 30>(words); }
  STRAIT_HD constexpr void set_timestamp_ns(std::uint32_t v) { put_bits<224, 30>(words, v); }
  STRAIT_HD constexpr std::uint32_t timestamp_sec_low() const { return bits<254, 2>(words); }
  STRAIT_HD constexpr void set_timestamp_sec_low(std::uint32_t v) { put_bits<254, 2>(words, v); }
  STRAIT_HD constexpr std::uint32_t mlength() const { return bits<256, 32>(words); }
  STRAIT_HD constexpr void set_mlength(std::uint32_t v) { put_bits<256, 32>(words, v); }
  STRAIT_HD constexpr std::uint32_t rlength() const { return bits<288, 32>(words); }
  STRAIT_HD constexpr void set_rlength(std::uint32_t v) { put_bits<288, 32>(words, v); }
  STRAIT_HD constexpr std::uint64_t remote_offset() const { return bits<320, 56>(words); }
  STRAIT_HD constexpr void set_remote_offset(std::uint64_t v) { put_bits<320, 56>(words, v); }
  STRAIT_HD constexpr std::uint64_t start() const { return bits<384, 57>(words); }
  STRAIT_HD constexpr void set_start(std::uint64_t v) { put_bits<384, 57>(words, v); }
  STRAIT_HD constexpr std::uint32_t lpe_stat_1() const { return bits<448, 16>(words); }
  STRAIT_HD constexpr void set_lpe_stat_1(std::uint32_t v) { put_bits<448, 16>(words, v); }
  STRAIT_HD constexpr std::uint32_t lpe_stat_2() const { return bits<464, 16>(words); }
  STRAIT_HD constexpr void set_lpe_stat_2(std::uint32_t v) { put_bits<464, 16>(words, v); }
  STRAIT_HD constexpr AtomicType atomic_type() const { return static_cast<AtomicType>(bits<480, 4>(words)); }
  STRAIT_HD constexpr void set_atomic_type(AtomicType v) { put_bits<480, 4>(words, static_cast<std::uint64_t>(v)); }
  STRAIT_HD constexpr AtomicOp atomic_op() const { return static_cast<AtomicOp>(bits<484, 4>(words)); }
  STRAIT_HD constexpr void set_atomic_op(AtomicOp v) { put_bits<484, 4>(words, static_cast<std::uint64_t>(v)); }
  STRAIT_HD constexpr CswapOp cswap_op() const { return static_cast<CswapOp>(bits<488, 3>(words)); }
  STRAIT_HD constexpr void set_cswap_op(CswapOp v) { put_bits<488, 3>(words, static_cast<std::uint64_t>(v)); }
  STRAIT_HD constexpr std::uint32_t rendezvous_id() const { return bits<496, 8>(words); }
  STRAIT_HD constexpr void set_rendezvous_id(std::uint32_t v) { put_bits<496, 8>(words, v); }
};
static_assert(sizeof(TargetLong) == 64 && std::is_trivial_v<TargetLong> && std::is_standard_layout_v<TargetLong>);

struct TargetEthernet : EventWords<4> {
  STRAIT_HD constexpr std::uint32_t checksum() const { return bits<0, 16>(words); }
  STRAIT_HD constexpr void set_checksum(std::uint32_t v) { put_bits<0, 16>(words, v); }
  STRAIT_HD constexpr std::uint64_t pkt_cnt() const { return bits<16, 46>(words); }
  STRAIT_HD constexpr void set_pkt_cnt(std::uint64_t v) { put_bits<16, 46>(words, v); }
  STRAIT_HD constexpr std::uint32_t seg_cnt() const { return bits<62, 2>(words); }
  STRAIT_HD constexpr void set_seg_cnt(std::uint32_t v) { put_bits<62, 2>(words, v); }
  STRAIT_HD constexpr std::uint32_t rss_hash_value() const { return bits<64, 32>(words); }
  STRAIT_HD constexpr void set_rss_hash_value(std::uint32_t v) { put_bits<64, 32>(words, v); }
  STRAIT_HD constexpr std::uint32_t ptlte_index() const { return bits<96, 11>(words); }
  STRAIT_HD constexpr void set_ptlte_index(std::uint32_t v) { put_bits<96, 11>(words, v); }
  STRAIT_HD constexpr PtlList ptl_list() const { return static_cast<PtlList>(bits<120, 2>(words)); }
  STRAIT_HD constexpr void set_ptl_list(PtlList v) { put_bits<120, 2>(words, static_cast<std::uint64_t>(v)); }
  STRAIT_HD constexpr bool auto_unlinked() const { return bits<124, 1>(words); }
  STRAIT_HD constexpr void set_auto_unlinked(bool v) { put_bits<124, 1>(words, v); }
  STRAIT_HD constexpr std::uint64_t start() const { return bits<128, 57>(words); }
  STRAIT_HD constexpr void set_start(std::uint64_t v) { put_bits<128, 57>(words, v); }
  STRAIT_HD constexpr std::uint32_t buffer_id() const { return bits<192, 16>(words); }
  STRAIT_HD constexpr void set_buffer_id(std::uint32_t v) { put_bits<192, 16>(words, v); }
  STRAIT_HD constexpr std::uint32_t rss_hash_type() const { return bits<208, 5>(words); }
  STRAIT_HD constexpr void set_rss_hash_type(std::uint32_t v) { put_bits<208, 5>(words, v); }
  STRAIT_HD constexpr bool more_frags() const { return bits<216, 1>(words); }
  STRAIT_HD constexpr void set_more_frags(bool v) { put_bits<216, 1>(words, v); }
  STRAIT_HD constexpr bool is_roce() const { return bits<218, 1>(words); }
  STRAIT_HD constexpr void set_is_roce(bool v) { put_bits<218, 1>(words, v); }
  STRAIT_HD constexpr bool roce_icrc_ok() const { return bits<219, 1>(words); }
  STRAIT_HD constexpr void set_roce_icrc_ok(bool v) { put_bits<219, 1>(words, v); }
  STRAIT_HD constexpr bool timestamp() const { return bits<220, 1>(words); }
  STRAIT_HD constexpr void set_timestamp(bool v) { put_bits<220, 1>(words, v); }
  STRAIT_HD constexpr bool fmt() const { return bits<221, 1>(words); }
  STRAIT_HD constexpr void set_fmt(bool v) { put_bits<221, 1>(words, v); }
  STRAIT_HD constexpr bool parser_err() const { return bits<222, 1>(words); }
  STRAIT_HD constexpr void set_parser_err(bool v) { put_bits<222, 1>(words, v); }
  STRAIT_HD constexpr std::uint32_t length() const { return bits<224, 16>(words); }
  STRAIT_HD constexpr void set_length(std::uint32_t v) { put_bits<224, 16>(words, v); }
};
static_assert(sizeof(TargetEthernet) == 32 && std::is_trivial_v<TargetEthernet> &&
              std::is_standard_layout_v<TargetEthernet>);

// ---- Others -------------------------------------------------------------------------------------------------------

struct EthernetFgfc : EventWords<2> {
  STRAIT_HD constexpr std::uint32_t identifier() const { return bits<0, 32>(words); }
  STRAIT_HD constexpr void set_identifier(std::uint32_t v) { put_bits<0, 32>(words, v); }
  STRAIT_HD constexpr std::uint32_t fgfc_type() const { return bits<64, 2>(words); }
  STRAIT_HD constexpr void set_fgfc_type(std::uint32_t v) { put_bits<64, 2>(words, v); }
  STRAIT_HD constexpr bool xoff() const { return bits<72, 1>(words); }
  STRAIT_HD constexpr void set_xoff(bool v) { put_bits<72, 1>(words, v); }
  STRAIT_HD constexpr std::uint32_t srcip_tag() const { return bits<80, 2>(words); }
  STRAIT_HD constexpr void set_srcip_tag(std::uint32_t v) { put_bits<80, 2>(words, v); }
  STRAIT_HD constexpr std::uint32_t credits() const { return bits<96, 16>(words); }
  STRAIT_HD constexpr void set_credits(std::uint32_t v) { put_bits<96, 16>(words, v); }
};
static_assert(sizeof(EthernetFgfc) == 16 && std::is_trivial_v<EthernetFgfc> && std::is_standard_layout_v<EthernetFgfc>);

// tct_idx and sct_idx lie over each other.
struct PctEvent : EventWords<2> {
  STRAIT_HD constexpr std::uint32_t dfa() const { return bits<0, 32>(words); }
  STRAIT_HD constexpr void set_dfa(std::uint32_t v) { put_bits<0, 32>(words, v); }
  STRAIT_HD constexpr std::uint32_t seq_num() const { return bits<32, 12>(words); }
  STRAIT_HD constexpr void set_seq_num(std::uint32_t v) { put_bits<32, 12>(words, v); }
  STRAIT_HD constexpr PctEventType pct_event_type() const { return static_cast<PctEventType>(bits<64, 3>(words)); }
  STRAIT_HD constexpr void set_pct_event_type(PctEventType v) { put_bits<64, 3>(words, static_cast<std::uint64_t>(v)); }
  STRAIT_HD constexpr std::uint32_t spt_idx() const { return bits<80, 11>(words); }
  STRAIT_HD constexpr void set_spt_idx(std::uint32_t v) { put_bits<80, 11>(words, v); }
  STRAIT_HD constexpr std::uint32_t tct_idx() const { return bits<96, 13>(words); }
  STRAIT_HD constexpr void set_tct_idx(std::uint32_t v) { put_bits<96, 13>(words, v); }
  STRAIT_HD constexpr std::uint32_t sct_idx() const { return bits<96, 12>(words); }
  STRAIT_HD constexpr void set_sct_idx(std::uint32_t v) { put_bits<96, 12>(words, v); }
};
static_assert(sizeof(PctEvent) == 16 && std::is_trivial_v<PctEvent> && std::is_standard_layout_v<PctEvent>);

struct TimestampEvent : EventWords<2> {
  STRAIT_HD constexpr std::uint32_t timestamp_ns() const { return bits<0, 30>(words); }
  STRAIT_HD constexpr void set_timestamp_ns(std::uint32_t v) { put_bits<0, 30>(words, v); }
  STRAIT_HD constexpr std::uint64_t timestamp_sec() const { return bits<64, 48>(words); }
  STRAIT_HD constexpr void set_timestamp_sec(std::uint64_t v) { put_bits<64, 48>(words, v); }
};
static_assert(sizeof(TimestampEvent) == 16 && std::is_trivial_v<TimestampEvent> &&
              std::is_standard_layout_v<TimestampEvent>);

// ---- First 64 bytes of the queue ----------------------------------------------------------------------------------

// Written by the device. The time stands in it twice, first and last: both are equal when it was read in one piece.
struct EqStatus {
  std::uint64_t words[8];

  STRAIT_HD constexpr std::uint32_t timestamp_ns_copy() const { return bits<0, 30>(words); }
  STRAIT_HD constexpr void set_timestamp_ns_copy(std::uint32_t v) { put_bits<0, 30>(words, v); }
  STRAIT_HD constexpr std::uint64_t timestamp_sec_copy() const { return bits<64, 48>(words); }
  STRAIT_HD constexpr void set_timestamp_sec_copy(std::uint64_t v) { put_bits<64, 48>(words, v); }
  STRAIT_HD constexpr bool thld_sts() const { return bits<112, 1>(words); }
  STRAIT_HD constexpr void set_thld_sts(bool v) { put_bits<112, 1>(words, v); }
  STRAIT_HD constexpr std::uint32_t thld_id() const { return bits<116, 2>(words); }
  STRAIT_HD constexpr void set_thld_id(std::uint32_t v) { put_bits<116, 2>(words, v); }
  STRAIT_HD constexpr bool unackd_dropped_event() const { return bits<120, 1>(words); }
  STRAIT_HD constexpr void set_unackd_dropped_event(bool v) { put_bits<120, 1>(words, v); }
  STRAIT_HD constexpr bool event_drop_seq_no() const { return bits<124, 1>(words); }
  STRAIT_HD constexpr void set_event_drop_seq_no(bool v) { put_bits<124, 1>(words, v); }
  STRAIT_HD constexpr std::uint32_t event_slots_free() const { return bits<128, 26>(words); }
  STRAIT_HD constexpr void set_event_slots_free(std::uint32_t v) { put_bits<128, 26>(words, v); }
  STRAIT_HD constexpr std::uint32_t event_slots_rsrvd() const { return bits<160, 26>(words); }
  STRAIT_HD constexpr void set_event_slots_rsrvd(std::uint32_t v) { put_bits<160, 26>(words, v); }
  STRAIT_HD constexpr std::uint32_t wr_ptr() const { return bits<192, 26>(words); }
  STRAIT_HD constexpr void set_wr_ptr(std::uint32_t v) { put_bits<192, 26>(words, v); }
  STRAIT_HD constexpr bool using_buffer_b() const { return bits<224, 1>(words); }
  STRAIT_HD constexpr void set_using_buffer_b(bool v) { put_bits<224, 1>(words, v); }
  STRAIT_HD constexpr std::uint32_t timestamp_ns() const { return bits<416, 30>(words); }
  STRAIT_HD constexpr void set_timestamp_ns(std::uint32_t v) { put_bits<416, 30>(words, v); }
  STRAIT_HD constexpr std::uint64_t timestamp_sec() const { return bits<448, 48>(words); }
  STRAIT_HD constexpr void set_timestamp_sec(std::uint64_t v) { put_bits<448, 48>(words, v); }
};
static_assert(sizeof(EqStatus) == kEventBlockBytes && offsetof(EqStatus, words) == 0 && std::is_trivial_v<EqStatus>);

// ---- Register of the queue's page ---------------------------------------------------------------------------------

// What the consumer stores as one word at offset 0 of the page: how far it has read, in units of 64 bytes.
struct EqSwState {
  std::uint64_t word;

  STRAIT_HD constexpr std::uint32_t rd_ptr() const { return bits<0, 26>(word); }
  STRAIT_HD constexpr void set_rd_ptr(std::uint32_t v) { word = with_bits<0, 26>(word, v); }
  STRAIT_HD constexpr bool reading_buffer_b() const { return bits<31, 1>(word); }
  STRAIT_HD constexpr void set_reading_buffer_b(bool v) { word = with_bits<31, 1>(word, v); }
  STRAIT_HD constexpr bool event_int_disable() const { return bits<32, 1>(word); }
  STRAIT_HD constexpr void set_event_int_disable(bool v) { word = with_bits<32, 1>(word, v); }
  STRAIT_HD constexpr bool eq_sts_int_disable() const { return bits<33, 1>(word); }
  STRAIT_HD constexpr void set_eq_sts_int_disable(bool v) { word = with_bits<33, 1>(word, v); }
  STRAIT_HD constexpr bool event_drop_seq_no() const { return bits<40, 1>(word); }
  STRAIT_HD constexpr void set_event_drop_seq_no(bool v) { word = with_bits<40, 1>(word, v); }
};
static_assert(sizeof(EqSwState) == 8 && offsetof(EqSwState, word) == 0 && std::is_trivial_v<EqSwState>);

}  // namespace strait::wire::cxi
