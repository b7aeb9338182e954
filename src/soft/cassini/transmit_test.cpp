// SPDX-License-Identifier: Apache-2.0
// The initiator: what a command becomes as a request, which events it makes, and what it counts.
#include "soft/cassini/transmit.hpp"

#include <gtest/gtest.h>

#include "soft/cassini/engine_testing.hpp"

namespace strait::soft::cassini {
namespace {

using bench::put;
using bench::Rig;
using wire::CmdSize;
using wire::CmdType;
using wire::DmaOp;
using wire::EventType;
using wire::ReturnCode;

// A client with one queue, one event queue and one counter.
struct Sender : Rig {
  std::unique_ptr<bench::Queue> told = events();
  std::unique_ptr<Counter> counted = counter();
  std::unique_ptr<bench::Ring> ring = queue(true, false, told->eq);

  template <class Command>
  void run(Command command) {
    command.set_eq(told->eq->id);
    command.set_ct(counted->ct->id);
    post(command);
  }
  template <class Command>
  void post(const Command& command) {
    ring->emit(command);
    ring->ring();
    drive();
  }
  const wire::InitiatorShort* event() {
    return static_cast<const wire::InitiatorShort*>(static_cast<const void*>(told->next()));
  }
};

void expect_event(Sender& sender, EventType type, ReturnCode code, std::uint64_t user_ptr, std::uint32_t mlength) {
  const wire::InitiatorShort* const event = sender.event();
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(event->event_type(), type);
  EXPECT_EQ(event->return_code(), code);
  EXPECT_EQ(event->user_ptr(), user_ptr);
  EXPECT_EQ(event->mlength(), mlength);
}

TEST(CassiniTransmit, APutCarriesEverythingItSays) {
  Sender sender;
  std::memcpy(sender.memory.at(40), "abcdefgh", 8);
  auto command = put(Rig::kIova + 40, 8, wire::kEventSendDisable | wire::kRestricted | wire::kFlush);
  command.set_index_ext(17);
  command.set_remote_offset(0x123456789abcdull);
  command.set_initiator(0xdeadbeef);
  command.set_match_bits(0x1111222233334444ull);
  command.set_header_data(0x5555666677778888ull);
  command.set_user_ptr(0x9999aaaabbbbccccull);
  sender.run(command);
  ASSERT_EQ(sender.card->requests.size(), 1u);
  const Request& request = sender.card->requests[0];
  EXPECT_EQ(request.op, DmaOp::put);
  EXPECT_TRUE(request.restricted);
  EXPECT_TRUE(request.flush);
  EXPECT_FALSE(request.no_match_command);
  EXPECT_EQ(request.source_nid, Rig::kNid);
  EXPECT_EQ(request.vni, Rig::kVni);
  EXPECT_EQ(request.endpoint, 0x123u);
  EXPECT_EQ(request.index_ext, 17u);
  EXPECT_EQ(request.initiator, 0xdeadbeefu);
  EXPECT_EQ(request.match_bits, 0x1111222233334444ull);
  EXPECT_EQ(request.header_data, 0x5555666677778888ull);
  EXPECT_EQ(request.remote_offset, 0x123456789abcdull);
  EXPECT_EQ(request.length, 8u);
  EXPECT_EQ(std::memcmp(sender.card->payloads[0].data(), "abcdefgh", 8), 0);
  expect_event(sender, EventType::ack, ReturnCode::ok, 0x9999aaaabbbbccccull, 8);
  EXPECT_EQ(sender.event(), nullptr);
  EXPECT_EQ(sender.counted->ct->success, 0u) << "not asked to count";
}

TEST(CassiniTransmit, EventFlagsOfAPut) {
  const struct {
    std::uint32_t flags;
    bool send, ack;
    std::uint64_t count;
  } rows[] = {
      {0, true, true, 0},
      {wire::kEventSendDisable, false, true, 0},
      {wire::kEventSuccessDisable, false, false, 0},
      {wire::kEventCtSend, true, true, 1},
      {wire::kEventCtAck | wire::kEventSuccessDisable, false, false, 1},
      {wire::kEventCtReply, true, true, 0},
      {wire::kEventCtSend | wire::kEventCtAck, true, true, 2},
      {wire::kEventCtAck | wire::kEventCtBytes, true, true, 24},
      {wire::kGetWithLocalFlag, true, true, 0},
  };
  for (const auto& row : rows) {
    Sender sender;
    sender.run(put(Rig::kIova, 24, row.flags));
    if (row.send) expect_event(sender, EventType::send, ReturnCode::ok, 0, 24);
    if (row.ack) expect_event(sender, EventType::ack, ReturnCode::ok, 0, 24);
    EXPECT_EQ(sender.event(), nullptr) << row.flags;
    EXPECT_EQ(sender.counted->ct->success, row.count) << row.flags;
    EXPECT_EQ(sender.counted->ct->failure, 0u);
  }
}

TEST(CassiniTransmit, ErrorsAreToldWhateverIsDisabled) {
  Sender sender;
  sender.card->answer.code = ReturnCode::ptlte_not_found;
  sender.run(put(Rig::kIova, 8, wire::kEventSuccessDisable | wire::kEventCtAck));
  expect_event(sender, EventType::ack, ReturnCode::ptlte_not_found, 0, 0);
  EXPECT_EQ(sender.counted->ct->failure, 1u);
  EXPECT_EQ(sender.counted->ct->success, 0u);
  EXPECT_TRUE(sender.counted->stored().written()) << "the first failure is written back";
  EXPECT_EQ(sender.counted->stored().failure(), 1u);
  // A counter of what was sent does not see what the target says.
  sender.run(put(Rig::kIova, 8, wire::kEventCtSend));
  EXPECT_EQ(sender.counted->ct->success, 1u);
  EXPECT_EQ(sender.counted->ct->failure, 1u);
  EXPECT_FALSE(sender.ring->cq->failed) << "an operation that fails is not a bad command";
}

TEST(CassiniTransmit, WhatDoesNotLeaveTheCard) {
  Sender sender;
  sender.map(0x9000000, 0, 4096, wire::kMapWrite);
  auto command = put(0x9000000, 8, wire::kEventCtSend);
  sender.run(command);
  expect_event(sender, EventType::ack, ReturnCode::page_perm_error, 0, 0);
  EXPECT_EQ(sender.counted->ct->failure, 1u);
  command.set_local_addr(0x1000);
  sender.run(command);
  expect_event(sender, EventType::ack, ReturnCode::no_translation, 0, 0);
  command.set_lac(7);
  sender.run(command);
  expect_event(sender, EventType::ack, ReturnCode::invalid_ac, 0, 0);
  EXPECT_TRUE(sender.card->requests.empty());
  command.set_request_len(0);
  sender.run(command);
  EXPECT_EQ(sender.card->requests.size(), 1u) << "of no bytes none has to be mapped";
}

TEST(CassiniTransmit, TheTargetCountsWhatItWasAsked) {
  Sender sender;
  const Tally& tally = sender.card->tally;
  sender.run(put(Rig::kIova, 8));
  EXPECT_EQ(tally.landed.load(), 1u);
  EXPECT_EQ(tally.flushes.load(), 0u);
  EXPECT_EQ(tally.restricted.load(), 0u);
  sender.run(put(Rig::kIova, 8, wire::kFlush));
  EXPECT_EQ(tally.flushes.load(), 1u);
  sender.run(put(Rig::kIova, 8, wire::kRestricted));
  EXPECT_EQ(tally.restricted.load(), 1u);
  EXPECT_EQ(tally.landed.load(), 3u);
  auto nowhere = put(Rig::kIova, 8, wire::kFlush);
  nowhere.set_dfa(wire::unicast_dfa(0x999, 1));
  sender.run(nowhere);
  EXPECT_EQ(tally.flushes.load(), 1u) << "it was nobody's";
}

TEST(CassiniTransmit, AddressesThatLeadNowhere) {
  Sender sender;
  auto command = put(Rig::kIova, 8);
  command.set_dfa(wire::unicast_dfa(0x999, 1));
  sender.run(command);
  expect_event(sender, EventType::ack, ReturnCode::undeliverable, 0, 0);
  command.set_dfa(wire::multicast_dfa(3, 0));
  sender.run(command);
  expect_event(sender, EventType::ack, ReturnCode::invalid_dfa_format, 0, 0);
}

TEST(CassiniTransmit, LongEventsHaveATime) {
  Sender sender;
  sender.told->eq->flags = wire::kEqInitLong;
  auto command = put(Rig::kIova, 8);
  command.set_user_ptr(77);
  sender.run(command);
  const auto* const event = static_cast<const wire::InitiatorLong*>(static_cast<const void*>(sender.told->next()));
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(event->event_size(), wire::EventSize::b32);
  EXPECT_EQ(event->user_ptr(), 77u);
  EXPECT_EQ(event->return_code(), ReturnCode::ok);
  EXPECT_NE(event->timestamp_sec(), 0u);
}

TEST(CassiniTransmit, AGetBringsAReply) {
  Sender sender;
  sender.card->meanwhile = [&](const Request& request) {
    ASSERT_EQ(write(request.local, "0123456789abcdef", 16), ReturnCode::ok);
  };
  auto command = put(Rig::kIova + 256, 16, wire::kEventCtReply | wire::kUseOffsetForGet);
  command.set_header(CmdType::dma, CmdSize::b64, DmaOp::get);
  sender.run(command);
  expect_event(sender, EventType::reply, ReturnCode::ok, 0, 16);
  EXPECT_EQ(sender.event(), nullptr) << "a get sends no SEND";
  EXPECT_EQ(sender.counted->ct->success, 1u);
  EXPECT_TRUE(sender.card->requests[0].use_offset_for_get);
  EXPECT_EQ(std::memcmp(sender.memory.at(256), "0123456789abcdef", 16), 0);
  sender.map(0x9000000, 0, 4096, wire::kMapRead);
  command.set_local_addr(0x9000000);
  sender.run(command);
  expect_event(sender, EventType::reply, ReturnCode::page_perm_error, 0, 0);
}

TEST(CassiniTransmit, ARendezvousSendsItsFirstPart) {
  Sender sender;
  sender.card->answer.rendezvous = true;
  auto command = put(Rig::kIova, 5000);
  command.set_header(CmdType::dma, CmdSize::b64, DmaOp::rendezvous_put);
  command.set_eager_length(100);
  command.set_rendezvous_id(0x5a);
  sender.run(command);
  const Request& request = sender.card->requests[0];
  EXPECT_EQ(request.op, DmaOp::rendezvous_put);
  EXPECT_EQ(request.length, 5000u);
  EXPECT_EQ(request.eager_length, 100u);
  EXPECT_EQ(request.rendezvous_id, 0x5a);
  EXPECT_EQ(sender.card->payloads[0].size(), 100u);
  const wire::InitiatorShort* const event = sender.event();
  ASSERT_NE(event, nullptr);
  EXPECT_TRUE(event->rendezvous());
}

TEST(CassiniTransmit, NoMatchCommandsTellOnlyErrors) {
  Sender sender;
  wire::NomatchDmaCmd command{};
  command.set_header(CmdType::dma, CmdSize::b32, DmaOp::nomatch_put);
  command.set_lac(Rig::kLac);
  command.set_dfa(wire::unicast_dfa(Rig::kNid, 1));
  command.set_local_addr(Rig::kIova);
  command.set_request_len(32);
  command.set_event_ct_ack(true);
  sender.run(command);
  EXPECT_EQ(sender.event(), nullptr);
  EXPECT_EQ(sender.counted->ct->success, 1u);
  EXPECT_TRUE(sender.card->requests[0].restricted) << "whatever the bit says";
  EXPECT_TRUE(sender.card->requests[0].no_match_command);
  command.set_header(CmdType::dma, CmdSize::b32, DmaOp::nomatch_get);
  sender.run(command);
  EXPECT_EQ(sender.card->requests[1].op, DmaOp::get);
  sender.card->answer.code = ReturnCode::no_match;
  sender.run(command);
  expect_event(sender, EventType::reply, ReturnCode::no_match, 0, 0);
}

wire::AmoDmaCmd atomic(bool fetching) {
  wire::AmoDmaCmd command{};
  command.set_header(CmdType::dma, CmdSize::b128, fetching ? DmaOp::fetching_atomic : DmaOp::atomic);
  command.set_lac(Rig::kLac);
  command.set_write_lac(Rig::kLac);
  command.set_dfa(wire::unicast_dfa(Rig::kNid, 1));
  command.set_local_addr(Rig::kIova);
  command.set_local_write_addr(Rig::kIova + 64);
  command.set_request_len(16);
  command.set_atomic_op(wire::AtomicOp::cswap);
  command.set_atomic_type(wire::AtomicType::uint128);
  command.set_op2_word1(3);
  command.set_op2_word2(4);
  command.set_event_send_disable(true);
  return command;
}

TEST(CassiniTransmit, AtomicsReadOneOperandFromMemory) {
  Sender sender;
  sender.memory.value<std::uint64_t>(0) = 1;
  sender.memory.value<std::uint64_t>(8) = 2;
  auto command = atomic(false);
  command.set_cswap_op(wire::CswapOp::eq);
  command.set_user_ptr(5);
  command.set_event_ct_ack(true);
  sender.run(command);
  const Request& request = sender.card->requests[0];
  EXPECT_EQ(request.op, DmaOp::atomic);
  EXPECT_EQ(request.operand1[0], 1u);
  EXPECT_EQ(request.operand1[1], 2u);
  EXPECT_EQ(request.operand2[0], 3u);
  EXPECT_EQ(request.operand2[1], 4u);
  EXPECT_EQ(request.length, 16u);
  expect_event(sender, EventType::ack, ReturnCode::ok, 5, 16);
  EXPECT_EQ(sender.counted->ct->success, 1u);
}

TEST(CassiniTransmit, AFetchedValueComesBack) {
  Sender sender;
  sender.card->answer.fetched[0] = 70;
  sender.card->answer.fetched[1] = 71;
  auto command = atomic(true);
  command.set_event_ct_reply(true);
  sender.run(command);
  expect_event(sender, EventType::reply, ReturnCode::ok, 0, 16);
  EXPECT_EQ(sender.event(), nullptr);
  EXPECT_EQ(sender.counted->ct->success, 1u);
  EXPECT_EQ(sender.memory.value<std::uint64_t>(64), 70u);
  EXPECT_EQ(sender.memory.value<std::uint64_t>(72), 71u);
  // Nothing happens at the target when the result has no place.
  command.set_write_lac(1);
  sender.run(command);
  expect_event(sender, EventType::reply, ReturnCode::invalid_ac, 0, 0);
  EXPECT_EQ(sender.card->requests.size(), 1u);
}

TEST(CassiniTransmit, AtomicsThatDoNotExist) {
  Sender sender;
  auto command = atomic(false);
  command.set_atomic_op(wire::AtomicOp::sum);
  sender.run(command);
  expect_event(sender, EventType::ack, ReturnCode::amo_inval_op_error, 0, 0);
  command.set_atomic_type(static_cast<wire::AtomicType>(15));
  sender.run(command);
  expect_event(sender, EventType::ack, ReturnCode::amo_inval_op_error, 0, 0);
  command = atomic(false);
  command.set_request_len(8);
  sender.run(command);
  expect_event(sender, EventType::ack, ReturnCode::amo_length_error, 0, 0);
  EXPECT_TRUE(sender.card->requests.empty());
}

wire::CStateCmd state(Sender& sender, std::uint32_t flags) {
  wire::CStateCmd command{};
  command.set_header(CmdType::idc, CmdSize::b32, DmaOp::cstate);
  command.set_length(32);
  command.set_flags(flags);
  command.set_write_lac(Rig::kLac);
  command.set_initiator(0x1234);
  command.set_index_ext(9);
  command.set_user_ptr(0xabc);
  command.set_eq(sender.told->eq->id);
  command.set_ct(sender.counted->ct->id);
  return command;
}

std::vector<std::uint64_t> immediate(DmaOp op, CmdSize size, std::uint32_t length) {
  std::vector<std::uint64_t> words(wire::bytes_of(size) / 8);
  for (std::size_t i = 2; i < words.size(); ++i) words[i] = 0x0101010101010101ull * i;
  words[0] =
      wire::header_byte(CmdType::idc, size, op) | length << 8 | std::uint64_t{wire::unicast_dfa(Rig::kNid, 4)} << 32;
  words[1] = 0x777;
  return words;
}

TEST(CassiniTransmit, TheStateStaysUntilTheNext) {
  Sender sender;
  sender.post(state(sender, wire::kEventSendDisable | wire::kEventCtAck));
  for (int i = 0; i < 2; ++i) {
    sender.ring->emit_words(immediate(DmaOp::put, CmdSize::b64, 16 + 40), 64);
    sender.ring->ring();
    sender.drive();
    expect_event(sender, EventType::ack, ReturnCode::ok, 0xabc, 40);
  }
  EXPECT_EQ(sender.counted->ct->success, 2u);
  const Request& request = sender.card->requests[1];
  EXPECT_EQ(request.op, DmaOp::put);
  EXPECT_EQ(request.index_ext, 9u);
  EXPECT_EQ(request.initiator, 0x1234u);
  EXPECT_EQ(request.remote_offset, 0x777u);
  EXPECT_EQ(request.endpoint, 4u);
  EXPECT_EQ(sender.card->payloads[1].size(), 40u);
  EXPECT_EQ(sender.card->payloads[1][0], std::byte{2});
  EXPECT_EQ(sender.card->payloads[1][39], std::byte{6});
  sender.post(state(sender, wire::kEventSuccessDisable | wire::kEventSendDisable | wire::kRestricted));
  sender.ring->emit_words(immediate(DmaOp::put, CmdSize::b32, 16), 32);
  sender.ring->ring();
  sender.drive();
  EXPECT_EQ(sender.event(), nullptr);
  EXPECT_TRUE(sender.card->requests[2].restricted);
  EXPECT_EQ(sender.card->requests[2].length, 0u);
}

TEST(CassiniTransmit, HowMuchAnImmediatePutCarries) {
  const struct {
    bool restricted;
    CmdSize size;
    std::uint32_t length;
    bool good;
  } rows[] = {{true, CmdSize::b256, 16 + 224, true},  {true, CmdSize::b256, 16 + 225, false},
              {false, CmdSize::b256, 16 + 192, true}, {false, CmdSize::b256, 16 + 193, false},
              {false, CmdSize::b32, 33, false},       {false, CmdSize::b32, 15, false},
              {false, CmdSize::b32, 32, true}};
  for (const auto& row : rows) {
    Sender sender;
    sender.post(state(sender, wire::kEventSendDisable | (row.restricted ? wire::kRestricted : 0)));
    sender.ring->emit_words(immediate(DmaOp::put, row.size, row.length), wire::bytes_of(row.size));
    sender.ring->ring();
    sender.drive();
    EXPECT_EQ(sender.ring->cq->failed, !row.good) << row.length;
    if (!row.good) {
      EXPECT_EQ(sender.ring->status().return_code(), ReturnCode::cmd_invalid_arg);
    }
  }
}

TEST(CassiniTransmit, SmallMessagesMatch) {
  Sender sender;
  sender.post(state(sender, wire::kEventSendDisable));
  auto words = immediate(DmaOp::small_message, CmdSize::b128, 32 + 70);
  words[1] = 0x1122;
  words[2] = 0x3344;
  words[3] = 0x5566;
  sender.ring->emit_words(words, 128);
  sender.ring->ring();
  sender.drive();
  const Request& request = sender.card->requests[0];
  EXPECT_EQ(request.op, DmaOp::small_message);
  EXPECT_EQ(request.match_bits, 0x1122u);
  EXPECT_EQ(request.header_data, 0x3344u);
  EXPECT_EQ(request.length, 70u);
  EXPECT_EQ(sender.card->payloads[0][0], std::byte{4});
  expect_event(sender, EventType::ack, ReturnCode::ok, 0x5566, 70);
  // 64 bytes at least.
  sender.ring->emit_words(immediate(DmaOp::small_message, CmdSize::b32, 32), 32);
  sender.ring->ring();
  sender.drive();
  EXPECT_TRUE(sender.ring->cq->failed);
}

TEST(CassiniTransmit, ImmediateAtomicsOfTwoSizes) {
  Sender sender;
  sender.post(state(sender, wire::kEventSendDisable));
  wire::IdcSmallAmoCmd small{};
  small.set_header(CmdType::idc, CmdSize::b32, DmaOp::atomic);
  small.set_length(32);
  small.set_dfa(wire::unicast_dfa(Rig::kNid, 1));
  small.set_remote_offset(24);
  small.set_atomic_op(wire::AtomicOp::sum);
  small.set_atomic_type(wire::AtomicType::uint64);
  small.set_op1_word1(99);
  sender.post(small);
  EXPECT_EQ(sender.card->requests[0].operand1[0], 99u);
  EXPECT_EQ(sender.card->requests[0].remote_offset, 24u);
  expect_event(sender, EventType::ack, ReturnCode::ok, 0xabc, 8);

  wire::IdcAmoCmd large{};
  large.set_header(CmdType::idc, CmdSize::b64, DmaOp::fetching_atomic);
  large.set_length(64);
  large.set_dfa(wire::unicast_dfa(Rig::kNid, 1));
  large.set_local_addr(Rig::kIova + 512);
  large.set_atomic_op(wire::AtomicOp::cswap);
  large.set_atomic_type(wire::AtomicType::int32);
  large.set_cswap_op(wire::CswapOp::ge);
  large.set_op1_word1(1);
  large.set_op2_word1(2);
  sender.card->answer.fetched[0] = 0xffffffff12345678ull;
  sender.post(large);
  EXPECT_EQ(sender.card->requests[1].cswap_op, wire::CswapOp::ge);
  expect_event(sender, EventType::reply, ReturnCode::ok, 0xabc, 4);
  EXPECT_EQ(sender.memory.value<std::uint64_t>(512), 0x12345678u) << "four bytes, not more";

  small.set_atomic_op(wire::AtomicOp::axor);
  sender.post(small);
  EXPECT_TRUE(sender.ring->cq->failed) << "no room for a second operand";
}

TEST(CassiniTransmit, CommandsThatNobodyServes) {
  const struct {
    CmdType type;
    CmdSize size;
    DmaOp op;
    ReturnCode code;
  } rows[] = {
      {CmdType::dma, CmdSize::b128, DmaOp::ethernet_tx, ReturnCode::illegal_op},
      {CmdType::idc, CmdSize::b128, DmaOp::ethernet_tx, ReturnCode::illegal_op},
      {CmdType::dma, CmdSize::b64, DmaOp::reduction, ReturnCode::hrp_config_error},
      {CmdType::idc, CmdSize::b64, DmaOp::reduction, ReturnCode::hrp_config_error},
      {CmdType::dma, CmdSize::b64, DmaOp::small_message, ReturnCode::illegal_op},
      {CmdType::dma, CmdSize::b64, static_cast<DmaOp>(15), ReturnCode::illegal_op},
      {CmdType::idc, CmdSize::b64, DmaOp::get, ReturnCode::illegal_op},
      {CmdType::dma, CmdSize::b32, DmaOp::put, ReturnCode::cmd_invalid_arg},
      {CmdType::dma, CmdSize::b64, DmaOp::atomic, ReturnCode::cmd_invalid_arg},
      {CmdType::dma, CmdSize::b64, DmaOp::nomatch_put, ReturnCode::cmd_invalid_arg},
      {CmdType::idc, CmdSize::b64, DmaOp::cstate, ReturnCode::cmd_invalid_arg},
      {CmdType::idc, CmdSize::b128, DmaOp::atomic, ReturnCode::cmd_invalid_arg},
      {CmdType::dma, CmdSize::b64, DmaOp::close, ReturnCode::ok},
      {CmdType::dma, CmdSize::b64, DmaOp::clear, ReturnCode::ok},
      {CmdType::dma, CmdSize::b64, DmaOp::noop, ReturnCode::ok},
  };
  for (const auto& row : rows) {
    Sender sender;
    std::vector<std::uint64_t> words(32);
    words[0] = wire::header_byte(row.type, row.size, row.op);
    sender.ring->emit_words(words, wire::bytes_of(row.size));
    sender.ring->ring();
    sender.drive();
    EXPECT_EQ(sender.ring->status().return_code(), row.code) << static_cast<int>(words[0]);
    EXPECT_TRUE(sender.card->requests.empty());
  }
}

TEST(CassiniTransmit, ObjectsOfOthersDoNotExist) {
  Sender sender;
  Lni* const stranger = sender.card->lnis.make();
  auto theirs = sender.events();
  theirs->eq->lni = stranger;
  auto command = put(Rig::kIova, 8, wire::kEventCtAck);
  command.set_eq(theirs->eq->id);
  sender.post(command);
  EXPECT_TRUE(sender.ring->cq->failed);
  EXPECT_EQ(sender.ring->status().return_code(), ReturnCode::invalid_event);
  EXPECT_EQ(theirs->next(), nullptr);

  Sender other;
  auto counter = other.counter();
  counter->ct->lni = other.card->lnis.make();
  command.set_eq(0);
  command.set_ct(counter->ct->id);
  other.post(command);
  EXPECT_EQ(other.ring->status().return_code(), ReturnCode::invalid_event);
  EXPECT_EQ(counter->ct->success, 0u);
}

TEST(CassiniTransmit, WithoutQueueOrCounterNothingIsTold) {
  Sender sender;
  sender.post(put(Rig::kIova, 8, wire::kEventCtAck));
  EXPECT_EQ(sender.card->requests.size(), 1u);
  EXPECT_EQ(sender.event(), nullptr);
  EXPECT_FALSE(sender.ring->cq->failed);
}

}  // namespace
}  // namespace strait::soft::cassini
