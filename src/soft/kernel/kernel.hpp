// SPDX-License-Identifier: Apache-2.0
// Kernel: the software machine's kernel as an RDMA driver sees it: three generations of ways to device memory.
//
// Owns the dma-buf table, the peer-memory registry with its two clients and nvidia_p2p; the drivers' table is shared.
// Threads: any. Outlives every NicMemory it made.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "soft/kernel/dma_buf.hpp"
#include "soft/kernel/drivers.hpp"
#include "soft/kernel/exporters.hpp"
#include "soft/kernel/p2p.hpp"
#include "soft/kernel/peer_memory.hpp"
#include "soft/kernel/translation.hpp"
#include "sys/fork.hpp"

namespace strait::soft::kernel {

struct KernelSettings {
  bool nvidia = false;      // the peer-memory client nv_mem
  bool persistent = false;  // in its newer flavour
  bool amd = false;         // the peer-memory client amdkfd
  bool p2p = false;         // the NIC's driver asks nvidia_p2p itself
  KernelFaults faults;

  // `peer_memory`: "none", or of nvidia, nvidia_persistent, amd and p2p, separated by commas or semicolons.
  [[nodiscard]] static Result<KernelSettings> parse(std::string_view peer_memory, std::string_view faults);
};

// Device memory that a NIC has registered; undone when it goes. In a forked child nothing is undone: the registrations
// are the parent's, and locks that another thread held there stay held here.
class NicMemory {
 public:
  virtual ~NicMemory() = default;
  struct Drop {
    void operator()(NicMemory* memory) const {
      if (!memory->mark_.in_child()) delete memory;
    }
  };
  [[nodiscard]] const strait_memory_port* port() const { return translation_.port(); }
  // Nothing can take it away or move it, and one file holds it: then that may be mapped and used without asking.
  struct File {
    int fd = -1;  // -1: through the port only
    std::uint64_t offset = 0;
  };
  [[nodiscard]] virtual File file() const { return {}; }
  [[nodiscard]] bool stays() const { return file().fd >= 0; }
  [[nodiscard]] bool revoked() const { return translation_.revoked(); }
  [[nodiscard]] virtual std::string text() const = 0;  // "dma-buf of nv_dmabuf"
  [[nodiscard]] virtual std::uint32_t by() const = 0;  // STRAIT_NIC_BY_*

 protected:
  NicMemory(std::uint64_t iova, std::uint64_t length_bytes) : translation_(iova, length_bytes) {}
  Translation translation_;

 private:
  const sys::ForkMark mark_;
};
using NicMemoryOwner = std::unique_ptr<NicMemory, NicMemory::Drop>;

class Kernel {
 public:
  Kernel(Drivers& drivers, KernelSettings settings);

  // 0 and *out; -errno; or 1: no memory of an accelerator of this machine, so not this kernel's affair.
  [[nodiscard]] int import_dmabuf(const DmaDevice& device, int fd, std::uint64_t offset, std::uint64_t length_bytes,
                                  std::uint64_t iova, NicMemoryOwner& out);
  [[nodiscard]] int import_address(const DmaDevice& device, std::uint64_t address, std::uint64_t length_bytes,
                                   std::uint64_t iova, bool write, NicMemoryOwner& out);

  // dma_buf_get: null when the descriptor is of no memory that a driver announced, and is no window on such memory.
  [[nodiscard]] std::shared_ptr<DmaBuf> get(int fd);
  [[nodiscard]] bool has_plain_way() const { return settings_.nvidia || settings_.amd || settings_.p2p; }
  [[nodiscard]] const KernelSettings& settings() const { return settings_; }

  [[nodiscard]] Drivers& drivers() { return drivers_; }
  [[nodiscard]] KernelFaults& faults() { return settings_.faults; }
  [[nodiscard]] Counters& counters() { return counters_; }
  [[nodiscard]] PeerRegistry& peers() { return peers_; }
  [[nodiscard]] P2p& p2p() { return p2p_; }
  [[nodiscard]] BarSpace& bar() { return bar_; }
  // What was begun and not undone, "map=1,attach=1"; empty: everything balances.
  [[nodiscard]] std::string unbalanced() const;
  // "kernel_attach=2,kernel_detach=2,..." of what was counted at all.
  [[nodiscard]] std::string counters_text() const;

 private:
  [[nodiscard]] bool open_files(int fd, sys::FileId id, ExporterNeeds& needs);

  Drivers& drivers_;
  KernelSettings settings_;
  Counters counters_;
  BarSpace bar_;
  P2p p2p_;
  PeerRegistry peers_;
  std::mutex mutex_;
  std::map<sys::FileId, std::weak_ptr<DmaBuf>> buffers_;
};

// nic_memory.cpp
[[nodiscard]] int make_dmabuf_memory(Kernel& kernel, std::shared_ptr<DmaBuf> buffer, const DmaDevice& device,
                                     std::uint64_t offset, std::uint64_t length_bytes, std::uint64_t iova,
                                     NicMemoryOwner& out);
[[nodiscard]] int make_peer_memory(Kernel& kernel, const DmaDevice& device, std::uint64_t address,
                                   std::uint64_t length_bytes, std::uint64_t iova, bool write, NicMemoryOwner& out);
[[nodiscard]] int make_p2p_memory(Kernel& kernel, const DmaDevice& device, std::uint64_t address,
                                  std::uint64_t length_bytes, std::uint64_t iova, NicMemoryOwner& out);

}  // namespace strait::soft::kernel
