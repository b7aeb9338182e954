// SPDX-License-Identifier: Apache-2.0
#include "soft/cuda/driver.hpp"

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "soft/accel/spec.hpp"
#include "soft/cuda/identity.hpp"
#include "soft/host/report.hpp"

namespace strait::soft::cuda {
namespace {

// Which devices of the machine this process sees, in its order. As there, the first entry that names none ends it.
std::vector<std::uint32_t> visible_devices(std::uint32_t count) {
  std::vector<std::uint32_t> visible;
  const char* const text = std::getenv("CUDA_VISIBLE_DEVICES");
  if (text == nullptr) {
    for (std::uint32_t i = 0; i < count; ++i) visible.push_back(i);
    return visible;
  }
  std::string_view left = text;
  while (!left.empty()) {
    const std::string_view item = left.substr(0, left.find(','));
    left.remove_prefix(item.size() == left.size() ? item.size() : item.size() + 1);
    const std::optional<std::uint32_t> index = device_by_name(item, count);
    if (!index) break;
    for (const std::uint32_t other : visible) {
      if (other == *index) return {};  // named twice: the real one then sees none
    }
    visible.push_back(*index);
  }
  return visible;
}

}  // namespace

Driver& Driver::get() {
  static Driver* const driver = new Driver();  // outlives every static destructor that still frees something
  return *driver;
}

CUresult Driver::open_devices() {
  const accel::VendorSpec spec = accel::spec_from_environment(accel::Vendor::cuda);
  std::vector<std::shared_ptr<accel::Bank>> banks;
  for (const std::uint32_t index : visible_devices(spec.devices)) {
    Device device;
    device.index = index;
    device.name = kDeviceName;
    device.bank = accel::Bank::make(memory_name(index), spec.memory_bytes);
    banks.push_back(device.bank);
    devices_.push_back(std::move(device));
  }
  if (devices_.empty()) return CUDA_ERROR_NO_DEVICE;
  memory_ = std::make_unique<Memory>(std::move(banks));
  if (!memory_->open()) {
    devices_.clear();
    return CUDA_ERROR_OPERATING_SYSTEM;
  }
  engine_ = std::make_unique<StreamEngine>();
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    Context* const primary = contexts_.add();
    primary->primary = true;
    primary->alive = false;
    primary->device = static_cast<int>(i);
    Pool* const pool = pools_.add();
    pool->device = static_cast<int>(i);
    pool->id = next_number();
    pool->is_default = true;
    pool->props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    pool->props.location = {CU_MEM_LOCATION_TYPE_DEVICE, static_cast<int>(i)};
    devices_[i].primary = primary;
    devices_[i].default_pool = devices_[i].pool = pool;
  }
  return CUDA_SUCCESS;
}

CUresult Driver::init() {
  if (const int known = state_.load(std::memory_order_acquire); known >= 0) {
    if (mark_ != nullptr && mark_->in_child()) return CUDA_ERROR_NOT_INITIALIZED;
    return static_cast<CUresult>(known);
  }
  const std::lock_guard lock(init_mutex_);
  if (state_.load(std::memory_order_relaxed) < 0) {
    mark_ = new sys::ForkMark();
    const CUresult answer = open_devices();
    if (answer == CUDA_SUCCESS) (void)std::atexit([] { Driver::get().report(); });
    state_.store(static_cast<int>(answer), std::memory_order_release);
  }
  return static_cast<CUresult>(state_.load(std::memory_order_relaxed));
}

CUresult Driver::check() const {
  if (state_.load(std::memory_order_acquire) != CUDA_SUCCESS || mark_->in_child()) return CUDA_ERROR_NOT_INITIALIZED;
  return CUDA_SUCCESS;
}

std::vector<Context*>& Driver::stack() {
  static thread_local std::vector<Context*> contexts;
  return contexts;
}

CUresult Driver::current(Context*& out) {
  const std::vector<Context*>& contexts = stack();
  if (contexts.empty() || contexts.back() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  const std::lock_guard lock(mutex_);
  if (!contexts.back()->alive) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  out = contexts.back();
  return CUDA_SUCCESS;
}

void Driver::start_context(Context& context, int device, unsigned flags, unsigned api_version) {
  context.device = device;
  context.flags = flags;
  context.api_version = api_version;
  context.alive = true;
  context.id = next_number();
  context.peers.clear();
  context.legacy = engine_->make_queue(StreamEngine::Kind::legacy, &context);
}

void Driver::end_context(Context& context) {
  for (const auto& step : engine_->last_of_group(&context)) engine_->wait(*step);
  memory_->free_all_of(context);
  const std::lock_guard lock(mutex_);
  streams_.remove_if([&](const Stream* each) { return each->context == &context; });
  events_.remove_if([&](const Event* each) { return each->context == &context; });
  context.alive = false;
  if (!context.primary) contexts_.remove(&context);
}

std::shared_ptr<StreamEngine::Queue> Driver::thread_queue(Context& context) {
  static thread_local std::map<std::uint64_t, std::shared_ptr<StreamEngine::Queue>> queues;  // by context id
  auto& queue = queues[context.id];
  if (!queue) queue = engine_->make_queue(StreamEngine::Kind::blocking, &context);
  return queue;
}

CUresult Driver::queue_of(CUstream stream, Context& current, std::shared_ptr<StreamEngine::Queue>& out,
                          Context** context) {
  if (context != nullptr) *context = &current;
  const auto number = reinterpret_cast<std::uintptr_t>(stream);
  if (number == 2) {
    out = thread_queue(current);
    return CUDA_SUCCESS;
  }
  const std::lock_guard lock(mutex_);
  if (number <= 1) {
    out = current.legacy;
    return CUDA_SUCCESS;
  }
  const Stream* const found = streams_.find(stream);
  if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  out = found->queue;
  if (context != nullptr) *context = found->context;
  return CUDA_SUCCESS;
}

void Driver::count_unsupported(const char* name) {
  {
    const std::lock_guard lock(report_mutex_);
    ++unsupported_[name];
  }
  report();  // at once: whoever calls what is not there may not come to a proper end
}

void Driver::report() {
  const char* const root = std::getenv("STRAIT_HOST_ROOT");
  if (root == nullptr || (mark_ != nullptr && mark_->in_child())) return;
  const std::lock_guard lock(report_mutex_);
  std::string text;
  for (const auto& [name, count] : unsupported_) text += fmt::format("unsupported.{}={},", name, count);
  if (memory_) {
    const Memory::Left left = memory_->left();
    accel::Bank::Leaks leaks;
    for (const Device& device : devices_) {
      const accel::Bank::Leaks of_device = device.bank->leaks();
      leaks.blocks += of_device.blocks;
      leaks.bytes += of_device.bytes;
    }
    text += fmt::format("accel.unfreed={},accel.unfreed_bytes={},accel.held_by_fds={},accel.held_by_fds_bytes={},",
                        left.allocations, left.bytes, leaks.blocks, leaks.bytes);
  }
  text += "accel.processes=1";
  host::leave_report(root, "cuda", text);
}

}  // namespace strait::soft::cuda
