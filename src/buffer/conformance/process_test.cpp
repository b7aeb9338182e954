// SPDX-License-Identifier: Apache-2.0
// Conformance: other processes, forked children, many threads.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <cstring>
#include <thread>

#include "buffer/conformance/target.hpp"
#include "sys/child.hpp"
#include "sys/socket.hpp"

namespace strait::buffer::conformance {
namespace {

constexpr std::size_t kIpcBytes = 300'000;
constexpr std::size_t kIpcOffset = 12'345;

}  // namespace

// Reads the name of a socket, takes a handle from it, opens it, compares what is there, writes something else.
int open_in_second_process() {
  const Status run = []() -> Status {
    sys::Lines lines(0, 1);
    STRAIT_TRY(const std::string socket_name, lines.read(soon()));
    STRAIT_TRY(auto provider, Provider::open(make_plugin()));
    STRAIT_TRY(const sys::Fd socket, sys::unix_connect(socket_name, soon()));
    strait_ipc_handle handle{};
    sys::Packet packet;
    const sys::Deadline deadline = soon();
    while (true) {
      auto received = sys::receive_packet(socket.get(), sizeof handle);
      if (received) {
        packet = std::move(*received);
        break;
      }
      if (received.error().code != Code::again || deadline.passed()) return received.error();
      ::usleep(1000);
    }
    if (packet.bytes.size() != sizeof handle) return fail(Code::invalid, "{} bytes came", packet.bytes.size());
    std::memcpy(&handle, packet.bytes.data(), sizeof handle);
    handle.fd = packet.fds.empty() ? -1 : packet.fds[0].get();
    // On the first device that can be had: a compute node may have one owner.
    std::uint32_t device = 0;
    auto first = provider->ipc_open(device, handle);
    while (!first && ++device < provider->devices().size()) first = provider->ipc_open(device, handle);
    STRAIT_TRY(const std::uint64_t address, std::move(first));
    STRAIT_TRY(const std::uint64_t again, provider->ipc_open(device, handle));
    if (again != address) return fail(Code::invalid, "opened twice, it lies at {:#x} and {:#x}", address, again);
    std::vector<unsigned char> bytes(kIpcBytes);
    const auto here = reinterpret_cast<std::uint64_t>(bytes.data());
    STRAIT_TRY(std::uint64_t ticket, provider->start_copy(here, address, kIpcBytes));
    STRAIT_CHECK(provider->wait_copy(ticket, soon()));
    for (std::size_t i = 0; i < kIpcBytes; ++i) {
      if (bytes[i] != static_cast<unsigned char>(i * 11)) return fail(Code::invalid, "byte {} is {}", i, bytes[i]);
      bytes[i] = static_cast<unsigned char>(i * 13 + 1);
    }
    STRAIT_TRY(ticket, provider->start_copy(address, here, kIpcBytes));
    STRAIT_CHECK(provider->wait_copy(ticket, soon()));
    STRAIT_CHECK(provider->ipc_close(address));
    STRAIT_CHECK(provider->ipc_close(again));
    if (provider->ipc_close(address)) return fail(Code::invalid, "closed three times what was opened twice");
    return {};
  }();
  fmt::print("{}\n", run ? "ok" : run.error().explain());
  return run ? 0 : 1;
}

namespace {

TEST_F(Conformance, AnotherProcessOpensItsMemory) {
  const std::uint64_t base = memory(1 << 20);
  if (!can(STRAIT_CAN_IPC)) {
    refused(provider_->ipc_export({base, 4096}), {Code::unsupported});
    return;
  }
  std::vector<unsigned char> bytes(kIpcBytes);
  for (std::size_t i = 0; i < kIpcBytes; ++i) bytes[i] = static_cast<unsigned char>(i * 11);
  put(base + kIpcOffset, bytes);
  const auto handle = provider_->ipc_export({base + kIpcOffset, kIpcBytes});
  ASSERT_TRUE(handle) << handle.error().explain();

  const std::string name = fmt::format("strait-conformance-{}", ::getpid());
  const auto listener = sys::unix_listen(name);
  ASSERT_TRUE(listener) << listener.error().explain();
  auto child = sys::Child::start_self(same_target());
  ASSERT_TRUE(child) << child.error().explain();
  ASSERT_TRUE(child->write(name));
  sys::Fd socket;
  for (const sys::Deadline deadline = soon(); !socket.valid() && !deadline.passed();) {
    auto accepted = sys::accept_one(listener->get());
    if (accepted) {
      socket = std::move(*accepted);
    } else {
      ::usleep(1000);
    }
  }
  ASSERT_TRUE(socket.valid()) << "the second process did not come";
  const std::span<const std::byte> whole(reinterpret_cast<const std::byte*>(&*handle), sizeof *handle);
  const int fd = handle->fd;
  ASSERT_TRUE(sys::send_packet(socket.get(), whole, fd >= 0 ? std::span(&fd, 1) : std::span<const int>()));
  const auto answer = child->read(soon());
  EXPECT_EQ(answer.value_or("nothing"), "ok");
  EXPECT_EQ(child->finish(soon()).value_or(-1), 0);
  if (fd >= 0) provider_->close_fd(fd);
  for (std::size_t i = 0; i < kIpcBytes; ++i) bytes[i] = static_cast<unsigned char>(i * 13 + 1);
  EXPECT_EQ(get(base + kIpcOffset, kIpcBytes), bytes) << "what the second process wrote";
}

TEST_F(Conformance, WrongHandlesAreRefused) {
  const std::uint64_t base = memory(1 << 20);
  strait_ipc_handle garbage{};
  garbage.fd = -1;
  garbage.way = STRAIT_IPC_BYTES;
  garbage.length_bytes = 4096;
  std::memset(garbage.bytes, 0x5a, sizeof garbage.bytes);
  for (const std::uint32_t used : {0u, 8u, 200u, 256u, 257u, UINT32_MAX}) {
    garbage.bytes_used = used;
    refused(provider_->ipc_open(0, garbage), {Code::invalid, Code::unsupported});
  }
  refused(provider_->ipc_close(base), {Code::invalid, Code::unsupported});
  if (!can(STRAIT_CAN_IPC)) return;
  refused(provider_->ipc_export({16, 16}), {Code::invalid, Code::unsupported});
  refused(provider_->ipc_export({base, std::uint64_t{1} << 50}), {Code::invalid});
  const auto good = provider_->ipc_export({base, 1 << 20});
  ASSERT_TRUE(good) << good.error().explain();
  strait_ipc_handle bad = *good;
  bad.length_bytes = std::uint64_t{1} << 50;
  refused(provider_->ipc_open(0, bad), {Code::invalid});
  bad = *good;
  bad.length_bytes = 0;
  refused(provider_->ipc_open(0, bad), {Code::invalid});
  refused(provider_->ipc_open(1000, *good), {Code::invalid});
  // Every byte changed on its own: refused, or opened and closed again; never a crash.
  for (std::uint32_t at = 0; at < good->bytes_used; ++at) {
    bad = *good;
    bad.bytes[at] = static_cast<std::uint8_t>(bad.bytes[at] ^ 0x80);
    const auto opened = provider_->ipc_open(0, bad);
    if (opened) {
      EXPECT_TRUE(provider_->ipc_close(*opened));
    }
  }
  if (good->fd >= 0) provider_->close_fd(good->fd);
}

TEST_F(Conformance, AForkedChildIsToldThatItIsNotItsOwn) {
  const std::uint64_t base = memory(65536);
  put(base, pattern(65536, 2));
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // _exit says which of them was wrong.
    if (provider_->classify(base)) ::_exit(1);
    if (provider_->identity({base, 16}) != 0) ::_exit(2);
    const auto allocated = provider_->allocate(0, 4096);
    if (allocated || allocated.error().code != Code::gone) ::_exit(3);
    const auto freed = provider_->free(base);
    if (freed || freed.error().code != Code::gone) ::_exit(4);
    char byte = 0;
    const auto copied = provider_->start_copy(reinterpret_cast<std::uint64_t>(&byte), base, 1);
    if (copied || copied.error().code != Code::gone) ::_exit(5);
    const auto exported = provider_->export_fd({base, 4096});
    if (exported || (exported.error().code != Code::gone && exported.error().code != Code::unsupported)) ::_exit(6);
    (void)provider_->counters();
    provider_.reset();
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "the child died of signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(get(base, 65536), pattern(65536, 2)) << "the child's end touched the parent's memory";
}

TEST_F(Conformance, SixteenThreadsUseItFirstAtTheSameTime) {
  constexpr int kThreads = 16;
  for (int round = 0; round < 3; ++round) {
    auto opened = Provider::open(make_plugin());
    ASSERT_TRUE(opened) << opened.error().explain();
    Provider& provider = **opened;
    std::barrier together(kThreads);
    std::atomic<int> good{0};
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        const auto bytes = pattern(10'000, static_cast<unsigned>(t));
        together.arrive_and_wait();
        for (int i = 0; i < 10; ++i) {
          const auto device = static_cast<std::uint32_t>(static_cast<std::size_t>(t) % provider.devices().size());
          const auto base = provider.allocate(device, 20'000);
          if (!base || !provider.classify(*base + 19'999)) return;
          std::vector<unsigned char> back(bytes.size());
          const auto in = provider.start_copy(*base + 1, address_of(bytes), bytes.size());
          if (!in || !provider.wait_copy(*in, soon())) return;
          const auto out = provider.start_copy(address_of(back), *base + 1, back.size());
          if (!out || !provider.wait_copy(*out, soon()) || back != bytes) return;
          if (const auto exported = provider.export_fd({*base, 4096}); exported) provider.close_fd(exported->fd);
          if (!provider.free(*base)) return;
        }
        good.fetch_add(1);
      });
    }
    threads.clear();
    EXPECT_EQ(good.load(), kThreads);
  }
}

}  // namespace
}  // namespace strait::buffer::conformance
