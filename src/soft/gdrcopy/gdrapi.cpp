// SPDX-License-Identifier: Apache-2.0
// libgdrapi.so.2 in software: NVIDIA's gdrcopy, which pins device memory in pages of 64 KiB and maps it for the CPU.
// The memory is what libcuda.so.1 in software has announced to the machine's kernel, and may be pinned if p2p pages of
// it could be had. Answers are 0 or an errno. gdr_get_info is not here: nothing that we can check says what its struct
// is.
//
// STRAIT_SOFT_WINDOW_NS, as it is when the library is opened: how long each of its copies takes at least, for a machine
// whose window is slow.
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "soft/accel/spec.hpp"
#include "soft/kernel/driver.h"
#include "sys/clock.hpp"
#include "sys/fd.hpp"
#include "sys/files.hpp"
#include "sys/fork.hpp"
#include "sys/mapping.hpp"

#define STRAIT_GDR_API extern "C" __attribute__((visibility("default")))

namespace strait::soft::gdrcopy {
namespace {

constexpr std::uint64_t kGpuPageBytes = 65536;
constexpr std::uint64_t kStepBytes = 256;  // allocations begin at multiples of it

struct PinnedMemory {
  sys::Fd file;
  std::uint64_t offset = 0;
  std::uint64_t length_bytes = 0;
  sys::Mapping window;  // while it is mapped
};
struct Session {
  std::int64_t copy_ns = 0;
  std::map<unsigned long, PinnedMemory> pinned;
};
struct Sessions {
  const sys::ForkMark mark;
  std::mutex mutex;
  std::map<void*, Session> all;
  unsigned long last = 0;
};

// Never destroyed: a program may end with memory pinned.
Sessions& sessions() {
  static auto* const one = new Sessions;
  return *one;
}

// Announced memory that begins in the page at `address`, or reaches into it.
bool find_in_page(std::uint64_t address, strait_soft_driver_memory& out) {
  for (std::uint64_t at = address; at < address + kGpuPageBytes; at += kStepBytes) {
    out = {};
    out.struct_size = sizeof out;
    if (strait_soft_driver_find(at, &out) == 1) return true;
  }
  return false;
}

// Every page has pinnable memory in it, and all of them lie one behind the other in one file.
int pin_memory(std::uint64_t address, std::uint64_t length_bytes, PinnedMemory& out) {
  for (std::uint64_t at = address; at < address + length_bytes; at += kGpuPageBytes) {
    strait_soft_driver_memory memory{};
    if (!find_in_page(at, memory) || memory.vendor != STRAIT_SOFT_VENDOR_CUDA ||
        (memory.flags & STRAIT_SOFT_P2P_CAPABLE) == 0)
      return EINVAL;
    const std::uint64_t start = memory.memfd_offset + address - memory.base;
    if (start > INT64_MAX) return EINVAL;  // before the file's first byte
    if (!out.file.valid()) {
      auto copy = sys::Fd::copy_of(memory.memfd);
      if (!copy) return copy.error().sys_errno;
      out.file = std::move(*copy);
      out.offset = start;
    }
    if (sys::file_id(out.file.get()) != sys::file_id(memory.memfd) || out.offset != start) return EINVAL;
  }
  const std::int64_t whole = sys::file_bytes(out.file.get());
  if (whole < 0 || out.offset + length_bytes > static_cast<std::uint64_t>(whole)) return EINVAL;
  out.length_bytes = length_bytes;
  return 0;
}

// A call with the table locked. Nothing here works in a forked child.
template <class Call>
int with_session(void* gdr, Call call) {
  Sessions& table = sessions();
  if (table.mark.in_child()) return EPERM;
  const std::lock_guard lock(table.mutex);
  const auto found = table.all.find(gdr);
  return found == table.all.end() ? EINVAL : call(found->second);
}
template <class Call>
int with_pinned(void* gdr, unsigned long handle, Call call) {
  return with_session(gdr, [&](Session& session) {
    const auto found = session.pinned.find(handle);
    return found == session.pinned.end() ? EINVAL : call(session, found->second);
  });
}

int move_bytes(unsigned long handle, const void* mapped, void* to, const void* from, std::size_t length_bytes) {
  Sessions& table = sessions();
  if (table.mark.in_child()) return EPERM;
  const std::int64_t begun = sys::now_ns();
  const std::lock_guard lock(table.mutex);
  for (const auto& [gdr, session] : table.all) {
    const auto found = session.pinned.find(handle);
    if (found == session.pinned.end()) continue;
    const sys::Mapping& window = found->second.window;
    const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(mapped) - window.data());
    if (!window.valid() || offset > window.size() || length_bytes > window.size() - offset) return EINVAL;
    std::memcpy(to, from, length_bytes);
    while (session.copy_ns != 0 && sys::now_ns() - begun < session.copy_ns) continue;
    return 0;
  }
  return EINVAL;
}

}  // namespace

