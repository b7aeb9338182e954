// SPDX-License-Identifier: Apache-2.0
#include "rail/cxi/objects.hpp"

namespace strait::rail::cxi {

Result<Lni> Lni::make(Device& device, std::uint32_t service) {
  w::LniAllocCmd command{};
  command.svc_id = service;
  STRAIT_TRY(const auto answer, device.ask<w::LniAllocResp>(command));
  Lni lni;
  lni.handle_ = {device, answer.lni};
  return lni;
}

Result<Profile> Profile::make(const Lni& lni, std::uint32_t vni, w::TrafficClass tc, w::CpType type) {
  Profile profile;
  w::CpAllocResp answer{};
  if (type == w::CpType::any) {  // every driver knows this one
    w::CpAllocCmd command{};
    command.lni = lni.number();
    command.vni = vni;
    command.tc = tc;
    STRAIT_TRY(answer, lni.device().ask<w::CpAllocResp>(command));
  } else {
    w::TrigCpAllocCmd command{};
    command.lni = lni.number();
    command.vni = vni;
    command.tc = tc;
    command.cp_type = type;
    STRAIT_TRY(answer, lni.device().ask<w::CpAllocResp>(command));
  }
  profile.handle_ = {lni.device(), answer.cp_hndl};
  profile.lcid_ = answer.lcid;
  return profile;
}

Result<Domain> Domain::make(const Lni& lni, std::uint32_t vni, std::uint32_t pid) {
  w::DomainAllocCmd command{};
  command.lni = lni.number();
  command.vni = vni;
  command.pid = pid;
  STRAIT_TRY(const auto answer, lni.device().ask<w::DomainAllocResp>(command));
  Domain domain;
  domain.handle_ = {lni.device(), answer.domain};
  domain.vni_ = answer.vni;
  domain.pid_ = answer.pid;
  return domain;
}

Result<Memory> Memory::make(const Lni& lni, const Request& request) {
  w::AtuMapCmd command{};
  command.lni = lni.number();
  command.va = request.address;
  command.len = request.bytes;
  command.flags = request.flags | w::kMapPin;
  command.hints.dmabuf_fd = w::kNoDmabufFd;
  if (request.dmabuf >= 0 || (request.flags & w::kMapDevice) != 0) {
    command.hints.dmabuf_fd = request.dmabuf;
    command.hints.dmabuf_offset = request.dmabuf_offset;
    command.hints.dmabuf_valid = request.dmabuf >= 0 ? 1 : 0;
  }
  Memory memory;
  if (request.port != nullptr) {
    STRAIT_CHECK(lni.device().share_port(request.address, request.bytes, request.port));
    memory.told_ = {lni.device(), request.address};
  }
  STRAIT_TRY(const auto answer, lni.device().ask<w::AtuMapResp>(command));
  memory.handle_ = {lni.device(), answer.id};
  memory.md_ = answer.md;
  return memory;
}

Result<Wait> Wait::make(const Lni& lni) {
  w::WaitAllocCmd command{};
  command.lni = lni.number();
  STRAIT_TRY(const auto answer, lni.device().ask<w::WaitAllocResp>(command));
  Wait wait;
  wait.handle_ = {lni.device(), answer.wait};
  STRAIT_TRY(wait.notifier_, lni.device().notifier(answer));
  return wait;
}

Result<Counter> Counter::make(const Lni& lni, std::uint64_t* word) {
  w::CtAllocCmd command{};
  command.lni = lni.number();
  command.wb = reinterpret_cast<std::uintptr_t>(word);
  STRAIT_TRY(const auto answer, lni.device().ask<w::CtAllocResp>(command));
  Counter counter;
  counter.handle_ = {lni.device(), answer.ctn};
  STRAIT_TRY(counter.doorbell_, lni.device().map(answer.doorbell));
  return counter;
}

Status Counter::move_to(std::uint64_t* word) {
  w::CtWbUpdateCmd command{};
  command.ctn = number();
  command.wb = reinterpret_cast<std::uintptr_t>(word);
  return handle_.device().tell(command);
}

void Counter::store(std::uint32_t offset, std::uint64_t value) {
  auto* const word = reinterpret_cast<std::uint64_t*>(doorbell_.data() + offset);
  const bool adds = offset == w::kCtAddSuccessOffset || offset == w::kCtAddFailureOffset;
  // Memory keeps the last store only: two equal additions would be one.
  if (adds && (handle_.device().flags() & STRAIT_CXI_MEMORY_DOORBELLS) != 0) {
    __atomic_fetch_add(word, value, __ATOMIC_RELEASE);
  } else {
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
  }
}

Result<Portal> Portal::make(const Lni& lni, const Domain& domain, std::uint32_t index, std::uint32_t event_queue,
                            std::uint64_t options) {
  w::PteAllocCmd command{};
  command.lni_hndl = lni.number();
  command.evtq_hndl = event_queue;
  command.opts = options;
  STRAIT_TRY(const auto made, lni.device().ask<w::PteAllocResp>(command));
  Portal portal;
  portal.handle_ = {lni.device(), made.pte_number};
  portal.index_ = index;
  w::PteMapCmd place{};
  place.pte_number = made.pte_number;
  place.domain_hndl = domain.number();
  place.pid_offset = index;
  STRAIT_TRY(const auto mapped, lni.device().ask<w::PteMapResp>(place));
  portal.mapped_ = {lni.device(), mapped.pte_index};
  return portal;
}

Status Portal::give_back() {
  STRAIT_CHECK(mapped_.give_back());
  return handle_.give_back();
}

Result<w::PteStatus> Portal::status() const {
  w::PteStatusCmd command{};
  command.pte_index = number();
  return handle_.device().ask<w::PteStatus>(command);
}

}  // namespace strait::rail::cxi
