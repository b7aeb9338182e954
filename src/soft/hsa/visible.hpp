// SPDX-License-Identifier: Apache-2.0
// ROCR_VISIBLE_DEVICES: which GPUs of the machine a program sees, and in what order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace strait::soft::hsa {

// "GPU-" and 16 hexadecimal digits, the same in every process.
[[nodiscard]] std::string uuid_of_slot(std::uint32_t slot);

// Null: all. Indices and uuids, separated by commas; the first that names no device, or one that was named before, ends
// the list.
[[nodiscard]] std::vector<std::uint32_t> visible_slots(const char* chosen, std::uint32_t devices);

}  // namespace strait::soft::hsa
