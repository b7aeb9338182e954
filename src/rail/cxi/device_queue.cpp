// SPDX-License-Identifier: Apache-2.0
#include "rail/cxi/device_queue.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "rail/cxi/encode.hpp"
#include "sys/clock.hpp"
#include "sys/pause.hpp"

namespace strait::rail::cxi {
namespace {

namespace ki = device::cxi;

constexpr std::size_t kStateLine = 64;
constexpr std::uint64_t kFailureBytes = 4096;
constexpr std::uint64_t kLinkBytes = 4096;
constexpr std::int64_t kLinkNs = 1'000'000'000;

// Which part is where; doorbell pages of the counters follow.
enum : std::size_t { kWords, kFailures, kTransmitRing, kTriggeredRing, kTransmitPage, kTriggeredPage, kFirstDoorbell };

// Where the pieces of the state lie, from its first byte.
struct KiStateLayout {
  std::size_t counters, places, transmit_marks, triggered_marks, bytes;

  KiStateLayout(const KiShape& shape, std::uint32_t transmit_blocks, std::uint32_t triggered_blocks) {
    counters = sys::round_up(sizeof(ki::QueueState), kStateLine);
    places = sys::round_up(counters + shape.counters * sizeof(ki::CounterState), kStateLine);
    transmit_marks = sys::round_up(places + shape.places * sizeof(ki::SignalPlace), kStateLine);
    triggered_marks = transmit_marks + std::size_t{transmit_blocks} * sizeof(std::uint64_t);
    bytes = sys::round_up(triggered_marks + std::size_t{triggered_blocks} * sizeof(std::uint64_t), kStateLine);
  }
};

template <class T>
T* at_address(std::uint64_t base, std::size_t offset = 0) {
  return reinterpret_cast<T*>(base + offset);
}

}  // namespace

Result<std::unique_ptr<KiQueue>> KiQueue::make(Device& device, KiShape shape) {
  if (shape.counters == 0 || shape.counters > w::kUsableCts)
    return fail(Code::invalid, "a queue has 1 to {} counters, not {}", w::kUsableCts, shape.counters);
  if (shape.places != 0 && !std::has_single_bit(shape.places))
    return fail(Code::invalid, "places for signalled puts are a power of two, not {}", shape.places);
  // Each takes two triggered operations while it is under way.
  if (shape.places > w::kNumTles / 2)
    return fail(Code::invalid, "a device has {} triggered operations: {} signalled puts under way need more",
                w::kNumTles, shape.places);
  std::unique_ptr<KiQueue> queue(new KiQueue(shape));
  STRAIT_CHECK(queue->create(device));
  return queue;
}

Status KiQueue::create(Device& device) {
  const std::size_t bytes = sys::round_up(lines() * 64, sys::page_bytes());
  STRAIT_TRY(const sys::Fd file, sys::make_sealed_memfd("strait-cxi-words", bytes));
  STRAIT_TRY(words_, sys::map_file(file.get(), 0, bytes, sys::Protect::read_write));
  sys::keep_from_children(words_);  // a child's copy would take the place of what the device holds on to
  // A software device in another process then stores a counter's word itself: by the system call that reaches memory
  // which it does not share, a wait takes longer than the put.
  const auto address = reinterpret_cast<std::uintptr_t>(words_.data());
  if (device.share(address, bytes, file.get(), 0)) shared_ = {device, address};
  STRAIT_TRY(lni_, Lni::make(device, shape_.service));
  // LCID 0 first: it is the only one that a triggered queue takes.
  STRAIT_TRY(triggered_profile_, Profile::make(lni_, shape_.vni, w::TrafficClass::best_effort, w::CpType::triggered));
  STRAIT_TRY(profile_, Profile::make(lni_, shape_.vni, w::TrafficClass::best_effort, w::CpType::any));
  STRAIT_TRY(domain_, Domain::make(lni_, shape_.vni));
  Memory::Request words;
  words.address = address;
  words.bytes = bytes;
  words.flags = w::kMapRead | w::kMapWrite;
  STRAIT_TRY(reached_, Memory::make(lni_, words));
  STRAIT_TRY(failures_, EventQueue::make(lni_, kFailureBytes, nullptr));
  STRAIT_TRY(links_, EventQueue::make(lni_, kLinkBytes, nullptr));
  for (std::uint32_t i = 0; i < shape_.counters + shape_.places; ++i) {
    STRAIT_TRY(Counter counter, Counter::make(lni_, line(i)));
    (i < shape_.counters ? counters_ : places_).push_back(std::move(counter));
  }
  CommandQueue::Request request;
  request.policy = shape_.policy;
  request.blocks = shape_.blocks;
  request.lcid = profile_.lcid();
  request.event_queue = failures_.number();
  STRAIT_TRY(transmit_, CommandQueue::make(lni_, request));
  request.kind = CommandQueue::Kind::triggered;
  request.lcid = triggered_profile_.lcid();
  STRAIT_TRY(triggered_, CommandQueue::make(lni_, request));
  request.kind = CommandQueue::Kind::target;
  request.policy = w::CqPolicy::always;
  request.blocks = w::kMinCqBlocks;
  request.lcid = 0;
  request.event_queue = links_.number();
  STRAIT_TRY(target_, CommandQueue::make(lni_, request));

  const bool registers = !device.software();
  const auto pages = [](std::byte* base, std::uint64_t size) {
    return std::span(base, static_cast<std::size_t>(size));
  };
  parts_ = {
      {pages(words_.data(), words_.size()), false, "the words of the counters"},
      {failures_.memory(), false, "the event queue of failures"},
      {pages(transmit_.ring_memory(), std::uint64_t{transmit_.blocks()} * w::kBlockBytes), false,
       "the ring of the transmit queue"},
      {pages(triggered_.ring_memory(), std::uint64_t{triggered_.blocks()} * w::kBlockBytes), false,
       "the ring of the triggered queue"},
      {pages(transmit_.launch_page(), transmit_.launch_bytes()), registers, "the launch page of the transmit queue"},
      {pages(triggered_.launch_page(), triggered_.launch_bytes()), registers,
       "the launch page of the triggered queue"}};
  for (const Counter& counter : counters_)
    parts_.push_back(
        {pages(counter.doorbell(), counter.doorbell_bytes()), registers, "the doorbell page of a counter"});
  return {};
}

KiQueue::~KiQueue() {
  abort(true);
}

void KiQueue::abort(bool raise) const {
  if (words_.data() == nullptr) return;
  auto* const word = reinterpret_cast<std::uint32_t*>(line(lines() - 1));
  __atomic_store_n(word, raise ? 1u : 0u, __ATOMIC_RELEASE);
}

KiQueue::View KiQueue::view_from_here(std::uint64_t state) const {
  View view;
  for (const Part& part : parts_) view.parts.push_back(reinterpret_cast<std::uint64_t>(part.pages.data()));
  view.state = state;
  return view;
}

std::size_t KiQueue::state_bytes() const {
  return KiStateLayout(shape_, transmit_.blocks(), triggered_.blocks()).bytes;
}

Status KiQueue::prepare_state(const View& view, std::span<std::byte> image) const {
  const KiStateLayout state(shape_, transmit_.blocks(), triggered_.blocks());
  if (image.size() != state.bytes || view.parts.size() != parts_.size() || view.state % kStateLine != 0)
    return fail(Code::invalid, "a queue's state is {} bytes at a multiple of {}, with an address for each of {} parts",
                state.bytes, kStateLine, parts_.size());
  std::memset(image.data(), 0, image.size());
  const std::uint64_t words = view.parts[kWords];
  const std::uint32_t flags = (lni_.device().flags() & STRAIT_CXI_MEMORY_DOORBELLS) != 0 ? ki::kMemoryDoorbell : 0u;
  for (std::uint32_t i = 0; i < shape_.counters; ++i) {
    ki::CounterState one{};
    one.counter = {device::head_of<ki::Counter>(), at_address<std::uint64_t>(words, std::size_t{i} * 64),
                   at_address<std::uint64_t>(view.parts[kFirstDoorbell + i]), counters_[i].number(), flags};
    std::memcpy(image.data() + state.counters + i * sizeof one, &one, sizeof one);
  }
  for (std::uint32_t i = 0; i < shape_.places; ++i) {
    const std::size_t word = std::size_t{shape_.counters + i} * 64;
    const std::size_t operand = std::size_t{shape_.counters + shape_.places + i} * 64;
    ki::SignalPlace one{};
    one.counter = {device::head_of<ki::Counter>(), at_address<std::uint64_t>(words, word), nullptr, places_[i].number(),
                   flags};
    one.operand = at_address<std::uint64_t>(words, operand);
    one.operand_iova = reached_.iova(reinterpret_cast<std::uint64_t>(words_.data()) + operand);
    one.operand_lac = reached_.lac();
    std::memcpy(image.data() + state.places + i * sizeof one, &one, sizeof one);
  }
  ki::QueueMemory memory;
  memory.sharing = shape_.sharing;
  memory.transmit = {at_address<void>(view.parts[kTransmitRing]),
                     transmit_.blocks(),
                     at_address<void>(view.parts[kTransmitPage]),
                     at_address<std::uint64_t>(view.state, state.transmit_marks),
                     ki::RingKind::transmit,
                     device::Reach::system};
  memory.triggered = {at_address<void>(view.parts[kTriggeredRing]),
                      triggered_.blocks(),
                      at_address<void>(view.parts[kTriggeredPage]),
                      at_address<std::uint64_t>(view.state, state.triggered_marks),
                      ki::RingKind::triggered,
                      device::Reach::system};
  memory.counter = at_address<ki::CounterState>(view.state, state.counters);
  memory.counters = shape_.counters;
  memory.places = at_address<ki::SignalPlace>(view.state, state.places);
  memory.count_of_places = shape_.places;
  memory.abort = at_address<std::uint32_t>(words, (lines() - 1) * 64);
  memory.events = at_address<void>(view.parts[kFailures]);
  memory.event_bytes = static_cast<std::uint32_t>(parts_[kFailures].pages.size());
  memory.event_queue = failures_.number();
  const w::DevInfo& info = lni_.device().info();
  memory.initiator = w::match_id(info.pid_bits, domain_.pid(), info.nid);
  ki::QueueState opened{};
  if (!ki::open_queue(opened, memory))
    return fail(Code::device, "{} made command queues that no device code can post to", lni_.device().name());
  std::memcpy(image.data(), &opened, sizeof opened);
  return {};
}

Result<ki::LocalMemory> KiQueue::local(const Memory::Request& request) {
  STRAIT_TRY(Memory memory, Memory::make(lni_, request));
  ki::LocalMemory handle{};
  handle.head = device::head_of<ki::LocalMemory>();
  handle.iova = memory.iova(request.address);
  handle.length_bytes = request.bytes;
  handle.lac = memory.lac();
  const std::lock_guard lock(mutex_);
  lent_.push_back({handle, std::move(memory)});
  return handle;
}

Status KiQueue::release(const ki::LocalMemory& handle) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(lent_.begin(), lent_.end(), [&](const Lent& each) {
    return each.handle.iova == handle.iova && each.handle.lac == handle.lac &&
           each.handle.length_bytes == handle.length_bytes;
  });
  if (found == lent_.end())
    return fail(Code::invalid, "no memory of this queue has the handle of {} bytes at {:#x}", handle.length_bytes,
                handle.iova);
  STRAIT_CHECK(found->memory.give_back());
  lent_.erase(found);
  return {};
}

