// SPDX-License-Identifier: Apache-2.0
// C ABI: memory, regions, signals, names and tickets.
#include "node/answer.hpp"
#include "node/bury.hpp"
#include "node/core.hpp"
#include "node/text.hpp"

using namespace strait;
using namespace strait::node;

namespace {

Status check_signal(const strait_region& region, std::uint32_t index) {
  STRAIT_CHECK(region.core->usable("region"));
  if (index >= STRAIT_SIGNALS)
    return fail(Code::invalid, "signal {} does not exist: a region has signals 0 to {}", index, STRAIT_SIGNALS - 1);
  if (!region.signals) return fail(Code::invalid, "this region has no signals: it was not shared with remote_write");
  return {};
}

}  // namespace

extern "C" {

std::int32_t strait_allocate(strait_node* node, std::uint64_t length_bytes, const char* near_device,
                             strait_memory** out, strait_error* error) {
  return strait_allocate_with(node, length_bytes, near_device, 0, out, error);
}

std::int32_t strait_allocate_with(strait_node* node, std::uint64_t length_bytes, const char* near_device,
                                  std::uint32_t flags, strait_memory** out, strait_error* error) {
  if (node == nullptr || out == nullptr) return answer_null(error, "node or out");
  return guarded(error, [&]() -> Status {
    STRAIT_CHECK(node->core->usable("node"));
    if ((flags & ~std::uint32_t{STRAIT_ALLOCATE_NETWORKED}) != 0)
      return fail(Code::invalid, "flags {:#x} of an allocation have bits strait does not know", flags);
    const bool networked = (flags & STRAIT_ALLOCATE_NETWORKED) != 0;
    STRAIT_TRY(*out, node->core->allocate(length_bytes, near_device == nullptr ? "" : near_device, networked));
    return {};
  });
}

std::int32_t strait_memory_free(strait_memory* memory, strait_error* error) {
  if (memory == nullptr) return answer_null(error, "memory");
  if (memory->core->in_child()) {
    bury(memory);
    return answer(error, dead_after_fork("memory"));
  }
  return guarded(error, [&]() -> Status {
    const std::shared_ptr<Core> core = memory->core;
    return core->free(memory);
  });
}

void strait_memory_drop(strait_memory* memory) {
  if (memory == nullptr) return;
  if (memory->core->in_child()) return bury(memory);
  const std::shared_ptr<Core> core = memory->core;
  (void)guarded(nullptr, [&]() -> Status {
    core->drop(memory);
    return {};
  });
}

void* strait_memory_address(const strait_memory* memory) {
  return memory == nullptr ? nullptr : memory->memory.data();
}

std::uint64_t strait_memory_length(const strait_memory* memory) {
  return memory == nullptr ? 0 : memory->memory.size();
}

std::int32_t strait_copy(strait_node* node, void* to, const void* from, std::uint64_t length_bytes,
                         std::int64_t timeout_ns, strait_error* error) {
  if (node == nullptr) return answer_null(error, "node");
  return guarded(error, [&]() -> Status {
    STRAIT_CHECK(node->core->usable("node"));
    return node->core->copy(to, from, length_bytes, node->core->deadline(timeout_ns));
  });
}

std::int32_t strait_share(strait_node* node, void* address, std::uint64_t length_bytes, std::uint32_t access,
                          strait_region** out, strait_error* error) {
  if (node == nullptr || out == nullptr) return answer_null(error, "node or out");
  return guarded(error, [&]() -> Status {
    STRAIT_CHECK(node->core->usable("node"));
    STRAIT_TRY(*out, node->core->share(address, length_bytes, access));
    return {};
  });
}

std::int32_t strait_share_dmabuf(strait_node* node, std::int32_t fd, std::uint64_t offset, std::uint64_t length_bytes,
                                 std::uint64_t address, std::uint32_t access, strait_region** out,
                                 strait_error* error) {
  if (node == nullptr || out == nullptr) return answer_null(error, "node or out");
  return guarded(error, [&]() -> Status {
    STRAIT_CHECK(node->core->usable("node"));
    STRAIT_TRY(*out, node->core->share_fd(fd, offset, length_bytes, address, access));
    return {};
  });
}

void strait_region_drop(strait_region* region) {
  if (region == nullptr) return;
  if (region->core->in_child()) return bury(region);
  const std::shared_ptr<Core> core = region->core;
  (void)guarded(nullptr, [&]() -> Status {
    core->drop(region);
    return {};
  });
}

std::int32_t strait_region_revoke(strait_region* region, std::int64_t timeout_ns, strait_error* error) {
  if (region == nullptr) return answer_null(error, "region");
  return guarded(error, [&]() -> Status {
    STRAIT_CHECK(region->core->usable("region"));
    return region->core->revoke(*region, region->core->deadline(timeout_ns));
  });
}

void* strait_region_address(const strait_region* region) {
  return region == nullptr ? nullptr : reinterpret_cast<void*>(region->address);
}

std::uint64_t strait_region_length(const strait_region* region) {
  return region == nullptr ? 0 : region->length_bytes;
}

std::int32_t strait_region_path(const strait_region* region, char** json, strait_error* error) {
  if (region == nullptr || json == nullptr) return answer_null(error, "region or json");
  return guarded(error, [&]() -> Status {
    STRAIT_CHECK(region->core->usable("region"));
    return hand_out(region->core->region_json(*region), json);
  });
}

std::int32_t strait_signal_read(const strait_region* region, std::uint32_t index, std::uint64_t* value,
                                strait_error* error) {
  if (region == nullptr || value == nullptr) return answer_null(error, "region or value");
  return guarded(error, [&]() -> Status {
    STRAIT_CHECK(check_signal(*region, index));
    *value = region->signals->words[index].load(std::memory_order_acquire);
    return {};
  });
}

std::int32_t strait_signal_write(strait_region* region, std::uint32_t index, std::uint64_t value, strait_error* error) {
  if (region == nullptr) return answer_null(error, "region");
  return guarded(error, [&]() -> Status {
    STRAIT_CHECK(check_signal(*region, index));
    region->signals->words[index].store(value, std::memory_order_release);
    return {};
  });
}

std::int32_t strait_signal_wait(strait_region* region, std::uint32_t index, std::uint64_t at_least,
                                std::int64_t timeout_ns, std::uint64_t* value, strait_error* error) {
  if (region == nullptr) return answer_null(error, "region");
  return guarded(error, [&]() -> Status {
    STRAIT_CHECK(check_signal(*region, index));
    std::uint64_t seen = 0;
    STRAIT_CHECK(region->core->wait_signal(*region, index, at_least, region->core->deadline(timeout_ns), seen));
    if (value != nullptr) *value = seen;
    return {};
  });
}

std::int32_t strait_publish(strait_node* node, const char* name, strait_region* region, strait_published** out,
                            strait_error* error) {
  if (node == nullptr || name == nullptr || region == nullptr || out == nullptr)
    return answer_null(error, "node, name, region or out");
  return guarded(error, [&]() -> Status {
    STRAIT_CHECK(node->core->usable("node"));
    if (region->core != node->core) return fail(Code::invalid, "the region belongs to another Node");
    STRAIT_TRY(*out, node->core->publish(name, *region));
    return {};
  });
}

void strait_withdraw(strait_published* published) {
  if (published == nullptr) return;
  if (published->core->in_child()) return bury(published);
  published->core->withdraw(*published);
  delete published;
}

std::int32_t strait_ticket_make(strait_region* region, std::uint64_t offset, std::uint64_t length_bytes,
                                std::uint32_t access, std::int64_t lifetime_ns, strait_ticket* out,
                                strait_error* error) {
  if (region == nullptr || out == nullptr) return answer_null(error, "region or out");
  return guarded(error, [&]() -> Status {
    STRAIT_CHECK(region->core->usable("region"));
    return region->core->make_ticket(*region, offset, length_bytes, access, lifetime_ns, *out);
  });
}

}  // extern "C"
