// SPDX-License-Identifier: Apache-2.0
// A long run on a bad network: every kind of operation, both ways at once, checked against a model. On failure it
// prints the command that repeats it.
//
//   storm [--operations N] [--seed S] [--faults SPEC] [--carrier roce|grant] [--mtu BYTES] [--largest BYTES]
#include <charconv>
#include <cstdio>
#include <string_view>

#include "soft/nic/storm_testing.hpp"

namespace {

namespace t = strait::soft::nic::testing;

constexpr const char* kUsage =
    "usage: storm [--operations N] [--seed S] [--faults SPEC] [--carrier roce|grant] [--mtu BYTES] [--largest BYTES]\n"
    "  operations  each way (default 100000)\n"
    "  faults      what goes wrong, as the option `faults` has it (default drop=5%,dup=2%,reorder=2%,corrupt=1%)\n";

struct Options {
  std::uint64_t operations = 100'000;
  std::uint64_t seed = 1;
  std::string faults = "drop=5%,dup=2%,reorder=2%,corrupt=1%";
  std::string carrier = "roce";
  std::uint32_t mtu = 1024;
  std::uint32_t largest = 4000;
};

template <typename Number>
bool number(std::string_view text, Number& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc{} && end == text.data() + text.size();
}

bool parse(int argc, char** argv, Options& out) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    const std::string_view value = argv[i + 1];
    bool good = true;
    if (name == "--operations") {
      good = number(value, out.operations) && out.operations != 0;
    } else if (name == "--seed") {
      good = number(value, out.seed);
    } else if (name == "--mtu") {
      good = number(value, out.mtu);
    } else if (name == "--largest") {
      good = number(value, out.largest) && out.largest != 0 && out.largest <= 1u << 24;
    } else if (name == "--faults") {
      out.faults = value;
    } else if (name == "--carrier") {
      out.carrier = value;
      good = value == "roce" || value == "grant";
    } else {
      good = false;
    }
    if (!good) return std::fprintf(stderr, "storm: %s %s is not understood\n", argv[i], argv[i + 1]), false;
  }
  return argc % 2 == 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, options)) return std::fputs(kUsage, stderr), 2;
  const auto plan = strait::FaultPlan::parse(
      fmt::format("{}{}seed={}", options.faults, options.faults.empty() ? "" : ",", options.seed));
  if (!plan) return std::fprintf(stderr, "storm: %s\n", plan.error().explain().c_str()), 2;
  t::StormConfig config;
  config.pair = t::PairConfig(options.carrier == "roce" ? t::Over::packets : t::Over::one_copy);
  config.pair.pmtu_bytes = options.mtu;
  config.pair.faults = *plan;
  config.operations = options.operations;
  config.seed = options.seed;
  config.largest_bytes = options.largest;
  const auto start = strait::sys::now_ns();
  t::Storm storm(config);
  const std::string failure = storm.run();
  const double seconds = static_cast<double>(strait::sys::now_ns() - start) * 1e-9;
  if (!failure.empty()) {
    std::fprintf(stderr,
                 "storm: %s\n"
                 "run it again: storm --operations %llu --seed %llu --faults '%s' --carrier %s --mtu %u --largest %u\n",
                 failure.c_str(), static_cast<unsigned long long>(options.operations),
                 static_cast<unsigned long long>(options.seed), options.faults.c_str(), options.carrier.c_str(),
                 options.mtu, options.largest);
    return 1;
  }
  const auto a = storm.pair.a->counts();
  const auto b = storm.pair.b->counts();
  std::printf("%llu operations each way in %.1f s, seed %llu, %llu faults, %llu atomics, all right\n",
              static_cast<unsigned long long>(options.operations), seconds,
              static_cast<unsigned long long>(options.seed),
              static_cast<unsigned long long>(a.faults_injected + b.faults_injected),
              static_cast<unsigned long long>(a.atomics + b.atomics));
  constexpr const char* kKinds[t::StormSide::kKinds] = {
      "write", "write_imm", "read", "send", "send_imm", "send_inval", "nop", "add", "swap", "masked_add", "masked_swap",
  };
  for (std::size_t i = 0; i < t::StormSide::kKinds; ++i) {
    const std::uint64_t n = storm.there.posted()[i] + storm.back.posted()[i];
    if (n != 0) std::printf("%s%s %llu", i == 0 ? "" : ", ", kKinds[i], static_cast<unsigned long long>(n));
  }
  std::printf("\n");
  return 0;
}
