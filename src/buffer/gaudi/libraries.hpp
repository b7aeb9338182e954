// SPDX-License-Identifier: Apache-2.0
// Habana's libraries, loaded at run time: libhl-thunk.so (devices, export), and where they are there libSynapse.so
// (memory, copies) and libscal.so (the pool). Signatures are written down from documentation; nothing packaged checks
// them.
//
// hl-thunk of 2021 and of today share the name hlthunk_device_memory_alloc with different arguments: they are told
// apart by a function that only today's has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/error.hpp"
#include "sys/library.hpp"

namespace strait::buffer::gaudi {

inline constexpr int kAnyDevice = 4;  // hlthunk_device_name "don't care"
inline constexpr int kSynOk = 0;
inline constexpr int kSynOutOfDeviceMemory = 4;
inline constexpr int kSynBusy = 22;
inline constexpr int kSynAlreadyInitialized = 29;
inline constexpr int kHostToDevice = 0;
inline constexpr int kDeviceToHost = 1;
inline constexpr int kDeviceToDevice = 2;

struct SynDeviceInfo {  // synDeviceInfoV2
  std::uint64_t sram_base = 0;
  std::uint64_t dram_base = 0;
  std::uint32_t sram_size = 0;
  std::uint64_t dram_size = 0;
  std::uint64_t tpc_mask = 0;
  std::uint8_t dram_enabled = 0;
  std::uint32_t device_id = 0;
  std::uint32_t fd = 0;
  int type = 0;
  std::uint8_t index = 0;
  std::uint64_t hbm_base = 0;
};
struct ScalPoolInfo {  // of scal_pool_get_infoV2
  void* scal = nullptr;
  const char* name = nullptr;
  unsigned index = 0;
  std::uint64_t device_base = 0;
  void* host_base = nullptr;
  std::uint32_t core_base = 0;
  std::uint64_t total_bytes = 0;
  std::uint64_t free_bytes = 0;
  std::uint64_t allocated_base = 0;
};

struct HlThunk {
  sys::Library library;
  bool current = false;  // false: as of 2021
  int (*open)(int, const char*) = nullptr;
  int (*open_by_module)(std::uint32_t) = nullptr;
  int (*open_control)(int, const char*) = nullptr;
  int (*open_control_by_module)(std::uint32_t) = nullptr;
  int (*close)(int) = nullptr;
  int (*device_count)(int) = nullptr;
  int (*pci_bus_id)(int, char*, int) = nullptr;
  int (*hw_ip_info)(int, void*) = nullptr;
  std::uint64_t (*alloc)(int, std::uint64_t, std::uint64_t, bool, bool) = nullptr;
  std::uint64_t (*alloc_2021)(int, std::uint64_t, bool, bool) = nullptr;
  int (*free)(int, std::uint64_t) = nullptr;
  std::uint64_t (*map)(int, std::uint64_t, std::uint64_t) = nullptr;
  int (*unmap)(int, std::uint64_t) = nullptr;
  int (*export_mapped)(int, std::uint64_t, std::uint64_t, std::uint64_t, std::uint32_t) = nullptr;
  int (*export_by_handle)(int, std::uint64_t, std::uint64_t, std::uint32_t) = nullptr;  // 2021
  int (*flush_writes)(int) = nullptr;
  int (*status)(int) = nullptr;  // 0: operational
};

struct Synapse {
  sys::Library library;
  int (*initialize)() = nullptr;
  int (*destroy)() = nullptr;
  int (*module_ids)(std::uint32_t*, std::uint32_t*) = nullptr;
  int (*acquire_by_module)(std::uint32_t*, std::uint32_t) = nullptr;
  int (*release)(std::uint32_t) = nullptr;
  int (*info)(std::uint32_t, SynDeviceInfo*) = nullptr;
  int (*version)(char*, int) = nullptr;  // may be missing
  int (*memory_info)(std::uint32_t, std::uint64_t*, std::uint64_t*) = nullptr;
  int (*malloc)(std::uint32_t, std::uint64_t, std::uint64_t, std::uint32_t, std::uint64_t*) = nullptr;
  int (*free)(std::uint32_t, std::uint64_t, std::uint32_t) = nullptr;
  int (*host_map)(std::uint32_t, std::uint64_t, const void*) = nullptr;
  int (*host_unmap)(std::uint32_t, const void*) = nullptr;
  int (*stream_create)(void**, std::uint32_t, std::uint32_t) = nullptr;
  int (*stream_destroy)(void*) = nullptr;
  int (*stream_wait)(void*) = nullptr;
  int (*stream_wait_event)(void*, void*, std::uint32_t) = nullptr;
  int (*event_create)(void**, std::uint32_t, std::uint32_t) = nullptr;
  int (*event_destroy)(void*) = nullptr;
  int (*event_record)(void*, void*) = nullptr;
  int (*event_query)(void*) = nullptr;
  int (*copy)(void*, std::uint64_t, std::uint64_t, std::uint64_t, int) = nullptr;  // size before destination
};

struct Scal {
  sys::Library library;
  int (*init)(int, const char*, void**, void*) = nullptr;
  void (*destroy)(void*) = nullptr;
  int (*handle_from_fd)(int, void**) = nullptr;
  int (*pool_by_name)(void*, const char*, void**) = nullptr;
  int (*pool_info)(void*, ScalPoolInfo*) = nullptr;
};

struct Libraries {
  HlThunk thunk;
  bool has_synapse = false;  // and scal: memory and copies as frameworks have them
  std::string no_synapse_because;
  Synapse synapse;
  Scal scal;

  // Loaded once and kept for good.
  [[nodiscard]] static Result<const Libraries*> get();
};

}  // namespace strait::buffer::gaudi
