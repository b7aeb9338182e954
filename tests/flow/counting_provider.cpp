// SPDX-License-Identifier: Apache-2.0
// A memory provider for tests: counts every call, fails where it is told to, puts memory where it is told to, and can
// keep its descriptors as Level Zero does. Device memory is a sealed memfd behind addresses the CPU may not touch.
#include "counting_provider.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>

#include "strait/plugin.h"

namespace {

counting_control control{};
std::mutex mutex;

struct Piece {
  std::uint64_t length_bytes;
  std::uint64_t identity;
  int memfd;
  int kept_fd;
};
std::map<std::uint64_t, Piece> pieces;
std::uint64_t last_identity = 0;
struct Watched {
  std::uint64_t base;
  strait_freed_callback call;
  void* context;
};
std::mutex watching;  // held while callbacks run: unwatch then waits for them
std::map<std::uint64_t, Watched> watches;
std::uint64_t last_watch = 0;

std::int32_t refuse(strait_plugin_error* error, const char* text) {
  if (error != nullptr) {
    error->code = 8;  // a device's
    std::snprintf(error->text, sizeof error->text, "%s", text);
  }
  return 8;
}

// A step of opening.
bool step_fails() {
  return ++control.calls == control.fail_call;
}

std::int32_t open_all(const char*, strait_provider** out, strait_plugin_error* error) {
  const std::lock_guard lock(mutex);
  if (step_fails()) return refuse(error, "injected fault: the driver does not open");
  ++control.opens;
  *out = reinterpret_cast<strait_provider*>(&control);
  return 0;
}

void close_all(strait_provider*) {
  const std::lock_guard lock(mutex);
  ++control.closes;
}

std::int32_t device_info(strait_provider*, std::uint32_t device, strait_device_info* out) {
  const std::lock_guard lock(mutex);
  if (step_fails()) return 8;
  std::snprintf(out->name, sizeof out->name, "counted:%u", device);
  out->capabilities = STRAIT_CAN_ALLOCATE | STRAIT_CAN_COPY | STRAIT_CAN_EXPORT_DMABUF | STRAIT_CAN_IDENTIFY;
  if (control.can_watch != 0) out->capabilities |= STRAIT_CAN_WATCH;
  out->software = 1;
  return 0;
}

Piece* piece_at(std::uint64_t address, std::uint64_t& base) {
  auto after = pieces.upper_bound(address);
  if (after == pieces.begin()) return nullptr;
  --after;
  base = after->first;
  return address - base < after->second.length_bytes ? &after->second : nullptr;
}

std::int32_t classify(strait_provider*, std::uint64_t address, strait_claim* out) {
  const std::lock_guard lock(mutex);
  std::uint64_t base = 0;
  const Piece* const piece = piece_at(address, base);
  if (piece == nullptr) return 0;
  out->base = base;
  out->length_bytes = piece->length_bytes;
  out->identity = piece->identity + control.bump_identity;
  out->sort = STRAIT_SORT_DEVICE;
  out->capabilities = STRAIT_CAN_COPY | STRAIT_CAN_EXPORT_DMABUF | STRAIT_CAN_IDENTIFY;
  return 1;
}

std::int32_t allocate(strait_provider*, std::uint32_t, std::uint64_t length, std::uint64_t* address,
                      strait_plugin_error* error) {
  const std::lock_guard lock(mutex);
  length = (length + 4095) / 4096 * 4096;
  const int memfd = memfd_create("counted", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  void* const at = reinterpret_cast<void*>(control.place_next_at);
  void* const place =
      mmap(at, length, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at != nullptr ? MAP_FIXED_NOREPLACE : 0), -1, 0);
  if (memfd < 0 || ftruncate(memfd, static_cast<off_t>(length)) != 0 ||
      fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0 || place == MAP_FAILED)
    return refuse(error, "counted memory cannot be had");
  control.place_next_at = 0;
  *address = reinterpret_cast<std::uint64_t>(place);
  pieces[*address] = {length, ++last_identity, memfd, -1};
  return 0;
}

std::int32_t watch_piece(strait_provider*, std::uint64_t address, strait_freed_callback call, void* context,
                         std::uint64_t* watch, strait_plugin_error* error) {
  const std::lock_guard lock(watching);
  std::uint64_t base = 0;
  {
    const std::lock_guard table(mutex);
    if (piece_at(address, base) == nullptr) return refuse(error, "no counted memory is there");
    control.watches = watches.size() + 1;
  }
  watches.emplace(*watch = ++last_watch, Watched{base, call, context});
  return 0;
}

void unwatch_piece(strait_provider*, std::uint64_t watch) {
  const std::lock_guard lock(watching);
  watches.erase(watch);
  const std::lock_guard table(mutex);
  control.watches = watches.size();
}

std::int32_t free_piece(strait_provider*, std::uint64_t address, strait_plugin_error* error) {
  {
    const std::lock_guard lock(watching);
    for (const auto& [watch, each] : watches) {
      if (each.base == address) each.call(each.context, address);
    }
  }
  const std::lock_guard lock(mutex);
  const auto found = pieces.find(address);
  if (found == pieces.end()) return refuse(error, "no counted memory is there");
  munmap(reinterpret_cast<void*>(address), found->second.length_bytes);
  close(found->second.memfd);
  if (found->second.kept_fd >= 0) close(found->second.kept_fd);
  pieces.erase(found);
  return 0;
}

// Both sides through the file where they are ours.
std::int32_t move_now(std::uint64_t to, std::uint64_t from, std::uint64_t length, strait_plugin_error* error) {
  const std::lock_guard lock(mutex);
  std::uint64_t base = 0;
  if (const Piece* const piece = piece_at(to, base)) {
    if (pwrite(piece->memfd, reinterpret_cast<const void*>(from), length, static_cast<off_t>(to - base)) ==
        static_cast<ssize_t>(length))
      return 0;
  } else if (const Piece* const other = piece_at(from, base)) {
    if (pread(other->memfd, reinterpret_cast<void*>(to), length, static_cast<off_t>(from - base)) ==
        static_cast<ssize_t>(length))
      return 0;
  }
  return refuse(error, "counted memory cannot be copied");
}

struct UnderWay {
  std::uint64_t to, from, length_bytes;
};
std::map<std::uint64_t, UnderWay> under_way;
std::uint64_t last_ticket = 0;

std::int32_t copy(strait_provider*, std::uint64_t to, std::uint64_t from, std::uint64_t length, std::uint64_t* ticket,
                  strait_plugin_error* error) {
  *ticket = 0;
  if (control.on_copy != nullptr) control.on_copy(control.context, to, from, length);
  if (control.may_end == nullptr) return move_now(to, from, length, error);
  const std::lock_guard lock(mutex);
  under_way[*ticket = ++last_ticket] = {to, from, length};
  return 0;
}

std::int32_t copy_done(strait_provider*, std::uint64_t ticket) {
  UnderWay copy{};
  {
    const std::lock_guard lock(mutex);
    const auto found = under_way.find(ticket);
    if (found == under_way.end()) return 1;
    copy = found->second;
  }
  if (control.may_end != nullptr && control.may_end(control.context) == 0) return 0;
  {
    const std::lock_guard lock(mutex);
    under_way.erase(ticket);
  }
  return move_now(copy.to, copy.from, copy.length_bytes, nullptr) == 0 ? 1 : -8;
}

std::int32_t memory_port(strait_provider*, strait_memory_port* out, strait_plugin_error* error) {
  if (control.can_pin == 0) return refuse(error, "counted memory is reached by its file");
  strait_memory_port port{};
  port.abi_version = STRAIT_PLUGIN_ABI;
  port.struct_size = sizeof port;
  port.read = [](void*, std::uint64_t address, void* into, std::uint64_t length) {
    return move_now(reinterpret_cast<std::uint64_t>(into), address, length, nullptr);
  };
  port.write = [](void*, std::uint64_t address, const void* from, std::uint64_t length) {
    return move_now(address, reinterpret_cast<std::uint64_t>(from), length, nullptr);
  };
  port.compare_swap = [](void*, std::uint64_t, std::uint32_t, std::uint64_t, std::uint64_t, std::uint64_t,
                         std::uint64_t, std::uint64_t*) { return std::int32_t{8}; };
  port.fetch_add = [](void*, std::uint64_t, std::uint32_t, std::uint64_t, std::uint64_t, std::uint64_t*) {
    return std::int32_t{8};
  };
  port.order = [](void*) {};
  port.prepare = [](void*, void*, std::uint64_t length) {
    const std::lock_guard lock(mutex);
    ++control.pinned;
    control.pinned_bytes += length;
    return std::int32_t{0};
  };
  port.release = [](void*, void*) {
    const std::lock_guard lock(mutex);
    --control.pinned;
  };
  *out = port;
  return 0;
}

std::int32_t export_fd(strait_provider*, std::uint64_t address, std::uint64_t, std::uint32_t, std::int32_t* fd,
                       std::uint64_t* offset, strait_plugin_error* error) {
  const std::lock_guard lock(mutex);
  std::uint64_t base = 0;
  Piece* const piece = piece_at(address, base);
  if (piece == nullptr) return refuse(error, "no counted memory is there");
  if (control.refuse_exports != 0) {
    --control.refuse_exports;
    return refuse(error, "the driver does not export this (injected)");
  }
  *offset = address - base;
  ++control.exports;
  if (control.useless_fds != 0) {
    *fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  } else if (control.keep_fds != 0) {
    if (piece->kept_fd < 0) piece->kept_fd = fcntl(piece->memfd, F_DUPFD_CLOEXEC, 0);
    *fd = control.kept_fd = piece->kept_fd;
  } else {
    *fd = fcntl(piece->memfd, F_DUPFD_CLOEXEC, 0);
  }
  return *fd < 0 ? refuse(error, "out of descriptors") : 0;
}

void close_fd(strait_provider*, std::int32_t fd) {
  const std::lock_guard lock(mutex);
  ++control.fd_closes;
  if (control.keep_fds != 0) return;  // the provider's own, until the memory goes
  if (close(fd) != 0) ++control.wrong_fds;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) counting_control* counting_control_of_process() {
  return &control;
}

extern "C" __attribute__((visibility("default"))) const strait_provider_ops* strait_provider_plugin() {
  static const strait_provider_ops ops = [] {
    strait_provider_ops made{};
    made.abi_version = STRAIT_PROVIDER_ABI;
    made.struct_size = sizeof made;
    made.kind = "counted";
    made.open = open_all;
    made.close = close_all;
    made.device_count = [](strait_provider*) { return std::uint32_t{2}; };
    made.device_info = device_info;
    made.classify = classify;
    made.allocate = allocate;
    made.free = free_piece;
    made.copy = copy;
    made.copy_done = copy_done;
    made.memory_port = memory_port;
    made.export_fd = export_fd;
    made.close_fd = close_fd;
    made.watch = watch_piece;
    made.unwatch = unwatch_piece;
    return made;
  }();
  return &ops;
}
