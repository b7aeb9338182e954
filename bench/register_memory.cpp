// SPDX-License-Identifier: Apache-2.0
// What it costs to share memory of malloc: for the first time, beside mlock of the same bytes, and again.
//
//   register_memory share|share_again --size BYTES [--cpu A] [touched=0|1] [monitor=none|userfaultfd] [grant=...]
//
// share: fresh memory for each of three rounds, written to beforehand unless touched=0; strait and mlock in turn, each
// first as often as the other. Figures in us. share_again: the same bytes while they are shared; ns, beside the 100 ns
// that were asked for.
#include <sys/mman.h>
#include <unistd.h>
#include <strait/strait.hpp>

#include <memory>

#include "workload.hpp"

namespace bench {
namespace {

struct FreeBytes {
  void operator()(std::uint8_t* bytes) const { std::free(bytes); }
};
using Bytes = std::unique_ptr<std::uint8_t, FreeBytes>;

Bytes fresh(const Workload& w) {
  Bytes bytes(static_cast<std::uint8_t*>(std::malloc(w.size_bytes)));
  if (!bytes) give_up("out of memory");
  if (w.option("touched", "1") == "1") std::memset(bytes.get(), 1, w.size_bytes);
  return bytes;
}

strait::Node open_node(const Workload& w) {
  std::vector<std::pair<std::string, std::string>> settings = {{"monitor", w.option("monitor", "none")}};
  if (const std::string grant = w.option("grant", ""); !grant.empty()) settings.emplace_back("grant", grant);
  return strait::Node::open({.settings = settings}).value();
}

double share_us(strait::Node& node, const Workload& w, std::uint8_t* bytes) {
  const std::uint64_t start = now_ns();
  const auto region = node.share(bytes, w.size_bytes, strait::access::remote_write).value();
  return static_cast<double>(now_ns() - start) / 1e3;
}

double lock_us(const Workload& w, std::uint8_t* bytes) {
  const std::uint64_t start = now_ns();
  if (mlock(bytes, w.size_bytes) != 0)
    give_up(std::string("mlock: ") + std::strerror(errno) + "; raise the limit on locked memory (ulimit -l)");
  const double took = static_cast<double>(now_ns() - start) / 1e3;
  munlock(bytes, w.size_bytes);
  return took;
}

void first(const Workload& w) {
  strait::Node node = open_node(w);
  std::vector<double> shared;
  std::vector<double> locked;
  std::string path;
  // Fresh memory for each where it was not written to: the first to come brings the pages in.
  const bool touched = w.option("touched", "1") == "1";
  for (int round = 0; round < 4; ++round) {
    Bytes bytes = fresh(w);
    if (round % 2 == 1) locked.push_back(lock_us(w, bytes.get()));
    if (!touched && round % 2 == 1) bytes = fresh(w);
    shared.push_back(share_us(node, w, bytes.get()));
    if (!touched && round % 2 == 0) bytes = fresh(w);
    if (round % 2 == 0) locked.push_back(lock_us(w, bytes.get()));
  }
  print_result(w, median(shared), "us", shared.size(), 0, "share, remote_write", median(locked));
}

void again(const Workload& w) {
  constexpr double kAskedForNs = 100;
  constexpr int kEach = 1000;
  strait::Node node = open_node(w);
  const Bytes bytes = fresh(w);
  const auto held = node.share(bytes.get(), w.size_bytes, strait::access::remote_write).value();
  std::vector<double> rounds;
  for (int round = 0; round < 7; ++round) {
    std::vector<strait::Region> regions;
    regions.reserve(kEach);
    const std::uint64_t start = now_ns();
    for (int i = 0; i < kEach; ++i)
      regions.push_back(node.share(bytes.get(), w.size_bytes, strait::access::remote_write).value());
    rounds.push_back(static_cast<double>(now_ns() - start) / kEach);
  }
  print_result(w, median(rounds), "ns", kEach, 0, "share, remote_write", kAskedForNs);
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) try {
  const bench::Workload workload = bench::parse_workload(argc, argv);
  bench::pin(workload.cpu[0]);
  if (workload.test == bench::Test::share)
    bench::first(workload);
  else if (workload.test == bench::Test::share_again)
    bench::again(workload);
  else
    bench::give_up("only share and share_again are measured here");
  return 0;
} catch (const std::exception& failure) {
  bench::give_up(failure.what());
}
