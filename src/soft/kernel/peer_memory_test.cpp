// SPDX-License-Identifier: Apache-2.0
#include "soft/kernel/peer_memory.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <thread>

#include "soft/kernel/peer_clients.hpp"
#include "soft/kernel/testing.hpp"

namespace strait::soft::kernel {
namespace {

using testing::Machine;
using testing::settings;

// Writes down what the core asks of it, and does what a test tells it at each step.
class Scripted final : public PeerClient {
 public:
  const char* name() const override { return "scripted"; }
  void joined(std::function<int(std::uint64_t)> invalidate) override { invalidate_ = std::move(invalidate); }
  int acquire(std::uint64_t, std::uint64_t, PeerContext& context) override {
    log += "acquire ";
    context = std::make_shared<int>(1);
    return mine ? 1 : 0;
  }
  int get_pages(std::uint64_t address, std::uint64_t, bool write, bool, PeerPages& pages, const PeerContext&,
                std::uint64_t core_context) override {
    log += write ? "get_pages(write) " : "get_pages ";
    core = core_context;
    pages.first = address / 4096 * 4096;  // rounded outward
    if (in_get_pages) in_get_pages();
    return get_pages_answer;
  }
  int dma_map(PeerPages& pages, const PeerContext&, const DmaDevice&, int& mapped) override {
    log += "dma_map ";
    if (in_dma_map) in_dma_map();
    pages.segments = {{bytes.data(), 4096}, {bytes.data() + 4096, 4096}};
    mapped = 2;
    return dma_map_answer;
  }
  int dma_unmap(PeerPages&, const PeerContext&) override {
    log += "dma_unmap ";
    return 0;
  }
  void put_pages(PeerPages&, const PeerContext&) override { log += "put_pages "; }
  std::uint64_t get_page_size(const PeerContext&) override { return 4096; }
  void release(const PeerContext&) override { log += "release "; }
  bool invalidate_unmaps() const override { return unmaps_itself; }
  void provoke(const PeerContext&) override { (void)invalidate_(core); }
  int invalidate() { return invalidate_(core); }

  std::string log;
  bool mine = true;
  bool unmaps_itself = false;
  int get_pages_answer = 0;
  int dma_map_answer = 0;
  std::uint64_t core = 0;
  std::function<void()> in_get_pages, in_dma_map;
  std::vector<std::byte> bytes = std::vector<std::byte>(8192);

