// SPDX-License-Identifier: Apache-2.0
#include "soft/cm/family.hpp"

#include <atomic>
#include <cerrno>
#include <cstdlib>

#include "sys/fork.hpp"

namespace strait::soft::cm {
namespace {

constexpr std::uint64_t kNumber = std::uint64_t{kMajor} << 8 | kMinor;  // as makedev() packs small numbers
constexpr int kNonblocking = 04000;                                     // O_NONBLOCK

class ChannelFile final : public host::File {
 public:
  ChannelFile(std::shared_ptr<Service> service, std::shared_ptr<Channel> channel)
      : service_(std::move(service)), channel_(std::move(channel)) {}
  ~ChannelFile() override { service_->close(*channel_); }
  long write(const void* bytes, std::size_t length) override { return service_->write(*channel_, bytes, length); }

 private:
  std::shared_ptr<Service> service_;
  std::shared_ptr<Channel> channel_;
};

// The service of this process, for the end of it.
std::atomic<Service*> at_exit{nullptr};
void say_farewell() {
  if (Service* const service = at_exit.exchange(nullptr)) service->farewell();
}

class CmFamily final : public host::Family {
 public:
  explicit CmFamily(FamilySettings settings) : settings_(std::move(settings)) {}

  [[nodiscard]] bool owns(std::string_view node) const override { return node == kNode; }
  [[nodiscard]] std::uint64_t device_number(std::string_view) const override { return kNumber; }

  [[nodiscard]] Result<host::Opened> open(std::string_view, int flags) override {
    STRAIT_TRY(auto service, service_here());
    STRAIT_TRY(auto channel, service->open((flags & kNonblocking) != 0));
    STRAIT_TRY(auto fd, channel->flag().copy());
    return host::Opened{std::move(fd), std::make_shared<ChannelFile>(std::move(service), std::move(channel))};
  }

 private:
  // A child of fork has a copy of its parent's without its thread, with locks in any state: left where it is.
  [[nodiscard]] Result<std::shared_ptr<Service>> service_here() {
    const std::scoped_lock lock(mutex_);
    if (service_ && !mark_.in_child()) return service_;
    STRAIT_TRY(auto device, settings_.device());
    ServiceSettings settings;
    settings.device = std::move(device);
    settings.memory = settings_.memory;
    if (service_) abandoned_ = new std::shared_ptr<Service>(std::move(service_));
    service_ = std::make_shared<Service>(std::move(settings));
    mark_ = sys::ForkMark();
    at_exit = service_.get();
    static const int registered = std::atexit(say_farewell);
    (void)registered;
    return service_;
  }

  FamilySettings settings_;
  std::mutex mutex_;
  sys::ForkMark mark_;
  std::shared_ptr<Service> service_;
  std::shared_ptr<Service>* abandoned_ = nullptr;
};

}  // namespace

std::unique_ptr<host::Family> make_family(FamilySettings settings) {
  return std::make_unique<CmFamily>(std::move(settings));
}

Status write_tree(host::Root& root) {
  STRAIT_CHECK(root.claim("/sys/class/misc/rdma_cm"));
  STRAIT_CHECK(root.file("/sys/class/misc/rdma_cm/abi_version", fmt::format("{}", RDMA_USER_CM_ABI_VERSION)));
  STRAIT_CHECK(root.file("/sys/class/misc/rdma_cm/dev", fmt::format("{}:{}", kMajor, kMinor)));
  return root.node(kNode, kNumber);
}

}  // namespace strait::soft::cm
