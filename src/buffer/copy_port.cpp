// SPDX-License-Identifier: Apache-2.0
#include "buffer/copy_port.hpp"

#include <atomic>
#include <string>

namespace strait::buffer {
namespace {

constexpr std::int32_t port_code(Code code) {
  return static_cast<std::int32_t>(code);
}

CopyPort& port_of(void* context) {
  return *static_cast<CopyPort*>(context);
}

}  // namespace

template <class Call>
std::int32_t CopyPort::guarded(Call call) noexcept {
  if (in_child()) return port_code(Code::gone);
  try {
    const Status status = call();
    return status ? 0 : port_code(status.error().code);
  } catch (...) {
    return port_code(Code::limit);
  }
}

template <class Next>
std::int32_t CopyPort::change(std::uint64_t address, std::uint32_t width, std::uint64_t* old, Next next) noexcept {
  if ((width != 4 && width != 8) || address % width != 0 || old == nullptr) return port_code(Code::invalid);
  return guarded([&]() -> Status {
    const std::lock_guard lock(atomics_);
    std::uint64_t seen = 0;  // little endian: the low half is the 4-byte word
    STRAIT_CHECK(read(address, &seen, width));
    *old = seen;
    std::uint64_t wanted = seen;
    if (!next(seen, wanted) || wanted == seen) return {};
    return write(address, &wanted, width);
  });
}

Status CopyPort::prepare(Range pages) {
  const HostPages::Way way{
      this, [](void* self, std::uint32_t, Range missing, std::uint32_t) { return port_of(self).pin(missing); },
      [](void* self, Range all) -> Status {
        if (port_of(self).in_child()) return {};
        return port_of(self).unpin(all);
      },
      [](void* self, std::uint32_t) { return std::string(port_of(self).kind()); }};
  const std::lock_guard lock(prepared_mutex_);
  STRAIT_TRY(HostPages::Hold hold, HostPages::of_process(kind()).reach(way, 0, pages, 0));
  prepared_.emplace(pages.address, std::move(hold));
  return {};
}

void CopyPort::unpin_all() {
  const std::lock_guard lock(prepared_mutex_);
  prepared_.clear();
}

strait_memory_port CopyPort::port() {
  strait_memory_port port{};
  port.abi_version = STRAIT_PLUGIN_ABI;
  port.struct_size = sizeof port;
  port.context = this;
  port.read = [](void* context, std::uint64_t address, void* into, std::uint64_t length_bytes) {
    CopyPort& self = port_of(context);
    self.used_.add();
    return self.guarded([&] { return self.read(address, into, length_bytes); });
  };
  port.write = [](void* context, std::uint64_t address, const void* from, std::uint64_t length_bytes) {
    CopyPort& self = port_of(context);
    self.used_.add();
    return self.guarded([&] { return self.write(address, from, length_bytes); });
  };
  port.compare_swap = [](void* context, std::uint64_t address, std::uint32_t width, std::uint64_t compare,
                         std::uint64_t compare_mask, std::uint64_t swap, std::uint64_t swap_mask, std::uint64_t* old) {
    return port_of(context).change(address, width, old, [&](std::uint64_t seen, std::uint64_t& wanted) {
      const std::uint64_t word = width == 8 ? UINT64_MAX : UINT32_MAX;
      if (((seen ^ compare) & compare_mask & word) != 0) return false;
      wanted = (seen & ~swap_mask) | (swap & swap_mask);
      return true;
    });
  };
  port.fetch_add = [](void* context, std::uint64_t address, std::uint32_t width, std::uint64_t add,
                      std::uint64_t boundary, std::uint64_t* old) {
    return port_of(context).change(address, width, old, [&](std::uint64_t seen, std::uint64_t& wanted) {
      // The fields between the boundary bits are added each on their own: a carry out of a field's top bit is lost.
      const std::uint64_t inner = (seen & ~boundary) + (add & ~boundary);
      wanted = inner ^ ((seen ^ add) & boundary);
      return true;
    });
  };
  port.prepare = [](void* context, void* host, std::uint64_t length_bytes) {
    CopyPort& self = port_of(context);
    return self.guarded([&] { return self.prepare({reinterpret_cast<std::uint64_t>(host), length_bytes}); });
  };
  port.release = [](void* context, void* host) {
    CopyPort& self = port_of(context);
    (void)self.guarded([&]() -> Status {
      const std::lock_guard lock(self.prepared_mutex_);
      const auto found = self.prepared_.find(reinterpret_cast<std::uint64_t>(host));
      if (found != self.prepared_.end()) self.prepared_.erase(found);
      return {};
    });
  };
  port.start_read = [](void* context, std::uint64_t address, void* into, std::uint64_t length_bytes,
                       std::uint64_t* ticket) {
    CopyPort& self = port_of(context);
    self.used_.add();
    return self.guarded([&]() -> Status {
      STRAIT_TRY(*ticket, self.start(reinterpret_cast<std::uint64_t>(into), address, length_bytes));
      return {};
    });
  };
  port.start_write = [](void* context, std::uint64_t address, const void* from, std::uint64_t length_bytes,
                        std::uint64_t* ticket) {
    CopyPort& self = port_of(context);
    self.used_.add();
    return self.guarded([&]() -> Status {
      STRAIT_TRY(*ticket, self.start(address, reinterpret_cast<std::uint64_t>(from), length_bytes));
      return {};
    });
  };
  port.done = [](void* context, std::uint64_t ticket) {
    CopyPort& self = port_of(context);
    std::int32_t state = 0;
    const std::int32_t failed = self.guarded([&]() -> Status {
      state = self.done(ticket);
      return {};
    });
    return failed != 0 ? -failed : state;
  };
  // Every write is complete before it returns, or before `done` says so.
  port.order = [](void*) { std::atomic_thread_fence(std::memory_order_seq_cst); };
  return port;
}

}  // namespace strait::buffer
