// SPDX-License-Identifier: Apache-2.0
// The software NIC as a plug-in: strait_nic_ops in front of Engine.
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>

#include "base/plugin_requirement.hpp"
#include "base/register_error.hpp"
#include "soft/kernel/kernel.hpp"
#include "soft/nic/engine.hpp"

namespace strait::soft::nic {
namespace {

using plugin::answer;
using plugin::answer_into;
using plugin::put_text;

static_assert(kPortRevoked == kernel::kRevoked);

// The NIC, and the kernel under it. What it has registered of accelerators goes after the engine that uses it.
struct SoftNic {
  explicit SoftNic(const kernel::KernelSettings& settings) : kernel(kernel::machine_drivers(), settings) {}
  kernel::Kernel kernel;
  std::mutex mutex;
  std::map<std::uint32_t, kernel::NicMemoryOwner> accelerators;  // by key
  std::unique_ptr<Engine> engine;
};

SoftNic& self(strait_nic* nic) {
  return *reinterpret_cast<SoftNic*>(nic);
}
Engine& engine_of(strait_nic* nic) {
  return *self(nic).engine;
}

struct SoftConfig {
  EngineConfig engine;
  kernel::KernelSettings kernel;
};

// "name=strait0,cross_memory=auto,carrier=auto,address=loopback,mtu=4096,capture=FILE,peer_memory=nvidia;amd"
Result<SoftConfig> parse_config(std::string_view text) {
  SoftConfig out;
  EngineConfig& config = out.engine;
  std::string_view peer_memory;
  std::string_view kernel_faults;
  std::uint64_t strict_seed = 0;
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
    } else if (name == "strict_seed" &&
               std::from_chars(value.data(), value.data() + value.size(), strict_seed).ec == std::errc()) {
    } else if (name == "peer_memory") {
      peer_memory = value;
    } else if (name == "kernel_faults") {
      kernel_faults = value;
    } else if (name == "faults") {
      std::string plan(value);
      std::replace(plan.begin(), plan.end(), ';', ',');  // commas end the pairs here
      STRAIT_TRY(config.faults, FaultPlan::parse(plan));
    } else {
      return fail(Code::invalid,
                  "the software NIC does not know \"{}\" (name=..., cross_memory=auto|off, carrier=auto|grant|roce, "
                  "address=..., mtu=..., capture=..., faults=..., peer_memory=..., kernel_faults=...)",
                  pair);
    }
  }
  if (config.strict) config.strict->seed = strict_seed_of(strict_seed, config.faults);
  STRAIT_TRY(out.kernel, kernel::KernelSettings::parse(peer_memory, kernel_faults));
  return out;
}

std::int32_t nic_open(const char* config, strait_nic** out, strait_plugin_error* error) {
  const auto opened = [&]() -> Result<std::unique_ptr<SoftNic>> {
    STRAIT_TRY(const SoftConfig parsed, parse_config(config == nullptr ? "" : config));
    auto nic = std::make_unique<SoftNic>(parsed.kernel);
    STRAIT_TRY(nic->engine, Engine::open(parsed.engine));
    return nic;
  };
  return answer(error, opened, [&](auto& nic) { *out = reinterpret_cast<strait_nic*>(nic->release()); });
}

