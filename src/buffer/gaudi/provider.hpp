// SPDX-License-Identifier: Apache-2.0
// GaudiProvider: the questions of strait/plugin.h answered for Gaudi memory. The C face is made by Face.
//
// Threads: any. In a forked child nothing of it works, and its destructor touches neither libraries nor devices.
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
#include "buffer/gaudi/acquired.hpp"
#include "buffer/gaudi/copies.hpp"
#include "buffer/gaudi/lease.hpp"
#include "buffer/ipc_record.hpp"
#include "buffer/opened_handles.hpp"
#include "sys/fork.hpp"

namespace strait::buffer::gaudi {

class GaudiProvider {
 public:
  [[nodiscard]] static Result<std::unique_ptr<GaudiProvider>> open(std::string_view config);
  ~GaudiProvider();
  GaudiProvider(const GaudiProvider&) = delete;
  GaudiProvider& operator=(const GaudiProvider&) = delete;

  [[nodiscard]] bool in_child() const { return mark_.in_child(); }
  [[nodiscard]] std::uint32_t device_count() const { return static_cast<std::uint32_t>(slots_.size()); }
  [[nodiscard]] Status device_info(std::uint32_t device, strait_device_info& out) const;
  [[nodiscard]] bool classify(std::uint64_t address, strait_claim& out) const;
  [[nodiscard]] bool range(std::uint64_t address, strait_range& out) const;
  [[nodiscard]] std::uint64_t identity(std::uint64_t address, std::uint64_t length_bytes) const;

  [[nodiscard]] Result<std::uint64_t> allocate(std::uint32_t device, std::uint64_t length_bytes);
  [[nodiscard]] Status free(std::uint64_t address);
  [[nodiscard]] Result<std::uint64_t> copy(std::uint64_t to, std::uint64_t from, std::uint64_t length_bytes);
  [[nodiscard]] std::int32_t copy_done(std::uint64_t ticket);

  [[nodiscard]] Result<ExportedRange> export_fd(std::uint64_t address, std::uint64_t length_bytes, std::uint32_t flags);
  void close_fd(std::int32_t fd);

  // By the link: the handle says which device and which addresses of it. A process that opens it reaches it from a
  // device of its own; the first one asked for stays the one.
  [[nodiscard]] Result<strait_ipc_handle> ipc_export(std::uint64_t address, std::uint64_t length_bytes);
  [[nodiscard]] Result<std::uint64_t> ipc_open(std::uint32_t device, const strait_ipc_handle& handle);
  [[nodiscard]] Status ipc_close(std::uint64_t address);

  [[nodiscard]] Result<strait_flush_need> flush(std::uint32_t device, bool perform);
  [[nodiscard]] static bool requirement(GaudiProvider* open, std::uint32_t index, strait_requirement& out);
  [[nodiscard]] Result<strait_memory_port> memory_port() { return port_.port(); }
  [[nodiscard]] std::string counters() const;

 private:
  GaudiProvider(const Libraries& libraries, std::size_t idle_handles, ProcessToken token)
      : libraries_(libraries),
        token_(token),
        copies_(std::make_unique<Copies>(libraries)),
        opened_(std::make_unique<OpenedHandles>(idle_handles)),
        port_(*this) {}
  [[nodiscard]] Status list_devices();
  // Do addresses tell the devices of this machine apart? Only then is there one for another device's memory.
  [[nodiscard]] bool addresses_differ() const;
  [[nodiscard]] Status list_modules(std::vector<std::uint32_t>& modules) const;
  [[nodiscard]] Status check_device(std::uint32_t device) const;
  [[nodiscard]] std::string synapse_version() const;
  [[nodiscard]] Result<std::shared_ptr<Acquired>> acquire(std::uint32_t device);
  [[nodiscard]] Status acquire_all();
  struct Found {
    std::shared_ptr<Acquired> device;
    std::uint32_t index = 0;
    GaudiMemory memory;
    bool far = false;  // memory of another process; `device` is what reaches it
  };
  // Memory of other processes that is open here.
  struct Far {
    std::shared_ptr<Acquired> via;
    std::uint32_t device = 0;
    GaudiMemory memory;
    Lease lease;
  };
  [[nodiscard]] Result<OpenedHandles::Opened> open_far(std::uint32_t device, const IpcRecord& record, int fd);
  [[nodiscard]] bool find_far(std::uint64_t address, Found& out) const;
  // Which device of this process has such addresses; empty: none.
  [[nodiscard]] std::string own_device_at(std::uint64_t base, std::uint64_t length_bytes) const;
  [[nodiscard]] std::string own_device_at_locked(std::uint64_t base, std::uint64_t length_bytes) const;
  [[nodiscard]] bool find(std::uint64_t address, Found& out) const;
  // The device side of a copy; a null device is host memory.
  [[nodiscard]] Result<Found> side(std::uint64_t address, std::uint64_t length_bytes) const;

  class Port final : public CopyPort {
   public:
    explicit Port(GaudiProvider& owner) : owner_(owner) {}

   protected:
    [[nodiscard]] Status read(std::uint64_t address, void* into, std::uint64_t length_bytes) override;
    [[nodiscard]] Status write(std::uint64_t address, const void* from, std::uint64_t length_bytes) override;
    [[nodiscard]] bool in_child() const override { return owner_.in_child(); }
    [[nodiscard]] Result<std::uint64_t> start(std::uint64_t to, std::uint64_t from,
                                              std::uint64_t length_bytes) override {
      return owner_.copy(to, from, length_bytes);
    }
    [[nodiscard]] std::int32_t done(std::uint64_t ticket) override { return owner_.copy_done(ticket); }
    [[nodiscard]] const char* kind() const override { return "gaudi"; }

   private:
    GaudiProvider& owner_;
  };

  const Libraries& libraries_;
  const ProcessToken token_;
  const sys::ForkMark mark_;
  bool initialized_ = false;  // SynapseAI, by us
  std::vector<Slot> slots_;
  mutable std::mutex mutex_;
  mutable std::vector<std::shared_ptr<Acquired>> acquired_;  // by index; null: not taken as far as we know
  std::map<std::uint64_t, std::uint32_t> allocations_;
  std::map<std::int32_t, std::shared_ptr<Acquired>> fds_;  // given out and not yet back
  std::map<std::uint64_t, Lease> leases_;                  // of allocations that others may have open
  std::map<std::uint64_t, Far> far_;                       // by its address
  bool linked_ = false;                                    // others' memory has addresses here
  Counter allocated_, freed_, exported_, fd_closes_, bad_fd_closes_, ipc_exports_;
  std::unique_ptr<Copies> copies_;
  std::unique_ptr<OpenedHandles> opened_;
  Port port_;
};

}  // namespace strait::buffer::gaudi
