// SPDX-License-Identifier: Apache-2.0
// How much of everything the device has: what it tells programs and what it holds them to.
#pragma once

#include <cstdint>

namespace strait::soft::uverbs::limits {

inline constexpr std::uint32_t kQueuePairs = 1u << 16;
inline constexpr std::uint32_t kWorkRequests = 32768;
inline constexpr std::uint32_t kSendBlocks = 32768;
inline constexpr std::uint16_t kSendDescriptorBytes = 1008;
inline constexpr std::uint16_t kReceiveDescriptorBytes = 512;
inline constexpr std::uint32_t kPieces = 30;
inline constexpr std::uint32_t kReceivePieces = 32;
inline constexpr std::uint32_t kDoorbells = 16;
inline constexpr std::uint32_t kCompletionVectors = 1;
inline constexpr std::uint32_t kCompletionQueues = 1u << 24;
inline constexpr std::uint32_t kCompletionEntries = (1u << 22) - 1;
inline constexpr std::uint32_t kRegistrations = 1u << 24;
inline constexpr std::uint32_t kDomains = 1u << 24;
inline constexpr std::uint32_t kReads = 16;  // and atomics, under way at once
inline constexpr std::uint32_t kAddresses = 1u << 24;
inline constexpr std::uint32_t kGids = 256;  // room in the table; most of it is empty
inline constexpr std::uint32_t kSharedQueues = 1u << 20;
inline constexpr std::uint64_t kDeviceMemoryBytes = 128u << 10;
inline constexpr std::uint32_t kMessageBytes = 1u << 30;

}  // namespace strait::soft::uverbs::limits
