// SPDX-License-Identifier: Apache-2.0
// Cards of this process alone, driven by a thread of it: for memory that no other process reaches, and for tests.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "soft/cassini/card.hpp"
#include "soft/cassini_host/channel.hpp"
#include "soft/cassini_host/lock_within.hpp"
#include "soft/cassini_host/own_memory.hpp"
#include "soft/cassini_host/waits.hpp"
#include "sys/event.hpp"
#include "sys/fork.hpp"

namespace strait::soft::cassini {

// The fabric and its thread. There is one as long as somebody uses it.
class LocalFabric {
 public:
  static constexpr std::uint32_t kCards = 4;
  [[nodiscard]] static Result<std::shared_ptr<LocalFabric>> get();
  LocalFabric(const LocalFabric&) = delete;
  LocalFabric& operator=(const LocalFabric&) = delete;
  ~LocalFabric();

  // Runs `call` between two passes.
  template <class Call>
  auto with(Call call) {
    waiting_.fetch_add(1, std::memory_order_relaxed);
    const std::unique_lock lock(mutex_);
    waiting_.fetch_sub(1, std::memory_order_relaxed);
    wake_.raise();
    return call(fabric_);
  }
  // The same, unless somebody keeps the cards for too long: then `fallback`.
  template <class Call, class Answer>
  Answer with_patience(std::int64_t patience_ns, Call call, Answer fallback) {
    waiting_.fetch_add(1, std::memory_order_relaxed);
    const std::unique_lock lock = lock_within(mutex_, patience_ns);
    waiting_.fetch_sub(1, std::memory_order_relaxed);
    return lock.owns_lock() ? call(fabric_) : fallback;
  }
  [[nodiscard]] bool in_child() const { return mark_.in_child(); }
  [[nodiscard]] std::uint32_t next_id() { return next_id_.fetch_add(1, std::memory_order_relaxed); }

 private:
  explicit LocalFabric(sys::Event wake) : wake_(std::move(wake)) {}
  void drive();
  const sys::ForkMark mark_;
  sys::Event wake_;
  std::mutex mutex_;
  std::atomic<int> waiting_{0};
  std::atomic<bool> stop_{false};
  std::atomic<std::uint32_t> next_id_{1};
  Fabric fabric_{kCards};
  std::thread thread_;
};

// This process's memory, and which parts of it stay where they are.
class LocalMemory final : public OwnMemory {
 public:
  [[nodiscard]] bool reaches(std::uint64_t address, std::uint64_t bytes, bool writable) override;
  [[nodiscard]] std::byte* direct(std::uint64_t address, std::uint64_t bytes) override;

  // Mapped until it is removed.
  [[nodiscard]] int add(std::uint64_t address, std::uint64_t bytes);
  [[nodiscard]] int remove(std::uint64_t address);

 private:
  // Does all of it lie in one range?
  [[nodiscard]] bool stays(std::uint64_t address, std::uint64_t bytes) const;
  std::map<std::uint64_t, std::uint64_t> ranges_;  // address, bytes
};

class LocalChannel final : public Channel {
 public:
  [[nodiscard]] static Result<std::unique_ptr<LocalChannel>> open(std::uint32_t device, const sys::Caller& caller,
                                                                  const ClientOptions& options = {});
  ~LocalChannel() override;

  [[nodiscard]] long write(std::span<const std::byte> command, const sys::Caller& caller,
                           std::span<const NamedMemory> memory) override;
  [[nodiscard]] int map(std::uint64_t offset, std::uint64_t bytes, Client::Page& page) override;
  void unmap(std::uint64_t offset) override;
  [[nodiscard]] Result<sys::Fd> wait(std::uint32_t wait) override;
  [[nodiscard]] int share(std::uint64_t address, std::uint64_t bytes, int fd, std::uint64_t offset) override;
  [[nodiscard]] int unshare(std::uint64_t address) override;
  void tear_down(std::uint32_t md) override;
  void lend_port(std::uint32_t /*memory*/, const strait_memory_port* /*port*/) override {}
  void end_port(std::uint32_t /*memory*/) override {}
  void close() override;
  [[nodiscard]] std::string counters() override;
  [[nodiscard]] std::vector<Finding> findings() override;
  [[nodiscard]] int pages() const override { return pages_.get(); }
  [[nodiscard]] std::uint32_t id() const override { return id_; }

 private:
  explicit LocalChannel(std::shared_ptr<LocalFabric> fabric) : fabric_(std::move(fabric)) {}
  const std::shared_ptr<LocalFabric> fabric_;
  sys::Fd pages_;
  std::uint32_t id_ = 0;
  Waits waits_;
  LocalMemory memory_;
  std::unique_ptr<Client> client_;
};

}  // namespace strait::soft::cassini
