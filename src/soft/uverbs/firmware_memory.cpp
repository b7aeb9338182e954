// SPDX-License-Identifier: Apache-2.0
// Memory keys, and receives that many queue pairs share, by command.
#include <vector>

#include "soft/nic/indirect.hpp"
#include "soft/uverbs/firmware.hpp"

namespace strait::soft::uverbs {

namespace prm = wire::prm;

namespace {

constexpr std::uint32_t kMostParts = 4096;

// A range of another key.
struct Range {
  std::uint32_t key = 0;
  std::uint64_t address = 0;
  std::uint64_t length_bytes = 0;
};

// What a key is made of, with neighbours put together.
Verdict read_ranges(const Mailbox& mailbox, prm::AccessMode mode, std::uint32_t log_part, std::vector<Range>& out) {
  const std::uint32_t count = mailbox.get32(prm::create_mkey::kEntries);
  if (count == 0 || count > kMostParts) return {prm::Status::bad_parameter, Syndrome::bad_value};
  if (mailbox.in_bytes() < prm::create_mkey::kBytes + std::size_t{count} * prm::klm::kBytes)
    return {prm::Status::bad_input_length, Syndrome::input_too_short};
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t at = static_cast<std::uint32_t>((prm::create_mkey::kBytes + i * prm::klm::kBytes) * 8);
    const Range range{
        mailbox.get32(prm::at(at, prm::klm::kKey)), mailbox.get(prm::at(at, prm::klm::kAddress)),
        mode == prm::AccessMode::list ? mailbox.get(prm::at(at, prm::klm::kByteCount)) : std::uint64_t{1} << log_part};
    if (range.length_bytes == 0) return {prm::Status::bad_parameter, Syndrome::bad_value};
    if (!out.empty() && out.back().key == range.key && out.back().address + out.back().length_bytes == range.address) {
      out.back().length_bytes += range.length_bytes;
    } else {
      out.push_back(range);
    }
  }
  return {};
}

}  // namespace

// Keys over pages of a umem, keys made of others, and such as work requests fill later (UMR). Those of physical
// addresses are not there, nor signatures and crypto.
Verdict Firmware::create_mkey(const Mailbox& mailbox, DevxObject& made) {
  const auto said = [&](prm::Field field) { return mailbox.get(prm::at(prm::create_mkey::kContext, field)); };
  const auto mode = static_cast<prm::AccessMode>(said(prm::mkc::kAccessMode));
  const bool by_work_request = said(prm::mkc::kUmr) != 0;
  if (mode == prm::AccessMode::physical || said(prm::mkc::kAccessModeHigh) != 0 || said(prm::mkc::kSignature) != 0 ||
      said(prm::mkc::kCrypto) != 0 || said(prm::mkc::kWholeMemory) != 0 || said(prm::mkc::kQpn) != 0xffffff ||
      (by_work_request && mode != prm::AccessMode::list))
    return {prm::Status::bad_opcode, Syndrome::not_supported};
  const bool free = said(prm::mkc::kFree) != 0;
  if (free && !by_work_request) return {prm::Status::bad_parameter, Syndrome::bad_value};
  auto mr = std::make_unique<Mr>();
  mr->pd = objects_.numbered<Pd>(static_cast<std::uint32_t>(said(prm::mkc::kPd)));
  if (mr->pd == nullptr) return {prm::Status::bad_resource, Syndrome::no_such_pd};
  mr->iova = said(prm::mkc::kStart);
  mr->length_bytes = said(prm::mkc::kLength);
  if ((mr->length_bytes == 0 && !free) || mr->iova + mr->length_bytes < mr->iova)
    return {prm::Status::bad_parameter, Syndrome::bad_value};
  if (said(prm::mkc::kLocalWrite) != 0) mr->access |= STRAIT_NIC_LOCAL_WRITE;
  if (said(prm::mkc::kRemoteWrite) != 0) mr->access |= STRAIT_NIC_REMOTE_WRITE;
  if (said(prm::mkc::kRemoteRead) != 0) mr->access |= STRAIT_NIC_REMOTE_READ;
  if (said(prm::mkc::kAtomic) != 0) mr->access |= STRAIT_NIC_REMOTE_ATOMIC;
  mr->alias = mode != prm::AccessMode::pages;
  const Verdict registered = mr->alias ? make_alias(mailbox, *mr) : make_registration(mailbox, *mr, made);
  if (!registered.ok()) return registered;
  const auto named = engine_.name_key(mr->key, static_cast<std::uint8_t>(said(prm::mkc::kVariant)));
  if (!named) return verdict_of(named.error());  // it was made a moment ago
  mr->key = *named;
  made.number = mr->key >> 8;
  ++mr->pd->users;
  made.inner = std::move(mr);
  return {};
}

