// SPDX-License-Identifier: Apache-2.0
// Copies by SynapseAI: host memory is mapped for the device while a copy runs, an event says when it is done. Between
// two devices the source's engine writes over the link.
//
// Threads: any.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/counters.hpp"
#include "base/error.hpp"
#include "buffer/gaudi/acquired.hpp"

namespace strait::buffer::gaudi {

class Copies {
 public:
  explicit Copies(const Libraries& libraries) : libraries_(libraries) {}
  ~Copies();
  Copies(const Copies&) = delete;
  Copies& operator=(const Copies&) = delete;

  // A null side is host memory; ranges have been checked.
  [[nodiscard]] Result<std::uint64_t> start(const std::shared_ptr<Acquired>& target, std::uint64_t to,
                                            const std::shared_ptr<Acquired>& source, std::uint64_t from,
                                            std::uint64_t length_bytes);
  // The far side is memory of another process's device, which `device` reaches over the link. Host memory gets there
  // through memory of `device`, first or last leg over PCIe: in pieces of at most kStopBytes, two of them under way.
  static constexpr std::uint64_t kStopBytes = 4u << 20;
  enum class FarHost { none, source, target };
  [[nodiscard]] Result<std::uint64_t> start_far(const std::shared_ptr<Acquired>& device, std::uint64_t to,
                                                std::uint64_t from, std::uint64_t length_bytes, FarHost host);
  [[nodiscard]] std::int32_t done(std::uint64_t ticket);
  [[nodiscard]] Status wait(std::uint64_t ticket);
  [[nodiscard]] std::string counters() const;

 private:
  struct Running {
    std::shared_ptr<Acquired> device;
    std::shared_ptr<Acquired> other;  // the far side of a copy over the link: held too
    void* event = nullptr;
    const void* mapped = nullptr;  // host memory to unmap at the end
    std::uint64_t stop = 0;        // memory of the device on the way to a far side, to free at the end
    std::array<void*, 4> turns{};  // events between the two legs, to destroy at the end
  };
  [[nodiscard]] int queue_pieces(Running& running, std::uint64_t to, std::uint64_t from, std::uint64_t length_bytes,
                                 FarHost host);
  void end(const Running& running);
  [[nodiscard]] Result<std::uint64_t> keep(Running running, std::uint64_t length_bytes);

  const Libraries& libraries_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, Running> running_;
  std::uint64_t last_ticket_ = 0;
  Counter started_, finished_, failed_, bytes_, far_bytes_;
};

}  // namespace strait::buffer::gaudi
