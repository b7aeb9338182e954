// SPDX-License-Identifier: Apache-2.0
#include "soft/hsa/functions.hpp"
#include "soft/hsa/report.hpp"

// Their arguments are not looked at, and who calls one from C does not notice that they are not declared.
namespace strait::soft::hsa {
#define HSA_ANSWER(name, answer)       \
  STRAIT_HSA_API std::int64_t name() { \
    count_unsupported(#name);          \
    return answer;                     \
  }
#define HSA_UNSUPPORTED(name) HSA_ANSWER(name, kError)
#define HSA_NO_QUEUE(name) HSA_ANSWER(name, 0)
#include "soft/hsa/unsupported.inc"
}  // namespace strait::soft::hsa
