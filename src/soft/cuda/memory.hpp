// SPDX-License-Identifier: Apache-2.0
// Memory: everything that the driver has in this process's address space, and where its bytes are.
//
// Device addresses are PROT_NONE here, as in soft/accel: a CPU that follows one dies of it. Small allocations are
// carved from blocks of 2 MiB, in steps of 512 bytes, as the real driver does it: the page behind an allocation can be
// somebody else's. Addresses are used again, first fit; buffer ids never.
//
// Threads: any. No lock is held while the software machine's kernel is told.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "soft/accel/bank.hpp"
#include "soft/cuda/types.h"
#include "sys/address_space.hpp"
#include "sys/mapping.hpp"

namespace strait::soft::cuda {

struct Context;
struct Pool;

inline constexpr std::uint64_t kGranularity = std::uint64_t{2} << 20;  // of blocks, and of virtual memory management
inline constexpr std::uint64_t kCarve = 512;                           // of allocations within a block
inline constexpr std::uint64_t kCarvedBelow = std::uint64_t{1} << 20;  // larger ones get blocks of their own

enum class Sort { plain, pooled, reserved, managed, host, registered, imported };

// What cuMemCreate makes; alive while a handle or a mapping is.
struct Physical {
  std::shared_ptr<accel::Block> block;
  CUmemAllocationProp prop{};
};

// A stretch of a range that has bytes behind it.
struct Piece {
  std::uint64_t base = 0;
  std::uint64_t length_bytes = 0;
  std::shared_ptr<accel::Block> block;
  std::uint64_t block_offset = 0;
  std::shared_ptr<Physical> physical;  // of mapped handles
  std::uint64_t identity = 0;          // what the kernel was told
  std::uint64_t readers = 0;           // bit per device that cuMemSetAccess let in
  std::uint64_t writers = 0;
};

struct Advice {
  bool read_mostly = false;
  CUmemLocation preferred{CU_MEM_LOCATION_TYPE_INVALID, -2};
  CUmemLocation prefetched{CU_MEM_LOCATION_TYPE_INVALID, -2};
  std::vector<int> accessed_by;
};

// What one call gave out and one call takes back. Everything but `pieces`, `sync_memops` and `advice` is fixed.
struct Range {
  Sort sort = Sort::plain;
  std::uint64_t base = 0;
  std::uint64_t length_bytes = 0;  // as asked for
  int device = 0;
  Context* context = nullptr;  // null: belongs to none
  std::uint64_t buffer_id = 0;
  Pool* pool = nullptr;
  unsigned host_flags = 0;
  unsigned opens = 0;         // of imported memory
  std::vector<Piece> pieces;  // by address
  bool sync_memops = false;
  bool dying = false;  // being freed: found by nobody, its addresses not yet free
  Advice advice;
  sys::Mapping room;  // addresses of its own; carved memory has none

  [[nodiscard]] std::uint64_t end() const { return base + length_bytes; }
  [[nodiscard]] bool on_device() const {
    return sort == Sort::plain || sort == Sort::pooled || sort == Sort::reserved || sort == Sort::imported;
  }
};

// Bytes that a copy may touch, in order, and what keeps them there.
struct Side {
  struct Span {
    std::byte* bytes;
    std::uint64_t length_bytes;
  };
  std::vector<Span> spans;
  std::vector<std::shared_ptr<void>> held;
  bool pageable = false;  // host memory that the driver does not know
  bool device = false;
  bool sync_memops = false;
};

// A copy of what is known about an address, taken under the lock.
struct Known {
  std::shared_ptr<Range> range;
  bool mapped = false;  // `piece` is valid
  Piece piece;
  bool sync_memops = false;
};

class Memory {
 public:
  explicit Memory(std::vector<std::shared_ptr<accel::Bank>> banks);
  // Reserves the devices' addresses.
  [[nodiscard]] Status open();

