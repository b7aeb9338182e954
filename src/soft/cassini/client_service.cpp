// SPDX-License-Identifier: Apache-2.0
// Services as a client asks for them. Who may is settled before: reading is everybody's.
#include <cerrno>
#include <vector>

#include "soft/cassini/client.hpp"
#include "soft/cassini/services.hpp"

namespace strait::soft::cassini {

int Client::svc_alloc(const wire::SvcAllocCmd& c) {
  wire::SvcAllocResp answer{};
  wire::SvcFailInfo fail{};
  const int failed = make_service(card_, c.svc_desc, fail, answer.svc_id);
  if (failed != 0) answer.fail_info = fail;
  if (const int lost = respond(c.resp, answer); lost != 0) return lost;
  return failed;
}

int Client::svc_update(const wire::SvcUpdateCmd& c) {
  const int failed = update_service(card_, c.svc_desc);
  if (const int lost = respond(c.resp, wire::SvcUpdateResp{}); lost != 0) return lost;
  return failed;
}

int Client::svc_destroy(const wire::SvcDestroyCmd& c) {
  return destroy_service(card_, c.svc_id);
}

int Client::svc_get(const wire::SvcGetCmd& c) {
  const Service* service = card_.services.find(c.svc_id);
  return service == nullptr ? -EINVAL : respond(c.resp, wire::SvcGetResp{service->desc});
}

// Lists are copied only where there is room for all of it.
int Client::svc_list_get(const wire::SvcListGetCmd& c) {
  std::vector<wire::SvcDesc> list;
  card_.services.each([&](const Service& service) { list.push_back(service.desc); });
  const auto count = static_cast<std::uint32_t>(list.size());
  if (const int lost = respond(c.resp, wire::SvcListGetResp{count}); lost != 0) return lost;
  if (c.count < count) return 0;
  return memory_.write(c.svc_list, list.data(), list.size() * sizeof list[0]) ? 0 : -EFAULT;
}

int Client::svc_rsrc_get(const wire::SvcRsrcGetCmd& c) {
  const Service* service = card_.services.find(c.svc_id);
  return service == nullptr ? -EINVAL : respond(c.resp, wire::SvcRsrcGetResp{resource_use(card_, *service)});
}

int Client::svc_rsrc_list_get(const wire::SvcRsrcListGetCmd& c) {
  std::vector<wire::RsrcUse> list;
  card_.services.each([&](const Service& service) { list.push_back(resource_use(card_, service)); });
  const auto count = static_cast<std::uint32_t>(list.size());
  if (const int lost = respond(c.resp, wire::SvcRsrcListGetResp{count}); lost != 0) return lost;
  if (c.count < count) return 0;
  return memory_.write(c.rsrc_list, list.data(), list.size() * sizeof list[0]) ? 0 : -EFAULT;
}

int Client::svc_enable(const wire::SvcEnableCmd& c) {
  return enable_service(card_, c.svc_id, c.enable != 0);
}

int Client::svc_set_lpr(const wire::SvcLprCmd& c) {
  return set_lnis_per_rgid(card_, c.svc_id, c.lnis_per_rgid);
}

int Client::svc_get_lpr(const wire::SvcLprCmd& c) {
  const Service* service = card_.services.find(c.svc_id);
  return service == nullptr ? -EINVAL : respond(c.resp, wire::SvcGetValueResp{service->lnis_per_rgid});
}

int Client::svc_set_exclusive_cp(const wire::SvcSetExclusiveCpCmd& c) {
  return set_exclusive_cp(card_, c.svc_id, c.exclusive_cp != 0);
}

int Client::svc_get_exclusive_cp(const wire::SvcGetExclusiveCpCmd& c) {
  const Service* service = card_.services.find(c.svc_id);
  if (service == nullptr) return -EINVAL;
  if (service->profiles.empty()) return -ENOENT;
  const bool exclusive = service->profiles.front()->exclusive_cp;
  return respond(c.resp, wire::SvcGetExclusiveCpResp{static_cast<std::uint8_t>(exclusive ? 1 : 0)});
}

int Client::svc_set_vni_range(const wire::SvcVniRangeCmd& c) {
  return set_vni_range(card_, c.svc_id, c.vni_min, c.vni_max);
}

int Client::svc_get_vni_range(const wire::SvcVniRangeCmd& c) {
  const Service* service = card_.services.find(c.svc_id);
  if (service == nullptr || service->has(wire::kSvcRestrictedVnis) || service->desc.num_vld_vnis == 0) return -EINVAL;
  if (service->profiles.empty()) return -ENOENT;
  const Profile& range = *service->profiles.front();
  return respond(c.resp, wire::SvcGetVniRangeResp{range.match, range.match + range.ignore});
}

int Client::svc_set_netns(const wire::SvcSetNetnsCmd& c) {
  return set_netns(card_, c.svc_id, c.netns);
}

int Client::svc_get_netns(const wire::SvcGetNetnsCmd& c) {
  const Service* service = card_.services.find(c.svc_id);
  if (service == nullptr) return -EINVAL;
  for (const Access& each : service->access) {
    if (each.kind == Access::Kind::netns)
      return respond(c.resp, wire::SvcGetValueResp{static_cast<std::uint32_t>(each.id)});
  }
  return -EINVAL;
}

}  // namespace strait::soft::cassini
