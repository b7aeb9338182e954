// SPDX-License-Identifier: Apache-2.0
// DeviceQueue: a queue to a peer that kernels (or CPU threads) post to, and the handles that they are given.
//
//   auto queue = strait::DeviceQueue::open(peer, {.near = "cuda:0", .sharing = strait::device::Sharing::many_threads});
//   strait::GpuLease lease = queue->lease().value();      // while it is held, posts are looked for
//   kernel<<<...>>>(queue->handle().value(), queue->local(region.all()).value(), queue->remote(target).value());
//
// Beside strait.hpp, which does without the headers of device/. Inline over the C interface.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "strait/device/queue.hpp"
#include "strait/strait.hpp"

namespace strait {

// Posts to its queue are polled for while it lives, and not without one: what is posted then is found at the next lease
// or poll of the Node. It may outlive the queue, and then does nothing.
class GpuLease {
 public:
  explicit GpuLease(strait_gpu_lease* raw) : raw_(raw) {}

 private:
  detail::Owner<strait_gpu_lease, strait_gpu_lease_end> raw_;
};

struct DeviceQueueOptions {
  std::string near = "host";  // who posts: "cuda:0", or CPU threads of this process
  device::Sharing sharing = device::Sharing::one_thread;
  std::uint32_t depth_blocks = 0;  // 0: the Node's option lane_depth
  std::uint32_t receives = 0;
  std::uint32_t counters = 0;
  Duration deadline = kDefaultDeadline;
};

// Closing it ends waits and flushes what is under way. No kernel may use its handles any more then.
class DeviceQueue {
 public:
  explicit DeviceQueue(strait_device_queue* raw) : raw_(raw) {}
  static Result<DeviceQueue> open(Peer& peer, const DeviceQueueOptions& options = {}) {
    strait_device_queue_options given{};
    given.struct_size = sizeof given;
    given.sharing = static_cast<std::uint32_t>(options.sharing);
    given.depth_blocks = options.depth_blocks;
    given.receives = options.receives;
    given.counters = options.counters;
    given.near_device = options.near.c_str();
    detail::Catch caught;
    strait_device_queue* raw = nullptr;
    if (strait_device_queue_open(peer.raw(), &given, options.deadline.count(), &raw, caught.out()) != STRAIT_OK)
      return caught.error();
    return DeviceQueue(raw);
  }

  // What a kernel takes by value.
  [[nodiscard]] Result<device::Queue> handle() const {
    return made<device::Queue>([&](device::Queue& out, strait_error* e) {
      return strait_device_queue_handle(raw_.get(), &out, sizeof out, e);
    });
  }
  [[nodiscard]] Result<device::LocalRegion> local(const Slice& slice) const {
    return made<device::LocalRegion>([&](device::LocalRegion& out, strait_error* e) {
      return strait_device_local(raw_.get(), &slice.raw, &out, sizeof out, e);
    });
  }
  [[nodiscard]] Result<device::LocalRegion> local(const Region& region) const { return local(region.all()); }
  [[nodiscard]] Result<device::RemoteRegion> remote(const Target& target) const {
    return made<device::RemoteRegion>([&](device::RemoteRegion& out, strait_error* e) {
      return strait_device_remote(raw_.get(), &target.raw(), &out, sizeof out, e);
    });
  }
  // A word of a region of this process, which the peer raises and a kernel waits for.
  [[nodiscard]] Result<device::Signal> signal(const Region& region, std::uint32_t index) const {
    return made<device::Signal>([&](device::Signal& out, strait_error* e) {
      return strait_device_signal(raw_.get(), region.raw(), index, &out, sizeof out, e);
    });
  }

  [[nodiscard]] Result<GpuLease> lease() const {
    detail::Catch caught;
    strait_gpu_lease* lease = nullptr;
    if (strait_gpu_lease_begin(raw_.get(), &lease, caught.out()) != STRAIT_OK) return caught.error();
    return GpuLease(lease);
  }
  // Ends every wait of its posters, until it is lowered again. Operations go on.
  void abort(bool raise = true) const { strait_device_queue_abort(raw_.get(), raise ? 1 : 0); }
  // The first failure that a poster has seen; a value: none.
  [[nodiscard]] Status failure() const {
    detail::Catch caught;
    if (strait_device_queue_failure(raw_.get(), caught.out()) != STRAIT_OK) return caught.error();
    return {};
  }
  [[nodiscard]] std::string path() const { return strait_device_queue_path(raw_.get()); }
  [[nodiscard]] strait_device_queue* raw() const { return raw_.get(); }

 private:
  template <class Handle, class Call>
  static Result<Handle> made(Call call) {
    detail::Catch caught;
    Handle handle{};
    if (call(handle, caught.out()) != STRAIT_OK) return caught.error();
    return handle;
  }
  detail::Owner<strait_device_queue, strait_device_queue_close> raw_;
};

}  // namespace strait
