// SPDX-License-Identifier: Apache-2.0
#include "buffer/gaudi/libraries.hpp"

#include <memory>
#include <mutex>

namespace strait::buffer::gaudi {
namespace {

template <class Function>
Status need(const sys::Library& library, const char* name, Function& out) {
  STRAIT_TRY(out, library.symbol<Function>(name));
  return {};
}
template <class Function>
void want(const sys::Library& library, const char* name, Function& out) {
  if (const auto found = library.symbol<Function>(name)) out = *found;
}

// The loader's usual places, then where Habana installs.
Result<sys::Library> open_habana(const char* name) {
  auto library = sys::Library::open(name);
  if (library) return library;
  auto beside = sys::Library::open(std::string("/usr/lib/habanalabs/") + name);
  return beside ? std::move(beside) : std::move(library);
}

Status load_thunk(HlThunk& out) {
  STRAIT_TRY(out.library, open_habana("libhl-thunk.so"));
  const sys::Library& library = out.library;
  want(library, "hlthunk_device_mapped_memory_export_dmabuf_fd", out.export_mapped);
  want(library, "hlthunk_get_device_count", out.device_count);
  want(library, "hlthunk_get_device_status_info", out.status);
  out.current = out.export_mapped != nullptr || out.device_count != nullptr;
  STRAIT_CHECK(need(library, "hlthunk_open", out.open));
  STRAIT_CHECK(need(library, "hlthunk_open_control", out.open_control));
  STRAIT_CHECK(need(library, "hlthunk_close", out.close));
  STRAIT_CHECK(need(library, "hlthunk_get_pci_bus_id_from_fd", out.pci_bus_id));
  STRAIT_CHECK(need(library, "hlthunk_get_hw_ip_info", out.hw_ip_info));
  STRAIT_CHECK(need(library, "hlthunk_device_memory_free", out.free));
  STRAIT_CHECK(need(library, "hlthunk_device_memory_map", out.map));
  STRAIT_CHECK(need(library, "hlthunk_memory_unmap", out.unmap));
  want(library, "hlthunk_open_by_module_id", out.open_by_module);
  want(library, "hlthunk_open_control_by_module_id", out.open_control_by_module);
  if (out.current) {
    STRAIT_CHECK(need(library, "hlthunk_device_memory_alloc", out.alloc));
    want(library, "hlthunk_cs_flush_pci_hbw_writes", out.flush_writes);
  } else {
    STRAIT_CHECK(need(library, "hlthunk_device_memory_alloc", out.alloc_2021));
    want(library, "hlthunk_device_memory_export_dmabuf_fd", out.export_by_handle);
  }
  return {};
}

Status load_synapse(Synapse& out) {
  STRAIT_TRY(out.library, open_habana("libSynapse.so"));
  const sys::Library& library = out.library;
  STRAIT_CHECK(need(library, "synInitialize", out.initialize));
  STRAIT_CHECK(need(library, "synDestroy", out.destroy));
  STRAIT_CHECK(need(library, "synDeviceGetModuleIDs", out.module_ids));
  STRAIT_CHECK(need(library, "synDeviceAcquireByModuleId", out.acquire_by_module));
  STRAIT_CHECK(need(library, "synDeviceRelease", out.release));
  STRAIT_CHECK(need(library, "synDeviceGetInfoV2", out.info));
  STRAIT_CHECK(need(library, "synDeviceGetMemoryInfo", out.memory_info));
  STRAIT_CHECK(need(library, "synDeviceMalloc", out.malloc));
  STRAIT_CHECK(need(library, "synDeviceFree", out.free));
  STRAIT_CHECK(need(library, "synHostMap", out.host_map));
  STRAIT_CHECK(need(library, "synHostUnmap", out.host_unmap));
  STRAIT_CHECK(need(library, "synStreamCreateGeneric", out.stream_create));
  STRAIT_CHECK(need(library, "synStreamDestroy", out.stream_destroy));
  STRAIT_CHECK(need(library, "synStreamSynchronize", out.stream_wait));
  STRAIT_CHECK(need(library, "synStreamWaitEvent", out.stream_wait_event));
  STRAIT_CHECK(need(library, "synEventCreate", out.event_create));
  STRAIT_CHECK(need(library, "synEventDestroy", out.event_destroy));
  STRAIT_CHECK(need(library, "synEventRecord", out.event_record));
  STRAIT_CHECK(need(library, "synEventQuery", out.event_query));
  STRAIT_CHECK(need(library, "synMemCopyAsync", out.copy));
  want(library, "synDriverGetVersion", out.version);
  return {};
}

Status load_scal(Scal& out) {
  STRAIT_TRY(out.library, open_habana("libscal.so"));
  const sys::Library& library = out.library;
  STRAIT_CHECK(need(library, "scal_init", out.init));
  STRAIT_CHECK(need(library, "scal_get_handle_from_fd", out.handle_from_fd));
  STRAIT_CHECK(need(library, "scal_get_pool_handle_by_name", out.pool_by_name));
  STRAIT_CHECK(need(library, "scal_pool_get_infoV2", out.pool_info));
  want(library, "scal_destroy", out.destroy);
  return {};
}

Result<Libraries*> load_habana() {
  auto loaded = std::make_unique<Libraries>();
  STRAIT_CHECK(load_thunk(loaded->thunk));
  Status more = load_synapse(loaded->synapse);
  if (more) more = load_scal(loaded->scal);
  loaded->has_synapse = more.has_value() && loaded->thunk.current;
  if (!more) loaded->no_synapse_because = more.error().text;
  return loaded.release();
}

}  // namespace

Result<const Libraries*> Libraries::get() {
  static std::mutex mutex;
  static Libraries* loaded = nullptr;
  const std::lock_guard lock(mutex);
  if (loaded == nullptr) {
    STRAIT_TRY(loaded, load_habana());
  }
  return loaded;
}

}  // namespace strait::buffer::gaudi
