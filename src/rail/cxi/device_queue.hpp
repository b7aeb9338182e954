// SPDX-License-Identifier: Apache-2.0
// KiQueue: what somebody else posts to on a CXI device: a kernel on an accelerator, or a grid of CPU threads. An LNI
// with a transmit queue, the triggered queue beside it (counter commands have one of their own), counters with the
// words they are written back to, places for signalled puts, and an event queue for failures. And the other side of it:
// memory that peers put into, with a counter of ours or an array of signals.
//
// What a poster touches is named by parts(): whole pages, so that they can be made reachable for it and hold nothing of
// anybody else's. What only posters use is the state: this class says what it begins as, and whoever knows the poster's
// memory puts it there.
//
// Threads: any, except that the destructor is alone. Blocks: expose() until the device has linked the memory, a second
// at most.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "rail/cxi/command_queue.hpp"
#include "rail/cxi/event_queue.hpp"
#include "rail/cxi/objects.hpp"
#include "strait/device/cxi/queue.hpp"
#include "sys/mapping.hpp"

namespace strait::rail::cxi {

struct KiShape {
  device::Sharing sharing = device::Sharing::one_thread;
  std::uint32_t blocks = 1024;  // of each command queue; rounded up by the driver
  std::uint32_t counters = 4;   // a peer's puts may count on them too
  std::uint32_t places = 16;    // signalled puts under way at a time: a power of two, or 0
  std::uint32_t vni = 1;
  std::uint32_t service = w::kDefaultService;
  w::CqPolicy policy = w::CqPolicy::always;  // of the two rings that are posted to
};

// Memory that peers reach, and what they have to know of it.
struct Exposed {
  std::uint32_t nid = 0;
  std::uint32_t pid = 0;
  std::uint32_t index = 0;  // of the portal entry
  std::uint64_t bytes = 0;
};

class KiQueue {
 public:
  [[nodiscard]] static Result<std::unique_ptr<KiQueue>> make(Device& device, KiShape shape);
  KiQueue(const KiQueue&) = delete;
  KiQueue& operator=(const KiQueue&) = delete;
  ~KiQueue();

  // ---- For whoever makes it reachable

  struct Part {
    std::span<std::byte> pages;
    bool registers = false;  // of a device: I/O memory, not memory
    const char* what = "";   // "the launch page of the triggered queue"
  };
  [[nodiscard]] const std::vector<Part>& parts() const { return parts_; }
  // Where the poster finds things: its own addresses, in the order of parts(), and of state_bytes() aligned to 64.
  struct View {
    std::vector<std::uint64_t> parts;
    std::uint64_t state = 0;
  };
  [[nodiscard]] View view_from_here(std::uint64_t state) const;
  [[nodiscard]] std::size_t state_bytes() const;
  // Fills `image`, state_bytes() long: what the poster's state memory begins as. The QueueState is its first part.
  [[nodiscard]] Status prepare_state(const View& view, std::span<std::byte> image) const;

  // ---- Memory

  // For commands of posters. `request` as Memory::make takes it; it stays until release(), or as long as the queue.
  [[nodiscard]] Result<device::cxi::LocalMemory> local(const Memory::Request& request);
  // Commands that name it fail afterwards. It is kept, and may be tried again, where the device still uses it.
  [[nodiscard]] Status release(const device::cxi::LocalMemory& handle);
  // For peers: at the next portal index. `counter`: one of ours that every put, get and atomic counts on; kNoCounter.
  // `rights`: w::kLeOpPut, w::kLeOpGet, or both, of whoever is on the network.
  static constexpr std::uint32_t kNoCounter = ~std::uint32_t{0};
  static constexpr std::uint32_t kPutAndGet = w::kLeOpPut | w::kLeOpGet;
  [[nodiscard]] Result<Exposed> expose(const Memory::Request& request, std::uint32_t counter = kNoCounter,
                                       std::uint32_t rights = kPutAndGet);
  // Nothing arrives there afterwards. Its index comes again when all others have been used.
  [[nodiscard]] Status unexpose(const Exposed& place);
  // What a peer's Lane is given. `signals`: 64-bit words that were exposed by themselves, or null.
  [[nodiscard]] device::cxi::RemoteMemory remote(const Exposed& memory, const Exposed* signals) const;

  // Ends every wait of the posters while it is raised.
  void abort(bool raise) const;
  [[nodiscard]] const KiShape& shape() const { return shape_; }
  [[nodiscard]] std::uint32_t pid() const { return domain_.pid(); }

 private:
  explicit KiQueue(KiShape shape) : shape_(shape) {}
  [[nodiscard]] Status create(Device& device);
  [[nodiscard]] Status link(const Portal& portal, const Memory& memory, const Memory::Request& request,
                            std::uint32_t counter, std::uint32_t rights);
  [[nodiscard]] Result<std::uint32_t> free_index_locked();
  // Words that one side writes have lines of their own: counters, places, operands, the abort word.
  [[nodiscard]] std::uint64_t* line(std::size_t index) const {
    return reinterpret_cast<std::uint64_t*>(words_.data() + index * 64);
  }
  [[nodiscard]] std::size_t lines() const { return shape_.counters + 2u * shape_.places + 1u; }

  KiShape shape_;
  sys::Mapping words_;  // outlives the device's objects
  Told shared_;         // words_, to a software device
  Lni lni_;
  Profile triggered_profile_;
  Profile profile_;
  Domain domain_;
  Memory reached_;  // words_, for the operands
  EventQueue failures_;
  EventQueue links_;
  std::vector<Counter> counters_;
  std::vector<Counter> places_;
  CommandQueue transmit_;
  CommandQueue triggered_;
  CommandQueue target_;
  std::vector<Part> parts_;
  struct Lent {
    device::cxi::LocalMemory handle;
    Memory memory;
  };
  struct Shown {
    Memory memory;
    Portal portal;  // goes first
  };
  std::mutex mutex_;  // of what follows, and of target_ and links_
  std::vector<Lent> lent_;
  std::map<std::uint32_t, Shown> shown_;  // by portal index
  std::uint32_t next_index_ = 0;
};

}  // namespace strait::rail::cxi
