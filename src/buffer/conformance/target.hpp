// SPDX-License-Identifier: Apache-2.0
// The provider under test, as the command line named it, and what all tests of the suite start from.
//
// What a provider says it can do must work; what it says it cannot must be refused with a sentence. So no test is
// skipped: a provider passes by being right about itself.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "buffer/provider.hpp"
#include "sys/fd.hpp"

namespace strait::buffer::conformance {

// From --kind NAME or --plugin PATH, and --config TEXT. Exits with a sentence when it cannot be had.
[[nodiscard]] Plugin make_plugin();
// The arguments that give a second process of this program the same provider.
[[nodiscard]] std::vector<std::string> same_target();
// What that second process does; its exit status.
int open_in_second_process();

[[nodiscard]] inline sys::Deadline soon() {
  return sys::Deadline::after_ns(30'000'000'000);
}

class Conformance : public ::testing::Test {
 protected:
  void SetUp() override {
    fds_before_ = sys::count_open_fds();
    auto opened = Provider::open(make_plugin());
    ASSERT_TRUE(opened) << opened.error().explain();
    provider_ = std::move(*opened);
    ASSERT_FALSE(provider_->devices().empty());
  }
  void TearDown() override {
    for (const std::uint64_t address : allocations_) EXPECT_TRUE(provider_->free(address));
    provider_.reset();
    EXPECT_EQ(sys::count_open_fds(), fds_before_) << "the provider left descriptors open";
  }

  [[nodiscard]] bool can(std::uint32_t what, std::uint32_t device = 0) const {
    return (provider_->devices()[device].capabilities & what) != 0;
  }
  // Memory that the end of the test gives back.
  [[nodiscard]] std::uint64_t memory(std::uint64_t length_bytes, std::uint32_t device = 0) {
    const auto made = provider_->allocate(device, length_bytes);
    EXPECT_TRUE(made) << made.error().explain();
    if (!made) return 0;
    allocations_.push_back(*made);
    return *made;
  }
  void give_back(std::uint64_t address) {
    std::erase(allocations_, address);
    const Status freed = provider_->free(address);
    EXPECT_TRUE(freed) << freed.error().explain();
  }
  void copy(std::uint64_t to, std::uint64_t from, std::uint64_t length_bytes) {
    const auto ticket = provider_->start_copy(to, from, length_bytes);
    ASSERT_TRUE(ticket) << ticket.error().explain();
    const Status done = provider_->wait_copy(*ticket, soon());
    ASSERT_TRUE(done) << done.error().explain();
  }
  void put(std::uint64_t to, const std::vector<unsigned char>& bytes) { copy(to, address_of(bytes), bytes.size()); }
  [[nodiscard]] std::vector<unsigned char> get(std::uint64_t from, std::size_t length_bytes) {
    std::vector<unsigned char> bytes(length_bytes);
    copy(address_of(bytes), from, length_bytes);
    return bytes;
  }
  [[nodiscard]] static std::uint64_t address_of(const std::vector<unsigned char>& bytes) {
    return reinterpret_cast<std::uint64_t>(bytes.data());
  }
  [[nodiscard]] static std::vector<unsigned char> pattern(std::size_t length_bytes, unsigned seed) {
    std::vector<unsigned char> bytes(length_bytes);
    for (std::size_t i = 0; i < length_bytes; ++i) bytes[i] = static_cast<unsigned char>(i * 7 + i / 253 + seed * 31);
    return bytes;
  }
  // A failure with one of these codes and a text that says something.
  template <class Outcome>
  static void refused(const Outcome& outcome, std::initializer_list<Code> codes) {
    ASSERT_FALSE(outcome);
    const Error& error = outcome.error();
    EXPECT_NE(std::find(codes.begin(), codes.end(), error.code), codes.end())
        << "code " << static_cast<int>(error.code) << ": " << error.text;
    EXPECT_GE(error.text.size(), 10u) << error.text;
    EXPECT_EQ(error.text.find("gave no reason"), std::string::npos) << error.text;
  }
  [[nodiscard]] std::uint64_t counter(const std::string& name) const {
    const std::string all = "," + provider_->counters();
    const std::size_t at = all.find("," + name + "=");
    return at == std::string::npos ? 0 : std::stoull(all.substr(at + name.size() + 2));
  }

  int fds_before_ = 0;
  std::unique_ptr<Provider> provider_;
  std::vector<std::uint64_t> allocations_;
};

}  // namespace strait::buffer::conformance
