// SPDX-License-Identifier: Apache-2.0
// Runtime: the software machine as AMD's runtime shows it: a CPU agent, GPU agents, their pools, and all memory that
// was allocated, locked, mapped or imported. What hsa_init makes and the last hsa_shut_down ends.
//
// Threads: any. mutex_ guards the tables; it is never held while the program's callbacks or the kernel's upcalls run.
// A forked child is refused: the engine's thread does not exist there.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/counters.hpp"
#include "base/error.hpp"
#include "soft/accel/arena.hpp"
#include "soft/accel/spec.hpp"
#include "soft/hsa/abi.hpp"
#include "soft/hsa/memory.hpp"
#include "soft/hsa/report.hpp"
#include "soft/hsa/signals.hpp"
#include "sys/fork.hpp"

namespace strait::soft::hsa {

inline constexpr std::uint64_t kCpuMemoryBytes = std::uint64_t{64} << 30;  // what the CPU's pools claim to have

// Counts of the whole process: they outlive a runtime.
struct Counts {
  Counter opens, closes, allocations, frees, exports, dmabuf_closes, ipc_handles, attaches, detaches, copies,
      copied_bytes, copies_refused, fills, locks, unlocks, callbacks, interop_maps, interop_unmaps, vmem_handles,
      vmem_releases;
};
[[nodiscard]] Counts& counts();

struct Gpu {
  std::uint32_t node = 0;  // 1 and up, in order of the machine's slots
  std::uint32_t slot = 0;  // which of the machine's GPUs
  std::unique_ptr<accel::Arena> arena;
  std::unique_ptr<Blocks> blocks;
};

enum class PoolKind : std::uint32_t {
  cpu_fine = 1,
  cpu_kernarg = 2,
  cpu_coarse = 3,
  gpu_coarse = 4,
  gpu_fine = 5,
  gpu_group = 6
};
struct PoolName {
  PoolKind kind;
  std::uint32_t node;
};

// One side of a copy or fill.
struct Bytes {
  std::byte* at = nullptr;
  std::shared_ptr<Pages> held;  // null: memory of the program's own
};

class Runtime {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Runtime>> open(const accel::VendorSpec& spec);
  ~Runtime();
  [[nodiscard]] bool in_child() const { return mark_.in_child(); }

  // Agents and pools: agents.cpp.
  [[nodiscard]] std::size_t gpu_count() const { return gpus_.size(); }
  [[nodiscard]] const Gpu& gpu(std::size_t index) const { return gpus_[index]; }
  [[nodiscard]] static Agent agent_of(std::uint32_t node);
  [[nodiscard]] bool node_of(Agent agent, std::uint32_t& node) const;
  [[nodiscard]] bool pool_of(MemoryPool pool, PoolName& out) const;
  [[nodiscard]] std::vector<MemoryPool> pools_of(std::uint32_t node) const;
  [[nodiscard]] const Gpu* gpu_of(std::uint32_t node) const;
  [[nodiscard]] bool large_bar() const { return large_bar_; }
  [[nodiscard]] std::uint64_t available_bytes(std::uint32_t node);

  // Allocations: allocate.cpp.
  [[nodiscard]] Answer allocate(PoolName pool, std::uint64_t length_bytes, void** out);
  [[nodiscard]] Answer free(void* pointer);
  [[nodiscard]] Answer allow_access(std::uint64_t nodes, const void* pointer);
  [[nodiscard]] Answer watch_free(void* pointer, DeallocationCallback call, void* argument);
  [[nodiscard]] Answer unwatch_free(void* pointer, DeallocationCallback call);
  [[nodiscard]] Answer lock(void* pointer, std::uint64_t length_bytes, std::uint64_t nodes);
  [[nodiscard]] Answer unlock(void* pointer);

  // Questions: pointer.cpp.
  [[nodiscard]] Answer pointer_info(const void* pointer, PointerInfo& out, std::vector<Agent>& accessible);
  [[nodiscard]] Answer set_user_data(const void* pointer, void* data);
  // The bytes of [address, +length): device or system memory of the runtime, or locked memory of the program. False: a
  // GPU would fault.
  [[nodiscard]] bool reach(const void* address, std::uint64_t length_bytes, Bytes& out);

  // Sharing: share.cpp.
  [[nodiscard]] Answer export_dmabuf(const void* pointer, std::uint64_t length_bytes, int& fd, std::uint64_t& offset);
  [[nodiscard]] Answer ipc_create(void* pointer, std::uint64_t length_bytes, IpcMemory& out);
  [[nodiscard]] Answer ipc_attach(const IpcMemory& handle, std::uint64_t length_bytes, std::uint64_t nodes, void** out);
  [[nodiscard]] Answer detach(void* pointer, std::int32_t type);
  [[nodiscard]] Answer interop_map(std::uint64_t nodes, int fd, std::size_t* length_bytes, void** out);

