// SPDX-License-Identifier: Apache-2.0
// The C face of the software accelerator: no exception leaves, no output is written on failure.
#include "soft/accel/plugin.hpp"

#include <string>

#include "base/plugin_answer.hpp"
#include "soft/accel/accelerator.hpp"
#include "soft/accel/memory_port.hpp"

namespace {

using strait::Code;
using strait::Result;
using strait::Status;
using strait::plugin::answer;
using strait::plugin::answer_into;
using strait::plugin::put_text;
using strait::soft::accel::Accelerator;

Accelerator& self(strait_provider* provider) {
  return *reinterpret_cast<Accelerator*>(provider);
}

std::int32_t null_argument(strait_plugin_error* error) {
  return answer(error,
                [] { return Status(strait::fail(Code::invalid, "soft accelerator: a required argument is null")); });
}

std::int32_t open_soft(const char* config, strait_provider** out, strait_plugin_error* error) {
  if (out == nullptr) return null_argument(error);
  return answer(
      error, [&] { return Accelerator::open(config == nullptr ? "" : config); },
      [&](auto& opened) { *out = reinterpret_cast<strait_provider*>(opened->release()); });
}

void close_soft(strait_provider* provider) {
  if (provider != nullptr) delete &self(provider);
}

std::uint32_t device_count(strait_provider* provider) {
  return self(provider).device_count();
}

std::int32_t device_info(strait_provider* provider, std::uint32_t device, strait_device_info* out) {
  if (out == nullptr) return null_argument(nullptr);
  return answer(nullptr, [&] { return self(provider).device_info(device, *out); });
}

std::int32_t classify(strait_provider* provider, std::uint64_t address, strait_claim* out) {
  return self(provider).classify(address, *out) ? 1 : 0;
}

std::int32_t allocate(strait_provider* provider, std::uint32_t device, std::uint64_t length_bytes,
                      std::uint64_t* address, strait_plugin_error* error) {
  if (address == nullptr) return null_argument(error);
  return answer_into(address, error, [&] { return self(provider).allocate(device, length_bytes); });
}

std::int32_t free_memory(strait_provider* provider, std::uint64_t address, strait_plugin_error* error) {
  return answer(error, [&] { return self(provider).free(address); });
}

std::int32_t watch(strait_provider* provider, std::uint64_t address, strait_freed_callback call, void* context,
                   std::uint64_t* out, strait_plugin_error* error) {
  if (call == nullptr || out == nullptr) return null_argument(error);
  return answer_into(out, error, [&] { return self(provider).watch(address, call, context); });
}

void unwatch(strait_provider* provider, std::uint64_t watch) {
  self(provider).unwatch(watch);
}

std::int32_t copy(strait_provider* provider, std::uint64_t to, std::uint64_t from, std::uint64_t length_bytes,
                  std::uint64_t* ticket, strait_plugin_error* error) {
  if (ticket == nullptr) return null_argument(error);
  return answer_into(ticket, error, [&] { return self(provider).copy(to, from, length_bytes); });
}

std::int32_t copy_done(strait_provider* provider, std::uint64_t ticket) {
  return self(provider).copy_done(ticket);
}

std::int32_t export_fd(strait_provider* provider, std::uint64_t address, std::uint64_t length_bytes,
                       std::uint32_t flags, std::int32_t* fd, std::uint64_t* offset, strait_plugin_error* error) {
  if (fd == nullptr || offset == nullptr) return null_argument(error);
  if (flags != 0) {
    return answer(error, [&] {
      return Status(strait::fail(Code::unsupported, "soft accelerator: no export flags {:#x}", flags));
    });
  }
  return answer(
      error, [&] { return self(provider).export_fd(address, length_bytes); },
      [&](auto& made) {
        *fd = made->fd;
        *offset = made->offset;
      });
}

std::int32_t export_pages(strait_provider* provider, std::uint64_t address, std::uint64_t length_bytes,
                          std::int32_t* fd, std::uint64_t* offset, strait_plugin_error* error) {
  if (fd == nullptr || offset == nullptr) return null_argument(error);
  return answer(
      error, [&] { return self(provider).export_pages(address, length_bytes); },
      [&](auto& made) {
        *fd = made->fd;
        *offset = made->offset;
      });
}

std::int32_t memory_port(strait_provider* provider, strait_memory_port* out, strait_plugin_error* error) {
  if (provider == nullptr || out == nullptr) return null_argument(error);
  return strait_soft_memory_port(provider, out);
}

std::int32_t requirements(strait_provider* provider, std::uint32_t index, strait_requirement* out) {
  if (index != 0 || out == nullptr) return 0;
  const std::int32_t failed = answer(nullptr, [&]() -> Status {
    *out = {};
    put_text("/dev/udmabuf (Linux 4.20 or later)", out->what, sizeof out->what);
    out->serves = STRAIT_CAN_EXPORT_DMABUF;
    const std::string because = provider == nullptr ? "no provider is open" : self(provider).no_udmabuf_because();
    out->state = provider == nullptr ? STRAIT_REQUIREMENT_UNKNOWN
                 : because.empty()   ? STRAIT_REQUIREMENT_MET
                                     : STRAIT_REQUIREMENT_MISSING;
    put_text(because.empty() ? "exports are dma-bufs" : "exports are sealed memfds instead: " + because, out->text,
             sizeof out->text);
    return {};
  });
  return failed == 0 ? 1 : 0;
}

void close_fd(strait_provider* provider, std::int32_t fd) {
  self(provider).close_fd(fd);
}

void counters(strait_provider* provider, char* text, std::size_t capacity) {
  // Without a provider: what is left in the process after all of them closed.
  (void)answer(
      nullptr,
      [&] {
        return Result<std::string>(provider == nullptr ? Accelerator::process_counters() : self(provider).counters());
      },
      [&](auto& all) { put_text(*all, text, capacity); });
}

}  // namespace

extern "C" const strait_provider_ops* strait_provider_plugin(void) {
  static const strait_provider_ops ops = [] {
    strait_provider_ops all{};
    all.abi_version = STRAIT_PROVIDER_ABI;
    all.struct_size = sizeof(strait_provider_ops);
    all.kind = "soft";
    all.open = open_soft;
    all.close = close_soft;
    all.device_count = device_count;
    all.device_info = device_info;
    all.classify = classify;
    all.allocate = allocate;
    all.free = free_memory;
    all.copy = copy;
    all.copy_done = copy_done;
    all.export_fd = export_fd;
    all.close_fd = close_fd;
    all.counters = counters;
    all.export_pages = export_pages;
    all.watch = watch;
    all.unwatch = unwatch;
    all.requirements = requirements;
    all.memory_port = memory_port;
    return all;
  }();
  return &ops;
}
