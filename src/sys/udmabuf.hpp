// SPDX-License-Identifier: Apache-2.0
// udmabuf: the kernel's own way to turn pages of a sealed memfd into a dma-buf.
#pragma once

#include <cstdint>

#include "base/error.hpp"
#include "sys/fd.hpp"

namespace strait::sys {

constexpr const char* kUdmabufDevice = "/dev/udmabuf";

// A dma-buf of whole pages [offset, offset + length) of `memfd`, close-on-exec. Fails with Code::unsupported where the
// device does not exist, and with the kernel's errno where it refuses (its module parameter size_limit_mb is 64 unless
// changed).
[[nodiscard]] Result<Fd> make_udmabuf(int memfd, std::uint64_t offset, std::uint64_t length_bytes,
                                      const char* device = kUdmabufDevice);

}  // namespace strait::sys
