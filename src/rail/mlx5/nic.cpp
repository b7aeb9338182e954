// SPDX-License-Identifier: Apache-2.0
// Opening a NIC plug-in and registering memory with it.
#include "rail/mlx5/nic.hpp"

#include <cstring>

namespace strait::rail {

Error plugin_failure(std::int32_t code, const strait_plugin_error& raw, const std::string& doing) {
  const bool known = code > 0 && code <= static_cast<std::int32_t>(Code::system);
  const std::size_t length = ::strnlen(raw.text, sizeof raw.text);
  const std::string cause =
      length == 0 ? fmt::format("the plug-in answered {} and no reason", code) : std::string(raw.text, length);
  Error error{known ? static_cast<Code>(code) : Code::device, raw.sys_errno, 0, doing + ": " + cause, {}};
  if (error.code == Code::limit && error.remedy.empty()) {
    error.remedy = "raise the limit (ulimit -n for descriptors, ulimit -l for pinned memory) or share fewer regions";
  }
  return error;
}

namespace {

Status check_table(const strait_nic_ops* ops) {
  if (ops == nullptr) return fail(Code::unsupported, "the NIC plug-in handed out no operation table");
  if (ops->abi_version != STRAIT_PLUGIN_ABI || ops->struct_size < STRAIT_NIC_OPS_LEAST) {
    return fail(Code::unsupported,
                "the NIC plug-in speaks plug-in ABI {} with a table of {} bytes; this strait needs ABI {} and {} bytes",
                ops->abi_version, ops->struct_size, STRAIT_PLUGIN_ABI, STRAIT_NIC_OPS_LEAST);
  }
  const bool complete = ops->open && ops->close && ops->info && ops->address && ops->alloc_pd && ops->free_pd &&
                        ops->register_memory && ops->deregister_memory && ops->create_cq && ops->destroy_cq &&
                        ops->create_qp && ops->connect_qp && ops->fail_qp && ops->destroy_qp && ops->describe_qp &&
                        ops->drive && ops->arm && ops->event_fd && ops->counters;
  if (!complete)
    return fail(Code::unsupported, "the NIC plug-in \"{}\" leaves out operations", ops->kind ? ops->kind : "?");
  return {};
}

}  // namespace

Result<std::unique_ptr<Nic>> Nic::open(const strait_nic_ops* ops, const std::string& config) {
  STRAIT_CHECK(check_table(ops));
  strait_plugin_error raw{};
  strait_nic* handle = nullptr;
  if (const auto code = ops->open(config.c_str(), &handle, &raw); code != 0) {
    return plugin_failure(code, raw, fmt::format("cannot open the {} NIC", ops->kind));
  }
  std::unique_ptr<Nic> nic(new Nic(ops, handle));
  if (const auto code = ops->info(handle, &nic->info_); code != 0)
    return plugin_failure(code, raw, "cannot ask the NIC about itself");
  nic->info_.name[sizeof nic->info_.name - 1] = '\0';
  nic->info_.description[sizeof nic->info_.description - 1] = '\0';
  nic->info_.address_text[sizeof nic->info_.address_text - 1] = '\0';
  if (const auto code = ops->address(handle, &nic->address_); code != 0)
    return plugin_failure(code, raw, "cannot get the NIC's address");
  if (const auto code = ops->alloc_pd(handle, &nic->pd_, &raw); code != 0) {
    return plugin_failure(code, raw, fmt::format("cannot allocate a protection domain on {}", nic->name()));
  }
  nic->has_pd_ = true;
  return nic;
}

Nic::~Nic() {
  if (handle_ == nullptr) return;
  if (has_pd_) ops_->free_pd(handle_, pd_, nullptr);
  ops_->close(handle_);
}

std::string Nic::counters() const {
  char text[4096] = {};
  if (handle_ != nullptr) ops_->counters(handle_, text, sizeof text - 1);
  return text;
}

std::string Nic::describe_memory(std::uint32_t lkey) const {
  char text[256] = {};
  const bool can = ops_->struct_size >= sizeof(strait_nic_ops) && ops_->describe_mr != nullptr;
  if (handle_ == nullptr || !can || ops_->describe_mr(handle_, lkey, text, sizeof text - 1) != 0) return {};
  return text;
}

Result<MemoryKey> Nic::register_memory(const MemoryRequest& request) const {
  strait_nic_mr_request raw{};
  raw.struct_size = sizeof raw;
  raw.pd = pd_;
  raw.access = request.access;
  raw.fd = request.fd;
  raw.fd_offset = request.fd_offset;
  raw.address = request.address;
  raw.length_bytes = request.length_bytes;
  raw.port = request.port;
  raw.pages_fd = request.pages_fd;
  raw.pages_offset = request.pages_offset;
  if (request.pages_fd >= 0) raw.access |= STRAIT_NIC_PAGES_FD;
  strait_plugin_error error{};
  strait_nic_mr mr{};
  if (const auto code = ops_->register_memory(handle_, &raw, &mr, &error); code != 0) {
    return plugin_failure(
        code, error,
        fmt::format("cannot register {} bytes at {:#x} with {}", request.length_bytes, request.address, name()));
  }
  return MemoryKey(this, mr);
}

void MemoryKey::reset() {
  if (nic_ == nullptr) return;
  if (nic_->handle() != nullptr) nic_->ops()->deregister_memory(nic_->handle(), mr_.lkey, nullptr);
  nic_ = nullptr;
}

}  // namespace strait::rail
