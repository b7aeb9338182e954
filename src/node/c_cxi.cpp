// SPDX-License-Identifier: Apache-2.0
// C ABI: CXI devices by themselves, without a Node.
#include <cstring>

#include "base/options.hpp"
#include "node/answer.hpp"
#include "node/cxi_device.hpp"

using namespace strait;
using namespace strait::node;

std::int32_t strait_cxi_open(const char* name, strait_cxi_device** out, strait_error* error) {
  if (out == nullptr) return answer_null(error, "out");
  return guarded(error, [&]() -> Status {
    STRAIT_TRY(const Options options, Options::read({}));
    rail::cxi::DeviceChoice choice{name == nullptr ? "" : name, options.text("soft_library")};
    auto handle = std::make_unique<strait_cxi_device>();
    STRAIT_TRY(handle->device, rail::cxi::Device::open(choice));
    *out = handle.release();
    return {};
  });
}

void strait_cxi_close(strait_cxi_device* device) {
  if (device == nullptr) return;
  device->pages.clear();
  delete device;
}

std::int32_t strait_cxi_about_device(strait_cxi_device* device, strait_cxi_about* out, strait_error* error) {
  if (device == nullptr || out == nullptr) return answer_null(error, device == nullptr ? "device" : "out");
  return guarded(error, [&]() -> Status {
    if (out->struct_size < sizeof(strait_cxi_about))
      return fail(Code::invalid, "strait_cxi_about.struct_size is {}, not {}", out->struct_size,
                  sizeof(strait_cxi_about));
    const auto& info = device->device->info();
    out->flags = 0;
    if (device->device->software()) out->flags |= STRAIT_CXI_IS_SOFTWARE;
    if ((device->device->flags() & STRAIT_CXI_MEMORY_DOORBELLS) != 0) out->flags |= STRAIT_CXI_ADDS_TO_DOORBELLS;
    out->nid = info.nid;
    out->pid_bits = info.pid_bits;
    out->pid_granule = info.pid_granule;
    out->platform = static_cast<std::uint32_t>(info.device_platform);
    const std::string& name = device->device->name();
    const std::size_t n = std::min(name.size(), sizeof out->name - 1);
    std::memcpy(out->name, name.data(), n);
    out->name[n] = '\0';
    return {};
  });
}

std::int32_t strait_cxi_command(strait_cxi_device* device, const void* command, std::size_t length,
                                strait_error* error) {
  if (device == nullptr || command == nullptr) return answer_null(error, device == nullptr ? "device" : "command");
  return guarded(error, [&]() -> Status {
    const int why = device->device->submit({static_cast<const std::byte*>(command), length});
    if (why == 0) return {};
    auto op = wire::cxi::Op::invalid;
    if (length >= sizeof op) std::memcpy(&op, command, sizeof op);
    return device->device->failed(op, why);
  });
}

std::int32_t strait_cxi_map(strait_cxi_device* device, std::uint64_t offset, std::uint64_t length, void** address,
                            strait_error* error) {
  if (device == nullptr || address == nullptr) return answer_null(error, device == nullptr ? "device" : "address");
  return guarded(error, [&]() -> Status {
    STRAIT_TRY(rail::cxi::Pages pages, device->device->map({offset, length}));
    const std::lock_guard lock(device->mutex);
    void* const base = pages.data();
    device->pages.insert_or_assign(base, std::move(pages));
    *address = base;
    return {};
  });
}

void strait_cxi_unmap(strait_cxi_device* device, void* address, std::uint64_t) {
  if (device == nullptr) return;
  const std::lock_guard lock(device->mutex);
  device->pages.erase(address);
}

std::int32_t strait_cxi_wait_fd(strait_cxi_device* device, std::uint32_t client, std::uint32_t wait, std::int32_t* fd,
                                strait_error* error) {
  if (device == nullptr || fd == nullptr) return answer_null(error, device == nullptr ? "device" : "fd");
  return guarded(error, [&]() -> Status {
    STRAIT_TRY(sys::Fd notifier, device->device->notifier({client, wait}));
    *fd = notifier.release();
    return {};
  });
}

std::int32_t strait_cxi_share(strait_cxi_device* device, const void* address, std::uint64_t length, std::int32_t fd,
                              std::uint64_t offset, strait_error* error) {
  if (device == nullptr) return answer_null(error, "device");
  return guarded(error, [&]() -> Status {
    return device->device->share(reinterpret_cast<std::uintptr_t>(address), length, fd, offset);
  });
}

void strait_cxi_unshare(strait_cxi_device* device, const void* address) {
  if (device != nullptr) device->device->unshare(reinterpret_cast<std::uintptr_t>(address));
}
