// SPDX-License-Identifier: Apache-2.0
// Not the vendor's: what tests ask of the software devices. Exported by libstrait-gaudi.so, which the vendor's
// libraries bring along.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {
// "opens=2,closes=2,...": of this process; the links' of the run. Always ended; how long it is without the end.
__attribute__((visibility("default"))) std::size_t strait_soft_gaudi_counters(char* text, std::size_t room);
// Makes a device fall over. 0 or a negative errno.
__attribute__((visibility("default"))) int strait_soft_gaudi_reset(std::uint32_t slot);
}
