// SPDX-License-Identifier: Apache-2.0
// What whole_stores.cmake must refuse: a payload copied into a ring byte by byte.
#include <cstdint>

__global__ void store_bytes(std::uint8_t* block, const std::uint8_t* payload, unsigned length) {
  for (unsigned i = 0; i < length; ++i) block[i] = payload[i];
}
