// SPDX-License-Identifier: Apache-2.0
// What libSynapse.so keeps of one process: acquired devices, host memory they may reach, streams and events.
//
// All copies go through one engine in the order they were asked for; a stream or an event is the ticket of its last
// copy. A device number here is the module number of the device.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "soft/accel/copy_engine.hpp"
#include "soft/gaudi/driver.hpp"
#include "soft/gaudi/synapse.hpp"
#include "sys/fd.hpp"
#include "sys/mapping.hpp"

namespace strait::soft::gaudi::syn {

struct Acquired {
  int fd = -1;
  sys::Fd pool;                                        // the dma-buf of its whole pool, once somebody asked for it
  std::map<std::uint64_t, std::uint64_t> host;         // what it may reach: base and length
  std::map<std::uint64_t, sys::Mapping> host_buffers;  // of synHostMalloc
};

struct Stream {
  DeviceId device = 0;
  std::uint64_t last = 0;
};

struct Event {
  DeviceId device = 0;
  std::uint64_t last = 0;
  std::int64_t recorded_ns = -1;  // -1: never
};

class State {
 public:
  // Null: not initialized, or a forked child. The lock is held while the answer lives.
  struct Use {
    std::unique_lock<std::mutex> lock;
    State* state = nullptr;
    explicit operator bool() const { return state != nullptr; }
    State* operator->() const { return state; }
  };
  [[nodiscard]] static Use use();
  [[nodiscard]] static Answer initialize();
  [[nodiscard]] static Answer destroy();

  [[nodiscard]] Answer acquire(std::uint32_t slot, DeviceId& out);
  [[nodiscard]] Answer release(DeviceId device);
  // The dma-buf of the first device's pool, made once and closed with the device. -1: there is none.
  [[nodiscard]] int pool_dmabuf();
  [[nodiscard]] Acquired* find(DeviceId device);  // UINT32_MAX: the first
  [[nodiscard]] Answer copy(Stream& stream, std::uint64_t from, std::uint64_t length_bytes, std::uint64_t to,
                            std::int32_t direction);
  [[nodiscard]] bool is_over(std::uint64_t ticket);
  void finish(std::uint64_t ticket);
  void finish_all() { finish(newest_); }

  Driver* driver = nullptr;
  std::map<DeviceId, Acquired> devices;
  std::map<StreamHandle, std::unique_ptr<Stream>> streams;
  std::map<EventHandle, std::unique_ptr<Event>> events;

 private:
  // Where one side of a copy is. False: not memory that this device may reach.
  [[nodiscard]] bool host_side(DeviceId device, std::uint64_t address, std::uint64_t length_bytes) const;
  // Far ends of transfers that are under way, by ticket. Before the engine, which uses them to its end.
  std::map<std::uint64_t, FarBytes> far_;
  accel::CopyEngine engine_;
  std::uint64_t newest_ = 0;
};

}  // namespace strait::soft::gaudi::syn
