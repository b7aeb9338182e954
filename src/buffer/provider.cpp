// SPDX-License-Identifier: Apache-2.0
#include "buffer/provider.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "buffer/plugin_words.hpp"
#include "sys/pause.hpp"

namespace strait::buffer {
namespace {

Status check_ops(const strait_provider_ops* ops, const std::string& origin) {
  if (ops == nullptr) return fail(Code::invalid, "the memory provider from {} is null", origin);
  if (ops->abi_version != STRAIT_PROVIDER_ABI) {
    return with_remedy(
        fail(Code::unsupported, "the memory provider from {} speaks provider version {}, this library {}", origin,
             ops->abi_version, STRAIT_PROVIDER_ABI),
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
  Plugin plugin{std::move(library), entry(), path, std::move(config), false};
  STRAIT_CHECK(check_ops(plugin.ops, path));
  return plugin;
}

Result<Plugin> use_plugin(const strait_provider_ops* ops, std::string config) {
  STRAIT_CHECK(check_ops(ops, "the caller"));
  return Plugin{{}, ops, "the caller", std::move(config), false};
}

Result<std::unique_ptr<Provider>> Provider::open(Plugin plugin) {
  STRAIT_CHECK(check_ops(plugin.ops, plugin.origin));
  strait_plugin_error raw_error{};
  strait_provider* raw = nullptr;
  const std::int32_t code = plugin.ops->open(plugin.config.c_str(), &raw, &raw_error);
  if (code != 0) return taken(code, raw_error, plugin.ops->kind, "open");
  std::unique_ptr<Provider> provider(new Provider(std::move(plugin), raw));
  STRAIT_CHECK(provider->read_devices());
  if (auto port = provider->memory_port()) provider->port_ = *port;
  return provider;
}

Provider::Provider(Plugin plugin, strait_provider* raw)
    : plugin_(std::move(plugin)), raw_(raw), kind_(plugin_.ops->kind) {
  std::memcpy(&ops_, plugin_.ops, std::min<std::size_t>(plugin_.ops->struct_size, sizeof ops_));
  identity_ = ops_.identity;
}

Provider::~Provider() {
  ops_.close(raw_);
}

Status Provider::read_devices() {
  const std::uint32_t count = ops_.device_count(raw_);
  for (std::uint32_t i = 0; i < count; ++i) {
    strait_device_info info{};
    if (const std::int32_t code = ops_.device_info(raw_, i, &info); code != 0) {
      return taken(code, strait_plugin_error{}, kind_, "describe a device");
    }
    Device device{bounded(info.name), kind_, bounded(info.description), info.memory_bytes, info.capabilities,
                  info.software != 0};
    device.pci_address = bounded(info.pci_address);
    if (info.numa_known != 0) device.numa_node = info.numa_node;
    device.driver = bounded(info.driver);
    device.bar_bytes = info.bar_bytes;
    device.link = bounded(info.link);
    devices_.push_back(std::move(device));
    if (devices_.back().name.empty()) return fail(Code::invalid, "device {} of the {} provider has no name", i, kind_);
  }
  return {};
}

Error Provider::lacks(const char* what) const {
  return fail(Code::unsupported, "the {} provider cannot {}", kind_, what);
}

std::optional<strait_claim> Provider::classify(std::uint64_t address) const {
  strait_claim claim{};
  if (ops_.classify(raw_, address, &claim) != 1) return std::nullopt;
  // An answer that does not contain the question would make every later check meaningless.
  if (address - claim.base >= claim.length_bytes || claim.device >= devices_.size()) return std::nullopt;
  return claim;
}

Result<std::uint64_t> Provider::allocate(std::uint32_t device, std::uint64_t length_bytes) {
  if (ops_.allocate == nullptr || ops_.free == nullptr) return lacks("allocate memory");
  strait_plugin_error error{};
  std::uint64_t address = 0;
  const std::int32_t code = ops_.allocate(raw_, device, length_bytes, &address, &error);
  if (code != 0) return taken(code, error, kind_, "allocate memory");
  return address;
}

Status Provider::free(std::uint64_t address) {
  if (ops_.free == nullptr) return lacks("free memory");
  strait_plugin_error error{};
  const std::int32_t code = ops_.free(raw_, address, &error);
  if (code != 0) return taken(code, error, kind_, "free memory");
  return {};
}

Result<std::uint64_t> Provider::start_copy(std::uint64_t to, std::uint64_t from, std::uint64_t length_bytes) {
  if (ops_.copy == nullptr || ops_.copy_done == nullptr) return lacks("copy memory");
  strait_plugin_error error{};
  std::uint64_t ticket = 0;
  const std::int32_t code = ops_.copy(raw_, to, from, length_bytes, &ticket, &error);
  if (code != 0) return taken(code, error, kind_, "start a copy");
  return ticket;
}

Status Provider::wait_copy(std::uint64_t ticket, sys::Deadline deadline) {
  for (std::uint32_t turn = 0;; ++turn) {
    const std::int32_t done = ops_.copy_done(raw_, ticket);
    if (done > 0) return {};
    if (done < 0) return taken(-done, strait_plugin_error{}, kind_, "finish a copy");
    if (deadline.passed()) {
      return fail(Code::timeout, "a copy by the {} provider did not finish by its deadline; it still goes on", kind_);
    }
    sys::pause_turn(turn);
  }
}

Result<Provider::RawFd> Provider::export_fd(Range range, std::uint32_t flags) {
  if (ops_.export_fd == nullptr || ops_.close_fd == nullptr) return lacks("export memory");
  strait_plugin_error error{};
  RawFd out;
  const std::int32_t code =
      ops_.export_fd(raw_, range.address, range.length_bytes, flags, &out.fd, &out.offset, &error);
  if (code != 0) return taken(code, error, kind_, "export memory");
  if (out.fd < 0) return fail(Code::system, "the {} provider exported memory without a descriptor", kind_);
  return out;
}

Result<Provider::RawFd> Provider::export_pages(Range range) {
  if (ops_.export_pages == nullptr || ops_.close_fd == nullptr) return lacks("hand out the pages behind its dma-bufs");
  strait_plugin_error error{};
  RawFd out;
  const std::int32_t code = ops_.export_pages(raw_, range.address, range.length_bytes, &out.fd, &out.offset, &error);
  if (code != 0) return taken(code, error, kind_, "hand out its pages");
  if (out.fd < 0) return fail(Code::system, "the {} provider handed out pages without a descriptor", kind_);
  return out;
}

void Provider::close_fd(std::int32_t fd) {
  ops_.close_fd(raw_, fd);
}

std::uint64_t Provider::free_bytes(std::uint32_t device) const {
  strait_device_info info{};
  return ops_.device_info(raw_, device, &info) == 0 ? info.free_bytes : 0;
}

std::string Provider::counters() const {
  if (ops_.counters == nullptr) return {};
  std::array<char, 2048> text{};
  ops_.counters(raw_, text.data(), text.size());
  return std::string(text.data(), ::strnlen(text.data(), text.size()));
}

}  // namespace strait::buffer