  // The program's own mappings: vmem.cpp.
  [[nodiscard]] Answer reserve(void** out, std::uint64_t length_bytes, std::uint64_t wanted, std::uint64_t alignment);
  [[nodiscard]] Answer unreserve(void* address, std::uint64_t length_bytes);
  [[nodiscard]] Answer create_handle(PoolName pool, std::uint64_t length_bytes, std::int32_t type, VmemHandle& out);
  [[nodiscard]] Answer release_handle(VmemHandle handle);
  [[nodiscard]] Answer map_handle(void* address, std::uint64_t length_bytes, std::uint64_t offset, VmemHandle handle);
  [[nodiscard]] Answer unmap_handle(void* address, std::uint64_t length_bytes);
  [[nodiscard]] Answer set_access(void* address, std::uint64_t length_bytes, const AccessDesc* wanted, std::size_t n);
  [[nodiscard]] Answer get_access(void* address, std::int32_t& permissions, std::uint32_t node);
  [[nodiscard]] Answer export_handle(int& fd, VmemHandle handle);
  [[nodiscard]] Answer import_handle(int fd, VmemHandle& out);
  [[nodiscard]] Answer retain_handle(VmemHandle& out, void* address);
  [[nodiscard]] Answer handle_properties(VmemHandle handle, MemoryPool& pool, std::int32_t& type);

  // Advice: svm.cpp.
  [[nodiscard]] Answer advise(std::uint64_t address, std::uint64_t length_bytes, const SvmPair* list, std::size_t n);
  [[nodiscard]] Answer advice(std::uint64_t address, std::uint64_t length_bytes, SvmPair* list, std::size_t n);

  [[nodiscard]] Signals& signals() { return signals_; }
  [[nodiscard]] std::string counters();
  [[nodiscard]] Left left();  // what was not freed, and what is freed and held

 private:
  struct Locked {
    std::uint64_t base = 0;
    std::uint64_t length_bytes = 0;
    std::uint64_t access = 0;
    void* user_data = nullptr;
  };
  struct Handle {
    std::shared_ptr<Pages> pages;
    PoolName pool{};
    std::int32_t type = 0;
    std::uint32_t references = 1;  // program's own
    std::uint32_t mappings = 0;
    bool charged = false;  // made here, and its address range in the arena is to be freed with it
  };
  struct Reservation {
    sys::Mapping room;
    std::uint64_t base = 0;
    std::uint64_t length_bytes = 0;
  };

  Runtime() = default;
  [[nodiscard]] Result<Range> make_device_range(Gpu& gpu, std::uint64_t length_bytes, std::uint32_t flags);
  [[nodiscard]] Result<Range> make_system_range(std::uint64_t length_bytes, std::uint32_t flags);
  [[nodiscard]] Result<Range> make_import(sys::Fd file, std::uint64_t offset, std::uint64_t length_bytes,
                                          std::uint32_t node);
  [[nodiscard]] Status show_to_cpu(Range& range);
  void give_back(Range range);
  [[nodiscard]] Status tell_kernel(Range& range);
  static void tell_kernel_gone(const Range& range);
  [[nodiscard]] Gpu* gpu_at(std::uint32_t node);
  [[nodiscard]] const Locked* locked_around(std::uint64_t address, std::uint64_t length_bytes) const;
  [[nodiscard]] Reservation* reservation_around(std::uint64_t address, std::uint64_t length_bytes);
  [[nodiscard]] Result<sys::Fd> hold_out(const std::shared_ptr<Pages>& pages);
  void keep_exported_locked(const std::shared_ptr<Pages>& pages);
  void forget_closed_exports_locked();
  void drop_handle_locked(std::map<std::uint64_t, Handle>::iterator handle);
  [[nodiscard]] std::uint64_t next_identity();

  const sys::ForkMark mark_;
  bool large_bar_ = false;
  std::vector<Gpu> gpus_;

  std::mutex mutex_;
  Ranges ranges_;
  std::vector<Locked> locked_;
  std::vector<std::shared_ptr<Pages>> exported_;  // held for as long as somebody has a descriptor of them
  std::map<std::uint64_t, Handle> handles_;
  std::vector<Reservation> reservations_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::map<std::uint64_t, std::uint64_t>> advice_;
  Signals signals_;  // last: its thread ends before what it copies
};

// The open runtime, kept open while the answer lives; null: hsa_init was not called, or this is a forked child.
[[nodiscard]] std::shared_ptr<Runtime> current_runtime();
[[nodiscard]] Answer open_runtime();
[[nodiscard]] Answer close_runtime();

}  // namespace strait::soft::hsa
