// SPDX-License-Identifier: Apache-2.0
// A queue pair of plain verbs, with memory whose neighbourhood tells whether anybody strayed.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace hostile {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kMemory = std::size_t{1} << 20;
constexpr std::uint32_t kDepth = 64;

struct Device {
  ibv_context* context = nullptr;
  ibv_pd* domain = nullptr;
  ibv_gid gid{};
};

// The first device, with its first address. Empty text: it is there.
std::string open_device(Device& out);

class Queue {
 public:
  // Empty text: it is made, and in INIT.
  std::string make(const Device& device);
  std::string connect(const ibv_gid& gid, std::uint32_t qpn, unsigned timeout, unsigned retries);
  std::string post(ibv_wr_opcode opcode, std::uint32_t bytes, std::uint64_t remote, std::uint32_t rkey,
                   std::uint8_t seed);
  std::string receive(std::uint32_t bytes);
  // The status of the next completion; -1: none within the time.
  int wait(int milliseconds);

  [[nodiscard]] std::uint8_t* memory() const { return memory_; }
  [[nodiscard]] bool holds(std::size_t bytes, std::uint8_t seed) const;
  // Bytes around the registered memory that are not what they were.
  [[nodiscard]] std::size_t strays() const;
  [[nodiscard]] ibv_qp* qp() const { return qp_; }
  [[nodiscard]] ibv_cq* cq() const { return cq_; }
  [[nodiscard]] ibv_mr* mr() const { return mr_; }

 private:
  const Device* device_ = nullptr;
  std::uint8_t* memory_ = nullptr;  // a page of pattern before it, and one behind
  ibv_mr* mr_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_qp* qp_ = nullptr;
};

// Byte `at` of a message.
constexpr std::uint8_t byte_of(std::size_t at, std::uint8_t seed) {
  return static_cast<std::uint8_t>(at * 7 + at / 251 + seed);
}

}  // namespace hostile
