// SPDX-License-Identifier: Apache-2.0
// Plain records about memory: devices, ranges, and the answer to "whose memory is this?". No behaviour, no vendor
// headers, so that planning and tests can make them up.
#pragma once

#include <cstdint>
#include <string>

#include "strait/plugin.h"

namespace strait::buffer {

class Provider;

// One row of `strait info`: a place memory can live in.
struct Device {
  std::string name;  // "host", "soft:0": what `near` takes
  std::string kind;  // the provider's: "host", "soft", "cuda"
  std::string description;
  std::uint64_t memory_bytes = 0;  // 0: not limited by the provider
  std::uint32_t capabilities = 0;  // STRAIT_CAN_*, STRAIT_CPU_ACCESSIBLE
  bool software = false;           // not hardware, and shown so
  std::string pci_address{};       // as sysfs spells it; empty: unknown or none
  int numa_node = -1;              // -1: unknown
  std::string driver{};            // "CUDA 13.0, driver 580.159.04"; empty: none to speak of
  std::uint64_t bar_bytes = 0;     // the window that peers can address; 0: unknown
  std::string link{};              // what joins devices of this kind: "Gaudi link"; empty: the PCIe bus
};

struct Range {
  std::uint64_t address = 0;
  std::uint64_t length_bytes = 0;

  [[nodiscard]] std::uint64_t end() const { return address + length_bytes; }
  friend bool operator==(const Range&, const Range&) = default;
};

// Who owns a range. Valid as long as the Providers that gave it; it does not keep the memory alive: compare `identity`
// with a fresh claim to find out whether an address still means the same allocation.
struct Claim {
  Provider* provider = nullptr;    // never null in a claim that classify returned
  const Device* device = nullptr;  // never null either
  std::uint32_t device_index = 0;  // in provider->devices()
  Range asked;                     // what was asked about, inside `whole`
  // The whole allocation, or the largest range around `asked` that can be exported as one; `asked` itself where nobody
  // knows it (host memory of others).
  Range whole;
  std::uint64_t identity = 0;      // never reused by this provider; 0: unknown
  std::uint32_t capabilities = 0;  // STRAIT_CAN_* of this allocation
  bool writable = true;            // false: host pages that this process may only read
  std::uint32_t sort = STRAIT_SORT_UNKNOWN;
  std::uint32_t ipc_ways = 0;        // STRAIT_IPC_*
  std::uint64_t block_identity = 0;  // of the physical memory, where that can change under an address
  std::uint64_t cpu_address = 0;     // where the CPU finds asked.address; 0: nowhere, or only through map_cpu

  [[nodiscard]] bool cpu_accessible() const { return (capabilities & STRAIT_CPU_ACCESSIBLE) != 0; }
  [[nodiscard]] bool can_export() const { return (capabilities & STRAIT_CAN_EXPORT_DMABUF) != 0; }
};

// "device memory", "managed memory", ...: STRAIT_SORT_* in words.
[[nodiscard]] const char* sort_name(std::uint32_t sort);
// "soft:0 0x7e0000000000 + 16 MiB (whole allocation 64 MiB)".
[[nodiscard]] std::string describe(const Claim& claim);
// "16 MiB", "1000 B", "1.5 GiB": exact where a unit divides the number, else rounded to one decimal.
[[nodiscard]] std::string size_text(std::uint64_t bytes);

}  // namespace strait::buffer