void nic_close(strait_nic* nic) {
  delete &self(nic);
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
  out->cpu_atomics = 1;
  const kernel::KernelSettings& ways = self(nic).kernel.settings();
  if (ways.nvidia || ways.amd) out->plain_ways |= STRAIT_NIC_WAY_PEER_MEMORY;
  if (ways.p2p) out->plain_ways |= STRAIT_NIC_WAY_P2P_PAGES;
  if (ways.persistent) out->plain_ways |= STRAIT_NIC_WAY_PERSISTENT;
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

// Accelerators' memory goes through the machine's kernel, by its descriptor or by its address.
Status import_memory(SoftNic& nic, strait_nic_mr_request& request, kernel::NicMemoryOwner& out) {
  const bool by_port = request.fd < 0 && request.port != nullptr;
  if (by_port || (request.access & (STRAIT_NIC_CPU_ADDRESS | STRAIT_NIC_HOST_ADDRESS)) != 0) return {};
  kernel::DmaDevice device;
  device.name = nic.engine->config().name;
  const bool by_fd = request.fd >= 0;
  const bool writes = (request.access & ~std::uint32_t{STRAIT_NIC_REMOTE_READ}) != 0;
  int answer =
      by_fd
          ? nic.kernel.import_dmabuf(device, request.fd, request.fd_offset, request.length_bytes, request.address, out)
          : nic.kernel.import_address(device, request.address, request.length_bytes, request.address, writes, out);
  // Not ours: host memory, or a file as before. But what is said to be device memory has to be somebody's.
  if (answer == 1 && (request.access & STRAIT_NIC_DEVICE_ADDRESS) != 0) answer = -EFAULT;
  if (answer < 0)
    return register_failed(-answer, by_fd ? RegisteredBy::dmabuf : RegisteredBy::device_address, device.name);
  if (answer == 0) {
    request.fd = out->stays() ? out->file().fd : -1;
    request.fd_offset = out->file().offset;
    request.port = out->stays() ? nullptr : out->port();
  }
  return {};
}

std::int32_t nic_register(strait_nic* nic, const strait_nic_mr_request* request, strait_nic_mr* out,
                          strait_plugin_error* error) {
  return answer_into(out, error, [&]() -> Result<strait_nic_mr> {
    strait_nic_mr_request wanted = *request;
    kernel::NicMemoryOwner memory;
    STRAIT_CHECK(import_memory(self(nic), wanted, memory));
    STRAIT_TRY(const strait_nic_mr made, engine_of(nic).register_memory(wanted));
    if (memory) {
      const std::lock_guard lock(self(nic).mutex);
      self(nic).accelerators.insert_or_assign(made.lkey, std::move(memory));
    }
    return made;
  });
}

std::int32_t nic_deregister(strait_nic* nic, std::uint32_t lkey, strait_plugin_error* error) {
  return answer(error, [&]() -> Status {
    STRAIT_CHECK(engine_of(nic).deregister_memory(lkey));
    kernel::NicMemoryOwner last;
    const std::lock_guard lock(self(nic).mutex);
    const auto found = self(nic).accelerators.find(lkey);
    if (found == self(nic).accelerators.end()) return {};
    last = std::move(found->second);
    self(nic).accelerators.erase(found);
    return {};
  });
}

std::int32_t nic_describe_mr(strait_nic* nic, std::uint32_t lkey, char* text, std::size_t capacity) {
  const std::lock_guard lock(self(nic).mutex);
  const auto found = self(nic).accelerators.find(lkey);
  if (found != self(nic).accelerators.end()) {
    put_text(found->second->text(), text, capacity);
    return 0;
  }
  if (!engine_of(nic).reached_by_port(lkey)) return -static_cast<std::int32_t>(Code::invalid);
  put_text("a descriptor that cannot be mapped: the vendor's copies move the bytes for this software NIC", text,
           capacity);
  return 0;
}

std::int32_t nic_registered_by(strait_nic* nic, std::uint32_t lkey) {
  const std::lock_guard lock(self(nic).mutex);
  const auto found = self(nic).accelerators.find(lkey);
  if (found == self(nic).accelerators.end()) return STRAIT_NIC_BY_REQUEST;
  return static_cast<std::int32_t>(found->second->by());
}

// Its kernel is in software too: what that has is a matter of options.
std::int32_t nic_requirements(strait_nic* nic, std::uint32_t index, strait_requirement* out) {
  const kernel::KernelSettings& ways = self(nic).kernel.settings();
  using plugin::met;
  switch (index) {
    case 0:
      return plugin::say(*out, "dma-buf import", met(true), STRAIT_NIC_SERVES_DMABUF, "the software kernel has it");
    case 1:
      return plugin::say(*out, "a peer-memory client (option peer_memory: nvidia, amd)", met(ways.nvidia || ways.amd),
                         STRAIT_NIC_SERVES_PEER_MEMORY,
                         ways.nvidia && ways.amd ? "nv_mem and amdkfd have registered"
                         : ways.nvidia           ? "nv_mem has registered"
                         : ways.amd              ? "amdkfd has registered"
                                                 : "none is switched on");
    case 2:
      return plugin::say(*out, "nvidia_p2p in the NIC's driver (option peer_memory: p2p)", met(ways.p2p),
                         STRAIT_NIC_SERVES_P2P_PAGES, ways.p2p ? "asked where no client answers" : "not switched on");
    default: return 0;
  }
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
  std::string all = engine_of(nic).counters_text();
  if (const std::string more = self(nic).kernel.counters_text(); !more.empty()) all += "," + more;
  put_text(all, text, capacity);
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
    .describe_mr = nic_describe_mr,
    .registered_by = nic_registered_by,
    .requirements = nic_requirements,
};

}  // namespace
}  // namespace strait::soft::nic

extern "C" __attribute__((visibility("default"))) const strait_nic_ops* strait_nic_plugin(void);
extern "C" const strait_nic_ops* strait_nic_plugin(void) {
  return &strait::soft::nic::kOps;
}
