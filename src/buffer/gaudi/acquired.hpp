// SPDX-License-Identifier: Apache-2.0
// Acquired: a Gaudi whose compute node this process holds, its pool of device memory and the streams copies run on.
//
// The compute node has one owner process, so it is taken when memory is asked for, or found taken by a framework of
// this process; listing devices goes through control nodes. One object per device and process, shared by all providers.
//
// With SynapseAI all memory lies in one pool, which is exported once; every descriptor handed out is a duplicate. A
// descriptor that leaks keeps the device busy for the next process. Threads: any.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>

#include "base/error.hpp"
#include "buffer/face.hpp"
#include "buffer/gaudi/libraries.hpp"
#include "sys/fd.hpp"

namespace strait::buffer::gaudi {

struct Slot {
  std::uint32_t module = 0;
  std::string name;  // "gaudi:0"
  std::string pci;
  std::uint64_t memory_base = 0;
  std::uint64_t memory_bytes = 0;
};

struct GaudiMemory {
  std::uint64_t base = 0;
  std::uint64_t length_bytes = 0;
  std::uint64_t identity = 0;
  bool pool = false;  // memory of a framework: the pool is all that is known
};

class Acquired {
 public:
  // The one of this process, taken now if nobody has it yet.
  [[nodiscard]] static Result<std::shared_ptr<Acquired>> take(const Libraries& libraries, const Slot& slot);
  // Only if this process has it already, by us or by a framework; null otherwise.
  [[nodiscard]] static std::shared_ptr<Acquired> taken(const Libraries& libraries, const Slot& slot);
  // Does this process have a device of SynapseAI, whoever acquired it?
  [[nodiscard]] static bool somebody_has_one(const Libraries& libraries);
  ~Acquired();
  Acquired(const Acquired&) = delete;
  Acquired& operator=(const Acquired&) = delete;

  [[nodiscard]] bool find(std::uint64_t address, GaudiMemory& out) const;
  [[nodiscard]] GaudiMemory pool() const { return {pool_base_, pool_bytes_, pool_identity_, true}; }
  [[nodiscard]] Result<std::uint64_t> allocate(std::uint64_t length_bytes);
  [[nodiscard]] Status free(std::uint64_t address);
  [[nodiscard]] Result<ExportedRange> export_range(const GaudiMemory& memory, std::uint64_t address,
                                                   std::uint64_t length_bytes);
  [[nodiscard]] Status flush() const;
  [[nodiscard]] std::uint64_t free_bytes() const;

  enum Lane { kIn, kOut, kInside };
  [[nodiscard]] void* stream(Lane lane) const { return streams_[lane]; }
  [[nodiscard]] std::uint32_t syn_id() const { return syn_id_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& pci() const { return pci_; }
  [[nodiscard]] std::uint64_t pool_exports() const { return pool_exports_; }

 private:
  explicit Acquired(const Libraries& libraries, const Slot& slot)
      : libraries_(libraries), name_(slot.name), pci_(slot.pci), memory_bytes_(slot.memory_bytes) {}
  [[nodiscard]] static std::unique_ptr<Acquired> adopted(const Libraries& libraries, const Slot& slot);
  [[nodiscard]] Status take_by_synapse(const Slot& slot);
  [[nodiscard]] Status take_by_thunk(const Slot& slot);
  [[nodiscard]] Status prepare();  // pool and streams

  const Libraries& libraries_;
  const std::string name_;
  const std::string pci_;
  const std::uint64_t memory_bytes_;
  bool own_device_ = false;  // acquired by us, so released by us
  bool by_synapse_ = false;
  std::uint32_t syn_id_ = 0;
  int fd_ = -1;
  void* own_scal_ = nullptr;
  std::uint64_t pool_base_ = 0;
  std::uint64_t pool_bytes_ = 0;
  std::uint64_t pool_allocated_base_ = 0;
  std::uint64_t pool_identity_ = 0;
  std::array<void*, 3> streams_{};

  struct Allocation {
    std::uint64_t length_bytes = 0;
    std::uint64_t identity = 0;
    std::uint64_t handle = 0;  // hl-thunk's, without SynapseAI
  };
  mutable std::shared_mutex mutex_;
  std::map<std::uint64_t, Allocation> allocations_;
  std::mutex export_mutex_;
  sys::Fd pool_fd_;
  std::uint64_t pool_exports_ = 0;
};

}  // namespace strait::buffer::gaudi