Verdict Firmware::make_registration(const Mailbox& mailbox, Mr& mr, DevxObject& made) {
  // The key maps whole pages: the first byte lies as far in its page as its address does.
  const std::uint32_t umem_id = mailbox.get32(prm::create_mkey::kUmemId);
  std::uint64_t offset = mailbox.get(prm::create_mkey::kUmemOffset);
  if (const Umem* const umem = objects_.find<Umem>(umem_id)) {
    const std::uint64_t page = sys::page_bytes();
    const std::uint64_t first = reinterpret_cast<std::uintptr_t>(umem->bytes) + offset;
    offset += mr.iova % page - first % page;  // below the umem's beginning it wraps, and is refused
  }
  const bool writable = (mr.access & ~std::uint32_t{STRAIT_NIC_REMOTE_READ}) != 0;
  const Place bytes = place(made, umem_id, offset, mr.length_bytes, writable);
  if (!bytes.verdict.ok()) return bytes.verdict;
  strait_nic_mr_request wanted{};
  wanted.struct_size = sizeof wanted;
  wanted.pd = mr.pd->number;
  wanted.access = mr.access | STRAIT_NIC_HOST_ADDRESS;
  wanted.fd = -1;
  wanted.fd_offset = reinterpret_cast<std::uintptr_t>(bytes.at);
  wanted.address = mr.iova;
  wanted.length_bytes = mr.length_bytes;
  const auto key = engine_.register_memory(wanted);
  if (!key) return verdict_of(key.error());
  mr.key = key->lkey;
  return {};
}

// One range of one registration is reached as directly as that; everything else part by part.
Verdict Firmware::make_alias(const Mailbox& mailbox, Mr& mr) {
  const auto said = [&](prm::Field field) { return mailbox.get32(prm::at(prm::create_mkey::kContext, field)); };
  const bool by_work_request = said(prm::mkc::kUmr) != 0;
  const bool free = said(prm::mkc::kFree) != 0;
  std::vector<Range> ranges;
  if (!free) {
    const Verdict read = read_ranges(mailbox, static_cast<prm::AccessMode>(said(prm::mkc::kAccessMode)),
                                     said(prm::mkc::kLogPageSize), ranges);
    if (!read.ok()) return read;
  }
  for (const Range& range : ranges) {
    const Mr* mine = nullptr;
    objects_.each<Mr>([&](std::uint32_t, const Mr& other) { mine = other.key == range.key ? &other : mine; });
    if (mine == nullptr) return {prm::Status::bad_resource, Syndrome::no_such_key};
    if (by_work_request || ranges.size() != 1 || mine->alias || engine_.reached_by_port(range.key)) continue;
    const auto key = engine_.add_alias({range.key, mr.pd->number, mr.access, range.address, mr.iova, mr.length_bytes});
    if (!key) return verdict_of(key.error());
    mr.key = *key;
    return {};
  }
  nic::IndirectRequest wanted;
  wanted.pd = mr.pd->number;
  wanted.access = mr.access;
  wanted.start = mr.iova;
  wanted.length_bytes = mr.length_bytes;
  for (const Range& range : ranges) wanted.layout.add(range.key, range.address, range.length_bytes);
  if (by_work_request) wanted.room = said(prm::mkc::kTranslations);
  wanted.free = free;
  wanted.peers_may_free = said(prm::mkc::kRemoteInvalidate) != 0;
  const auto key = engine_.add_indirect(std::move(wanted));
  if (!key) return verdict_of(key.error());
  mr.key = *key;
  return {};
}

// Entries in a list that they link themselves, or one behind the other. Those for striding receives are not there.
Verdict Firmware::create_rmp(const Mailbox& mailbox, DevxObject& made) {
  const auto said = [&](prm::Field field) { return mailbox.get32(prm::at(prm::create_rmp::kWq, field)); };
  if (mailbox.get(prm::create_rmp::kState) != prm::create_rmp::kStateReady)
    return {prm::Status::bad_parameter, Syndrome::bad_value};
  const std::uint32_t type = said(prm::wq::kType);
  if (type > static_cast<std::uint32_t>(prm::WqType::cyclic) || said(prm::wq::kSignature) != 0 ||
      mailbox.get(prm::create_rmp::kBasicWqe) != 0)
    return {prm::Status::bad_opcode, Syndrome::not_supported};
  auto srq = std::make_unique<Srq>();
  srq->pd = objects_.numbered<Pd>(said(prm::wq::kPd));
  if (srq->pd == nullptr) return {prm::Status::bad_resource, Syndrome::no_such_pd};
  if (said(prm::wq::kLogSize) > 15) return {prm::Status::over_limit, Syndrome::bad_value};
  nic::SrqRequest wanted;
  wanted.pd = srq->pd->number;
  wanted.entries = 1u << said(prm::wq::kLogSize);
  wanted.stride_log2 = said(prm::wq::kLogStride);
  wanted.cyclic = type == static_cast<std::uint32_t>(prm::WqType::cyclic);
  wanted.user = reinterpret_cast<std::uintptr_t>(&srq->events);
  const Place ring = place(made, said(prm::wq::kUmemId), 0, std::uint64_t{wanted.entries} << wanted.stride_log2, false);
  if (!ring.verdict.ok()) return ring.verdict;
  const Place record = place(made, said(prm::wq::kRecordUmemId),
                             mailbox.get(prm::at(prm::create_rmp::kWq, prm::wq::kRecordAddress)), 4, false);
  if (!record.verdict.ok()) return record.verdict;
  wanted.ring = ring.at;
  wanted.record = record.at;
  const auto number = engine_.create_srq(wanted);
  if (!number) return verdict_of(number.error());
  if (const std::uint32_t low = said(prm::wq::kLowWater); low != 0) (void)engine_.arm_srq(*number, low);
  made.number = srq->number = *number;
  srq->max_wr = wanted.entries - 1;
  ++srq->pd->users;
  made.inner = std::move(srq);
  return {};
}

}  // namespace strait::soft::uverbs
