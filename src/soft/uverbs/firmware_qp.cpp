// SPDX-License-Identifier: Apache-2.0
// Queue pairs by command: made, and asked about.
#include <optional>

#include "soft/uverbs/firmware.hpp"

namespace strait::soft::uverbs {

namespace prm = wire::prm;

namespace {

std::optional<nic::QpType> type_of_service(std::uint64_t service) {
  switch (static_cast<prm::QpService>(service)) {
    case prm::QpService::rc: return nic::QpType::rc;
    case prm::QpService::uc: return nic::QpType::uc;
    case prm::QpService::ud: return nic::QpType::ud;
    default: return {};  // XRC, dynamically connected, raw
  }
}

prm::QpService service_of(nic::QpType type) {
  switch (type) {
    case nic::QpType::uc: return prm::QpService::uc;
    case nic::QpType::ud: return prm::QpService::ud;
    case nic::QpType::xrc_ini:
    case nic::QpType::xrc_tgt: return prm::QpService::xrc;
    default: return prm::QpService::rc;
  }
}

// The device counts SQE before SQD, verbs the other way.
std::uint64_t device_state(nic::QpState state) {
  if (state == nic::QpState::sqd) return 5;
  if (state == nic::QpState::sqe) return 4;
  return static_cast<std::uint64_t>(state);
}

std::uint64_t log_of_reads(std::uint32_t reads) {
  std::uint64_t log = 0;
  while ((2u << log) <= reads) ++log;
  return log;
}

}  // namespace

// The work queue's memory holds the receive ring, if it has one of its own, and the send ring behind it.
Verdict Firmware::create_qp(const Mailbox& mailbox, DevxObject& made) {
  const auto said = [&](prm::Field field) { return mailbox.get32(prm::at(prm::create_qp::kContext, field)); };
  auto qp = std::make_unique<Qp>();
  const auto type = type_of_service(said(prm::qpc::kService));
  if (!type || said(prm::qpc::kSignature) != 0) return {prm::Status::bad_opcode, Syndrome::not_supported};
  qp->type = *type;
  qp->pd = objects_.numbered<Pd>(said(prm::qpc::kPd));
  if (qp->pd == nullptr) return {prm::Status::bad_resource, Syndrome::no_such_pd};
  qp->send_cq = objects_.numbered<Cq>(said(prm::qpc::kSendCqn));
  qp->recv_cq = objects_.numbered<Cq>(said(prm::qpc::kReceiveCqn));
  if (qp->send_cq == nullptr || qp->recv_cq == nullptr) return {prm::Status::bad_resource, Syndrome::no_such_cq};
  qp->uar = objects_.find_uar(said(prm::qpc::kUarPage));
  if (qp->uar == nullptr) return {prm::Status::bad_resource, Syndrome::no_such_uar};
  if (said(prm::qpc::kPageOffset) != 0) return {prm::Status::bad_parameter, Syndrome::bad_value};

  nic::QpRequest wanted;
  wanted.type = *type;
  wanted.pd = qp->pd->number;
  wanted.send_cqn = qp->send_cq->number;
  wanted.recv_cqn = qp->recv_cq->number;
  wanted.user_index = cqe_version_ == 1 ? said(prm::qpc::kUserIndex) : 0;
  wanted.says_srqn = cqe_version_ == 0;
  wanted.user = reinterpret_cast<std::uintptr_t>(&qp->events);
  switch (static_cast<prm::RqType>(said(prm::qpc::kRqType))) {
    case prm::RqType::own:
      wanted.rq_entries = 1u << said(prm::qpc::kLogRqSize);
      wanted.rq_stride_log2 = said(prm::qpc::kLogRqStride) + 4;
      break;
    case prm::RqType::shared:
      qp->srq = objects_.numbered<Srq>(said(prm::qpc::kSharedNumber));
      if (qp->srq == nullptr) return {prm::Status::bad_resource, Syndrome::no_such_srq};
      wanted.srqn = qp->srq->number;
      break;
    case prm::RqType::none: break;
    default: return {prm::Status::bad_opcode, Syndrome::not_supported};
  }
  if (said(prm::qpc::kNoSq) == 0) wanted.sq_blocks = 1u << said(prm::qpc::kLogSqSize);
  const std::uint64_t rq_bytes = std::uint64_t{wanted.rq_entries} << wanted.rq_stride_log2;
  const std::uint64_t sq_bytes = std::uint64_t{wanted.sq_blocks} * 64;
  if (rq_bytes + sq_bytes != 0) {
    const Place rings = place(made, mailbox.get32(prm::create_qp::kUmemId), mailbox.get(prm::create_qp::kUmemOffset),
                              rq_bytes + sq_bytes, false);
    if (!rings.verdict.ok()) return rings.verdict;
    if (rq_bytes != 0) wanted.rq = rings.at;
    if (sq_bytes != 0) wanted.sq = rings.at + rq_bytes;
  }
  const Place record = place(made, said(prm::qpc::kRecordUmemId),
                             mailbox.get(prm::at(prm::create_qp::kContext, prm::qpc::kRecordAddress)), 8, false);
  if (!record.verdict.ok()) return record.verdict;
  wanted.record = record.at;
  const auto number = engine_.create_qp(wanted);
  if (!number) return verdict_of(number.error());
  made.number = qp->number = *number;
  ++qp->pd->users;
  ++qp->send_cq->users;
  ++qp->recv_cq->users;
  ++qp->uar->users;
  if (qp->srq != nullptr) ++qp->srq->users;
  made.inner = std::move(qp);
  return {};
}

// What was said when it was made, where it was made by command, and what has become of it since.
Verdict Firmware::query_qp(Mailbox& mailbox, const Qp& qp, const DevxObject* made) {
  const auto now = engine_.query_qp(qp.number);
  if (!now) return verdict_of(now.error());
  constexpr std::uint32_t kAt = prm::query_qp::kContext;
  static_assert(prm::query_qp::kContext == prm::create_qp::kContext);
  if (made != nullptr) {
    for (const prm::Field field :
         {prm::qpc::kLogRqSize, prm::qpc::kLogRqStride, prm::qpc::kNoSq, prm::qpc::kLogSqSize, prm::qpc::kUarPage,
          prm::qpc::kUserIndex, prm::qpc::kRecordAddress, prm::qpc::kRqType, prm::qpc::kRecordUmemId})
      mailbox.put(prm::at(kAt, field), prm::get(made->mailbox.data(), prm::at(kAt, field)));
  }
  const auto put = [&](prm::Field field, std::uint64_t value) { mailbox.put(prm::at(kAt, field), value); };
  put(prm::qpc::kState, device_state(now->state));
  put(prm::qpc::kService, static_cast<std::uint64_t>(service_of(qp.type)));
  put(prm::qpc::kMigration, prm::qpc::kMigrated);
  if (qp.pd != nullptr) put(prm::qpc::kPd, qp.pd->number);
  if (qp.send_cq != nullptr) put(prm::qpc::kSendCqn, qp.send_cq->number);
  if (qp.recv_cq != nullptr) put(prm::qpc::kReceiveCqn, qp.recv_cq->number);
  if (qp.srq != nullptr) put(prm::qpc::kSharedNumber, qp.srq->number);
  put(prm::qpc::kMtu, now->path_mtu);
  put(prm::qpc::kLogMaxMessage, 30);
  put(prm::qpc::kRemoteQpn, now->dest_qpn);
  put(prm::qpc::kLogReadsOut, log_of_reads(now->max_reads));
  put(prm::qpc::kLogReadsIn, log_of_reads(now->max_dest_reads));
  put(prm::qpc::kRetries, now->retries);
  put(prm::qpc::kRnrRetries, now->rnr_retries);
  put(prm::qpc::kNextSendPsn, now->sq_psn);
  put(prm::qpc::kNextReceivePsn, now->rq_psn);
  put(prm::qpc::kMinRnrTimer, now->min_rnr_timer);
  put(prm::qpc::kQkey, now->qkey);
  put(prm::qpc::kRemoteRead, (now->access & STRAIT_NIC_REMOTE_READ) != 0);
  put(prm::qpc::kRemoteWrite, (now->access & STRAIT_NIC_REMOTE_WRITE) != 0);
  put(prm::qpc::kRemoteAtomic, (now->access & STRAIT_NIC_REMOTE_ATOMIC) != 0);

  const auto path = [&](prm::Field field, std::uint64_t value) { put(prm::at(prm::qpc::kPath, field), value); };
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    high = high << 8 | now->path.dgid[i];
    low = low << 8 | now->path.dgid[8 + i];
  }
  path(prm::ads::kPkeyIndex, now->pkey_index);
  path(prm::ads::kAckTimeout, now->timeout);
  path(prm::ads::kSourceIndex, now->path.sgid_index);
  path(prm::ads::kStaticRate, now->path.static_rate);
  path(prm::ads::kHopLimit, now->path.hop_limit);
  path(prm::ads::kTrafficClass, now->path.traffic_class);
  path(prm::ads::kFlowLabel, now->path.flow_label);
  path(prm::ads::kRemoteGidHigh, high);
  path(prm::ads::kRemoteGidLow, low);
  path(prm::ads::kDscp, now->path.traffic_class >> 2);
  path(prm::ads::kServiceLevel, now->path.sl);
  path(prm::ads::kPort, now->port);
  return {};
}

}  // namespace strait::soft::uverbs
