// SPDX-License-Identifier: Apache-2.0
// cuInit and what can be asked about devices.
#include <algorithm>
#include <cstring>
#include <utility>

#include "soft/cuda/entry.hpp"
#include "soft/cuda/identity.hpp"

namespace strait::soft::cuda {
namespace {

// Of an H200 with driver 580; what is not here is 0, and what differs per device is answered below.
constexpr std::pair<int, int> kAttributes[] = {
    {1, 1024},  {2, 1024},  {3, 1024},   {4, 64},        {5, 2147483647}, {6, 65535},   {7, 65535},  {8, 49152},
    {9, 65536}, {10, 32},   {12, 65536}, {14, 512},      {15, 1},         {16, 132},    {19, 1},     {31, 1},
    {32, 1},    {34, 0},    {37, 6144},  {38, 62914560}, {39, 2048},      {40, 3},      {41, 1},     {50, 0},
    {75, 9},    {76, 0},    {78, 1},     {79, 1},        {80, 1},         {81, 233472}, {82, 65536}, {83, 1},
    {89, 1},    {90, 1},    {91, 1},     {92, 1},        {93, 1},         {94, 1},      {95, 1},     {97, 232448},
    {98, 0},    {99, 1},    {102, 1},    {103, 1},       {106, 32},       {110, 1},     {115, 1},    {116, 1},
    {117, 1},   {118, 100}, {119, 1},    {120, 1},       {122, 1},        {123, 1},     {124, 1},    {125, 0},
    {126, 4},   {128, 0},   {133, 0},    {134, 0},       {146, 0},
};

// CUDA's way with text: as much as fits, always terminated.
CUresult put_text(const std::string& text, char* into, int capacity) {
  if (into == nullptr || capacity <= 0) return CUDA_ERROR_INVALID_VALUE;
  const std::size_t bytes = std::min(text.size(), static_cast<std::size_t>(capacity) - 1);
  std::memcpy(into, text.data(), bytes);
  into[bytes] = '\0';
  return CUDA_SUCCESS;
}

// body(Device&)
template <class Body>
CUresult with_device(CUdevice device, Body body) noexcept {
  return enter([&](Driver& driver) -> CUresult {
    if (!driver.valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    return body(driver.device(device));
  });
}

}  // namespace

extern "C" {

CUresult cuInit(unsigned int flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return guarded([] { return Driver::get().init(); });
}

CUresult cuDriverGetVersion(int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = kDriverVersion;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return enter([&](Driver& driver) -> CUresult {
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!driver.valid_device(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetCount(int* count) {
  return enter([&](Driver& driver) -> CUresult {
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *count = static_cast<int>(driver.devices().size());
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetName(char* name, int capacity, CUdevice device) {
  return with_device(device, [&](const Device& found) { return put_text(found.name, name, capacity); });
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  return with_device(device, [&](const Device& found) -> CUresult {
    if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::ranges::copy(device_uuid(found.index), uuid->bytes);
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  return cuDeviceGetUuid(uuid, device);
}

CUresult cuDeviceTotalMem(unsigned int* bytes, CUdevice device) {
  return with_device(device, [&](const Device& found) -> CUresult {
    if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *bytes = static_cast<unsigned int>(std::min<std::uint64_t>(found.bank->memory_bytes(), UINT32_MAX));
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice device) {
  return with_device(device, [&](const Device& found) -> CUresult {
    if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *bytes = found.bank->memory_bytes();
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  return with_device(device, [&](const Device& found) -> CUresult {
    const auto number = static_cast<int>(attribute);
    if (value == nullptr || number < 1 || number >= static_cast<int>(CU_DEVICE_ATTRIBUTE_MAX))
      return CUDA_ERROR_INVALID_VALUE;
    *value = 0;
    for (const auto& [known, answer] : kAttributes) {
      if (known == number) *value = answer;
    }
    if (attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID) *value = static_cast<int>(pci_bus(found.index));
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetPCIBusId(char* text, int capacity, CUdevice device) {
  return with_device(device, [&](const Device& found) -> CUresult {
    const std::string id = pci_bus_id(found.index);
    if (capacity <= static_cast<int>(id.size())) return CUDA_ERROR_INVALID_VALUE;
    return put_text(id, text, capacity);
  });
}

CUresult cuDeviceGetByPCIBusId(CUdevice* device, const char* text) {
  return enter([&](Driver& driver) -> CUresult {
    if (device == nullptr || text == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::string wanted(text, ::strnlen(text, 32));
    std::ranges::transform(wanted, wanted.begin(),
                           [](char c) { return c >= 'a' && c <= 'f' ? static_cast<char>(c - 'a' + 'A') : c; });
    for (std::size_t i = 0; i < driver.devices().size(); ++i) {
      const std::string id = pci_bus_id(driver.devices()[i].index);
      // Also without the function, and without domain and function.
      if (wanted != id && wanted != id.substr(0, id.size() - 2) && wanted != id.substr(5) &&
          wanted != id.substr(5, id.size() - 7))
        continue;
      *device = static_cast<CUdevice>(i);
      return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_DEVICE;
  });
}

CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  return enter([&](Driver& driver) -> CUresult {
    if (can == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!driver.valid_device(device) || !driver.valid_device(peer)) return CUDA_ERROR_INVALID_DEVICE;
    *can = device != peer ? 1 : 0;
    return CUDA_SUCCESS;
  });
}

}  // extern "C"

}  // namespace strait::soft::cuda
