// SPDX-License-Identifier: Apache-2.0
// Two strict NICs, their buffers, and what they found.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "soft/nic/testing.hpp"
#include "sys/host.hpp"
#include "sys/mapping.hpp"
#include "sys/process.hpp"

namespace strait::soft::nic::testing {

inline constexpr std::size_t kStrictBytes = 1 << 16;  // more than one message of the ring, and whole pages

// Whole pages, as programs register them.
struct StrictBuffer {
  explicit StrictBuffer(std::size_t n = kStrictBytes)
      : mapping(sys::map_anonymous(n, sys::Protect::read_write).value()), at(mapping.data()), size(n) {}
  void fill(unsigned seed) {
    const auto bytes = pattern(size, seed);
    std::copy(bytes.begin(), bytes.end(), at);
  }
  [[nodiscard]] bool holds(unsigned seed) const {
    const auto bytes = pattern(size, seed);
    return std::equal(bytes.begin(), bytes.end(), at);
  }
  sys::Mapping mapping;
  std::byte* at;
  std::size_t size;
};

// A file of findings that goes away with the test.
struct ReportFile {
  ReportFile() {
    static int n = 0;
    path = std::filesystem::temp_directory_path() /
           ("strait-strict-" + std::to_string(sys::process_id()) + "-" + std::to_string(n++));
  }
  ~ReportFile() { std::filesystem::remove(path); }
  [[nodiscard]] std::vector<std::string> lines() const {
    std::vector<std::string> all;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) all.push_back(line);
    return all;
  }
  std::filesystem::path path;
};

inline PairConfig strict_over(Over over, const ReportFile& report, const char* faults = nullptr) {
  PairConfig config(over);
  config.strict = StrictConfig{.report = report.path, .exit_code = 0, .quiet = true};
  if (faults != nullptr) config.faults = FaultPlan::parse(faults).value();
  return config;
}

class StrictNic : public ::testing::TestWithParam<Over> {
 protected:
  void SetUp() override { make(); }
  void make(std::uint32_t blocks = 64, const char* faults = nullptr, std::int64_t answer_ns = 10'000'000) {
    pair.reset();
    pair.emplace(strict_over(GetParam(), report, faults), blocks, faults == nullptr ? 0 : answer_ns);
    source.fill(1);
    std::fill_n(target.at, kStrictBytes, std::byte{0});
    lkey = pair->reg_a(source.at, kStrictBytes);
    rkey = pair->reg_b(target.at, kStrictBytes);
  }
  Wqe write(std::uint32_t n = kStrictBytes, std::uint8_t flags = m::kCompletionAlways) {
    return {.opcode = m::Opcode::rdma_write,
            .raddr = address_of(target.at),
            .rkey = rkey,
            .data = {{address_of(source.at), n, lkey}},
            .flags = flags};
  }
  Wqe read(std::byte* into, std::uint32_t n, std::uint32_t key, std::uint8_t flags = m::kCompletionAlways) {
    return {.opcode = m::Opcode::rdma_read,
            .raddr = address_of(target.at),
            .rkey = rkey,
            .data = {{address_of(into), n, key}},
            .flags = flags};
  }
  void connect_too(TestQueue& at_a, TestQueue& at_b) {
    if (GetParam() == Over::packets) {
      pair->a->connect_packets(at_a.qpn, pair->path(true, at_b.qpn)).value();
      pair->b->connect_packets(at_b.qpn, pair->path(false, at_a.qpn)).value();
      return;
    }
    at_a.connect(pair->b->address(), at_b.qpn).value();  // the link is there already: nobody has to answer
    at_b.connect(pair->a->address(), at_a.qpn).value();
  }
  void expect_done(TestQueue& queue) {
    const auto event = pair->wait(queue);
    ASSERT_TRUE(event);
    EXPECT_EQ(event->syndrome, m::Syndrome::none);
  }
  // Until the write to `target` has been staged at b: its pages are guarded from then on.
  void drive_until_guarded() { drive_until_guarded(target.at); }
  void drive_until_guarded(const std::byte* at) {
    for (int i = 0; i < 100'000; ++i) {
      pair->a->drive(0);
      if (!readable(at)) return;
      pair->b->drive(0);
      if (!readable(at)) return;
    }
    FAIL() << "nothing arrived";
  }
  // As a program that does not wait looks at it.
  static std::byte look(const std::byte* at) {
    return static_cast<std::byte>(__atomic_load_n(reinterpret_cast<const unsigned char*>(at), __ATOMIC_RELAXED));
  }
  [[nodiscard]] bool staged() const { return !readable(target.at); }
  // Asked of the kernel, so that nobody is caught.
  [[nodiscard]] static bool readable(const std::byte* at) {
    std::byte copy{};
    const iovec into{&copy, 1};
    const iovec from{const_cast<std::byte*>(at), 1};
    return static_cast<bool>(sys::read_process(sys::process_id(), std::span(&into, 1), std::span(&from, 1)));
  }
  // These and no others were found, and each was written down once.
  void expect_findings(std::map<Rule, std::uint64_t> expected) {
    std::size_t total = 0;
    for (std::size_t i = 0; i < kRules; ++i) {
      const auto rule = static_cast<Rule>(i);
      EXPECT_EQ(pair->a->findings(rule) + pair->b->findings(rule), expected[rule]) << rule_name(rule);
      total += expected[rule];
    }
    EXPECT_EQ(report.lines().size(), total);
  }
  void expect_line(Rule rule, std::uint32_t qpn, const std::string& rest) {
    ASSERT_EQ(report.lines().size(), 1u);
    const std::string line = report.lines().front();
    const auto has = [&](const std::string& part) {
      EXPECT_NE(line.find(part), std::string::npos) << part << " in " << line;
    };
    has("\"process\":" + std::to_string(sys::process_id()) + ",");
    has("\"queue_pair\":" + std::to_string(qpn) + ",");
    has("\"rule\":\"" + std::string(rule_name(rule)) + "\"");
    has(rest);
  }

  ReportFile report;
  StrictBuffer source, target;
  std::optional<Pair> pair;
  std::uint32_t lkey = 0, rkey = 0;
};

}  // namespace strait::soft::nic::testing
