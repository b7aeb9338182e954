// SPDX-License-Identifier: Apache-2.0
// The planner: capability records in, a ranked list of ways with reasons out.
//
// Pure: no system calls, no vendor headers, no state. Records of any machine can be replayed (planner_test.cpp).
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace strait::plan {

// How the memory can be reached.
struct Source {
  std::string name;            // "soft:0", "host"
  bool accelerator = false;    // the CPU cannot follow its pointers
  bool exports_fd = false;     // a dma-buf or another descriptor that maps
  std::string export_refusal;  // why not, when it does not
  bool has_port = false;       // reachable through a MemoryPort of this process
  bool can_copy = true;        // to and from host memory: what staging needs
};

struct Nic {
  std::string name;  // "strait0"
  bool software = false;
  bool imports_fds = false;
  bool reads_ports = false;  // takes a MemoryPort
  bool has_packets = false;  // can send RoCEv2 itself
  bool grants = true;        // shares rings with peers on this host
  bool maps_pages = false;   // takes no dma-buf: registers the mapping of the file behind one
};

enum class Reach { same_process, same_host, other_host };

struct Peer {
  std::string name;  // "10.0.0.7:7471"; empty: no particular peer, planned for same_host
  Reach reach = Reach::same_host;
  bool cross_copy = false;         // process_vm_readv works between the two processes
  std::string cross_copy_refusal;  // why not: "Yama scope 1", "another PID namespace"
};

enum class Carrier { any, grant, packets };
// "auto", "grant", "roce": the option `carrier`.
[[nodiscard]] Result<Carrier> parse_carrier(std::string_view text);

struct Policy {
  bool require_zero_copy = false;  // staging is refused
  bool allow_staging = false;      // staging may be chosen when nothing else works
  Carrier carrier = Carrier::any;  // forced: every other carrier is "no"
};

// Measured on this machine; 0: unknown, and then the estimate stays empty.
struct Costs {
  double message_us = 0;   // one small message through the ring
  double memcpy_gb_s = 0;  // large copies by one thread
};

enum class Verdict { yes, no, held };  // held: possible, but not without permission
enum class Kind { copy, ring, packets, staged };

struct Estimate {
  double latency_us = 0;
  double gb_s = 0;
  [[nodiscard]] bool known() const { return gb_s > 0; }
};

struct Way {
  Kind kind = Kind::copy;
  std::string name;   // in full: "zero-copy: dma-buf -> strait0 -> ring grant, one copy by the owner's engine
                      // (process_vm_readv)"
  std::string label;  // for tables: "ring grant, one copy"
  std::string nic;    // the NIC it runs over
  Verdict verdict = Verdict::no;
  std::string reason;
  Estimate estimate;
};

struct Plan {
  std::string from;
  std::string to;
  std::vector<Way> ways;              // best first
  std::optional<std::size_t> chosen;  // into ways
  // Code::unsupported, with the reason of every way, when none can be taken.
  [[nodiscard]] Result<Way> way() const;
};

[[nodiscard]] Plan make_plan(const Source& source, std::span<const Nic> nics, const Peer& peer, const Policy& policy,
                             const Costs& costs = {});

[[nodiscard]] const char* verdict_name(Verdict verdict);
[[nodiscard]] const char* kind_name(Kind kind);  // "copy", "ring", "roce", "staged"

// As `strait explain` shows it: lines of at most 80 columns, each ended by a newline.
[[nodiscard]] std::string to_text(const Plan& plan);
[[nodiscard]] nlohmann::json to_json(const Plan& plan);

}  // namespace strait::plan
