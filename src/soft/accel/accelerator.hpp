// SPDX-License-Identifier: Apache-2.0
// Accelerator: the software accelerator behind the provider interface: devices, copies, exports, and a count of every
// call.
//
// Threads: any. In a forked child every call answers Code::gone: the copy engine's thread does not exist there.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/counters.hpp"
#include "base/error.hpp"
#include "soft/accel/arena.hpp"
#include "soft/accel/config.hpp"
#include "soft/accel/copy_engine.hpp"
#include "soft/accel/watches.hpp"
#include "strait/plugin.h"
#include "sys/calls.hpp"
#include "sys/fork.hpp"

namespace strait::soft::accel {

class Accelerator {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Accelerator>> open(std::string_view config,
                                                                 const sys::Calls& calls = sys::real_calls());
  // Queued copies finish first. Allocations die with it; exported descriptors stay good, they are the caller's.
  ~Accelerator();

  [[nodiscard]] std::uint32_t device_count() const { return static_cast<std::uint32_t>(arenas_.size()); }
  [[nodiscard]] Status device_info(std::uint32_t device, strait_device_info& out) const;
  [[nodiscard]] bool classify(std::uint64_t address, strait_claim& out) const;

  [[nodiscard]] Result<std::uint64_t> allocate(std::uint32_t device, std::uint64_t length_bytes);
  [[nodiscard]] Status free(std::uint64_t address);
  // As strait_provider_ops has them.
  [[nodiscard]] Result<std::uint64_t> watch(std::uint64_t address, strait_freed_callback call, void* context);
  void unwatch(std::uint64_t watch) { watches_.remove(watch); }

  [[nodiscard]] Result<std::uint64_t> copy(std::uint64_t to, std::uint64_t from, std::uint64_t length_bytes);
  [[nodiscard]] std::int32_t copy_done(std::uint64_t ticket) const;

  // Where the bytes of a device range are, held while the answer lives: for a NIC in this process.
  [[nodiscard]] Result<Side> device_side(std::uint64_t address, std::uint64_t length_bytes) const;

  struct Export {
    std::int32_t fd;
    std::uint64_t offset;
  };
  // A udmabuf of the pages of the range where the kernel makes one, else a second descriptor of the sealed memfd.
  [[nodiscard]] Result<Export> export_fd(std::uint64_t address, std::uint64_t length_bytes);
  // The sealed memfd itself, also where export_fd makes a udmabuf of it: the same pages.
  [[nodiscard]] Result<Export> export_pages(std::uint64_t address, std::uint64_t length_bytes);
  void close_fd(std::int32_t fd);

  [[nodiscard]] std::string counters() const;
  // "opens=2,closes=2,leaked_allocations=0,leaked_fds=0": of the whole process, also when none is open.
  [[nodiscard]] static std::string process_counters();
  [[nodiscard]] const std::string& no_udmabuf_because() const { return no_udmabuf_because_; }

 private:
  explicit Accelerator(Config config) : config_(std::move(config)) {}
  [[nodiscard]] bool in_child() const { return mark_.in_child(); }
  [[nodiscard]] Status check_process() const;
  [[nodiscard]] Arena* arena_of(std::uint64_t address) const;
  [[nodiscard]] Result<std::shared_ptr<Allocation>> hold_range(Arena& arena, std::uint64_t address,
                                                               std::uint64_t length_bytes) const;
  [[nodiscard]] Result<Side> side(std::uint64_t address, std::uint64_t length_bytes) const;
  [[nodiscard]] Result<sys::Fd> make_fd(const Allocation& allocation, std::uint64_t first, std::uint64_t length_bytes,
                                        std::uint64_t& offset);
  template <class Make>
  [[nodiscard]] Result<Export> export_as(std::uint64_t address, std::uint64_t length_bytes, Make make);
  void find_udmabuf();

  const Config config_;
  const sys::ForkMark mark_;        // keeps nothing on the heap: this library may be unloaded
  std::string no_udmabuf_because_;  // empty: the kernel makes them
  std::vector<std::unique_ptr<Arena>> arenas_;

  Watches watches_;
  mutable std::mutex fds_mutex_;
  std::map<std::int32_t, std::shared_ptr<Allocation>> fds_;  // given out and not yet back

  struct {
    Counter allocations, frees, exports, udmabuf_exports, udmabuf_refused, fd_closes, bad_fd_closes, copies, refused;
  } counts_;
  std::unique_ptr<CopyEngine> engine_ = std::make_unique<CopyEngine>();  // last: ends before what it copies
};

}  // namespace strait::soft::accel
