// SPDX-License-Identifier: Apache-2.0
// What is served: one row per method and command. Everything else is refused as the kernel refuses what it lacks.
#pragma once

#include "soft/uverbs/context.hpp"

namespace strait::soft::uverbs {

struct Tables {
  // Null: there is no such method (EPROTONOSUPPORT).
  [[nodiscard]] static const Context::Method* find(std::uint32_t object_method);
  // Null: there is no such command (EOPNOTSUPP).
  [[nodiscard]] static const Context::WriteMethod* find_write(std::uint64_t command);
};

}  // namespace strait::soft::uverbs
