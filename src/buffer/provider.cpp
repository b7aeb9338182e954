// SPDX-License-Identifier: Apache-2.0
#include "buffer/provider.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "sys/pause.hpp"

namespace strait::buffer {
namespace {

template <std::size_t N>
std::string bounded(const char (&text)[N]) {
  return std::string(text, ::strnlen(text, N));
}

// A plug-in's words become our error. What it says is not trusted to be well formed.
Error taken(std::int32_t code, const strait_plugin_error& raw, const std::string& kind, const char* what) {
  Error error;
  if (code < static_cast<std::int32_t>(Code::invalid) || code > static_cast<std::int32_t>(Code::system)) {
    error = fail(Code::system, "the {} provider failed to {} with the unknown code {}", kind, what, code);
  } else if (raw.text[0] == '\0') {
    error = fail(static_cast<Code>(code), "the {} provider failed to {} and gave no reason", kind, what);
  } else {
    error = Error{static_cast<Code>(code), 0, 0, bounded(raw.text), {}};
  }
  error.sys_errno = raw.sys_errno;
  if (raw.sys_errno != 0) error.remedy = fail_errno(raw.sys_errno, {}).remedy;
  return error;
}

Status check_ops(const strait_provider_ops* ops, const std::string& origin) {
  if (ops == nullptr) return fail(Code::invalid, "the memory provider from {} is null", origin);
  if (ops->abi_version != STRAIT_PLUGIN_ABI) {
    return with_remedy(fail(Code::unsupported, "the memory provider from {} speaks plug-in version {}, this library {}",
                            origin, ops->abi_version, STRAIT_PLUGIN_ABI),
                       "Build both from the same release.");
  }
  if (ops->struct_size < STRAIT_PROVIDER_OPS_LEAST) {
    return fail(Code::unsupported, "the memory provider from {} has a struct of {} bytes, {} are needed", origin,
                ops->struct_size, STRAIT_PROVIDER_OPS_LEAST);
  }
  if (ops->kind == nullptr || ops->kind[0] == '\0') {
    return fail(Code::invalid, "the memory provider from {} has no kind", origin);
  }
  const bool complete = ops->open != nullptr && ops->close != nullptr && ops->device_count != nullptr &&
                        ops->device_info != nullptr && ops->classify != nullptr;
  if (!complete)
    return fail(Code::invalid, "the {} provider from {} lacks a function that every provider has", ops->kind, origin);
  return {};
}

}  // namespace

Result<Plugin> load_plugin(const std::string& path, std::string config) {
  STRAIT_TRY(sys::Library library, sys::Library::open(path));
  STRAIT_TRY(const auto entry, library.symbol<strait_provider_entry>(STRAIT_PROVIDER_ENTRY));
  Plugin plugin{std::move(library), entry(), path, std::move(config)};
  STRAIT_CHECK(check_ops(plugin.ops, path));
  return plugin;
}

Result<Plugin> use_plugin(const strait_provider_ops* ops, std::string config) {
  STRAIT_CHECK(check_ops(ops, "the caller"));
  return Plugin{{}, ops, "the caller", std::move(config)};
}

Result<std::unique_ptr<Provider>> Provider::open(Plugin plugin) {
  STRAIT_CHECK(check_ops(plugin.ops, plugin.origin));
  strait_plugin_error raw_error{};
  strait_provider* raw = nullptr;
  const std::int32_t code = plugin.ops->open(plugin.config.c_str(), &raw, &raw_error);
  if (code != 0) return taken(code, raw_error, plugin.ops->kind, "open");
  std::unique_ptr<Provider> provider(new Provider(std::move(plugin), raw));
  STRAIT_CHECK(provider->read_devices());
  return provider;
}

Provider::~Provider() {
  plugin_.ops->close(raw_);
}

Status Provider::read_devices() {
  const std::uint32_t count = plugin_.ops->device_count(raw_);
  for (std::uint32_t i = 0; i < count; ++i) {
    strait_device_info info{};
    if (const std::int32_t code = plugin_.ops->device_info(raw_, i, &info); code != 0) {
      return taken(code, strait_plugin_error{}, kind_, "describe a device");
    }
    devices_.push_back({bounded(info.name), kind_, bounded(info.description), info.memory_bytes, info.capabilities,
                        info.software != 0});
    if (devices_.back().name.empty()) return fail(Code::invalid, "device {} of the {} provider has no name", i, kind_);
  }
  return {};
}

Error Provider::lacks(const char* what) const {
  return fail(Code::unsupported, "the {} provider cannot {}", kind_, what);
}

std::optional<strait_claim> Provider::classify(std::uint64_t address) const {
  strait_claim claim{};
  if (plugin_.ops->classify(raw_, address, &claim) != 1) return std::nullopt;
  // An answer that does not contain the question would make every later check meaningless.
  if (address - claim.base >= claim.length_bytes || claim.device >= devices_.size()) return std::nullopt;
  return claim;
}

Result<std::uint64_t> Provider::allocate(std::uint32_t device, std::uint64_t length_bytes) {
  if (plugin_.ops->allocate == nullptr || plugin_.ops->free == nullptr) return lacks("allocate memory");
  strait_plugin_error error{};
  std::uint64_t address = 0;
  const std::int32_t code = plugin_.ops->allocate(raw_, device, length_bytes, &address, &error);
  if (code != 0) return taken(code, error, kind_, "allocate memory");
  return address;
}

Status Provider::free(std::uint64_t address) {
  if (plugin_.ops->free == nullptr) return lacks("free memory");
  strait_plugin_error error{};
  const std::int32_t code = plugin_.ops->free(raw_, address, &error);
  if (code != 0) return taken(code, error, kind_, "free memory");
  return {};
}

Result<std::uint64_t> Provider::start_copy(std::uint64_t to, std::uint64_t from, std::uint64_t length_bytes) {
  if (plugin_.ops->copy == nullptr || plugin_.ops->copy_done == nullptr) return lacks("copy memory");
  strait_plugin_error error{};
  std::uint64_t ticket = 0;
  const std::int32_t code = plugin_.ops->copy(raw_, to, from, length_bytes, &ticket, &error);
  if (code != 0) return taken(code, error, kind_, "start a copy");
  return ticket;
}

Status Provider::wait_copy(std::uint64_t ticket, sys::Deadline deadline) {
  for (std::uint32_t turn = 0;; ++turn) {
    const std::int32_t done = plugin_.ops->copy_done(raw_, ticket);
    if (done > 0) return {};
    if (done < 0) return taken(-done, strait_plugin_error{}, kind_, "finish a copy");
    if (deadline.passed()) {
      return fail(Code::timeout, "a copy by the {} provider did not finish by its deadline; it still goes on", kind_);
    }
    sys::pause_turn(turn);
  }
}

Result<Provider::RawFd> Provider::export_fd(Range range) {
  if (plugin_.ops->export_fd == nullptr || plugin_.ops->close_fd == nullptr) return lacks("export memory");
  strait_plugin_error error{};
  RawFd out;
  const std::int32_t code =
      plugin_.ops->export_fd(raw_, range.address, range.length_bytes, &out.fd, &out.offset, &error);
  if (code != 0) return taken(code, error, kind_, "export memory");
  if (out.fd < 0) return fail(Code::system, "the {} provider exported memory without a descriptor", kind_);
  return out;
}

Result<Provider::RawFd> Provider::export_pages(Range range) {
  if (plugin_.ops->struct_size < sizeof(strait_provider_ops) || plugin_.ops->export_pages == nullptr)
    return lacks("hand out the pages behind its dma-bufs");
  strait_plugin_error error{};
  RawFd out;
  const std::int32_t code =
      plugin_.ops->export_pages(raw_, range.address, range.length_bytes, &out.fd, &out.offset, &error);
  if (code != 0) return taken(code, error, kind_, "hand out its pages");
  if (out.fd < 0) return fail(Code::system, "the {} provider handed out pages without a descriptor", kind_);
  return out;
}

void Provider::close_fd(std::int32_t fd) {
  plugin_.ops->close_fd(raw_, fd);
}

std::string Provider::counters() const {
  if (plugin_.ops->counters == nullptr) return {};
  std::array<char, 2048> text{};
  plugin_.ops->counters(raw_, text.data(), text.size());
  return std::string(text.data(), ::strnlen(text.data(), text.size()));
}

}  // namespace strait::buffer
