// SPDX-License-Identifier: Apache-2.0
// C ABI: queues that kernels post to.
#include "node/answer.hpp"
#include "node/bury.hpp"
#include "node/core.hpp"
#include "node/device_queue.hpp"
#include "node/peer.hpp"

using namespace strait;
using namespace strait::node;

namespace {

Status read_queue_options(const strait_device_queue_options& given, rail::DeviceQueueShape& shape,
                          std::string& near_device) {
  if (given.struct_size < sizeof given) {
    return fail(Code::invalid, "strait_device_queue_options.struct_size is {}, not {}", given.struct_size,
                sizeof given);
  }
  if (given.sharing > STRAIT_SHARING_MANY_THREADS)
    return fail(Code::invalid, "strait_device_queue_options.sharing is {}, which means nothing", given.sharing);
  shape.sharing = static_cast<device::Sharing>(given.sharing);
  shape.sq_blocks = given.depth_blocks;
  shape.rq_entries = given.receives;
  shape.counters = given.counters;
  if (given.near_device != nullptr) near_device = given.near_device;
  return {};
}

}  // namespace

extern "C" {

std::int32_t strait_device_queue_open(strait_peer* peer, const strait_device_queue_options* options,
                                      std::int64_t timeout_ns, strait_device_queue** out, strait_error* error) {
  if (peer == nullptr || out == nullptr) return answer_null(error, "peer or out");
  return guarded(error, [&]() -> Status {
    STRAIT_CHECK(peer->node->usable("peer"));
    rail::DeviceQueueShape shape;
    std::string near_device;
    if (options != nullptr) STRAIT_CHECK(read_queue_options(*options, shape, near_device));
    STRAIT_TRY(*out,
               peer->node->open_device_queue(*peer, shape, near_device, peer->node->connect_deadline(timeout_ns)));
    return {};
  });
}

void strait_device_queue_close(strait_device_queue* queue) {
  if (queue == nullptr) return;
  if (queue->node->in_child()) return bury(queue);
  const std::shared_ptr<Core> core = queue->node;
  (void)guarded(nullptr, [&]() -> Status {
    core->close_device_queue(queue);
    return {};
  });
}

const char* strait_device_queue_path(const strait_device_queue* queue) {
  return queue == nullptr ? "" : queue->path.c_str();
}

std::int32_t strait_device_queue_handle(strait_device_queue* queue, void* handle, std::size_t handle_bytes,
                                        strait_error* error) {
  if (queue == nullptr || handle == nullptr) return answer_null(error, "queue or handle");
  return guarded(error, [&]() -> Status {
    STRAIT_CHECK(queue_usable(*queue));
    device::Queue made{};
    made.head = device::head_of<device::Queue>();
    made.sharing = queue->queue->shape().sharing;
    made.state = reinterpret_cast<device::QueueState*>(queue->state_address);
    return give_handle(made, handle, handle_bytes);
  });
}

std::int32_t strait_device_local(strait_device_queue* queue, const strait_slice* slice, void* handle,
                                 std::size_t handle_bytes, strait_error* error) {
  if (queue == nullptr || slice == nullptr || slice->region == nullptr || handle == nullptr)
    return answer_null(error, "queue, slice, region or handle");
  return guarded(error, [&]() -> Status {
    STRAIT_CHECK(queue_usable(*queue));
    STRAIT_TRY(const device::LocalRegion made, local_handle(*queue, *slice));
    return give_handle(made, handle, handle_bytes);
  });
}

std::int32_t strait_device_remote(strait_device_queue* queue, const strait_target* target, void* handle,
                                  std::size_t handle_bytes, strait_error* error) {
  if (queue == nullptr || target == nullptr || handle == nullptr) return answer_null(error, "queue, target or handle");
  return guarded(error, [&]() -> Status {
    STRAIT_CHECK(queue_usable(*queue));
    STRAIT_TRY(const device::RemoteRegion made, remote_handle(*queue, *target));
    return give_handle(made, handle, handle_bytes);
  });
}

std::int32_t strait_device_signal(strait_device_queue* queue, strait_region* region, std::uint32_t index, void* handle,
                                  std::size_t handle_bytes, strait_error* error) {
  if (queue == nullptr || region == nullptr || handle == nullptr) return answer_null(error, "queue, region or handle");
  return guarded(error, [&]() -> Status {
    STRAIT_CHECK(queue_usable(*queue));
    STRAIT_TRY(const device::Signal made, signal_handle(*queue, *region, index));
    return give_handle(made, handle, handle_bytes);
  });
}

void strait_device_queue_abort(strait_device_queue* queue, std::uint32_t raise) {
  if (queue == nullptr || queue->node->in_child()) return;
  queue->queue->abort(raise != 0);
}

std::int32_t strait_device_queue_failure(strait_device_queue* queue, strait_error* error) {
  if (queue == nullptr) return answer_null(error, "queue");
  return guarded(error, [&]() -> Status {
    STRAIT_CHECK(queue_usable(*queue));
    STRAIT_TRY(const std::uint64_t word, queue->failure_word(queue->node->deadline(-1)));
    if (word == 0) return {};
    return why_queue_failed(*queue, word);
  });
}

std::int32_t strait_gpu_lease_begin(strait_device_queue* queue, strait_gpu_lease** out, strait_error* error) {
  if (queue == nullptr || out == nullptr) return answer_null(error, "queue or out");
  return guarded(error, [&]() -> Status {
    STRAIT_CHECK(queue_usable(*queue));
    auto lease = std::make_unique<strait_gpu_lease>();
    lease->node = queue->node;
    // A NIC that is rung by the poster itself needs nobody to look.
    if (queue->queue->nic().info().doorbell_register == 0 || queue->queue->relayed()) {
      STRAIT_TRY(lease->id, queue->node->leases().begin(queue->looked()));
    }
    *out = lease.release();
    return {};
  });
}

void strait_gpu_lease_end(strait_gpu_lease* lease) {
  if (lease == nullptr) return;
  if (lease->node->in_child()) return bury(lease);
  const std::unique_ptr<strait_gpu_lease> owned(lease);
  (void)guarded(nullptr, [&]() -> Status {
    owned->node->leases().end(owned->id);
    return {};
  });
}

}  // extern "C"
