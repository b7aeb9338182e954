// SPDX-License-Identifier: Apache-2.0
// Memory that leaves the process: dma-bufs and IPC handles; and what comes in.
//
// An exported descriptor is a description of its own on the pages' file, marked as a holder: the memory is taken for as
// long as one lives, in whatever process, and given back when the last is closed.
#include <algorithm>
#include <cstring>

#include "soft/hsa/runtime.hpp"
#include "sys/clock.hpp"
#include "sys/file_hold.hpp"
#include "sys/files.hpp"
#include "sys/host.hpp"

namespace strait::soft::hsa {
namespace {

constexpr std::int64_t kHoldPatienceNs = 10'000'000'000;

// The handle of another process: bytes from outside, nothing in them is believed before it was looked at. The first
// word tells one that was damaged on the way; one that was made up is the business of the machine's user, as there.
struct IpcWords {
  std::uint32_t check;
  std::uint32_t pid;
  std::uint32_t fd;
  std::uint32_t node;
  std::uint32_t inode[2];
  std::uint32_t offset_pages;
  std::uint32_t length_pages;
};
static_assert(sizeof(IpcWords) == sizeof(IpcMemory));

std::uint32_t check_of(const IpcWords& words) {
  std::uint32_t sum = 0x31415348;  // "HSA1"
  for (const std::uint32_t word :
       {words.pid, words.fd, words.node, words.inode[0], words.inode[1], words.offset_pages, words.length_pages})
    sum = (sum ^ word) * 2654435761u + (sum >> 13);
  return sum;
}

// The owner looks whether anybody holds the file by taking it for a moment; that moment is waited out.
bool hold_patiently(int fd) {
  return sys::hold_file_before(fd, sys::Deadline::after_ns(kHoldPatienceNs));
}

}  // namespace

void Runtime::keep_exported_locked(const std::shared_ptr<Pages>& pages) {
  if (std::find(exported_.begin(), exported_.end(), pages) == exported_.end()) exported_.push_back(pages);
}

void Runtime::forget_closed_exports_locked() {
  std::erase_if(exported_, [](const std::shared_ptr<Pages>& each) { return !sys::is_held_elsewhere(each->fd()); });
}

Result<sys::Fd> Runtime::hold_out(const std::shared_ptr<Pages>& pages) {
  STRAIT_TRY(sys::Fd fd, sys::open_again(pages->fd()));
  if (!hold_patiently(fd.get())) return fail(Code::timeout, "the file of device memory is taken by somebody else");
  keep_exported_locked(pages);
  return fd;
}

Answer Runtime::export_dmabuf(const void* pointer, std::uint64_t length_bytes, int& fd, std::uint64_t& offset) {
  const auto address = reinterpret_cast<std::uint64_t>(pointer);
  const std::lock_guard lock(mutex_);
  const Range* range = ranges_.around(address);
  if (range == nullptr || length_bytes > range->room_bytes - (address - range->base)) return kInvalidAllocation;
  if (range->owner == 0) return kInvalidAgent;
  auto out = hold_out(range->pages);
  if (!out) return kOutOfResources;
  fd = out->release();
  offset = range->offset + (address - range->base);
  counts().exports.add();
  return kSuccess;
}

Answer Runtime::ipc_create(void* pointer, std::uint64_t length_bytes, IpcMemory& out) {
  const auto address = reinterpret_cast<std::uint64_t>(pointer);
  out = {};
  const std::lock_guard lock(mutex_);
  const Range* range = ranges_.at(address);
  if (range == nullptr || range->type != kPointerHsa) return kInvalidArgument;
  if (length_bytes != range->asked_bytes && length_bytes != range->room_bytes) return kInvalidArgument;
  const auto id = sys::file_id(range->pages->fd());
  if (!id) return kError;
  IpcWords words{};
  words.pid = static_cast<std::uint32_t>(sys::process_id());
  words.fd = static_cast<std::uint32_t>(range->pages->fd());
  words.node = range->owner;
  words.inode[0] = static_cast<std::uint32_t>(id->inode);
  words.inode[1] = static_cast<std::uint32_t>(id->inode >> 32);
  words.offset_pages = static_cast<std::uint32_t>(range->offset / sys::page_bytes());
  words.length_pages = static_cast<std::uint32_t>(range->room_bytes / sys::page_bytes());
  words.check = check_of(words);
  std::memcpy(&out, &words, sizeof words);
  counts().ipc_handles.add();
  return kSuccess;
}

// Pages of somebody else at addresses of our own: bare ones for device memory, real ones for system memory.
Result<Range> Runtime::make_import(sys::Fd file, std::uint64_t offset, std::uint64_t length_bytes, std::uint32_t node) {
  Range range;
  range.asked_bytes = length_bytes;
  range.room_bytes = sys::round_up(length_bytes, sys::page_bytes());
  range.owner = node;
  range.flags = node == 0 ? kFlagFineGrained : kFlagCoarseGrained;
  range.offset = offset;
  STRAIT_CHECK(sys::check_sealed(file.get(), offset + range.room_bytes));
  const std::int64_t whole = sys::file_bytes(file.get());
  if (whole <= 0) return fail(Code::invalid, "fd {} has no size", file.get());
  STRAIT_TRY(range.pages, Pages::of_file(std::move(file), static_cast<std::uint64_t>(whole)));
  STRAIT_TRY(range.place, sys::map_anonymous(range.room_bytes, sys::Protect::none));
  range.base = reinterpret_cast<std::uint64_t>(range.place.data());
  if (node == 0 || large_bar_) STRAIT_CHECK(show_to_cpu(range));
  return range;
}

Answer Runtime::ipc_attach(const IpcMemory& handle, std::uint64_t length_bytes, std::uint64_t nodes, void** out) {
  IpcWords words{};
  std::memcpy(&words, &handle, sizeof words);
  if (words.check != check_of(words) || words.pid > INT32_MAX || words.fd > INT32_MAX || words.node > 63)
    return kInvalidArgument;
  const std::uint64_t room = std::uint64_t{words.length_pages} * sys::page_bytes();
  if (room == 0 || length_bytes == 0 || length_bytes > room || room - length_bytes >= sys::page_bytes())
    return kInvalidArgument;
  auto file = sys::open_of_process(static_cast<pid_t>(words.pid), static_cast<int>(words.fd));
  if (!file) return kInvalidArgument;
  const auto id = sys::file_id(file->get());
  const std::uint64_t inode = std::uint64_t{words.inode[1]} << 32 | words.inode[0];
  if (!id || id->inode != inode) return kInvalidArgument;  // freed there, and the number used again
  if (!hold_patiently(file->get())) return kOutOfResources;
  auto range =
      make_import(std::move(*file), std::uint64_t{words.offset_pages} * sys::page_bytes(), length_bytes, words.node);
  if (!range) return range.error().code == Code::limit ? kOutOfResources : kInvalidArgument;
  range->type = kPointerIpc;
  range->access = nodes | std::uint64_t{1} << words.node;
  const std::lock_guard lock(mutex_);
  if (range->owner != 0 && !tell_kernel(*range)) return kOutOfResources;
  *out = reinterpret_cast<void*>(range->base);
  ranges_.add(std::move(*range));
  counts().attaches.add();
  return kSuccess;
}

Answer Runtime::detach(void* pointer, std::int32_t type) {
  Range range;
  {
    const std::lock_guard lock(mutex_);
    const Range* found = ranges_.at(reinterpret_cast<std::uint64_t>(pointer));
    if (found == nullptr || found->type != type) return kInvalidArgument;
    range = ranges_.take(found->base);
  }
  tell_kernel_gone(range);
  (type == kPointerIpc ? counts().detaches : counts().interop_unmaps).add();
  return kSuccess;
}

Answer Runtime::interop_map(std::uint64_t nodes, int fd, std::size_t* length_bytes, void** out) {
  const std::int64_t whole = sys::file_bytes(fd);
  auto file = sys::open_again(fd);
  if (!file || whole <= 0) return kInvalidArgument;
  if (!hold_patiently(file->get())) return kOutOfResources;
  std::uint32_t node = 1;
  while (node < 63 && (nodes >> node & 1) == 0) ++node;
  auto range = make_import(std::move(*file), 0, static_cast<std::uint64_t>(whole), node);
  if (!range) return range.error().code == Code::limit ? kOutOfResources : kInvalidArgument;
  range->type = kPointerGraphics;
  range->access = nodes;
  const std::lock_guard lock(mutex_);
  if (!tell_kernel(*range)) return kOutOfResources;
  *length_bytes = static_cast<std::size_t>(whole);
  *out = reinterpret_cast<void*>(range->base);
  ranges_.add(std::move(*range));
  counts().interop_maps.add();
  return kSuccess;
}

}  // namespace strait::soft::hsa
