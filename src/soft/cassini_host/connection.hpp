// SPDX-License-Identifier: Apache-2.0
// Connection: a device of the server that all processes of this user share.
#pragma once

#include <mutex>
#include <string>

#include "soft/cassini_host/channel.hpp"
#include "soft/cassini_host/helper.hpp"
#include "soft/cassini_host/start.hpp"
#include "soft/cassini_host/trial.hpp"

namespace strait::soft::cassini {

struct Told {
  protocol::Answer answer{};
  std::string text;
  sys::Fd file;
};

class Connection final : public Channel {
 public:
  // Error::sys_errno ENODEV: there is no such device.
  [[nodiscard]] static Result<std::unique_ptr<Connection>> open(const ServerPlace& place, std::uint32_t device,
                                                                const sys::Caller& caller,
                                                                const TrialSettings& trial = {});

  [[nodiscard]] long write(std::span<const std::byte> command, const sys::Caller& caller,
                           std::span<const NamedMemory> memory) override;
  [[nodiscard]] int map(std::uint64_t offset, std::uint64_t bytes, Client::Page& page) override;
  void unmap(std::uint64_t offset) override;
  [[nodiscard]] Result<sys::Fd> wait(std::uint32_t wait) override;
  [[nodiscard]] int share(std::uint64_t address, std::uint64_t bytes, int fd, std::uint64_t offset) override;
  [[nodiscard]] int unshare(std::uint64_t address) override;
  void tear_down(std::uint32_t md) override;
  void lend_port(std::uint32_t memory, const strait_memory_port* port) override;
  void end_port(std::uint32_t memory) override { helper_.end(memory); }
  [[nodiscard]] std::string counters() override;
  [[nodiscard]] std::vector<Finding> findings() override;
  [[nodiscard]] int pages() const override { return pages_.get(); }
  [[nodiscard]] std::uint32_t id() const override { return id_; }

 private:
  Connection(sys::Fd socket, sys::Fd helper) : socket_(std::move(socket)), helper_(std::move(helper)) {}
  // In a forked child it is an error at once: a lock that another thread held there stays held.
  [[nodiscard]] Result<Told> ask(const protocol::Ask& ask, std::span<const std::byte> rest = {},
                                 std::span<const int> files = {});
  std::mutex mutex_;  // of the socket: one ask at a time
  sys::ProcessFd socket_;
  sys::Fd pages_;
  std::uint32_t id_ = 0;
  Helper helper_;
};

// Asks without a device: what `strait run` and the files of sysfs want to know. The socket keeps the server there.
[[nodiscard]] Result<std::string> ask_counters(int server);
[[nodiscard]] Result<std::uint64_t> ask_number(int server, protocol::Number which, std::uint32_t device);

}  // namespace strait::soft::cassini
