// SPDX-License-Identifier: Apache-2.0
// What the files of the two libhl-thunks share.
#pragma once

#include "soft/gaudi/driver.hpp"
#include "soft/gaudi/hlthunk.hpp"

namespace strait::soft::gaudi::hl {

// Sets errno from a negative answer and passes it on.
[[nodiscard]] int answer(int value);
// Slot, or a negative errno.
[[nodiscard]] int slot_named(const char* busid);
[[nodiscard]] bool name_fits(int device_name);
// The one function whose argument means something else in each year; each library has its own.
[[nodiscard]] int export_first_generation(Driver& driver, int fd, std::uint64_t what, std::uint64_t length_bytes,
                                          std::uint32_t flags);

// What both years' structs have under the same names.
template <class Info>
void fill_hw_ip(Driver& driver, std::uint32_t slot, Info& info) {
  info = {};
  info.dram_base_address = Driver::dram_base(slot);
  info.dram_size = driver.dram_bytes();
  info.device_id = driver.first_generation() ? kPciGaudi : kPciGaudi2;
  info.dram_enabled = 1;
  info.module_id = slot;
  info.dram_page_size = kDramPageBytes;
  const char name[] = "strait soft";
  static_assert(sizeof name <= sizeof info.card_name);
  for (std::size_t i = 0; i < sizeof name; ++i) info.card_name[i] = static_cast<std::uint8_t>(name[i]);
}

}  // namespace strait::soft::gaudi::hl
