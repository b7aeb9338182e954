// SPDX-License-Identifier: Apache-2.0
// The software NIC as a plug-in: strait_nic_ops in front of Engine.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>

#include "base/plugin_answer.hpp"
#include "soft/nic/engine.hpp"

namespace strait::soft::nic {
namespace {

using plugin::answer;
using plugin::answer_into;
using plugin::put_text;

Engine& engine_of(strait_nic* nic) {
  return *reinterpret_cast<Engine*>(nic);
}

// "name=strait0,cross_memory=auto,carrier=auto,address=loopback,mtu=4096,capture=FILE"
Result<EngineConfig> parse_config(std::string_view text) {
  EngineConfig config;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view pair = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    const std::size_t equals = pair.find('=');
    const std::string_view name = pair.substr(0, equals);
    const std::string_view value = equals == std::string_view::npos ? std::string_view() : pair.substr(equals + 1);
    if (name == "name" && !value.empty() && value.size() < sizeof(strait_nic_info::name)) {
      config.name = value;
    } else if (name == "cross_memory" && (value == "auto" || value == "off")) {
      config.cross_copies = value == "auto";
    } else if (name == "carrier" && (value == "auto" || value == "grant" || value == "roce")) {
      config.carrier = value == "grant" ? Carrier::grant : value == "roce" ? Carrier::packets : Carrier::any;
    } else if (name == "address") {
      config.packet_address = value;
    } else if (name == "mtu" &&
               std::from_chars(value.data(), value.data() + value.size(), config.packet_bytes).ec == std::errc()) {
    } else if (name == "capture") {
      config.capture = value;
    } else if (name == "strict" && (value == "0" || value == "1")) {
      if (value == "1" && !config.strict) config.strict.emplace();
    } else if (name == "strict_report") {
      if (!config.strict) config.strict.emplace();
      config.strict->report = value;
    } else if (name == "faults") {
      std::string plan(value);
      std::replace(plan.begin(), plan.end(), ';', ',');  // commas end the pairs here
      STRAIT_TRY(config.faults, FaultPlan::parse(plan));
    } else {
      return fail(Code::invalid,
                  "the software NIC does not know \"{}\" (name=..., cross_memory=auto|off, carrier=auto|grant|roce, "
                  "address=..., mtu=..., capture=..., faults=...)",
                  pair);
    }
  }
  return config;
}

std::int32_t nic_open(const char* config, strait_nic** out, strait_plugin_error* error) {
  const auto opened = [&]() -> Result<std::unique_ptr<Engine>> {
    STRAIT_TRY(const EngineConfig parsed, parse_config(config == nullptr ? "" : config));
    return Engine::open(parsed);
  };
  return answer(error, opened, [&](auto& engine) { *out = reinterpret_cast<strait_nic*>(engine->release()); });
}

void nic_close(strait_nic* nic) {
  delete &engine_of(nic);
}

std::int32_t nic_info(strait_nic* nic, strait_nic_info* out) {
  *out = {};
  put_text(engine_of(nic).config().name, out->name, sizeof out->name);
  const std::string packets = engine_of(nic).packet_address();
  put_text(packets.empty() ? "software ConnectX, mlx5 rings, ring grants on this host"
                           : "software ConnectX, mlx5 rings, ring grants on this host, RoCEv2 packets",
           out->description, sizeof out->description);
  put_text(packets.empty() ? "this host" : packets, out->address_text, sizeof out->address_text);
  out->has_packets = packets.empty() ? 0 : 1;
  out->software = 1;
  out->max_inline_bytes = 512;
  out->imports_fds = 1;
  return 0;
}

std::int32_t nic_address(strait_nic* nic, strait_nic_address* out) {
  *out = engine_of(nic).address();
  return 0;
}

std::int32_t nic_alloc_pd(strait_nic* nic, std::uint32_t* pd, strait_plugin_error* error) {
  return answer_into(pd, error, [&] { return Result<std::uint32_t>(engine_of(nic).alloc_pd()); });
}

std::int32_t nic_free_pd(strait_nic* nic, std::uint32_t pd, strait_plugin_error* error) {
  return answer(error, [&] { return engine_of(nic).free_pd(pd); });
}

std::int32_t nic_register(strait_nic* nic, const strait_nic_mr_request* request, strait_nic_mr* out,
                          strait_plugin_error* error) {
  return answer_into(out, error, [&] { return engine_of(nic).register_memory(*request); });
}

std::int32_t nic_deregister(strait_nic* nic, std::uint32_t lkey, strait_plugin_error* error) {
  return answer(error, [&] { return engine_of(nic).deregister_memory(lkey); });
}

std::int32_t nic_create_cq(strait_nic* nic, const strait_nic_cq_request* request, std::uint32_t* cqn,
                           strait_plugin_error* error) {
  return answer_into(cqn, error, [&] { return engine_of(nic).create_cq(*request); });
}

std::int32_t nic_destroy_cq(strait_nic* nic, std::uint32_t cqn, strait_plugin_error* error) {
  return answer(error, [&] { return engine_of(nic).destroy_cq(cqn); });
}

std::int32_t nic_create_qp(strait_nic* nic, const strait_nic_qp_request* request, strait_nic_qp* out,
                           strait_plugin_error* error) {
  return answer_into(out, error, [&] { return engine_of(nic).create_qp(*request); });
}

std::int32_t nic_connect_qp(strait_nic* nic, std::uint32_t qpn, const strait_nic_connect_request* request,
                            strait_plugin_error* error) {
  return answer(error, [&] { return engine_of(nic).connect_qp(qpn, *request); });
}

std::int32_t nic_fail_qp(strait_nic* nic, std::uint32_t qpn, strait_plugin_error* error) {
  return answer(error, [&] { return engine_of(nic).fail_qp(qpn); });
}

std::int32_t nic_destroy_qp(strait_nic* nic, std::uint32_t qpn, strait_plugin_error* error) {
  return answer(error, [&] { return engine_of(nic).destroy_qp(qpn); });
}

std::int32_t nic_describe_qp(strait_nic* nic, std::uint32_t qpn, char* text, std::size_t capacity) {
  return answer(
      nullptr, [&] { return engine_of(nic).describe_qp(qpn); },
      [&](const auto& described) { put_text(*described, text, capacity); });
}

// The data path: allocates nothing that could throw in the steady state, and a pass that does run out of memory is
// lost.
std::int32_t nic_drive(strait_nic* nic, std::uint32_t qpn_hint) {
  return engine_of(nic).drive(qpn_hint);
}
std::int32_t nic_arm(strait_nic* nic) {
  return engine_of(nic).arm() ? 1 : 0;
}
std::int32_t nic_event_fd(strait_nic* nic) {
  return engine_of(nic).event_fd();
}

void nic_counters(strait_nic* nic, char* text, std::size_t capacity) {
  put_text(engine_of(nic).counters_text(), text, capacity);
}

constexpr strait_nic_ops kOps = {
    .abi_version = STRAIT_PLUGIN_ABI,
    .struct_size = sizeof(strait_nic_ops),
    .kind = "soft",
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
    .describe_mr = nullptr,
};

}  // namespace
}  // namespace strait::soft::nic

extern "C" __attribute__((visibility("default"))) const strait_nic_ops* strait_nic_plugin(void);
extern "C" const strait_nic_ops* strait_nic_plugin(void) {
  return &strait::soft::nic::kOps;
}
