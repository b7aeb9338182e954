// SPDX-License-Identifier: Apache-2.0
// The states of a queue pair: which changes there are, and which attributes each needs and allows. The tables are those
// of the InfiniBand specification, chapter 10.3, as Linux reads them.
#include <algorithm>

#include "soft/nic/verbs.hpp"

namespace strait::soft::nic {
namespace {

struct Allowed {
  bool exists = false;
  std::uint32_t needed = 0;
  std::uint32_t optional = 0;
};

constexpr std::uint32_t kPathUpdates = kQpAltPath | kQpMigration;
constexpr std::uint32_t kLimits = kQpTimeout | kQpRetries | kQpRnrRetries | kQpMaxReads;

bool is_ud(QpType type) {
  return type == QpType::ud;
}
// Has a responder that answers "receiver not ready" and serves reads.
bool answers(QpType type) {
  return type == QpType::rc || type == QpType::xrc_tgt;
}
// Has a requester that expects acknowledgements.
bool asks(QpType type) {
  return type == QpType::rc || type == QpType::xrc_ini;
}

Allowed to_init(QpType type, bool again) {
  const std::uint32_t all = kQpPkeyIndex | kQpPort | (is_ud(type) ? kQpQkey : kQpAccess);
  return again ? Allowed{true, 0, all} : Allowed{true, all, 0};
}

Allowed init_to_rtr(QpType type) {
  if (is_ud(type)) return {true, 0, kQpPkeyIndex | kQpQkey};
  std::uint32_t needed = kQpPath | kQpPathMtu | kQpDestQpn | kQpRqPsn;
  if (answers(type)) needed |= kQpMaxDestReads | kQpMinRnrTimer;
  return {true, needed, kQpAltPath | kQpAccess | kQpPkeyIndex};
}

// What may be said again at any time while it runs.
std::uint32_t while_running(QpType type) {
  if (is_ud(type)) return kQpCurState | kQpQkey;
  return kQpCurState | kQpAccess | kPathUpdates | (answers(type) ? kQpMinRnrTimer : 0u);
}

Allowed rtr_to_ready(QpType type) {
  std::uint32_t needed = kQpSqPsn;
  if (asks(type)) needed |= kLimits;
  if (type == QpType::xrc_tgt) needed |= kQpTimeout;
  return {true, needed, while_running(type) | kQpRateLimit};
}

Allowed while_drained(QpType type) {
  if (is_ud(type)) return {true, 0, kQpPkeyIndex | kQpQkey};
  std::uint32_t optional = kQpPath | kQpAccess | kQpPkeyIndex | kPathUpdates;
  if (answers(type)) optional |= kQpPort | kQpMaxDestReads | kQpMinRnrTimer | kQpTimeout;
  if (asks(type)) optional |= kQpPort | kLimits;
  return {true, 0, optional};
}

Allowed rule(QpType type, QpState from, QpState to) {
  if (to == QpState::reset) return {true, 0, 0};
  if (to == QpState::error) return {from != QpState::reset, 0, 0};
  switch (from) {
    case QpState::reset:
      if (to == QpState::init) return to_init(type, false);
      break;
    case QpState::init:
      if (to == QpState::init) return to_init(type, true);
      if (to == QpState::rtr) return init_to_rtr(type);
      break;
    case QpState::rtr:
      if (to == QpState::ready) return rtr_to_ready(type);
      break;
    case QpState::ready:
      if (to == QpState::ready) return {true, 0, while_running(type) | kQpRateLimit};
      if (to == QpState::sqd) return {true, 0, kQpSqdNotify};
      break;
    case QpState::sqd:
      if (to == QpState::ready) return {true, 0, while_running(type)};
      if (to == QpState::sqd) return while_drained(type);
      break;
    case QpState::sqe:
      if (to != QpState::ready) break;
      if (is_ud(type)) return {true, 0, kQpCurState | kQpQkey};
      if (type == QpType::uc) return {true, 0, kQpCurState | kQpAccess};
      break;
    case QpState::error: break;
  }
  return {};
}

}  // namespace

const char* type_name(QpType type) {
  constexpr const char* kNames[] = {"RC", "UC", "UD", "XRC initiator", "XRC target"};
  return kNames[static_cast<std::size_t>(type)];
}

const char* state_name(QpState state) {
  constexpr const char* kNames[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  return kNames[std::min<std::size_t>(static_cast<std::size_t>(state), std::size(kNames) - 1)];
}

Status check_transition(QpType type, QpState from, QpState to, std::uint32_t mask) {
  if ((mask & kQpCurState) != 0 && (from < QpState::rtr || from > QpState::sqe))
    return fail(Code::invalid, "a queue pair in {} takes no word on its current state", state_name(from));
  const Allowed allowed = rule(type, from, to);
  if (!allowed.exists) {
    return fail(Code::invalid, "a queue pair of type {} does not go from {} to {}", type_name(type), state_name(from),
                state_name(to));
  }
  if (const std::uint32_t missing = allowed.needed & ~mask; missing != 0) {
    return fail(Code::invalid, "from {} to {} a queue pair of type {} needs the attributes {:#x} too", state_name(from),
                state_name(to), type_name(type), missing);
  }
  if (const std::uint32_t extra = mask & ~(allowed.needed | allowed.optional | kQpState); extra != 0) {
    return fail(Code::invalid, "from {} to {} a queue pair of type {} takes no attributes {:#x}", state_name(from),
                state_name(to), type_name(type), extra);
  }
  return {};
}

Status check_values(const QpAttributes& wanted, std::uint32_t mask) {
  constexpr std::uint32_t kMostReads = 16;
  const auto has = [&](std::uint32_t bit) { return (mask & bit) != 0; };
  const auto bad = [](const char* what, std::uint64_t value) {
    return fail(Code::invalid, "{} cannot be {}", what, value);
  };
  if (has(kQpState) && wanted.state > QpState::error) return bad("a state", static_cast<unsigned>(wanted.state));
  if (has(kQpPort) && wanted.port != 1) return bad("the port", wanted.port);
  if (has(kQpPkeyIndex) && wanted.pkey_index != 0) return bad("the P_Key index", wanted.pkey_index);
  if (has(kQpPathMtu) && (wanted.path_mtu < 1 || wanted.path_mtu > 5)) return bad("the path MTU code", wanted.path_mtu);
  if (has(kQpTimeout) && wanted.timeout > 31) return bad("the timeout", wanted.timeout);
  if (has(kQpRetries) && wanted.retries > 7) return bad("the retry count", wanted.retries);
  if (has(kQpRnrRetries) && wanted.rnr_retries > 7) return bad("the RNR retry count", wanted.rnr_retries);
  if (has(kQpMinRnrTimer) && wanted.min_rnr_timer > 31) return bad("the RNR timer", wanted.min_rnr_timer);
  if (has(kQpMaxReads) && wanted.max_reads > kMostReads) return bad("max_rd_atomic", wanted.max_reads);
  if (has(kQpMaxDestReads) && wanted.max_dest_reads > kMostReads)
    return bad("max_dest_rd_atomic", wanted.max_dest_reads);
  if (has(kQpPath) && !wanted.path.is_global) return fail(Code::invalid, "a path on Ethernet needs a GID");
  return {};
}

void merge(QpAttributes& into, const QpAttributes& wanted, std::uint32_t mask) {
  const auto take = [&](std::uint32_t bit, auto member) {
    if ((mask & bit) != 0) into.*member = wanted.*member;
  };
  take(kQpSqdNotify, &QpAttributes::sqd_notify);
  take(kQpAccess, &QpAttributes::access);
  take(kQpPkeyIndex, &QpAttributes::pkey_index);
  take(kQpPort, &QpAttributes::port);
  take(kQpQkey, &QpAttributes::qkey);
  take(kQpPath, &QpAttributes::path);
  take(kQpPathMtu, &QpAttributes::path_mtu);
  take(kQpTimeout, &QpAttributes::timeout);
  take(kQpRetries, &QpAttributes::retries);
  take(kQpRnrRetries, &QpAttributes::rnr_retries);
  take(kQpRqPsn, &QpAttributes::rq_psn);
  take(kQpMaxReads, &QpAttributes::max_reads);
  take(kQpAltPath, &QpAttributes::alt_path);
  take(kQpAltPath, &QpAttributes::alt_pkey_index);
  take(kQpAltPath, &QpAttributes::alt_timeout);
  take(kQpMinRnrTimer, &QpAttributes::min_rnr_timer);
  take(kQpSqPsn, &QpAttributes::sq_psn);
  take(kQpMaxDestReads, &QpAttributes::max_dest_reads);
  take(kQpMigration, &QpAttributes::migration);
  take(kQpDestQpn, &QpAttributes::dest_qpn);
}

}  // namespace strait::soft::nic