struct Handle {  // gdr_mh_t
  unsigned long h;
};

STRAIT_GDR_API void* gdr_open() {
  Sessions& table = sessions();
  if (table.mark.in_child() || accel::spec_from_environment(accel::Vendor::cuda).devices == 0) return nullptr;
  const std::lock_guard lock(table.mutex);
  auto* const made = new char;  // an address that is nobody else's
  const char* const slow = std::getenv("STRAIT_SOFT_WINDOW_NS");
  table.all[made].copy_ns = slow == nullptr ? 0 : std::strtoll(slow, nullptr, 10);
  return made;
}

STRAIT_GDR_API int gdr_close(void* gdr) {
  return with_session(gdr, [&](Session&) {
    sessions().all.erase(gdr);  // and unpins
    delete static_cast<char*>(gdr);
    return 0;
  });
}

STRAIT_GDR_API int gdr_pin_buffer_v2(void* gdr, unsigned long address, std::size_t length_bytes, std::uint32_t flags,
                                     Handle* handle) {
  constexpr std::uint32_t kForcePcie = 1;
  if (handle == nullptr || (flags & ~kForcePcie) != 0 || address % kGpuPageBytes != 0 || length_bytes == 0 ||
      length_bytes % kGpuPageBytes != 0 || length_bytes > UINT64_MAX - address)
    return EINVAL;
  return with_session(gdr, [&](Session& session) {
    PinnedMemory pinned;
    if (const int failed = pin_memory(address, length_bytes, pinned); failed != 0) return failed;
    handle->h = ++sessions().last;
    session.pinned.emplace(handle->h, std::move(pinned));
    return 0;
  });
}

STRAIT_GDR_API int gdr_pin_buffer(void* gdr, unsigned long address, std::size_t length_bytes, std::uint64_t,
                                  std::uint32_t, Handle* handle) {
  return gdr_pin_buffer_v2(gdr, address, length_bytes, 0, handle);
}

STRAIT_GDR_API int gdr_unpin_buffer(void* gdr, Handle handle) {
  return with_pinned(gdr, handle.h, [&](Session& session, PinnedMemory&) {
    session.pinned.erase(handle.h);
    return 0;
  });
}

STRAIT_GDR_API int gdr_map_v2(void* gdr, Handle handle, void** mapped, std::size_t length_bytes, int flags) {
  constexpr int kLastKind = 3;  // write-combined, cached, device: here all the same
  return with_pinned(gdr, handle.h, [&](Session&, PinnedMemory& pinned) {
    if (mapped == nullptr || flags < 0 || flags > kLastKind || length_bytes == 0 || length_bytes > pinned.length_bytes)
      return EINVAL;
    if (pinned.window.valid()) return EAGAIN;  // once
    auto window = sys::map_file(pinned.file.get(), pinned.offset, sys::round_up(length_bytes, sys::page_bytes()),
                                sys::Protect::read_write);
    if (!window) return window.error().sys_errno;
    pinned.window = std::move(*window);
    *mapped = pinned.window.data();
    return 0;
  });
}

STRAIT_GDR_API int gdr_map(void* gdr, Handle handle, void** mapped, std::size_t length_bytes) {
  return gdr_map_v2(gdr, handle, mapped, length_bytes, 0);
}

STRAIT_GDR_API int gdr_unmap(void* gdr, Handle handle, void* mapped, std::size_t) {
  return with_pinned(gdr, handle.h, [&](Session&, PinnedMemory& pinned) {
    if (!pinned.window.valid() || pinned.window.data() != mapped) return EINVAL;
    pinned.window.reset();
    return 0;
  });
}

STRAIT_GDR_API int gdr_copy_to_mapping(Handle handle, void* mapped, const void* host, std::size_t length_bytes) {
  return move_bytes(handle.h, mapped, mapped, host, length_bytes);
}

STRAIT_GDR_API int gdr_copy_from_mapping(Handle handle, void* host, const void* mapped, std::size_t length_bytes) {
  return move_bytes(handle.h, mapped, host, mapped, length_bytes);
}

}  // namespace strait::soft::gdrcopy
