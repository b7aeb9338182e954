// SPDX-License-Identifier: Apache-2.0
// Opening and closing queues for kernels, and the handles that are passed to them.
#include "node/device_queue.hpp"

#include <bit>
#include <cstddef>
#include <cstring>

#include "node/core.hpp"
#include "node/lane.hpp"
#include "node/local.hpp"
#include "node/peer.hpp"

void strait_device_queue::shut() {
  const std::lock_guard lock(mutex);
  if (std::exchange(closed, true) || !queue) return;
  queue->abort(true);
  while (!holds.empty()) holds.pop_back();
  signals.clear();
  queue->fail();
  queue->close();
}

strait::Result<std::uint64_t> strait_device_queue::reach(const void* host, std::uint64_t length_bytes,
                                                         std::uint32_t flags) {
  const auto address = reinterpret_cast<std::uint64_t>(host);
  if (here) return address;
  strait::buffer::HostPages& pages = strait::buffer::HostPages::of_process(near.device->kind);
  STRAIT_TRY(strait::buffer::HostPages::Hold hold,
             pages.reach(*near.provider, near.index, {address, length_bytes}, flags));
  const std::uint64_t seen_at = hold.device_address();
  holds.push_back(std::move(hold));
  return seen_at;
}

strait::Result<std::uint64_t> strait_device_queue::failure_word(strait::sys::Deadline deadline) {
  constexpr std::size_t kAt = offsetof(strait::device::QueueState, failure);
  if (here) return __atomic_load_n(reinterpret_cast<std::uint64_t*>(state_here.data() + kAt), __ATOMIC_ACQUIRE);
  std::uint64_t word = 0;
  STRAIT_CHECK(node->providers().copy(&word, static_cast<std::byte*>(state_there.data()) + kAt, sizeof word, deadline));
  return word;
}

