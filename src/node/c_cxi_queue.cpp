// SPDX-License-Identifier: Apache-2.0
// C ABI: queues of a CXI device that kernels post to.
#include <cstring>
#include <vector>

#include "buffer/memory.hpp"
#include "buffer/providers.hpp"
#include "export/reach.hpp"
#include "node/answer.hpp"
#include "node/bury.hpp"
#include "node/core.hpp"
#include "node/cxi_device.hpp"
#include "node/ki_reach.hpp"
#include "sys/mapping.hpp"

using namespace strait;
using namespace strait::node;

struct strait_cxi_queue {
  rail::cxi::Device* device = nullptr;
  std::shared_ptr<Core> node;       // null: CPU threads post, and nobody has to reach anything
  buffer::Providers::Place near;    // whose kernels post; meaningless without a Node
  bool here = true;                 // posted to by CPUs of this process
  std::uint64_t state_address = 0;  // of the QueueState, as posters call it
  sys::Mapping state_here;          // the one or
  buffer::Memory state_there;       // the other
  std::unique_ptr<rail::cxi::KiQueue> queue;
  std::mutex mutex;                            // of what follows
  std::vector<buffer::HostPages::Hold> holds;  // let go before the queue

  ~strait_cxi_queue() {
    if (queue) queue->abort(true);
    while (!holds.empty()) holds.pop_back();
  }
};

namespace {

constexpr std::int64_t kStateCopyNs = 5'000'000'000;

Result<rail::cxi::KiShape> shape_of(const strait_cxi_queue_options* given) {
  rail::cxi::KiShape shape;
  if (given == nullptr) return shape;
  if (given->struct_size < sizeof *given)
    return fail(Code::invalid, "strait_cxi_queue_options.struct_size is {}, not {}", given->struct_size, sizeof *given);
  if (given->sharing > STRAIT_SHARING_MANY_THREADS)
    return fail(Code::invalid, "strait_cxi_queue_options.sharing is {}, which means nothing", given->sharing);
  shape.sharing = static_cast<device::Sharing>(given->sharing);
  if (given->depth_blocks != 0) shape.blocks = given->depth_blocks;
  if (given->counters != 0) shape.counters = given->counters;
  if (given->signalled_puts != 0) shape.places = given->signalled_puts;
  if (given->vni != 0) shape.vni = given->vni;
  if (given->service != 0) shape.service = given->service;
  if (given->update_policy > static_cast<std::uint32_t>(wire::cxi::CqPolicy::low_freq))
    return fail(Code::invalid, "strait_cxi_queue_options.update_policy is {}, which means nothing",
                given->update_policy);
  shape.policy = static_cast<wire::cxi::CqPolicy>(given->update_policy);
  return shape;
}

// Who posts, and whether that is this process.
Status find_poster(strait_cxi_queue& queue, const char* near_device) {
  const std::string name = near_device == nullptr ? "" : near_device;
  if (!queue.node) {
    if (name.empty() || name == "host") return {};
    return with_remedy(fail(Code::invalid, "kernels of {} post to the queue, and no Node was given that has it", name),
                       "open a Node with that accelerator and pass it on");
  }
  STRAIT_TRY(queue.near, queue.node->providers().find(name));
  queue.here = queue.near.device->kind == "host";
  return {};
}

// Puts the state where posters reach it, and lets them at everything they touch.
Status furnish(strait_cxi_queue& queue) {
  const std::size_t bytes = queue.queue->state_bytes();
  if (queue.here) {
    STRAIT_TRY(queue.state_here, sys::map_anonymous(sys::round_up(bytes, sys::page_bytes()), sys::Protect::read_write));
    queue.state_address = reinterpret_cast<std::uint64_t>(queue.state_here.data());
    return queue.queue->prepare_state(queue.queue->view_from_here(queue.state_address),
                                      {queue.state_here.data(), bytes});
  }
  buffer::Providers& providers = queue.node->providers();
  STRAIT_TRY(queue.state_there, providers.allocate(queue.near.device->name, bytes));
  queue.state_address = queue.state_there.range().address;
  STRAIT_TRY(KiReach reach,
             reach_parts(queue.queue->parts(), buffer::HostPages::of_process(queue.near.device->kind),
                         buffer::HostPages::way_of(*queue.near.provider), queue.near.index, queue.state_address));
  queue.holds = std::move(reach.holds);
  std::vector<std::byte> image(bytes);
  STRAIT_CHECK(queue.queue->prepare_state(reach.view, image));
  return providers.copy(queue.state_there.data(), image.data(), image.size(), sys::Deadline::after_ns(kStateCopyNs));
}

Status usable(const strait_cxi_queue& queue) {
  if (queue.device->in_child()) return fail(Code::gone, "a CXI queue belongs to the process that opened it");
  return queue.node ? queue.node->usable("CXI queue") : Status{};
}

// By its address, or by a dma-buf of the caller's.
Result<rail::cxi::Memory::Request> request_of(const strait_cxi_memory& given) {
  if (given.struct_size < sizeof given)
    return fail(Code::invalid, "strait_cxi_memory.struct_size is {}, not {}", given.struct_size, sizeof given);
  if (given.address == nullptr || given.length_bytes == 0)
    return fail(Code::invalid, "{} bytes at {} are no memory", given.length_bytes, fmt::ptr(given.address));
  rail::cxi::Memory::Request request;
  request.address = reinterpret_cast<std::uintptr_t>(given.address);
  request.bytes = given.length_bytes;
  request.flags = wire::cxi::kMapRead | wire::cxi::kMapWrite;
  if (given.dmabuf < 0) return request;
  request.flags |= wire::cxi::kMapDevice;
  request.dmabuf = given.dmabuf;
  request.dmabuf_offset = given.dmabuf_offset;
  return request;
}

// Makes something of the memory in the first way that the device takes: as the caller says; where that is no more than
// an address of one of the Node's accelerators, by a dma-buf of it, by the address itself, or through its port.
template <class Make>
auto make_of(strait_cxi_queue& queue, const strait_cxi_memory& given, Make make)
    -> decltype(make(rail::cxi::Memory::Request{})) {
  STRAIT_TRY(rail::cxi::Memory::Request request, request_of(given));
  if (!queue.node || given.dmabuf >= 0) return make(request);
  STRAIT_TRY(const buffer::Claim claim, queue.node->providers().classify({request.address, request.bytes}));
  if (claim.device->kind == "host") return make(request);
  exports::NicAbilities device;
  device.name = queue.device->name();
  device.imports_fds = true;
  const auto exported = exports::reach_by(claim, claim.whole, device, exports::Way::dmabuf);
  std::vector<rail::cxi::Memory::Request> ways;
  if (exported) {
    ways.push_back(request);
    ways.back().flags |= wire::cxi::kMapDevice;
    ways.back().dmabuf = exported->fd.fd();
    ways.back().dmabuf_offset = exported->fd.offset() + (request.address - claim.whole.address);
  }
  ways.push_back(request);
  if (!claim.cpu_accessible()) ways.back().flags |= wire::cxi::kMapDevice;
  if (exported && exported->port != nullptr && queue.device->software()) {
    ways.push_back(request);
    ways.back().flags |= wire::cxi::kMapDevice;
    ways.back().port = exported->port;
  }
  auto made = make(ways.front());
  for (std::size_t i = 1; i < ways.size() && !made; ++i) {
    if (auto other = make(ways[i])) return other;
  }
  return made;
}

rail::cxi::Exposed exposed_of(const strait_cxi_place& place) {
  return {place.nid, place.pid, place.index, place.length_bytes};
}

}  // namespace

