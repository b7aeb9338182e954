// SPDX-License-Identifier: Apache-2.0
// DmaBuf: a buffer that one driver exports and others import, with the rules of the kernel's dma-buf.
//
// The size is fixed. Holding a DmaBuf is a reference: the memory lives as long, whatever became of the allocation it
// was made from. An importer attaches (statically: no operations, or dynamically: with a move_notify), may pin, maps,
// unmaps, detaches; each success is undone once, in reverse. Answers are 0 or -errno, as drivers see them.
//
// Threads: any. map, unmap, pin and unpin of a dynamic attachment want the reservation lock held by the caller
// (-EDEADLK without it: the kernel would warn); those of a static one take it themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "base/counters.hpp"
#include "soft/kernel/faults.hpp"
#include "soft/kernel/reservation.hpp"
#include "sys/mapping.hpp"

namespace strait::soft::kernel {

class DmaBuf;

// Who imports: a NIC.
struct DmaDevice {
  std::string name;
  std::uint64_t max_segment_bytes = std::uint64_t{1} << 31;
  bool peer_path = true;  // there is a peer-to-peer path to the accelerators
  bool follows = true;    // what moved is mapped again; false: its driver takes the mapping down for good
};

// DMA addresses are addresses of this process, made anew by every map: what was unmapped is gone for good.
struct Segment {
  std::byte* at = nullptr;
  std::uint64_t length_bytes = 0;
};
struct DmaList {
  std::vector<Segment> segments;  // need not touch each other, nor be of one size
  std::vector<sys::Mapping> mappings;
};

struct Attachment;
struct ImporterOps {
  bool allow_peer2peer = false;
  // With the reservation lock held, before a move. Must not take what waits for that lock.
  std::function<void(Attachment&)> move_notify;
};

struct Attachment {
  DmaBuf* buffer = nullptr;
  DmaDevice device;
  bool dynamic = false;
  ImporterOps ops;
  bool peer2peer = false;  // what is left of allow_peer2peer after the exporter has looked at the path
  unsigned pins = 0;
  unsigned maps = 0;
  // Of the BAR. A part of an allocation is exported as a buffer of its own; here it is the same file, so who attaches
  // says how much of it there is. 0: all.
  std::uint64_t window_bytes = 0;
};

// What drivers do for their buffers. map and unmap are mandatory, the rest is not.
class Exporter {
 public:
  virtual ~Exporter() = default;
  [[nodiscard]] virtual const char* name() const = 0;
  [[nodiscard]] virtual bool moves() const { return false; }  // dynamic: pins, and tells before it moves
  [[nodiscard]] virtual int attach(Attachment&) { return 0; }
  virtual void detach(Attachment&) {}
  [[nodiscard]] virtual int pin(Attachment&) { return 0; }
  virtual void unpin(Attachment&) {}
  [[nodiscard]] virtual int map(Attachment& attachment, DmaList& out) = 0;
  virtual void unmap(Attachment& attachment, DmaList& list) = 0;
  // The one file that holds all of it, and where in it; -1: there are several.
  struct Whole {
    int file = -1;
    std::uint64_t offset = 0;
  };
  [[nodiscard]] virtual Whole whole() const { return {}; }
  // Moves the bytes; nobody has them mapped any more, or who has will not use them again.
  virtual void move() {}
};

class DmaBuf {
 public:
  // `counters` and `faults` outlive it.
  DmaBuf(std::unique_ptr<Exporter> exporter, std::uint64_t size_bytes, KernelFaults& faults, Counters& counters);
  ~DmaBuf();  // the exporter's release
  DmaBuf(const DmaBuf&) = delete;
  DmaBuf& operator=(const DmaBuf&) = delete;

  [[nodiscard]] std::uint64_t size_bytes() const { return size_bytes_; }
  [[nodiscard]] const char* exporter_name() const { return exporter_->name(); }
  [[nodiscard]] bool moves() const { return exporter_->moves(); }
  [[nodiscard]] Exporter::Whole whole() const { return exporter_->whole(); }
  [[nodiscard]] Reservation& reservation() { return reservation_; }

  // Null ops: static. The attachment stays the buffer's until detach().
  [[nodiscard]] int attach(const DmaDevice& device, const ImporterOps* ops, Attachment*& out,
                           std::uint64_t window_bytes = 0);
  void detach(Attachment& attachment);
  [[nodiscard]] int pin(Attachment& attachment);
  void unpin(Attachment& attachment);
  [[nodiscard]] int map(Attachment& attachment, DmaList& out);
  void unmap(Attachment& attachment, DmaList& list);

  // By the exporter: tells every importer that has it mapped, then moves. -EBUSY while somebody has it pinned or has
  // attached it statically and mapped it; -EOPNOTSUPP when this exporter never moves.
  [[nodiscard]] int move();
  [[nodiscard]] std::size_t attachments();

 private:
  template <class Do>
  int with_lock(Attachment& attachment, Do call);

  const std::unique_ptr<Exporter> exporter_;
  const std::uint64_t size_bytes_;
  KernelFaults& faults_;
  Counters& counters_;
  Reservation reservation_;
  std::list<std::unique_ptr<Attachment>> attachments_;  // under the reservation lock
};

}  // namespace strait::soft::kernel
