// SPDX-License-Identifier: Apache-2.0
// Structs with their size in front: one that is too short is of another version, or was never filled in. It is refused
// with its name, or left alone; nothing is written behind its end.
#include <cstddef>
#include <cstring>

#include "flow.hpp"

namespace strait::flow {
namespace {

// As the C interface is called, with room for the sentence.
struct Said {
  Said() { error.struct_size = sizeof error; }
  strait_error* operator&() { return &error; }  // NOLINT
  [[nodiscard]] std::string text() const { return error.text; }
  strait_error error{};
};

template <class T>
T filled_with(unsigned char byte) {
  T value;
  std::memset(static_cast<void*>(&value), byte, sizeof value);
  return value;
}
template <class T>
bool same_bytes(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

std::string sizes(const char* name, std::size_t is, std::size_t wanted) {
  return std::string(name) + ".struct_size is " + std::to_string(is) + ", not " + std::to_string(wanted);
}

TEST(ShortStructs, OfANode) {
  strait_node_options options{};
  options.struct_size = sizeof options - 1;
  Said said;
  auto* const before = reinterpret_cast<strait_node*>(8);
  strait_node* node = before;
  EXPECT_EQ(strait_node_open(&options, &node, &said), STRAIT_INVALID);
  EXPECT_EQ(said.text(), sizes("strait_node_options", sizeof options - 1, sizeof options));
  EXPECT_EQ(node, before) << "outputs are written only on success";
}

class ShortStruct : public testing::Test {
 protected:
  Pair pair;
  Block target{pair.owner, "host", 4096, access::all};
  Block local{pair.asker, "host", 4096, access::local};
  Published published = pair.owner.publish("block", target.region).value();
  Target place = pair.far.lookup("block").value();
  strait_slice from = local.region.slice(0, 8).raw;
  strait_target at = place.raw();
  Lane lane = pair.far.lane().value();
};

TEST_F(ShortStruct, OptionsOfAnOperation) {
  strait_op_options options{};
  options.struct_size = sizeof options - 1;
  options.flags = STRAIT_FENCE;
  const std::string says = sizes("strait_op_options", sizeof options - 1, sizeof options);
  const strait_op before = {reinterpret_cast<strait_lane*>(8), 77};
  const strait_item item{STRAIT_PUT, 0, from, &at, 0};
  const std::vector<std::function<std::int32_t(strait_op*, strait_error*)>> calls = {
      [&](auto* op, auto* error) { return strait_put(lane.raw(), &from, &at, 0, &options, op, error); },
      [&](auto* op, auto* error) { return strait_get(lane.raw(), &from, &at, 0, &options, op, error); },
      [&](auto* op, auto* error) { return strait_fetch_add(lane.raw(), &at, 0, 1, &options, op, error); },
      [&](auto* op, auto* error) { return strait_compare_swap(lane.raw(), &at, 0, 0, 1, &options, op, error); },
      [&](auto* op, auto* error) { return strait_send(lane.raw(), &from, &options, op, error); },
      [&](auto* op, auto* error) { return strait_batch(lane.raw(), &item, 1, &options, op, error); },
  };
  target.fill(std::vector<std::uint8_t>(16, 0));
  local.fill(std::vector<std::uint8_t>(16, 0x33));
  for (std::size_t i = 0; i < calls.size(); ++i) {
    strait_op op = before;
    Said said;
    EXPECT_EQ(calls[i](&op, &said), STRAIT_INVALID) << i;
    EXPECT_EQ(said.text(), says) << i;
    EXPECT_TRUE(op.lane == before.lane && op.id == before.id) << i;
  }
  EXPECT_EQ(strait_flush(lane.raw(), 5'000'000'000, nullptr), STRAIT_OK);
  EXPECT_EQ(target.word(0), 0u) << "nothing was posted";
  options.struct_size = sizeof options;
  strait_op op{};
  Said said;
  ASSERT_EQ(calls[0](&op, &said), STRAIT_OK) << said.text();
  EXPECT_EQ(strait_wait(&op, 5'000'000'000, nullptr, nullptr), STRAIT_OK);
}

TEST_F(ShortStruct, OptionsOfALane) {
  strait_lane_options options{};
  options.depth = 8;
  options.signal_every = 77;
  options.struct_size = offsetof(strait_lane_options, signal_every) - 1;
  Said said;
  strait_lane* opened = nullptr;
  EXPECT_EQ(strait_lane_open(pair.far.raw(), &options, -1, &opened, &said), STRAIT_INVALID);
  EXPECT_EQ(said.text(),
            "strait_lane_options.struct_size is " + std::to_string(options.struct_size) + ", which is too small");
  EXPECT_EQ(opened, nullptr);
  options.struct_size = offsetof(strait_lane_options, signal_every);  // as it was before signal_every came
  ASSERT_EQ(strait_lane_open(pair.far.raw(), &options, -1, &opened, &said), STRAIT_OK) << said.text();
  strait_lane_close(opened);
}

TEST_F(ShortStruct, ATargetToFillIn) {
  auto out = filled_with<strait_target>(0xa5);
  out.struct_size = sizeof out - 1;
  const strait_target before = out;
  const std::string says = sizes("strait_target", sizeof out - 1, sizeof out);
  Said looked_up;
  EXPECT_EQ(strait_lookup(pair.far.raw(), "block", -1, &out, &looked_up), STRAIT_INVALID);
  EXPECT_EQ(looked_up.text(), says);
  const Ticket ticket = target.region.ticket(access::remote_read).value();
  Said redeemed;
  EXPECT_EQ(strait_redeem(pair.far.raw(), &ticket.raw, -1, &out, &redeemed), STRAIT_INVALID);
  EXPECT_EQ(redeemed.text(), says);
  EXPECT_TRUE(same_bytes(out, before));
}

TEST_F(ShortStruct, WhatBecameOfAnOperation) {
  for (const bool by_test : {false, true}) {
    auto done = filled_with<strait_done>(0xa5);
    done.struct_size = sizeof done - 1;
    const strait_done before = done;
    strait_op op{};
    ASSERT_EQ(strait_fetch_add(lane.raw(), &at, 0, 1, nullptr, &op, nullptr), STRAIT_OK);
    std::int32_t code = STRAIT_AGAIN;
    const auto until = std::chrono::steady_clock::now() + 5s;
    if (!by_test) code = strait_wait(&op, 5'000'000'000, &done, nullptr);
    while (by_test && code == STRAIT_AGAIN && std::chrono::steady_clock::now() < until)
      code = strait_test(&op, &done, nullptr);
    EXPECT_EQ(code, STRAIT_OK) << "the operation is complete, whoever is told";
    EXPECT_TRUE(same_bytes(done, before));
    EXPECT_EQ(op.lane, nullptr);
  }
}

TEST_F(ShortStruct, AnError) {
  auto none = filled_with<strait_error>(0xa5);
  none.struct_size = 8;
  const strait_error before = none;
  EXPECT_EQ(strait_lookup(pair.far.raw(), "", -1, nullptr, &none), STRAIT_INVALID);
  at.length_bytes = 0;
  strait_op op{};
  EXPECT_EQ(strait_put(lane.raw(), &from, &at, 0, nullptr, &op, &none), STRAIT_INVALID);
  EXPECT_TRUE(same_bytes(none, before));
  // Room for the numbers, and none for sentences.
  auto numbers = filled_with<strait_error>(0xa5);
  numbers.struct_size = offsetof(strait_error, text);
  EXPECT_EQ(strait_put(lane.raw(), &from, &at, 0, nullptr, &op, &numbers), STRAIT_INVALID);
  EXPECT_EQ(numbers.code, STRAIT_INVALID);
  EXPECT_EQ(std::memcmp(numbers.text, before.text, sizeof numbers.text), 0);
}

}  // namespace
}  // namespace strait::flow
