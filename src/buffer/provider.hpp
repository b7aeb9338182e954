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
  bool optional{};     // Providers: where it answers Code::unsupported it is left out, and why is remembered
};

// Loads a shared library and takes its strait_provider_plugin. Code::unsupported names what is wrong with it.
[[nodiscard]] Result<Plugin> load_plugin(const std::string& path, std::string config = {});
// A struct the caller already has. It must outlive the provider.
[[nodiscard]] Result<Plugin> use_plugin(const strait_provider_ops* ops, std::string config = {});

// What a provider needs from the machine, and whether it is there.
struct Requirement {
  std::string what;
  std::uint32_t state = STRAIT_REQUIREMENT_UNKNOWN;
  std::uint32_t serves = 0;  // STRAIT_CAN_*; 0: everything
  std::string text;
};
// Also before open, and after one that failed (`provider` null then): why there is no such device here.
[[nodiscard]] std::vector<Requirement> requirements_of(const strait_provider_ops* ops, strait_provider* provider);

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
  [[nodiscard]] Result<RawFd> export_fd(Range range, std::uint32_t flags = 0);
  // The sealed memfd behind what export_fd gives, where that is a dma-buf; Code::unsupported otherwise. The same owner.
  [[nodiscard]] Result<RawFd> export_pages(Range range);
  void close_fd(std::int32_t fd);

  // The largest exportable range around an address; nothing where the provider knows no more than classify.
  [[nodiscard]] std::optional<strait_range> range_of(std::uint64_t address) const;
  // Who lives in the range now: the check on a cache hit. 0: unknown. Tens of nanoseconds.
  [[nodiscard]] std::uint64_t identity(Range range) const {
    return identity_ == nullptr ? identity_by_claim(range) : identity_(raw_, range.address, range.length_bytes);
  }

  // `call` runs on the freeing thread, once; see strait/plugin.h.
  [[nodiscard]] Result<std::uint64_t> watch(std::uint64_t address, strait_freed_callback call, void* context);
  void unwatch(std::uint64_t watch);

  // handle.fd, where there is one, goes back with close_fd.
  [[nodiscard]] Result<strait_ipc_handle> ipc_export(Range range);
  [[nodiscard]] Result<std::uint64_t> ipc_open(std::uint32_t device, const strait_ipc_handle& handle);
  [[nodiscard]] Status ipc_close(std::uint64_t address);

  [[nodiscard]] Result<void*> map_cpu(Range range);
  void unmap_cpu(void* cpu_address);

  enum class Advised { done = STRAIT_ADVICE_DONE, ignored, unsupported };
  // Advice of a provider without the function: unsupported, which is no failure.
  [[nodiscard]] Result<Advised> advise(Range range, std::uint32_t advice, std::uint32_t place);

  struct Flush {
    std::uint32_t need = STRAIT_FLUSH_UNKNOWN;
    bool done = false;
    std::string text;
  };
  [[nodiscard]] Result<Flush> flush(std::uint32_t device, bool perform);
  [[nodiscard]] std::vector<Requirement> requirements() const { return requirements_of(plugin_.ops, raw_); }
  // Whole pages of host memory for every device of it; the address at which `device` finds them. HostPages counts.
  [[nodiscard]] Result<std::uint64_t> reach_host(std::uint32_t device, Range pages, std::uint32_t flags);
  [[nodiscard]] Status release_host(Range pages);
  // Code::unsupported where the memory is reached by descriptor or by plain loads only.
  [[nodiscard]] Result<strait_memory_port> memory_port();
  // The same, kept with the provider for those who hand it on; null where there is none.
  [[nodiscard]] const strait_memory_port* port() const { return port_ ? &*port_ : nullptr; }

  // Asked of the driver anew: free_bytes changes.
  [[nodiscard]] std::uint64_t free_bytes(std::uint32_t device) const;
  [[nodiscard]] std::string counters() const;  // "opens=1,allocations=3,..."

 private:
  Provider(Plugin plugin, strait_provider* raw);
  [[nodiscard]] Status read_devices();
  [[nodiscard]] Error lacks(const char* what) const;
  [[nodiscard]] std::uint64_t identity_by_claim(Range range) const;

  Plugin plugin_;
  strait_provider_ops ops_{};  // a copy of the plug-in's struct; what its shorter struct lacks is null here
  strait_provider* raw_;
  std::uint64_t (*identity_)(strait_provider*, std::uint64_t, std::uint64_t) = nullptr;  // beside raw_: one cache line
  std::string kind_;
  std::vector<Device> devices_;
  std::optional<strait_memory_port> port_;
};

}  // namespace strait::buffer
