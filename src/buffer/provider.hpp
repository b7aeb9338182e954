// SPDX-License-Identifier: Apache-2.0
// Provider: one opened memory provider behind its C struct (strait/plugin.h); built-in and third-party ones alike.
//
// Threads: everything may be called from any thread; nothing here changes after open. The destructor closes it: memory,
// descriptors and copies that came from it must have been given back before.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "buffer/claim.hpp"
#include "strait/plugin.h"
#include "sys/clock.hpp"
#include "sys/library.hpp"

namespace strait::buffer {

// Where a provider comes from. Made by load_plugin or use_plugin, which have checked the struct.
struct Plugin {
  sys::Library library;  // empty when the struct was handed in; declared first: unloaded after everything else
  const strait_provider_ops* ops = nullptr;
  std::string origin;  // for error texts: the path, or "handed in"
  std::string config;  // "name=value,..."
};

// Loads a shared library and takes its strait_provider_plugin. Code::unsupported names what is wrong with it.
[[nodiscard]] Result<Plugin> load_plugin(const std::string& path, std::string config = {});
// A struct the caller already has. It must outlive the provider.
[[nodiscard]] Result<Plugin> use_plugin(const strait_provider_ops* ops, std::string config = {});

class Provider {
 public:
  // Opens every device eagerly; fails here with the cause, and then nothing is left open.
  [[nodiscard]] static Result<std::unique_ptr<Provider>> open(Plugin plugin);
  Provider(const Provider&) = delete;
  Provider& operator=(const Provider&) = delete;
  ~Provider();

  [[nodiscard]] const std::string& kind() const { return kind_; }
  [[nodiscard]] std::span<const Device> devices() const { return devices_; }

  // Nothing when the address is not in one of its live allocations. Never touches the memory.
  [[nodiscard]] std::optional<strait_claim> classify(std::uint64_t address) const;
  [[nodiscard]] Result<std::uint64_t> allocate(std::uint32_t device, std::uint64_t length_bytes);
  [[nodiscard]] Status free(std::uint64_t address);

  // Queues a copy and returns its ticket; at least one of the addresses is this provider's, the other may be host
  // memory.
  [[nodiscard]] Result<std::uint64_t> start_copy(std::uint64_t to, std::uint64_t from, std::uint64_t length_bytes);
  // Code::timeout at the deadline: the copy then still goes on and still owns both ranges.
  [[nodiscard]] Status wait_copy(std::uint64_t ticket, sys::Deadline deadline);

  struct RawFd {
    std::int32_t fd = -1;
    std::uint64_t offset = 0;  // of the range's first byte in the file
  };
  // The fd belongs to the caller until close_fd. exports::ExportedFd owns one.
  [[nodiscard]] Result<RawFd> export_fd(Range range);
  // The sealed memfd behind what export_fd gives, where that is a dma-buf; Code::unsupported otherwise. The same owner.
  [[nodiscard]] Result<RawFd> export_pages(Range range);
  void close_fd(std::int32_t fd);

  [[nodiscard]] std::string counters() const;  // "opens=1,allocations=3,..."

 private:
  Provider(Plugin plugin, strait_provider* raw) : plugin_(std::move(plugin)), raw_(raw), kind_(plugin_.ops->kind) {}
  [[nodiscard]] Status read_devices();
  [[nodiscard]] Error lacks(const char* what) const;

  Plugin plugin_;
  strait_provider* raw_;
  std::string kind_;
  std::vector<Device> devices_;
};

}  // namespace strait::buffer
