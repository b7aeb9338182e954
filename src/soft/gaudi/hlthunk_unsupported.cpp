// SPDX-License-Identifier: Apache-2.0
// The rest of the names; the list depends on the year.
#include <cerrno>

#include "soft/gaudi/driver.hpp"
#include "soft/gaudi/hlthunk.hpp"

namespace strait::soft::gaudi::hl {
#define HL_ANSWER(name, value)                                                               \
  STRAIT_HL_API std::int64_t name() {                                                        \
    if (Driver* driver = Driver::get(); driver != nullptr) driver->count_unsupported(#name); \
    errno = EOPNOTSUPP;                                                                      \
    return value;                                                                            \
  }
#define HL_UNSUPPORTED(name) HL_ANSWER(name, -EOPNOTSUPP)
#define HL_NOTHING(name) HL_ANSWER(name, 0)
#ifdef STRAIT_HL_2021
#include "soft/gaudi/hlthunk_unsupported_2021.inc"
#else
#include "soft/gaudi/hlthunk_unsupported_current.inc"
#endif
}  // namespace strait::soft::gaudi::hl
