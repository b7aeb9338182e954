// SPDX-License-Identifier: Apache-2.0
// A NIC plug-in of another version, or with holes in its table, is refused before any of it is called.
#include "rail/mlx5/nic.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "base/error.hpp"

namespace strait::rail {
namespace {

int calls = 0;

std::int32_t open_no_nic(const char*, strait_nic**, strait_plugin_error* error) {
  ++calls;
  std::strcpy(error->text, "there is none");
  return static_cast<std::int32_t>(Code::unsupported);
}

// Whole, as far as anybody can see: only open() is ever called.
template <class... Arguments>
std::int32_t answer_nothing(Arguments...) {
  ++calls;
  return 0;
}
template <class... Arguments>
void do_nothing(Arguments...) {
  ++calls;
}
template <class... Arguments>
void fill_in(std::int32_t (*&slot)(Arguments...)) {
  slot = answer_nothing<Arguments...>;
}
template <class... Arguments>
void fill_in(void (*&slot)(Arguments...)) {
  slot = do_nothing<Arguments...>;
}

strait_nic_ops whole_table() {
  strait_nic_ops ops{};
  ops.abi_version = STRAIT_PLUGIN_ABI;
  ops.struct_size = sizeof ops;
  ops.kind = "fake";
  fill_in(ops.close);
  fill_in(ops.info);
  fill_in(ops.address);
  fill_in(ops.alloc_pd);
  fill_in(ops.free_pd);
  fill_in(ops.register_memory);
  fill_in(ops.deregister_memory);
  fill_in(ops.create_cq);
  fill_in(ops.destroy_cq);
  fill_in(ops.create_qp);
  fill_in(ops.connect_qp);
  fill_in(ops.fail_qp);
  fill_in(ops.destroy_qp);
  fill_in(ops.describe_qp);
  fill_in(ops.drive);
  fill_in(ops.arm);
  fill_in(ops.event_fd);
  fill_in(ops.counters);
  ops.open = open_no_nic;
  return ops;
}

Error refusal(const strait_nic_ops* ops) {
  auto nic = Nic::open(ops, "");
  EXPECT_FALSE(nic);
  return nic ? Error{} : nic.error();
}

TEST(NicTable, AWholeOneIsCalled) {
  calls = 0;
  const strait_nic_ops ops = whole_table();
  EXPECT_EQ(refusal(&ops).text, "cannot open the fake NIC: there is none");
  EXPECT_EQ(calls, 1);
}

TEST(NicTable, OfAnotherVersion) {
  calls = 0;
  for (const std::uint32_t version : {0u, STRAIT_PLUGIN_ABI - 1u, STRAIT_PLUGIN_ABI + 1u, ~0u}) {
    strait_nic_ops ops = whole_table();
    ops.abi_version = version;
    const Error error = refusal(&ops);
    EXPECT_EQ(error.code, Code::unsupported);
    EXPECT_EQ(
        error.text,
        fmt::format("the NIC plug-in speaks plug-in ABI {} with a table of {} bytes; this strait needs ABI {} and "
                    "{} bytes",
                    version, sizeof ops, STRAIT_PLUGIN_ABI, STRAIT_NIC_OPS_LEAST));
  }
  EXPECT_EQ(calls, 0);
}

TEST(NicTable, TooShort) {
  calls = 0;
  strait_nic_ops ops = whole_table();
  ops.struct_size = STRAIT_NIC_OPS_LEAST - 1;
  const Error error = refusal(&ops);
  EXPECT_EQ(error.code, Code::unsupported);
  EXPECT_NE(error.text.find(fmt::format("with a table of {} bytes", STRAIT_NIC_OPS_LEAST - 1)), std::string::npos)
      << error.text;
  ops.struct_size = STRAIT_NIC_OPS_LEAST;  // an older plug-in: without what was added at the end
  EXPECT_EQ(refusal(&ops).text, "cannot open the fake NIC: there is none");
  EXPECT_EQ(calls, 1);
}

TEST(NicTable, WithHoles) {
  calls = 0;
  EXPECT_EQ(refusal(nullptr).text, "the NIC plug-in handed out no operation table");
  strait_nic_ops ops = whole_table();
  ops.deregister_memory = nullptr;
  EXPECT_EQ(refusal(&ops).text, "the NIC plug-in \"fake\" leaves out operations");
  ops.kind = nullptr;
  EXPECT_EQ(refusal(&ops).text, "the NIC plug-in \"?\" leaves out operations");
  EXPECT_EQ(calls, 0);
}

}  // namespace
}  // namespace strait::rail
