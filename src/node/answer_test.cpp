// SPDX-License-Identifier: Apache-2.0
// No exception crosses the C boundary: what is thrown inside becomes a code and a sentence.
#include "node/answer.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <stdexcept>

namespace strait::node {
namespace {

strait_error blank() {
  strait_error error{};
  error.struct_size = sizeof error;
  error.sys_errno = 7;
  error.syndrome = 7;
  return error;
}

TEST(Guarded, MemoryThatRunsOutIsALimit) {
  strait_error error = blank();
  EXPECT_EQ(guarded(&error, []() -> Status { throw std::bad_alloc(); }), STRAIT_LIMIT);
  EXPECT_EQ(error.code, STRAIT_LIMIT);
  EXPECT_EQ(error.sys_errno, 0);
  EXPECT_EQ(error.syndrome, 0u);
  EXPECT_STREQ(error.text, "out of memory in strait's own bookkeeping");
  EXPECT_STREQ(error.remedy, "raise the memory limit of this process");
}

TEST(Guarded, AnyExceptionIsAnErrorWithItsWords) {
  strait_error error = blank();
  EXPECT_EQ(guarded(&error, []() -> Status { throw std::runtime_error("the moon is full"); }), STRAIT_SYSTEM);
  EXPECT_EQ(error.code, STRAIT_SYSTEM);
  EXPECT_STREQ(error.text, "unexpected failure inside strait: the moon is full");
}

TEST(Guarded, WhatIsNoExceptionToo) {
  strait_error error = blank();
  EXPECT_EQ(guarded(&error, []() -> Status { throw 1; }), STRAIT_SYSTEM);
  EXPECT_EQ(error.code, STRAIT_SYSTEM);
  EXPECT_STREQ(error.text, "unexpected failure inside strait");
}

// Who does not want the sentence, or knows an older struct, gets the code.
TEST(Guarded, WithoutRoomForTheSentence) {
  EXPECT_EQ(guarded(nullptr, []() -> Status { throw std::bad_alloc(); }), STRAIT_LIMIT);
  EXPECT_EQ(guarded(nullptr, []() -> Status { throw 1; }), STRAIT_SYSTEM);
  strait_error old = blank();
  old.struct_size = offsetof(strait_error, text);
  EXPECT_EQ(guarded(&old, []() -> Status { throw std::bad_alloc(); }), STRAIT_LIMIT);
  EXPECT_STREQ(old.text, "");
}

TEST(Guarded, SuccessAndErrorsPass) {
  strait_error error = blank();
  EXPECT_EQ(guarded(&error, [] { return Status{}; }), STRAIT_OK);
  EXPECT_EQ(guarded(&error, []() -> Status { return fail(Code::denied, "not yours"); }), STRAIT_DENIED);
  EXPECT_STREQ(error.text, "not yours");
}

}  // namespace
}  // namespace strait::node
