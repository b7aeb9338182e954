// SPDX-License-Identifier: Apache-2.0
// P2p: nvidia_p2p, the oldest way to a GPU's memory: pages of 64 KiB, pinned until they are put or the driver calls
// back.
//
// Rules. Address and length are multiples of 64 KiB. After get_pages the free callback may come at any time, and comes
// once, when the memory is freed under the pages. Inside it only free_dma_mapping and free_page_table may be called;
// unmap and put fail there, and a put that races it fails gently: the callback's side then owns the teardown. The
// persistent variant has no callback: its pages survive the free until they are put.
//
// Answers are 0 or -errno: EINVAL, ENOTSUPP (524), ENOMEM, EIO. Threads: any.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/counters.hpp"
#include "soft/kernel/dma_buf.hpp"
#include "soft/kernel/drivers.hpp"
#include "soft/kernel/exporters.hpp"

namespace strait::soft::kernel {

inline constexpr std::uint64_t kP2pPageBytes = 65536;

struct P2pPageTable {
  std::uint32_t version = 0x00020000;
  std::uint32_t page_size = 1;       // 0: 4 KiB, 1: 64 KiB, 2: 128 KiB
  std::vector<std::uint64_t> pages;  // physical addresses
  std::uint32_t flags = 0;           // 1: cacheable by the CPU

  // The driver's own.
  enum class State { live, calling_back, called_back, gone };
  State state = State::live;
  bool persistent = false;
  std::uint64_t first = 0;
  std::uint64_t length_bytes = 0;
  std::uint64_t watch = 0;
  std::shared_ptr<DeviceMemory> memory;
  std::function<void()> free_callback;
};

struct P2pDmaMapping {
  std::uint32_t version = 0x00020003;
  std::uint32_t page_size_type = 1;
  std::vector<std::uint64_t> addresses;  // one for each page, for the device that it was made for

  bool gone = false;
  sys::Mapping bytes;
  // What of a range of device addresses is behind the pages.
  [[nodiscard]] Segment segment(std::uint64_t address, std::uint64_t length_bytes) const;
  std::uint64_t backed_first = 0;  // device address of the first byte of `bytes`
};

using P2pTable = std::shared_ptr<P2pPageTable>;
using P2pMapping = std::shared_ptr<P2pDmaMapping>;

class P2p {
 public:
  P2p(Drivers& drivers, KernelFaults& faults, Counters& counters, BarSpace& bar)
      : drivers_(drivers), faults_(faults), counters_(counters), bar_(bar) {}

  // A token is an address in the allocation that is meant, for when several share a page; 0: the first in the range.
  [[nodiscard]] int get_pages(std::uint64_t token, std::uint32_t va_space, std::uint64_t va, std::uint64_t length_bytes,
                              P2pTable& out, std::function<void()> free_callback);
  [[nodiscard]] int put_pages(std::uint64_t token, std::uint32_t va_space, std::uint64_t va, const P2pTable& table);
  [[nodiscard]] int dma_map_pages(const DmaDevice& device, const P2pTable& table, P2pMapping& out);
  [[nodiscard]] int dma_unmap_pages(const P2pTable& table, const P2pMapping& mapping);
  // For the callback.
  [[nodiscard]] int free_page_table(const P2pTable& table);
  [[nodiscard]] int free_dma_mapping(const P2pMapping& mapping);

  // flags: 1 forces the BAR on coherent parts.
  [[nodiscard]] int get_pages_persistent(std::uint64_t va, std::uint64_t length_bytes, P2pTable& out,
                                         std::uint32_t flags, std::uint64_t token = 0);
  [[nodiscard]] int put_pages_persistent(std::uint64_t va, const P2pTable& table, std::uint32_t flags);

  // The driver takes these pages back although nobody freed the memory: runs the callback if it has not run.
  void provoke(const P2pTable& table);

 private:
  [[nodiscard]] int take_pages(std::uint64_t token, std::uint64_t va, std::uint64_t length_bytes, P2pTable& out);
  void call_back(const P2pTable& table);
  void give_bar_back(const P2pPageTable& table);

  Drivers& drivers_;
  KernelFaults& faults_;
  Counters& counters_;
  BarSpace& bar_;
  std::mutex mutex_;  // of the states of all tables and mappings; not held while a callback runs
};

}  // namespace strait::soft::kernel
