// SPDX-License-Identifier: Apache-2.0
// The attribute parser, rule by rule.
#include "soft/uverbs/request.hpp"

#include <cerrno>

#include "soft/uverbs/testing.hpp"
#include "sys/mapping.hpp"

namespace strait::soft::uverbs {
namespace {

constexpr AttributeSpec kSpecs[] = {
    {0, Form::input, true, 4, 16},      {1, Form::output, false, 8, 0xffff}, {2, Form::use, false, 0, 0, Kind::pd},
    {3, Form::descriptor, false, 0, 0}, {4, Form::input, false, 1, 8},
};

class RequestRules : public ::testing::Test {
 protected:
  int read_and_check(Call& call) {
    bytes_ = call.bytes();
    request_ = std::make_unique<Request>(memory_);
    if (const int failed = request_->read(reinterpret_cast<std::uintptr_t>(bytes_.data()), RDMA_DRIVER_MLX5))
      return failed;
    return request_->check(kSpecs);
  }
  OwnMemory memory_;
  std::vector<std::byte> bytes_;
  std::unique_ptr<Request> request_;
};

TEST_F(RequestRules, InputIsInlineOrBehindAPointer) {
  const std::uint32_t small = 0x11223344;
  Call inline_call(0, 0);
  inline_call.in(0, small);
  ASSERT_EQ(read_and_check(inline_call), 0);
  std::uint64_t got = ~0ull;
  ASSERT_EQ(request_->get(0, got), 0);
  EXPECT_EQ(got, small);  // what was not sent is zero
  const std::array<std::uint64_t, 2> large = {5, 6};
  Call pointer_call(0, 0);
  pointer_call.in(0, large);
  ASSERT_EQ(read_and_check(pointer_call), 0);
  std::array<std::uint64_t, 2> back{};
  ASSERT_EQ(request_->get(0, back), 0);
  EXPECT_EQ(back, large);
}

TEST_F(RequestRules, HeaderMustBeTrue) {
  const std::uint32_t value = 1;
  for (int what = 0; what < 6; ++what) {
    Call call(0, 0);
    call.in(0, value);
    if (what == 0) call.header().length = 24;
    if (what == 1) call.header().length = 41;
    if (what == 2) call.header().num_attrs = 2;
    if (what == 3) call.header().reserved1 = 1;
    if (what == 4) call.header().reserved2 = 1;
    if (what == 5) call.header().driver_id = 0;
    EXPECT_EQ(read_and_check(call), what == 3 || what == 4 ? -EPROTONOSUPPORT : -EINVAL) << what;
  }
  Request request(memory_);
  EXPECT_EQ(request.read(8, RDMA_DRIVER_MLX5), -EFAULT);
}

TEST_F(RequestRules, AttributesThatEndInNowhereAreAFault) {
  const auto page = sys::map_anonymous(sys::page_bytes() * 2, sys::Protect::read_write).value();
  const auto unreadable = sys::map_anonymous(sys::page_bytes(), sys::Protect::none).value();
  Call call(0, 0);
  call.raw(0, 16, reinterpret_cast<std::uintptr_t>(unreadable.data()));
  ASSERT_EQ(read_and_check(call), 0);  // not read yet
  std::array<std::byte, 16> into{};
  EXPECT_EQ(request_->get(0, into), -EFAULT);
  Call longer(0, 0);
  longer.raw(0, 32, reinterpret_cast<std::uintptr_t>(unreadable.data()));
  EXPECT_EQ(read_and_check(longer), -EFAULT);  // what is behind the known part has to be looked at
}

TEST_F(RequestRules, LengthsAreChecked) {
  const std::uint8_t tiny = 1;
  Call short_input(0, 0);
  short_input.in(0, tiny);
  EXPECT_EQ(read_and_check(short_input), -EINVAL);
  const std::uint32_t value = 1;
  std::uint32_t room = 0;
  Call short_output(0, 0);
  short_output.in(0, value).out(1, room);
  EXPECT_EQ(read_and_check(short_output), -EINVAL);
  Call long_handle(0, 0);
  long_handle.in(0, value).raw(2, 4, 7);
  EXPECT_EQ(read_and_check(long_handle), -EINVAL);
  Call far_descriptor(0, 0);
  far_descriptor.in(0, value).handle(3, 1ull << 33);
  EXPECT_EQ(read_and_check(far_descriptor), -EINVAL);
}

TEST_F(RequestRules, MoreInputThanKnownMustBeZero) {
  std::array<std::uint8_t, 400> future{};
  future[0] = 1;
  Call zeros(0, 0);
  zeros.in(0, future);
  EXPECT_EQ(read_and_check(zeros), 0);
  for (const std::size_t at : {16u, 300u, 399u}) {
    auto said = future;
    said[at] = 1;
    Call call(0, 0);
    call.in(0, said);
    EXPECT_EQ(read_and_check(call), -EOPNOTSUPP) << at;
  }
}

TEST_F(RequestRules, UnknownAttributes) {
  const std::uint32_t value = 1;
  Call mandatory(0, 0);
  mandatory.in(0, value).raw(77, 0, 0, UVERBS_ATTR_F_MANDATORY);
  EXPECT_EQ(read_and_check(mandatory), -EPROTONOSUPPORT);
  Call optional(0, 0);
  optional.raw(77, 0, 0, 0).in(0, value);
  ASSERT_EQ(read_and_check(optional), 0);
  EXPECT_FALSE(request_->has(77));
  EXPECT_TRUE(request_->has(0));
}

TEST_F(RequestRules, TwiceMissingAndReserved) {
  const std::uint32_t value = 1;
  Call twice(0, 0);
  twice.in(0, value).in(0, value);
  EXPECT_EQ(read_and_check(twice), -EINVAL);
  Call missing(0, 0);
  missing.in(4, value);
  EXPECT_EQ(read_and_check(missing), -EINVAL);
  Call reserved(0, 0);
  reserved.in(0, value);
  reserved.attribute(0).attr_data.reserved = 1;
  EXPECT_EQ(read_and_check(reserved), -EINVAL);
}

TEST_F(RequestRules, OutputIsWrittenAndMarked) {
  const std::uint32_t value = 1;
  std::array<std::uint8_t, 12> room;
  room.fill(0xff);
  Call call(0, 0);
  call.in(0, value).out(1, room);
  ASSERT_EQ(read_and_check(call), 0);
  const std::uint64_t answer = 0x0807060504030201;
  ASSERT_EQ(request_->put(1, answer), 0);
  EXPECT_EQ(room, (std::array<std::uint8_t, 12>{1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0}));
  ib_uverbs_attr attribute{};
  std::memcpy(&attribute, bytes_.data() + 24 + 16, sizeof attribute);
  EXPECT_NE(attribute.flags & UVERBS_ATTR_F_VALID_OUTPUT, 0);
  Call nowhere(0, 0);
  nowhere.in(0, value).raw(1, 8, 16);
  ASSERT_EQ(read_and_check(nowhere), 0);
  EXPECT_EQ(request_->put(1, answer), -EFAULT);
}

TEST_F(RequestRules, AHandleIsWrittenIntoItsOwnAttribute) {
  const std::uint32_t value = 1;
  Call call(0, 0);
  call.raw(99, 0, 0, 0).in(0, value).handle(2, 5);  // behind one that nobody knows
  ASSERT_EQ(read_and_check(call), 0);
  ASSERT_EQ(request_->put_word(2, 1234), 0);
  ib_uverbs_attr attribute{};
  std::memcpy(&attribute, bytes_.data() + 24 + 32, sizeof attribute);
  EXPECT_EQ(attribute.attr_id, 2);
  EXPECT_EQ(attribute.data, 1234u);
}

}  // namespace
}  // namespace strait::soft::uverbs