  [[nodiscard]] CUresult allocate(int device, std::uint64_t length_bytes, Sort sort, Context* context, Pool* pool,
                                  std::uint64_t& address);
  // Memory that CPU and device share: managed, or of the host.
  [[nodiscard]] CUresult allocate_shared(Sort sort, int device, std::uint64_t length_bytes, Context* context,
                                         unsigned flags, std::uint64_t& address);
  [[nodiscard]] CUresult register_host(std::uint64_t address, std::uint64_t length_bytes, int device, Context* context,
                                       unsigned flags);
  [[nodiscard]] CUresult import(std::shared_ptr<accel::Block> block, std::uint64_t block_offset,
                                std::uint64_t length_bytes, int device, Context* context, Pool* pool,
                                std::uint64_t& address);
  // `address` must be the first byte, and of one of these sorts.
  [[nodiscard]] CUresult free(std::uint64_t address, std::initializer_list<Sort> sorts);
  // The same in two halves: from the first on nobody finds it, with the second its bytes and addresses go. No range: it
  // was opened more than once, and is still there.
  [[nodiscard]] CUresult begin_free(std::uint64_t address, std::initializer_list<Sort> sorts,
                                    std::shared_ptr<Range>& out);
  void finish_free(const std::shared_ptr<Range>& range);
  void free_all_of(const Context& context);

  [[nodiscard]] CUresult reserve(std::uint64_t length_bytes, std::uint64_t alignment, std::uint64_t wanted,
                                 std::uint64_t& address);
  [[nodiscard]] CUresult unreserve(std::uint64_t address, std::uint64_t length_bytes);
  [[nodiscard]] CUresult map(std::uint64_t address, std::uint64_t length_bytes, std::shared_ptr<Physical> physical);
  [[nodiscard]] CUresult unmap(std::uint64_t address, std::uint64_t length_bytes);
  [[nodiscard]] CUresult set_access(std::uint64_t address, std::uint64_t length_bytes, const CUmemAccessDesc* access,
                                    std::size_t count, int devices);

  // False: nothing of ours is there.
  [[nodiscard]] bool find(std::uint64_t address, Known& out) const;
  // Whose first byte is `address`; for who changes it under lock().
  [[nodiscard]] std::shared_ptr<Range> range_at(std::uint64_t address) const;
  [[nodiscard]] CUresult side(std::uint64_t address, std::uint64_t length_bytes, bool writes, Side& out) const;
  // A dma-buf, as cuMemGetHandleForAddressRange makes one.
  [[nodiscard]] CUresult export_range(std::uint64_t address, std::uint64_t length_bytes, int& fd);

  [[nodiscard]] std::shared_mutex& lock() const { return mutex_; }
  // Under lock().
  [[nodiscard]] const std::map<std::uint64_t, std::shared_ptr<Range>>& ranges() const { return ranges_; }
  [[nodiscard]] accel::Bank& bank(int device) const { return *banks_[static_cast<std::size_t>(device)]; }
  [[nodiscard]] std::uint64_t next_id();
  struct Left {
    std::uint64_t allocations = 0;
    std::uint64_t bytes = 0;
  };
  [[nodiscard]] Left left() const;

 private:
  struct Carved {                    // a block of the device, cut into allocations
    std::uint64_t length_bytes = 0;  // of its addresses
    std::shared_ptr<accel::Block> block;
    std::map<std::uint64_t, std::uint64_t> used;  // offset, bytes; whole steps
    bool shared = false;                          // takes more than one allocation
  };
  struct Device {
    sys::Mapping room;
    std::map<std::uint64_t, Carved> blocks;  // by address
  };

  [[nodiscard]] CUresult place_locked(Device& device, int index, std::uint64_t length_bytes, Sort sort, Piece& piece);
  [[nodiscard]] bool carve_locked(Device& device, std::uint64_t bytes, Piece& piece);
  void give_back_locked(const Range& range);
  [[nodiscard]] std::shared_ptr<Range> find_locked(std::uint64_t address) const;
  [[nodiscard]] bool touches_device_locked(std::uint64_t address, std::uint64_t length_bytes) const;
  [[nodiscard]] CUresult take_range(std::shared_ptr<Range> range, std::uint64_t& address);

  const std::vector<std::shared_ptr<accel::Bank>> banks_;
  const sys::AddressSpace address_space_ = sys::AddressSpace::open();
  mutable std::shared_mutex mutex_;
  std::vector<Device> devices_;
  std::map<std::uint64_t, std::shared_ptr<Range>> ranges_;  // by first byte
  std::uint64_t last_id_ = 0;
};

}  // namespace strait::soft::cuda
