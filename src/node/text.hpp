// SPDX-License-Identifier: Apache-2.0
// Texts that the caller gives back with strait_text_free.
#pragma once

#include <string>

#include "base/error.hpp"

namespace strait::node {

// Throws std::bad_alloc when there is no memory for it.
[[nodiscard]] Status hand_out(const std::string& text, char** out);

}  // namespace strait::node
