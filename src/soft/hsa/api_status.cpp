// SPDX-License-Identifier: Apache-2.0
// Entry points that need no runtime: what a status means, and our own counters.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "soft/hsa/api.hpp"

namespace strait::soft::hsa {
namespace {

struct StatusText {
  Answer status;
  const char* text;
};

// The name first, as programs expect; the words are ours.
constexpr StatusText kStatusTexts[] = {
    {kSuccess, "HSA_STATUS_SUCCESS: done"},
    {kInfoBreak, "HSA_STATUS_INFO_BREAK: the callback ended the walk"},
    {kInvalidMemoryPool, "HSA_STATUS_ERROR_INVALID_MEMORY_POOL: no such memory pool"},
    {kResourceBusy, "HSA_STATUS_ERROR_RESOURCE_BUSY: in use"},
    {kError, "HSA_STATUS_ERROR: an error without a name, or something that this runtime does not have"},
    {kInvalidArgument, "HSA_STATUS_ERROR_INVALID_ARGUMENT: an argument is not what the function asks for"},
    {kInvalidQueueCreation, "HSA_STATUS_ERROR_INVALID_QUEUE_CREATION: such a queue cannot be made"},
    {kInvalidAllocation, "HSA_STATUS_ERROR_INVALID_ALLOCATION: no such allocation, or one that cannot be made"},
    {kInvalidAgent, "HSA_STATUS_ERROR_INVALID_AGENT: no such agent, or not one that can do this"},
    {kInvalidRegion, "HSA_STATUS_ERROR_INVALID_REGION: no such region"},
    {kInvalidSignal, "HSA_STATUS_ERROR_INVALID_SIGNAL: no such signal"},
    {kOutOfResources, "HSA_STATUS_ERROR_OUT_OF_RESOURCES: no memory, descriptor, thread or device left"},
    {kResourceFree, "HSA_STATUS_ERROR_RESOURCE_FREE: it could not be released"},
    {kNotInitialized, "HSA_STATUS_ERROR_NOT_INITIALIZED: hsa_init was not called"},
    {kRefcountOverflow, "HSA_STATUS_ERROR_REFCOUNT_OVERFLOW: opened too often"},
};

}  // namespace

Answer hsa_status_string(std::int32_t status, const char** text) {
  if (text == nullptr) return kInvalidArgument;
  *text = nullptr;
  for (const StatusText& each : kStatusTexts) {
    if (each.status == status) *text = each.text;
  }
  return *text == nullptr ? kInvalidArgument : kSuccess;
}

std::size_t strait_soft_hsa_counters(char* text, std::size_t room) {
  const Counts& all = counts();
  std::string line = fmt::format(
      "opens={},closes={},allocations={},frees={},exports={},dmabuf_closes={},ipc_handles={},attaches={},detaches={},"
      "copies={},copied_bytes={},copies_refused={},fills={},locks={},unlocks={},callbacks={},interop_maps={},"
      "interop_unmaps={},vmem_handles={},vmem_releases={}",
      all.opens.load(), all.closes.load(), all.allocations.load(), all.frees.load(), all.exports.load(),
      all.dmabuf_closes.load(), all.ipc_handles.load(), all.attaches.load(), all.detaches.load(), all.copies.load(),
      all.copied_bytes.load(), all.copies_refused.load(), all.fills.load(), all.locks.load(), all.unlocks.load(),
      all.callbacks.load(), all.interop_maps.load(), all.interop_unmaps.load(), all.vmem_handles.load(),
      all.vmem_releases.load());
  if (const auto runtime = current_runtime(); runtime) line += runtime->counters();
  if (text != nullptr && room != 0) {
    const std::size_t fits = std::min(line.size(), room - 1);
    std::memcpy(text, line.data(), fits);
    text[fits] = 0;
  }
  return line.size();
}

}  // namespace strait::soft::hsa
