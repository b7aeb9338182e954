// SPDX-License-Identifier: Apache-2.0
// The software Cassinis as a plug-in: strait_cxi_ops in front of OpenDevice.
#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/plugin_answer.hpp"
#include "soft/cassini_host/open_device.hpp"
#include "soft/cassini_host/server.hpp"

namespace strait::soft::cassini {
namespace {

using plugin::put_text;

struct Cxi {
  std::unique_ptr<OpenDevice> device;
  std::uint32_t index = 0;
};

Cxi& cxi_of(strait_cxi* cxi) {
  return *reinterpret_cast<Cxi*>(cxi);
}

std::string with_commas(std::string_view list) {
  std::string out(list);
  std::replace(out.begin(), out.end(), ';', ',');
  return out;
}

// "device=0,host=shared,name=SOCKET,strict=1,strict_seed=0,strict_report=FILE,faults=drop=2%;seed=7,cassini=NAME,
// cassini_moves=remap,peer_memory=nvidia;amd,kernel_faults=attach=524". What is not said of those behind the socket is
// taken from the environment; lists have semicolons here, since commas separate.
Result<OpenSettings> parse_cxi_config(std::string_view text) {
  OpenSettings out;
  DeviceMemoryWords memory = DeviceMemoryWords::from_environment();
  STRAIT_TRY(out.trial, TrialSettings::from_environment());
  while (!text.empty()) {
    const std::string_view pair = text.substr(0, text.find(','));
    text.remove_prefix(pair.size() == text.size() ? pair.size() : pair.size() + 1);
    const std::string_view name = pair.substr(0, pair.find('='));
    const std::string_view value = name.size() == pair.size() ? std::string_view() : pair.substr(name.size() + 1);
    if (name == "device") {
      const auto parsed = std::from_chars(value.data(), value.data() + value.size(), out.device);
      if (parsed.ec != std::errc() || parsed.ptr != value.data() + value.size())
        return fail(Code::invalid, "cxi: device=\"{}\" is no number", value);
    } else if (name == "host" && (value == "shared" || value == "local")) {
      out.local = value == "local";
    } else if (name == "name" && !value.empty()) {
      out.server.name = value;
    } else if (name == "strict" && (value == "0" || value == "1")) {
      out.trial.strict = value == "1";
    } else if (name == "strict_seed" &&
               std::from_chars(value.data(), value.data() + value.size(), out.trial.seed).ec == std::errc()) {
    } else if (name == "strict_report") {
      out.trial.report = value;
    } else if (name == "faults") {
      out.trial.faults = with_commas(value);
    } else if (name == "cassini") {
      out.server.name = server_name(std::string(value));
    } else if (name == "cassini_moves") {
      memory.moves = value;
    } else if (name == "peer_memory") {
      memory.ways = with_commas(value);
    } else if (name == "kernel_faults") {
      memory.faults = with_commas(value);
    } else {
      return fail(Code::invalid,
                  "cxi: \"{}\" is none of device=N, host=shared, host=local, name=SOCKET, strict=0, strict=1, "
                  "strict_seed=N, strict_report=FILE, faults=PLAN, cassini=NAME, cassini_moves=WORD, peer_memory=WAYS "
                  "and kernel_faults=PLAN",
                  pair);
    }
  }
  STRAIT_TRY(out.memory, memory.settings());
  STRAIT_CHECK(out.trial.options());
  return out;
}

// Nothing that is thrown gets further.
template <class Call>
auto without_throwing(Call call) noexcept -> decltype(call()) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return -ENOMEM;
  } catch (const std::exception&) {
    return -EIO;
  }
}

std::int32_t cxi_open(const char* config, strait_cxi** out, strait_plugin_error* error) {
  return plugin::answer_into(out, error, [&]() -> Result<strait_cxi*> {
    STRAIT_TRY(OpenSettings settings, parse_cxi_config(config == nullptr ? "" : config));
    auto made = std::make_unique<Cxi>();
    made->index = settings.device;
    STRAIT_TRY(made->device, OpenDevice::open(std::move(settings)));
    return reinterpret_cast<strait_cxi*>(made.release());
  });
}

