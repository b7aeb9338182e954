// SPDX-License-Identifier: Apache-2.0
// What the tests share: the built libraries, loaded from their files as any program would; a machine with four devices,
// kept by this process for its children too.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "soft/gaudi/control.hpp"
#include "soft/gaudi/hlthunk.hpp"
#include "soft/gaudi/scal.hpp"
#include "soft/gaudi/synapse.hpp"
#include "sys/child.hpp"
#include "sys/fd.hpp"
#include "sys/library.hpp"

#ifndef STRAIT_STAND_INS
#define STRAIT_STAND_INS "."  // where this header is compiled alone
#endif

namespace strait::soft::gaudi {

// The shapes of all functions, to call them by name.
namespace shapes {
using namespace hl;
#define SHAPE_OF(returns, name, arguments) using name = returns(*) arguments;
HL_COMMON(SHAPE_OF)
HL_CURRENT(SHAPE_OF)
namespace year2021 {
HL_2021(SHAPE_OF)
}
}  // namespace shapes
namespace shapes::syn {
using namespace gaudi::syn;
#define SHAPE_OF_SYN(name, arguments) using name = Answer(*) arguments;
SYN_FUNCTIONS(SHAPE_OF_SYN)
}  // namespace shapes::syn
namespace shapes::scal {
using namespace gaudi::scal;
SCAL_FUNCTIONS(SHAPE_OF)
}  // namespace shapes::scal

namespace testing {

// Set where `strait run` has made the machine and the libraries are found by name alone.
inline bool under_run = false;

inline const sys::Library& library(const char* name) {
  const std::string file = name;
  static auto* const opened = new std::map<std::string, sys::Library>;
  if (const auto found = opened->find(file); found != opened->end()) return found->second;
  const bool by_name = under_run && file.find('/') == file.npos;
  auto library = sys::Library::open(by_name ? file : STRAIT_STAND_INS "/" + file);
  if (!library) ADD_FAILURE() << library.error().text;
  return opened->emplace(file, library ? std::move(*library) : sys::Library()).first->second;
}

template <class Function>
Function named(const char* file, const char* name) {
  auto found = library(file).symbol<Function>(name);
  EXPECT_TRUE(found) << name;
  return found ? *found : nullptr;
}

// HL(open)(4, nullptr): the function of the library that was loaded; nothing is linked. For use in this namespace.
#define HL(name) (named<shapes::hlthunk_##name>("libhl-thunk.so", "hlthunk_" #name))
#define SYN(name) (named<shapes::syn::syn##name>("libSynapse.so", "syn" #name))
#define SCAL(name) (named<shapes::scal::scal_##name>("libscal.so", "scal_" #name))

inline std::string counters() {
  std::vector<char> text(16384);
  named<decltype(&strait_soft_gaudi_counters)>("libstrait-gaudi.so", "strait_soft_gaudi_counters")(text.data(),
                                                                                                   text.size());
  return "," + std::string(text.data());
}

// 0 for one that is not there: links are listed when they were used.
inline std::uint64_t counter(const std::string& wanted) {
  const std::string all = counters();
  const std::size_t at = all.find("," + wanted + "=");
  return at == std::string::npos ? 0 : std::stoull(all.substr(at + wanted.size() + 2));
}

inline std::vector<std::byte> pattern(std::size_t n, std::uint32_t seed) {
  std::vector<std::byte> bytes(n);
  for (std::byte& each : bytes) each = static_cast<std::byte>((seed = seed * 1664525u + 1013904223u) >> 24);
  return bytes;
}

// Another process of the same machine; peer.cpp says what it understands.
class Peer {
 public:
  Peer() {
    auto started = sys::Child::start_self({"--peer"});
    EXPECT_TRUE(started) << started.error().text;
    if (started) child_ = std::make_unique<sys::Child>(std::move(*started));
  }
  std::int64_t ask(const std::string& line) {
    EXPECT_TRUE(child_->write(line));
    const auto said = child_->read(sys::Deadline::after_ns(60'000'000'000));
    EXPECT_TRUE(said) << said.error().text;
    return said ? std::stoll(*said) : -9999;
  }
  void kill() { child_.reset(); }
  void end() { EXPECT_TRUE(child_->finish(sys::Deadline::after_ns(60'000'000'000))); }

 private:
  std::unique_ptr<sys::Child> child_;
};

// Nothing is left open or held behind a test.
class GaudiTest : public ::testing::Test {
 protected:
  GaudiTest() {
    (void)counters();  // loads the libraries
    (void)HL(get_device_count)(4);
    (void)SYN(Destroy)();
    (void)SCAL(get_fd)(nullptr);
    descriptors_ = sys::count_open_fds();
  }
  void TearDown() override {
    EXPECT_EQ(sys::count_open_fds(), descriptors_);
    for (const char* what : {"open_devices", "used_bytes", "carved", "held_segments"})
      EXPECT_EQ(counter(what), 0u) << what;
  }

 private:
  int descriptors_ = 0;
};

}  // namespace testing
}  // namespace strait::soft::gaudi
