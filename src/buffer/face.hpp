// SPDX-License-Identifier: Apache-2.0
// Face: the C struct of a provider that is written as a C++ class. Nothing thrown crosses, null outputs are refused,
// and a forked child is told that the provider is not its own.
//
// The class has open, device_count, device_info, classify and in_child; every other function is in the struct exactly
// when the class has it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/plugin_answer.hpp"
#include "strait/plugin.h"

namespace strait::buffer {

struct ExportedRange {
  std::int32_t fd = -1;
  std::uint64_t offset = 0;
};

template <class P>
class Face {
 public:
  [[nodiscard]] static strait_provider_ops ops(const char* kind) {
    strait_provider_ops all{};
    all.abi_version = STRAIT_PROVIDER_ABI;
    all.struct_size = sizeof all;
    all.kind = kind;
    all.open = open;
    all.close = [](strait_provider* provider) { delete &self(provider); };
    all.device_count = [](strait_provider* provider) { return self(provider).device_count(); };
    all.device_info = device_info;
    all.classify = [](strait_provider* provider, std::uint64_t address, strait_claim* out) -> std::int32_t {
      return !self(provider).in_child() && self(provider).classify(address, *out) ? 1 : 0;
    };
    all.counters = counters;
    if constexpr (requires { &P::allocate; }) all.allocate = allocate;
    if constexpr (requires { &P::free; }) all.free = free;
    if constexpr (requires { &P::copy; }) all.copy = copy;
    if constexpr (requires { &P::copy_done; }) all.copy_done = copy_done;
    if constexpr (requires { &P::export_fd; }) all.export_fd = export_fd;
    if constexpr (requires { &P::close_fd; }) {
      all.close_fd = [](strait_provider* provider, std::int32_t fd) {
        if (!self(provider).in_child()) self(provider).close_fd(fd);
      };
    }
    if constexpr (requires { &P::range; }) {
      all.range = [](strait_provider* provider, std::uint64_t address, strait_range* out) -> std::int32_t {
        return !self(provider).in_child() && self(provider).range(address, *out) ? 1 : 0;
      };
    }
    if constexpr (requires { &P::identity; }) {
      all.identity = [](strait_provider* provider, std::uint64_t address, std::uint64_t length_bytes) {
        return self(provider).in_child() ? 0 : self(provider).identity(address, length_bytes);
      };
    }
    if constexpr (requires { &P::watch; }) all.watch = watch;
    if constexpr (requires { &P::unwatch; }) {
      all.unwatch = [](strait_provider* provider, std::uint64_t watched) {
        if (!self(provider).in_child()) self(provider).unwatch(watched);
      };
    }
    if constexpr (requires { &P::ipc_export; }) all.ipc_export = ipc_export;
    if constexpr (requires { &P::ipc_open; }) all.ipc_open = ipc_open;
    if constexpr (requires { &P::ipc_close; }) all.ipc_close = ipc_close;
    if constexpr (requires { &P::map_cpu; }) all.map_cpu = map_cpu;
    if constexpr (requires { &P::unmap_cpu; }) {
      all.unmap_cpu = [](strait_provider* provider, void* cpu_address) {
        if (!self(provider).in_child()) self(provider).unmap_cpu(cpu_address);
      };
    }
    if constexpr (requires { &P::advise; }) all.advise = advise;
    if constexpr (requires { &P::flush; }) all.flush = flush;
    if constexpr (requires { &P::requirement; }) all.requirements = requirements;
    if constexpr (requires { &P::memory_port; }) all.memory_port = memory_port;
    if constexpr (requires { &P::reach_host; }) all.reach_host = reach_host;
    if constexpr (requires { &P::release_host; }) all.release_host = release_host;
    return all;
  }

 private:
  static P& self(strait_provider* provider) { return *reinterpret_cast<P*>(provider); }

  static Status null_argument() { return fail(Code::invalid, "a required argument is null"); }

  // `call` gives a Result whose value goes to `out`.
  template <class T, class Call>
  static std::int32_t into(strait_provider* provider, T* out, strait_plugin_error* error, Call call) noexcept {
    if (provider == nullptr || out == nullptr) return plugin::answer(error, null_argument);
    if (self(provider).in_child()) return plugin::answer(error, gone);
    return plugin::answer_into(out, error, [&] { return call(self(provider)); });
  }
  template <class Call>
  static std::int32_t only(strait_provider* provider, strait_plugin_error* error, Call call) noexcept {
    if (provider == nullptr) return plugin::answer(error, null_argument);
    if (self(provider).in_child()) return plugin::answer(error, gone);
    return plugin::answer(error, [&] { return call(self(provider)); });
  }
  static Status gone() {
    return fail(Code::gone, "this memory provider belongs to the process that opened it, not to its forked child");
  }

