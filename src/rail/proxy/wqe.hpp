// SPDX-License-Identifier: Apache-2.0
// Reads mlx5 work requests out of a caller's ring, for a device that has never heard of them.
//
// The ring is memory that a program or an accelerator wrote: every count is checked against what was published and what
// the format allows. Keys and bounds are the device's business.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "strait/wire/mlx5.hpp"

namespace strait::rail::proxy {

// A ring of a power of two of bytes.
class Ring {
 public:
  Ring() = default;
  Ring(const void* base, std::uint64_t bytes) : base_(static_cast<const std::byte*>(base)), bytes_(bytes) {}
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  // The address of byte `offset`, counted without end.
  [[nodiscard]] const std::byte* at(std::uint64_t offset) const { return base_ + (offset & (bytes_ - 1)); }
  // How many bytes follow it before the ring starts over.
  [[nodiscard]] std::uint64_t until_end(std::uint64_t offset) const { return bytes_ - (offset & (bytes_ - 1)); }
  // A 16-byte segment. Offsets are multiples of 16, so none lies across the end.
  template <class Segment>
  [[nodiscard]] Segment segment(std::uint64_t offset) const;

 private:
  const std::byte* base_ = nullptr;
  std::uint64_t bytes_ = 0;
};

struct Part {
  std::uint64_t address = 0;
  std::uint32_t length_bytes = 0;
  std::uint32_t lkey = 0;
  bool in_ring = false;  // inline payload: `address` is where it lies in the ring's memory, lkey is nobody's
};

// 62 data segments at most, and an inline payload may be cut in two by the ring's end.
inline constexpr std::size_t kMaxParts = wire::mlx5::kMaxSegments + 1;

struct Work {
  wire::mlx5::Opcode opcode = wire::mlx5::Opcode::nop;
  bool signaled = false;
  bool fence = false;
  bool solicited = false;
  std::uint32_t imm_raw = 0;  // as it lies in memory
  std::uint32_t blocks = 1;   // of the ring
  std::uint64_t remote_address = 0;
  std::uint32_t rkey = 0;
  std::uint64_t operand = 0;  // swap, or what is added
  std::uint64_t compare = 0;
  // Of masked atomics: how many bytes they work on, where carries stop, and which bits count.
  std::uint32_t width = 8;
  std::uint64_t boundary = 0, swap_mask = 0, compare_mask = 0;
  std::uint32_t total_bytes = 0;
  std::size_t count = 0;
  std::array<Part, kMaxParts> parts;  // the first `count`
  [[nodiscard]] std::span<const Part> used() const { return {parts.data(), count}; }
};

// Null: understood. Otherwise the reason, a static text; the syndrome for it is local_qp_operation, or local_length
// when the text is kTooLong. `out` then still has what the error completion needs.
inline constexpr const char* kTooLong = "the message is longer than 2^30 bytes";
// Masked atomics are for those who can do some of them; for others they are not understood.
enum class Masked : std::uint8_t { refused, understood };
[[nodiscard]] const char* read_send(const Ring& ring, std::uint64_t index, std::uint32_t published, std::uint32_t qpn,
                                    Work& out, Masked masked = Masked::refused);
[[nodiscard]] const char* read_receive(const Ring& ring, std::uint64_t index, std::uint32_t stride_bytes, Work& out);

}  // namespace strait::rail::proxy
