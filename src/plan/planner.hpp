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
#include "plan/place.hpp"

namespace strait::plan {

// A way to a NIC that would have come first, and why it is none.
struct Refusal {
  std::string way;  // "dma-buf"
  std::string reason;
};

// Memory of one device, or of the host, at either end.
struct Memory {
  std::string name;            // "soft:0", "host"
  bool accelerator = false;    // the CPU cannot follow its pointers
  bool exports_fd = false;     // a dma-buf or another descriptor that maps
  std::string export_refusal;  // why not, when it does not
  bool has_port = false;       // reachable through a MemoryPort of this process
  bool can_copy = true;        // to and from host memory: what staging needs
  std::string kind = {};       // whose memory: "cuda", "host"; devices of one kind copy among each other
  bool can_ipc = false;        // another process can open it by the vendor's own handle
  std::string link = {};       // what joins devices of this kind: "Gaudi link"; empty: the PCIe bus
  bool software = false;
  Place place = {};
  bool in_files = false;  // allocations lie in memory files of their own, which a CPU can map
  bool migrates = false;  // managed: the CPU reaches it, its pages move, and no descriptor of it is made
  // What registering it told, or what was asked for by name: it overrules all that the records promise.
  std::string reached_by = {};        // "peer-memory client"; empty: nobody has asked a NIC yet
  bool staged_only = false;           // no NIC takes it
  std::vector<Refusal> refused = {};  // before that way was taken
};

struct Nic {
  std::string name;  // "strait0"
  bool software = false;
  bool imports_fds = false;
  bool reads_ports = false;  // takes a MemoryPort
  bool has_packets = false;  // can send RoCEv2 itself
  bool grants = true;        // shares rings with peers on this host
  bool maps_pages = false;   // takes no dma-buf: registers the mapping of the file behind one
  Place place = {};
  bool follows_pages = false;              // reads host memory through the process's page tables; false: it pins pages
  std::string carries = "RoCEv2 packets";  // what goes over its wire; both ends need the same
  double port_gb_s = 0;                    // of its wire; 0: not said
  std::string not_taken = {};              // why no transfer of this plan goes over it; empty: one may
};

enum class Reach { same_process, same_host, other_host };

struct Peer {
  std::string name;  // "10.0.0.7:7471"; empty: no particular peer, planned for same_host
  Reach reach = Reach::same_host;
  bool cross_copy = false;            // process_vm_readv works between the two processes
  std::string cross_copy_refusal;     // why not: "Yama scope 1", "another PID namespace"
  std::optional<Memory> memory = {};  // where the bytes are to go; unset: memory that its NIC reaches
  bool same_node = false;             // both ends are one Node's: it can copy without any NIC
  std::vector<Nic> nics = {};         // its own; empty: the same as here
  // Why neither end's CPU may move the bytes by itself; empty: it may.
  std::string no_map_grants = "none was asked for";
  std::string no_copy_grants = "none was asked for";
};

enum class Carrier { any, grant, packets };
// "auto", "grant", "roce": the option `carrier`.
[[nodiscard]] Result<Carrier> parse_carrier(std::string_view text);

struct Policy {
  bool require_zero_copy = false;  // staging is refused
  bool allow_staging = false;      // staging may be chosen when nothing else works
  Carrier carrier = Carrier::any;  // forced: every other carrier is "no"
  bool staging_asked = false;      // by name, which allows it too
};

// What a way costs: a part that every operation pays, and one per byte.
struct Cost {
  double latency_us = 0;
  double gb_s = 0;         // 0: nobody knows
  bool measured = false;   // this way, timed by this process; false: estimated
  std::string basis = {};  // what the figures come from: "timed here", "PCIe 26.8 GB/s below one switch"
  [[nodiscard]] bool known() const { return gb_s > 0; }
};

// What was timed for one plan, by whoever makes it; what was not stays empty, rather than being invented.
struct Costs {
  Cost copy;     // from the source to the destination within one Node: memcpy, copy engine or link
  Cost out;      // from the source to host memory
  Cost in;       // from host memory to the destination
  Cost memcpy;   // by this CPU
  Cost call;     // the same between processes, by a system call
  Cost ring;     // through the ring of a software NIC, between Nodes of one process
  Cost packets;  // of a software NIC, between Nodes of one host
};

enum class Verdict { yes, no, held };  // held: possible, but not without permission
// engine: a copy that the device, or the CPU for host memory, makes itself. link: between devices of one vendor. ipc:
// the other process opens the memory by the vendor's handle. map, call: this CPU moves the bytes, in memory that both
// processes map or by a system call. The next three are a NIC's, by what carries the bytes. reach: how a NIC was to get
// at the memory, and did not.
enum class Kind { engine, link, ipc, map, call, copy, ring, packets, staged, reach };

struct Way {
  Kind kind = Kind::copy;
  std::string name;   // in full: "zero-copy: dma-buf -> strait0 -> ring grant, one copy by the owner's engine
                      // (process_vm_readv)"
  std::string label;  // for tables: "ring grant, one copy"
  std::string nic;    // the NIC it runs over
  Verdict verdict = Verdict::no;
  std::string reason;
  Cost cost;
};

struct Plan {
  std::string from;
  std::string to;
  std::vector<Way> ways;              // best first
  std::optional<std::size_t> chosen;  // into ways
  // Code::unsupported, with the reason of every way, when none can be taken.
  [[nodiscard]] Result<Way> way() const;
};

// NICs are tried in the order of preferred() (plan/cost.hpp); `rank` says which of several equal ones is this source's
// (its number among the devices that share them).
[[nodiscard]] Plan make_plan(const Memory& source, std::span<const Nic> nics, const Peer& peer, const Policy& policy,
                             const Costs& costs = {}, std::size_t rank = 0);

[[nodiscard]] const char* verdict_name(Verdict verdict);
[[nodiscard]] const char* kind_name(Kind kind);  // "engine", "link", "ipc", "map", "call", "copy", "ring", "roce", ...

// As `strait explain` shows it: lines of at most 80 columns, each ended by a newline.
[[nodiscard]] std::string to_text(const Plan& plan);
[[nodiscard]] nlohmann::json to_json(const Plan& plan);

}  // namespace strait::plan