  static std::int32_t open(const char* config, strait_provider** out, strait_plugin_error* error) {
    if (out == nullptr) return plugin::answer(error, null_argument);
    return plugin::answer(
        error, [&] { return P::open(config == nullptr ? std::string_view() : std::string_view(config)); },
        [&](auto& opened) { *out = reinterpret_cast<strait_provider*>(opened->release()); });
  }
  static std::int32_t device_info(strait_provider* provider, std::uint32_t device, strait_device_info* out) {
    if (out == nullptr) return plugin::answer(nullptr, null_argument);
    return only(provider, nullptr, [&](P& p) { return p.device_info(device, *out); });
  }
  static std::int32_t allocate(strait_provider* provider, std::uint32_t device, std::uint64_t length_bytes,
                               std::uint64_t* address, strait_plugin_error* error) {
    return into(provider, address, error, [&](P& p) { return p.allocate(device, length_bytes); });
  }
  static std::int32_t free(strait_provider* provider, std::uint64_t address, strait_plugin_error* error) {
    return only(provider, error, [&](P& p) { return p.free(address); });
  }
  static std::int32_t copy(strait_provider* provider, std::uint64_t to, std::uint64_t from, std::uint64_t length_bytes,
                           std::uint64_t* ticket, strait_plugin_error* error) {
    return into(provider, ticket, error, [&](P& p) { return p.copy(to, from, length_bytes); });
  }
  static std::int32_t copy_done(strait_provider* provider, std::uint64_t ticket) {
    if (self(provider).in_child()) return -static_cast<std::int32_t>(Code::gone);
    return self(provider).copy_done(ticket);
  }
  static std::int32_t export_fd(strait_provider* provider, std::uint64_t address, std::uint64_t length_bytes,
                                std::uint32_t flags, std::int32_t* fd, std::uint64_t* offset,
                                strait_plugin_error* error) {
    if (fd == nullptr || offset == nullptr) return plugin::answer(error, null_argument);
    ExportedRange made;
    const std::int32_t code =
        into(provider, &made, error, [&](P& p) { return p.export_fd(address, length_bytes, flags); });
    if (code != 0) return code;
    *fd = made.fd;
    *offset = made.offset;
    return 0;
  }
  static void counters(strait_provider* provider, char* text, std::size_t capacity) {
    (void)plugin::answer(
        nullptr, [&] { return Result<std::string>(self(provider).in_child() ? "" : self(provider).counters()); },
        [&](auto& all) { plugin::put_text(*all, text, capacity); });
  }
  static std::int32_t watch(strait_provider* provider, std::uint64_t address, strait_freed_callback call, void* context,
                            std::uint64_t* watched, strait_plugin_error* error) {
    if (call == nullptr) return plugin::answer(error, null_argument);
    return into(provider, watched, error, [&](P& p) { return p.watch(address, call, context); });
  }
  static std::int32_t ipc_export(strait_provider* provider, std::uint64_t address, std::uint64_t length_bytes,
                                 strait_ipc_handle* out, strait_plugin_error* error) {
    return into(provider, out, error, [&](P& p) { return p.ipc_export(address, length_bytes); });
  }
  static std::int32_t ipc_open(strait_provider* provider, std::uint32_t device, const strait_ipc_handle* handle,
                               std::uint64_t* address, strait_plugin_error* error) {
    if (handle == nullptr) return plugin::answer(error, null_argument);
    return into(provider, address, error, [&](P& p) { return p.ipc_open(device, *handle); });
  }
  static std::int32_t ipc_close(strait_provider* provider, std::uint64_t address, strait_plugin_error* error) {
    return only(provider, error, [&](P& p) { return p.ipc_close(address); });
  }
  static std::int32_t map_cpu(strait_provider* provider, std::uint64_t address, std::uint64_t length_bytes,
                              void** cpu_address, strait_plugin_error* error) {
    return into(provider, cpu_address, error, [&](P& p) { return p.map_cpu(address, length_bytes); });
  }
  static std::int32_t advise(strait_provider* provider, std::uint64_t address, std::uint64_t length_bytes,
                             std::uint32_t advice, std::uint32_t place, std::uint32_t* answer,
                             strait_plugin_error* error) {
    return into(provider, answer, error, [&](P& p) { return p.advise(address, length_bytes, advice, place); });
  }
  static std::int32_t flush(strait_provider* provider, std::uint32_t device, std::uint32_t perform,
                            strait_flush_need* out, strait_plugin_error* error) {
    return into(provider, out, error, [&](P& p) { return p.flush(device, perform != 0); });
  }
  static std::int32_t requirements(strait_provider* provider, std::uint32_t index, strait_requirement* out) {
    if (out == nullptr) return 0;
    try {
      return P::requirement(provider == nullptr ? nullptr : &self(provider), index, *out) ? 1 : 0;
    } catch (...) {
      return 0;
    }
  }
  static std::int32_t reach_host(strait_provider* provider, std::uint32_t device, void* host,
                                 std::uint64_t length_bytes, std::uint32_t flags, std::uint64_t* device_address,
                                 strait_plugin_error* error) {
    return into(provider, device_address, error, [&](P& p) { return p.reach_host(device, host, length_bytes, flags); });
  }
  static std::int32_t release_host(strait_provider* provider, void* host, strait_plugin_error* error) {
    return only(provider, error, [&](P& p) { return p.release_host(host); });
  }
  static std::int32_t memory_port(strait_provider* provider, strait_memory_port* out, strait_plugin_error* error) {
    return into(provider, out, error, [&](P& p) { return p.memory_port(); });
  }
};

}  // namespace strait::buffer
