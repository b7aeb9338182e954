// SPDX-License-Identifier: Apache-2.0
// Device: one open of a CXI device, /dev/cxiN of the kernel or one without a node that a plug-in serves. Commands go by
// write(2) or its stand-in; their failures come back as sentences.
//
// Threads: any, as the kernel's. Everything made from a Device must be gone before it. In a forked child every command
// answers Code::gone: the child's copy of the file is the parent's client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "strait/plugin.h"
#include "strait/wire/cxi.hpp"
#include "strait/wire/cxi_abi.hpp"
#include "sys/fd.hpp"
#include "sys/fork.hpp"

namespace strait::rail::cxi {

namespace w = wire::cxi;

class Device;

// Pages of the device in this process. Unmaps them when it goes, which has to be before the object they belong to.
class Pages {
 public:
  Pages() = default;
  Pages(Pages&& other) noexcept
      : device_(std::exchange(other.device_, nullptr)), base_(other.base_), bytes_(other.bytes_) {}
  Pages& operator=(Pages&& other) noexcept {
    if (this != &other) {
      reset();
      device_ = std::exchange(other.device_, nullptr);
      base_ = other.base_;
      bytes_ = other.bytes_;
    }
    return *this;
  }
  ~Pages() { reset(); }
  void reset();
  [[nodiscard]] std::byte* data() const { return base_; }
  [[nodiscard]] std::uint64_t size() const { return device_ == nullptr ? 0 : bytes_; }

 private:
  friend class Device;
  Pages(Device* device, std::byte* base, std::uint64_t bytes) : device_(device), base_(base), bytes_(bytes) {}
  Device* device_ = nullptr;
  std::byte* base_ = nullptr;
  std::uint64_t bytes_ = 0;
};

struct DeviceChoice {
  // "cxi1": that node. "soft", "soft1": a software device, which all processes of this user share; "local", "local1":
  // one of this process alone. Empty: the first node there is, else "soft".
  std::string name;
  std::string soft_library;  // where the software devices come from
  // ",strict=1,faults=...": what a software device is told beside its number. A node under /dev has it from whoever
  // made the node: hardware has none of it, and `strait run` takes it from the environment.
  std::string trial = {};
};

class Device {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Device>> open(const DeviceChoice& choice);
  // One that a plug-in serves, as "device=0,host=local".
  [[nodiscard]] static Result<std::unique_ptr<Device>> serve(const strait_cxi_ops* ops, const std::string& config);
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device();

  // The names of the nodes of this machine: "cxi0", ...
  [[nodiscard]] static std::vector<std::string> nodes();

  // A command with an answer; `resp` is set here. What failed is said in words: "cxi0 made no counter: ...".
  template <class Resp, class Cmd>
  [[nodiscard]] Result<Resp> ask(Cmd command, Resp answer = {}) {
    command.op = Cmd::kOp;
    command.resp = reinterpret_cast<std::uintptr_t>(&answer);
    if (const int error = submit(std::as_bytes(std::span(&command, 1))); error != 0) return failed(Cmd::kOp, error);
    return answer;
  }
  // One without.
  template <class Cmd>
  [[nodiscard]] Status tell(Cmd command) {
    command.op = Cmd::kOp;
    if (const int error = submit(std::as_bytes(std::span(&command, 1))); error != 0) return failed(Cmd::kOp, error);
    return {};
  }
  // As write(2): 0 or an errno.
  [[nodiscard]] int submit(std::span<const std::byte> command);

  // What a command's answer says may be mapped. Once.
  [[nodiscard]] Result<Pages> map(const w::MmInfo& where);
  // What becomes urgent (POLLPRI) with the wait object; cleared with sys::clear_notifier.
  [[nodiscard]] Result<sys::Fd> notifier(const w::WaitAllocResp& wait);

  // Hints for devices that are software; others have no use for them and say so with Code::unsupported.
  [[nodiscard]] Status share(std::uint64_t address, std::uint64_t bytes, int fd, std::uint64_t offset);
  [[nodiscard]] Status share_port(std::uint64_t address, std::uint64_t bytes, const strait_memory_port* port);
  void unshare(std::uint64_t address);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const w::DevInfo& info() const { return info_; }
  [[nodiscard]] std::uint32_t flags() const { return flags_; }  // STRAIT_CXI_*
  [[nodiscard]] bool software() const { return (flags_ & STRAIT_CXI_SOFTWARE) != 0; }
  [[nodiscard]] bool in_child() const { return mark_.in_child(); }
  [[nodiscard]] std::string counters() const;
  // "cxi0 made no counter: ENOSPC (...): ...": what an errno means for that command.
  [[nodiscard]] Error failed(w::Op op, int error) const;

 private:
  Device() = default;
  friend class Pages;
  [[nodiscard]] Status ask_about_itself();
  void unmap(void* base, std::uint64_t bytes);

  std::string name_;
  std::uint32_t flags_ = 0;
  std::uint32_t index_ = 0;
  w::DevInfo info_{};
  sys::ForkMark mark_;
  sys::Fd node_;                         // a node, or
  const strait_cxi_ops* ops_ = nullptr;  // a plug-in
  strait_cxi* served_ = nullptr;
};

}  // namespace strait::rail::cxi
