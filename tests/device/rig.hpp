// SPDX-License-Identifier: Apache-2.0
// Memory for rings under test, with guard zones, and a device on paper that executes nothing but reads and answers in
// the format's terms.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "decode.hpp"
#include "strait/device/completion_ring.hpp"
#include "strait/device/post.hpp"
#include "strait/device/receive_ring.hpp"
#include "strait/device/send_ring.hpp"
#include "strait/device/wait.hpp"

namespace paper {

namespace sd = strait::device;
namespace sw = strait::wire;
namespace mlx5 = strait::wire::mlx5;

inline constexpr std::uint8_t kGuard = 0xa5;

// 64-byte aligned bytes between two guard zones of one block each.
class Guarded {
 public:
  Guarded(std::size_t bytes, std::uint8_t fill) : bytes_(bytes) {
    base_ = static_cast<std::uint8_t*>(::operator new(bytes + 128, std::align_val_t{64}));
    std::memset(base_, kGuard, bytes + 128);
    std::memset(data(), fill, bytes);
  }
  ~Guarded() { ::operator delete(base_, std::align_val_t{64}); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  std::uint8_t* data() const { return base_ + 64; }
  std::size_t size() const { return bytes_; }
  bool intact() const {
    for (std::size_t i = 0; i < 64; ++i)
      if (base_[i] != kGuard || base_[64 + bytes_ + i] != kGuard) return false;
    return true;
  }

 private:
  std::uint8_t* base_;
  std::size_t bytes_;
};

struct SendRig {
  explicit SendRig(std::uint32_t log_blocks, std::uint64_t first = 0, std::uint32_t qpn = 0xa1b2)
      : memory(std::size_t{64} << log_blocks, kGuard), marks(std::size_t{1} << log_blocks, 0) {
    sd::SendRingMemory m;
    m.blocks = memory.data();
    m.log_blocks = log_blocks;
    m.qpn = qpn;
    m.record = &record;
    m.doorbell = &doorbell;
    m.marks = marks.data();
    m.first_index = first;
    opened = sd::open_send_ring(ring, m);
  }

  std::uint32_t blocks() const { return static_cast<std::uint32_t>(ring.slots.capacity); }
  Wqe at(std::uint64_t index) const { return decode(memory.data(), blocks(), index); }
  std::uint32_t sent() const { return sw::be32::from_raw(__atomic_load_n(ring.record, __ATOMIC_ACQUIRE)).value(); }
  // As if everything posted so far had been completed by the device.
  void drain() { ring.slots.rung = ring.slots.completed = ring.slots.ready; }

  Guarded memory;
  std::vector<std::uint64_t> marks;
  mlx5::QueueRecord record{};
  alignas(64) std::uint64_t doorbell = 0;
  sd::SendRing ring{};
  bool opened = false;
};

struct CqRig {
  CqRig(std::uint32_t log_entries, std::uint32_t entry_bytes, std::uint64_t first = 0)
      : memory(std::size_t{entry_bytes} << log_entries, 0xff), bytes(entry_bytes), log(log_entries), produced(first) {
    for (std::size_t i = 0; i < std::size_t{1} << log_entries; ++i)
      memory.data()[(i + 1) * entry_bytes - 1] = mlx5::kCqeInvalid;
    sd::CompletionRingMemory m;
    m.entries = memory.data();
    m.log_entries = log_entries;
    m.entry_bytes = entry_bytes;
    m.record = &record;
    m.first_index = first;
    opened = sd::open_completion_ring(ring, m);
  }

  // Device side, normal ring: all bytes, then op_own.
  void write(mlx5::Cqe cqe) {
    std::uint8_t* const entry = memory.data() + (produced & ((1u << log) - 1)) * bytes + bytes - 64;
    std::uint8_t image[64];
    std::memcpy(image, &cqe, 64);
    for (unsigned i = 0; i < 63; ++i) entry[i] = image[i];  // not memcpy: g++ expands that where TSan does not see it
    const auto owner = static_cast<std::uint8_t>(produced >> log & 1);
    __atomic_store_n(entry + 63, static_cast<std::uint8_t>((image[63] & ~1u) | owner), __ATOMIC_RELEASE);
    ++produced;
  }
  // Device side, collapsed ring: entry 0, the last four bytes in one piece.
  void write_collapsed(mlx5::Cqe cqe) {
    std::uint8_t* const entry = memory.data() + bytes - 64;
    std::uint32_t image[16];
    std::memcpy(image, &cqe, 64);
    for (unsigned i = 0; i < 16; ++i)
      __atomic_store_n(reinterpret_cast<std::uint32_t*>(entry) + i, image[i], __ATOMIC_RELEASE);
  }
  std::uint32_t consumer() const {
    return sw::be32::from_raw(__atomic_load_n(reinterpret_cast<const std::uint32_t*>(&record), __ATOMIC_ACQUIRE))
        .value();
  }

  Guarded memory;
  std::uint32_t bytes, log;
  std::uint64_t produced;
  mlx5::CqRecord record{};
  sd::CompletionRing ring{};
  bool opened = false;
};

inline mlx5::Cqe requester_cqe(std::uint32_t qpn, std::uint64_t index, mlx5::Opcode op, std::uint32_t bytes = 0) {
  mlx5::Cqe c{};
  c.sop_qpn = sw::be32{static_cast<std::uint32_t>(op) << 24 | qpn};
  c.srqn_uidx = sw::be32{0x00123456};
  c.byte_cnt = sw::be32{bytes};
  c.wqe_counter = sw::be16{static_cast<std::uint16_t>(index)};
  c.op_own = mlx5::make_op_own(mlx5::CqeOpcode::requester, 0);
  return c;
}
inline mlx5::Cqe error_cqe(std::uint32_t qpn, std::uint64_t index, mlx5::Opcode op, mlx5::Syndrome syndrome,
                           std::uint8_t vendor) {
  mlx5::Cqe c = requester_cqe(qpn, index, op);
  c.timestamp = sw::be64{static_cast<std::uint64_t>(vendor) << 8 | static_cast<std::uint8_t>(syndrome)};
  c.op_own = mlx5::make_op_own(mlx5::CqeOpcode::requester_error, 0);
  return c;
}

// Small deterministic generator, the same on every platform.
struct Random {
  std::uint64_t state;
  std::uint64_t next() {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
  }
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(next() >> 33) % n; }
};

inline constexpr auto kOne = sd::Sharing::one_thread;
inline constexpr auto kMany = sd::Sharing::many_threads;

}  // namespace paper
