// SPDX-License-Identifier: Apache-2.0
#include "buffer/cuda/copies.hpp"

#include "sys/pause.hpp"

namespace strait::buffer::cuda {
namespace {

constexpr unsigned kSlotBits = 24;  // low part of a ticket: where; the rest: which use of that place
constexpr std::int32_t kBadTicket = -static_cast<std::int32_t>(Code::invalid);

bool lost(CuResult result) {
  constexpr CuResult kInvalidHandle = 400;
  return result == kInvalidContext || result == kContextDestroyed || result == kInvalidHandle;
}

}  // namespace

Copies::~Copies() {
  for (const Slot& slot : slots_) {
    if (slot.ticket == 0 || slot.gpu->context() == nullptr) continue;
    const Pushed pushed(driver_, slot.gpu->context());
    for (std::uint32_t turn = 0; driver_.event_query(slot.event) == kNotReady; ++turn) sys::pause_turn(turn);
    (void)driver_.event_destroy(slot.event);
  }
}

Result<Copies::Side> Copies::look_at(Pointer pointer, std::uint64_t length_bytes) const {
  Side side;
  side.mine = pointers_.look(pointer, side.found) && side.found.device;
  if (!side.mine) {
    if (pointer == 0) return fail(Code::invalid, "a copy cannot start at the null address");
    if (length_bytes > UINT64_MAX - pointer)
      return fail(Code::invalid, "{} bytes at {:#x} wrap around", length_bytes, pointer);
    return side;
  }
  Extent& extent = side.extent;
  if (!pointers_.extent(pointer, side.found, extent) || !pointers_.covers(pointer, length_bytes, side.found, extent)) {
    return fail(Code::invalid, "{} bytes at {:#x} run past the CUDA allocation of {} bytes at {:#x}", length_bytes,
                pointer, extent.length_bytes, extent.base);
  }
  if (side.found.ordinal < 0 || static_cast<std::size_t>(side.found.ordinal) >= gpus_.size())
    return fail(Code::invalid, "{:#x} is memory of CUDA device {}, which this provider does not have", pointer,
                side.found.ordinal);
  return side;
}

Result<std::uint64_t> Copies::start(Pointer to, Pointer from, std::uint64_t length_bytes) {
  if (length_bytes == 0) return kFinished;
  STRAIT_TRY(const Side target, look_at(to, length_bytes));
  STRAIT_TRY(const Side source, look_at(from, length_bytes));
  if (!target.mine && !source.mine) return fail(Code::invalid, "neither {:#x} nor {:#x} is CUDA memory", to, from);
  counts_.bytes.add(length_bytes);
  if (target.mine != source.mine && copy_small(to, target, from, source, length_bytes)) {
    counts_.by_cpu.add();
    return kFinished;
  }
  // The side that is read drives between two devices: the copy engine next to the source is the faster one.
  Gpu& gpu = *gpus_[static_cast<std::size_t>(source.mine ? source.found.ordinal : target.found.ordinal)];
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (const Status attached = gpu.attach(false); !attached) {
      // Memory of a context the program made itself, on a device whose primary context nobody uses.
      const Context own = source.mine ? source.found.context : target.found.context;
      if (own == nullptr) return attached.error();
      STRAIT_CHECK(run_in(own, to, target, from, source, length_bytes));
      return kFinished;
    }
    auto started = start_on(gpu, to, target, from, source, length_bytes);
    if (started || started.error().code != Code::gone || attempt == 1) return started;
    gpu.detach_lost();  // cudaDeviceReset: try again with the context that is there now
  }
  return fail(Code::gone, "the context of {} is gone", gpu.name());
}

bool Copies::copy_small(Pointer to, const Side& target, Pointer from, const Side& source, std::uint64_t length_bytes) {
  const bool in = target.mine;
  const Side& device = in ? target : source;
  if (maps_.copy_small(to, from, length_bytes, in, device.found.buffer_id)) return true;
  // Memory that can be remapped has no id that tells, and managed memory is the CPU's already.
  if (device.found.managed || Pointers::is_vmm(device.found, device.extent)) return false;
  Gpu& gpu = *gpus_[static_cast<std::size_t>(device.found.ordinal)];
  const CpuMaps::Place place{device.extent.base, device.extent.length_bytes, device.found.buffer_id,
                             device.extent.rdma_capable};
  const Pointer address = in ? to : from;
  if (!maps_.pays(gpu, place, address, length_bytes, in) || !gpu.attach(false)) return false;
  {
    const Pushed pushed(driver_, gpu.context());
    if (pushed.result() != kOk) return false;
    maps_.open_window(gpu, place, address);
  }
  return maps_.copy_small(to, from, length_bytes, in, device.found.buffer_id);
}