namespace strait::node {
namespace {

using wire::mlx5::Syndrome;

constexpr std::int64_t kStateCopyNs = 5'000'000'000;

// How the NIC hears of a post, for people.
std::string consumer_text(const strait_device_queue& queue) {
  const rail::Nic& nic = queue.queue->nic();
  if (queue.queue->relayed()) {
    return fmt::format("{} (proxy: a CPU thread rings it while a lease is held, since the poster cannot: {})",
                       nic.name(), queue.not_rung_by_poster);
  }
  if (nic.info().doorbell_register != 0) return fmt::format("{} (rung by the poster)", nic.name());
  if (std::string_view(nic.ops()->kind) == "soft")
    return fmt::format("{} (software: a CPU thread polls the rings while a lease is held)", nic.name());
  return fmt::format(
      "proxy: a CPU thread forwards to {}, which a GPU cannot ring (the plug-in \"{}\" has no doorbell register), "
      "while "
      "a lease is held",
      nic.name(), nic.ops()->kind);
}

}  // namespace

// Puts the state where posters reach it, and lets them at rings and doorbell.
static Status furnish(Core& core, strait_device_queue& queue) {
  rail::DeviceQueue& rings = *queue.queue;
  const std::size_t bytes = rings.state_bytes();
  if (queue.here) {
    STRAIT_TRY(queue.state_here, sys::map_anonymous(sys::round_up(bytes, sys::page_bytes()), sys::Protect::read_write));
    queue.state_address = reinterpret_cast<std::uint64_t>(queue.state_here.data());
  } else {
    STRAIT_TRY(queue.state_there, core.providers().allocate(queue.near.device->name, bytes));
    queue.state_address = queue.state_there.range().address;
  }
  rail::PosterView view;
  view.state = queue.state_address;
  STRAIT_TRY(view.rings, queue.reach(rings.rings().data(), rings.rings().size(), 0));
  const bool is_register = rings.nic().info().doorbell_register != 0;
  const auto doorbell = queue.reach(rings.doorbell(), sizeof(std::uint64_t), is_register ? STRAIT_HOST_IO_MEMORY : 0u);
  if (!doorbell && !is_register) return doorbell.error();
  if (doorbell) {
    view.doorbell = *doorbell;
  } else {
    // The driver does not let its device at registers of another: a CPU rings, as for a NIC that has none.
    queue.not_rung_by_poster = doorbell.error().text;
    rings.relay_doorbell();
  }
  std::vector<std::byte> image(bytes);
  STRAIT_CHECK(rings.prepare_state(view, image));
  if (queue.here) {
    std::memcpy(queue.state_here.data(), image.data(), image.size());
    return {};
  }
  return core.providers().copy(queue.state_there.data(), image.data(), image.size(),
                               sys::Deadline::after_ns(kStateCopyNs));
}

Result<strait_device_queue*> Core::open_device_queue(strait_peer& peer, rail::DeviceQueueShape shape,
                                                     const std::string& near_device, sys::Deadline deadline) {
  if (rails_.empty()) {
    return with_remedy(fail(Code::unsupported, "this Node has no NIC, so it cannot talk to peers"),
                       "open the Node with the option nics=soft");
  }
  if (shape.sq_blocks == 0) shape.sq_blocks = std::bit_ceil(settings_.lane_depth);
  auto queue = std::make_unique<strait_device_queue>();
  queue->node = shared_from_this();
  STRAIT_TRY(queue->near, providers_->find(near_device));
  queue->here = queue->near.device->kind == "host";
  STRAIT_TRY(queue->rail, rail_for(near_device));
  const sys::NodeWish rings(placement_.ring_node());
  STRAIT_TRY(queue->queue, rail::DeviceQueue::make(*rails_[queue->rail].nic, shape));
  STRAIT_CHECK(furnish(*this, *queue));
  STRAIT_TRY(queue->client, join_peer(*queue->queue, shape.sq_blocks, peer, queue->rail, queue->far_rail, deadline));
  queue->peer_name = peer.name;
  queue->path =
      fmt::format("{} -> rings in host memory -> {} -> {} -> {}", queue->here ? "CPU grid" : queue->near.device->name,
                  consumer_text(*queue), queue->queue->describe(), peer.name);
  counters_.get("device_queues_opened").add();
  if (queue->queue->relayed()) doorbells_.add(*queue->queue);
  const Locked lock(lanes_mutex_);
  device_queues_.push_back(queue.get());
  return queue.release();
}

void Core::close_device_queue(strait_device_queue* raw) {
  std::unique_ptr<strait_device_queue> queue(raw);
  {
    const Locked lock(lanes_mutex_);
    std::erase(device_queues_, raw);
  }
  doorbells_.remove(*queue->queue);
  leases_.end_all_of(queue->looked());
  queue.reset();
  sweep();
}

Status queue_usable(strait_device_queue& queue) {
  return queue.node->usable("device queue");
}

Error why_queue_failed(const strait_device_queue& queue, std::uint64_t word) {
  const device::Failure failure = device::unpack(word);
  const auto number = static_cast<unsigned>(failure.syndrome);
  Error error =
      fail(code_of(failure.syndrome), "an operation of the device queue to {} failed: {} (syndrome {:#04x}, block {})",
           queue.peer_name, wire::mlx5::sentence(failure.syndrome), number, failure.index);
  const char* remedy = "open another device queue";
  if (failure.syndrome == Syndrome::remote_access)
    remedy = "look the region up again: it may have been revoked, or shared with fewer rights; then open another queue";
  if ((failure.syndrome == Syndrome::flushed || failure.syndrome == Syndrome::transport_retry_exceeded) &&
      !queue.client->alive()) {
    error =
        fail(Code::gone, "an operation of the device queue did not complete: the peer {} is gone (syndrome {:#04x})",
             queue.peer_name, number);
    remedy = "connect again; what was put before may or may not have arrived";
  }
  error.syndrome = number;
  return with_remedy(std::move(error), remedy);
}

Result<device::LocalRegion> local_handle(const strait_device_queue& queue, const strait_slice& slice) {
  if (!slice_good(slice)) return why_slice_bad(slice);
  const strait_region& region = *slice.region;
  if (region.core != queue.node) return fail(Code::invalid, "the region belongs to another Node than the queue");
  if (region.staged) {
    return with_remedy(
        fail(Code::unsupported, "no NIC can reach this memory of {}: a kernel cannot go through a bounce buffer",
             region.claim.device->name),
        "use memory that the NIC reaches, see strait_region_path");
  }
  if (region.lkeys[queue.rail] == kNoKey)
    return fail(Code::unsupported, "the device queue's NIC did not take this memory of {} when it was shared: {}",
                region.claim.device->name, region.exported ? region.exported->refusal_of(queue.rail) : "");
  device::LocalRegion handle{};
  handle.head = device::head_of<device::LocalRegion>();
  handle.address = region.local_address + slice.offset;
  handle.length_bytes = slice.length_bytes;
  handle.lkey = region.lkeys[queue.rail];
  return handle;
}

Result<device::RemoteRegion> remote_handle(const strait_device_queue& queue, const strait_target& target) {
  if (target.struct_size < sizeof target)
    return fail(Code::invalid, "strait_target.struct_size is {}, not {}", target.struct_size, sizeof target);
  const std::uint32_t rkey = rkey_of(target, queue.far_rail);
  if (rkey == kNoKey)
    return fail(Code::unsupported,
                "the peer's NIC that the device queue ends at did not take the target's memory when it was shared; the "
                "path of the owner's region says why");
  device::RemoteRegion handle{};
  handle.head = device::head_of<device::RemoteRegion>();
  handle.address = target.address;
  handle.length_bytes = target.length_bytes;
  handle.rkey = rkey;
  if (target.signal_address != 0) {
    handle.signal_address = target.signal_address;
    handle.signal_rkey = signal_rkey_of(target, queue.far_rail);
    handle.signals = STRAIT_SIGNALS;
  }
  return handle;
}

Result<device::Signal> signal_handle(strait_device_queue& queue, strait_region& region, std::uint32_t index) {
  if (region.core != queue.node) return fail(Code::invalid, "the region belongs to another Node than the queue");
  if (!region.signals) {
    return with_remedy(fail(Code::invalid, "the region has no signals: peers may not write it"),
                       "share it with STRAIT_REMOTE_WRITE");
  }
  if (index >= STRAIT_SIGNALS) return fail(Code::invalid, "signal {}: a region has {}", index, STRAIT_SIGNALS);
  const void* const words = region.signals.get();
  const std::lock_guard lock(queue.mutex);
  if (queue.closed) return fail(Code::gone, "the Node of this device queue was closed");
  std::uint64_t seen_at = 0;
  for (const auto& [where, seen] : queue.signals) {
    if (where == words) seen_at = seen;
  }
  if (seen_at == 0) {
    STRAIT_TRY(seen_at, queue.reach(words, Signals::kWordBytes, 0));
    queue.signals.emplace_back(words, seen_at);
  }
  device::Signal handle{};
  handle.head = device::head_of<device::Signal>();
  handle.word = reinterpret_cast<const std::uint64_t*>(seen_at + std::size_t{index} * sizeof(std::uint64_t));
  return handle;
}

}  // namespace strait::node
