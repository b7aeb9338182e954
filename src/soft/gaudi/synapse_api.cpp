// SPDX-License-Identifier: Apache-2.0
// Entry points of libSynapse.so.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "soft/gaudi/synapse_state.hpp"
#include "sys/clock.hpp"
#include "sys/pause.hpp"

#define STRAIT_SYN_USE(state)                            \
  auto state = ::strait::soft::gaudi::syn::State::use(); \
  if (!state) return ::strait::soft::gaudi::syn::kUninitialized

namespace strait::soft::gaudi::syn {
namespace {

std::int32_t type_of(const Driver& driver) {
  return driver.first_generation() ? kTypeGaudi : kTypeGaudi2;
}

// HABANA_VISIBLE_MODULES: which devices a program is given when it asks for any.
bool is_visible(std::uint32_t slot) {
  const char* chosen = std::getenv("HABANA_VISIBLE_MODULES");
  if (chosen == nullptr || std::string(chosen) == "all") return true;
  return ("," + std::string(chosen) + ",").find("," + std::to_string(slot) + ",") != std::string::npos;
}

Answer put_text(char* text, int room, const std::string& what) {
  if (text == nullptr || room <= 0) return kInvalidArgument;
  if (what.size() >= static_cast<std::size_t>(room)) return kInvalidArgument;
  std::memcpy(text, what.c_str(), what.size() + 1);
  return kSuccess;
}

template <class Info>
Answer fill_info(State& state, DeviceId device, Info* info) {
  const Acquired* acquired = state.find(device);
  if (info == nullptr) return kInvalidArgument;
  if (acquired == nullptr) return kNoDeviceFound;
  const DeviceId slot = device == UINT32_MAX ? state.devices.begin()->first : device;
  *info = {};
  info->dram_base = Driver::dram_base(slot);
  info->dram_size = state.driver->dram_bytes();
  info->dram_enabled = 1;
  info->device_id = slot;
  info->fd = static_cast<std::uint32_t>(acquired->fd);
  info->type = type_of(*state.driver);
  return kSuccess;
}

template <class T>
Answer fill_memory(std::uint64_t address, T value, std::size_t count, StreamHandle handle) {
  STRAIT_SYN_USE(state);
  const auto stream = state->streams.find(handle);
  DeviceBytes bytes;
  if (stream == state->streams.end() || count == 0 || count > SIZE_MAX / sizeof value) return kInvalidArgument;
  if (state->driver->status(stream->second->device) != 0) return kDeviceReset;
  if (!state->driver->reach(address, count * sizeof value, bytes) || bytes.slot != stream->second->device)
    return kInvalidArgument;
  state->finish_all();  // behind what was asked for before
  for (std::size_t i = 0; i < count; ++i) std::memcpy(bytes.at + i * sizeof value, &value, sizeof value);
  return kSuccess;
}

// Lets others call while it waits.
Answer wait_ticket(std::uint64_t ticket, DeviceId device) {
  for (std::uint32_t turn = 0;; ++turn) {
    {
      STRAIT_SYN_USE(state);
      if (state->is_over(ticket)) return state->driver->status(device) != 0 ? kDeviceReset : kSuccess;
    }
    sys::pause_turn(turn);
  }
}

}  // namespace

#define SYN_DECLARE(name, arguments) STRAIT_SYN_API Answer name arguments;
SYN_FUNCTIONS(SYN_DECLARE)

Answer synInitialize() {
  return State::initialize();
}

Answer synDestroy() {
  return State::destroy();
}

Answer synDeviceGetCount(std::uint32_t* count) {
  STRAIT_SYN_USE(state);
  if (count == nullptr) return kInvalidArgument;
  *count = state->driver->devices();
  return kSuccess;
}

Answer synDeviceGetCountByDeviceType(std::uint32_t* count, std::int32_t type) {
  STRAIT_SYN_USE(state);
  if (count == nullptr) return kInvalidArgument;
  *count = type == type_of(*state->driver) ? state->driver->devices() : 0;
  return kSuccess;
}

Answer synDeviceCount(std::uint32_t* counts) {
  STRAIT_SYN_USE(state);
  if (counts == nullptr) return kInvalidArgument;
  std::fill_n(counts, kTypes, 0u);
  counts[type_of(*state->driver)] = state->driver->devices();
  return kSuccess;
}

Answer synDeviceGetModuleIDs(std::uint32_t* modules, std::uint32_t* size) {
  STRAIT_SYN_USE(state);
  if (modules == nullptr || size == nullptr) return kInvalidArgument;
  *size = std::min(*size, state->driver->devices());
  for (std::uint32_t slot = 0; slot < *size; ++slot) modules[slot] = slot;
  return kSuccess;
}

Answer synDeviceAcquireByModuleId(DeviceId* device, std::uint32_t module) {
  STRAIT_SYN_USE(state);
  return device == nullptr ? kInvalidArgument : state->acquire(module, *device);
}

Answer synDeviceAcquireByDeviceType(DeviceId* device, std::int32_t type) {
  STRAIT_SYN_USE(state);
  if (device == nullptr) return kInvalidArgument;
  if (type != type_of(*state->driver)) return kNoDeviceFound;
  Answer last = kNoDeviceFound;
  for (std::uint32_t slot = 0; slot < state->driver->devices(); ++slot) {
    if (!is_visible(slot) || state->devices.contains(slot)) continue;
    last = state->acquire(slot, *device);
    if (last == kSuccess) return last;
  }
  return last;
}

Answer synDeviceAcquire(DeviceId* device, const char* bus) {
  if (bus == nullptr) {
    auto state = State::use();
    if (!state) return kUninitialized;
    const std::int32_t type = type_of(*state->driver);
    state.lock.unlock();
    return synDeviceAcquireByDeviceType(device, type);
  }
  STRAIT_SYN_USE(state);
  if (device == nullptr) return kInvalidArgument;
  for (std::uint32_t slot = 0; slot < state->driver->devices(); ++slot) {
    if (Driver::bus_id(slot) == bus) return state->acquire(slot, *device);
  }
  return kNoDeviceFound;
}

Answer synDeviceRelease(DeviceId device) {
  STRAIT_SYN_USE(state);
  return state->release(device);
}

Answer synDeviceSynchronize(DeviceId device) {
  STRAIT_SYN_USE(state);
  if (state->find(device) == nullptr) return kInvalidArgument;
  state->finish_all();
  return state->driver->status(device) != 0 ? kDeviceReset : kSuccess;
}

Answer synDriverGetVersion(char* text, int room) {
  return put_text(text, room, "strait software driver");
}

Answer synDeviceGetName(char* text, int room, DeviceId device) {
  STRAIT_SYN_USE(state);
  if (state->find(device) == nullptr) return kInvalidArgument;
  return put_text(text, room, state->driver->first_generation() ? "GAUDI" : "GAUDI2");
}

Answer synDeviceGetPCIBusId(char* text, int room, DeviceId device) {
  STRAIT_SYN_USE(state);
  if (state->find(device) == nullptr) return kInvalidArgument;
  return put_text(text, room, Driver::bus_id(device));
}

Answer synDeviceGetMemoryInfo(DeviceId device, std::uint64_t* free_bytes, std::uint64_t* total) {
  STRAIT_SYN_USE(state);
  const Acquired* acquired = state->find(device);
  if (acquired == nullptr || free_bytes == nullptr || total == nullptr) return kInvalidArgument;
  Pool pool;
  if (state->driver->pool(acquired->fd, pool) != 0) return kDeviceReset;
  *free_bytes = pool.free_bytes;
  *total = pool.total_bytes;
  return kSuccess;
}

Answer synDeviceGetInfo(DeviceId device, DeviceInfo* info) {
  STRAIT_SYN_USE(state);
  return fill_info(*state.state, device, info);
}

Answer synDeviceGetInfoV2(DeviceId device, DeviceInfoV2* info) {
  STRAIT_SYN_USE(state);
  const Answer filled = fill_info(*state.state, device, info);
  if (filled != kSuccess) return filled;
  Pool pool;
  if (state->driver->pool(static_cast<int>(info->fd), pool) != 0) return kDeviceReset;
  info->device_index = static_cast<std::uint8_t>(info->device_id);
  info->global_hbm_base = pool.allocated_base;
  return kSuccess;
}

Answer synDeviceMalloc(DeviceId device, std::uint64_t size, std::uint64_t wanted, std::uint32_t,
                       std::uint64_t* buffer) {
  STRAIT_SYN_USE(state);
  if (state->find(device) == nullptr || device == UINT32_MAX || size == 0 || buffer == nullptr) return kInvalidArgument;
  if (state->driver->status(device) != 0) return kDeviceReset;
  *buffer = state->driver->carve(device, size, wanted);
  return *buffer == 0 ? kOutOfDeviceMemory : kSuccess;
}

Answer synDeviceFree(DeviceId device, std::uint64_t buffer, std::uint32_t) {
  STRAIT_SYN_USE(state);
  if (state->find(device) == nullptr || device == UINT32_MAX) return kInvalidArgument;
  state->finish_all();
  return state->driver->uncarve(device, buffer) == 0 ? kSuccess : kFailedToFreeDeviceMemory;
}

// Whatever address it is asked for: there is one descriptor, and it is the library's.
int hcclLookupDMABuff(std::uint64_t, std::uint64_t, int* fd) {
  if (fd == nullptr) return kHcclInvalidArgument;
  auto state = State::use();
  if (!state) return kHcclUninitialized;
  const int found = state->pool_dmabuf();
  if (found < 0) return kHcclUninitialized;
  *fd = found;
  return kHcclSuccess;
}

Answer synHostMalloc(DeviceId device, std::uint64_t size, std::uint32_t, void** buffer) {
  STRAIT_SYN_USE(state);
  Acquired* acquired = state->find(device);
  if (acquired == nullptr || size == 0 || buffer == nullptr) return kInvalidArgument;
  auto memory = size > (std::uint64_t{1} << 46) ? Result<sys::Mapping>(fail(Code::limit, "too much"))
                                                : sys::map_anonymous(size, sys::Protect::read_write);
  if (!memory) return kOutOfHostMemory;
  *buffer = memory->data();
  const auto base = reinterpret_cast<std::uint64_t>(memory->data());
  acquired->host[base] = size;
  acquired->host_buffers.emplace(base, std::move(*memory));
  state->driver->counts().host_maps.add();
  return kSuccess;
}

Answer synHostFree(DeviceId device, const void* buffer, std::uint32_t) {
  STRAIT_SYN_USE(state);
  Acquired* acquired = state->find(device);
  const auto base = reinterpret_cast<std::uint64_t>(buffer);
  if (acquired == nullptr || !acquired->host_buffers.contains(base)) return kInvalidArgument;
  state->finish_all();
  acquired->host.erase(base);
  acquired->host_buffers.erase(base);
  state->driver->counts().host_unmaps.add();
  return kSuccess;
}

Answer synHostMap(DeviceId device, std::uint64_t size, const void* buffer) {
  STRAIT_SYN_USE(state);
  Acquired* acquired = state->find(device);
  const auto base = reinterpret_cast<std::uint64_t>(buffer);
  if (acquired == nullptr || buffer == nullptr || size == 0 || size > UINT64_MAX - base) return kInvalidArgument;
  if (!acquired->host.emplace(base, size).second) return kFail;  // mapped already
  state->driver->counts().host_maps.add();
  return kSuccess;
}

Answer synHostUnmap(DeviceId device, const void* buffer) {
  STRAIT_SYN_USE(state);
  Acquired* acquired = state->find(device);
  const auto base = reinterpret_cast<std::uint64_t>(buffer);
  if (acquired == nullptr || acquired->host_buffers.contains(base) || !acquired->host.contains(base))
    return kInvalidArgument;
  state->finish_all();
  acquired->host.erase(base);
  state->driver->counts().host_unmaps.add();
  return kSuccess;
}

Answer synStreamCreateGeneric(StreamHandle* handle, DeviceId device, std::uint32_t) {
  STRAIT_SYN_USE(state);
  if (handle == nullptr || device == UINT32_MAX || state->find(device) == nullptr) return kInvalidArgument;
  auto stream = std::make_unique<Stream>(Stream{device, 0});
  *handle = reinterpret_cast<StreamHandle>(stream.get());
  state->streams.emplace(*handle, std::move(stream));
  return kSuccess;
}

Answer synStreamDestroy(StreamHandle handle) {
  STRAIT_SYN_USE(state);
  const auto found = state->streams.find(handle);
  if (found == state->streams.end()) return kInvalidArgument;
  state->finish(found->second->last);
  state->streams.erase(found);
  return kSuccess;
}

// One engine, one order: what was recorded before is done before.
Answer synStreamWaitEvent(StreamHandle stream, EventHandle event, std::uint32_t) {
  STRAIT_SYN_USE(state);
  if (!state->streams.contains(stream)) return kInvalidArgument;
  return state->events.contains(event) ? kSuccess : kInvalidEventHandle;
}

Answer synStreamSynchronize(StreamHandle handle) {
  std::uint64_t last = 0;
  DeviceId device = 0;
  {
    STRAIT_SYN_USE(state);
    const auto found = state->streams.find(handle);
    if (found == state->streams.end()) return kInvalidArgument;
    last = found->second->last;
    device = found->second->device;
  }
  return wait_ticket(last, device);
}

Answer synStreamQuery(StreamHandle handle) {
  STRAIT_SYN_USE(state);
  const auto found = state->streams.find(handle);
  if (found == state->streams.end()) return kInvalidArgument;
  if (state->driver->status(found->second->device) != 0) return kDeviceReset;
  return state->is_over(found->second->last) ? kSuccess : kBusy;
}

Answer synEventCreate(EventHandle* handle, DeviceId device, std::uint32_t) {
  STRAIT_SYN_USE(state);
  if (handle == nullptr || device == UINT32_MAX || state->find(device) == nullptr) return kInvalidArgument;
  auto event = std::make_unique<Event>();
  event->device = device;
  *handle = reinterpret_cast<EventHandle>(event.get());
  state->events.emplace(*handle, std::move(event));
  return kSuccess;
}

Answer synEventDestroy(EventHandle handle) {
  STRAIT_SYN_USE(state);
  return state->events.erase(handle) == 0 ? kInvalidEventHandle : kSuccess;
}

Answer synEventRecord(EventHandle handle, StreamHandle stream) {
  STRAIT_SYN_USE(state);
  const auto event = state->events.find(handle);
  const auto from = state->streams.find(stream);
  if (event == state->events.end()) return kInvalidEventHandle;
  if (from == state->streams.end()) return kInvalidArgument;
  event->second->last = from->second->last;
  event->second->recorded_ns = sys::now_ns();
  return kSuccess;
}

Answer synEventQuery(EventHandle handle) {
  STRAIT_SYN_USE(state);
  const auto event = state->events.find(handle);
  if (event == state->events.end()) return kInvalidEventHandle;
  if (state->driver->status(event->second->device) != 0) return kDeviceReset;
  return state->is_over(event->second->last) ? kSuccess : kBusy;
}

Answer synEventSynchronize(EventHandle handle) {
  std::uint64_t last = 0;
  DeviceId device = 0;
  {
    STRAIT_SYN_USE(state);
    const auto event = state->events.find(handle);
    if (event == state->events.end()) return kInvalidEventHandle;
    last = event->second->last;
    device = event->second->device;
  }
  return wait_ticket(last, device);
}

Answer synEventElapsedTime(std::uint64_t* ns, EventHandle start, EventHandle end) {
  STRAIT_SYN_USE(state);
  const auto first = state->events.find(start);
  const auto second = state->events.find(end);
  if (first == state->events.end() || second == state->events.end()) return kInvalidEventHandle;
  if (ns == nullptr || first->second->recorded_ns < 0 || second->second->recorded_ns < first->second->recorded_ns)
    return kInvalidArgument;
  *ns = static_cast<std::uint64_t>(second->second->recorded_ns - first->second->recorded_ns);
  return kSuccess;
}

// The size comes before the target.
Answer synMemCopyAsync(StreamHandle handle, std::uint64_t from, std::uint64_t size, std::uint64_t to,
                       std::int32_t direction) {
  STRAIT_SYN_USE(state);
  const auto stream = state->streams.find(handle);
  return stream == state->streams.end() ? kInvalidArgument : state->copy(*stream->second, from, size, to, direction);
}

Answer synMemCopyAsyncMultiple(StreamHandle handle, const std::uint64_t* from, const std::uint64_t* size,
                               const std::uint64_t* to, std::int32_t direction, std::uint64_t n) {
  if (from == nullptr || size == nullptr || to == nullptr) return kInvalidArgument;
  for (std::uint64_t i = 0; i < n; ++i) {
    if (const Answer answer = synMemCopyAsync(handle, from[i], size[i], to[i], direction); answer != kSuccess)
      return answer;
  }
  return kSuccess;
}

Answer synMemsetD8Async(std::uint64_t address, unsigned char value, std::size_t count, StreamHandle stream) {
  return fill_memory(address, value, count, stream);
}
Answer synMemsetD16Async(std::uint64_t address, std::uint16_t value, std::size_t count, StreamHandle stream) {
  return fill_memory(address, value, count, stream);
}
Answer synMemsetD32Async(std::uint64_t address, std::uint32_t value, std::size_t count, StreamHandle stream) {
  return fill_memory(address, value, count, stream);
}

Answer synStatusGetBriefDescription(Answer status, char* text, std::size_t room) {
  const std::string what = status == kSuccess             ? "Success"
                           : status == kInvalidArgument   ? "Invalid argument"
                           : status == kOutOfDeviceMemory ? "Out of device memory"
                           : status == kNoDeviceFound     ? "No device found"
                           : status == kDeviceReset       ? "Device reset"
                           : status == kUnsupported       ? "Unsupported"
                           : status == kBusy              ? "Busy"
                           : status == kMappingNotFound   ? "Host memory is not mapped"
                           : status == kUninitialized     ? "Not initialized"
                           : status >= 0 && status <= 47  ? "Failure " + std::to_string(status)
                                                          : "";
  if (what.empty()) return kInvalidArgument;
  return put_text(text, static_cast<int>(std::min<std::size_t>(room, INT32_MAX)), what);
}

}  // namespace strait::soft::gaudi::syn
