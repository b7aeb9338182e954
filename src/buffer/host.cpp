// SPDX-License-Identifier: Apache-2.0
#include "buffer/host.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <shared_mutex>

#include "base/counters.hpp"
#include "base/error.hpp"
#include "sys/aligned.hpp"
#include "sys/fd.hpp"
#include "sys/mapping.hpp"

namespace strait::buffer {
namespace {

struct Allocation {
  sys::Fd memfd;
  sys::Mapping mapping;
  std::uint64_t length_bytes = 0;
  std::uint64_t identity = 0;
};

class Host {
 public:
  [[nodiscard]] bool classify(std::uint64_t address, strait_claim& out) const {
    const std::shared_lock lock(mutex_);
    auto after = live_.upper_bound(address);
    if (after == live_.begin()) return false;
    const auto& [base, allocation] = *std::prev(after);
    if (address - base >= allocation.length_bytes) return false;
    out = {base, allocation.length_bytes, allocation.identity, 0, kHostCapabilities | STRAIT_CAN_IDENTIFY};
    return true;
  }

  [[nodiscard]] Result<std::uint64_t> allocate(std::uint64_t length_bytes) {
    if (length_bytes == 0) return fail(Code::invalid, "cannot allocate 0 bytes of host memory");
    if (length_bytes > INT64_MAX / 2) {
      return fail(Code::limit, "{} bytes are more host memory than any machine has", length_bytes);
    }
    Allocation made;
    STRAIT_TRY(made.memfd,
               sys::make_sealed_memfd("strait host memory", sys::round_up(length_bytes, sys::page_bytes())));
    STRAIT_TRY(made.mapping, sys::map_file_aligned(made.memfd.get(), sys::round_up(length_bytes, sys::page_bytes())));
    made.length_bytes = length_bytes;
    const auto address = reinterpret_cast<std::uint64_t>(made.mapping.data());
    const std::unique_lock lock(mutex_);
    made.identity = ++last_identity_;
    live_.emplace(address, std::move(made));
    allocations_.add();
    return address;
  }

  [[nodiscard]] Status free(std::uint64_t address) {
    Allocation last;  // unmapped after the lock
    const std::unique_lock lock(mutex_);
    const auto found = live_.find(address);
    if (found == live_.end()) {
      return fail(Code::invalid, "{:#x} is not host memory that strait allocated: freed already, or somebody else's",
                  address);
    }
    last = std::move(found->second);
    live_.erase(found);
    frees_.add();
    return {};
  }

  // A descriptor of the pages behind [address, address + length_bytes), for engines that map what they read.
  [[nodiscard]] Result<sys::Fd> lend(std::uint64_t address, std::uint64_t length_bytes, std::uint64_t& offset) const {
    const std::shared_lock lock(mutex_);
    const auto after = live_.upper_bound(address);
    if (after != live_.begin()) {
      const auto& [base, allocation] = *std::prev(after);
      offset = address - base;
      if (offset < allocation.length_bytes && length_bytes <= allocation.length_bytes - offset) {
        return allocation.memfd.duplicate();
      }
    }
    return fail(Code::unsupported, "host memory that strait did not allocate has no descriptor");
  }

  [[nodiscard]] std::string counters() const {
    const std::shared_lock lock(mutex_);
    return fmt::format("allocations={},frees={},live_allocations={}", allocations_.load(), frees_.load(), live_.size());
  }

