// SPDX-License-Identifier: Apache-2.0
// What the device can do, in the words of its firmware. The same as the verbs attributes say (limits.hpp); what is zero
// is not there by command: on-demand paging (which verbs have), dynamically connected transport, tag matching, striding
// receives, compressed completions, link aggregation, flow tables, crypto.
#include <bit>

#include "soft/uverbs/firmware.hpp"
#include "soft/uverbs/limits.hpp"

namespace strait::soft::uverbs {

namespace prm = wire::prm;

namespace {

constexpr std::size_t kLeastRoom = prm::kHeaderBytes + 256;

constexpr std::uint32_t log_of(std::uint32_t n) {
  return static_cast<std::uint32_t>(std::bit_width(n) - 1);
}

struct Cap {
  prm::Field field;
  std::uint64_t value;
};

constexpr Cap kGeneral[] = {
    {prm::cap::kLogMaxSrqSize, log_of(limits::kWorkRequests)},
    {prm::cap::kLogMaxQpSize, log_of(limits::kSendBlocks)},
    {prm::cap::kLogMaxQp, log_of(limits::kQueuePairs)},
    {prm::cap::kLogMaxSrq, log_of(limits::kSharedQueues)},
    {prm::cap::kLogMaxCqSize, log_of(limits::kCompletionEntries + 1)},
    {prm::cap::kLogMaxCq, log_of(limits::kCompletionQueues)},
    {prm::cap::kLogMaxMkey, log_of(limits::kRegistrations)},
    {prm::cap::kLogMaxReadsOut, log_of(limits::kReads)},
    {prm::cap::kLogMaxReadsIn, log_of(limits::kReads)},
    {prm::cap::kPortType, prm::cap::kPortTypeEthernet},
    {prm::cap::kNumPorts, 1},
    {prm::cap::kLogMaxMessage, log_of(limits::kMessageBytes)},
    {prm::cap::kCqeVersion, 1},
    {prm::cap::kFixedBufferSize, 1},
    {prm::cap::kUmrModifyAtomicDisabled, 1},
    {prm::cap::kRoce, 1},
    {prm::cap::kAtomic, 1},
    {prm::cap::kUar4k, 1},
    {prm::cap::kLogPageSize, 12},
    {prm::cap::kBlueFlame, 1},
    {prm::cap::kLogBlueFlameBytes, 9},
    {prm::cap::kMaxSendWqeBytes, limits::kSendDescriptorBytes},
    {prm::cap::kMaxReceiveWqeBytes, limits::kReceiveDescriptorBytes},
    {prm::cap::kLogMaxPd, log_of(limits::kDomains)},
    {prm::cap::kLogMaxRmp, log_of(limits::kSharedQueues)},
};

// Masked atomics are left out: packets cannot carry them.
constexpr Cap kAtomics[] = {
    {prm::atomic_cap::kEndianMode, 1},
    {prm::atomic_cap::kOperations, prm::atomic_cap::kCompareSwap | prm::atomic_cap::kFetchAdd},
    {prm::atomic_cap::kSizes, 8},
};

}  // namespace

Verdict Firmware::query_caps(Mailbox& mailbox) const {
  if (mailbox.out_bytes() < kLeastRoom) return {prm::Status::bad_output_length, Syndrome::output_too_short};
  const auto put_all = [&](std::span<const Cap> caps) {
    for (const Cap& cap : caps) mailbox.put(prm::at(prm::kCapability, cap.field), cap.value);
  };
  switch (static_cast<prm::CapGroup>(mailbox.get(prm::kOpMod) >> 1)) {
    case prm::CapGroup::general: put_all(kGeneral); return {};
    case prm::CapGroup::atomic: put_all(kAtomics); return {};
    default: break;
  }
  // Of the other groups that devices have, nothing is there.
  if (mailbox.get(prm::kOpMod) >> 1 < prm::kCapGroups) return {};
  return {prm::Status::bad_parameter, Syndrome::bad_value};
}

}  // namespace strait::soft::uverbs
