// SPDX-License-Identifier: Apache-2.0
// Queues nobody serves: rings, records and doorbells in host memory, counters in GPU memory, as a Node lays them out.
// A kernel fills each ring once; reset() empties them for the next launch.
#pragma once

#include <cstdint>
#include <vector>

#include "cuda.hpp"
#include "strait/device/queue.hpp"

namespace bench::gpu {

// One ring as a loop without bookkeeping needs it, by a kernel's addresses.
struct BareRing {
  std::uint8_t* blocks;
  std::uint32_t* record;  // the send word
  std::uint64_t* doorbell;
  std::uint64_t mask;
  std::uint32_t qpn_shifted;
};

class Rings {
 public:
  Rings(unsigned queues, unsigned log_blocks, strait::device::Sharing sharing)
      : queues_(queues),
        log_blocks_(log_blocks),
        sharing_(sharing),
        host_(queues * (ring_bytes() + kTail)),
        marks_(queues * 8 * blocks()),
        completions_(64 * blocks()),
        state_(queues * sizeof(strait::device::QueueState)),
        handles_(queues * sizeof(strait::device::Queue)),
        bare_(queues * sizeof(BareRing)) {
    prepare();
  }

  unsigned queues() const { return queues_; }
  std::uint64_t blocks() const { return std::uint64_t{1} << log_blocks_; }
  const strait::device::Queue* handles() const { return handles_.as<strait::device::Queue>(); }
  const BareRing* bare() const { return bare_.as<BareRing>(); }
  // A word in GPU memory that reset() clears, for loops that share a ring.
  std::uint64_t* counter() const { return marks_.as<std::uint64_t>(); }

  // Everything as new, except the bytes of the rings.
  void reset() {
    marks_.clear();
    check(cudaMemcpy(state_.as<void>(), image_.data(), state_.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  void wipe() { host_.clear(); }
  // Ring and record of every queue. Not the doorbell: what counts there is that it rings.
  std::vector<std::byte> contents() const {
    std::vector<std::byte> out(host_.here(), host_.here() + host_.size());
    for (unsigned i = 0; i < queues_; ++i) std::memset(out.data() + tail(i) + 64, 0, 64);
    return out;
  }

  const std::byte* ring_here(unsigned queue) const { return host_.here() + queue * ring_bytes(); }
  std::uint32_t record_here(unsigned queue) const {
    std::uint32_t word = 0;
    std::memcpy(&word, host_.here() + tail(queue) + 4, sizeof word);
    return __builtin_bswap32(word);
  }
  BareRing bare_of(unsigned queue) const {
    std::byte* const blocks_there = host_.there() + queue * ring_bytes();
    std::byte* const tail_there = host_.there() + tail(queue);
    return {reinterpret_cast<std::uint8_t*>(blocks_there), reinterpret_cast<std::uint32_t*>(tail_there + 4),
            reinterpret_cast<std::uint64_t*>(tail_there + 64), blocks() - 1, (kFirstQpn + queue) << 8};
  }
  static constexpr std::uint32_t kFirstQpn = 0x101;

 private:
  // Record and doorbell on lines of their own; 64 bytes for a doorbell, since the peer writes as many.
  static constexpr std::size_t kTail = 128;
  std::size_t ring_bytes() const { return 64 * blocks(); }
  std::size_t tail(unsigned queue) const { return queues_ * ring_bytes() + queue * kTail; }

  void prepare() {
    using namespace strait::device;
    std::vector<Queue> handles(queues_);
    std::vector<BareRing> bare(queues_);
    image_.resize(queues_);
    for (unsigned i = 0; i < queues_; ++i) {
      bare[i] = bare_of(i);
      QueueMemory memory;
      memory.sharing = sharing_;
      memory.send.blocks = bare[i].blocks;
      memory.send.log_blocks = log_blocks_;
      memory.send.qpn = kFirstQpn + i;
      memory.send.record = reinterpret_cast<strait::wire::mlx5::QueueRecord*>(host_.there() + tail(i));
      memory.send.doorbell = bare[i].doorbell;
      memory.send.marks = marks_.as<std::uint64_t>() + i * blocks();
      memory.sends.entries = completions_.as<void>();  // nothing completes here
      memory.sends.log_entries = log_blocks_;
      if (!open_queue(image_[i], memory)) throw std::runtime_error("the benchmark's own queue is refused");
      handles[i] = {head_of<Queue>(), sharing_, 0, state_.as<QueueState>() + i};
    }
    check(cudaMemcpy(handles_.as<void>(), handles.data(), handles_.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
    check(cudaMemcpy(bare_.as<void>(), bare.data(), bare_.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
    reset();
  }

  unsigned queues_;
  unsigned log_blocks_;
  strait::device::Sharing sharing_;
  HostPages host_;
  DeviceMemory marks_;
  DeviceMemory completions_;
  DeviceMemory state_;
  DeviceMemory handles_;
  DeviceMemory bare_;
  std::vector<strait::device::QueueState> image_;
};

}  // namespace bench::gpu
