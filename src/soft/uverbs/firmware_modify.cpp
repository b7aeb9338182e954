// SPDX-License-Identifier: Apache-2.0
// The states of a queue pair, by command. Each command names where it comes from, what it must say for that step, and
// a mask of what it may say besides.
#include "soft/uverbs/firmware.hpp"

namespace strait::soft::uverbs {

namespace prm = wire::prm;

namespace {

struct Step {
  prm::Command command;
  nic::QpState from;
  nic::QpState to;
};
constexpr Step kSteps[] = {
    {prm::Command::rst2init_qp, nic::QpState::reset, nic::QpState::init},
    {prm::Command::init2init_qp, nic::QpState::init, nic::QpState::init},
    {prm::Command::init2rtr_qp, nic::QpState::init, nic::QpState::rtr},
    {prm::Command::rtr2rts_qp, nic::QpState::rtr, nic::QpState::ready},
    {prm::Command::rts2rts_qp, nic::QpState::ready, nic::QpState::ready},
    {prm::Command::sqerr2rts_qp, nic::QpState::sqe, nic::QpState::ready},
};

// What verbs calls the attributes that a step of this type of queue pair takes.
std::uint32_t needed(prm::Command command, nic::QpType type) {
  const bool reliable = type == nic::QpType::rc;
  const bool datagram = type == nic::QpType::ud;
  switch (command) {
    case prm::Command::rst2init_qp:
      return nic::kQpPkeyIndex | nic::kQpPort | (datagram ? nic::kQpQkey : nic::kQpAccess);
    case prm::Command::init2rtr_qp:
      if (datagram) return 0;
      return nic::kQpPath | nic::kQpPathMtu | nic::kQpDestQpn | nic::kQpRqPsn |
             (reliable ? nic::kQpMaxDestReads | nic::kQpMinRnrTimer : 0u);
    case prm::Command::rtr2rts_qp:
      return nic::kQpSqPsn |
             (reliable ? nic::kQpTimeout | nic::kQpRetries | nic::kQpRnrRetries | nic::kQpMaxReads : 0u);
    default: return 0;
  }
}

constexpr std::uint32_t kOptionalAccess =
    prm::kOptionalRemoteRead | prm::kOptionalRemoteWrite | prm::kOptionalRemoteAtomic;

// The same for what the mask names. A step that does not allow it refuses it by the rules of verbs.
std::uint32_t optional_bits(std::uint32_t mask) {
  std::uint32_t out = 0;
  const auto also = [&](std::uint32_t bit, std::uint32_t means) { out |= (mask & bit) != 0 ? means : 0; };
  also(kOptionalAccess, nic::kQpAccess);
  also(prm::kOptionalPkeyIndex, nic::kQpPkeyIndex);
  also(prm::kOptionalPort, nic::kQpPort);
  also(prm::kOptionalQkey, nic::kQpQkey);
  also(prm::kOptionalRnrTimer, nic::kQpMinRnrTimer);
  return out;
}

nic::QpAttributes attributes_in(const Mailbox& mailbox) {
  const auto said = [&](prm::Field field) { return mailbox.get32(prm::at(prm::modify_qp::kContext, field)); };
  const auto byte = [&](prm::Field field) { return static_cast<std::uint8_t>(said(field)); };
  const auto path = [&](prm::Field field) {
    return mailbox.get(prm::at(prm::modify_qp::kContext + prm::qpc::kPath, field));
  };
  nic::QpAttributes out;
  out.pkey_index = static_cast<std::uint16_t>(path(prm::ads::kPkeyIndex));
  out.port = static_cast<std::uint8_t>(path(prm::ads::kPort));
  out.qkey = said(prm::qpc::kQkey);
  out.path_mtu = byte(prm::qpc::kMtu);
  out.timeout = static_cast<std::uint8_t>(path(prm::ads::kAckTimeout));
  out.retries = byte(prm::qpc::kRetries);
  out.rnr_retries = byte(prm::qpc::kRnrRetries);
  out.rq_psn = said(prm::qpc::kNextReceivePsn);
  out.sq_psn = said(prm::qpc::kNextSendPsn);
  out.max_reads = static_cast<std::uint8_t>(1u << said(prm::qpc::kLogReadsOut));
  out.max_dest_reads = static_cast<std::uint8_t>(1u << said(prm::qpc::kLogReadsIn));
  out.min_rnr_timer = byte(prm::qpc::kMinRnrTimer);
  out.dest_qpn = said(prm::qpc::kRemoteQpn);
  out.access = (said(prm::qpc::kRemoteRead) != 0 ? std::uint32_t{STRAIT_NIC_REMOTE_READ} : 0u) |
               (said(prm::qpc::kRemoteWrite) != 0 ? std::uint32_t{STRAIT_NIC_REMOTE_WRITE} : 0u) |
               (said(prm::qpc::kRemoteAtomic) != 0 ? std::uint32_t{STRAIT_NIC_REMOTE_ATOMIC} : 0u);
  const std::uint64_t high = path(prm::ads::kRemoteGidHigh);
  const std::uint64_t low = path(prm::ads::kRemoteGidLow);
  for (std::size_t i = 0; i < 8; ++i) {
    out.path.dgid[i] = static_cast<std::uint8_t>(high >> (56 - 8 * i));
    out.path.dgid[8 + i] = static_cast<std::uint8_t>(low >> (56 - 8 * i));
  }
  out.path.sgid_index = static_cast<std::uint8_t>(path(prm::ads::kSourceIndex));
  out.path.hop_limit = static_cast<std::uint8_t>(path(prm::ads::kHopLimit));
  // On Ethernet the traffic class is the two fields of the IP header; some programs fill in the one, some the other.
  out.path.traffic_class =
      static_cast<std::uint8_t>(path(prm::ads::kTrafficClass) | path(prm::ads::kDscp) << 2 | path(prm::ads::kEcn));
  out.path.flow_label = static_cast<std::uint32_t>(path(prm::ads::kFlowLabel));
  out.path.sl = static_cast<std::uint8_t>(path(prm::ads::kServiceLevel));
  out.path.port = static_cast<std::uint8_t>(path(prm::ads::kPort));
  out.path.is_global = true;  // there is nothing else on Ethernet
  return out;
}

}  // namespace

Verdict Firmware::modify(const Mailbox& mailbox, Qp& qp) {
  const prm::Command command = mailbox.command();
  const Step* step = nullptr;
  for (const Step& known : kSteps) {
    if (known.command == command) step = &known;
  }
  const bool ends = command == prm::Command::to_err_qp || command == prm::Command::to_rst_qp;
  if (step == nullptr && !ends) return {prm::Status::bad_opcode, Syndrome::unknown_command};
  const auto now = engine_.query_qp(qp.number);
  if (!now) return verdict_of(now.error());

  nic::QpAttributes wanted;
  std::uint32_t mask = nic::kQpState;
  if (ends) {
    wanted.state = command == prm::Command::to_err_qp ? nic::QpState::error : nic::QpState::reset;
  } else {
    if (mailbox.in_bytes() < prm::modify_qp::kBytes) return {prm::Status::bad_input_length, Syndrome::input_too_short};
    if (now->state != step->from) return {prm::Status::bad_qp_state, Syndrome::wrong_state};
    const std::uint32_t optional = mailbox.get32(prm::modify_qp::kOptional);
    mask |= needed(command, qp.type) | optional_bits(optional);
    wanted = attributes_in(mailbox);
    wanted.state = step->to;
    if ((mask & nic::kQpAccess) != 0 && command != prm::Command::rst2init_qp) {
      // Only the rights that the mask names change.
      const std::uint32_t named =
          ((optional & prm::kOptionalRemoteRead) != 0 ? std::uint32_t{STRAIT_NIC_REMOTE_READ} : 0u) |
          ((optional & prm::kOptionalRemoteWrite) != 0 ? std::uint32_t{STRAIT_NIC_REMOTE_WRITE} : 0u) |
          ((optional & prm::kOptionalRemoteAtomic) != 0 ? std::uint32_t{STRAIT_NIC_REMOTE_ATOMIC} : 0u);
      wanted.access = (wanted.access & named) | (now->access & ~named);
    }
    if ((mask & nic::kQpPath) != 0 && (wanted.path.port != 1 || wanted.path.sgid_index >= device_.gids().size()))
      return {prm::Status::bad_parameter, Syndrome::bad_value};
  }
  if (const Status changed = engine_.modify_qp(qp.number, wanted, mask); !changed) return verdict_of(changed.error());
  if (Progress* const progress = device_.progress()) progress->wake();
  return {};
}

}  // namespace strait::soft::uverbs
