// SPDX-License-Identifier: Apache-2.0
// HostProvider: memory that strait itself allocated for the CPU, as sealed memfds. The C face is made by Face.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <string>
#include <string_view>

#include "base/counters.hpp"
#include "base/error.hpp"
#include "buffer/face.hpp"
#include "buffer/opened_handles.hpp"
#include "sys/fd.hpp"
#include "sys/fork.hpp"
#include "sys/mapping.hpp"

namespace strait::buffer {

class HostProvider {
 public:
  [[nodiscard]] static Result<std::unique_ptr<HostProvider>> open(std::string_view config);
  ~HostProvider();

  [[nodiscard]] bool in_child() const { return mark_.in_child(); }
  [[nodiscard]] std::uint32_t device_count() const { return 1; }
  [[nodiscard]] Status device_info(std::uint32_t device, strait_device_info& out) const;
  [[nodiscard]] bool classify(std::uint64_t address, strait_claim& out) const;
  [[nodiscard]] std::uint64_t identity(std::uint64_t address, std::uint64_t length_bytes) const;
  [[nodiscard]] Result<std::uint64_t> watch(std::uint64_t address, strait_freed_callback call, void* context);
  void unwatch(std::uint64_t watch);

  [[nodiscard]] Result<std::uint64_t> allocate(std::uint32_t device, std::uint64_t length_bytes);
  [[nodiscard]] Status free(std::uint64_t address);
  [[nodiscard]] Result<std::uint64_t> copy(std::uint64_t to, std::uint64_t from, std::uint64_t length_bytes);
  [[nodiscard]] std::int32_t copy_done(std::uint64_t ticket) const;

  // A NIC registers host memory by its address; the descriptor is for engines and processes that map what they read.
  [[nodiscard]] Result<ExportedRange> export_fd(std::uint64_t address, std::uint64_t length_bytes, std::uint32_t flags);
  void close_fd(std::int32_t fd);
  [[nodiscard]] Result<strait_ipc_handle> ipc_export(std::uint64_t address, std::uint64_t length_bytes);
  [[nodiscard]] Result<std::uint64_t> ipc_open(std::uint32_t device, const strait_ipc_handle& handle);
  [[nodiscard]] Status ipc_close(std::uint64_t address);

  [[nodiscard]] Result<void*> map_cpu(std::uint64_t address, std::uint64_t length_bytes) const;
  void unmap_cpu(void*) const {}
  [[nodiscard]] Result<std::uint32_t> advise(std::uint64_t address, std::uint64_t length_bytes, std::uint32_t advice,
                                             std::uint32_t place);
  [[nodiscard]] Result<strait_flush_need> flush(std::uint32_t device, bool perform) const;
  [[nodiscard]] static bool requirement(HostProvider* open, std::uint32_t index, strait_requirement& out);
  [[nodiscard]] std::string counters() const;

 private:
  [[nodiscard]] Result<std::uint32_t> own_pages(std::uint64_t address, std::uint64_t length_bytes);
  struct Allocation {
    sys::Fd memfd;
    sys::Mapping mapping;
    std::uint64_t length_bytes = 0;
    std::uint64_t identity = 0;
  };
  struct Watch {
    std::uint64_t base = 0;
    strait_freed_callback call = nullptr;
    void* context = nullptr;
  };
  HostProvider(ProcessToken token, std::size_t idle_handles) : token_(token), opened_(idle_handles) {}
  // Null: not in a live allocation of ours, or past its end.
  [[nodiscard]] const Allocation* find_locked(std::uint64_t address, std::uint64_t length_bytes,
                                              std::uint64_t& base) const;
  [[nodiscard]] Result<sys::Fd> lend(std::uint64_t address, std::uint64_t length_bytes, std::uint64_t& offset,
                                     std::uint64_t& length_of_all, std::uint64_t& identity);

  const sys::ForkMark mark_;
  const ProcessToken token_;
  mutable std::shared_mutex mutex_;
  std::map<std::uint64_t, Allocation> live_;
  std::uint64_t last_identity_ = 0;
  std::mutex watch_mutex_;  // held while callbacks run: unwatch then waits for them
  std::map<std::uint64_t, Watch> watches_;
  std::uint64_t last_watch_ = 0;
  mutable std::mutex fds_mutex_;
  std::set<std::int32_t> fds_;  // given out and not yet back
  OpenedHandles opened_;
  Counter allocations_, frees_, exports_;
};

}  // namespace strait::buffer
