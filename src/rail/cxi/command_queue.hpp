// SPDX-License-Identifier: Apache-2.0
// CommandQueue: a ring of commands to the device, and the page that shows it how far they go.
//
//   bytes 0..255 status | 256 ... commands, each on a multiple of its size ... end, then 256 again
//
// One thread at a time.
#pragma once

#include <cstdint>
#include <type_traits>

#include "rail/cxi/objects.hpp"
#include "strait/wire/cxi.hpp"

namespace strait::rail::cxi {

class CommandQueue {
 public:
  enum class Kind : std::uint8_t { transmit, triggered, target };
  struct Request {
    Kind kind = Kind::transmit;
    std::uint32_t blocks = 1024;  // of 64 bytes; rounded up by the driver
    std::uint32_t lcid = 0;       // transmit: of the profile it sends by
    std::uint32_t event_queue = w::kEqNone;
    w::CqPolicy policy = w::CqPolicy::always;  // when the device says how far it has read
    // A ring that the caller brings: whole pages, of host memory or of a device's through a dma-buf.
    void* ring = nullptr;
    bool ring_in_host = true;
    int dmabuf = -1;
    std::uint64_t dmabuf_offset = 0;
  };

  CommandQueue() = default;
  [[nodiscard]] static Result<CommandQueue> make(const Lni& lni, const Request& request);

  // Adds a command in a place of its size. False: there is no room now; ring() and come again.
  template <class Cmd>
  [[nodiscard]] bool emit(const Cmd& command, w::CmdSize size) {
    static_assert(std::is_trivially_copyable_v<Cmd> && sizeof(Cmd) % 8 == 0);
    return place(&command, sizeof command, size);
  }
  [[nodiscard]] bool place(const void* command, std::uint32_t bytes, w::CmdSize size);
  // Shows the device everything that was added.
  void ring();
  // There is something that ring() has not shown.
  [[nodiscard]] bool waiting() const { return next_ != shown_; }

  // Blocks that emit can still take, as far as is known now.
  [[nodiscard]] std::uint32_t free_blocks() const;
  // Everything that was shown has been read.
  [[nodiscard]] bool empty() const { return status().rd_ptr() == shown_ / 2; }
  [[nodiscard]] w::QueueStatus status() const {
    return {__atomic_load_n(reinterpret_cast<const std::uint64_t*>(ring_), __ATOMIC_ACQUIRE)};
  }
  // Operations of this queue that nobody has acknowledged yet.
  [[nodiscard]] Result<std::uint32_t> unacknowledged() const;

  [[nodiscard]] std::uint32_t number() const { return handle_.number(); }
  [[nodiscard]] std::uint32_t blocks() const { return blocks_; }
  [[nodiscard]] std::byte* ring_memory() const { return ring_; }
  [[nodiscard]] std::byte* launch_page() const { return launch_.data(); }
  [[nodiscard]] std::uint64_t launch_bytes() const { return launch_.size(); }

 private:
  void pad(std::uint32_t slots);
  [[nodiscard]] std::byte* at(std::uint32_t slot) const { return ring_ + std::size_t{slot} * w::kSlotBytes; }

  Handle<w::CqFreeCmd, &w::CqFreeCmd::cq> handle_;
  Pages ring_pages_;
  Pages launch_;
  Kind kind_ = Kind::transmit;
  std::byte* ring_ = nullptr;
  std::uint32_t blocks_ = 0;
  std::uint32_t next_ = w::kFirstSlot;   // in slots of 32 bytes
  std::uint32_t shown_ = w::kFirstSlot;  // even
};

}  // namespace strait::rail::cxi