CuResult Copies::queue(Pointer to, const Side& target, Pointer from, const Side& source, std::uint64_t length_bytes,
                       Context context, Stream stream) {
  if (target.found.managed || source.found.managed) return driver_.copy_any(to, from, length_bytes, stream);
  if (!source.mine) return driver_.copy_in(to, reinterpret_cast<const void*>(from), length_bytes, stream);
  if (!target.mine) return driver_.copy_out(reinterpret_cast<void*>(to), from, length_bytes, stream);
  if (target.found.ordinal == source.found.ordinal) return driver_.copy_inside(to, from, length_bytes, stream);
  Gpu& other = *gpus_[static_cast<std::size_t>(target.found.ordinal)];
  if (!other.attach(false)) return driver_.copy_any(to, from, length_bytes, stream);
  return driver_.copy_peer(to, other.context(), from, context, length_bytes, stream);
}

Result<std::uint64_t> Copies::start_on(Gpu& gpu, Pointer to, const Side& target, Pointer from, const Side& source,
                                       std::uint64_t length_bytes) {
  const Context context = gpu.context();
  const Pushed pushed(driver_, context);
  if (pushed.result() != kOk) return fail(Code::gone, "the context of {} is gone", gpu.name());
  STRAIT_TRY(const Event event, gpu.take_event());
  const Direction direction = !source.mine ? Direction::in : !target.mine ? Direction::out : Direction::inside;
  const Stream stream = gpu.stream(direction);
  CuResult result = queue(to, target, from, source, length_bytes, context, stream);
  if (result == kOk) result = driver_.event_record(event, stream);
  if (result != kOk) {
    gpu.give_event(event);
    counts_.failed.add();
    Error error = driver_.failed(result, fmt::format("copy {} bytes from {:#x} to {:#x}", length_bytes, from, to));
    if (lost(result)) error.code = Code::gone;
    return error;
  }
  counts_.started.add();
  return remember(event, gpu);  // the copy is queued: from here on it cannot fail
}

Status Copies::run_in(Context context, Pointer to, const Side& target, Pointer from, const Side& source,
                      std::uint64_t length_bytes) {
  const Pushed pushed(driver_, context);
  Stream stream = nullptr;
  CuResult result = pushed.result();
  if (result == kOk) result = driver_.stream_create(&stream, kStreamNonBlocking);
  if (result == kOk) {
    result = queue(to, target, from, source, length_bytes, context, stream);
    if (const CuResult waited = driver_.stream_wait(stream); result == kOk) result = waited;
    (void)driver_.stream_destroy(stream);
  }
  if (result == kOk) return {};
  counts_.failed.add();
  return driver_.failed(result, fmt::format("copy {} bytes from {:#x} to {:#x}", length_bytes, from, to));
}

std::uint64_t Copies::remember(Event event, Gpu& gpu) {
  const std::lock_guard lock(mutex_);
  if (free_slots_.empty()) {
    free_slots_.push_back(static_cast<std::uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  const std::uint32_t at = free_slots_.back();
  free_slots_.pop_back();
  const std::uint64_t ticket = next_turn_++ << kSlotBits | (at & ((1u << kSlotBits) - 1));
  slots_[at] = {ticket, event, &gpu};
  return ticket;
}

std::int32_t Copies::done(std::uint64_t ticket) {
  if (ticket == kFinished) return 1;
  Slot slot;
  const std::size_t at = ticket & ((1u << kSlotBits) - 1);
  {
    const std::lock_guard lock(mutex_);
    if (ticket >> kSlotBits >= next_turn_) return kBadTicket;
    // A ticket of the past was answered before.
    if (at >= slots_.size() || slots_[at].ticket != ticket) return 1;
    slot = slots_[at];
  }
  const Context context = slot.gpu->context();
  CuResult result = kContextDestroyed;
  if (context != nullptr && !slot.gpu->was_reset()) {
    const Pushed pushed(driver_, context);
    result = pushed.result() == kOk ? driver_.event_query(slot.event) : pushed.result();
    if (result == kNotReady) return 0;
  }
  {
    const std::lock_guard lock(mutex_);
    if (slots_[at].ticket != ticket) return 1;  // another thread asked about the same ticket
    slots_[at] = {};
    free_slots_.push_back(static_cast<std::uint32_t>(at));
  }
  if (result == kOk) {
    slot.gpu->give_event(slot.event);
    counts_.finished.add();
    return 1;
  }
  counts_.failed.add();
  return -static_cast<std::int32_t>(lost(result) ? Code::gone : Code::device);
}

Status Copies::run(Pointer to, Pointer from, std::uint64_t length_bytes) {
  STRAIT_TRY(const std::uint64_t ticket, start(to, from, length_bytes));
  // The driver ends every copy, if only with an error: there is no deadline to keep here.
  for (std::uint32_t turn = 0;; ++turn) {
    const std::int32_t state = done(ticket);
    if (state == 1) return {};
    if (state < 0) return fail(static_cast<Code>(-state), "a copy of {} bytes on a CUDA device failed", length_bytes);
    sys::pause_turn(turn < 4096 ? turn % 64 : turn);  // copies of a few microseconds are worth a spin
  }
}

}  // namespace strait::buffer::cuda
