// SPDX-License-Identifier: Apache-2.0
#include "buffer/cuda/gpu.hpp"

#include <cstring>

#include "base/plugin_answer.hpp"
#include "buffer/pci.hpp"
#include "sys/fd.hpp"
#include "sys/files.hpp"
#include "sys/mapping.hpp"
#include "sys/pci.hpp"

namespace strait::buffer::cuda {
namespace {

constexpr std::uint64_t kScratchBytes = 65536;
constexpr std::uint64_t kProbeWord = 0x7374'7261'6974'2032;

// "580.159.04": the kernel module's own version, where it tells.
std::string kernel_module_version() {
  std::string text = sys::read_small_file("/sys/module/nvidia/version");
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

}  // namespace

Pushed::Pushed(const Driver& driver, Context context) : driver_(driver) {
  Context current = nullptr;
  if (driver_.current(&current) == kOk && current == context) return;
  result_ = driver_.push(context);
  pushed_ = result_ == kOk;
}

Pushed::~Pushed() {
  Context popped = nullptr;
  if (pushed_) (void)driver_.pop(&popped);
}

Result<std::unique_ptr<Gpu>> Gpu::open(const Driver& driver, int ordinal) {
  std::unique_ptr<Gpu> gpu(new Gpu(driver, ordinal));
  if (const CuResult result = driver.device_get(&gpu->device_, ordinal); result != kOk)
    return driver.failed(result, fmt::format("open CUDA device {}", ordinal));
  gpu->name_ = fmt::format("cuda:{}", ordinal);
  char text[96] = {};
  if (driver.device_name != nullptr && driver.device_name(text, sizeof text - 1, gpu->device_) == kOk)
    gpu->product_ = text;
  char bus[64] = {};
  if (driver.device_pci(bus, sizeof bus - 1, gpu->device_) == kOk) gpu->pci_ = sys::pci_address(bus).value_or("");
  std::size_t bytes = 0;
  if (driver.device_memory != nullptr && driver.device_memory(&bytes, gpu->device_) == kOk) gpu->memory_bytes_ = bytes;
  gpu->exports_ = driver.range_handle != nullptr && gpu->attribute(kDevDmaBuf) != 0;
  // A context that is active is used from the start; without one there is nothing to attach to yet, and no error.
  unsigned flags = 0;
  int active = 0;
  if (driver.primary_state(gpu->device_, &flags, &active) == kOk && active != 0) STRAIT_CHECK(gpu->attach(false));
  return gpu;
}

Gpu::~Gpu() {
  const Context context = context_.load();
  if (context == nullptr) return;
  {
    const Pushed pushed(driver_, context);
    if (pushed.result() == kOk && !was_reset()) drop_streams();
  }
  (void)driver_.primary_release(device_);
}

int Gpu::attribute(int name, int otherwise) const {
  int value = otherwise;
  return driver_.device_attribute(&value, name, device_) == kOk ? value : otherwise;
}

bool Gpu::was_reset() const {
  const Context context = this->context();
  unsigned flags = 0;
  int active = 0;
  if (driver_.primary_state(device_, &flags, &active) != kOk || active == 0) return true;
  unsigned long long id = 0;
  return driver_.context_id != nullptr && (driver_.context_id(context, &id) != kOk || id != context_id_.load());
}

Status Gpu::attach(bool create) {
  if (context() != nullptr && was_reset()) detach_lost();
  if (context() != nullptr) return {};
  const std::lock_guard lock(mutex_);
  if (context() != nullptr) return {};
  unsigned flags = 0;
  int active = 0;
  if (const CuResult result = driver_.primary_state(device_, &flags, &active); result != kOk)
    return driver_.failed(result, "ask for the context of " + name_);
  if (active == 0 && !create) {
    return with_remedy(fail(Code::unsupported, "{} has no active context, and strait creates none on its own", name_),
                       "Use the device first: cudaFree(0), or allocate there with strait.");
  }
  Context context = nullptr;
  if (const CuResult result = driver_.primary_retain(&context, device_); result != kOk)
    return driver_.failed(result, "retain the context of " + name_);
  const Status ready = [&]() -> Status {
    const Pushed pushed(driver_, context);
    if (pushed.result() != kOk) return driver_.failed(pushed.result(), "make the context of " + name_ + " current");
    // Before any peer may read: a synchronous copy must not return while its bytes are still on the way. Set here, at
    // the first touch, because setting it while a pointer is looked at can deadlock against the driver's own locks.
    unsigned now = 0;
    if (driver_.set_context_flags != nullptr && driver_.context_flags != nullptr &&
        driver_.context_flags(&now) == kOk) {
      sync_by_context_ = (now & kContextSyncMemops) != 0 || driver_.set_context_flags(now | kContextSyncMemops) == kOk;
    }
    const Status made = make_streams();
    if (!made) drop_streams();
    return made;
  }();
  if (!ready) {
    (void)driver_.primary_release(device_);
    return ready;
  }
  unsigned long long id = 0;
  if (driver_.context_id != nullptr) (void)driver_.context_id(context, &id);
  context_id_.store(id);
  context_.store(context, std::memory_order_release);
  return {};
}

Status Gpu::make_streams() {
  for (Stream& stream : streams_) {
    if (const CuResult result = driver_.stream_create(&stream, kStreamNonBlocking); result != kOk)
      return driver_.failed(result, "make a stream on " + name_);
  }
  return warm();
}

// The first copy of a stream sets up channels and takes milliseconds: done here, on bytes of our own.
Status Gpu::warm() {
  Pointer scratch = 0;
  if (const CuResult result = driver_.alloc(&scratch, kScratchBytes); result != kOk)
    return driver_.failed(result, "allocate 64 KiB on " + name_);
  std::uint64_t word = kProbeWord;
  CuResult result = driver_.copy_in(scratch, &word, sizeof word, streams_[0]);
  if (result == kOk) result = driver_.copy_out(&word, scratch, sizeof word, streams_[1]);
  if (result == kOk) result = driver_.copy_inside(scratch + 4096, scratch, 4096, streams_[2]);
  for (Stream stream : streams_) {
    if (const CuResult waited = driver_.stream_wait(stream); result == kOk) result = waited;
  }
  if (result == kOk) try_mapping(scratch, kScratchBytes);
  (void)driver_.free(scratch);
  if (result != kOk) return driver_.failed(result, "copy 8 bytes to " + name_ + " and back");
  return {};
}

// Whether the CPU may map a dma-buf of this driver is known by trying: driver 580 refuses with 524, 13.3 allows it.
void Gpu::try_mapping(Pointer scratch, std::uint64_t length_bytes) {
  if (!exports_) {
    no_map_because_ = "its memory cannot be exported as dma-buf";
    return;
  }
  int raw = -1;
  if (const CuResult result = driver_.range_handle(&raw, scratch, length_bytes, kRangeDmaBuf, 0); result != kOk) {
    no_map_because_ = driver_.failed(result, "export 64 KiB").text;
    return;
  }
  const sys::Fd fd(raw);
  const auto mapped = sys::map_file(fd.get(), 0, length_bytes, sys::Protect::read_write);
  if (!mapped) {
    no_map_because_ = mapped.error().text;
    return;
  }
  std::uint64_t seen = 0;
  std::memcpy(&seen, mapped->data(), sizeof seen);
  maps_dmabuf_.store(seen == kProbeWord, std::memory_order_relaxed);
  no_map_because_ = seen == kProbeWord ? "" : "a mapped dma-buf shows other bytes than the device has";
}

std::string Gpu::no_map_because() const {
  const std::lock_guard lock(mutex_);
  return no_map_because_;
}

void Gpu::drop_streams() {
  for (Stream& stream : streams_) {
    if (stream == nullptr) continue;
    (void)driver_.stream_wait(stream);
    (void)driver_.stream_destroy(stream);
    stream = nullptr;
  }
  for (Event event : events_) (void)driver_.event_destroy(event);
  events_.clear();
}

void Gpu::detach_lost() {
  const std::lock_guard lock(mutex_);
  if (context_.exchange(nullptr) == nullptr) return;
  streams_ = {};
  events_.clear();
}

Result<Event> Gpu::take_event() {
  {
    const std::lock_guard lock(mutex_);
    if (!events_.empty()) {
      const Event event = events_.back();
      events_.pop_back();
      return event;
    }
  }
  Event event = nullptr;
  if (const CuResult result = driver_.event_create(&event, kEventNoTiming); result != kOk)
    return driver_.failed(result, "make an event on " + name_);
  return event;
}

void Gpu::give_event(Event event) {
  const std::lock_guard lock(mutex_);
  events_.push_back(event);
}

void Gpu::info(strait_device_info& out) const {
  plugin::put_text(name_, out.name, sizeof out.name);
  plugin::put_text(product_.empty() ? "CUDA device" : product_, out.description, sizeof out.description);
  out.memory_bytes = memory_bytes_;
  out.capabilities = STRAIT_CAN_ALLOCATE | STRAIT_CAN_COPY | STRAIT_CAN_IDENTIFY | STRAIT_CAN_ADVISE;
  if (exports_) out.capabilities |= STRAIT_CAN_EXPORT_DMABUF;
  if (driver_.ipc_get != nullptr && driver_.ipc_open != nullptr) out.capabilities |= STRAIT_CAN_IPC;
  if (attribute(kDevRdmaSupported) != 0) out.capabilities |= STRAIT_CAN_PEER_MEMORY;
  fill_pci(pci_, out);
  if (out.numa_known == 0) {
    out.numa_node = attribute(kDevHostNuma, -1);
    out.numa_known = out.numa_node >= 0 ? 1 : 0;
  }
  const std::string module = kernel_module_version();
  plugin::put_text(driver_.version_text() + (module.empty() ? "" : ", driver " + module), out.driver,
                   sizeof out.driver);
  if (const Context context = this->context(); context != nullptr && driver_.memory_info != nullptr) {
    const Pushed pushed(driver_, context);
    std::size_t free_bytes = 0;
    std::size_t total = 0;
    if (pushed.result() == kOk && driver_.memory_info(&free_bytes, &total) == kOk) out.free_bytes = free_bytes;
  }
}

void Gpu::flush_rule(strait_flush_need& out) const {
  const int ordering = attribute(kDevWritesOrdering);
  const int options = attribute(kDevFlushOptions);
  const bool two_paths = attribute(kDevHostPageTables) != 0;
  std::string text;
  if (two_paths && ordering > kFlushToOwner) {
    out.need = STRAIT_FLUSH_BY_READ;
    text = "two paths (PCIe and C2C) that are not ordered with each other: read back through the NIC that wrote";
  } else if (ordering >= kFlushToOwner) {
    out.need = STRAIT_FLUSH_NOT_NEEDED;
    text = fmt::format("the owning GPU sees peers' writes in order (attribute 118 is {})", ordering);
  } else if ((options & 1) != 0 && driver_.flush_writes != nullptr) {
    out.need = STRAIT_FLUSH_BY_CALL;
    text = "cuFlushGPUDirectRDMAWrites, scope owner";
  } else {
    out.need = STRAIT_FLUSH_BY_READ;
    text = "no ordering and no flush call on this part: read back through the NIC that wrote";
  }
  plugin::put_text(text, out.text, sizeof out.text);
}

}  // namespace strait::buffer::cuda
