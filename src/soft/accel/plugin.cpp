// SPDX-License-Identifier: Apache-2.0
// The C face of the software accelerator: no exception leaves, no output is written on failure.
#include "soft/accel/plugin.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <new>
#include <string>

#include "soft/accel/accelerator.hpp"

namespace {

using strait::Code;
using strait::Error;
using strait::Result;
using strait::Status;
using strait::soft::accel::Accelerator;

Accelerator& self(strait_provider* provider) {
  return *reinterpret_cast<Accelerator*>(provider);
}

void put_text(char* out, std::size_t capacity, std::string_view text) {
  if (out == nullptr || capacity == 0) return;
  const std::size_t n = std::min(text.size(), capacity - 1);
  std::memcpy(out, text.data(), n);
  out[n] = '\0';
}

std::int32_t report(const Error& error, strait_plugin_error* out) {
  if (out != nullptr) {
    out->code = static_cast<std::int32_t>(error.code);
    out->sys_errno = error.sys_errno;
    put_text(out->text, sizeof out->text, error.text);
  }
  return static_cast<std::int32_t>(error.code);
}

// Runs `body`, hands its value to `use`, and turns what goes wrong into a code.
template <class Body, class Use>
std::int32_t answer(strait_plugin_error* error, Body body, Use use) noexcept {
  try {
    auto result = body();
    if (!result) return report(result.error(), error);
    use(result);
    return 0;
  } catch (const std::bad_alloc&) {
    return report(Error{Code::limit, ENOMEM, 0, "out of memory", {}}, error);
  } catch (const std::exception& thrown) {
    return report(Error{Code::system, 0, 0, thrown.what(), {}}, error);
  }
}

constexpr auto kNothing = [](const auto&) {};

std::int32_t null_argument(strait_plugin_error* error) {
  return answer(
      error, [] { return Status(strait::fail(Code::invalid, "soft accelerator: a required argument is null")); },
      kNothing);
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
  return answer(
      nullptr, [&] { return self(provider).device_info(device, *out); }, kNothing);
}

std::int32_t classify(strait_provider* provider, std::uint64_t address, strait_claim* out) {
  return self(provider).classify(address, *out) ? 1 : 0;
}

std::int32_t allocate(strait_provider* provider, std::uint32_t device, std::uint64_t length_bytes,
                      std::uint64_t* address, strait_plugin_error* error) {
  if (address == nullptr) return null_argument(error);
  return answer(
      error, [&] { return self(provider).allocate(device, length_bytes); }, [&](auto& made) { *address = *made; });
}

std::int32_t free_memory(strait_provider* provider, std::uint64_t address, strait_plugin_error* error) {
  return answer(
      error, [&] { return self(provider).free(address); }, kNothing);
}

std::int32_t copy(strait_provider* provider, std::uint64_t to, std::uint64_t from, std::uint64_t length_bytes,
                  std::uint64_t* ticket, strait_plugin_error* error) {
  if (ticket == nullptr) return null_argument(error);
  return answer(
      error, [&] { return self(provider).copy(to, from, length_bytes); }, [&](auto& queued) { *ticket = *queued; });
}

std::int32_t copy_done(strait_provider* provider, std::uint64_t ticket) {
  return self(provider).copy_done(ticket);
}

std::int32_t export_fd(strait_provider* provider, std::uint64_t address, std::uint64_t length_bytes, std::int32_t* fd,
                       std::uint64_t* offset, strait_plugin_error* error) {
  if (fd == nullptr || offset == nullptr) return null_argument(error);
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
      [&](auto& all) { put_text(text, capacity, *all); });
}

}  // namespace

extern "C" const strait_provider_ops* strait_provider_plugin(void) {
  static const strait_provider_ops ops{
      .abi_version = STRAIT_PLUGIN_ABI,
      .struct_size = sizeof(strait_provider_ops),
      .kind = "soft",
      .open = open_soft,
      .close = close_soft,
      .device_count = device_count,
      .device_info = device_info,
      .classify = classify,
      .allocate = allocate,
      .free = free_memory,
      .copy = copy,
      .copy_done = copy_done,
      .export_fd = export_fd,
      .close_fd = close_fd,
      .counters = counters,
      .export_pages = export_pages,
  };
  return &ops;
}
