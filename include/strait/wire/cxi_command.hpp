// SPDX-License-Identifier: Apache-2.0
// What a CXI command queue holds: DMA, immediate, counter, queue and target commands. Fields only; what a put consists
// of is for those who put. The two numbers of every accessor are the field's first bit and its width. Start from zero
// (`FullDmaCmd c{};`): a setter replaces its own bits and nothing else. docs/wire-cxi.md has the tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "strait/wire/cxi_bits.hpp"
#include "strait/wire/cxi_values.hpp"

namespace strait::wire::cxi {

// ---- First byte of every command ----------------------------------------------------------------------------------

// Op: DmaOp, CtOp, CqOp or TargetOp; the type says which.
template <class Op>
STRAIT_HD constexpr std::uint8_t header_byte(CmdType type, CmdSize size, Op op) {
  static_assert(std::is_enum_v<Op>);
  return static_cast<std::uint8_t>(static_cast<unsigned>(type) | static_cast<unsigned>(size) << 2 |
                                   static_cast<unsigned>(op) << 4);
}
STRAIT_HD constexpr CmdType type_of_header(std::uint8_t header) {
  return static_cast<CmdType>(header & 3);
}
STRAIT_HD constexpr CmdSize size_of_header(std::uint8_t header) {
  return static_cast<CmdSize>(header >> 2 & 3);
}
STRAIT_HD constexpr std::uint32_t opcode_of_header(std::uint8_t header) {
  return header >> 4;
}

template <std::size_t Words>
struct CmdWords {
  std::uint64_t words[Words];

