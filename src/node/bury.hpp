// SPDX-License-Identifier: Apache-2.0
// In a forked child a handle may be closed but not taken apart: its queues, threads and descriptors are the parent's.
#pragma once

namespace strait::node {

// Keeps the handle for the rest of the process. Never fails, never blocks.
void bury(const void* handle) noexcept;

}  // namespace strait::node
