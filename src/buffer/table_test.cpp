// SPDX-License-Identifier: Apache-2.0
// The table in docs/buffer.md is made from what the providers say about their devices and about memory they just made.
// Run under `strait run --accelerators cuda:1,rocm:1,gaudi:1`.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "buffer/built_in.hpp"
#include "buffer/provider.hpp"

namespace strait::buffer {
namespace {

struct Column {
  const char* title;
  std::uint32_t bit;
};
constexpr Column kColumns[] = {
    {"allocate", STRAIT_CAN_ALLOCATE},
    {"copy", STRAIT_CAN_COPY},
    {"IPC", STRAIT_CAN_IPC},
    {"CPU mapping", STRAIT_CAN_MAP_CPU},
    {"export", STRAIT_CAN_EXPORT_DMABUF},
    {"peer memory", STRAIT_CAN_PEER_MEMORY},
    {"identity", STRAIT_CAN_IDENTIFY},
    {"told of a free", STRAIT_CAN_WATCH},
    {"advice", STRAIT_CAN_ADVISE},
};

std::string row_of(std::string_view kind) {
  auto opened = Provider::open(use_plugin(built_in_provider(kind)).value());
  EXPECT_TRUE(opened) << kind << ": " << (opened ? "" : opened.error().explain());
  if (!opened) return {};
  Provider& provider = **opened;
  const auto address = provider.allocate(0, 1 << 20);
  EXPECT_TRUE(address) << kind;
  std::uint32_t can = provider.devices()[0].capabilities;
  if (address) {
    if (const auto claim = provider.classify(*address)) can |= claim->capabilities;
    EXPECT_TRUE(provider.free(*address));
  }
  std::string row = fmt::format("| `{}` |", kind);
  for (const Column& column : kColumns) row += (can & column.bit) != 0 ? " yes |" : " no |";
  return row + "\n";
}

TEST(CapabilityTable, InTheDocumentIsWhatTheProvidersSay) {
  std::string table = "| |";
  for (const Column& column : kColumns) table += fmt::format(" {} |", column.title);
  table += "\n|---|";
  for (std::size_t i = 0; i < std::size(kColumns); ++i) table += "---|";
  table += "\n" + row_of("host");
  for (const std::string_view vendor : kVendors) table += row_of(vendor);
  std::ifstream file(STRAIT_BUFFER_PAGE);
  std::stringstream page;
  page << file.rdbuf();
  EXPECT_NE(page.str().find(table), std::string::npos) << "docs/buffer.md should have this table:\n" << table;
}

}  // namespace
}  // namespace strait::buffer
