// SPDX-License-Identifier: Apache-2.0
// The face of Habana's libhl-thunk as shapes and numbers, of today and of 2021. Written from its documentation; no
// header of it is packaged anywhere, so nothing checks it but our own tests.
#pragma once

#include <cstddef>
#include <cstdint>

#define STRAIT_HL_API extern "C" __attribute__((visibility("default")))

namespace strait::soft::gaudi::hl {

// enum hlthunk_device_name
inline constexpr int kNameGaudi = 2, kNameInvalid = 3, kNameDontCare = 4, kNameGaudi2 = 5;
inline constexpr std::uint32_t kPciGaudi = 0x1000, kPciGaudi2 = 0x1020;

struct HwIpInfo {
  std::uint64_t sram_base_address;
  std::uint64_t dram_base_address;
  std::uint64_t dram_size;
  std::uint32_t sram_size;
  std::uint32_t num_of_events;
  std::uint32_t device_id;
  std::uint32_t cpld_version;
  std::uint32_t psoc_pci_pll[4];
  std::uint16_t tpc_enabled_mask;
  std::uint8_t dram_enabled;
  std::uint8_t cpucp_version[128];
  std::uint32_t module_id;
  std::uint8_t card_name[16];
  std::uint32_t decoder_enabled_mask;
  std::uint8_t mme_master_slave_mode;
  std::uint64_t tpc_enabled_mask_ext;
  std::uint64_t dram_page_size;
  std::uint16_t first_available_interrupt_id;
  std::uint32_t edma_enabled_mask;
  std::uint16_t server_type;
  std::uint64_t pdma_user_owned_ch_mask;
  std::uint16_t number_of_user_interrupts;
  std::uint64_t device_mem_alloc_default_page_size;
  std::uint64_t nic_ports_mask;
  std::uint8_t interposer_version;
  std::uint8_t substrate_version;
  std::uint64_t nic_ports_external_mask;
  std::uint32_t mme_enabled_mask;
  std::uint8_t odp_supported;
  std::uint8_t security_enabled;
  std::uint8_t revision_id;
  std::uint16_t tpc_interrupt_id;
  std::uint64_t engine_core_interrupt_reg_addr;
  std::uint32_t rotator_enabled_mask;
  std::uint32_t sched_arc_enabled_mask;
  std::uint64_t reserved_dram_size;
};

struct HwIpInfo2021 {
  std::uint64_t sram_base_address;
  std::uint64_t dram_base_address;
  std::uint64_t dram_size;
  std::uint32_t sram_size;
  std::uint32_t num_of_events;
  std::uint32_t device_id;
  std::uint32_t cpld_version;
  std::uint32_t psoc_pci_pll[4];
  std::uint8_t tpc_enabled_mask;
  std::uint8_t dram_enabled;
  std::uint8_t cpucp_version[128];
  std::uint32_t module_id;
  std::uint8_t card_name[16];
  std::uint64_t dram_page_size;
  std::uint16_t first_available_interrupt_id;
};

struct DramUsage {
  std::uint64_t free_bytes;
  std::uint64_t context_bytes;
};

struct ResetCount {
  std::uint32_t hard;
  std::uint32_t soft;
};

struct OpenStats {
  std::uint64_t open_counter;
  std::uint64_t last_open_period_ms;
  std::uint8_t is_compute_ctx_active;
  std::uint8_t compute_ctx_in_release;
  std::uint8_t compute_ctx_has_mapped_resources;
};

// The functions that both years have in the same shape.
// clang-format off
#define HL_COMMON(function)                                                                                 \
  function(int, hlthunk_open, (int, const char*))                                                           \
  function(int, hlthunk_open_by_module_id, (std::uint32_t))                                                 \
  function(int, hlthunk_open_control, (int, const char*))                                                   \
  function(int, hlthunk_close, (int))                                                                       \
  function(std::uint32_t, hlthunk_get_device_id_from_fd, (int))                                             \
  function(int, hlthunk_get_device_name_from_fd, (int))                                                     \
  function(int, hlthunk_get_pci_bus_id_from_fd, (int, char*, int))                                          \
  function(int, hlthunk_get_device_index_from_pci_bus_id, (const char*))                                    \
  function(int, hlthunk_get_dram_usage, (int, DramUsage*))                                                  \
  function(int, hlthunk_get_device_status_info, (int))                                                      \
  function(bool, hlthunk_is_device_idle, (int))                                                             \
  function(int, hlthunk_get_reset_count_info, (int, ResetCount*))                                           \
  function(int, hlthunk_device_memory_free, (int, std::uint64_t))                                           \
  function(std::uint64_t, hlthunk_device_memory_map, (int, std::uint64_t, std::uint64_t))                   \
  function(std::uint64_t, hlthunk_host_memory_map, (int, void*, std::uint64_t, std::uint64_t))              \
  function(int, hlthunk_memory_unmap, (int, std::uint64_t))                                                 \
  function(int, hlthunk_device_memory_export_dmabuf_fd, (int, std::uint64_t, std::uint64_t, std::uint32_t)) \
  function(void, hlthunk_free, (void*))                                                                     \
  function(char*, hlthunk_get_version, ())                                                                  \
  function(void*, hlthunk_hash_create, ())                                                                  \
  function(int, hlthunk_hash_destroy, (void*))                                                              \
  function(int, hlthunk_hash_lookup, (void*, unsigned long, void**))                                        \
  function(int, hlthunk_hash_insert, (void*, unsigned long, void*))                                         \
  function(int, hlthunk_hash_delete, (void*, unsigned long))                                                \
  function(int, hlthunk_hash_next, (void*, unsigned long*, void**))                                         \
  function(int, hlthunk_hash_first, (void*, unsigned long*, void**))
// clang-format on

// Today's.
// clang-format off
#define HL_CURRENT(function)                                                                                        \
  function(void*, hlthunk_malloc, (std::size_t))                                                                    \
  function(int, hlthunk_get_hw_ip_info, (int, HwIpInfo*))                                                           \
  function(std::uint64_t, hlthunk_device_memory_alloc, (int, std::uint64_t, std::uint64_t, bool, bool))             \
  function(int, hlthunk_open_control_by_name, (int, const char*))                                                   \
  function(int, hlthunk_open_control_by_module_id, (std::uint32_t))                                                 \
  function(int, hlthunk_open_control_by_bus_id, (const char*))                                                      \
  function(int, hlthunk_get_device_index_from_module_id, (std::uint32_t))                                           \
  function(int, hlthunk_get_device_count, (int))                                                                    \
  function(int, hlthunk_get_open_stats, (int, OpenStats*))                                                          \
  function(int, hlthunk_get_device_status_info_telemetry, (int, bool))                                              \
  function(int, hlthunk_get_dev_memalloc_page_orders, (int, std::uint64_t*))                                        \
  function(std::uint64_t, hlthunk_host_memory_map_flags, (int, void*, std::uint64_t, std::uint64_t, std::uint32_t)) \
  function(int, hlthunk_device_mapped_memory_export_dmabuf_fd,                                                      \
           (int, std::uint64_t, std::uint64_t, std::uint64_t, std::uint32_t))                                       \
  function(int, hlthunk_cs_flush_pci_hbw_writes, (int))                                                             \
  function(int, hlthunk_notifier_create, (int))                                                                     \
  function(int, hlthunk_notifier_release, (int, int))                                                               \
  function(int, hlthunk_notifier_recv, (int, int, std::uint64_t*, std::uint64_t*, std::uint32_t, std::uint32_t))
// clang-format on

// The shapes of 2021 under names that today mean something else.
// clang-format off
#define HL_2021(function)                                                                \
  function(void*, hlthunk_malloc, (int))                                                 \
  function(int, hlthunk_get_hw_ip_info, (int, HwIpInfo2021*))                            \
  function(std::uint64_t, hlthunk_device_memory_alloc, (int, std::uint64_t, bool, bool))
// clang-format on

}  // namespace strait::soft::gaudi::hl
