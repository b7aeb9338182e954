// SPDX-License-Identifier: Apache-2.0
#include "soft/nic/memory.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>

#include "soft/nic/indirect.hpp"
#include "soft/nic/verbs.hpp"
#include "sys/files.hpp"

namespace strait::soft::nic {
namespace {

constexpr std::uint32_t kMaxRegistrations = (1u << 24) - 16;  // indices have 24 bits, and the first are left out

// A descriptor the engine may map: a memfd that cannot shrink, or a dma-buf, whose size never changes.
Status check_importable(int fd, std::uint64_t need_bytes) {
  if (sys::is_dmabuf(fd)) {
    const std::int64_t size = sys::file_bytes(fd);
    if (size >= 0 && static_cast<std::uint64_t>(size) < need_bytes) {
      return fail(Code::invalid, "the dma-buf fd {} holds {} bytes, {} were expected", fd, size, need_bytes);
    }
    return {};
  }
  return sys::check_sealed(fd, need_bytes);
}

bool port_did(const Registration& registration, std::int32_t answer) {
  if (answer == kPortRevoked) registration.revoked = true;
  return answer == 0;
}

template <class Word>
std::uint64_t swap_word(Word* word, const AtomicRequest& request) {
  const auto compare = static_cast<Word>(request.compare);
  const auto swap = static_cast<Word>(request.operand);
  const auto compare_mask = static_cast<Word>(request.compare_mask);
  const auto swap_mask = static_cast<Word>(request.swap_mask);
  Word old = __atomic_load_n(word, __ATOMIC_ACQUIRE);
  // Bounded in practice by the number of CPUs that write this word at the same time.
  while ((old & compare_mask) == (compare & compare_mask)) {
    const Word desired = (old & ~swap_mask) | (swap & swap_mask);
    if (__atomic_compare_exchange_n(word, &old, desired, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) break;
  }
  return old;
}

template <class Word>
std::uint64_t add_word(Word* word, const AtomicRequest& request) {
  const auto boundary = static_cast<Word>(request.compare_mask);
  if (boundary == 0) return __atomic_fetch_add(word, static_cast<Word>(request.operand), __ATOMIC_ACQ_REL);
  Word old = __atomic_load_n(word, __ATOMIC_ACQUIRE);
  while (!__atomic_compare_exchange_n(word, &old,
                                      static_cast<Word>(add_fields(old, request.operand, request.compare_mask)), false,
                                      __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
  }
  return old;
}

template <class Word>
std::uint64_t atomic_word(std::byte* at, const AtomicRequest& request) {
  auto* word = reinterpret_cast<Word*>(at);
  return request.swap ? swap_word(word, request) : add_word(word, request);
}

// The caller's own descriptor: no provider's copies stand behind it.
Error not_mappable(const Error& why) {
  constexpr int kNoSuchOperation = 524;  // ENOTSUPP of the kernel, which has no name here
  constexpr std::array kRefusals{ENODEV, EINVAL, EOPNOTSUPP, EPERM, EACCES, kNoSuchOperation};
  if (std::ranges::find(kRefusals, why.sys_errno) == kRefusals.end()) return why;  // short of something
  Error error = fail(Code::unsupported,
                     "the driver that exported this descriptor lets no CPU map it ({}), and a NIC in software reaches "
                     "what is behind a descriptor in no other way",
                     errno_text(why.sys_errno));
  error.sys_errno = EOPNOTSUPP;
  return with_remedy(std::move(error),
                     "share the memory by its pointer, where the driver's own copies reach it, or use a NIC whose "
                     "driver takes dma-bufs");
}

}  // namespace

const char* fault_text(KeyFault fault) {
  switch (fault) {
    case KeyFault::none: return "no fault";
    case KeyFault::unknown_key: return "no registration has this key";
    case KeyFault::wrong_pd: return "the key belongs to another protection domain";
    case KeyFault::out_of_bounds: return "the range leaves the registration";
    case KeyFault::not_allowed: return "the registration does not allow this access";
  }
  return "unknown fault";
}

// Where the bytes are, and what requests call them.
Status MemoryTable::translate(Registration& made, const strait_nic_mr_request& request, const sys::Calls& calls) {
  if (request.length_bytes == 0) return fail(Code::invalid, "cannot register 0 bytes");
  if (request.address + request.length_bytes < request.address) {
    return fail(Code::invalid, "cannot register {} bytes at {:#x}: the range wraps around", request.length_bytes,
                request.address);
  }
  made.address = request.address;
  made.length_bytes = request.length_bytes;
  if (request.fd >= 0) {
    STRAIT_CHECK(check_importable(request.fd, request.fd_offset + request.length_bytes));
    made.peers_copy = !sys::is_dmabuf(request.fd);
    if ((request.access & STRAIT_NIC_CPU_ADDRESS) != 0) {
      made.bytes = reinterpret_cast<std::byte*>(request.address);
      return {};
    }
    // Real GPUs' dma-bufs cannot be mapped: then the bytes go through the vendor's copies, and the next are not tried.
    if (request.port == nullptr || request.port != unmappable_) {
      const std::uint64_t skip = request.fd_offset % sys::page_bytes();
      auto mapped = sys::map_file(request.fd, request.fd_offset - skip, request.length_bytes + skip,
                                  sys::Protect::read_write, calls);
      if (mapped) {
        made.mapping = std::move(*mapped);
        made.bytes = made.mapping.data() + skip;
        return {};
      }
      if (request.port == nullptr) return not_mappable(mapped.error());
      if (mapped.error().sys_errno != ENOMEM) unmappable_ = request.port;
    }
    STRAIT_TRY(made.held, sys::Fd::copy_of(request.fd));
    made.port = request.port;
  } else if (request.port != nullptr) {
    made.port = request.port;
  } else {
    const bool elsewhere = (request.access & STRAIT_NIC_HOST_ADDRESS) != 0;
    made.bytes = reinterpret_cast<std::byte*>(elsewhere ? request.fd_offset : request.address);
  }
  return {};
}

Result<strait_nic_mr> MemoryTable::add(const strait_nic_mr_request& request, const sys::Calls& calls) {
  if (size_ >= kMaxRegistrations && free_.empty()) {
    return fail(Code::limit, "the software NIC holds {} registrations, its maximum", kMaxRegistrations);
  }
  Registration made;
  made.pd = request.pd;
  made.access = request.access;
  STRAIT_CHECK(translate(made, request, calls));
  made.key = take_key();
  Registration& entry = *entry_of(made.key);
  entry = std::move(made);
  ++live_;
  count_port(entry.port, true);
  return strait_nic_mr{entry.key, entry.key};
}

Status MemoryTable::change(std::uint32_t key, std::uint32_t what, const strait_nic_mr_request& request,
                           const sys::Calls& calls) {
  Registration* const entry = find(key);
  if (entry == nullptr || entry->kind != KeyKind::registration)
    return fail(Code::invalid, "no registration has the key {:#x}", key);
  if (entry->in_flight != 0)
    return fail(Code::again, "{} requests in flight still use the registration with key {:#x}", entry->in_flight, key);
  if ((what & kReregTranslation) != 0) {
    Registration made;
    STRAIT_CHECK(translate(made, request, calls));
    made.key = key;
    made.pd = entry->pd;
    made.access = entry->access;
    count_port(made.port, true);
    count_port(entry->port, false);
    *entry = std::move(made);
  }
  // Windows were bound to what it was.
  for (std::uint32_t i = 0; i < size_; ++i) {
    if (slot(i).parent == key) unbind(slot(i));
  }
  if ((what & kReregPd) != 0) entry->pd = request.pd;
  if ((what & kReregAccess) != 0) entry->access = request.access;
  return {};
}

Result<std::uint32_t> MemoryTable::add_window(std::uint32_t pd, KeyKind kind) {
  if (size_ >= kMaxRegistrations && free_.empty())
    return fail(Code::limit, "the software NIC holds {} registrations, its maximum", kMaxRegistrations);
  Registration made;
  made.pd = pd;
  made.kind = kind;
  made.key = take_key();
  Registration& entry = *entry_of(made.key);
  entry = std::move(made);
  ++live_;
  return entry.key;
}

Result<std::uint32_t> MemoryTable::add_alias(const AliasRequest& request) {
  const Registration* const of = find(request.of);
  if (of == nullptr || of->kind != KeyKind::registration || of->pd != request.pd)
    return fail(Code::invalid, "no registration of domain {} has the key {:#x}", request.pd, request.of);
  if (of->bytes == nullptr) return fail(Code::unsupported, "memory behind a port has one key only");
  // What both ranges have in common, counted from where the alias begins. Addresses may wrap on the way.
  const std::uint64_t skipped = of->address - request.inner_address;
  const bool begins_before = static_cast<std::int64_t>(skipped) >= 0;  // the alias, as it asks, before the bytes
  const std::uint64_t first = begins_before ? skipped : 0;
  const std::uint64_t missing = begins_before ? 0 : -skipped;
  if (first >= request.length_bytes || missing >= of->length_bytes)
    return fail(Code::invalid, "nothing of the registration with key {:#x} is in the range", request.of);
  STRAIT_TRY(const std::uint32_t key, add_window(request.pd, KeyKind::alias));
  Registration& made = *entry_of(key);
  const std::uint32_t writes = STRAIT_NIC_REMOTE_WRITE | STRAIT_NIC_REMOTE_ATOMIC;
  made.access = (of->access & STRAIT_NIC_LOCAL_WRITE) != 0 ? request.access : request.access & ~writes;
  made.address = request.address + first;
  made.length_bytes = std::min(request.length_bytes - first, of->length_bytes - missing);
  made.bytes = of->bytes + missing;
  made.peers_copy = of->peers_copy;
  made.parent = request.of;
  return key;
}

Registration* MemoryTable::find_window(std::uint32_t key) {
  Registration* const entry = entry_of(key);
  if (entry == nullptr || entry->key == 0) return nullptr;
  return entry->kind == KeyKind::window_1 || entry->kind == KeyKind::window_2 ? entry : nullptr;
}

Registration* MemoryTable::find_indirect(std::uint32_t key) {
  Registration* const entry = entry_of(key);
  return entry != nullptr && entry->key != 0 && entry->kind == KeyKind::indirect ? entry : nullptr;
}

Status MemoryTable::remove_window(std::uint32_t key) {
  Registration* const window = find_window(key);
  if (window == nullptr) return fail(Code::invalid, "no memory window has the key {:#x}", key);
  return remove(window->key);
}

void MemoryTable::count_port(const strait_memory_port* port, bool one_more) {
  if (port == nullptr) return;
  if (one_more) {
    ++behind_[port];
  } else if (--behind_[port] == 0) {
    behind_.erase(port);
  }
}

std::uint32_t MemoryTable::take_key() {
  if (!free_.empty()) {
    // Oldest first: an index rests as long as possible before it is used again.
    const std::uint32_t old = free_.front();
    free_.pop_front();
    return (old & ~0xffu) | ((old + 1) & 0xffu);
  }
  const std::uint32_t i = size_++;
  if (i / kChunk >= chunks_.size()) chunks_.push_back(std::make_unique<Registration[]>(kChunk));
  return (i + kFirstIndex) << 8 | 1;
}

Status MemoryTable::remove(std::uint32_t key) {
  Registration* entry = find(key);
  if (entry == nullptr) return fail(Code::invalid, "no registration has the key {:#x}", key);
  if (entry->in_flight != 0) {
    return fail(Code::again, "{} requests in flight still use the registration with key {:#x}", entry->in_flight, key);
  }
  count_port(entry->port, false);
  *entry = Registration{};
  free_.push_back(key);
  --live_;
  return {};
}

bool read_bytes(const Registration& from, std::uint64_t address, std::byte* into, std::uint64_t length_bytes) {
  if (from.bytes == nullptr) return port_did(from, from.port->read(from.port->context, address, into, length_bytes));
  const std::byte* source = from.at(address);
  if (length_bytes == 8 && reinterpret_cast<std::uintptr_t>(source) % 8 == 0) {
    const std::uint64_t word = __atomic_load_n(reinterpret_cast<const std::uint64_t*>(source), __ATOMIC_ACQUIRE);
    std::memcpy(into, &word, 8);
    return true;
  }
  std::memcpy(into, source, length_bytes);
  return true;
}

bool write_far_bytes(const Registration& into, std::uint64_t address, const std::byte* from,
                     std::uint64_t length_bytes) {
  if (into.bytes == nullptr) return port_did(into, into.port->write(into.port->context, address, from, length_bytes));
  std::memcpy(into.at(address), from, length_bytes);
  __atomic_thread_fence(__ATOMIC_RELEASE);
  return true;
}

bool run_atomic(const Registration& on, std::uint64_t address, const AtomicRequest& request, std::uint64_t& old) {
  if (on.bytes != nullptr) {
    old = request.width == 4 ? atomic_word<std::uint32_t>(on.at(address), request)
                             : atomic_word<std::uint64_t>(on.at(address), request);
    return true;
  }
  const strait_memory_port& port = *on.port;
  if (request.swap) {
    return port_did(on, port.compare_swap(port.context, address, request.width, request.compare, request.compare_mask,
                                          request.operand, request.swap_mask, &old));
  }
  return port_did(on,
                  port.fetch_add(port.context, address, request.width, request.operand, request.compare_mask, &old));
}

}  // namespace strait::soft::nic
