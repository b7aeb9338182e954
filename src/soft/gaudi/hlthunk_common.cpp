// SPDX-License-Identifier: Apache-2.0
// libhl-thunk, both years: what has the same shape in both. Failures are negative errnos, and errno says the same.
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <unordered_map>

#include "soft/gaudi/driver.hpp"
#include "soft/gaudi/hlthunk_shared.hpp"

namespace strait::soft::gaudi::hl {

int answer(int value) {
  if (value < 0) errno = -value;
  return value;
}

int slot_named(const char* busid) {
  Driver* driver = Driver::get();
  if (driver == nullptr || busid == nullptr) return -EINVAL;
  for (std::uint32_t slot = 0; slot < driver->devices(); ++slot) {
    // "0000:30:00.0", and without the domain too.
    const std::string full = Driver::bus_id(slot);
    if (full == busid || full.substr(5) == busid) return static_cast<int>(slot);
  }
  return -ENODEV;
}

bool name_fits(int device_name) {
  Driver* driver = Driver::get();
  return driver != nullptr &&
         (device_name == kNameDontCare || device_name == (driver->first_generation() ? kNameGaudi : kNameGaudi2));
}

namespace {

using Table = std::unordered_map<unsigned long, void*>;
struct Hash {
  Table table;
  Table::iterator walk;
};

}  // namespace

#define HL_DECLARE(returns, name, arguments) STRAIT_HL_API returns name arguments;
HL_COMMON(HL_DECLARE)

int hlthunk_open(int device_name, const char* busid) {
  Driver* driver = Driver::get();
  if (driver == nullptr || !name_fits(device_name)) return answer(-ENODEV);
  if (busid != nullptr) {
    const int slot = slot_named(busid);
    return answer(slot < 0 ? slot : driver->open_compute(static_cast<std::uint32_t>(slot)));
  }
  int last = -ENODEV;
  for (std::uint32_t slot = 0; slot < driver->devices(); ++slot) {
    last = driver->open_compute(slot);
    if (last >= 0) return last;
  }
  return answer(last);
}

int hlthunk_open_by_module_id(std::uint32_t module_id) {
  Driver* driver = Driver::get();
  return answer(driver == nullptr ? -ENODEV : driver->open_compute(module_id));
}

int hlthunk_open_control(int dev_id, const char* busid) {
  Driver* driver = Driver::get();
  const int slot = busid != nullptr ? slot_named(busid) : dev_id;
  if (driver == nullptr || slot < 0) return answer(-ENODEV);
  return answer(driver->open_control(static_cast<std::uint32_t>(slot)));
}

int hlthunk_close(int fd) {
  Driver* driver = Driver::get();
  return answer(driver == nullptr ? -EPERM : driver->close(fd));
}

std::uint32_t hlthunk_get_device_id_from_fd(int fd) {
  Driver* driver = Driver::get();
  if (driver == nullptr || !driver->node_of(fd)) return 0;
  return driver->first_generation() ? kPciGaudi : kPciGaudi2;
}

int hlthunk_get_device_name_from_fd(int fd) {
  Driver* driver = Driver::get();
  if (driver == nullptr || !driver->node_of(fd)) return kNameInvalid;
  return driver->first_generation() ? kNameGaudi : kNameGaudi2;
}

int hlthunk_get_pci_bus_id_from_fd(int fd, char* text, int room) {
  Driver* driver = Driver::get();
  const auto node = driver == nullptr ? std::nullopt : driver->node_of(fd);
  if (!node) return answer(-EBADF);
  if (text == nullptr || room <= 0) return answer(-EINVAL);
  // As strncpy does it there: no end where there is no room for one.
  std::strncpy(text, Driver::bus_id(node->slot).c_str(), static_cast<std::size_t>(room));
  return 0;
}

int hlthunk_get_device_index_from_pci_bus_id(const char* busid) {
  return answer(slot_named(busid));
}

int hlthunk_get_dram_usage(int fd, DramUsage* usage) {
  Driver* driver = Driver::get();
  if (driver == nullptr || usage == nullptr) return answer(driver == nullptr ? -EPERM : -EINVAL);
  return answer(driver->usage(fd, usage->free_bytes, usage->context_bytes));
}

int hlthunk_get_device_status_info(int fd) {
  Driver* driver = Driver::get();
  const auto node = driver == nullptr ? std::nullopt : driver->node_of(fd);
  return answer(node ? driver->status(node->slot) : -EBADF);
}

bool hlthunk_is_device_idle(int fd) {
  Driver* driver = Driver::get();
  return driver != nullptr && driver->node_of(fd).has_value();
}

int hlthunk_get_reset_count_info(int fd, ResetCount* info) {
  Driver* driver = Driver::get();
  const auto node = driver == nullptr ? std::nullopt : driver->node_of(fd);
  if (!node || info == nullptr) return answer(node ? -EINVAL : -EBADF);
  *info = {static_cast<std::uint32_t>(driver->resets(node->slot)), 0};
  return 0;
}

int hlthunk_device_memory_free(int fd, std::uint64_t handle) {
  Driver* driver = Driver::get();
  return answer(driver == nullptr ? -EPERM : driver->free(fd, handle));
}

std::uint64_t hlthunk_device_memory_map(int fd, std::uint64_t handle, std::uint64_t) {
  Driver* driver = Driver::get();
  return driver == nullptr ? 0 : driver->map(fd, handle);
}

std::uint64_t hlthunk_host_memory_map(int fd, void* pointer, std::uint64_t, std::uint64_t length_bytes) {
  Driver* driver = Driver::get();
  return driver == nullptr ? 0 : driver->map_host(fd, pointer, length_bytes);
}

int hlthunk_memory_unmap(int fd, std::uint64_t address) {
  Driver* driver = Driver::get();
  return answer(driver == nullptr ? -EPERM : driver->unmap(fd, address));
}

// 2021: the second argument is a handle. Today: a physical address of a first-generation device.
int hlthunk_device_memory_export_dmabuf_fd(int fd, std::uint64_t what, std::uint64_t length_bytes,
                                           std::uint32_t flags) {
  Driver* driver = Driver::get();
  if (driver == nullptr) return answer(-EPERM);
  return answer(export_first_generation(*driver, fd, what, length_bytes, flags));
}

void hlthunk_free(void* pointer) {
  std::free(pointer);
}

void* hlthunk_hash_create() {
  return new Hash;
}

int hlthunk_hash_destroy(void* table) {
  delete static_cast<Hash*>(table);
  return table == nullptr ? 1 : 0;
}

// 0 when found, as there.
int hlthunk_hash_lookup(void* table, unsigned long key, void** value) {
  auto* hash = static_cast<Hash*>(table);
  if (hash == nullptr || value == nullptr) return -1;
  const auto found = hash->table.find(key);
  if (found == hash->table.end()) return 1;
  *value = found->second;
  return 0;
}

int hlthunk_hash_insert(void* table, unsigned long key, void* value) {
  auto* hash = static_cast<Hash*>(table);
  if (hash == nullptr) return -1;
  return hash->table.emplace(key, value).second ? 0 : 1;
}

int hlthunk_hash_delete(void* table, unsigned long key) {
  auto* hash = static_cast<Hash*>(table);
  if (hash == nullptr) return -1;
  return hash->table.erase(key) == 0 ? 1 : 0;
}

// 1 while there is one more.
int hlthunk_hash_next(void* table, unsigned long* key, void** value) {
  auto* hash = static_cast<Hash*>(table);
  if (hash == nullptr || key == nullptr || value == nullptr || hash->walk == hash->table.end()) return 0;
  *key = hash->walk->first;
  *value = hash->walk->second;
  ++hash->walk;
  return 1;
}

int hlthunk_hash_first(void* table, unsigned long* key, void** value) {
  auto* hash = static_cast<Hash*>(table);
  if (hash == nullptr) return 0;
  hash->walk = hash->table.begin();
  return hlthunk_hash_next(table, key, value);
}

}  // namespace strait::soft::gaudi::hl