// What was taken back comes last: a peer that still has its place finds nothing there for as long as possible.
Result<std::uint32_t> KiQueue::free_index_locked() {
  // The last index is the device's own, for rendezvous.
  const std::uint32_t indices = lni_.device().info().pid_granule - 1;
  if (shown_.size() >= indices)
    return fail(Code::unsupported, "{} pieces of memory are exposed, and a PID has no more portal entries",
                shown_.size());
  std::uint32_t index = next_index_ % indices;
  while (shown_.contains(index)) index = (index + 1) % indices;
  next_index_ = index + 1;
  return index;
}

Result<Exposed> KiQueue::expose(const Memory::Request& request, std::uint32_t counter, std::uint32_t rights) {
  if (rights == 0 || (rights & ~kPutAndGet) != 0)
    return fail(Code::invalid, "memory is exposed to be written, read, or both, not to {:#x}", rights);
  if (counter != kNoCounter && counter >= shape_.counters)
    return fail(Code::invalid, "counter {}: the queue has {}", counter, shape_.counters);
  const w::DevInfo& info = lni_.device().info();
  STRAIT_TRY(Memory memory, Memory::make(lni_, request));
  const std::lock_guard lock(mutex_);
  STRAIT_TRY(const std::uint32_t index, free_index_locked());
  STRAIT_TRY(Portal portal, Portal::make(lni_, domain_, index, links_.number(), 0));
  STRAIT_CHECK(link(portal, memory, request, counter, rights));
  shown_.emplace(index, Shown{std::move(memory), std::move(portal)});
  return Exposed{info.nid, domain_.pid(), index, request.bytes};
}

