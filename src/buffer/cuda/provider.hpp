// SPDX-License-Identifier: Apache-2.0
// CudaProvider: the questions of strait/plugin.h answered for CUDA memory. The C face is made by Face.
//
// Threads: any. In a forked child nothing of it works, and its destructor touches neither driver nor device.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/counters.hpp"
#include "base/error.hpp"
#include "buffer/config.hpp"
#include "buffer/copy_port.hpp"
#include "buffer/cuda/copies.hpp"
#include "buffer/cuda/cpu_maps.hpp"
#include "buffer/cuda/gpu.hpp"
#include "buffer/cuda/ipc.hpp"
#include "buffer/cuda/pointers.hpp"
#include "buffer/face.hpp"
#include "sys/fork.hpp"

namespace strait::buffer::cuda {

class CudaProvider {
 public:
  [[nodiscard]] static Result<std::unique_ptr<CudaProvider>> open(std::string_view config);
  ~CudaProvider();
  CudaProvider(const CudaProvider&) = delete;
  CudaProvider& operator=(const CudaProvider&) = delete;

  [[nodiscard]] bool in_child() const { return mark_.in_child(); }
  [[nodiscard]] std::uint32_t device_count() const { return static_cast<std::uint32_t>(gpus_.size()); }
  [[nodiscard]] Status device_info(std::uint32_t device, strait_device_info& out) const;
  [[nodiscard]] bool classify(std::uint64_t address, strait_claim& out) const {
    Found found;
    return pointers_.look(address, found) && claim(address, found, out);
  }
  [[nodiscard]] bool range(std::uint64_t address, strait_range& out) const;
  [[nodiscard]] std::uint64_t identity(std::uint64_t address, std::uint64_t length_bytes) const;

  [[nodiscard]] Result<std::uint64_t> allocate(std::uint32_t device, std::uint64_t length_bytes);
  [[nodiscard]] Status free(std::uint64_t address);
  [[nodiscard]] Result<std::uint64_t> copy(std::uint64_t to, std::uint64_t from, std::uint64_t length_bytes);
  [[nodiscard]] std::int32_t copy_done(std::uint64_t ticket);

  [[nodiscard]] Result<ExportedRange> export_fd(std::uint64_t address, std::uint64_t length_bytes, std::uint32_t flags);
  void close_fd(std::int32_t fd);

  [[nodiscard]] Result<strait_ipc_handle> ipc_export(std::uint64_t address, std::uint64_t length_bytes);
  [[nodiscard]] Result<std::uint64_t> ipc_open(std::uint32_t device, const strait_ipc_handle& handle);
  [[nodiscard]] Status ipc_close(std::uint64_t address);

  [[nodiscard]] Result<void*> map_cpu(std::uint64_t address, std::uint64_t length_bytes);
  void unmap_cpu(void* cpu_address);
  [[nodiscard]] Result<std::uint32_t> advise(std::uint64_t address, std::uint64_t length_bytes, std::uint32_t advice,
                                             std::uint32_t place);
  [[nodiscard]] Result<strait_flush_need> flush(std::uint32_t device, bool perform);
  [[nodiscard]] Result<std::uint64_t> reach_host(std::uint32_t device, void* host, std::uint64_t length_bytes,
                                                 std::uint32_t flags);
  [[nodiscard]] Status release_host(void* host);
  [[nodiscard]] static bool requirement(CudaProvider* open, std::uint32_t index, strait_requirement& out);
  [[nodiscard]] Result<strait_memory_port> memory_port() { return port_.port(); }
  [[nodiscard]] std::string counters() const;

 private:
  [[nodiscard]] bool claim(std::uint64_t address, Found& found, strait_claim& out) const;
  CudaProvider(const Driver& driver, const ProviderConfig& config, ProcessToken token);

  // Memory of a device of this provider, all of it live.
  struct Held {
    Found found;
    Extent extent;
    Gpu* gpu = nullptr;
  };
  [[nodiscard]] Result<Held> hold(std::uint64_t address, std::uint64_t length_bytes, const char* what) const;
  // A context that can speak for the memory: the primary one when it is active, else the memory's own, else the
  // caller's if it is of that device.
  [[nodiscard]] Result<Context> context_for(const Held& held) const;
  void make_synchronous(const Held& held) const;
  [[nodiscard]] Result<std::uint64_t> allocate_pinned(std::uint64_t length_bytes);
  [[nodiscard]] CuResult give_back(std::uint64_t address, std::uint32_t device) const;
  [[nodiscard]] Result<Gpu*> gpu_at(std::uint32_t device) const;
  [[nodiscard]] std::uint32_t capabilities_of(const Found& found, const Extent& extent) const;

  class Port final : public CopyPort {
   public:
    explicit Port(CudaProvider& owner) : owner_(owner) {}
    ~Port() override { unpin_all(); }

   protected:
    [[nodiscard]] Status read(std::uint64_t address, void* into, std::uint64_t length_bytes) override;
    [[nodiscard]] Status write(std::uint64_t address, const void* from, std::uint64_t length_bytes) override;
    [[nodiscard]] bool in_child() const override { return owner_.in_child(); }
    [[nodiscard]] Result<std::uint64_t> start(std::uint64_t to, std::uint64_t from,
                                              std::uint64_t length_bytes) override {
      return owner_.copy(to, from, length_bytes);
    }
    [[nodiscard]] std::int32_t done(std::uint64_t ticket) override { return owner_.copy_done(ticket); }
    [[nodiscard]] const char* kind() const override { return "cuda"; }
    [[nodiscard]] Result<std::uint64_t> pin(Range pages) override;
    [[nodiscard]] Status unpin(Range pages) override {
      return owner_.release_host(reinterpret_cast<void*>(pages.address));
    }

   private:
    CudaProvider& owner_;
  };

  [[nodiscard]] std::optional<std::uint64_t> known_host(void* host, std::uint64_t length_bytes);

  const Driver& driver_;
  const sys::ForkMark mark_;
  const Pointers pointers_;
  const std::uint64_t page_bytes_;
  std::vector<std::unique_ptr<Gpu>> gpus_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::uint32_t> allocations_;  // our own: base -> device, or STRAIT_HOST_PLACE
  std::map<std::int32_t, std::uint64_t> fds_;           // given out and not yet back: -> bytes
  std::multiset<void*> borrowed_hosts_;                 // reached, and registered by the program itself
  struct {
    Counter allocations, frees, exports, fd_closes, bad_fd_closes, ipc_exports, advice, host_registered, host_released;
  } counts_;
  // Behind pointers: a forked child lets go of them without destroying.
  std::unique_ptr<CpuMaps> maps_;
  std::unique_ptr<Ipc> ipc_;
  std::unique_ptr<Copies> copies_;
  Port port_;
};

}  // namespace strait::buffer::cuda
