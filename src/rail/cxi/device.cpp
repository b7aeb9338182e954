// SPDX-License-Identifier: Apache-2.0
#include "rail/cxi/device.hpp"

#include <cerrno>
#include <charconv>
#include <map>
#include <mutex>
#include <optional>

#include "base/plugin_said.hpp"
#include "sys/beside.hpp"
#include "sys/char_device.hpp"
#include "sys/library.hpp"
#include "sys/mapping.hpp"

namespace strait::rail::cxi {
namespace {

constexpr std::uint32_t kMostNodes = 16;  // looked for; a machine has 8 at the most

// A library of software devices stays loaded: it has threads and tables that outlive who opened it first.
Result<const strait_cxi_ops*> software_devices(const std::string& given) {
  static std::mutex mutex;
  static auto* const loaded = new std::map<std::string, sys::Library>;
  const std::string path = given.empty() ? sys::beside_this_library("libstrait-soft.so.0") : given;
  const std::lock_guard lock(mutex);
  auto found = loaded->find(path);
  if (found == loaded->end()) {
    STRAIT_TRY(sys::Library library, sys::Library::open(path));
    found = loaded->emplace(path, std::move(library)).first;
  }
  STRAIT_TRY(const auto entry, found->second.symbol<strait_cxi_entry>(STRAIT_CXI_ENTRY));
  return entry();
}

// The number behind "soft" or "local"; nothing behind it is 0.
std::optional<std::uint32_t> number_behind(std::string_view text, std::string_view word) {
  if (!text.starts_with(word)) return std::nullopt;
  text.remove_prefix(word.size());
  if (text.starts_with(':')) text.remove_prefix(1);
  if (text.empty()) return 0;
  std::uint32_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return number;
}

}  // namespace

void Pages::reset() {
  if (device_ != nullptr) device_->unmap(base_, bytes_);
  device_ = nullptr;
}

std::vector<std::string> Device::nodes() {
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < kMostNodes; ++i) {
    const std::string name = fmt::format("cxi{}", i);
    const auto node = sys::open_char_device("/dev/" + name);
    if (node || node.error().code != Code::unsupported) names.push_back(name);
  }
  return names;
}

Result<std::unique_ptr<Device>> Device::open(const DeviceChoice& choice) {
  std::string name = choice.name;
  if (name.empty()) {
    const auto there = nodes();
    name = there.empty() ? "soft" : there.front();
  }
  for (const char* const host : {"soft", "local"}) {
    const auto number = number_behind(name, host);
    if (!number) continue;
    STRAIT_TRY(const strait_cxi_ops* ops, software_devices(choice.soft_library));
    return serve(ops, fmt::format("device={},host={}{}", *number, *host == 'l' ? "local" : "shared", choice.trial));
  }
  const auto number = number_behind(name, "cxi");
  if (!number)
    return with_remedy(fail(Code::invalid, "\"{}\" names no CXI device", name),
                       "cxi0 is a node under /dev, soft0 a software device, local0 one of this process alone");
  std::unique_ptr<Device> device(new Device);
  device->name_ = name;
  device->index_ = *number;
  auto node = sys::open_char_device("/dev/" + name);
  if (!node)
    return with_remedy(node.error(), node.error().code == Code::unsupported
                                         ? "load the driver cxi_ss1, or open a software device: soft"
                                         : node.error().remedy);
  device->node_ = std::move(*node);
  STRAIT_CHECK(device->ask_about_itself());
  return device;
}

Result<std::unique_ptr<Device>> Device::serve(const strait_cxi_ops* ops, const std::string& config) {
  if (ops == nullptr || ops->abi_version != STRAIT_PLUGIN_ABI || ops->struct_size < STRAIT_CXI_OPS_LEAST)
    return fail(Code::unsupported, "the plug-in's table of CXI devices is not of plug-in ABI {}", STRAIT_PLUGIN_ABI);
  std::unique_ptr<Device> device(new Device);
  device->ops_ = ops;
  strait_plugin_error raw{};
  if (const auto code = ops->open(config.c_str(), &device->served_, &raw); code != 0) {
    device->served_ = nullptr;
    const plugin::Said said = plugin::said(raw);
    Error error =
        fail(code > 0 && code <= static_cast<std::int32_t>(Code::system) ? static_cast<Code>(code) : Code::device,
             "cannot open the {} CXI device ({}): {}", ops->kind, config, said.cause);
    error.sys_errno = raw.sys_errno;
    return with_remedy(std::move(error), said.remedy);
  }
  strait_cxi_info info{};
  (void)ops->info(device->served_, &info);
  info.name[sizeof info.name - 1] = '\0';
  device->name_ = info.name;
  device->flags_ = info.flags;
  device->index_ = info.index;
  STRAIT_CHECK(device->ask_about_itself());
  return device;
}

