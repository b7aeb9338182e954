// SPDX-License-Identifier: Apache-2.0
// What a NIC and a Node allow, and the ways memory can be reached: plain records, so that plan/ can rank ways and tests
// can describe machines nobody has.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace strait::exports {

// Filled by a rail when it opens its NIC.
struct NicAbilities {
  std::string name;             // "strait0"
  bool host_pages = true;       // registers plain host memory by address
  bool imports_fds = false;     // registers memory by file descriptor (dma-buf)
  bool wants_pages = false;     // its driver takes no dma-buf: the memfd behind one goes along
  bool peer_memory = false;     // a peer-memory client answers for device addresses given as plain addresses
  bool p2p_pages = false;       // nvidia_p2p pages
  bool persistent = false;      // of NVIDIA's memory it has persistent pages: they survive the free, nobody is told
  bool follows_pages = false;   // reads host memory through the process's page tables: it may move between accesses
  bool plain_unknown = false;   // whether either answers only a registration tells: tried when it is asked for by name
  std::uint64_t max_bytes = 0;  // longest registration; 0: no limit
};

// Option reach: one way by name, or the best there is.
enum class Reach { automatic, dmabuf, peer_memory, p2p_pages, staged };
[[nodiscard]] constexpr const char* reach_name(Reach reach) {
  switch (reach) {
    case Reach::automatic: return "auto";
    case Reach::dmabuf: return "dmabuf";
    case Reach::peer_memory: return "peermem";
    case Reach::p2p_pages: return "p2p";
    case Reach::staged: return "staged";
  }
  return "unknown";
}
[[nodiscard]] constexpr Reach parse_reach(std::string_view text) {
  for (const Reach each : {Reach::dmabuf, Reach::peer_memory, Reach::p2p_pages, Reach::staged}) {
    if (text == reach_name(each)) return each;
  }
  return Reach::automatic;
}

// In the order they are tried: from no work at all to a copy of every byte.
enum class Way { host_pages, dmabuf, peer_memory, p2p_pages, staged };

[[nodiscard]] constexpr const char* way_name(Way way) {
  switch (way) {
    case Way::host_pages: return "host pages";
    case Way::dmabuf: return "dma-buf";
    case Way::peer_memory: return "peer-memory client";
    case Way::p2p_pages: return "nvidia_p2p pages";
    case Way::staged: return "staged through host";
  }
  return "unknown";
}

// What ends a NIC's use of the memory, beside its own deregistration.
enum class Lifetime {
  process,        // host pages: pinned, they stay
  reference,      // a dma-buf holds the memory whatever is freed; before a move the NIC is told (move_notify)
  invalidate,     // a peer-memory client's upcall when the memory is freed
  free_callback,  // nvidia_p2p's callback when the memory is freed
  persistent,     // the pages stay, whatever is freed, until they are put: nobody is told
  copied,         // staged: the NIC never sees it
};
// `persistent`: the pages that NVIDIA's driver gives for an address are.
[[nodiscard]] constexpr Lifetime lifetime_of(Way way, bool persistent = false) {
  switch (way) {
    case Way::host_pages: return Lifetime::process;
    case Way::dmabuf: return Lifetime::reference;
    case Way::peer_memory: return persistent ? Lifetime::persistent : Lifetime::invalidate;
    case Way::p2p_pages: return persistent ? Lifetime::persistent : Lifetime::free_callback;
    case Way::staged: return Lifetime::copied;
  }
  return Lifetime::copied;
}
[[nodiscard]] constexpr const char* lifetime_text(Lifetime lifetime) {
  switch (lifetime) {
    case Lifetime::process: return "pinned until it is deregistered";
    case Lifetime::reference: return "a reference holds the memory; the NIC is told before a move";
    case Lifetime::invalidate: return "until the memory is freed: an upcall then ends the registration";
    case Lifetime::free_callback: return "until the memory is freed: a callback then ends the registration";
    case Lifetime::persistent: return "the pages survive the free until the NIC puts them; nobody tells it";
    case Lifetime::copied: return "the NIC sees a copy only";
  }
  return "unknown";
}

[[nodiscard]] constexpr bool zero_copy(Way way) {
  return way != Way::staged;
}

// A way not taken, and why.
struct Rejected {
  Way way;
  std::string reason;
};

struct Policy {
  bool allow_staging = false;  // option allow_staging; reach=staged allows it too
  Reach reach = Reach::automatic;
  std::vector<Rejected> refused{};  // what a NIC would not register so, and what it said
};

}  // namespace strait::exports
