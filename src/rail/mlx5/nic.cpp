// SPDX-License-Identifier: Apache-2.0
// Opening a NIC plug-in and registering memory with it.
#include "rail/mlx5/nic.hpp"

#include "base/plugin_said.hpp"

namespace strait::rail {

Error plugin_failure(std::int32_t code, const strait_plugin_error& raw, const std::string& doing) {
  const bool known = code > 0 && code <= static_cast<std::int32_t>(Code::system);
  plugin::Said said = plugin::said(raw);
  if (said.cause.empty()) said.cause = fmt::format("the plug-in answered {} and no reason", code);
  Error error{known ? static_cast<Code>(code) : Code::device, raw.sys_errno, 0, doing + ": " + said.cause, said.remedy};
  if (error.code == Code::limit && error.remedy.empty()) {
    error.remedy = "raise the limit (ulimit -n for descriptors, ulimit -l for pinned memory) or share fewer regions";
  }
  return error;
}

namespace {

// A plug-in may be older than the functions at the end of the table.
template <class Function>
bool has(const strait_nic_ops* ops, Function strait_nic_ops::*member) {
  const auto* const end = reinterpret_cast<const char*>(&(ops->*member)) + sizeof(Function);
  return end <= reinterpret_cast<const char*>(ops) + ops->struct_size && ops->*member != nullptr;
}

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
  if (handle_ == nullptr || !has(ops_, &strait_nic_ops::describe_mr) ||
      ops_->describe_mr(handle_, lkey, text, sizeof text - 1) != 0)
    return {};
  return text;
}

std::uint32_t Nic::registered_by(std::uint32_t lkey) const {
  if (handle_ == nullptr || !has(ops_, &strait_nic_ops::registered_by)) return STRAIT_NIC_BY_REQUEST;
  const std::int32_t by = ops_->registered_by(handle_, lkey);
  return by < 0 ? std::uint32_t{STRAIT_NIC_BY_REQUEST} : static_cast<std::uint32_t>(by);
}

std::vector<strait_requirement> Nic::requirements() const {
  constexpr std::uint32_t kMost = 64;  // whoever says more does not end
  std::vector<strait_requirement> all;
  if (handle_ == nullptr || !has(ops_, &strait_nic_ops::requirements)) return all;
  for (std::uint32_t i = 0; i < kMost; ++i) {
    strait_requirement one{};
    if (ops_->requirements(handle_, i, &one) != 1) break;
    one.what[sizeof one.what - 1] = '\0';
    one.text[sizeof one.text - 1] = '\0';
    all.push_back(one);
  }
  return all;
}

std::string Nic::registering(const MemoryRequest& request) const {
  return fmt::format("cannot register {} bytes at {:#x} with {}", request.length_bytes, request.address, name());
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
    return plugin_failure(code, error, registering(request));
  }
  return MemoryKey(this, mr);
}

void MemoryKey::reset() {
  if (nic_ == nullptr) return;
  if (nic_->handle() != nullptr) nic_->ops()->deregister_memory(nic_->handle(), mr_.lkey, nullptr);
  nic_ = nullptr;
}

Result<std::uint32_t> Nic::create_cq(const strait_nic_cq_request& request) const {
  strait_plugin_error error{};
  std::uint32_t cqn = 0;
  if (const auto code = ops_->create_cq(handle_, &request, &cqn, &error); code != 0)
    return plugin_failure(code, error, fmt::format("cannot make a completion queue on {}", name()));
  return cqn;
}

Result<strait_nic_qp> Nic::create_qp(const strait_nic_qp_request& request) const {
  strait_plugin_error error{};
  strait_nic_qp qp{};
  if (const auto code = ops_->create_qp(handle_, &request, &qp, &error); code != 0)
    return plugin_failure(code, error, fmt::format("cannot make a queue pair on {}", name()));
  return qp;
}

Status Nic::connect_qp(std::uint32_t qpn, const strait_nic_connect_request& request) const {
  strait_plugin_error error{};
  if (const auto code = ops_->connect_qp(handle_, qpn, &request, &error); code != 0)
    return plugin_failure(code, error, fmt::format("cannot connect queue pair {:#x} of {}", qpn, name()));
  return {};
}

std::string Nic::describe_qp(std::uint32_t qpn) const {
  char text[256] = {};
  if (ops_->describe_qp(handle_, qpn, text, sizeof text - 1) != 0) return "unknown path";
  return text;
}

}  // namespace strait::rail
