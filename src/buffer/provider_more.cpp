// SPDX-License-Identifier: Apache-2.0
// Provider: what a provider may have beyond recognising, copying and exporting.
#include "buffer/plugin_words.hpp"
#include "buffer/provider.hpp"

namespace strait::buffer {

std::vector<Requirement> requirements_of(const strait_provider_ops* ops, strait_provider* provider) {
  constexpr std::uint32_t kMost = 64;  // whoever says more does not end
  std::vector<Requirement> all;
  const std::size_t end = offsetof(strait_provider_ops, requirements) + sizeof ops->requirements;
  if (ops->struct_size < end || ops->requirements == nullptr) return all;
  for (std::uint32_t i = 0; i < kMost; ++i) {
    strait_requirement raw{};
    if (ops->requirements(provider, i, &raw) != 1) break;
    all.push_back({bounded(raw.what), raw.state, raw.serves, bounded(raw.text)});
  }
  return all;
}

std::optional<strait_range> Provider::range_of(std::uint64_t address) const {
  strait_range range{};
  if (ops_.range == nullptr || ops_.range(raw_, address, &range) != 1) return std::nullopt;
  if (address - range.base >= range.length_bytes) return std::nullopt;  // an answer to another question
  if (range.length_bytes > UINT64_MAX - range.base) return std::nullopt;
  return range;
}

std::uint64_t Provider::identity_by_claim(Range range) const {
  const auto claim = classify(range.address);
  if (!claim || range.length_bytes > claim->base + claim->length_bytes - range.address) return 0;
  return claim->identity;
}

Result<std::uint64_t> Provider::watch(std::uint64_t address, strait_freed_callback call, void* context) {
  if (ops_.watch == nullptr || ops_.unwatch == nullptr) return lacks("tell when memory is freed");
  strait_plugin_error error{};
  std::uint64_t watch = 0;
  const std::int32_t code = ops_.watch(raw_, address, call, context, &watch, &error);
  if (code != 0) return taken(code, error, kind_, "watch memory");
  return watch;
}

void Provider::unwatch(std::uint64_t watch) {
  if (ops_.unwatch != nullptr) ops_.unwatch(raw_, watch);
}

Result<strait_ipc_handle> Provider::ipc_export(Range range) {
  if (ops_.ipc_export == nullptr || ops_.ipc_open == nullptr || ops_.ipc_close == nullptr) {
    return lacks("open memory in another process");
  }
  strait_plugin_error error{};
  strait_ipc_handle handle{};
  handle.fd = -1;
  const std::int32_t code = ops_.ipc_export(raw_, range.address, range.length_bytes, &handle, &error);
  if (code != 0) return taken(code, error, kind_, "make a handle for another process");
  if (handle.bytes_used > STRAIT_IPC_BYTES_MOST) {
    return fail(Code::system, "the {} provider made a handle of {} bytes, {} are the most", kind_, handle.bytes_used,
                STRAIT_IPC_BYTES_MOST);
  }
  return handle;
}

Result<std::uint64_t> Provider::ipc_open(std::uint32_t device, const strait_ipc_handle& handle) {
  if (ops_.ipc_open == nullptr || ops_.ipc_close == nullptr) return lacks("open memory of another process");
  if (handle.bytes_used > STRAIT_IPC_BYTES_MOST) {
    return fail(Code::invalid, "a memory handle says it has {} bytes, {} are the most", handle.bytes_used,
                STRAIT_IPC_BYTES_MOST);
  }
  if (device >= devices_.size()) return fail(Code::invalid, "the {} provider has no device {}", kind_, device);
  strait_plugin_error error{};
  std::uint64_t address = 0;
  const std::int32_t code = ops_.ipc_open(raw_, device, &handle, &address, &error);
  if (code != 0) return taken(code, error, kind_, "open another process's memory");
  return address;
}

Status Provider::ipc_close(std::uint64_t address) {
  if (ops_.ipc_close == nullptr) return lacks("close memory of another process");
  strait_plugin_error error{};
  const std::int32_t code = ops_.ipc_close(raw_, address, &error);
  if (code != 0) return taken(code, error, kind_, "close another process's memory");
  return {};
}

Result<void*> Provider::map_cpu(Range range) {
  if (ops_.map_cpu == nullptr || ops_.unmap_cpu == nullptr) return lacks("map memory for the CPU");
  strait_plugin_error error{};
  void* address = nullptr;
  const std::int32_t code = ops_.map_cpu(raw_, range.address, range.length_bytes, &address, &error);
  if (code != 0) return taken(code, error, kind_, "map memory for the CPU");
  if (address == nullptr) return fail(Code::system, "the {} provider mapped memory at the null address", kind_);
  return address;
}

void Provider::unmap_cpu(void* cpu_address) {
  if (ops_.unmap_cpu != nullptr) ops_.unmap_cpu(raw_, cpu_address);
}

Result<Provider::Advised> Provider::advise(Range range, std::uint32_t advice, std::uint32_t place) {
  if (advice == 0 || advice > STRAIT_ADVICE_LAST) return fail(Code::invalid, "there is no memory advice {}", advice);
  if (ops_.advise == nullptr) return Advised::unsupported;
  strait_plugin_error error{};
  std::uint32_t answer = 0;
  const std::int32_t code = ops_.advise(raw_, range.address, range.length_bytes, advice, place, &answer, &error);
  if (code != 0) return taken(code, error, kind_, "take advice");
  if (answer < STRAIT_ADVICE_DONE || answer > STRAIT_ADVICE_UNSUPPORTED) {
    return fail(Code::system, "the {} provider answered advice with {}, which means nothing", kind_, answer);
  }
  return static_cast<Advised>(answer);
}

Result<Provider::Flush> Provider::flush(std::uint32_t device, bool perform) {
  if (ops_.flush == nullptr) return lacks("say whether a NIC's writes need a flush");
  strait_plugin_error error{};
  strait_flush_need raw{};
  const std::int32_t code = ops_.flush(raw_, device, perform ? 1 : 0, &raw, &error);
  if (code != 0) return taken(code, error, kind_, "flush");
  return Flush{raw.need, raw.done != 0, bounded(raw.text)};
}

Result<std::uint64_t> Provider::reach_host(std::uint32_t device, Range pages, std::uint32_t flags) {
  if (ops_.reach_host == nullptr || ops_.release_host == nullptr) return lacks("let its devices at host memory");
  if (device >= devices_.size()) return fail(Code::invalid, "the {} provider has no device {}", kind_, device);
  strait_plugin_error error{};
  std::uint64_t address = 0;
  const std::int32_t code = ops_.reach_host(raw_, device, reinterpret_cast<void*>(pages.address), pages.length_bytes,
                                            flags, &address, &error);
  if (code != 0) return taken(code, error, kind_, "let its devices at host memory");
  return address;
}

Status Provider::release_host(Range pages) {
  if (ops_.release_host == nullptr) return lacks("let go of host memory");
  strait_plugin_error error{};
  const std::int32_t code = ops_.release_host(raw_, reinterpret_cast<void*>(pages.address), &error);
  if (code != 0) return taken(code, error, kind_, "let go of host memory");
  return {};
}

Result<strait_memory_port> Provider::memory_port() {
  if (ops_.memory_port == nullptr) return lacks("lend its memory to a software NIC");
  strait_plugin_error error{};
  strait_memory_port port{};
  const std::int32_t code = ops_.memory_port(raw_, &port, &error);
  if (code != 0) return taken(code, error, kind_, "lend its memory to a software NIC");
  const bool whole = port.read != nullptr && port.write != nullptr && port.compare_swap != nullptr &&
                     port.fetch_add != nullptr && port.order != nullptr;
  if (!whole) return fail(Code::system, "the memory port of the {} provider lacks a function", kind_);
  return port;
}

}  // namespace strait::buffer
