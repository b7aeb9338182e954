// SPDX-License-Identifier: Apache-2.0
#include "soft/uverbs/firmware.hpp"

#include <cerrno>

namespace strait::soft::uverbs {

namespace prm = wire::prm;

namespace {

// What a command needs and gives. Longer mailboxes are accepted: they carry what later versions know.
struct Lengths {
  std::size_t in = prm::kHeaderBytes;
  std::size_t out = prm::kHeaderBytes;
};

Verdict check_lengths(const Mailbox& mailbox, Lengths need) {
  if (mailbox.in_bytes() < need.in) return {prm::Status::bad_input_length, Syndrome::input_too_short};
  if (mailbox.out_bytes() < need.out) return {prm::Status::bad_output_length, Syndrome::output_too_short};
  return {};
}

constexpr Verdict kUnknown{prm::Status::bad_opcode, Syndrome::unknown_command};

int errno_of_failure(const Error& error) {
  return error.code == Code::again ? EBUSY : EINVAL;
}

}  // namespace

Verdict verdict_of(const Error& error) {
  switch (error.code) {
    case Code::limit: return {prm::Status::no_resources, Syndrome::no_resources};
    case Code::again: return {prm::Status::busy, Syndrome::refused};
    case Code::unsupported: return {prm::Status::bad_opcode, Syndrome::not_supported};
    case Code::invalid: return {prm::Status::bad_parameter, Syndrome::refused};
    default: return {prm::Status::internal_error, Syndrome::refused};
  }
}

Verdict Firmware::run(Mailbox& mailbox) {
  switch (mailbox.command()) {
    case prm::Command::query_hca_cap: return query_caps(mailbox);
    case prm::Command::query_lag: mailbox.put(prm::lag::kState, 0); return {};
    default: return kUnknown;
  }
}

Verdict Firmware::create(Mailbox& mailbox, DevxObject& made) {
  Lengths need;
  switch (mailbox.command()) {
    case prm::Command::alloc_pd: break;
    case prm::Command::create_cq: need.in = prm::create_cq::kBytes; break;
    case prm::Command::create_qp: need.in = prm::create_qp::kBytes; break;
    case prm::Command::create_rmp: need.in = prm::create_rmp::kBytes; break;
    case prm::Command::create_mkey: need.in = prm::create_mkey::kBytes; break;
    default: return kUnknown;
  }
  if (const Verdict bad = check_lengths(mailbox, need); !bad.ok()) return bad;
  Verdict verdict;
  switch (mailbox.command()) {
    case prm::Command::alloc_pd: verdict = create_pd(made); break;
    case prm::Command::create_cq: verdict = create_cq(mailbox, made); break;
    case prm::Command::create_qp: verdict = create_qp(mailbox, made); break;
    case prm::Command::create_rmp: verdict = create_rmp(mailbox, made); break;
    default: verdict = create_mkey(mailbox, made); break;
  }
  if (!verdict.ok()) return verdict;
  made.mailbox = mailbox.in();
  for (Umem* const umem : made.umems) ++umem->users;
  mailbox.put(prm::kNumber, made.number);
  return {};
}

Verdict Firmware::query(Mailbox& mailbox, Object& object) {
  switch (mailbox.command()) {
    case prm::Command::query_qp: break;
    case prm::Command::query_cq: return query_said(mailbox, object, {Kind::cq, prm::create_cq::kContext, 64});
    case prm::Command::query_mkey: return query_said(mailbox, object, {Kind::mr, prm::create_mkey::kContext, 64});
    case prm::Command::query_rmp:
      return query_said(
          mailbox, object,
          {Kind::srq, prm::create_rmp::kContext, prm::create_rmp::kBytes - prm::create_rmp::kContext / 8});
    default: return kUnknown;
  }
  if (const Verdict bad = check_lengths(mailbox, {prm::kHeaderBytes, prm::query_qp::kAnswerBytes}); !bad.ok())
    return bad;
  auto* const qp = static_cast<Qp*>(object.as(Kind::qp));
  if (qp == nullptr) return {prm::Status::bad_resource, Syndrome::refused};
  return query_qp(mailbox, *qp, static_cast<DevxObject*>(object.as(Kind::devx)));
}

// The context of what never changes once it is made by command: in the answer it lies where it lay in the mailbox that
// made it. Nobody said anything of what verbs made, and keys that work requests fill become something else.
Verdict Firmware::query_said(Mailbox& mailbox, Object& object, const Said& said) const {
  if (object.as(said.kind) == nullptr) return {prm::Status::bad_resource, Syndrome::refused};
  const auto* const made = static_cast<const DevxObject*>(object.as(Kind::devx));
  if (made == nullptr) return {prm::Status::bad_opcode, Syndrome::not_supported};
  if (said.kind == Kind::mr && prm::get(made->mailbox.data(), prm::at(prm::create_mkey::kContext, prm::mkc::kUmr)) != 0)
    return {prm::Status::bad_opcode, Syndrome::not_supported};
  if (const Verdict bad = check_lengths(mailbox, {prm::kHeaderBytes, said.context / 8 + said.bytes}); !bad.ok())
    return bad;
  for (std::uint32_t i = 0; i < said.bytes; ++i)
    mailbox.put({said.context + 8 * i, 8}, made->mailbox[said.context / 8 + i]);
  return {};
}

int Firmware::destroy(DevxObject& object) {
  if (object.inner->users != 0) return -EBUSY;
  Status gone;
  switch (object.inner->kind) {
    case Kind::pd: gone = engine_.free_pd(object.number); break;
    case Kind::cq: gone = engine_.destroy_cq(object.number); break;
    case Kind::srq: gone = engine_.destroy_srq(object.number); break;
    case Kind::mr: gone = drop_key(engine_, static_cast<const Mr&>(*object.inner)); break;
    default: gone = engine_.destroy_qp(object.number); break;
  }
  if (!gone) return -errno_of_failure(gone.error());
  for (Umem* const umem : object.umems) --umem->users;
  if (auto* const cq = static_cast<Cq*>(object.as(Kind::cq))) --cq->uar->users;
  if (auto* const srq = static_cast<Srq*>(object.as(Kind::srq))) --srq->pd->users;
  if (auto* const mr = static_cast<Mr*>(object.as(Kind::mr))) --mr->pd->users;
  if (auto* const qp = static_cast<Qp*>(object.as(Kind::qp))) let_go(*qp);
  return 0;
}

Firmware::Place Firmware::place(DevxObject& made, std::uint32_t umem_id, std::uint64_t offset, std::uint64_t bytes,
                                bool writable) {
  Umem* const umem = objects_.find<Umem>(umem_id);
  if (umem == nullptr) return {nullptr, {prm::Status::bad_resource, Syndrome::no_such_umem}};
  if (writable && !umem->writable) return {nullptr, {prm::Status::bad_parameter, Syndrome::umem_read_only}};
  if (offset > umem->length_bytes || bytes > umem->length_bytes - offset)
    return {nullptr, {prm::Status::bad_parameter, Syndrome::outside_umem}};
  made.umems.push_back(umem);
  return {umem->bytes + offset, {}};
}

}  // namespace strait::soft::uverbs
