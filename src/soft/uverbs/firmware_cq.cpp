// SPDX-License-Identifier: Apache-2.0
// Domains and completion queues, by command.
#include "soft/uverbs/firmware.hpp"
#include "soft/uverbs/limits.hpp"

namespace strait::soft::uverbs {

namespace prm = wire::prm;

Verdict Firmware::create_pd(DevxObject& made) {
  auto pd = std::make_unique<Pd>();
  made.number = pd->number = engine_.alloc_pd();
  made.inner = std::move(pd);
  return {};
}

Verdict Firmware::create_cq(const Mailbox& mailbox, DevxObject& made) {
  const auto said = [&](prm::Field field) { return mailbox.get32(prm::at(prm::create_cq::kContext, field)); };
  if (said(prm::cqc::kCompression) != 0) return {prm::Status::bad_opcode, Syndrome::not_supported};
  if (said(prm::cqc::kEntrySize) > 1 || said(prm::cqc::kPageOffset) != 0)
    return {prm::Status::bad_parameter, Syndrome::bad_value};
  if ((std::uint64_t{1} << said(prm::cqc::kLogSize)) > limits::kCompletionEntries + 1)
    return {prm::Status::over_limit, Syndrome::bad_value};
  auto cq = std::make_unique<Cq>();
  cq->uar = objects_.find_uar(said(prm::cqc::kUarPage));
  if (cq->uar == nullptr) return {prm::Status::bad_resource, Syndrome::no_such_uar};

  nic::CqRequest wanted;
  wanted.entries = 1u << said(prm::cqc::kLogSize);
  wanted.cqe_bytes = said(prm::cqc::kEntrySize) == 0 ? 64 : 128;
  wanted.collapsed = said(prm::cqc::kCollapsed) != 0;
  wanted.ignore_overrun = said(prm::cqc::kIgnoreOverrun) != 0;
  wanted.events = true;  // who subscribes later finds it ready
  wanted.user = reinterpret_cast<std::uintptr_t>(&cq->events);
  const Place ring = place(made, mailbox.get32(prm::create_cq::kUmemId), mailbox.get(prm::create_cq::kUmemOffset),
                           std::uint64_t{wanted.entries} * wanted.cqe_bytes, true);
  if (!ring.verdict.ok()) return ring.verdict;
  const Place record = place(made, said(prm::cqc::kRecordUmemId),
                             mailbox.get(prm::at(prm::create_cq::kContext, prm::cqc::kRecordAddress)), 8, false);
  if (!record.verdict.ok()) return record.verdict;
  wanted.ring = ring.at;
  wanted.record = record.at;
  const auto number = engine_.create_cq(wanted);
  if (!number) return verdict_of(number.error());
  cq->entries = wanted.entries;
  ++cq->uar->users;
  made.number = cq->number = *number;
  made.inner = std::move(cq);
  return {};
}

}  // namespace strait::soft::uverbs
