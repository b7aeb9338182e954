// SPDX-License-Identifier: Apache-2.0
// Opens = closes under faults at every step: the n-th system call that makes something fails, for n = 1, 2, 3, ...
// until none is left to fail, over the whole life of two Nodes: open, allocate, share, connect, put, close; and over a
// second life with what the first has not: networked memory, staging, a descriptor of the caller's, handles for other
// processes.
//
// This program's own functions stand before libc's: what libstrait, its devices and the vendors' libraries call from
// their shared libraries passes here. Device memory is more than half of the device, so that whatever keeps it is found
// by the next allocation.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <set>

#include "buffer/built_in.hpp"
#include "buffer/providers.hpp"
#include "flow.hpp"

namespace {

std::atomic<bool> armed{false};
std::atomic<long> calls_left{0};
std::atomic<const char*> fired{nullptr};  // which call it was

bool fails_now(const char* what) {
  if (!armed.load() || calls_left.fetch_sub(1) != 1) return false;
  fired = what;
  return true;
}

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

#define STRAIT_SHOWN extern "C" __attribute__((visibility("default")))

STRAIT_SHOWN int memfd_create(const char* name, unsigned flags) noexcept {
  static auto* const next = real<int(const char*, unsigned)>("memfd_create");
  if (fails_now("memfd_create")) return errno = EMFILE, -1;
  return next(name, flags);
}
STRAIT_SHOWN void* mmap(void* at, std::size_t length, int protection, int flags, int fd, off_t offset) noexcept {
  static auto* const next = real<void*(void*, std::size_t, int, int, int, off_t)>("mmap");
  if (fails_now("mmap")) return errno = ENOMEM, MAP_FAILED;
  return next(at, length, protection, flags, fd, offset);
}
STRAIT_SHOWN int ftruncate(int fd, off_t length) noexcept {
  static auto* const next = real<int(int, off_t)>("ftruncate");
  if (fails_now("ftruncate")) return errno = ENOSPC, -1;
  return next(fd, length);
}
STRAIT_SHOWN int eventfd(unsigned first, int flags) noexcept {
  static auto* const next = real<int(unsigned, int)>("eventfd");
  if (fails_now("eventfd")) return errno = EMFILE, -1;
  return next(first, flags);
}
STRAIT_SHOWN int timerfd_create(clockid_t clock, int flags) noexcept {
  static auto* const next = real<int(clockid_t, int)>("timerfd_create");
  if (fails_now("timerfd_create")) return errno = EMFILE, -1;
  return next(clock, flags);
}
STRAIT_SHOWN int epoll_create1(int flags) noexcept {
  static auto* const next = real<int(int)>("epoll_create1");
  if (fails_now("epoll_create1")) return errno = EMFILE, -1;
  return next(flags);
}
STRAIT_SHOWN int epoll_ctl(int set, int operation, int fd, epoll_event* event) noexcept {
  static auto* const next = real<int(int, int, int, epoll_event*)>("epoll_ctl");
  if (operation == EPOLL_CTL_ADD && fails_now("epoll_ctl")) return errno = ENOSPC, -1;
  return next(set, operation, fd, event);
}
STRAIT_SHOWN int socket(int domain, int type, int protocol) noexcept {
  static auto* const next = real<int(int, int, int)>("socket");
  if (fails_now("socket")) return errno = EMFILE, -1;
  return next(domain, type, protocol);
}
STRAIT_SHOWN int socketpair(int domain, int type, int protocol, int fds[2]) noexcept {
  static auto* const next = real<int(int, int, int, int*)>("socketpair");
  if (fails_now("socketpair")) return errno = EMFILE, -1;
  return next(domain, type, protocol, fds);
}
STRAIT_SHOWN int pthread_create(pthread_t* out, const pthread_attr_t* attributes, void* (*run)(void*),
                                void* argument) noexcept {
  static auto* const next = real<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create");
  if (fails_now("pthread_create")) return EAGAIN;
  return next(out, attributes, run, argument);
}
STRAIT_SHOWN int fcntl(int fd, int command, ...) {
  static auto* const next = real<int(int, int, ...)>("fcntl");
  va_list list;
  va_start(list, command);
  void* const argument = va_arg(list, void*);
  va_end(list);
  if (command == F_DUPFD_CLOEXEC && fails_now("fcntl")) return errno = EMFILE, -1;
  return next(fd, command, argument);
}

namespace strait::flow {
namespace {

constexpr std::size_t kDeviceBytes = 40 << 20;  // of 64 MiB
constexpr std::size_t kStagedBytes = 8 << 20;

std::string device() {
  const char* const named = std::getenv("STRAIT_TEST_DEVICE");
  return named == nullptr ? "soft:0" : named;
}

std::string device_kind() {
  return device().substr(0, device().find(':'));
}

NodeOptions short_ones(const std::string& reach = "auto", const std::string& kernel_faults = "") {
  return settings({{"accelerators", device_kind() == "soft" ? "soft:1" : device_kind()},
                   {"connect_deadline", "2s"},
                   {"reach", reach},
                   {"kernel_faults", kernel_faults}});
}

// The life of two Nodes; the first error is what it answers.
Status one_life(const NodeOptions& options = short_ones()) {
  auto owner = Node::open(options);
  if (!owner) return owner.error();
  auto asker = Node::open(short_ones());
  if (!asker) return asker.error();
  auto memory = owner->allocate(kDeviceBytes, {.near = device()});
  if (!memory) return memory.error();
  auto region = owner->share(*memory, access::all);
  if (!region) return region.error();
  auto local = asker->allocate(65536);
  if (!local) return local.error();
  auto source = asker->share(*local, access::local);
  if (!source) return source.error();
  auto published = owner->publish("block", *region);
  if (!published) return published.error();
  auto far = asker->connect(owner->address());
  if (!far) return far.error();
  auto near = owner->accept(5s);
  if (!near) return near.error();
  auto target = far->lookup("block", 10s);
  if (!target) return target.error();
  auto ticket = region->ticket(access::remote_write, 60s, 4096, 4096);
  if (!ticket) return ticket.error();
  auto part = far->redeem(*ticket, 10s);
  if (!part) return part.error();
  auto put = far->put(source->slice(0, 65536), target->at(4096)).wait(10s);
  if (!put) return put.error();
  return {};
}

// A memory file of the application's, made before anything fails.
int own_file() {
  static const int fd = [] {
    const int made = ::memfd_create("fault walk", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    EXPECT_EQ(::ftruncate(made, 65536), 0);
    EXPECT_EQ(::fcntl(made, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
    return made;
  }();
  return fd;
}

// Handles for other processes: made of the device's memory and of the host's, and that one opened, too.
Status handles() {
  std::vector<buffer::Plugin> plugins;
  if (device_kind() != "soft") {
    auto plugin = buffer::use_plugin(buffer::built_in_provider(device_kind()));
    if (!plugin) return plugin.error();
    plugins.push_back(std::move(*plugin));
  }
  auto all = buffer::Providers::open(std::move(plugins));
  if (!all) return all.error();
  for (const std::string& name : std::set<std::string>{device_kind() == "soft" ? "host" : device(), "host"}) {
    auto memory = (*all)->allocate(name, 1 << 20);
    if (!memory) return memory.error();
    auto place = (*all)->find(name);
    if (!place) return place.error();
    buffer::Provider& provider = *place->provider;
    if ((provider.devices()[place->index].capabilities & STRAIT_CAN_IPC) == 0) continue;
    auto handle = provider.ipc_export(memory->range());
    if (!handle) return handle.error();
    // Not every driver opens a handle in the process that made it; the host's file is opened anywhere.
    auto opened = provider.ipc_open(place->index, *handle);
    if (handle->fd >= 0) provider.close_fd(handle->fd);
    if (!opened && name == "host") return opened.error();
    if (!opened) continue;
    const Status closed = provider.ipc_close(*opened);
    if (!closed) return closed.error();
  }
  return {};
}

// The second life: whatever the first one leaves out.
Status other_life(const NodeOptions& options = short_ones()) {
  if (const Status passed = handles(); !passed) return passed;
  auto owner = Node::open(options);
  if (!owner) return owner.error();
  auto asker = Node::open(short_ones("staged"));
  if (!asker) return asker.error();
  auto memory = owner->allocate(kDeviceBytes, {.near = device(), .networked = true});
  if (!memory) return memory.error();
  auto region = owner->share(*memory, access::all);
  if (!region) return region.error();
  auto file = owner->share_dmabuf(own_file(), 0, 65536, access::all);
  if (!file) return file.error();
  auto local = asker->allocate(kStagedBytes, {.near = device()});
  if (!local) return local.error();
  auto source = asker->share(*local, access::local);  // with a bounce buffer
  if (!source) return source.error();
  auto published = owner->publish("block", *region);
  if (!published) return published.error();
  auto other = owner->publish("file", *file);
  if (!other) return other.error();
  auto far = asker->connect(owner->address());
  if (!far) return far.error();
  auto near = owner->accept(5s);
  if (!near) return near.error();
  for (const char* name : {"block", "file"}) {
    auto target = far->lookup(name, 10s);
    if (!target) return target.error();
    auto put = far->put(source->slice(0, 65536), target->at(0)).wait(10s);
    if (!put) return put.error();
    auto got = far->get(source->slice(0, 65536), target->at(0)).wait(10s);
    if (!got) return got.error();
  }
  return {};
}

bool settle(const std::set<std::string>& files) {
  for (const auto until = std::chrono::steady_clock::now() + 20s;
       open_files() != files && std::chrono::steady_clock::now() < until;)
    ::usleep(2000);
  return open_files() == files;
}

std::string more_than(const std::set<std::string>& files) {
  std::string text;
  for (const std::string& each : open_files()) {
    if (!files.contains(each)) text += "\n  " + each;
  }
  return text;
}

template <class Life>
void walk(Life one_life) {
  const Status well = one_life();  // what is opened once for the process is open from here on
  ASSERT_TRUE(well) << well.error().explain();
  ASSERT_TRUE(one_life());
  const auto files = open_files();
  std::map<std::string, int> failed;
  for (long n = 1;; ++n) {
    ASSERT_LT(n, 5000);
    fired = nullptr;
    calls_left = n;
    armed = true;
    const Status lived = one_life();
    armed = false;
    const char* const which = fired.load();
    if (which == nullptr) {
      EXPECT_TRUE(lived) << "nothing failed: " << lived.error().explain();
      break;
    }
    ++failed[which];
    if (!lived) {
      EXPECT_FALSE(lived.error().text.empty()) << n << ": " << which;
    }
    ASSERT_TRUE(settle(files)) << "call " << n << ", " << which << " failed"
                               << (lived ? "" : ": " + lived.error().explain()) << more_than(files);
    if (n % 8 == 0) {
      const Status again = one_life();
      ASSERT_TRUE(again) << "after call " << n << ", " << which << ": " << again.error().explain();
    }
  }
  EXPECT_TRUE(one_life());
  EXPECT_GE(failed.size(), 5u) << "the calls pass here";
  for (const auto& [name, count] : failed) testing::Test::RecordProperty(name, count);
}

TEST(FaultWalk, NothingIsLeftWhicheverStepFails) {
  walk([] { return one_life(); });
}

TEST(FaultWalk, NorOfASecondLifeThatGoesOtherWays) {
  own_file();
  walk([] { return other_life(); });
}

// The same for the steps between the accelerator's driver and the NIC's, in the kernel of the machine.
// (ENOMEM once is survived: what is idle is given back and the NIC asked again.)
TEST(FaultWalk, NothingIsLeftWhicheverStepOfTheKernelFails) {
  struct Steps {
    const char* reach;
    std::vector<const char*> steps;
    bool there;
  };
  const bool nvidia = device_kind() == "cuda" || device_kind() == "soft";
  const std::vector<Steps> all = {
      {"dmabuf", {"attach=524", "map=EPERM"}, true},
      {"peermem", {"acquire=EFAULT", "get_pages=EIO", "dma_map=EIO"}, device_kind() != "gaudi"},
      {"p2p", {"p2p_get=EINVAL", "p2p_map=EIO"}, nvidia}};
  for (const Steps& each : all) {
    if (!each.there) {
      EXPECT_FALSE(one_life(short_ones(each.reach))) << device() << " has no such way";
      continue;
    }
    const Status well = one_life(short_ones(each.reach));
    ASSERT_TRUE(well) << each.reach << ": " << well.error().explain();
    const auto files = open_files();
    for (const char* step : each.steps) {
      int failures = 0;
      for (int n = 1;; ++n) {
        ASSERT_LT(n, 100);
        const std::string fault = std::string(step) + "@" + std::to_string(n);
        const Status lived = one_life(short_ones(each.reach, fault));
        ASSERT_TRUE(settle(files)) << fault << more_than(files);
        if (lived) break;
        ++failures;
        EXPECT_TRUE(lived.error().text.find("did not register") != std::string::npos ||
                    lived.error().text.find("cannot register") != std::string::npos)
            << fault << ": " << lived.error().explain();
      }
      EXPECT_GE(failures, 2) << step << ": once for this process, once for peers";
    }
  }
}

}  // namespace
}  // namespace strait::flow
