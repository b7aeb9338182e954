// SPDX-License-Identifier: Apache-2.0
// HostPages: which host pages the devices of a vendor may touch because of us, and how often each is needed.
//
// A vendor's driver registers whole pages and refuses to register one twice, while queues, doorbells and signals of
// several Nodes may lie on the same page. So there is one table per vendor and process. A request registers only the
// pages that are missing; a page goes when the last who needed it lets go, in reverse order of registration.
//
// Threads: any. The table outlives every Hold.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "buffer/claim.hpp"
#include "buffer/provider.hpp"

namespace strait::buffer {

class HostPages {
 public:
  // Who registers: a Provider, or the inside of one.
  struct Way {
    void* self = nullptr;
    Result<std::uint64_t> (*reach)(void* self, std::uint32_t device, Range pages, std::uint32_t flags) = nullptr;
    Status (*release)(void* self, Range pages) = nullptr;
    std::string (*name)(void* self, std::uint32_t device) = nullptr;
  };
  // Host memory that a device reaches as long as this lives. Given back through the provider it was asked of, which
  // must still be open, before the memory is unmapped.
  class Hold {
   public:
    Hold() = default;
    Hold(Hold&& other) noexcept
        : pages_(std::exchange(other.pages_, nullptr)),
          way_(other.way_),
          starts_(std::move(other.starts_)),
          device_address_(other.device_address_) {}
    Hold& operator=(Hold&& other) noexcept {
      if (this != &other) {
        reset();
        pages_ = std::exchange(other.pages_, nullptr);
        way_ = other.way_;
        starts_ = std::move(other.starts_);
        device_address_ = other.device_address_;
      }
      return *this;
    }
    ~Hold() { reset(); }
    void reset();
    [[nodiscard]] bool valid() const { return pages_ != nullptr; }
    // Of the first byte that was asked for.
    [[nodiscard]] std::uint64_t device_address() const { return device_address_; }

   private:
    friend class HostPages;
    HostPages* pages_ = nullptr;
    Way way_;
    std::vector<std::uint64_t> starts_;  // of the registrations it counts on, in the order it took them
    std::uint64_t device_address_ = 0;
  };

  HostPages() = default;
  HostPages(const HostPages&) = delete;
  HostPages& operator=(const HostPages&) = delete;
  // The table of a vendor's driver in this process.
  [[nodiscard]] static HostPages& of_process(const std::string& kind);

  [[nodiscard]] static Way way_of(Provider& provider);
  // `flags`: STRAIT_HOST_*. All of the range or nothing: after a failure the table is as before.
  [[nodiscard]] Result<Hold> reach(Provider& provider, std::uint32_t device, Range range, std::uint32_t flags);
  [[nodiscard]] Result<Hold> reach(const Way& way, std::uint32_t device, Range range, std::uint32_t flags);

  struct Counts {
    std::uint64_t registered = 0, released = 0, now = 0;
  };
  [[nodiscard]] Counts counts() const;

 private:
  struct Registered {
    std::uint64_t length_bytes = 0;
    std::uint64_t device_address = 0;
    std::uint32_t flags = 0;
    std::uint32_t uses = 0;
  };
  using Table = std::map<std::uint64_t, Registered>;
  [[nodiscard]] Status take_locked(Hold& hold, std::uint32_t device, Range pages, std::uint32_t flags);
  void release_locked(Hold& hold);

  mutable std::mutex mutex_;
  Table table_;  // by first address; ranges do not overlap
  Counts counts_;
};

}  // namespace strait::buffer
