// SPDX-License-Identifier: Apache-2.0
// Result, Error and the macros that pass errors on.
#include "strait/result.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>

#include "base/error.hpp"

namespace strait {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return fail(Code::invalid, "{} is odd", value);
  return value / 2;
}

Result<int> quarter(int value) {
  STRAIT_TRY(const int once, half(value));
  STRAIT_TRY(const int twice, half(once));
  return twice;
}

Status must_be_even(int value) {
  STRAIT_CHECK(half(value));
  return {};
}

TEST(Result, HoldsAValueOrAnError) {
  const Result<int> good = half(8);
  ASSERT_TRUE(good);
  EXPECT_EQ(*good, 4);
  const Result<int> bad = half(7);
  ASSERT_FALSE(bad.has_value());
  EXPECT_EQ(bad.error().code, Code::invalid);
  EXPECT_EQ(bad.error().text, "7 is odd");
  EXPECT_EQ(bad.value_or(-1), -1);
  EXPECT_EQ(good.value_or(-1), 4);
}

TEST(Result, TryPassesTheFirstErrorOnUnchanged) {
  EXPECT_EQ(quarter(12).value(), 3);
  EXPECT_EQ(quarter(6).error().text, "3 is odd");
  EXPECT_TRUE(must_be_even(2));
  EXPECT_EQ(must_be_even(3).error().text, "3 is odd");
}

TEST(Result, ValueThrowsFailureWithCauseAndRemedy) {
  const auto broken = []() -> Result<int> { return with_remedy(fail(Code::limit, "no room"), "Make some."); };
  try {
    (void)broken().value();
    FAIL() << "value() of an error returned";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.error().code, Code::limit);
    EXPECT_STREQ(failure.what(), "no room\n  Make some.");
  }
  Status status = fail(Code::gone, "left");
  EXPECT_THROW(status.value(), Failure);
  EXPECT_NO_THROW(Status{}.value());
}

TEST(Result, CarriesMoveOnlyValues) {
  Result<std::unique_ptr<int>> made = std::make_unique<int>(5);
  std::unique_ptr<int> taken = std::move(made).value();
  EXPECT_EQ(*taken, 5);
}

TEST(Error, SystemCallsKeepErrnoAndGetACodeToActOn) {
  const Error error = fail_errno(EMFILE, "cannot open it");
  EXPECT_EQ(error.code, Code::limit);
  EXPECT_EQ(error.sys_errno, EMFILE);
  EXPECT_EQ(error.text, "cannot open it: EMFILE (Too many open files)");
  EXPECT_NE(error.remedy.find("ulimit -n"), std::string::npos);
  EXPECT_EQ(fail_errno(ETIMEDOUT, "x").code, Code::timeout);
  EXPECT_EQ(fail_errno(ENOMEM, "x").code, Code::limit);
  EXPECT_EQ(fail_errno(EOPNOTSUPP, "x").code, Code::unsupported);
  EXPECT_EQ(fail_errno(EIO, "x").code, Code::system);
}

TEST(Error, NamesErrnosTheLibraryDoesNotKnow) {
  EXPECT_NE(errno_text(524).find("ENOTSUPP"), std::string::npos);
  EXPECT_EQ(errno_text(99999), "errno 99999");
}

TEST(Error, EveryCodeHasItsOwnName) {
  for (int a = 0; a <= 9; ++a) {
    EXPECT_STRNE(code_name(static_cast<Code>(a)), "unknown") << a;
    for (int b = 0; b < a; ++b) EXPECT_STRNE(code_name(static_cast<Code>(a)), code_name(static_cast<Code>(b)));
  }
}

}  // namespace
}  // namespace strait
