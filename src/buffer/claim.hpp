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
  Range whole;                     // the whole allocation; `asked` itself where nobody knows it (host memory of others)
  std::uint64_t identity = 0;      // never reused by this provider; 0: unknown
  std::uint32_t capabilities = 0;  // STRAIT_CAN_* of this allocation
  bool writable = true;            // false: host pages that this process may only read

  [[nodiscard]] bool cpu_accessible() const { return (capabilities & STRAIT_CPU_ACCESSIBLE) != 0; }
  [[nodiscard]] bool can_export() const { return (capabilities & STRAIT_CAN_EXPORT_DMABUF) != 0; }
};

// "soft:0 0x7e0000000000 + 16 MiB (whole allocation 64 MiB)".
[[nodiscard]] std::string describe(const Claim& claim);
// "16 MiB", "1000 B", "1.5 GiB": exact where a unit divides the number, else rounded to one decimal.
[[nodiscard]] std::string size_text(std::uint64_t bytes);

}  // namespace strait::buffer