Device::~Device() {
  if (served_ != nullptr && !in_child()) ops_->close(served_);
}

Status Device::ask_about_itself() {
  STRAIT_TRY(info_, ask<w::DevInfo>(w::DevInfoGetCmd{}));
  // A node that says it is a simulator is software too, wherever it runs.
  if (info_.device_platform != w::Platform::asic) flags_ |= STRAIT_CXI_SOFTWARE;
  if (info_.pid_bits < w::kMinPidBits || info_.pid_bits > w::kMaxPidBits)
    return fail(Code::device, "{} says that a PID has {} bits, which is not possible", name_, info_.pid_bits);
  return {};
}

int Device::submit(std::span<const std::byte> command) {
  if (in_child()) return ECHILD;
  if (served_ == nullptr) return sys::write_command(node_.get(), command);
  const std::int64_t wrote = ops_->write(served_, command.data(), command.size());
  if (wrote < 0) return static_cast<int>(-wrote);
  return static_cast<std::size_t>(wrote) == command.size() ? 0 : EIO;
}

Result<Pages> Device::map(const w::MmInfo& where) {
  if (in_child()) return fail(Code::gone, "{} belongs to the process before the fork", name_);
  if (served_ == nullptr) {
    STRAIT_TRY(sys::Mapping mapped, sys::map_file(node_.get(), where.offset, static_cast<std::size_t>(where.size),
                                                  sys::Protect::read_write));
    Pages pages(this, mapped.data(), where.size);
    mapped.release();
    return pages;
  }
  void* base = nullptr;
  if (const int error = -ops_->map(served_, where.offset, where.size, &base); error != 0)
    return fail_errno(error, fmt::format("{} did not map {} bytes of its pages", name_, where.size));
  return Pages(this, static_cast<std::byte*>(base), where.size);
}

void Device::unmap(void* base, std::uint64_t bytes) {
  if (in_child()) return;
  if (served_ != nullptr) {
    (void)ops_->unmap(served_, base, bytes);
  } else {
    sys::Mapping(base, static_cast<std::size_t>(bytes)).reset();
  }
}

Result<sys::Fd> Device::notifier(const w::WaitAllocResp& wait) {
  if (served_ == nullptr)
    return sys::open_notifier(
        fmt::format("/sys/class/cxi_user/{}/clients/{}/wait/{}/intr", name_, wait.client_id, wait.wait));
  const int fd = ops_->wait_fd(served_, wait.wait);
  if (fd < 0) return fail_errno(-fd, fmt::format("{} has no descriptor for wait object {}", name_, wait.wait));
  return sys::Fd(fd);
}

Status Device::share(std::uint64_t address, std::uint64_t bytes, int fd, std::uint64_t offset) {
  if (served_ == nullptr || ops_->share == nullptr)
    return fail(Code::unsupported, "{} reaches memory by its pages, files do not help it", name_);
  if (const int error = -ops_->share(served_, address, bytes, fd, offset); error != 0)
    return fail_errno(error, fmt::format("{} did not take the file behind {:#x}", name_, address));
  return {};
}

Status Device::share_port(std::uint64_t address, std::uint64_t bytes, const strait_memory_port* port) {
  if (served_ == nullptr || ops_->share_port == nullptr)
    return fail(Code::unsupported, "{} cannot reach memory through a port of this process", name_);
  if (const int error = -ops_->share_port(served_, address, bytes, port); error != 0)
    return fail_errno(error, fmt::format("{} did not take the port to the memory at {:#x}", name_, address));
  return {};
}

void Device::unshare(std::uint64_t address) {
  if (served_ != nullptr && ops_->unshare != nullptr && !in_child()) (void)ops_->unshare(served_, address);
}

std::string Device::counters() const {
  if (served_ == nullptr || in_child()) return {};
  char text[1024] = {};
  ops_->counters(served_, text, sizeof text - 1);
  return text;
}

}  // namespace strait::rail::cxi
