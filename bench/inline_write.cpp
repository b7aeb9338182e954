// SPDX-License-Identifier: Apache-2.0
// Builds, rings and reaps 8-byte inline writes, with the device's side played by a few lines: what callgrind counts.
//
//   inline_write post|reap|empty COUNT    does all of it COUNT times; the name is what the caller wants counted
//
// The functions called count_* are the ones whose instructions are collected; everything else is scenery. They are not
// inlined, so a call and a return are part of each.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "strait/device/completion_ring.hpp"
#include "strait/device/post.hpp"
#include "strait/device/send_ring.hpp"
#include "strait/device/wait.hpp"

namespace {

using namespace strait;
constexpr auto kOwner = device::Sharing::one_thread;
constexpr std::uint32_t kLogBlocks = 8;
constexpr std::uint32_t kLogCqes = 8;

struct Memory {
  alignas(64) std::uint8_t blocks[64u << kLogBlocks];
  alignas(64) std::uint8_t cqes[64u << kLogCqes];
  alignas(64) wire::mlx5::QueueRecord queue_record;
  alignas(64) wire::mlx5::CqRecord cq_record;
  alignas(64) std::uint64_t doorbell;
};
Memory memory;
device::SendRing send_ring;
device::CompletionRing completion_ring;

}  // namespace

extern "C" {

// One WQE built in the ring, and the device told.
[[gnu::noinline]] std::uint64_t count_post(std::uint64_t address, std::uint64_t value) {
  const device::Pending pending =
      device::post_write_inline<kOwner>(send_ring, {address, 0x1234}, &value, sizeof value, device::kSignaled);
  device::ring_doorbell<kOwner>(send_ring);
  return pending.ok() ? pending.start : ~std::uint64_t{0};
}

// Its completion taken, the CQ's record moved, the send ring's blocks free again.
[[gnu::noinline]] bool count_reap() {
  device::Completion completion;
  bool other = false;
  const auto polled =
      device::reap<kOwner, device::CompletionMode::normal>(send_ring, completion_ring, completion, other);
  return polled == device::Polled::done && !other;
}

// A look at a completion ring that has nothing: what each turn of a polling loop costs.
[[gnu::noinline]] bool count_empty() {
  device::Completion completion;
  bool other = false;
  return device::reap<kOwner, device::CompletionMode::normal>(send_ring, completion_ring, completion, other) ==
         device::Polled::empty;
}
}

namespace {

// The device: what it saw must be the write that was posted; then it completes it.
void serve(std::uint64_t index, std::uint64_t address, std::uint64_t value) {
  const std::uint8_t* wqe = memory.blocks + (index % (1u << kLogBlocks)) * 64;
  std::uint64_t payload = 0;
  std::memcpy(&payload, wqe + 36, sizeof payload);
  std::uint64_t where = 0;
  std::memcpy(&where, wqe + 16, sizeof where);
  if (payload != value || __builtin_bswap64(where) != address || std::memcmp(wqe, &memory.doorbell, 8) != 0) {
    std::fprintf(stderr, "inline_write: WQE %llu is not the write that was posted\n",
                 static_cast<unsigned long long>(index));
    std::exit(1);
  }
  std::uint8_t* cqe = memory.cqes + (index % (1u << kLogCqes)) * 64;
  std::memset(cqe, 0, 64);
  cqe[56] = static_cast<std::uint8_t>(wire::mlx5::Opcode::rdma_write);  // opcode, then 24 bits of qpn: 7
  cqe[59] = 7;
  cqe[60] = static_cast<std::uint8_t>(index >> 8);
  cqe[61] = static_cast<std::uint8_t>(index);
  cqe[63] = static_cast<std::uint8_t>(index >> kLogCqes & 1);  // requester, owner bit of this lap
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t count = argc == 3 ? std::strtoull(argv[2], nullptr, 10) : 0;
  if (count == 0) {
    std::fprintf(stderr, "usage: inline_write post|reap|empty COUNT\n");
    return 2;
  }
  for (std::uint32_t i = 0; i < 1u << kLogCqes; ++i) memory.cqes[i * 64 + 63] = wire::mlx5::kCqeInvalid;
  if (!device::open_send_ring(send_ring, {.blocks = memory.blocks,
                                          .log_blocks = kLogBlocks,
                                          .qpn = 7,
                                          .record = &memory.queue_record,
                                          .doorbell = &memory.doorbell}) ||
      !device::open_completion_ring(
          completion_ring,
          {.entries = memory.cqes, .log_entries = kLogCqes, .entry_bytes = 64, .record = &memory.cq_record})) {
    std::fprintf(stderr, "inline_write: the rings could not be opened\n");
    return 1;
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t address = 0x7f0000000000 + i * 8;
    if (count_post(address, ~i) != i || !count_empty()) return 1;
    serve(i, address, ~i);
    if (!count_reap()) {
      std::fprintf(stderr, "inline_write: completion %llu was not taken\n", static_cast<unsigned long long>(i));
      return 1;
    }
  }
  return 0;
}
