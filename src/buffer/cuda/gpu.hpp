// SPDX-License-Identifier: Apache-2.0
// Gpu: one CUDA device, its primary context while strait uses it, and the streams copies run on.
//
// No context is created as a side effect: a device is attached when its primary context is active already, or when the
// caller asks for memory there. What was pushed is popped before any call returns.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "buffer/cuda/driver.hpp"
#include "strait/plugin.h"

namespace strait::buffer::cuda {

// Makes a context current for a scope.
class Pushed {
 public:
  Pushed(const Driver& driver, Context context);
  Pushed(const Pushed&) = delete;
  Pushed& operator=(const Pushed&) = delete;
  ~Pushed();
  [[nodiscard]] CuResult result() const { return result_; }

 private:
  const Driver& driver_;
  CuResult result_ = kOk;
  bool pushed_ = false;
};

enum class Direction { in, out, inside };

class Gpu {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Gpu>> open(const Driver& driver, int ordinal);
  // Waits for its streams, gives back what was retained.
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  // Attaches to the primary context when it is active; `create`: also when it is not. Code::unsupported says how to
  // make it active.
  [[nodiscard]] Status attach(bool create);
  // The context was destroyed under us (cudaDeviceReset): its streams are gone with it.
  void detach_lost();
  // The handle is still the same then, and a stream or event of before that is used crashes inside the driver.
  [[nodiscard]] bool was_reset() const;
  [[nodiscard]] Context context() const { return context_.load(std::memory_order_acquire); }
  [[nodiscard]] Stream stream(Direction direction) const { return streams_[static_cast<std::size_t>(direction)]; }

  // Events are reused; taken and given back with the context current.
  [[nodiscard]] Result<Event> take_event();
  void give_event(Event event);

  void info(strait_device_info& out) const;
  void flush_rule(strait_flush_need& out) const;
  [[nodiscard]] int attribute(int name, int otherwise = 0) const;
  [[nodiscard]] int ordinal() const { return ordinal_; }
  [[nodiscard]] CuDevice device() const { return device_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] bool exports() const { return exports_; }
  [[nodiscard]] bool maps_dmabuf() const { return maps_dmabuf_.load(std::memory_order_relaxed); }
  // True: allocations of this context are synchronous to peers by its flag; false: each one has to be told.
  [[nodiscard]] bool sync_by_context() const { return sync_by_context_; }
  [[nodiscard]] std::string no_map_because() const;

 private:
  Gpu(const Driver& driver, int ordinal) : driver_(driver), ordinal_(ordinal) {}
  [[nodiscard]] Status make_streams();
  [[nodiscard]] Status warm();
  void try_mapping(Pointer scratch, std::uint64_t length_bytes);
  void drop_streams();

  const Driver& driver_;
  const int ordinal_;
  CuDevice device_ = 0;
  std::string name_;
  std::string product_;
  std::string pci_;
  std::uint64_t memory_bytes_ = 0;
  bool exports_ = false;
  bool sync_by_context_ = false;
  std::atomic<bool> maps_dmabuf_{false};

  mutable std::mutex mutex_;
  std::string no_map_because_ = "no context is active on it";
  std::atomic<Context> context_{nullptr};
  std::atomic<unsigned long long> context_id_{0};  // a handle is used again after a reset, its number is not
  std::array<Stream, 3> streams_{};
  std::vector<Event> events_;
};

}  // namespace strait::buffer::cuda