 private:
  mutable std::shared_mutex mutex_;
  std::map<std::uint64_t, Allocation> live_;
  std::uint64_t last_identity_ = 0;
  Counter allocations_;
  Counter frees_;
};

Host& self(strait_provider* provider) {
  return *reinterpret_cast<Host*>(provider);
}

std::int32_t report(const Error& error, strait_plugin_error* out) {
  if (out != nullptr) {
    out->code = static_cast<std::int32_t>(error.code);
    out->sys_errno = error.sys_errno;
    const std::size_t n = std::min(error.text.size(), sizeof out->text - 1);
    std::memcpy(out->text, error.text.data(), n);
    out->text[n] = '\0';
  }
  return static_cast<std::int32_t>(error.code);
}

template <class Body>
std::int32_t answer(strait_plugin_error* error, Body body) noexcept {
  try {
    const Status status = body();
    return status ? 0 : report(status.error(), error);
  } catch (const std::bad_alloc&) {
    return report(Error{Code::limit, ENOMEM, 0, "out of memory", {}}, error);
  }
}

std::int32_t host_open(const char*, strait_provider** out, strait_plugin_error* error) {
  return answer(error, [&]() -> Status {
    *out = reinterpret_cast<strait_provider*>(new Host);
    return {};
  });
}

void host_close(strait_provider* provider) {
  delete &self(provider);
}

std::int32_t host_device_info(strait_provider*, std::uint32_t, strait_device_info* out) {
  *out = {};
  std::copy(kHostDevice.begin(), kHostDevice.end(), out->name);
  constexpr std::string_view kText = "host memory";
  std::copy(kText.begin(), kText.end(), out->description);
  out->capabilities = kHostCapabilities | STRAIT_CAN_ALLOCATE | STRAIT_CAN_IDENTIFY;
  return 0;
}

std::int32_t host_classify(strait_provider* provider, std::uint64_t address, strait_claim* out) {
  return self(provider).classify(address, *out) ? 1 : 0;
}

std::int32_t host_allocate(strait_provider* provider, std::uint32_t, std::uint64_t length_bytes, std::uint64_t* address,
                           strait_plugin_error* error) {
  return answer(error, [&]() -> Status {
    STRAIT_TRY(*address, self(provider).allocate(length_bytes));
    return {};
  });
}

std::int32_t host_free(strait_provider* provider, std::uint64_t address, strait_plugin_error* error) {
  return answer(error, [&] { return self(provider).free(address); });
}

std::int32_t host_copy(strait_provider*, std::uint64_t to, std::uint64_t from, std::uint64_t length_bytes,
                       std::uint64_t* ticket, strait_plugin_error*) {
  std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), length_bytes);
  *ticket = 0;
  return 0;
}

std::int32_t host_export_fd(strait_provider* provider, std::uint64_t address, std::uint64_t length_bytes,
                            std::int32_t* fd, std::uint64_t* offset, strait_plugin_error* error) {
  return answer(error, [&]() -> Status {
    STRAIT_TRY(sys::Fd lent, self(provider).lend(address, length_bytes, *offset));
    *fd = lent.release();
    return {};
  });
}

void host_counters(strait_provider* provider, char* text, std::size_t capacity) {
  (void)answer(nullptr, [&]() -> Status {
    const std::string all = self(provider).counters();
    if (capacity != 0) text[all.copy(text, capacity - 1)] = '\0';
    return {};
  });
}

}  // namespace

const strait_provider_ops* host_provider_ops() {
  static const strait_provider_ops ops{
      .abi_version = STRAIT_PLUGIN_ABI,
      .struct_size = sizeof(strait_provider_ops),
      .kind = "host",
      .open = host_open,
      .close = host_close,
      .device_count = [](strait_provider*) { return std::uint32_t{1}; },
      .device_info = host_device_info,
      .classify = host_classify,
      .allocate = host_allocate,
      .free = host_free,
      .copy = host_copy,
      .copy_done = [](strait_provider*, std::uint64_t) { return std::int32_t{1}; },
      .export_fd = host_export_fd,  // a NIC registers host memory by its address; the descriptor is for mapping it
      .close_fd = [](strait_provider*, std::int32_t fd) { sys::Fd(fd).reset(); },
      .counters = host_counters,
      .export_pages = nullptr,  // export_fd is the memfd itself
  };
  return &ops;
}

}  // namespace strait::buffer
