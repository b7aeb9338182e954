// SPDX-License-Identifier: Apache-2.0
// A device behind each of the hosts: the server, the server where it has to ask for memory, and this process.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <thread>

#include "soft/cassini_host/connection.hpp"
#include "soft/cassini_host/open_device.hpp"
#include "soft/cassini_host/server.hpp"
#include "soft/cassini_host/trap.hpp"
#include "sys/host.hpp"
#include "sys/process.hpp"

namespace strait::soft::cassini {
namespace {

enum class Where { server, asked, local };

class HostTest : public ::testing::TestWithParam<Where> {
 protected:
  void SetUp() override {
    if (GetParam() == Where::local) return;
    ServerSettings settings;
    settings.name = server_name(fmt::format("unit-test-{}", sys::process_id()));
    settings.cards = 2;
    settings.ask_for_memory = GetParam() == Where::asked;
    settings.linger_ns = 200'000'000;
    name_ = settings.name;
    auto made = Server::create(settings);
    ASSERT_TRUE(made) << made.error().explain();
    server_ = std::move(*made);
    thread_ = std::thread([this] { EXPECT_TRUE(server_->run()); });
  }
  void TearDown() override {
    if (thread_.joinable()) {
      server_->stop();
      thread_.join();
    }
  }
  std::unique_ptr<OpenDevice> open(std::uint32_t card = 0) {
    OpenSettings settings;
    settings.device = card;
    settings.local = GetParam() == Where::local;
    settings.server.name = name_;
    auto opened = OpenDevice::open(std::move(settings));
    EXPECT_TRUE(opened) << opened.error().explain();
    return opened ? std::move(*opened) : nullptr;
  }
  template <class Command>
  static long send(OpenDevice& device, Command& command) {
    command.op = Command::kOp;
    return device.write(&command, sizeof command);
  }
  static std::uint32_t make_lni(OpenDevice& device) {
    wire::LniAllocCmd ask{};
    wire::LniAllocResp made{};
    ask.resp = reinterpret_cast<std::uint64_t>(&made);
    ask.svc_id = 1;
    EXPECT_EQ(send(device, ask), static_cast<long>(sizeof ask));
    return made.lni;
  }
  std::string name_;
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

TEST_P(HostTest, AnswersLandInTheCallersMemory) {
  const auto device = open();
  ASSERT_TRUE(device);
  const std::uint32_t lni = make_lni(*device);
  EXPECT_NE(lni, 0u);
  wire::LniFreeCmd free_it{};
  free_it.lni = lni;
  EXPECT_EQ(send(*device, free_it), static_cast<long>(sizeof free_it));
  EXPECT_EQ(send(*device, free_it), -EINVAL);
}

TEST_P(HostTest, BadPointersAreEfault) {
  const auto device = open();
  ASSERT_TRUE(device);
  wire::LniAllocCmd ask{};
  ask.op = wire::LniAllocCmd::kOp;
  ask.svc_id = 1;
  EXPECT_EQ(device->write(nullptr, sizeof ask), -EFAULT);
  for (const std::uint64_t bad : {std::uint64_t{0}, std::uint64_t{8}, ~std::uint64_t{0} - 3, std::uint64_t{1} << 63}) {
    ask.resp = bad;
    EXPECT_EQ(send(*device, ask), -EFAULT);
  }
  // The driver reads 16 bytes of every command, also of one that has 8.
  void* two = mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_EQ(munmap(static_cast<char*>(two) + 4096, 4096), 0);
  auto* short_one = reinterpret_cast<wire::LniFreeCmd*>(static_cast<char*>(two) + 4088);
  short_one->op = wire::LniFreeCmd::kOp;
  short_one->lni = 77;
  EXPECT_EQ(device->write(short_one, sizeof *short_one), -EFAULT);
  EXPECT_EQ(device->write(two, 0), -EINVAL);
  EXPECT_EQ(device->write(two, 22433), -EINVAL);
  munmap(two, 4096);
}

TEST_P(HostTest, CookiesWorkOnce) {
  const auto device = open();
  ASSERT_TRUE(device);
  wire::CtAllocCmd ask{};
  wire::CtAllocResp made{};
  ask.resp = reinterpret_cast<std::uint64_t>(&made);
  ask.lni = make_lni(*device);
  ASSERT_EQ(send(*device, ask), static_cast<long>(sizeof ask));
  const std::uint64_t offset = made.doorbell.offset;
  const auto map = [&](std::size_t length, std::uint64_t at, int flags) {
    return device->map(nullptr, length, PROT_READ | PROT_WRITE, flags, at, false);
  };
  EXPECT_EQ(map(8192, offset, MAP_SHARED), -EINVAL);
  EXPECT_EQ(map(4096, offset + 4096, MAP_SHARED), -EINVAL);
  EXPECT_EQ(map(4096, offset, MAP_PRIVATE), -EINVAL);
  const std::int64_t at = map(4096, offset, MAP_SHARED);
  ASSERT_GT(at, 0);
  EXPECT_EQ(map(4096, offset, MAP_SHARED), -EINVAL);
  wire::CtFreeCmd free_it{};
  free_it.ctn = made.ctn;
  EXPECT_EQ(send(*device, free_it), -EBUSY);
  ASSERT_EQ(munmap(reinterpret_cast<void*>(at), 4096), 0);
  device->unmapped(reinterpret_cast<void*>(at), 4096);
  EXPECT_EQ(send(*device, free_it), static_cast<long>(sizeof free_it));
}

// Additions on the page itself, as code does that knows what it is; the first failure writes back.
TEST_P(HostTest, DoorbellsAndWriteBacks) {
  const auto device = open(1);
  ASSERT_TRUE(device);
  alignas(8) std::uint64_t word = 0;
  wire::CtAllocCmd ask{};
  wire::CtAllocResp made{};
  ask.resp = reinterpret_cast<std::uint64_t>(&made);
  ask.lni = make_lni(*device);
  ask.wb = reinterpret_cast<std::uint64_t>(&word);
  ASSERT_EQ(send(*device, ask), static_cast<long>(sizeof ask));
  const std::int64_t at = device->map(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, made.doorbell.offset, false);
  ASSERT_GT(at, 0);
  auto* const page = reinterpret_cast<std::byte*>(at);
  for (int i = 0; i < 1000; ++i) store_doorbell(page, kAddSuccess, 3);
  store_doorbell(page, kAddFailure, 1);
  const auto deadline = sys::Deadline::after_ns(10'000'000'000);
  while (__atomic_load_n(&word, __ATOMIC_ACQUIRE) == 0 && !deadline.passed()) ::usleep(100);
  EXPECT_EQ(word, std::uint64_t{1} << 63 | std::uint64_t{1} << 48 | 3000u);
  munmap(page, 4096);
  device->unmapped(page, 4096);
}

TEST_P(HostTest, WaitObjectsAreDescriptors) {
  const auto device = open();
  ASSERT_TRUE(device);
  wire::WaitAllocCmd ask{};
  wire::WaitAllocResp made{};
  ask.resp = reinterpret_cast<std::uint64_t>(&made);
  ask.lni = make_lni(*device);
  ASSERT_EQ(send(*device, ask), static_cast<long>(sizeof ask));
  EXPECT_EQ(made.client_id, device->channel().id());
  auto fd = device->channel().wait(made.wait);
  ASSERT_TRUE(fd) << fd.error().explain();
  pollfd entry{fd->get(), POLLPRI, 0};
  EXPECT_EQ(::poll(&entry, 1, 0), 0);
}

TEST_P(HostTest, SharedRanges) {
  const auto device = open();
  ASSERT_TRUE(device);
  auto file = sys::make_sealed_memfd("shared", 8192);
  ASSERT_TRUE(file);
  auto mapping = sys::map_file(file->get(), 0, 8192, sys::Protect::read_write);
  ASSERT_TRUE(mapping);
  const auto address = reinterpret_cast<std::uint64_t>(mapping->data());
  Channel& channel = device->channel();
  EXPECT_EQ(channel.share(address, 8192, file->get(), 0), 0);
  EXPECT_EQ(channel.share(address + 4096, 4096, file->get(), 0), -EEXIST);
  // An answer into the shared range.
  auto* made = reinterpret_cast<wire::LniAllocResp*>(mapping->data() + 128);
  wire::LniAllocCmd ask{};
  ask.resp = reinterpret_cast<std::uint64_t>(made);
  ask.svc_id = 1;
  EXPECT_EQ(send(*device, ask), static_cast<long>(sizeof ask));
  EXPECT_NE(made->lni, 0u);
  EXPECT_EQ(channel.unshare(address), 0);
  EXPECT_EQ(channel.unshare(address), -ENOENT);
}

TEST_P(HostTest, TwoClientsAreTwo) {
  const auto one = open(), other = open();
  ASSERT_TRUE(one && other);
  EXPECT_NE(one->channel().id(), other->channel().id());
  wire::LniFreeCmd free_it{};
  free_it.lni = make_lni(*one);
  EXPECT_EQ(send(*other, free_it), -EINVAL) << "handles are the client's own";
  EXPECT_FALSE(one->channel().counters().empty());
}

INSTANTIATE_TEST_SUITE_P(Hosts, HostTest, ::testing::Values(Where::server, Where::asked, Where::local),
                         [](const auto& each) {
                           return each.param == Where::server  ? "Server"
                                  : each.param == Where::asked ? "ServerThatAsks"
                                                               : "Local";
                         });

TEST(CassiniServer, UnsealedFilesAreNotShared) {
  ServerSettings settings;
  settings.name = server_name(fmt::format("unit-test-seal-{}", sys::process_id()));
  auto server = Server::create(settings);
  ASSERT_TRUE(server);
  std::thread thread([&] { EXPECT_TRUE((*server)->run()); });
  {
    auto opened = Connection::open({.name = settings.name, .program = {}, .ask_for_memory = false}, 0, {});
    ASSERT_TRUE(opened) << opened.error().explain();
    const int fd = ::memfd_create("unsealed", MFD_ALLOW_SEALING);
    ASSERT_EQ(::ftruncate(fd, 4096), 0);
    EXPECT_EQ((*opened)->share(0x10000, 4096, fd, 0), -EINVAL);
    ::close(fd);
  }
  (*server)->stop();
  thread.join();
}

TEST(CassiniServer, EndsWhenNobodyIsLeft) {
  ServerSettings settings;
  settings.name = server_name(fmt::format("unit-test-ends-{}", sys::process_id()));
  settings.linger_ns = 50'000'000;
  auto server = Server::create(settings);
  ASSERT_TRUE(server);
  EXPECT_EQ(Server::create(settings).error().code, Code::again) << "a name has one server";
  std::thread thread([&] { EXPECT_TRUE((*server)->run()); });
  {
    auto opened = Connection::open({.name = settings.name, .program = {}, .ask_for_memory = false}, 0, {});
    EXPECT_TRUE(opened);
  }
  thread.join();  // by itself
}

TEST(CassiniServer, ItsEndIsEioForItsClients) {
  ServerSettings settings;
  settings.name = server_name(fmt::format("unit-test-gone-{}", sys::process_id()));
  auto server = Server::create(settings);
  ASSERT_TRUE(server);
  std::thread thread([&] { EXPECT_TRUE((*server)->run()); });
  OpenSettings asked;
  asked.server.name = settings.name;
  auto device = OpenDevice::open(std::move(asked));
  EXPECT_TRUE(device);
  (*server)->stop();
  thread.join();
  server->reset();
  ASSERT_TRUE(device);
  wire::LniFreeCmd command{};
  command.op = wire::LniFreeCmd::kOp;
  EXPECT_EQ((*device)->write(&command, sizeof command), -EIO);
  EXPECT_EQ((*device)->map(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, 4096, false), -EIO);
}

TEST(CassiniServer, HostileAsksEndTheirConnectionOnly) {
  ServerSettings settings;
  settings.name = server_name(fmt::format("unit-test-bad-{}", sys::process_id()));
  auto server = Server::create(settings);
  ASSERT_TRUE(server);
  std::thread thread([&] { EXPECT_TRUE((*server)->run()); });
  {
    auto good = Connection::open({.name = settings.name, .program = {}, .ask_for_memory = false}, 0, {});
    ASSERT_TRUE(good);
    std::uint64_t random = 88172645463325252ull;
    for (int round = 0; round < 300; ++round) {
      auto bad = sys::unix_connect(settings.name, sys::Deadline::after_ns(5'000'000'000));
      ASSERT_TRUE(bad);
      for (int packet = 0; packet < 4; ++packet) {
        std::vector<std::byte> bytes(1 + random % 400);
        for (std::byte& each : bytes) {
          random ^= random << 13, random ^= random >> 7, random ^= random << 17;
          each = static_cast<std::byte>(random);
        }
        protocol::Ask ask{};
        if (bytes.size() >= sizeof ask) {
          std::memcpy(&ask, bytes.data(), sizeof ask);
          ask.magic = protocol::kMagic;
          ask.kind = static_cast<protocol::Kind>(random % 12);
          std::memcpy(bytes.data(), &ask, sizeof ask);
        }
        (void)sys::send_packet(bad->get(), bytes, {});
      }
    }
    EXPECT_FALSE((*good)->counters().empty());
  }
  (*server)->stop();
  thread.join();
}

}  // namespace
}  // namespace strait::soft::cassini
