// SPDX-License-Identifier: Apache-2.0
// Driver: what cuInit makes, once per process: devices, contexts, streams, events, pools and handles.
//
// Handles that programs hold are addresses of objects here. They are looked up before they are followed, and objects
// are kept when they are destroyed, so that an old handle is an error and never a crash. A forked child has no driver:
// every call there answers "not initialized", as the real one does.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "soft/accel/stream_engine.hpp"
#include "soft/cuda/memory.hpp"
#include "soft/cuda/types.h"
#include "sys/fork.hpp"

namespace strait::soft::cuda {

using accel::Step;
using accel::StreamEngine;

inline constexpr int kDriverVersion = 13000;

struct Context {
  int device = 0;
  unsigned flags = 0;
  bool primary = false;
  bool alive = true;
  unsigned retained = 0;  // of a primary one
  unsigned api_version = 0;
  std::uint64_t id = 0;
  std::set<const Context*> peers;
  std::shared_ptr<StreamEngine::Queue> legacy;  // the default stream
};

struct Stream {
  Context* context = nullptr;
  unsigned flags = 0;
  int priority = 0;
  std::uint64_t id = 0;
  std::shared_ptr<StreamEngine::Queue> queue;
};

struct Event {
  Context* context = nullptr;
  unsigned flags = 0;
  std::shared_ptr<Step> recorded;  // null: never
};

struct Pool {
  int device = 0;
  std::uint64_t id = 0;
  CUmemPoolProps props{};
  bool is_default = false;
  bool imported = false;
  std::atomic<bool> shared{false};  // has been exported: before, its pointers cannot be
  std::uint64_t exporter = 0;       // of an imported one: the process
  std::uint64_t release_threshold = 0;
  std::uint64_t used_bytes = 0;
  std::uint64_t used_high = 0;
  std::uint64_t reuse[3] = {1, 1, 1};
  std::set<int> peers;  // devices that cuMemPoolSetAccess let in
};

struct Device {
  std::string name;
  std::uint32_t index = 0;  // in the machine; CUDA_VISIBLE_DEVICES may have renumbered it
  std::shared_ptr<accel::Bank> bank;
  Context* primary = nullptr;
  Pool* default_pool = nullptr;
  Pool* pool = nullptr;  // the current one
};

// Objects whose addresses programs hold. What was removed is kept: for good where others point to it, and for a while
// otherwise, so that an old handle is not at once somebody else's.
template <class T, bool kForGood>
class Handles {
 public:
  T* add() {
    auto made = std::make_unique<T>();
    T* const object = made.get();
    live_.emplace(object, std::move(made));
    return object;
  }
  template <class Handle>
  [[nodiscard]] T* find(Handle handle) const {
    T* const object = reinterpret_cast<T*>(handle);
    return live_.contains(object) ? object : nullptr;
  }
  void remove(T* object) {
    const auto found = live_.find(object);
    if (found != live_.end()) (void)retire(found);
  }
  template <class Which>
  void remove_if(Which which) {
    for (auto each = live_.begin(); each != live_.end();) each = which(each->first) ? retire(each) : std::next(each);
  }

 private:
  using Live = std::map<T*, std::unique_ptr<T>>;
  typename Live::iterator retire(typename Live::iterator which) {
    constexpr std::size_t kMostGone = 256;
    gone_.push_back(std::move(which->second));
    if (!kForGood && gone_.size() > kMostGone) gone_.pop_front();
    return live_.erase(which);
  }

  Live live_;
  std::deque<std::unique_ptr<T>> gone_;
};

class Driver {
 public:
  // The one of this process; never destroyed.
  [[nodiscard]] static Driver& get();

  [[nodiscard]] CUresult init();
  // CUDA_SUCCESS: initialized, and this is the process that did it.
  [[nodiscard]] CUresult check() const;

  [[nodiscard]] bool valid_device(int device) const {
    return device >= 0 && static_cast<std::size_t>(device) < devices_.size();
  }
  [[nodiscard]] std::vector<Device>& devices() { return devices_; }
  [[nodiscard]] Device& device(int index) { return devices_[static_cast<std::size_t>(index)]; }
  [[nodiscard]] Memory& memory() { return *memory_; }
  [[nodiscard]] StreamEngine& engine() { return *engine_; }

  // The calling thread's stack of contexts.
  [[nodiscard]] static std::vector<Context*>& stack();
  [[nodiscard]] CUresult current(Context*& out);

  // All of the following: under lock().
  [[nodiscard]] std::mutex& lock() { return mutex_; }
  [[nodiscard]] Handles<Context, true>& contexts() { return contexts_; }
  [[nodiscard]] Handles<Stream, false>& streams() { return streams_; }
  [[nodiscard]] Handles<Event, false>& events() { return events_; }
  [[nodiscard]] Handles<Pool, true>& pools() { return pools_; }
  [[nodiscard]] std::map<CUmemGenericAllocationHandle, std::pair<std::shared_ptr<Physical>, unsigned>>& physicals() {
    return physicals_;
  }
  void start_context(Context& context, int device, unsigned flags, unsigned api_version);
  [[nodiscard]] std::uint64_t next_number() { return ++last_number_; }

  // Not under lock(). Waits for the context's work, frees what is its own, and forgets it.
  void end_context(Context& context);

  // Where work for a stream handle goes; also for the default streams (null, 1, 2).
  [[nodiscard]] CUresult queue_of(CUstream stream, Context& current, std::shared_ptr<StreamEngine::Queue>& out,
                                  Context** context = nullptr);
  // The calling thread's own default stream.
  [[nodiscard]] std::shared_ptr<StreamEngine::Queue> thread_queue(Context& context);

  void count_unsupported(const char* name);
  // Writes the report of this process for `strait run`: what was not supported, what is left.
  void report();

 private:
  Driver() = default;
  [[nodiscard]] CUresult open_devices();

  std::mutex init_mutex_;
  std::atomic<int> state_{-1};  // -1: not asked yet; else the answer of cuInit
  const sys::ForkMark* mark_ = nullptr;
  std::vector<Device> devices_;
  std::unique_ptr<Memory> memory_;
  std::unique_ptr<StreamEngine> engine_;

  std::mutex mutex_;
  Handles<Context, true> contexts_;
  Handles<Stream, false> streams_;
  Handles<Event, false> events_;
  Handles<Pool, true> pools_;
  std::map<CUmemGenericAllocationHandle, std::pair<std::shared_ptr<Physical>, unsigned>> physicals_;
  std::uint64_t last_number_ = 0;

  std::mutex report_mutex_;
  std::map<std::string, std::uint64_t> unsupported_;
};

}  // namespace strait::soft::cuda
