// SPDX-License-Identifier: Apache-2.0
// strait_nic_ops in front of CxiRail: the NIC "cxi" of libstrait.
#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/plugin_answer.hpp"
#include "rail/cxi/plugin.hpp"
#include "rail/cxi/rail.hpp"

namespace strait::rail::cxi {
namespace {

using plugin::answer;
using plugin::answer_into;
using plugin::put_text;

CxiRail& self(strait_nic* nic) {
  return *reinterpret_cast<CxiRail*>(nic);
}

std::int32_t nic_open(const char* config, strait_nic** out, strait_plugin_error* error) {
  return answer(
      error, [&] { return CxiRail::open(config == nullptr ? "" : config); },
      [&](auto& rail) { *out = reinterpret_cast<strait_nic*>(rail->release()); });
}
void nic_close(strait_nic* nic) {
  delete &self(nic);
}
std::int32_t nic_info(strait_nic* nic, strait_nic_info* out) {
  *out = self(nic).info();
  return 0;
}
std::int32_t nic_address(strait_nic* nic, strait_nic_address* out) {
  *out = self(nic).address();
  return 0;
}
std::int32_t nic_alloc_pd(strait_nic* nic, std::uint32_t* pd, strait_plugin_error* error) {
  return answer_into(pd, error, [&] { return self(nic).alloc_pd(); });
}
std::int32_t nic_free_pd(strait_nic* nic, std::uint32_t pd, strait_plugin_error* error) {
  return answer(error, [&] { return self(nic).free_pd(pd); });
}
std::int32_t nic_register(strait_nic* nic, const strait_nic_mr_request* request, strait_nic_mr* out,
                          strait_plugin_error* error) {
  return answer_into(out, error, [&] { return self(nic).register_memory(*request); });
}
std::int32_t nic_deregister(strait_nic* nic, std::uint32_t lkey, strait_plugin_error* error) {
  return answer(error, [&] { return self(nic).deregister_memory(lkey); });
}
std::int32_t nic_create_cq(strait_nic* nic, const strait_nic_cq_request* request, std::uint32_t* cqn,
                           strait_plugin_error* error) {
  return answer_into(cqn, error, [&] { return self(nic).create_cq(*request); });
}
std::int32_t nic_destroy_cq(strait_nic* nic, std::uint32_t cqn, strait_plugin_error* error) {
  return answer(error, [&] { return self(nic).destroy_cq(cqn); });
}
std::int32_t nic_create_qp(strait_nic* nic, const strait_nic_qp_request* request, strait_nic_qp* out,
                           strait_plugin_error* error) {
  return answer_into(out, error, [&] { return self(nic).create_qp(*request); });
}
std::int32_t nic_connect_qp(strait_nic* nic, std::uint32_t qpn, const strait_nic_connect_request* request,
                            strait_plugin_error* error) {
  return answer(error, [&] { return self(nic).connect_qp(qpn, *request); });
}
std::int32_t nic_fail_qp(strait_nic* nic, std::uint32_t qpn, strait_plugin_error* error) {
  return answer(error, [&] { return self(nic).fail_qp(qpn); });
}
std::int32_t nic_destroy_qp(strait_nic* nic, std::uint32_t qpn, strait_plugin_error* error) {
  return answer(error, [&] { return self(nic).destroy_qp(qpn); });
}
std::int32_t nic_describe_qp(strait_nic* nic, std::uint32_t qpn, char* text, std::size_t capacity) {
  return answer(
      nullptr, [&] { return self(nic).describe_qp(qpn); }, [&](auto& said) { put_text(*said, text, capacity); });
}
std::int32_t nic_drive(strait_nic* nic, std::uint32_t qpn_hint) {
  return self(nic).drive(qpn_hint);
}
std::int32_t nic_arm(strait_nic* nic) {
  return self(nic).arm() ? 1 : 0;
}
std::int32_t nic_event_fd(strait_nic* nic) {
  return self(nic).event_fd();
}
void nic_counters(strait_nic* nic, char* text, std::size_t capacity) {
  (void)answer(
      nullptr, [&] { return Result<std::string>(self(nic).counters()); },
      [&](auto& said) { put_text(*said, text, capacity); });
}
std::int32_t nic_describe_mr(strait_nic* nic, std::uint32_t lkey, char* text, std::size_t capacity) {
  return answer(
      nullptr, [&] { return self(nic).describe_memory(lkey); }, [&](auto& said) { put_text(*said, text, capacity); });
}

std::int32_t nic_registered_by(strait_nic* nic, std::uint32_t lkey) {
  std::int32_t by = -1;
  (void)answer(
      nullptr, [&] { return self(nic).registered_by(lkey); },
      [&](auto& said) { by = static_cast<std::int32_t>(*said); });
  return by;
}
std::int32_t nic_requirements(strait_nic* nic, std::uint32_t index, strait_requirement* out) {
  bool there = false;
  (void)answer(nullptr, [&]() -> Status {
    there = self(nic).requirement(index, *out);
    return {};
  });
  return there ? 1 : 0;
}

constexpr strait_nic_ops kOps = {
    .abi_version = STRAIT_PLUGIN_ABI,
    .struct_size = sizeof(strait_nic_ops),
    .kind = "cxi",
    .open = nic_open,
    .close = nic_close,
    .info = nic_info,
    .address = nic_address,
    .alloc_pd = nic_alloc_pd,
    .free_pd = nic_free_pd,
    .register_memory = nic_register,
    .deregister_memory = nic_deregister,
    .create_cq = nic_create_cq,
    .destroy_cq = nic_destroy_cq,
    .create_qp = nic_create_qp,
    .connect_qp = nic_connect_qp,
    .fail_qp = nic_fail_qp,
    .destroy_qp = nic_destroy_qp,
    .describe_qp = nic_describe_qp,
    .drive = nic_drive,
    .arm = nic_arm,
    .event_fd = nic_event_fd,
    .counters = nic_counters,
    .describe_mr = nic_describe_mr,
    .registered_by = nic_registered_by,
    .requirements = nic_requirements,
};

}  // namespace

const strait_nic_ops* nic_plugin() {
  return &kOps;
}

}  // namespace strait::rail::cxi