void cxi_close(strait_cxi* cxi) {
  delete &cxi_of(cxi);
}

std::int32_t cxi_info(strait_cxi* cxi, strait_cxi_info* out) {
  *out = {};
  out->index = cxi_of(cxi).index;
  out->flags = STRAIT_CXI_SOFTWARE | STRAIT_CXI_MEMORY_DOORBELLS;
  put_text(fmt::format("cxi{}", out->index), out->name, sizeof out->name);
  return 0;
}

std::int64_t cxi_write(strait_cxi* cxi, const void* command, std::uint64_t length_bytes) {
  return without_throwing([&] { return std::int64_t{cxi_of(cxi).device->write(command, length_bytes)}; });
}

std::int32_t cxi_map(strait_cxi* cxi, std::uint64_t offset, std::uint64_t length_bytes, void** address) {
  return without_throwing([&]() -> std::int32_t {
    const std::int64_t at =
        cxi_of(cxi).device->map(nullptr, length_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, offset, false);
    if (at < 0) return static_cast<std::int32_t>(at);
    *address = reinterpret_cast<void*>(at);
    return 0;
  });
}

std::int32_t cxi_unmap(strait_cxi* cxi, void* address, std::uint64_t length_bytes) {
  return without_throwing([&]() -> std::int32_t {
    cxi_of(cxi).device->unmapped(address, length_bytes);
    return sys::unmap_as_asked(address, length_bytes);
  });
}

std::int32_t cxi_wait_fd(strait_cxi* cxi, std::uint32_t wait) {
  return without_throwing([&]() -> std::int32_t {
    auto fd = cxi_of(cxi).device->channel().wait(wait);
    if (!fd) return fd.error().sys_errno != 0 ? -fd.error().sys_errno : -EIO;
    return fd->release();
  });
}

std::int32_t cxi_share(strait_cxi* cxi, std::uint64_t address, std::uint64_t length_bytes, std::int32_t fd,
                       std::uint64_t offset) {
  return without_throwing(
      [&]() -> std::int32_t { return cxi_of(cxi).device->channel().share(address, length_bytes, fd, offset); });
}

std::int32_t cxi_share_port(strait_cxi* cxi, std::uint64_t address, std::uint64_t length_bytes,
                            const strait_memory_port* port) {
  return without_throwing([&]() -> std::int32_t { return cxi_of(cxi).device->lend(address, length_bytes, port); });
}

std::int32_t cxi_unshare(strait_cxi* cxi, std::uint64_t address) {
  return without_throwing([&]() -> std::int32_t { return cxi_of(cxi).device->unshare(address); });
}

void cxi_counters(strait_cxi* cxi, char* text, std::size_t capacity) {
  (void)without_throwing([&]() -> std::int32_t {
    put_text(cxi_of(cxi).device->channel().counters(), text, capacity);
    return 0;
  });
}

constexpr strait_cxi_ops kCxiOps = {STRAIT_PLUGIN_ABI,
                                    sizeof(strait_cxi_ops),
                                    "soft",
                                    cxi_open,
                                    cxi_close,
                                    cxi_info,
                                    cxi_write,
                                    cxi_map,
                                    cxi_unmap,
                                    cxi_wait_fd,
                                    cxi_share,
                                    cxi_share_port,
                                    cxi_unshare,
                                    cxi_counters};

}  // namespace
}  // namespace strait::soft::cassini

extern "C" __attribute__((visibility("default"))) const strait_cxi_ops* strait_cxi_plugin(void);
extern "C" const strait_cxi_ops* strait_cxi_plugin(void) {
  return &strait::soft::cassini::kCxiOps;
}
