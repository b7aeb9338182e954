// SPDX-License-Identifier: Apache-2.0
#include "tool/reach_page.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace strait::tool {
namespace {

Json cell(const char* state, const char* text) {
  return {{"state", state}, {"text", text}};
}

Json row_of(const char* memory, const char* nic, Json ways) {
  return {{"memory", memory}, {"kind", "cuda"}, {"nic", nic}, {"ways", std::move(ways)}};
}

std::size_t widest_line(const std::string& text) {
  std::istringstream lines(text);
  std::size_t most = 0;
  for (std::string line; std::getline(lines, line);) most = std::max(most, line.size());
  return most;
}

TEST(ReachPage, ATableWithItsReasonsBelow) {
  const Json ways{{"dmabuf", cell("proved", "dma-buf of nv_dmabuf")},
                  {"peermem", cell("missing", "no client")},
                  {"p2p", cell("unknown", "the kernel does not say")},
                  {"host", cell("missing", "no client")},
                  {"staged", cell("proved", "copied")}};
  Json host;
  for (const char* way : {"dmabuf", "peermem", "p2p", "staged"}) host[way] = cell("unneeded", "");
  host["host"] = cell("proved", "by its address");
  const Json all{{"reach", {row_of("host", "strait0", host), row_of("cuda:0", "strait0", ways)}},
                 {"reach_untried", {"cuda:1"}}};
  EXPECT_EQ(reach_page(all),
            "  memory    NIC       dma-buf  peer memory  p2p pages  host pages  staged\n"
            "  host      strait0   -        -            -          yes         -\n"
            "  cuda:0    strait0   yes      no 1         ? 2        no 1        held\n"
            "  yes: tried just now, and it works. held: works, and is used only with\n"
            "  allow_staging=1. -: needs none.\n"
            "    1  no client\n"
            "    2  the kernel does not say\n"
            "  1 device of the same kinds was not tried: --every-device does.\n");
}

TEST(ReachPage, LongNamesAndReasonsStayInEightyColumns) {
  const std::string why(300, 'w');
  const Json all{{"reach", {row_of("accelerator:17", "mlx5_bond_0", {{"dmabuf", cell("missing", why.c_str())}})}},
                 {"requirements",
                  {{{"of", "accelerator:17"},
                    {"needs",
                     {{{"what", "a driver"},
                       {"state", "missing"},
                       {"text",
                        "it is very old indeed and so is "
                        "its documentation, alas"}}}}}}}};
  EXPECT_LE(widest_line(requirements_page(all)), 80u) << requirements_page(all);
  const std::string page = reach_page(all);
  EXPECT_NE(page.find("accelerator:17 mlx5_bond_0\n"), std::string::npos) << page;
  // What the library left out is no crash.
  EXPECT_NE(page.find("no reason given"), std::string::npos) << page;
}

TEST(ReachPage, NothingToShow) {
  EXPECT_EQ(reach_page(Json::object()), "  there is no NIC, so nothing was tried\n");
  EXPECT_EQ(requirements_page(Json::object()), "");
}

TEST(ReachPage, RequirementsOfEveryPart) {
  const Json all{{"requirements",
                  {{{"of", "cuda"},
                    {"needs",
                     {{{"what", "libcuda.so.1"}, {"state", "met"}, {"text", "driver 580"}},
                      {{"what", "nvidia_peermem"}, {"state", "missing"}, {"text", "not loaded"}}}}},
                   {{"of", "mlx5_0"}, {"needs", {{{"what", "a kernel"}, {"state", "unknown"}, {"text", "?"}}}}}}}};
  EXPECT_EQ(requirements_page(all),
            "  cuda      met      libcuda.so.1: driver 580\n"
            "            missing  nvidia_peermem: not loaded\n"
            "  mlx5_0    unknown  a kernel: ?\n");
}

TEST(ReachPage, OfWhatIsNotHereOnlyWhatItLacks) {
  const Json all{{"requirements",
                  {{{"of", "rocm"},
                    {"present", false},
                    {"because", "the runtime does not start"},
                    {"needs",
                     {{{"what", "libhsa"}, {"state", "met"}, {"text", "loaded"}},
                      {{"what", "an export"}, {"state", "missing"}, {"text", "too old"}},
                      {{"what", "a runtime"}, {"state", "missing"}, {"text", "the runtime does not start"}}}}}}}};
  EXPECT_EQ(requirements_page(all),
            "  rocm      absent   the runtime does not start\n"
            "            missing  an export: too old\n");
}

}  // namespace
}  // namespace strait::tool