 private:
  std::function<int(std::uint64_t)> invalidate_;
};

class PeerTest : public ::testing::Test {
 protected:
  int get(std::shared_ptr<PeerUmem>& out, std::function<void()> revoke = nullptr) {
    return registry_.get(0x10'0000'0010, 5000, true, nic_, std::move(revoke), out);
  }
  KernelFaults faults_;
  Counters counters_;
  PeerRegistry registry_{faults_, counters_};
  DmaDevice nic_{"strait0"};
  std::shared_ptr<Scripted> client_ = std::make_shared<Scripted>();
};

TEST_F(PeerTest, NobodyClaimsTheAddress) {
  std::shared_ptr<PeerUmem> umem;
  EXPECT_EQ(get(umem), -EFAULT) << "no client";
  client_->mine = false;
  (void)registry_.add(client_, true);
  EXPECT_EQ(get(umem), -EFAULT);
  EXPECT_EQ(client_->log, "acquire ");
}

TEST_F(PeerTest, EachSuccessIsUndoneOnceInReverse) {
  const std::uint64_t handle = registry_.add(client_, true);
  std::shared_ptr<PeerUmem> umem;
  ASSERT_EQ(get(umem), 0);
  ASSERT_EQ(umem->segments().size(), 2u) << "trimmed to the caller's bytes";
  EXPECT_EQ(umem->segments()[0].at, client_->bytes.data() + 16);
  EXPECT_EQ(umem->segments()[0].length_bytes, 4080u);
  EXPECT_EQ(umem->segments()[1].length_bytes, 5000u - 4080);
  EXPECT_EQ(registry_.remove(handle), -EBUSY);
  umem.reset();
  EXPECT_EQ(client_->log, "acquire get_pages(write) dma_map dma_unmap put_pages release ");
  EXPECT_EQ(registry_.remove(handle), 0);
  EXPECT_EQ(registry_.remove(handle), -ENOENT);
}

TEST_F(PeerTest, AFailedStepUndoesWhatWentBefore) {
  (void)registry_.add(client_, true);
  std::shared_ptr<PeerUmem> umem;
  client_->get_pages_answer = -ENOMEM;
  EXPECT_EQ(get(umem), -ENOMEM);
  EXPECT_EQ(client_->log, "acquire get_pages(write) release ");
  client_->log.clear();
  client_->get_pages_answer = 0;
  client_->dma_map_answer = -EIO;
  EXPECT_EQ(get(umem), -EIO);
  EXPECT_EQ(client_->log, "acquire get_pages(write) dma_map put_pages release ");
}

TEST_F(PeerTest, ClientsAreAskedInTurn) {
  auto second = std::make_shared<Scripted>();
  client_->mine = false;
  (void)registry_.add(client_, true);
  (void)registry_.add(second, true);
  std::shared_ptr<PeerUmem> umem;
  ASSERT_EQ(get(umem), 0);
  EXPECT_EQ(client_->log, "acquire ");
  EXPECT_NE(second->log.find("dma_map"), std::string::npos);
  EXPECT_EQ(registry_.names(), (std::vector<std::string>{"scripted", "scripted"}));
}

TEST_F(PeerTest, WhenInvalidateReturnsTheNicHasStoppedAndAllIsReleased) {
  (void)registry_.add(client_, true);
  std::shared_ptr<PeerUmem> umem;
  ASSERT_EQ(get(umem, [&] { client_->log += "revoke "; }), 0);
  EXPECT_EQ(client_->invalidate(), 0);
  EXPECT_EQ(client_->log, "acquire get_pages(write) dma_map revoke dma_unmap put_pages release ");
  EXPECT_EQ(client_->invalidate(), 0) << "a second one finds nothing to do";
  umem.reset();
  EXPECT_EQ(client_->log, "acquire get_pages(write) dma_map revoke dma_unmap put_pages release ");
  EXPECT_EQ(client_->invalidate(), 0) << "and one after the end";
}

TEST_F(PeerTest, AClientThatUnmapsItselfIsNotAskedTo) {
  client_->unmaps_itself = true;
  (void)registry_.add(client_, true);
  std::shared_ptr<PeerUmem> umem;
  ASSERT_EQ(get(umem, [&] { client_->log += "revoke "; }), 0);
  EXPECT_EQ(client_->invalidate(), 0);
  EXPECT_EQ(client_->log, "acquire get_pages(write) dma_map revoke release ");
}

TEST_F(PeerTest, InvalidateFromInsideTheStepsIsNoDeadlock) {
  for (const bool late : {false, true}) {
    auto client = std::make_shared<Scripted>();
    (late ? client->in_dma_map : client->in_get_pages) = [&] { EXPECT_EQ(client->invalidate(), 0); };
    PeerRegistry registry(faults_, counters_);
    (void)registry.add(client, true);
    std::shared_ptr<PeerUmem> umem;
    EXPECT_EQ(registry.get(0x1000, 4096, true, nic_, nullptr, umem), -EFAULT) << "it was freed meanwhile";
    EXPECT_EQ(client->log, "acquire get_pages(write) dma_map dma_unmap put_pages release ");
  }
}

TEST_F(PeerTest, InvalidateFromElsewhereWaitsForTheSteps) {
  (void)registry_.add(client_, true);
  std::thread other;
  std::atomic<bool> returned{false};
  client_->in_get_pages = [&] {
    other = std::thread([&] {
      EXPECT_EQ(client_->invalidate(), 0);
      returned = true;
    });
  };
  client_->in_dma_map = [&] { EXPECT_FALSE(returned) << "nothing is released yet"; };
  std::shared_ptr<PeerUmem> umem;
  const int got = get(umem);
  umem.reset();  // or it was never there
  other.join();
  EXPECT_TRUE(got == 0 || got == -EFAULT);
  EXPECT_EQ(client_->log, "acquire get_pages(write) dma_map dma_unmap put_pages release ");
}

TEST_F(PeerTest, ClosingWaitsForAnInvalidateThatIsUnderWay) {
  (void)registry_.add(client_, true);
  std::shared_ptr<PeerUmem> umem;
  std::atomic<bool> in_revoke{false};
  std::atomic<bool> go_on{false};
  std::atomic<bool> closed{false};
  ASSERT_EQ(get(umem,
                [&] {
                  in_revoke = true;
                  while (!go_on) std::this_thread::yield();
                  EXPECT_FALSE(closed);
                }),
            0);
  std::thread freeing([&] { (void)client_->invalidate(); });
  while (!in_revoke) std::this_thread::yield();
  std::thread closing([&] {
    umem->close();
    closed = true;
  });
  go_on = true;
  freeing.join();
  closing.join();
  EXPECT_EQ(client_->log, "acquire get_pages(write) dma_map dma_unmap put_pages release ");
}

TEST_F(PeerTest, StepsFailOnPurpose) {
  for (const auto& [text, answer] :
       {std::pair{"acquire=EIO", -EIO}, {"get_pages=ENOMEM", -ENOMEM}, {"dma_map=EINVAL", -EINVAL}}) {
    KernelFaults faults = KernelFaults::parse(text).value();
    PeerRegistry registry(faults, counters_);
    auto client = std::make_shared<Scripted>();
    (void)registry.add(client, true);
    std::shared_ptr<PeerUmem> umem;
    EXPECT_EQ(registry.get(0x1000, 4096, true, nic_, nullptr, umem), answer) << text;
  }
}

struct Client {
  const char* peer_memory;
  std::uint32_t vendor;
  const char* name;
  bool survives;
};
class Clients : public ::testing::TestWithParam<Client> {};

TEST_P(Clients, ReachTheirOwnMemoryUntilItIsFreed) {
  Machine machine;
  Kernel kernel(machine.drivers, settings(GetParam().peer_memory));
  Machine::Memory& memory = machine.allocate(GetParam().vendor, 300'000);
  {
    NicMemoryOwner mr;
    ASSERT_EQ(kernel.import_address(machine.nic, memory.base + 70'001, 200'000, 0x5000'1171, true, mr), 0);
    EXPECT_EQ(mr->text(), std::string("peer-memory client ") + GetParam().name);
    EXPECT_FALSE(mr->stays()) << "its end may come at any time";
    EXPECT_EQ(testing::put(*mr, 0x5000'1171, "first"), 0);
    EXPECT_EQ(testing::device_text(memory, 70'001, 5), "first");
    machine.free(memory);
    EXPECT_EQ(mr->revoked(), !GetParam().survives);
    EXPECT_EQ(testing::put(*mr, 0x5000'1171, "later"), GetParam().survives ? 0 : kRevoked);
    EXPECT_EQ(testing::device_text(memory, 70'001, 5), GetParam().survives ? "later" : "first");
  }
  EXPECT_EQ(kernel.unbalanced(), "");
  EXPECT_EQ(kernel.bar().used(BarSpace::of(GetParam().vendor, 0)), 0u);
}

INSTANTIATE_TEST_SUITE_P(PeerMemory, Clients,
                         ::testing::Values(Client{"nvidia", STRAIT_SOFT_VENDOR_CUDA, "nv_mem", false},
                                           Client{"nvidia_persistent", STRAIT_SOFT_VENDOR_CUDA, "nv_mem", true},
                                           Client{"amd", STRAIT_SOFT_VENDOR_ROCM, "amdkfd", false},
                                           Client{"nvidia,amd", STRAIT_SOFT_VENDOR_ROCM, "amdkfd", false},
                                           Client{"nvidia,amd", STRAIT_SOFT_VENDOR_CUDA, "nv_mem", false}));

TEST(PeerClients, EachLeavesTheOthersMemoryAlone) {
  Machine machine;
  const std::uint64_t cuda = machine.allocate(STRAIT_SOFT_VENDOR_CUDA, 65536).base;
  const std::uint64_t rocm = machine.allocate(STRAIT_SOFT_VENDOR_ROCM, 65536).base;
  const std::uint64_t gaudi = machine.allocate(STRAIT_SOFT_VENDOR_GAUDI, 65536).base;
  const std::uint64_t pool = machine.allocate(STRAIT_SOFT_VENDOR_CUDA, 65536, 0).base;
  NicMemoryOwner mr;
  Kernel nvidia(machine.drivers, settings("nvidia"));
  Kernel amd(machine.drivers, settings("amd"));
  Kernel none(machine.drivers, settings("none"));
  EXPECT_EQ(nvidia.import_address(machine.nic, rocm, 4096, rocm, true, mr), -EFAULT);
  EXPECT_EQ(amd.import_address(machine.nic, cuda, 4096, cuda, true, mr), -EFAULT);
  EXPECT_EQ(nvidia.import_address(machine.nic, gaudi, 4096, gaudi, true, mr), -EFAULT);
  EXPECT_EQ(amd.import_address(machine.nic, gaudi, 4096, gaudi, true, mr), -EFAULT) << "Gaudi has no client at all";
  EXPECT_EQ(nvidia.import_address(machine.nic, pool, 4096, pool, true, mr), -EFAULT) << "not RDMA capable";
  EXPECT_EQ(none.import_address(machine.nic, cuda, 4096, cuda, true, mr), -EFAULT);
  EXPECT_EQ(nvidia.import_address(machine.nic, cuda + 60'000, 10'000, cuda, true, mr), -EFAULT) << "past the end";
  EXPECT_EQ(nvidia.import_address(machine.nic, cuda - 4096, 8192, cuda, true, mr), -EFAULT) << "runs into it";
  int on_the_stack = 0;
  EXPECT_EQ(nvidia.import_address(machine.nic, reinterpret_cast<std::uint64_t>(&on_the_stack), 4, 0, true, mr), 1)
      << "host memory is not this kernel's affair";
}

}  // namespace
}  // namespace strait::soft::kernel
