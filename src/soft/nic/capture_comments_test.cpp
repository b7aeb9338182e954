// SPDX-License-Identifier: Apache-2.0
// What a capture says of each packet that left: its queue pair, its work request, and what was done to it on purpose.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "soft/nic/rules_testing.hpp"

namespace strait::soft::nic::testing {
namespace {

// The comments of a pcapng file, in its order. Knows only the format.
std::vector<std::string> comments_in(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string all((std::istreambuf_iterator<char>(in)), {});
  const auto number = [&](std::size_t at, std::size_t bytes) {
    std::size_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i) value |= std::size_t{static_cast<unsigned char>(all.at(at + i))} << 8 * i;
    return value;
  };
  const auto padded = [](std::size_t n) { return (n + 3) / 4 * 4; };
  std::vector<std::string> comments;
  for (std::size_t at = 0; at + 12 <= all.size(); at += number(at + 4, 4)) {
    if (number(at, 4) != 6) continue;  // no packet
    for (std::size_t option = at + 28 + padded(number(at + 20, 4)); number(option, 2) != 0;
         option += 4 + padded(number(option + 2, 2))) {
      if (number(option, 2) == 1) comments.push_back(all.substr(option + 4, number(option + 2, 2)));
    }
  }
  return comments;
}

struct Treated {
  const char* plan;
  const char* said;    // of each packet
  std::size_t copies;  // of each, at least: nobody acknowledges, so some are sent again
};
void PrintTo(const Treated& treated, std::ostream* out) {
  *out << treated.plan;
}

class CaptureComments : public ::testing::TestWithParam<Treated> {
 protected:
  // `post` is called with the live end; what it leaves are `packets` different packets.
  template <typename Post>
  std::vector<std::string> captured(LiveConfig config, std::size_t packets, const Post& post) {
    const std::string path = ::testing::TempDir() + fmt::format("strait-comments-{}.pcapng", ::getpid());
    config.engine.faults = FaultPlan::parse(GetParam().plan).value();
    config.engine.capture = path;
    {
      Live live(config);
      queue = fmt::format("strait0 queue pair {:#x}", live.queue->qpn);
      post(live);
      EXPECT_TRUE(live.drive_until([&] { return live.port->on_the_way().size() >= packets * GetParam().copies; }));
    }
    auto comments = comments_in(path);
    std::filesystem::remove(path);
    return comments;
  }
  void expect_each(const std::vector<std::string>& comments, std::size_t requests) {
    std::vector<std::size_t> seen(requests);
    for (const std::string& comment : comments) {
      bool known = false;
      for (std::size_t i = 0; i < requests; ++i) {
        if (comment != fmt::format("{}, WQE {}{}", queue, i, GetParam().said)) continue;
        ++seen[i];
        known = true;
      }
      EXPECT_TRUE(known) << comment;
    }
    for (std::size_t i = 0; i < requests; ++i) EXPECT_GE(seen[i], GetParam().copies) << "WQE " << i;
  }
  std::string queue;
  std::vector<std::byte> memory = pattern(1024, 1);
};
INSTANTIATE_TEST_SUITE_P(Of, CaptureComments,
                         ::testing::Values(Treated{"seed=1", "", 1}, Treated{"dup=100%", ", fault: dup", 2},
                                           Treated{"reorder=100%", ", fault: reorder", 1},
                                           Treated{"delay=100%:1us", ", fault: delay", 1}),
                         [](const auto& each) { return std::string(each.param.plan).substr(0, 3); });

TEST_P(CaptureComments, NameTheWorkRequestOfAWrite) {
  const auto comments = captured({}, 2, [&](Live& live) {
    const std::uint32_t key = live.reg(memory.data(), memory.size());
    for (int i = 0; i < 2; ++i)
      live.queue->write({.opcode = m::Opcode::rdma_write, .rkey = 1, .data = {{address_of(memory.data()), 200, key}}});
    live.queue->publish();
  });
  expect_each(comments, 2);
}

TEST_P(CaptureComments, NameTheWorkRequestOfADatagram) {
  LiveConfig config;
  config.transport = r::Transport::ud;
  const auto comments = captured(config, 1, [&](Live& live) {
    Wqe wqe{.opcode = m::Opcode::send, .inlined = pattern(8, 3)};
    wqe.atomic = {
        std::uint64_t{config.qkey} << 32, std::uint64_t{0x80000000 | 0xcafe} << 32, 0, 0, 0, 0x0000ffff0a000002};
    live.queue->write(wqe);
    live.queue->publish();
  });
  expect_each(comments, 1);
}

}  // namespace
}  // namespace strait::soft::nic::testing
