// SPDX-License-Identifier: Apache-2.0
// KernelFaults: what the software machine's kernel does wrong on purpose, as a text.
//
//   attach=524,map=EPERM@2,topology,no_p2p,reset,static_moves,bar=256M,move@64K,invalidate@64K
//
// STEP=ERRNO fails every call of a step, STEP=ERRNO@N only the N-th. Steps: attach, pin, map (dma-buf); acquire,
// get_pages, dma_map (peer-memory client); p2p_get, p2p_map (nvidia_p2p).
//   topology      the GPU driver refuses this NIC at attach: 524
//   no_p2p        no peer-to-peer path: habanalabs answers EPERM at map, amdgpu moves the buffer to system memory
//   reset         the accelerator is in reset: habanalabs answers EBUSY at map
//   static_moves  amdgpu moves a buffer on a static attach and tells nobody: the NIC uses a copy
//   bar=BYTES     all mappings of one device's memory together
//   move@BYTES    the exporter moves a buffer once so many bytes went through a registration of it
//   invalidate@BYTES  the driver takes the pages back at that byte of a transfer
//
// Threads: any.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace strait::soft::kernel {

enum class Step : std::uint8_t { attach, pin, map, acquire, get_pages, dma_map, p2p_get, p2p_map };
inline constexpr std::size_t kSteps = 8;
[[nodiscard]] const char* step_name(Step step);

// What the kernel calls ENOTSUPP: no program's errno.h has it, and it reaches programs all the same.
inline constexpr int kNotSupported524 = 524;

class KernelFaults {
 public:
  // Code::invalid names the item that is wrong and what it could be.
  [[nodiscard]] static Result<KernelFaults> parse(std::string_view text);
  KernelFaults() = default;
  KernelFaults(const KernelFaults& other);
  KernelFaults& operator=(const KernelFaults& other);

  // Counts one more call of the step: 0, or the -errno it is to fail with.
  [[nodiscard]] int on(Step step);
  [[nodiscard]] std::uint64_t injected() const { return injected_.load(std::memory_order_relaxed); }

  bool topology = false;
  bool no_p2p = false;
  bool reset = false;
  bool static_moves = false;
  std::uint64_t bar_bytes = 0;  // 0: no limit
  std::optional<std::uint64_t> move_at, invalidate_at;

 private:
  struct Item {
    Step step;
    int error;
    std::uint64_t nth;  // 0: every one
  };
  [[nodiscard]] Status take(std::string_view item);

  std::vector<Item> items_;
  std::array<std::atomic<std::uint64_t>, kSteps> calls_{};
  std::atomic<std::uint64_t> injected_{0};
};

}  // namespace strait::soft::kernel
