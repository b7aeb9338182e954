// SPDX-License-Identifier: Apache-2.0
// The calls of cxi.h that touch mapped pages: on a CPU, in a CUDA or HIP kernel. One thread at a time uses a cxi_cq.
#pragma once

#include <cerrno>
#include <cstdint>

#include "strait/cxi/types.hpp"
#include "strait/device/cxi/command.hpp"
#include "strait/device/cxi/counter.hpp"
#include "strait/device/cxi/own_ring.hpp"

namespace strait::cxi {

struct cxi_lni;

// A counter. The pointers are those of the side that uses them.
struct cxi_ct {
  std::uint64_t* doorbell;
  unsigned ctn;
  c_ct_writeback* wb;
  unsigned flags;  // strait::device::cxi::kMemoryDoorbell for a device in software
  // The host's.
  cxi_lni* lni;
  std::size_t doorbell_size;
};

struct cxi_cq {
  device::cxi::CommandRing ring;
  // Whole blocks only, of either kind of queue: no gaps, no odd ends.
  device::cxi::OwnCommands<device::cxi::RingKind::target> commands;
  unsigned idx;  // transmit queues from 0, target queues from 1024
  // The host's.
  cxi_lni* lni;
  void* cmds;
  std::size_t cmds_size;
  void* wp_addr;
  std::size_t wp_addr_size;
};

namespace detail {
STRAIT_HD_INLINE device::cxi::Counter counter_of(const cxi_ct* ct) {
  return {device::head_of<device::cxi::Counter>(), reinterpret_cast<std::uint64_t*>(ct->wb), ct->doorbell, ct->ctn,
          ct->flags};
}
STRAIT_HD_INLINE int emit_block(cxi_cq* cq, const void* command, wire::cxi::CmdType type) {
  std::uint8_t* const at = cq->commands.claim<2>();
  if (at == nullptr) return -ENOSPC;
  device::cxi::copy_block(at, command,
                          static_cast<unsigned>(type) | static_cast<unsigned>(wire::cxi::CmdSize::b64) << 2);
  return 0;
}
}  // namespace detail

// Adds to the counter, modulo 2^48 and 2^7. Every call counts, on hardware and on a software device.
STRAIT_HD_INLINE void cxi_ct_inc_success(cxi_ct* ct, std::uint64_t count) {
  device::cxi::inc_success(detail::counter_of(ct), count);
}
STRAIT_HD_INLINE void cxi_ct_inc_failure(cxi_ct* ct, std::uint64_t count) {
  device::cxi::inc_failure(detail::counter_of(ct), count);
}
STRAIT_HD_INLINE void cxi_ct_reset_success(cxi_ct* ct) {
  device::cxi::reset_success(detail::counter_of(ct));
}
STRAIT_HD_INLINE void cxi_ct_reset_failure(cxi_ct* ct) {
  device::cxi::reset_failure(detail::counter_of(ct));
}

// For a new queue, on the side that posts: `cmds` and `csr` are its addresses of the ring and of the launch page.
// Writes the status word's first value, as a ring that the caller brought along needs it. A ring that cannot be one
// (count no multiple of 64, misaligned, null) takes no command: every emit answers -ENOSPC.
STRAIT_HD_INLINE void cxi_cq_init(cxi_cq* cq, void* cmds, unsigned count, void* csr, unsigned idx) {
  *cq = cxi_cq{};
  cq->idx = idx;
  device::cxi::CommandRingMemory memory;
  memory.blocks = cmds;
  memory.count = count;
  memory.launch_page = csr;
  if (!device::cxi::open_command_ring(cq->ring, memory)) return;
  device::store_doorbell(static_cast<std::uint64_t*>(cmds), wire::cxi::initial_queue_status().word);
  cq->commands.open(cq->ring);
}

// 0, or -ENOSPC: the ring is full, and nothing was written. Type and size of the command are set here.
STRAIT_HD_INLINE int cxi_cq_emit_dma(cxi_cq* cq, c_full_dma_cmd* cmd) {
  return detail::emit_block(cq, cmd, wire::cxi::CmdType::dma);
}
STRAIT_HD_INLINE int cxi_cq_emit_target(cxi_cq* cq, const c_cmdu* cmd) {
  return detail::emit_block(cq, cmd, wire::cxi::CmdType::cq);
}
STRAIT_HD_INLINE int cxi_cq_emit_target(cxi_cq* cq, const c_target_cmd* cmd) {
  return detail::emit_block(cq, cmd, wire::cxi::CmdType::cq);
}
STRAIT_HD_INLINE int cxi_cq_emit_target(cxi_cq* cq, const c_set_state_cmd* cmd) {
  return detail::emit_block(cq, cmd, wire::cxi::CmdType::cq);
}

// Shows the device everything that was emitted: the write pointer in blocks of 64 bytes, behind a fence.
STRAIT_HD_INLINE void cxi_cq_ring(cxi_cq* cq) {
  cq->commands.ring();
}

}  // namespace strait::cxi
