// SPDX-License-Identifier: Apache-2.0
// CxiQueue: a queue of a CXI device that kernels (or CPU threads) post to, and the handles that they are given.
//
//   auto device = strait::CxiDevice::open("cxi0");          // or "soft0", on a machine without one
//   auto queue = strait::CxiQueue::open(*device, {.sharing = strait::device::Sharing::many_threads});
//   strait::CxiPlace mine = queue->expose({buffer, bytes}, 1).value();     // send it to the peer, get the peer's
//   kernel<<<...>>>(queue->handle().value(), queue->local({buffer, bytes}).value(), queue->remote(theirs).value());
//
// Beside strait.hpp, which does without the headers of device/. Inline over the C interface.
#pragma once

#include <cstdint>
#include <string>

#include "strait/device/cxi/queue.hpp"
#include "strait/device/queue.hpp"
#include "strait/strait.hpp"
#include "strait/wire/cxi_abi_values.hpp"

namespace strait {

// A CXI device, hardware or software. Everything made with it has to go before.
class CxiDevice {
 public:
  explicit CxiDevice(strait_cxi_device* raw) : raw_(raw) {}
  // "cxi0", "soft0", "local0" as strait_cxi_open says; "": the first there is, else a software one.
  static Result<CxiDevice> open(const std::string& name = "") {
    detail::Catch caught;
    strait_cxi_device* raw = nullptr;
    if (strait_cxi_open(name.c_str(), &raw, caught.out()) != STRAIT_OK) return caught.error();
    return CxiDevice(raw);
  }
  [[nodiscard]] strait_cxi_device* raw() const { return raw_.get(); }

 private:
  detail::Owner<strait_cxi_device, strait_cxi_close> raw_;
};

struct CxiQueueOptions {
  std::string near = "host";  // who posts: "cuda:0" of `node`, or CPU threads of this process
  const Node* node = nullptr;
  device::Sharing sharing = device::Sharing::one_thread;
  std::uint32_t depth_blocks = 0;
  std::uint32_t counters = 0;
  std::uint32_t signalled_puts = 0;
  std::uint32_t vni = 0;
  std::uint32_t service = 0;
  // When the device says how far it has read a ring. Seldom is quicker: each time a cache line goes to and fro.
  wire::cxi::CqPolicy update_policy = wire::cxi::CqPolicy::always;
};

struct CxiMemory {
  void* address = nullptr;
  std::uint64_t length_bytes = 0;
  int dmabuf = -1;
  std::uint64_t dmabuf_offset = 0;
};

// Memory that peers reach: plain bytes, made to be sent to them.
using CxiPlace = strait_cxi_place;

// Closing it ends waits. No kernel may use its handles any more then.
class CxiQueue {
 public:
  explicit CxiQueue(strait_cxi_queue* raw) : raw_(raw) {}
  static Result<CxiQueue> open(const CxiDevice& device, const CxiQueueOptions& options = {}) {
    strait_cxi_queue_options given{};
    given.struct_size = sizeof given;
    given.sharing = static_cast<std::uint32_t>(options.sharing);
    given.depth_blocks = options.depth_blocks;
    given.counters = options.counters;
    given.signalled_puts = options.signalled_puts;
    given.vni = options.vni;
    given.service = options.service;
    given.update_policy = static_cast<std::uint32_t>(options.update_policy);
    given.near_device = options.near.c_str();
    detail::Catch caught;
    strait_cxi_queue* raw = nullptr;
    strait_node* const node = options.node == nullptr ? nullptr : options.node->raw();
    if (strait_cxi_queue_open(device.raw(), node, &given, &raw, caught.out()) != STRAIT_OK) return caught.error();
    return CxiQueue(raw);
  }

  // What a kernel takes by value.
  [[nodiscard]] Result<device::cxi::Queue> handle() const {
    return made<device::cxi::Queue>([&](device::cxi::Queue& out, strait_error* e) {
      return strait_cxi_queue_handle(raw_.get(), &out, sizeof out, e);
    });
  }
  [[nodiscard]] Result<device::cxi::LocalMemory> local(const CxiMemory& memory) const {
    const strait_cxi_memory given = given_of(memory);
    return made<device::cxi::LocalMemory>([&](device::cxi::LocalMemory& out, strait_error* e) {
      return strait_cxi_local(raw_.get(), &given, &out, sizeof out, e);
    });
  }
  [[nodiscard]] Result<device::cxi::RemoteMemory> remote(const CxiPlace& memory,
                                                         const CxiPlace* signals = nullptr) const {
    return made<device::cxi::RemoteMemory>([&](device::cxi::RemoteMemory& out, strait_error* e) {
      return strait_cxi_remote(raw_.get(), &memory, signals, &out, sizeof out, e);
    });
  }
  // A word of this process's memory, which peers raise and a kernel waits for.
  [[nodiscard]] Result<device::Signal> signal(const std::uint64_t* word) const {
    return made<device::Signal>(
        [&](device::Signal& out, strait_error* e) { return strait_cxi_signal(raw_.get(), word, &out, sizeof out, e); });
  }
  // Commands that name it fail afterwards; none may be under way.
  Status release(const device::cxi::LocalMemory& handle) const {
    detail::Catch caught;
    if (strait_cxi_release(raw_.get(), &handle, sizeof handle, caught.out()) != STRAIT_OK) return caught.error();
    return {};
  }
  // For peers; what they do there counts on a counter of this queue. `rights` are those of everybody on its VNI.
  [[nodiscard]] Result<CxiPlace> expose(const CxiMemory& memory, std::uint32_t counter = STRAIT_CXI_NO_COUNTER,
                                        access::Access rights = access::remote_write | access::remote_read) const {
    const strait_cxi_memory given = given_of(memory);
    return made<CxiPlace>([&](CxiPlace& out, strait_error* e) {
      return strait_cxi_expose(raw_.get(), &given, counter, rights, &out, e);
    });
  }
  // Nothing arrives there afterwards.
  Status unexpose(const CxiPlace& place) const {
    detail::Catch caught;
    if (strait_cxi_unexpose(raw_.get(), &place, caught.out()) != STRAIT_OK) return caught.error();
    return {};
  }

  // Ends every wait of its posters, until it is lowered again. Operations go on.
  void abort(bool raise = true) const { strait_cxi_queue_abort(raw_.get(), raise ? 1 : 0); }
  [[nodiscard]] strait_cxi_queue* raw() const { return raw_.get(); }

 private:
  static strait_cxi_memory given_of(const CxiMemory& memory) {
    return {sizeof(strait_cxi_memory), memory.dmabuf, memory.address, memory.length_bytes, memory.dmabuf_offset};
  }
  template <class Made, class Call>
  static Result<Made> made(Call call) {
    detail::Catch caught;
    Made out{};
    if (call(out, caught.out()) != STRAIT_OK) return caught.error();
    return out;
  }
  detail::Owner<strait_cxi_queue, strait_cxi_queue_close> raw_;
};

}  // namespace strait
