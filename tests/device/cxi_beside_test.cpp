// SPDX-License-Identifier: Apache-2.0
// strait/cxi.h behind headers of the vendor's: their names keep their meaning, ours are in the namespace.
#include <gtest/gtest.h>

#define __CXI_PROV_HW
#define C_NUM_CTS 2048
#define CXI_VA_TO_IOVA(_md, _va) (17)
struct cxi_cq {
  int theirs;
};
static int cxi_cq_emit_dma(cxi_cq* cq, void*) {
  return cq->theirs;
}
enum { CXI_MAP_PIN = 1, C_CMD_PUT = 1 };

#include "strait/cxi.h"

#if defined(STRAIT_CXI_GLOBAL_NAMES)
#error "the names of cxi.h are global beside the vendor's"
#endif

TEST(CxiNames, StayInTheirNamespaceBesideTheVendors) {
  cxi_cq one{42};
  EXPECT_EQ(cxi_cq_emit_dma(&one, nullptr), 42);
  EXPECT_EQ(CXI_VA_TO_IOVA(nullptr, 0), 17);
  strait::cxi::cxi_cq ours{};
  strait::cxi::c_full_dma_cmd command{};
  EXPECT_EQ(strait::cxi::cxi_cq_emit_dma(&ours, &command), -ENOSPC);  // a queue that was never opened
  EXPECT_EQ(static_cast<int>(strait::cxi::CXI_MAP_PIN), static_cast<int>(CXI_MAP_PIN));
}
