// SPDX-License-Identifier: Apache-2.0
// strait_nic_ops in front of a rail: a class with the calls of that table as members that answer with Result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/plugin_answer.hpp"
#include "strait/plugin.h"

namespace strait::rail::proxy {

template <class Rail>
struct NicCalls {
  static Rail& self(strait_nic* nic) { return *reinterpret_cast<Rail*>(nic); }

  static std::int32_t open(const char* config, strait_nic** out, strait_plugin_error* error) {
    return plugin::answer(
        error, [&] { return Rail::open(config == nullptr ? "" : config); },
        [&](auto& rail) { *out = reinterpret_cast<strait_nic*>(rail->release()); });
  }
  static void close(strait_nic* nic) { delete &self(nic); }
  static std::int32_t info(strait_nic* nic, strait_nic_info* out) {
    *out = self(nic).info();
    return 0;
  }
  static std::int32_t address(strait_nic* nic, strait_nic_address* out) {
    *out = self(nic).address();
    return 0;
  }
  static std::int32_t alloc_pd(strait_nic* nic, std::uint32_t* pd, strait_plugin_error* error) {
    return plugin::answer_into(pd, error, [&] { return self(nic).alloc_pd(); });
  }
  static std::int32_t free_pd(strait_nic* nic, std::uint32_t pd, strait_plugin_error* error) {
    return plugin::answer(error, [&] { return self(nic).free_pd(pd); });
  }
  static std::int32_t register_memory(strait_nic* nic, const strait_nic_mr_request* request, strait_nic_mr* out,
                                      strait_plugin_error* error) {
    return plugin::answer_into(out, error, [&] { return self(nic).register_memory(*request); });
  }
  static std::int32_t deregister_memory(strait_nic* nic, std::uint32_t lkey, strait_plugin_error* error) {
    return plugin::answer(error, [&] { return self(nic).deregister_memory(lkey); });
  }
  static std::int32_t create_cq(strait_nic* nic, const strait_nic_cq_request* request, std::uint32_t* cqn,
                                strait_plugin_error* error) {
    return plugin::answer_into(cqn, error, [&] { return self(nic).create_cq(*request); });
  }
  static std::int32_t destroy_cq(strait_nic* nic, std::uint32_t cqn, strait_plugin_error* error) {
    return plugin::answer(error, [&] { return self(nic).destroy_cq(cqn); });
  }
  static std::int32_t create_qp(strait_nic* nic, const strait_nic_qp_request* request, strait_nic_qp* out,
                                strait_plugin_error* error) {
    return plugin::answer_into(out, error, [&] { return self(nic).create_qp(*request); });
  }
  static std::int32_t connect_qp(strait_nic* nic, std::uint32_t qpn, const strait_nic_connect_request* request,
                                 strait_plugin_error* error) {
    return plugin::answer(error, [&] { return self(nic).connect_qp(qpn, *request); });
  }
  static std::int32_t fail_qp(strait_nic* nic, std::uint32_t qpn, strait_plugin_error* error) {
    return plugin::answer(error, [&] { return self(nic).fail_qp(qpn); });
  }
  static std::int32_t destroy_qp(strait_nic* nic, std::uint32_t qpn, strait_plugin_error* error) {
    return plugin::answer(error, [&] { return self(nic).destroy_qp(qpn); });
  }
  static std::int32_t describe_qp(strait_nic* nic, std::uint32_t qpn, char* text, std::size_t capacity) {
    return plugin::answer(
        nullptr, [&] { return self(nic).describe_qp(qpn); },
        [&](auto& said) { plugin::put_text(*said, text, capacity); });
  }
  static std::int32_t drive(strait_nic* nic, std::uint32_t qpn_hint) { return self(nic).drive(qpn_hint); }
  static std::int32_t arm(strait_nic* nic) { return self(nic).arm() ? 1 : 0; }
  static std::int32_t event_fd(strait_nic* nic) { return self(nic).event_fd(); }
  static void counters(strait_nic* nic, char* text, std::size_t capacity) {
    (void)plugin::answer(
        nullptr, [&] { return Result<std::string>(self(nic).counters()); },
        [&](auto& said) { plugin::put_text(*said, text, capacity); });
  }
  static std::int32_t describe_mr(strait_nic* nic, std::uint32_t lkey, char* text, std::size_t capacity) {
    return plugin::answer(
        nullptr, [&] { return self(nic).describe_memory(lkey); },
        [&](auto& said) { plugin::put_text(*said, text, capacity); });
  }

  static std::int32_t registered_by(strait_nic* nic, std::uint32_t lkey) {
    std::int32_t by = -1;
    (void)plugin::answer(
        nullptr, [&] { return self(nic).registered_by(lkey); },
        [&](auto& said) { by = static_cast<std::int32_t>(*said); });
    return by;
  }
  static std::int32_t requirements(strait_nic* nic, std::uint32_t index, strait_requirement* out) {
    bool there = false;
    (void)plugin::answer(nullptr, [&]() -> Status {
      there = self(nic).requirement(index, *out);
      return {};
    });
    return there ? 1 : 0;
  }
};

// The table of a rail, under its name.
template <class Rail>
constexpr strait_nic_ops nic_ops(const char* kind) {
  return {
      .abi_version = STRAIT_PLUGIN_ABI,
      .struct_size = sizeof(strait_nic_ops),
      .kind = kind,
      .open = NicCalls<Rail>::open,
      .close = NicCalls<Rail>::close,
      .info = NicCalls<Rail>::info,
      .address = NicCalls<Rail>::address,
      .alloc_pd = NicCalls<Rail>::alloc_pd,
      .free_pd = NicCalls<Rail>::free_pd,
      .register_memory = NicCalls<Rail>::register_memory,
      .deregister_memory = NicCalls<Rail>::deregister_memory,
      .create_cq = NicCalls<Rail>::create_cq,
      .destroy_cq = NicCalls<Rail>::destroy_cq,
      .create_qp = NicCalls<Rail>::create_qp,
      .connect_qp = NicCalls<Rail>::connect_qp,
      .fail_qp = NicCalls<Rail>::fail_qp,
      .destroy_qp = NicCalls<Rail>::destroy_qp,
      .describe_qp = NicCalls<Rail>::describe_qp,
      .drive = NicCalls<Rail>::drive,
      .arm = NicCalls<Rail>::arm,
      .event_fd = NicCalls<Rail>::event_fd,
      .counters = NicCalls<Rail>::counters,
      .describe_mr = NicCalls<Rail>::describe_mr,
      .registered_by = NicCalls<Rail>::registered_by,
      .requirements = NicCalls<Rail>::requirements,
  };
}

}  // namespace strait::rail::proxy
