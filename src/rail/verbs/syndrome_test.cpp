// SPDX-License-Identifier: Apache-2.0
#include "rail/verbs/syndrome.hpp"

#include <gtest/gtest.h>

namespace strait::rail::verbs {
namespace {
namespace m = wire::mlx5;

TEST(VerbsSyndrome, EveryStatusHasItsSyndrome) {
  EXPECT_EQ(syndrome_of(IBV_WC_SUCCESS), m::Syndrome::none);
  EXPECT_EQ(syndrome_of(IBV_WC_WR_FLUSH_ERR), m::Syndrome::flushed);
  EXPECT_EQ(syndrome_of(IBV_WC_REM_ACCESS_ERR), m::Syndrome::remote_access);
  EXPECT_EQ(syndrome_of(IBV_WC_RETRY_EXC_ERR), m::Syndrome::transport_retry_exceeded);
  EXPECT_EQ(syndrome_of(IBV_WC_RNR_RETRY_EXC_ERR), m::Syndrome::rnr_retry_exceeded);
  for (int status = 1; status <= IBV_WC_GENERAL_ERR; ++status)
    EXPECT_NE(syndrome_of(static_cast<ibv_wc_status>(status)), m::Syndrome::none) << status;
}

}  // namespace
}  // namespace strait::rail::verbs
