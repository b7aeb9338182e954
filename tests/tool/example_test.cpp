// SPDX-License-Identifier: Apache-2.0
// The examples do what they say, in two processes, and speak to each other across languages.
#include <gtest/gtest.h>

#include "program.hpp"

namespace strait::testing {
namespace {

void cross(const char* owner_path, const char* writer_path) {
  Program owner({owner_path});
  const std::string address = owner.read_line();
  ASSERT_NE(address.find(':'), std::string::npos) << address << owner.finish(1).err;
  const Outcome writer = run({writer_path, address});
  EXPECT_EQ(writer.status, 0) << writer.err;
  EXPECT_EQ(writer.out.rfind("16777216 bytes via ", 0), 0u) << writer.out;
  const Outcome owned = owner.finish(20);
  EXPECT_EQ(owned.status, 0) << owned.err;
}

TEST(Example, CxxToCxx) {
  cross(STRAIT_EXAMPLE_PUT, STRAIT_EXAMPLE_PUT);
}
TEST(Example, CToC) {
  cross(STRAIT_EXAMPLE_C_PUT, STRAIT_EXAMPLE_C_PUT);
}
TEST(Example, CToCxx) {
  cross(STRAIT_EXAMPLE_PUT, STRAIT_EXAMPLE_C_PUT);
}

TEST(Example, NobodyThereIsExitStatus1WithASentence) {
  for (const char* path : {STRAIT_EXAMPLE_PUT, STRAIT_EXAMPLE_C_PUT}) {
    const Outcome outcome = run({path, "127.0.0.1:1"}, 20);
    EXPECT_EQ(outcome.status, 1);
    EXPECT_NE(outcome.err.find("127.0.0.1:1"), std::string::npos) << outcome.err;
  }
}

}  // namespace
}  // namespace strait::testing