Status KiQueue::unexpose(const Exposed& place) {
  const std::lock_guard lock(mutex_);
  const auto found = shown_.find(place.index);
  if (found == shown_.end() || place.pid != domain_.pid() || place.nid != lni_.device().info().nid)
    return fail(Code::invalid, "this queue exposes nothing at portal index {} of PID {} at NID {}", place.index,
                place.pid, place.nid);
  STRAIT_CHECK(found->second.portal.give_back());
  STRAIT_CHECK(found->second.memory.give_back());
  shown_.erase(found);
  return {};
}

// Appends the memory as the one entry of the portal, which takes whatever comes, and enables it.
Status KiQueue::link(const Portal& portal, const Memory& memory, const Memory::Request& request, std::uint32_t counter,
                     std::uint32_t rights) {
  ListEntry entry;
  entry.portal = portal.number();
  entry.flags = rights | w::kLeEventUnlinkDisable | w::kLeEventSuccessDisable | w::kLeEventCommDisable |
                (counter != kNoCounter ? w::kLeEventCtComm : 0u);
  entry.iova = memory.iova(request.address);
  entry.lac = memory.lac();
  entry.bytes = request.bytes;
  entry.ignore_bits = ~std::uint64_t{0};
  w::TargetCmd append = encode_append(entry);
  if (counter != kNoCounter) append.set_ct(counters_[counter].number());
  if (!target_.emit(append, w::CmdSize::b64) ||
      !target_.emit(encode_state_change(portal.number(), w::PteState::enabled), w::CmdSize::b64))
    return fail(Code::again, "{} takes no target commands now", lni_.device().name());
  target_.ring();
  bool linked = false;
  bool enabled = false;
  std::uint32_t turns = 0;
  const sys::Deadline deadline = sys::Deadline::after_ns(kLinkNs);
  while (!linked || !enabled) {
    Event event;
    if (!links_.next(event)) {
      if (deadline.passed())
        return fail(Code::timeout, "{} did not link memory to a portal entry within a second", lni_.device().name());
      sys::pause_turn(turns++);
      continue;
    }
    if (!event.ok() && (event.type == w::EventType::link || event.type == w::EventType::command_failure)) {
      links_.acknowledge();
      return fail(Code::device, "{} refused to link memory to a portal entry: return code {}", lni_.device().name(),
                  static_cast<unsigned>(event.code));
    }
    linked = linked || event.type == w::EventType::link;
    enabled = enabled || event.type == w::EventType::state_change;
  }
  links_.acknowledge();
  return {};
}

ki::RemoteMemory KiQueue::remote(const Exposed& memory, const Exposed* signals) const {
  const std::uint32_t pid_bits = lni_.device().info().pid_bits;
  const auto dfa = [&](const Exposed& to) {
    return w::unicast_dfa(to.nid, w::endpoint_of(to.pid, pid_bits, to.index));
  };
  ki::RemoteMemory handle{};
  handle.head = device::head_of<ki::RemoteMemory>();
  handle.length_bytes = memory.bytes;
  handle.dfa = dfa(memory);
  handle.index_ext = w::index_ext_of(memory.index);
  if (signals != nullptr) {
    handle.signal_dfa = dfa(*signals);
    handle.signal_index_ext = w::index_ext_of(signals->index);
    handle.signals = static_cast<std::uint32_t>(signals->bytes / 8);
  }
  return handle;
}

}  // namespace strait::rail::cxi
