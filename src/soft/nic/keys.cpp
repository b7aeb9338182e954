// SPDX-License-Identifier: Apache-2.0
// Keys that change: registrations given other bytes or rights, and memory windows, which work requests bind and free.
//
// A window of type 1 belongs to its protection domain and is bound again at any time. One of type 2 belongs to the
// queue pair that bound it, and must be invalidated before it is bound again.
#include <algorithm>

#include "soft/nic/engine.hpp"
#include "soft/nic/indirect.hpp"

namespace strait::soft::nic {
namespace m = wire::mlx5;

namespace {

constexpr std::uint32_t kRemote = STRAIT_NIC_REMOTE_WRITE | STRAIT_NIC_REMOTE_READ | STRAIT_NIC_REMOTE_ATOMIC;

DecodeFault bind_fault(const char* reason) {
  return {m::Syndrome::memory_window_bind, reason, kVendorMalformed};
}

}  // namespace

Result<std::uint32_t> Engine::add_alias(const MemoryTable::AliasRequest& request) {
  const std::scoped_lock lock(mutex_);
  STRAIT_CHECK(there());
  STRAIT_TRY(const std::uint32_t key, memory_.add_alias(request));
  ++pds_[request.pd];
  return key;
}

Status Engine::remove_alias(std::uint32_t key) {
  const std::scoped_lock lock(mutex_);
  const Registration* alias = memory_.find_indirect(key);
  if (alias == nullptr) alias = memory_.find(key);
  if (alias == nullptr || (alias->kind != KeyKind::alias && alias->kind != KeyKind::indirect))
    return fail(Code::invalid, "no key made of others is {:#x}", key);
  const std::uint32_t pd = alias->pd;
  STRAIT_CHECK(memory_.remove(alias->key));
  --pds_[pd];
  return {};
}

Result<std::uint32_t> Engine::name_key(std::uint32_t key, std::uint8_t low_byte) {
  const std::scoped_lock lock(mutex_);
  const std::uint32_t named = memory_.rename(key, low_byte);
  if (named == 0) return fail(Code::invalid, "no registration has the key {:#x}", key);
  if (auto loan = loans_.extract(key)) {
    loan.key() = named;
    loans_.insert(std::move(loan));
    std::replace(loan_order_.begin(), loan_order_.end(), key, named);
  }
  return named;
}

Status Engine::rereg_memory(std::uint32_t key, std::uint32_t what, const strait_nic_mr_request& request) {
  if (what == 0 || (what & ~(kReregTranslation | kReregPd | kReregAccess)) != 0)
    return fail(Code::invalid, "a registration cannot be changed in the way {:#x}", what);
  const sys::Deadline deadline = sys::Deadline::after_ns(1'000'000'000);
  while (true) {
    {
      const std::scoped_lock lock(mutex_);
      STRAIT_CHECK(there());
      if ((what & kReregPd) != 0 && !pds_.contains(request.pd))
        return fail(Code::invalid, "no protection domain has the number {}", request.pd);
      const Registration* const before = memory_.find(key);
      const std::uint32_t pd = before == nullptr ? 0 : before->pd;
      if (before != nullptr) give_back_landings(before->bytes, before->length_bytes);
      const Status changed = memory_.change(key, what, request, *config_.calls);
      if (changed) {
        let_go_of_ports();
        if ((what & kReregPd) != 0) {
          --pds_[pd];
          ++pds_[request.pd];
        }
        if ((what & kReregTranslation) != 0) end_loans(key);
        return {};
      }
      if (changed.error().code != Code::again || deadline.passed()) return changed;
      pass(0);
    }
    std::this_thread::yield();
  }
}

Result<std::uint32_t> Engine::alloc_window(std::uint32_t pd, int type) {
  if (type != 1 && type != 2) return fail(Code::invalid, "memory windows have type 1 or 2, not {}", type);
  const std::scoped_lock lock(mutex_);
  STRAIT_CHECK(there());
  const auto domain = pds_.find(pd);
  if (domain == pds_.end()) return fail(Code::invalid, "no protection domain has the number {}", pd);
  STRAIT_TRY(const std::uint32_t key, memory_.add_window(pd, type == 1 ? KeyKind::window_1 : KeyKind::window_2));
  ++domain->second;
  return key;
}

Status Engine::free_window(std::uint32_t key) {
  const std::scoped_lock lock(mutex_);
  const Registration* const window = memory_.find_window(key);
  const std::uint32_t pd = window == nullptr ? 0 : window->pd;
  STRAIT_CHECK(memory_.remove_window(key));
  --pds_[pd];
  return {};
}

// A work request that binds or frees a window. It is done once, however often the messages behind it are sent.
bool Engine::change_key(QueuePair& qp, const KeyChange& change, DecodeFault& fault) {
  if (qp.next < qp.keys_changed) return true;
  const auto refuse = [&](const char* reason) {
    fault = bind_fault(reason);
    return false;
  };
  if (Registration* const indirect = memory_.find_indirect(change.old_key);
      indirect != nullptr && indirect->pd == qp.pd)
    return change_indirect(qp, *indirect, change, fault);
  Registration* const window = memory_.find_window(change.old_key);
  if (window == nullptr || window->pd != qp.pd) return refuse("no memory window of this domain has the key");
  const bool bound = window->parent != 0;
  if (change.frees && window->kind == KeyKind::window_1) {  // bound to nothing
    MemoryTable::unbind(*window);
    window->key = (window->key & ~0xffu) | change.new_variant;
    qp.keys_changed = qp.next + 1;
    return true;
  }
  if (change.frees) {
    if (!bound || window->key != change.old_key) return refuse("the memory window is not bound under this key");
    if (change.check_qpn && window->qpn != qp.qpn) return refuse("the memory window belongs to another queue pair");
    MemoryTable::unbind(*window);
    qp.keys_changed = qp.next + 1;
    return true;
  }
  if (change.target.length_bytes == 0 || change.target.length_bytes != change.length_bytes) {
    fault = {m::Syndrome::local_qp_operation, "a window that is not as long as what it maps", kVendorMalformed};
    return false;
  }
  if (change.check_free && bound) return refuse("the memory window is bound; invalidate it first");
  if ((window->kind == KeyKind::window_1) != change.any_qp) return refuse("bound as if it were of the other type");
  KeyFault why = KeyFault::none;
  const LocalPiece& piece = change.target;
  const std::uint32_t writes = STRAIT_NIC_REMOTE_WRITE | STRAIT_NIC_REMOTE_ATOMIC;
  const std::uint32_t needed =
      kAccessBindWindow | ((change.access & writes) != 0 ? std::uint32_t{STRAIT_NIC_LOCAL_WRITE} : 0u);
  const Registration* const target = memory_.check(piece.lkey, qp.pd, piece.address, piece.length_bytes, needed, why);
  if (target == nullptr) return refuse(fault_text(why));
  if (target->bytes == nullptr) return refuse("memory behind a port has no windows");
  window->key = (window->key & ~0xffu) | change.new_variant;
  window->address = change.start;
  window->length_bytes = change.length_bytes;
  window->bytes = target->at(piece.address);
  window->access = change.access & kRemote;
  window->parent = piece.lkey;
  window->qpn = change.any_qp ? 0 : qp.qpn & m::kMaxQpn;
  qp.keys_changed = qp.next + 1;
  return true;
}

// A peer asked for it with a message that has arrived: the key stops working for peers. False: it does not work for
// them now, or is not theirs to take away.
bool Engine::invalidate_key(QueuePair& qp, std::uint32_t key) {
  Registration* const found = memory_.find(key);
  if (found == nullptr || found->pd != qp.target_pd()) return false;
  switch (found->kind) {
    case KeyKind::registration:
      if ((found->access & kRemote) == 0) return false;
      found->access &= ~kRemote;  // the owner still frees it
      return true;
    case KeyKind::window_2:  // one of type 1 is for its owner to bind elsewhere
      if (found->parent == 0 || found->qpn != qp.qpn) return false;
      MemoryTable::unbind(*found);
      return true;
    case KeyKind::indirect: return found->indirect->invalidate();
    default: return false;
  }
}

}  // namespace strait::soft::nic
