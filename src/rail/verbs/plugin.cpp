// SPDX-License-Identifier: Apache-2.0
// libstrait-verbs.so: strait_nic_ops in front of VerbsRail.
#include <algorithm>
#include <cstring>
#include <new>
#include <string_view>

#include "rail/verbs/rail.hpp"

namespace strait::rail::verbs {
namespace {

VerbsRail& self(strait_nic* nic) {
  return *reinterpret_cast<VerbsRail*>(nic);
}

void copy_text(std::string_view text, char* out, std::size_t capacity) {
  if (out == nullptr || capacity == 0) return;
  const std::size_t n = std::min(text.size(), capacity - 1);
  std::memcpy(out, text.data(), n);
  out[n] = '\0';
}

std::int32_t refuse(const Error& error, strait_plugin_error* out) {
  if (out != nullptr) {
    out->code = static_cast<std::int32_t>(error.code);
    out->sys_errno = error.sys_errno;
    copy_text(error.explain(), out->text, sizeof out->text);
  }
  return static_cast<std::int32_t>(error.code);
}

// call() gives a Status or a Result; take(value) is for the latter. Nothing is thrown across the boundary.
template <class Call, class Take>
std::int32_t answer(strait_plugin_error* error, Call call, Take take) {
  try {
    auto outcome = call();
    if (!outcome) return refuse(outcome.error(), error);
    take(outcome);
    return 0;
  } catch (const std::bad_alloc&) {
    return refuse(fail(Code::limit, "the verbs rail is out of memory"), error);
  } catch (const std::exception& failure) {
    return refuse(fail(Code::system, "the verbs rail failed: {}", failure.what()), error);
  }
}
constexpr auto kNothing = [](auto&) {};

std::int32_t nic_open(const char* config, strait_nic** out, strait_plugin_error* error) {
  return answer(
      error, [&] { return VerbsRail::open(config == nullptr ? "" : config); },
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
  return answer(
      error, [&] { return self(nic).alloc_pd(); }, [&](auto& made) { *pd = *made; });
}
std::int32_t nic_free_pd(strait_nic* nic, std::uint32_t pd, strait_plugin_error* error) {
  return answer(
      error, [&] { return self(nic).free_pd(pd); }, kNothing);
}
std::int32_t nic_register(strait_nic* nic, const strait_nic_mr_request* request, strait_nic_mr* out,
                          strait_plugin_error* error) {
  return answer(
      error, [&] { return self(nic).register_memory(*request); }, [&](auto& made) { *out = *made; });
}
std::int32_t nic_deregister(strait_nic* nic, std::uint32_t lkey, strait_plugin_error* error) {
  return answer(
      error, [&] { return self(nic).deregister_memory(lkey); }, kNothing);
}
std::int32_t nic_create_cq(strait_nic* nic, const strait_nic_cq_request* request, std::uint32_t* cqn,
                           strait_plugin_error* error) {
  return answer(
      error, [&] { return self(nic).create_cq(*request); }, [&](auto& made) { *cqn = *made; });
}
std::int32_t nic_destroy_cq(strait_nic* nic, std::uint32_t cqn, strait_plugin_error* error) {
  return answer(
      error, [&] { return self(nic).destroy_cq(cqn); }, kNothing);
}
std::int32_t nic_create_qp(strait_nic* nic, const strait_nic_qp_request* request, strait_nic_qp* out,
                           strait_plugin_error* error) {
  return answer(
      error, [&] { return self(nic).create_qp(*request); }, [&](auto& made) { *out = *made; });
}
std::int32_t nic_connect_qp(strait_nic* nic, std::uint32_t qpn, const strait_nic_connect_request* request,
                            strait_plugin_error* error) {
  return answer(
      error, [&] { return self(nic).connect_qp(qpn, *request); }, kNothing);
}
std::int32_t nic_fail_qp(strait_nic* nic, std::uint32_t qpn, strait_plugin_error* error) {
  return answer(
      error, [&] { return self(nic).fail_qp(qpn); }, kNothing);
}
std::int32_t nic_destroy_qp(strait_nic* nic, std::uint32_t qpn, strait_plugin_error* error) {
  return answer(
      error, [&] { return self(nic).destroy_qp(qpn); }, kNothing);
}
std::int32_t nic_describe_qp(strait_nic* nic, std::uint32_t qpn, char* text, std::size_t capacity) {
  return answer(
      nullptr, [&] { return self(nic).describe_qp(qpn); }, [&](auto& said) { copy_text(*said, text, capacity); });
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
      [&](auto& said) { copy_text(*said, text, capacity); });
}
std::int32_t nic_describe_mr(strait_nic* nic, std::uint32_t lkey, char* text, std::size_t capacity) {
  return answer(
      nullptr, [&] { return self(nic).describe_memory(lkey); }, [&](auto& said) { copy_text(*said, text, capacity); });
}

constexpr strait_nic_ops kOps = {
    .abi_version = STRAIT_PLUGIN_ABI,
    .struct_size = sizeof(strait_nic_ops),
    .kind = "verbs",
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
};

}  // namespace
}  // namespace strait::rail::verbs

extern "C" __attribute__((visibility("default"))) const strait_nic_ops* strait_nic_plugin(void);
extern "C" const strait_nic_ops* strait_nic_plugin(void) {
  return &strait::rail::verbs::kOps;
}
