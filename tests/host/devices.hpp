// SPDX-License-Identifier: Apache-2.0
// What the devices of these tests can be asked.
#pragma once

#include <sys/ioctl.h>

namespace strait::testing {

inline constexpr char kNode[] = "/dev/strait-test/node0";
inline constexpr char kOther[] = "/dev/strait-test/node1";
inline constexpr char kBusy[] = "/dev/strait-test/busy";  // cannot be opened: EBUSY
inline constexpr unsigned kMajor = 511, kMinor = 7;

inline constexpr unsigned long kAdd = _IOWR('t', 1, int);     // adds 1 to the int
inline constexpr unsigned long kOpened = _IOR('t', 2, int);   // how many files are open
inline constexpr unsigned long kRefuse = _IO('t', 3);         // EPROTO
inline constexpr unsigned long kMapped = _IOR('t', 5, int);   // bytes of it that are mapped
inline constexpr unsigned long kProcess = _IOR('t', 4, int);  // the process that opened it

// Offset 8192 maps the descriptor itself; this one maps and is counted; anything behind it is refused (EACCES).
inline constexpr long kCounted = 16384;

}  // namespace strait::testing
