// SPDX-License-Identifier: Apache-2.0
// libhl-thunk of today: what 2021 did not have, or had in another shape.
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "soft/gaudi/hlthunk_shared.hpp"

namespace strait::soft::gaudi::hl {

#define HL_DECLARE_CURRENT(returns, name, arguments) STRAIT_HL_API returns name arguments;
HL_CURRENT(HL_DECLARE_CURRENT)
STRAIT_HL_API char* hlthunk_get_version();

char* hlthunk_get_version() {
  // The caller frees it, as there.
  constexpr char kVersion[] = "strait software hl-thunk";
  char* text = static_cast<char*>(std::malloc(sizeof kVersion));
  if (text != nullptr) std::memcpy(text, kVersion, sizeof kVersion);
  return text;
}

// A physical address of a first-generation device; its first page is the start of its memory.
int export_first_generation(Driver& driver, int fd, std::uint64_t, std::uint64_t, std::uint32_t) {
  return driver.node_of(fd) ? -EINVAL : -EBADF;
}

void* hlthunk_malloc(std::size_t size) {
  return std::malloc(size);
}

int hlthunk_get_hw_ip_info(int fd, HwIpInfo* info) {
  Driver* driver = Driver::get();
  const auto node = driver == nullptr ? std::nullopt : driver->node_of(fd);
  if (!node || info == nullptr) return answer(node ? -EINVAL : -EBADF);
  fill_hw_ip(*driver, node->slot, *info);
  info->device_mem_alloc_default_page_size = kDramPageBytes;
  info->nic_ports_mask = (std::uint64_t{1} << 24) - 1;
  info->nic_ports_external_mask = 0x7;
  info->reserved_dram_size = 0;
  return 0;
}

std::uint64_t hlthunk_device_memory_alloc(int fd, std::uint64_t size, std::uint64_t page_size, bool, bool) {
  Driver* driver = Driver::get();
  if (driver == nullptr || (page_size != 0 && page_size != kDramPageBytes)) return 0;
  return driver->allocate(fd, size);
}

int hlthunk_open_control_by_name(int device_name, const char* busid) {
  Driver* driver = Driver::get();
  if (driver == nullptr || !name_fits(device_name)) return answer(-ENODEV);
  const int slot = busid == nullptr ? 0 : slot_named(busid);
  return answer(slot < 0 ? slot : driver->open_control(static_cast<std::uint32_t>(slot)));
}

int hlthunk_open_control_by_module_id(std::uint32_t module_id) {
  Driver* driver = Driver::get();
  return answer(driver == nullptr ? -ENODEV : driver->open_control(module_id));
}

int hlthunk_open_control_by_bus_id(const char* busid) {
  Driver* driver = Driver::get();
  const int slot = slot_named(busid);
  return answer(driver == nullptr || slot < 0 ? -ENODEV : driver->open_control(static_cast<std::uint32_t>(slot)));
}

int hlthunk_get_device_index_from_module_id(std::uint32_t module_id) {
  Driver* driver = Driver::get();
  return answer(driver != nullptr && module_id < driver->devices() ? static_cast<int>(module_id) : -ENODEV);
}

int hlthunk_get_device_count(int device_name) {
  Driver* driver = Driver::get();
  return driver != nullptr && name_fits(device_name) ? static_cast<int>(driver->devices()) : 0;
}

int hlthunk_get_open_stats(int fd, OpenStats* stats) {
  Driver* driver = Driver::get();
  const auto node = driver == nullptr ? std::nullopt : driver->node_of(fd);
  if (!node || stats == nullptr) return answer(node ? -EINVAL : -EBADF);
  *stats = {};
  stats->open_counter = driver->counts().opens.load();
  stats->is_compute_ctx_active = driver->is_busy(node->slot) ? 1 : 0;
  return 0;
}

int hlthunk_get_device_status_info_telemetry(int fd, bool) {
  Driver* driver = Driver::get();
  const auto node = driver == nullptr ? std::nullopt : driver->node_of(fd);
  return answer(node ? driver->status(node->slot) : -EBADF);
}

int hlthunk_get_dev_memalloc_page_orders(int fd, std::uint64_t* orders) {
  Driver* driver = Driver::get();
  if (driver == nullptr || !driver->node_of(fd)) return answer(-EBADF);
  if (orders == nullptr) return answer(-EINVAL);
  *orders = kDramPageBytes;  // bit n: pages of 2^n bytes
  return 0;
}

std::uint64_t hlthunk_host_memory_map_flags(int fd, void* pointer, std::uint64_t, std::uint64_t size, std::uint32_t) {
  Driver* driver = Driver::get();
  return driver == nullptr ? 0 : driver->map_host(fd, pointer, size);
}

int hlthunk_device_mapped_memory_export_dmabuf_fd(int fd, std::uint64_t address, std::uint64_t size,
                                                  std::uint64_t offset, std::uint32_t flags) {
  Driver* driver = Driver::get();
  return answer(driver == nullptr ? -EPERM : driver->export_mapped(fd, address, size, offset, flags));
}

int hlthunk_cs_flush_pci_hbw_writes(int fd) {
  Driver* driver = Driver::get();
  const auto node = driver == nullptr ? std::nullopt : driver->node_of(fd);
  return answer(node && !node->control ? 0 : -EBADF);
}

int hlthunk_notifier_create(int fd) {
  Driver* driver = Driver::get();
  return answer(driver == nullptr ? -EPERM : driver->make_notifier(fd));
}

int hlthunk_notifier_release(int fd, int handle) {
  Driver* driver = Driver::get();
  return answer(driver == nullptr ? -EPERM : driver->drop_notifier(fd, handle));
}

int hlthunk_notifier_recv(int fd, int handle, std::uint64_t* events, std::uint64_t* count, std::uint32_t,
                          std::uint32_t timeout_ms) {
  Driver* driver = Driver::get();
  if (driver == nullptr || events == nullptr || count == nullptr) return answer(driver == nullptr ? -EPERM : -EINVAL);
  return answer(driver->wait_notifier(fd, handle, *events, *count, timeout_ms));
}

}  // namespace strait::soft::gaudi::hl
