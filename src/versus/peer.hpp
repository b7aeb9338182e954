// SPDX-License-Identifier: Apache-2.0
// Who can be measured beside us: what each needs, and how it is run once.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "versus/pairs.hpp"

namespace strait::versus {

enum class Peer { ucx, libfabric, memcpy };
enum class Metric { latency, bandwidth };  // us one way; GB/s

struct PeerRow {
  Peer peer;
  const char* name;   // "ucx"
  const char* title;  // "UCX ucp_put, posix and cma"
};
[[nodiscard]] std::span<const PeerRow> peer_table();
[[nodiscard]] const PeerRow* find_peer(std::string_view name);

// Names separated by commas, each once. An error that lists those there are.
[[nodiscard]] Result<std::vector<Peer>> parse_peers(std::string_view text);
// Can it be run here? The error names what is missing and which package brings it.
[[nodiscard]] Status peer_is_here(Peer peer);
[[nodiscard]] std::vector<Peer> peers_here();

// A program of ours that is installed beside the tool and not in PATH; empty when it was not built.
[[nodiscard]] std::string helper_program(const std::string& name);
// What a program made from bench/transfer.hpp prints: one line of JSON, with a verified figure.
[[nodiscard]] Figure read_transfer(bool ok, const std::string& out, const std::string& problem);

// One put after the other (latency) or 16 under way (bandwidth), always the same bytes.
struct PeerRun {
  Metric metric = Metric::latency;
  std::uint64_t bytes = 8;
  double seconds = 0.1;
  Cpus cpus = {};
  std::int64_t deadline_ns = 120'000'000'000;
};

// Finds out how to run a peer for one metric and size: how many operations fill the time, which of its modes is the
// faster. This is also its warm-up.
class PeerRunner {
 public:
  PeerRunner(Peer peer, PeerRun run) : peer_(peer), run_(run) {}
  // Empty when it can do this; otherwise why not ("puts of 8 bytes and multiples of it only").
  [[nodiscard]] std::string unable() const;
  [[nodiscard]] Status warm_up();
  [[nodiscard]] Figure once() const;

 private:
  [[nodiscard]] Figure run_fabric(const char* mode, double seconds) const;
  Peer peer_;
  PeerRun run_;
  std::uint64_t ucx_count_ = 0;
  const char* fabric_mode_ = "virtual=1";
};

}  // namespace strait::versus