extern "C" {

std::int32_t strait_cxi_queue_open(strait_cxi_device* device, strait_node* node,
                                   const strait_cxi_queue_options* options, strait_cxi_queue** out,
                                   strait_error* error) {
  if (device == nullptr || out == nullptr) return answer_null(error, device == nullptr ? "device" : "out");
  return guarded(error, [&]() -> Status {
    STRAIT_TRY(const rail::cxi::KiShape shape, shape_of(options));
    auto queue = std::make_unique<strait_cxi_queue>();
    queue->device = device->device.get();
    if (node != nullptr) queue->node = node->core;
    STRAIT_CHECK(usable(*queue));
    STRAIT_CHECK(find_poster(*queue, options == nullptr ? nullptr : options->near_device));
    STRAIT_TRY(queue->queue, rail::cxi::KiQueue::make(*queue->device, shape));
    STRAIT_CHECK(furnish(*queue));
    *out = queue.release();
    return {};
  });
}

void strait_cxi_queue_close(strait_cxi_queue* queue) {
  if (queue == nullptr) return;
  if (queue->device->in_child()) return bury(queue);
  delete queue;
}

std::int32_t strait_cxi_queue_handle(strait_cxi_queue* queue, void* handle, std::size_t handle_bytes,
                                     strait_error* error) {
  if (queue == nullptr || handle == nullptr) return answer_null(error, "queue or handle");
  return guarded(error, [&]() -> Status {
    STRAIT_CHECK(usable(*queue));
    const device::cxi::Queue made{device::head_of<device::cxi::Queue>(), queue->queue->shape().sharing, 0,
                                  reinterpret_cast<device::cxi::QueueState*>(queue->state_address)};
    return give_handle(made, handle, handle_bytes);
  });
}

std::int32_t strait_cxi_local(strait_cxi_queue* queue, const strait_cxi_memory* memory, void* handle,
                              std::size_t handle_bytes, strait_error* error) {
  if (queue == nullptr || memory == nullptr || handle == nullptr) return answer_null(error, "queue, memory or handle");
  return guarded(error, [&]() -> Status {
    STRAIT_CHECK(usable(*queue));
    // Of the right size before anything is mapped: what a queue is given stays.
    STRAIT_CHECK(give_handle(device::cxi::LocalMemory{}, handle, handle_bytes));
    STRAIT_TRY(const device::cxi::LocalMemory made,
               make_of(*queue, *memory, [&](const auto& request) { return queue->queue->local(request); }));
    return give_handle(made, handle, handle_bytes);
  });
}

std::int32_t strait_cxi_release(strait_cxi_queue* queue, const void* handle, std::size_t handle_bytes,
                                strait_error* error) {
  if (queue == nullptr || handle == nullptr) return answer_null(error, "queue or handle");
  return guarded(error, [&]() -> Status {
    STRAIT_CHECK(usable(*queue));
    device::cxi::LocalMemory given{};
    if (handle_bytes != sizeof given)
      return fail(Code::invalid, "a handle of local memory is {} bytes, not {}", sizeof given, handle_bytes);
    std::memcpy(&given, handle, sizeof given);
    return queue->queue->release(given);
  });
}

std::int32_t strait_cxi_expose(strait_cxi_queue* queue, const strait_cxi_memory* memory, std::uint32_t counter,
                               std::uint32_t rights, strait_cxi_place* out, strait_error* error) {
  if (queue == nullptr || memory == nullptr || out == nullptr) return answer_null(error, "queue, memory or out");
  return guarded(error, [&]() -> Status {
    STRAIT_CHECK(usable(*queue));
    static_assert(STRAIT_CXI_NO_COUNTER == rail::cxi::KiQueue::kNoCounter);
    constexpr std::uint32_t kKnown = STRAIT_REMOTE_WRITE | STRAIT_REMOTE_READ;
    if (rights == 0 || (rights & ~kKnown) != 0)
      return with_remedy(fail(Code::invalid, "memory is not exposed with the rights {:#x}", rights),
                         "pass STRAIT_REMOTE_WRITE, STRAIT_REMOTE_READ or both; atomics come with them");
    const std::uint32_t may = ((rights & STRAIT_REMOTE_WRITE) != 0 ? wire::cxi::kLeOpPut : 0u) |
                              ((rights & STRAIT_REMOTE_READ) != 0 ? wire::cxi::kLeOpGet : 0u);
    const auto expose = [&](rail::cxi::Memory::Request request) {
      // So that memory that nobody may write can be shown to be read.
      if ((rights & STRAIT_REMOTE_WRITE) == 0) request.flags &= ~wire::cxi::kMapWrite;
      return queue->queue->expose(request, counter, may);
    };
    STRAIT_TRY(const rail::cxi::Exposed place, make_of(*queue, *memory, expose));
    *out = {place.nid, place.pid, place.index, 0, place.bytes};
    return {};
  });
}

std::int32_t strait_cxi_unexpose(strait_cxi_queue* queue, const strait_cxi_place* place, strait_error* error) {
  if (queue == nullptr || place == nullptr) return answer_null(error, "queue or place");
  return guarded(error, [&]() -> Status {
    STRAIT_CHECK(usable(*queue));
    return queue->queue->unexpose(exposed_of(*place));
  });
}

std::int32_t strait_cxi_remote(strait_cxi_queue* queue, const strait_cxi_place* memory, const strait_cxi_place* signals,
                               void* handle, std::size_t handle_bytes, strait_error* error) {
  if (queue == nullptr || memory == nullptr || handle == nullptr) return answer_null(error, "queue, memory or handle");
  return guarded(error, [&]() -> Status {
    STRAIT_CHECK(usable(*queue));
    rail::cxi::Exposed words;
    if (signals != nullptr) words = exposed_of(*signals);
    const auto made = queue->queue->remote(exposed_of(*memory), signals == nullptr ? nullptr : &words);
    return give_handle(made, handle, handle_bytes);
  });
}

std::int32_t strait_cxi_signal(strait_cxi_queue* queue, const std::uint64_t* word, void* handle,
                               std::size_t handle_bytes, strait_error* error) {
  if (queue == nullptr || word == nullptr || handle == nullptr) return answer_null(error, "queue, word or handle");
  return guarded(error, [&]() -> Status {
    STRAIT_CHECK(usable(*queue));
    const auto address = reinterpret_cast<std::uintptr_t>(word);
    if (address % sizeof *word != 0)
      return fail(Code::invalid, "a signal lies at a multiple of 8, not at {:#x}", address);
    device::Signal made{device::head_of<device::Signal>(), word};
    STRAIT_CHECK(give_handle(made, handle, handle_bytes));
    if (queue->here) return {};
    STRAIT_TRY(const buffer::Claim claim, queue->node->providers().classify({address, sizeof *word}));
    if (claim.device->name == queue->near.device->name) return {};  // a word of its own memory
    STRAIT_TRY(buffer::HostPages::Hold hold,
               buffer::HostPages::of_process(queue->near.device->kind)
                   .reach(*queue->near.provider, queue->near.index, {address, sizeof *word}, 0));
    made.word = reinterpret_cast<const std::uint64_t*>(hold.device_address());
    const std::lock_guard lock(queue->mutex);
    queue->holds.push_back(std::move(hold));
    return give_handle(made, handle, handle_bytes);
  });
}

void strait_cxi_queue_abort(strait_cxi_queue* queue, std::uint32_t raise) {
  if (queue == nullptr || queue->device->in_child()) return;
  queue->queue->abort(raise != 0);
}

}  // extern "C"
