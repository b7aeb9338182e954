// SPDX-License-Identifier: Apache-2.0
// GoogleTest checks of a Status or a Result, with the sentence of what failed.
#pragma once

#include <gtest/gtest.h>

#define EXPECT_DONE(expression)                          \
  do {                                                   \
    const auto outcome_ = (expression);                  \
    EXPECT_TRUE(outcome_) << outcome_.error().explain(); \
  } while (0)
// ASSERT_GOT(queue, rxe.make(...)) declares `queue`.
#define ASSERT_GOT(name, expression)                             \
  auto name##_result = (expression);                             \
  ASSERT_TRUE(name##_result) << name##_result.error().explain(); \
  const auto name = *name##_result
// The same for what can only be moved, or will be changed.
#define ASSERT_GOT_MOVED(name, expression)                       \
  auto name##_result = (expression);                             \
  ASSERT_TRUE(name##_result) << name##_result.error().explain(); \
  auto name = std::move(*name##_result)
