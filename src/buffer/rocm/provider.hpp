// SPDX-License-Identifier: Apache-2.0
// RocmProvider: the questions of strait/plugin.h answered for memory of the HSA runtime. The C face is made by Face.
//
// Threads: any. In a forked child nothing of it works, and its destructor touches neither runtime nor device.
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
#include "buffer/copy_port.hpp"
#include "buffer/face.hpp"
#include "buffer/opened_handles.hpp"
#include "buffer/rocm/blocks.hpp"
#include "buffer/rocm/copies.hpp"
#include "sys/fork.hpp"

namespace strait::buffer::rocm {

class RocmProvider {
 public:
  [[nodiscard]] static Result<std::unique_ptr<RocmProvider>> open(std::string_view config);
  ~RocmProvider();
  RocmProvider(const RocmProvider&) = delete;
  RocmProvider& operator=(const RocmProvider&) = delete;

  [[nodiscard]] bool in_child() const { return mark_.in_child(); }
  [[nodiscard]] std::uint32_t device_count() const { return static_cast<std::uint32_t>(gpus_.size()); }
  [[nodiscard]] Status device_info(std::uint32_t device, strait_device_info& out) const;
  [[nodiscard]] bool classify(std::uint64_t address, strait_claim& out) const;
  [[nodiscard]] std::uint64_t identity(std::uint64_t address, std::uint64_t length_bytes) const;
  [[nodiscard]] Result<std::uint64_t> watch(std::uint64_t address, strait_freed_callback call, void* context);
  void unwatch(std::uint64_t watch);

  [[nodiscard]] Result<std::uint64_t> allocate(std::uint32_t device, std::uint64_t length_bytes);
  [[nodiscard]] Status free(std::uint64_t address);
  [[nodiscard]] Result<std::uint64_t> copy(std::uint64_t to, std::uint64_t from, std::uint64_t length_bytes);
  [[nodiscard]] std::int32_t copy_done(std::uint64_t ticket);

  [[nodiscard]] Result<ExportedRange> export_fd(std::uint64_t address, std::uint64_t length_bytes, std::uint32_t flags);
  void close_fd(std::int32_t fd);
  [[nodiscard]] Result<strait_ipc_handle> ipc_export(std::uint64_t address, std::uint64_t length_bytes);
  [[nodiscard]] Result<std::uint64_t> ipc_open(std::uint32_t device, const strait_ipc_handle& handle);
  [[nodiscard]] Status ipc_close(std::uint64_t address);

  [[nodiscard]] Result<void*> map_cpu(std::uint64_t address, std::uint64_t length_bytes) const;
  void unmap_cpu(void*) const {}
  [[nodiscard]] Result<std::uint32_t> advise(std::uint64_t address, std::uint64_t length_bytes, std::uint32_t advice,
                                             std::uint32_t place) const;
  [[nodiscard]] Result<strait_flush_need> flush(std::uint32_t device, bool perform) const;
  [[nodiscard]] Result<std::uint64_t> reach_host(std::uint32_t device, void* host, std::uint64_t length_bytes,
                                                 std::uint32_t flags);
  [[nodiscard]] Status release_host(void* host);
  [[nodiscard]] static bool requirement(RocmProvider* open, std::uint32_t index, strait_requirement& out);
  [[nodiscard]] Result<strait_memory_port> memory_port() { return port_.port(); }
  [[nodiscard]] std::string counters() const;

 private:
  struct Gpu {
    Agent agent;
    MemoryPool pool;
    std::string name;
    std::string product;
    std::string pci;
    std::uint64_t memory_bytes = 0;
  };
  RocmProvider(const Hsa& hsa, std::size_t idle_handles, ProcessToken token)
      : hsa_(hsa), token_(token), opened_(std::make_unique<OpenedHandles>(idle_handles)), port_(*this) {}
  [[nodiscard]] Status find_agents();
  [[nodiscard]] Status add_gpu(Agent agent);
  [[nodiscard]] Result<const Gpu*> gpu_at(std::uint32_t device) const;
  // The device memory that holds the whole range.
  struct Held {
    Block block;
    std::uint32_t device = 0;
  };
  [[nodiscard]] Result<Held> hold(std::uint64_t address, std::uint64_t length_bytes, const char* what) const;
  [[nodiscard]] std::string runtime_version() const;
  [[nodiscard]] bool device_of(const Block& block, std::uint32_t& device) const;

  class Port final : public CopyPort {
   public:
    explicit Port(RocmProvider& owner) : owner_(owner) {}

   protected:
    [[nodiscard]] Status read(std::uint64_t address, void* into, std::uint64_t length_bytes) override;
    [[nodiscard]] Status write(std::uint64_t address, const void* from, std::uint64_t length_bytes) override;
    [[nodiscard]] bool in_child() const override { return owner_.in_child(); }
    [[nodiscard]] Result<std::uint64_t> start(std::uint64_t to, std::uint64_t from,
                                              std::uint64_t length_bytes) override {
      return owner_.copy(to, from, length_bytes);
    }
    [[nodiscard]] std::int32_t done(std::uint64_t ticket) override { return owner_.copy_done(ticket); }
    [[nodiscard]] const char* kind() const override { return "rocm"; }

   private:
    RocmProvider& owner_;
  };

  const Hsa& hsa_;
  const sys::ForkMark mark_;
  const ProcessToken token_;
  Blocks& blocks_ = Blocks::of_process();
  Agent cpu_;
  bool entered_ = false;  // hsa_init has been called, and is undone at the end
  bool has_cpu_ = false;
  bool exports_ = false;
  std::vector<Gpu> gpus_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::uint32_t> allocations_;  // our own: base -> device
  std::map<std::int32_t, std::uint64_t> fds_;           // given out and not yet back: -> bytes
  Counter allocated_, freed_, exported_, fd_closes_, bad_fd_closes_, ipc_exports_, host_registered_, host_released_;
  // Behind pointers: a forked child lets go of them without destroying.
  std::unique_ptr<OpenedHandles> opened_;
  std::unique_ptr<Copies> copies_;
  Port port_;
};

}  // namespace strait::buffer::rocm
