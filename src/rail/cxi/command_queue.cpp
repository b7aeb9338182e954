// SPDX-License-Identifier: Apache-2.0
#include "rail/cxi/command_queue.hpp"

#include <cstring>

#include "strait/device/order.hpp"

namespace strait::rail::cxi {

Result<CommandQueue> CommandQueue::make(const Lni& lni, const Request& request) {
  w::CqAllocOpts options{};
  options.count = request.blocks;
  options.policy = request.policy;
  options.lcid = request.lcid;
  if (request.kind != Kind::target) options.flags |= w::kCqIsTx;
  if (request.kind == Kind::triggered) options.flags |= w::kCqTxTriggered;
  w::CqAllocResp answer{};
  if (request.ring == nullptr) {
    w::CqAllocCmd command{};  // the older call, which every driver knows
    command.lni = lni.number();
    command.eq = request.event_queue;
    command.opts = options;
    STRAIT_TRY(answer, lni.device().ask<w::CqAllocResp>(command));
  } else {
    const w::QueueStatus begin = w::initial_queue_status();
    if (request.ring_in_host) {
      std::memset(request.ring, 0, std::size_t{request.blocks} * w::kBlockBytes);
      std::memcpy(request.ring, &begin, sizeof begin);
    }
    w::CqAllocBufCmd command{};
    command.lni = lni.number();
    command.eq = request.event_queue;
    command.opts.opts = options;
    command.opts.buf = reinterpret_cast<std::uintptr_t>(request.ring);
    command.opts.is_host_mem = request.ring_in_host ? 1 : 0;
    command.opts.dmabuf_fd = request.dmabuf;
    command.opts.dmabuf_offset = request.dmabuf_offset;
    STRAIT_TRY(answer, lni.device().ask<w::CqAllocResp>(command));
  }
  CommandQueue queue;
  queue.handle_ = {lni.device(), answer.cq};
  queue.kind_ = request.kind;
  queue.blocks_ = answer.count;
  if (answer.count <= w::kFirstBlock + 1 || answer.count > w::kMaxCqBlocks)
    return fail(Code::device, "{} made a command queue of {} blocks", lni.device().name(), answer.count);
  if (request.ring == nullptr) {
    STRAIT_TRY(queue.ring_pages_, lni.device().map(answer.cmds));
    if (answer.cmds.size < std::uint64_t{answer.count} * w::kBlockBytes)
      return fail(Code::device, "{} mapped {} bytes for a command queue of {} blocks", lni.device().name(),
                  answer.cmds.size, answer.count);
    queue.ring_ = queue.ring_pages_.data();
  } else {
    queue.ring_ = static_cast<std::byte*>(request.ring);
  }
  STRAIT_TRY(queue.launch_, lni.device().map(answer.wp_addr));
  return queue;
}

std::uint32_t CommandQueue::free_blocks() const {
  const std::uint32_t size = blocks_ - w::kFirstBlock;
  const std::uint32_t read = status().rd_ptr();
  if (read < w::kFirstBlock || read >= blocks_) return 0;  // nothing that a device says
  const std::uint32_t write = (next_ + 1) / 2;             // may be blocks_, which is the first again
  const std::uint32_t used = (write + size - read) % size;
  return size - 1 - used;  // one stays empty: full and empty would look the same
}

// Zeroes are NOOPs of 32 bytes. A triggered queue takes counter commands only, of 64.
void CommandQueue::pad(std::uint32_t slots) {
  if (slots == 0) return;
  std::memset(at(next_), 0, std::size_t{slots} * w::kSlotBytes);
  if (kind_ == Kind::triggered) {
    for (std::uint32_t i = 0; i < slots; i += 2) {
      w::CtCmd noop{};
      noop.set_header(w::CmdType::ct, w::CmdSize::b64, w::CtOp::noop);
      std::memcpy(at(next_ + i), &noop, sizeof noop);
    }
  }
  next_ += slots;
}

bool CommandQueue::place(const void* command, std::uint32_t bytes, w::CmdSize size) {
  const std::uint32_t slots = w::bytes_of(size) / w::kSlotBytes;
  const std::uint32_t gap = (slots - next_ % slots) % slots;
  if ((next_ + gap + slots + 1) / 2 - (next_ + 1) / 2 > free_blocks()) return false;
  pad(gap);
  if (next_ == blocks_ * 2) next_ = w::kFirstSlot;
  std::memcpy(at(next_), command, bytes);
  if (bytes < slots * w::kSlotBytes) std::memset(at(next_) + bytes, 0, slots * w::kSlotBytes - bytes);
  next_ += slots;
  return true;
}

void CommandQueue::ring() {
  if (next_ == shown_) return;
  if (next_ % 2 != 0) pad(1);
  if (next_ == blocks_ * 2) next_ = w::kFirstSlot;
  shown_ = next_;
  device::order_before_doorbell(device::Reach::system);
  __atomic_store_n(reinterpret_cast<std::uint64_t*>(launch_.data() + w::kWritePointerOffset), std::uint64_t{shown_ / 2},
                   __ATOMIC_RELEASE);
  device::order_after_doorbell(device::Reach::system);
}

Result<std::uint32_t> CommandQueue::unacknowledged() const {
  w::CqAckCounterCmd command{};
  command.cq = number();
  STRAIT_TRY(const auto answer, handle_.device().ask<w::CqAckCounterResp>(command));
  return answer.ack_counter;
}

}  // namespace strait::rail::cxi