  STRAIT_HD constexpr std::uint8_t header() const { return static_cast<std::uint8_t>(words[0]); }
  STRAIT_HD constexpr CmdType cmd_type() const { return type_of_header(header()); }
  STRAIT_HD constexpr CmdSize cmd_size() const { return size_of_header(header()); }
  STRAIT_HD constexpr std::uint32_t opcode() const { return opcode_of_header(header()); }
  template <class Op>
  STRAIT_HD constexpr bool is(CmdType type, Op op) const {
    return cmd_type() == type && opcode() == static_cast<std::uint32_t>(op);
  }
  template <class Op>
  STRAIT_HD constexpr void set_header(CmdType type, CmdSize size, Op op) {
    put_bits<0, 8>(words, header_byte(type, size, op));
  }
};
static_assert(sizeof(CmdWords<4>) == 32 && alignof(CmdWords<4>) == 8 && offsetof(CmdWords<4>, words) == 0);

// ---- Initiator: which events and counts a DMA command makes, or the CSTATE before an immediate one -----------------

inline constexpr std::uint32_t kEventSendDisable = 1u << 0;
inline constexpr std::uint32_t kEventSuccessDisable = 1u << 1;
inline constexpr std::uint32_t kEventCtSend = 1u << 2;
inline constexpr std::uint32_t kEventCtReply = 1u << 3;
inline constexpr std::uint32_t kEventCtAck = 1u << 4;
inline constexpr std::uint32_t kEventCtBytes = 1u << 5;
inline constexpr std::uint32_t kGetWithLocalFlag = 1u << 6;
inline constexpr std::uint32_t kRestricted = 1u << 7;
inline constexpr std::uint32_t kReduction = 1u << 8;
inline constexpr std::uint32_t kFlush = 1u << 9;
inline constexpr std::uint32_t kUseOffsetForGet = 1u << 10;

template <std::size_t Words>
struct InitiatorCmd : CmdWords<Words> {
  STRAIT_HD constexpr std::uint32_t flags() const { return bits<19, 11>(this->words); }
  STRAIT_HD constexpr void set_flags(std::uint32_t v) { put_bits<19, 11>(this->words, v); }
  STRAIT_HD constexpr bool event_send_disable() const { return bits<19, 1>(this->words); }
  STRAIT_HD constexpr void set_event_send_disable(bool v) { put_bits<19, 1>(this->words, v); }
  STRAIT_HD constexpr bool event_success_disable() const { return bits<20, 1>(this->words); }
  STRAIT_HD constexpr void set_event_success_disable(bool v) { put_bits<20, 1>(this->words, v); }
  STRAIT_HD constexpr bool event_ct_send() const { return bits<21, 1>(this->words); }
  STRAIT_HD constexpr void set_event_ct_send(bool v) { put_bits<21, 1>(this->words, v); }
  STRAIT_HD constexpr bool event_ct_reply() const { return bits<22, 1>(this->words); }
  STRAIT_HD constexpr void set_event_ct_reply(bool v) { put_bits<22, 1>(this->words, v); }
  STRAIT_HD constexpr bool event_ct_ack() const { return bits<23, 1>(this->words); }
  STRAIT_HD constexpr void set_event_ct_ack(bool v) { put_bits<23, 1>(this->words, v); }
  STRAIT_HD constexpr bool event_ct_bytes() const { return bits<24, 1>(this->words); }
  STRAIT_HD constexpr void set_event_ct_bytes(bool v) { put_bits<24, 1>(this->words, v); }
  STRAIT_HD constexpr bool get_with_local_flag() const { return bits<25, 1>(this->words); }
  STRAIT_HD constexpr void set_get_with_local_flag(bool v) { put_bits<25, 1>(this->words, v); }
  STRAIT_HD constexpr bool restricted() const { return bits<26, 1>(this->words); }
  STRAIT_HD constexpr void set_restricted(bool v) { put_bits<26, 1>(this->words, v); }
  STRAIT_HD constexpr bool reduction() const { return bits<27, 1>(this->words); }
  STRAIT_HD constexpr void set_reduction(bool v) { put_bits<27, 1>(this->words, v); }
  STRAIT_HD constexpr bool flush() const { return bits<28, 1>(this->words); }
  STRAIT_HD constexpr void set_flush(bool v) { put_bits<28, 1>(this->words, v); }
  STRAIT_HD constexpr bool use_offset_for_get() const { return bits<29, 1>(this->words); }
  STRAIT_HD constexpr void set_use_offset_for_get(bool v) { put_bits<29, 1>(this->words, v); }
  STRAIT_HD constexpr std::uint32_t ct() const { return bits<224, 11>(this->words); }
  STRAIT_HD constexpr void set_ct(std::uint32_t v) { put_bits<224, 11>(this->words, v); }
  STRAIT_HD constexpr std::uint32_t eq() const { return bits<240, 11>(this->words); }
  STRAIT_HD constexpr void set_eq(std::uint32_t v) { put_bits<240, 11>(this->words, v); }
};

// The 32 bytes that all DMA commands begin with.
template <std::size_t Words>
struct DmaCmd : InitiatorCmd<Words> {
  STRAIT_HD constexpr std::uint32_t index_ext() const { return bits<8, 5>(this->words); }
  STRAIT_HD constexpr void set_index_ext(std::uint32_t v) { put_bits<8, 5>(this->words, v); }
  STRAIT_HD constexpr std::uint32_t lac() const { return bits<16, 3>(this->words); }
  STRAIT_HD constexpr void set_lac(std::uint32_t v) { put_bits<16, 3>(this->words, v); }
  STRAIT_HD constexpr std::uint32_t dfa() const { return bits<32, 32>(this->words); }
  STRAIT_HD constexpr void set_dfa(std::uint32_t v) { put_bits<32, 32>(this->words, v); }
  STRAIT_HD constexpr std::uint64_t remote_offset() const { return bits<64, 56>(this->words); }
  STRAIT_HD constexpr void set_remote_offset(std::uint64_t v) { put_bits<64, 56>(this->words, v); }
  STRAIT_HD constexpr std::uint64_t local_addr() const { return bits<128, 57>(this->words); }
  STRAIT_HD constexpr void set_local_addr(std::uint64_t v) { put_bits<128, 57>(this->words, v); }
  STRAIT_HD constexpr std::uint32_t request_len() const { return bits<192, 32>(this->words); }
  STRAIT_HD constexpr void set_request_len(std::uint32_t v) { put_bits<192, 32>(this->words, v); }
};

// NOMATCH_PUT and NOMATCH_GET: always restricted, with events for errors only.
struct NomatchDmaCmd : DmaCmd<4> {};
static_assert(sizeof(NomatchDmaCmd) == 32 && std::is_trivial_v<NomatchDmaCmd> &&
              std::is_standard_layout_v<NomatchDmaCmd>);

// PUT, GET and RENDEZVOUS_PUT.
struct FullDmaCmd : DmaCmd<8> {
  STRAIT_HD constexpr std::uint32_t eager_length() const { return bits<256, 20>(words); }
  STRAIT_HD constexpr void set_eager_length(std::uint32_t v) { put_bits<256, 20>(words, v); }
  STRAIT_HD constexpr std::uint32_t rendezvous_id() const { return bits<280, 8>(words); }
  STRAIT_HD constexpr void set_rendezvous_id(std::uint32_t v) { put_bits<280, 8>(words, v); }
  STRAIT_HD constexpr std::uint32_t initiator() const { return bits<288, 32>(words); }
  STRAIT_HD constexpr void set_initiator(std::uint32_t v) { put_bits<288, 32>(words, v); }
  STRAIT_HD constexpr std::uint64_t match_bits() const { return bits<320, 64>(words); }
  STRAIT_HD constexpr void set_match_bits(std::uint64_t v) { put_bits<320, 64>(words, v); }
  STRAIT_HD constexpr std::uint64_t header_data() const { return bits<384, 64>(words); }
  STRAIT_HD constexpr void set_header_data(std::uint64_t v) { put_bits<384, 64>(words, v); }
  STRAIT_HD constexpr std::uint64_t user_ptr() const { return bits<448, 64>(words); }
  STRAIT_HD constexpr void set_user_ptr(std::uint64_t v) { put_bits<448, 64>(words, v); }
};
static_assert(sizeof(FullDmaCmd) == 64 && std::is_trivial_v<FullDmaCmd> && std::is_standard_layout_v<FullDmaCmd>);

// ATOMIC and FETCHING_ATOMIC, in a slot of 128 bytes. local_addr and lac say where operand 1 is read from memory,
// local_write_addr and write_lac where a fetched value goes; operand 2 is the only immediate one.
struct AmoDmaCmd : DmaCmd<12> {
  STRAIT_HD constexpr std::uint32_t initiator() const { return bits<288, 32>(words); }
  STRAIT_HD constexpr void set_initiator(std::uint32_t v) { put_bits<288, 32>(words, v); }
  STRAIT_HD constexpr std::uint64_t match_bits() const { return bits<320, 64>(words); }
  STRAIT_HD constexpr void set_match_bits(std::uint64_t v) { put_bits<320, 64>(words, v); }
  STRAIT_HD constexpr std::uint64_t header_data() const { return bits<384, 64>(words); }
  STRAIT_HD constexpr void set_header_data(std::uint64_t v) { put_bits<384, 64>(words, v); }
  STRAIT_HD constexpr std::uint64_t user_ptr() const { return bits<448, 64>(words); }
  STRAIT_HD constexpr void set_user_ptr(std::uint64_t v) { put_bits<448, 64>(words, v); }
  STRAIT_HD constexpr std::uint64_t local_write_addr() const { return bits<512, 57>(words); }
  STRAIT_HD constexpr void set_local_write_addr(std::uint64_t v) { put_bits<512, 57>(words, v); }
  STRAIT_HD constexpr AtomicOp atomic_op() const { return static_cast<AtomicOp>(bits<576, 4>(words)); }
  STRAIT_HD constexpr void set_atomic_op(AtomicOp v) { put_bits<576, 4>(words, static_cast<std::uint64_t>(v)); }
  STRAIT_HD constexpr AtomicType atomic_type() const { return static_cast<AtomicType>(bits<584, 4>(words)); }
  STRAIT_HD constexpr void set_atomic_type(AtomicType v) { put_bits<584, 4>(words, static_cast<std::uint64_t>(v)); }
  STRAIT_HD constexpr CswapOp cswap_op() const { return static_cast<CswapOp>(bits<592, 3>(words)); }
  STRAIT_HD constexpr void set_cswap_op(CswapOp v) { put_bits<592, 3>(words, static_cast<std::uint64_t>(v)); }
  STRAIT_HD constexpr std::uint32_t write_lac() const { return bits<608, 3>(words); }
  STRAIT_HD constexpr void set_write_lac(std::uint32_t v) { put_bits<608, 3>(words, v); }
  STRAIT_HD constexpr std::uint64_t op2_word1() const { return bits<640, 64>(words); }
  STRAIT_HD constexpr void set_op2_word1(std::uint64_t v) { put_bits<640, 64>(words, v); }
  STRAIT_HD constexpr std::uint64_t op2_word2() const { return bits<704, 64>(words); }
  STRAIT_HD constexpr void set_op2_word2(std::uint64_t v) { put_bits<704, 64>(words, v); }
};
static_assert(sizeof(AmoDmaCmd) == 96 && std::is_trivial_v<AmoDmaCmd> && std::is_standard_layout_v<AmoDmaCmd>);

// ---- Immediate commands -------------------------------------------------------------------------------------------

inline constexpr std::uint32_t kMaxIdcPayloadRestricted = 224;
inline constexpr std::uint32_t kMaxIdcPayload = 192;
inline constexpr std::uint32_t kIdcHeaderBytes = 16;
inline constexpr std::uint32_t kIdcMessageHeaderBytes = 32;

// What the immediate commands after it have in common; it holds until the queue meets the next one. length is 32.
struct CStateCmd : InitiatorCmd<4> {
  STRAIT_HD constexpr std::uint32_t length() const { return bits<8, 8>(words); }
  STRAIT_HD constexpr void set_length(std::uint32_t v) { put_bits<8, 8>(words, v); }
  STRAIT_HD constexpr std::uint32_t write_lac() const { return bits<16, 3>(words); }
  STRAIT_HD constexpr void set_write_lac(std::uint32_t v) { put_bits<16, 3>(words, v); }
  STRAIT_HD constexpr std::uint32_t initiator() const { return bits<32, 32>(words); }
  STRAIT_HD constexpr void set_initiator(std::uint32_t v) { put_bits<32, 32>(words, v); }
  STRAIT_HD constexpr std::uint32_t index_ext() const { return bits<64, 5>(words); }
  STRAIT_HD constexpr void set_index_ext(std::uint32_t v) { put_bits<64, 5>(words, v); }
  STRAIT_HD constexpr std::uint64_t user_ptr() const { return bits<128, 64>(words); }
  STRAIT_HD constexpr void set_user_ptr(std::uint64_t v) { put_bits<128, 64>(words, v); }
};
static_assert(sizeof(CStateCmd) == 32 && std::is_trivial_v<CStateCmd> && std::is_standard_layout_v<CStateCmd>);

// The length counts header and payload. An immediate put is this header with up to 224 (restricted) or 192 bytes behind
// it.
template <std::size_t Words>
struct IdcWords : CmdWords<Words> {
  STRAIT_HD constexpr std::uint32_t length() const { return bits<8, 8>(this->words); }
  STRAIT_HD constexpr void set_length(std::uint32_t v) { put_bits<8, 8>(this->words, v); }
  STRAIT_HD constexpr std::uint32_t dfa() const { return bits<32, 32>(this->words); }
  STRAIT_HD constexpr void set_dfa(std::uint32_t v) { put_bits<32, 32>(this->words, v); }
  STRAIT_HD constexpr std::uint64_t remote_offset() const { return bits<64, 56>(this->words); }
  STRAIT_HD constexpr void set_remote_offset(std::uint64_t v) { put_bits<64, 56>(this->words, v); }
};

struct IdcHeader : IdcWords<2> {};
static_assert(sizeof(IdcHeader) == kIdcHeaderBytes && std::is_trivial_v<IdcHeader>);

// A non-fetching atomic of up to 8 bytes, neither CSWAP nor AXOR. length is 32.
struct IdcSmallAmoCmd : IdcWords<4> {
  STRAIT_HD constexpr AtomicOp atomic_op() const { return static_cast<AtomicOp>(bits<128, 4>(words)); }
  STRAIT_HD constexpr void set_atomic_op(AtomicOp v) { put_bits<128, 4>(words, static_cast<std::uint64_t>(v)); }
  STRAIT_HD constexpr AtomicType atomic_type() const { return static_cast<AtomicType>(bits<136, 4>(words)); }
  STRAIT_HD constexpr void set_atomic_type(AtomicType v) { put_bits<136, 4>(words, static_cast<std::uint64_t>(v)); }
  STRAIT_HD constexpr std::uint64_t op1_word1() const { return bits<192, 64>(words); }
  STRAIT_HD constexpr void set_op1_word1(std::uint64_t v) { put_bits<192, 64>(words, v); }
};
static_assert(sizeof(IdcSmallAmoCmd) == 32 && std::is_trivial_v<IdcSmallAmoCmd> &&
              std::is_standard_layout_v<IdcSmallAmoCmd>);

// The other atomics: fetching ones (result to local_addr with the LAC of the CSTATE), CSWAP, AXOR, 16-byte types.
// length is 64.
struct IdcAmoCmd : IdcWords<8> {
  STRAIT_HD constexpr std::uint64_t local_addr() const { return bits<128, 57>(words); }
  STRAIT_HD constexpr void set_local_addr(std::uint64_t v) { put_bits<128, 57>(words, v); }
  STRAIT_HD constexpr AtomicOp atomic_op() const { return static_cast<AtomicOp>(bits<192, 4>(words)); }
  STRAIT_HD constexpr void set_atomic_op(AtomicOp v) { put_bits<192, 4>(words, static_cast<std::uint64_t>(v)); }
  STRAIT_HD constexpr AtomicType atomic_type() const { return static_cast<AtomicType>(bits<200, 4>(words)); }
  STRAIT_HD constexpr void set_atomic_type(AtomicType v) { put_bits<200, 4>(words, static_cast<std::uint64_t>(v)); }
  STRAIT_HD constexpr CswapOp cswap_op() const { return static_cast<CswapOp>(bits<208, 3>(words)); }
  STRAIT_HD constexpr void set_cswap_op(CswapOp v) { put_bits<208, 3>(words, static_cast<std::uint64_t>(v)); }
  STRAIT_HD constexpr std::uint64_t op1_word1() const { return bits<256, 64>(words); }
  STRAIT_HD constexpr void set_op1_word1(std::uint64_t v) { put_bits<256, 64>(words, v); }
  STRAIT_HD constexpr std::uint64_t op1_word2() const { return bits<320, 64>(words); }
  STRAIT_HD constexpr void set_op1_word2(std::uint64_t v) { put_bits<320, 64>(words, v); }
  STRAIT_HD constexpr std::uint64_t op2_word1() const { return bits<384, 64>(words); }
  STRAIT_HD constexpr void set_op2_word1(std::uint64_t v) { put_bits<384, 64>(words, v); }
  STRAIT_HD constexpr std::uint64_t op2_word2() const { return bits<448, 64>(words); }
  STRAIT_HD constexpr void set_op2_word2(std::uint64_t v) { put_bits<448, 64>(words, v); }
};
static_assert(sizeof(IdcAmoCmd) == 64 && std::is_trivial_v<IdcAmoCmd> && std::is_standard_layout_v<IdcAmoCmd>);

// SMALL_MESSAGE: the payload follows the 32 bytes; the command takes 64 bytes at least.
struct IdcMsgHeader : CmdWords<4> {
  STRAIT_HD constexpr std::uint32_t length() const { return bits<8, 8>(words); }
  STRAIT_HD constexpr void set_length(std::uint32_t v) { put_bits<8, 8>(words, v); }
  STRAIT_HD constexpr std::uint32_t dfa() const { return bits<32, 32>(words); }
  STRAIT_HD constexpr void set_dfa(std::uint32_t v) { put_bits<32, 32>(words, v); }
  STRAIT_HD constexpr std::uint64_t match_bits() const { return bits<64, 64>(words); }
  STRAIT_HD constexpr void set_match_bits(std::uint64_t v) { put_bits<64, 64>(words, v); }
  STRAIT_HD constexpr std::uint64_t header_data() const { return bits<128, 64>(words); }
  STRAIT_HD constexpr void set_header_data(std::uint64_t v) { put_bits<128, 64>(words, v); }
  STRAIT_HD constexpr std::uint64_t user_ptr() const { return bits<192, 64>(words); }
  STRAIT_HD constexpr void set_user_ptr(std::uint64_t v) { put_bits<192, 64>(words, v); }
};
static_assert(sizeof(IdcMsgHeader) == 32 && std::is_trivial_v<IdcMsgHeader> && std::is_standard_layout_v<IdcMsgHeader>);
static_assert(sizeof(IdcMsgHeader) == kIdcMessageHeaderBytes);

// ---- Counters and triggered operations ----------------------------------------------------------------------------

// 24 bytes in a slot of 64. ct is the counter acted on, trig_ct the one that is watched. with_success and with_failure
// say which of the two values a SET or an INC means (the hardware calls them set_ct_success and set_ct_failure).
struct CtCmd : CmdWords<3> {
  STRAIT_HD constexpr std::uint32_t ct() const { return bits<16, 11>(words); }
  STRAIT_HD constexpr void set_ct(std::uint32_t v) { put_bits<16, 11>(words, v); }
  STRAIT_HD constexpr std::uint32_t trig_ct() const { return bits<32, 11>(words); }
  STRAIT_HD constexpr void set_trig_ct(std::uint32_t v) { put_bits<32, 11>(words, v); }
  STRAIT_HD constexpr std::uint32_t eq() const { return bits<48, 11>(words); }
  STRAIT_HD constexpr void set_eq(std::uint32_t v) { put_bits<48, 11>(words, v); }
  STRAIT_HD constexpr std::uint64_t ct_success() const { return bits<64, 48>(words); }
  STRAIT_HD constexpr void set_ct_success(std::uint64_t v) { put_bits<64, 48>(words, v); }
  STRAIT_HD constexpr std::uint32_t ct_failure() const { return bits<112, 7>(words); }
  STRAIT_HD constexpr void set_ct_failure(std::uint32_t v) { put_bits<112, 7>(words, v); }
  STRAIT_HD constexpr bool with_success() const { return bits<126, 1>(words); }
  STRAIT_HD constexpr void set_with_success(bool v) { put_bits<126, 1>(words, v); }
  STRAIT_HD constexpr bool with_failure() const { return bits<127, 1>(words); }
  STRAIT_HD constexpr void set_with_failure(bool v) { put_bits<127, 1>(words, v); }
  STRAIT_HD constexpr std::uint64_t threshold() const { return bits<128, 48>(words); }
  STRAIT_HD constexpr void set_threshold(std::uint64_t v) { put_bits<128, 48>(words, v); }
};
static_assert(sizeof(CtCmd) == 24 && std::is_trivial_v<CtCmd> && std::is_standard_layout_v<CtCmd>);

// TRIG_DMA, in a slot of 128 bytes: a whole DMA command, header and all, from byte 24 on.
struct TrigDmaCmd {
  CtCmd trigger;
  std::uint64_t dma[12];
};
inline constexpr std::uint32_t kEmbeddedDmaOffset = 24;
static_assert(sizeof(TrigDmaCmd) == 120 && std::is_trivial_v<TrigDmaCmd> && offsetof(TrigDmaCmd, trigger) == 0);
static_assert(offsetof(TrigDmaCmd, dma) == kEmbeddedDmaOffset && sizeof(TrigDmaCmd::dma) == sizeof(AmoDmaCmd));

// ---- The queue itself ---------------------------------------------------------------------------------------------

// FENCE and LCID; the second lies on a multiple of 128 bytes with a 64-byte NOOP of type cq behind it.
struct CqCmd : CmdWords<8> {
  STRAIT_HD constexpr std::uint32_t lcid() const { return bits<32, 4>(words); }
  STRAIT_HD constexpr void set_lcid(std::uint32_t v) { put_bits<32, 4>(words, v); }
};
static_assert(sizeof(CqCmd) == 64 && std::is_trivial_v<CqCmd> && std::is_standard_layout_v<CqCmd>);

// ---- Target queue -------------------------------------------------------------------------------------------------

inline constexpr std::uint32_t kLeEventCtBytes = 1u << 0;
inline constexpr std::uint32_t kLeEventCtOverflow = 1u << 1;
inline constexpr std::uint32_t kLeEventCtComm = 1u << 2;
inline constexpr std::uint32_t kLeEventUnlinkDisable = 1u << 3;
inline constexpr std::uint32_t kLeEventSuccessDisable = 1u << 4;
inline constexpr std::uint32_t kLeEventCommDisable = 1u << 5;
inline constexpr std::uint32_t kLeEventLinkDisable = 1u << 6;
inline constexpr std::uint32_t kLeUnrestrictedEndRo = 1u << 7;
inline constexpr std::uint32_t kLeUnrestrictedBodyRo = 1u << 8;
inline constexpr std::uint32_t kLeUnexpectedHdrDisable = 1u << 9;
inline constexpr std::uint32_t kLeUseOnce = 1u << 10;
inline constexpr std::uint32_t kLeNoTruncate = 1u << 11;
inline constexpr std::uint32_t kLeManageLocal = 1u << 12;
inline constexpr std::uint32_t kLeOpGet = 1u << 13;
inline constexpr std::uint32_t kLeOpPut = 1u << 14;

// APPEND, SEARCH, SEARCH_AND_DELETE and UNLINK.
struct TargetCmd : CmdWords<8> {
  STRAIT_HD constexpr PtlList ptl_list() const { return static_cast<PtlList>(bits<8, 2>(words)); }
  STRAIT_HD constexpr void set_ptl_list(PtlList v) { put_bits<8, 2>(words, static_cast<std::uint64_t>(v)); }
  STRAIT_HD constexpr std::uint32_t ptlte_index() const { return bits<16, 11>(words); }
  STRAIT_HD constexpr void set_ptlte_index(std::uint32_t v) { put_bits<16, 11>(words, v); }
  STRAIT_HD constexpr std::uint32_t flags() const { return bits<32, 15>(words); }
  STRAIT_HD constexpr void set_flags(std::uint32_t v) { put_bits<32, 15>(words, v); }
  STRAIT_HD constexpr bool event_ct_bytes() const { return bits<32, 1>(words); }
  STRAIT_HD constexpr void set_event_ct_bytes(bool v) { put_bits<32, 1>(words, v); }
  STRAIT_HD constexpr bool event_ct_overflow() const { return bits<33, 1>(words); }
  STRAIT_HD constexpr void set_event_ct_overflow(bool v) { put_bits<33, 1>(words, v); }
  STRAIT_HD constexpr bool event_ct_comm() const { return bits<34, 1>(words); }
  STRAIT_HD constexpr void set_event_ct_comm(bool v) { put_bits<34, 1>(words, v); }
  STRAIT_HD constexpr bool event_unlink_disable() const { return bits<35, 1>(words); }
  STRAIT_HD constexpr void set_event_unlink_disable(bool v) { put_bits<35, 1>(words, v); }
  STRAIT_HD constexpr bool event_success_disable() const { return bits<36, 1>(words); }
  STRAIT_HD constexpr void set_event_success_disable(bool v) { put_bits<36, 1>(words, v); }
  STRAIT_HD constexpr bool event_comm_disable() const { return bits<37, 1>(words); }
  STRAIT_HD constexpr void set_event_comm_disable(bool v) { put_bits<37, 1>(words, v); }
  STRAIT_HD constexpr bool event_link_disable() const { return bits<38, 1>(words); }
  STRAIT_HD constexpr void set_event_link_disable(bool v) { put_bits<38, 1>(words, v); }
  STRAIT_HD constexpr bool unrestricted_end_ro() const { return bits<39, 1>(words); }
  STRAIT_HD constexpr void set_unrestricted_end_ro(bool v) { put_bits<39, 1>(words, v); }
  STRAIT_HD constexpr bool unrestricted_body_ro() const { return bits<40, 1>(words); }
  STRAIT_HD constexpr void set_unrestricted_body_ro(bool v) { put_bits<40, 1>(words, v); }
  STRAIT_HD constexpr bool unexpected_hdr_disable() const { return bits<41, 1>(words); }
  STRAIT_HD constexpr void set_unexpected_hdr_disable(bool v) { put_bits<41, 1>(words, v); }
  STRAIT_HD constexpr bool use_once() const { return bits<42, 1>(words); }
  STRAIT_HD constexpr void set_use_once(bool v) { put_bits<42, 1>(words, v); }
  STRAIT_HD constexpr bool no_truncate() const { return bits<43, 1>(words); }
  STRAIT_HD constexpr void set_no_truncate(bool v) { put_bits<43, 1>(words, v); }
  STRAIT_HD constexpr bool manage_local() const { return bits<44, 1>(words); }
  STRAIT_HD constexpr void set_manage_local(bool v) { put_bits<44, 1>(words, v); }
  STRAIT_HD constexpr bool op_get() const { return bits<45, 1>(words); }
  STRAIT_HD constexpr void set_op_get(bool v) { put_bits<45, 1>(words, v); }
  STRAIT_HD constexpr bool op_put() const { return bits<46, 1>(words); }
  STRAIT_HD constexpr void set_op_put(bool v) { put_bits<46, 1>(words, v); }
  STRAIT_HD constexpr std::uint32_t ct() const { return bits<48, 11>(words); }
  STRAIT_HD constexpr void set_ct(std::uint32_t v) { put_bits<48, 11>(words, v); }
  STRAIT_HD constexpr std::uint32_t buffer_id() const { return bits<64, 16>(words); }
  STRAIT_HD constexpr void set_buffer_id(std::uint32_t v) { put_bits<64, 16>(words, v); }
  STRAIT_HD constexpr std::uint32_t lac() const { return bits<80, 3>(words); }
  STRAIT_HD constexpr void set_lac(std::uint32_t v) { put_bits<80, 3>(words, v); }
  STRAIT_HD constexpr bool restart_seq() const { return bits<88, 1>(words); }
  STRAIT_HD constexpr void set_restart_seq(bool v) { put_bits<88, 1>(words, v); }
  STRAIT_HD constexpr std::uint64_t start() const { return bits<128, 57>(words); }
  STRAIT_HD constexpr void set_start(std::uint64_t v) { put_bits<128, 57>(words, v); }
  STRAIT_HD constexpr std::uint64_t length() const { return bits<192, 56>(words); }
  STRAIT_HD constexpr void set_length(std::uint64_t v) { put_bits<192, 56>(words, v); }
  STRAIT_HD constexpr std::uint32_t min_free() const { return bits<256, 24>(words); }
  STRAIT_HD constexpr void set_min_free(std::uint32_t v) { put_bits<256, 24>(words, v); }
  STRAIT_HD constexpr std::uint32_t match_id() const { return bits<288, 32>(words); }
  STRAIT_HD constexpr void set_match_id(std::uint32_t v) { put_bits<288, 32>(words, v); }
  STRAIT_HD constexpr std::uint64_t match_bits() const { return bits<320, 64>(words); }
  STRAIT_HD constexpr void set_match_bits(std::uint64_t v) { put_bits<320, 64>(words, v); }
  STRAIT_HD constexpr std::uint64_t ignore_bits() const { return bits<384, 64>(words); }
  STRAIT_HD constexpr void set_ignore_bits(std::uint64_t v) { put_bits<384, 64>(words, v); }
};
static_assert(sizeof(TargetCmd) == 64 && std::is_trivial_v<TargetCmd> && std::is_standard_layout_v<TargetCmd>);

struct SetStateCmd : CmdWords<8> {
  STRAIT_HD constexpr PteState ptlte_state() const { return static_cast<PteState>(bits<8, 3>(words)); }
  STRAIT_HD constexpr void set_ptlte_state(PteState v) { put_bits<8, 3>(words, static_cast<std::uint64_t>(v)); }
  STRAIT_HD constexpr std::uint32_t ptlte_index() const { return bits<16, 11>(words); }
  STRAIT_HD constexpr void set_ptlte_index(std::uint32_t v) { put_bits<16, 11>(words, v); }
  STRAIT_HD constexpr std::uint64_t current_addr() const { return bits<64, 57>(words); }
  STRAIT_HD constexpr void set_current_addr(std::uint64_t v) { put_bits<64, 57>(words, v); }
  STRAIT_HD constexpr std::uint32_t drop_count() const { return bits<128, 24>(words); }
  STRAIT_HD constexpr void set_drop_count(std::uint32_t v) { put_bits<128, 24>(words, v); }
};
static_assert(sizeof(SetStateCmd) == 64 && std::is_trivial_v<SetStateCmd> && std::is_standard_layout_v<SetStateCmd>);

}  // namespace strait::wire::cxi
