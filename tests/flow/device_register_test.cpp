// SPDX-License-Identifier: Apache-2.0
// Queues on a NIC whose doorbells are registers (register_nic.cpp): posters that reach them ring by themselves, for the
// others a CPU does. By CPU threads, and for a device whose driver does not let it at registers, named by
// STRAIT_TEST_DEVICE: the state that was made for its kernels is brought over, and a CPU posts with that. The same NIC
// can be one that the device's driver does not let at its memory.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // g++ 12 does not see that an unusable lane owns nothing
#endif

#include <atomic>
#include <thread>

#include "flow.hpp"
#include "strait/device/lane.hpp"
#include "strait/device_queue.hpp"

namespace strait::flow {
namespace {

using device::Deadline;
using device::Sharing;
using device::Waited;

NodeOptions over_registers(const std::string& accelerators, const std::string& progress = "thread") {
  return settings({{"accelerators", accelerators},
                   {"progress", progress},
                   {"nics", "verbs:register0"},
                   {"verbs_library", STRAIT_REGISTER_NIC},
                   {"grant", "ring"}});
}
Deadline in_ms(std::uint64_t ms) {
  return Deadline::after_ns(ms * 1'000'000);
}
std::size_t threads_here() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator("/proc/self/task")) ++count;
  return count;
}

struct RegisterRig {
  explicit RegisterRig(const std::string& accelerators, const std::string& progress = "thread")
      : pair(over_registers(accelerators), over_registers(accelerators, progress)),
        shared(pair.owner, "host", 1 << 20, access::all),
        name(pair.owner.publish("block", shared.region).value()),
        target(pair.far.lookup("block").value()) {}
  Pair pair;
  Block shared;
  Published name;
  Target target;
};

TEST(DeviceRegister, APosterThatReachesItRingsByItself) {
  RegisterRig rig("none");
  DeviceQueue queue = DeviceQueue::open(rig.pair.far, {.counters = 1}).value();
  EXPECT_NE(queue.path().find("register0 (rung by the poster)"), std::string::npos) << queue.path();
  const auto to = queue.remote(rig.target).value();
  {
    device::Lane<Sharing::one_thread> lane(queue.handle().value());
    for (std::uint64_t i = 1; i <= 100; ++i)
      ASSERT_EQ(lane.wait(lane.put_value(i, to, 8 * i), in_ms(60'000)).waited, Waited::ok) << "without a lease";
  }
  for (std::uint64_t i = 1; i <= 100; ++i) EXPECT_EQ(rig.shared.word(8 * i), i);
  const std::size_t threads = threads_here();
  const GpuLease lease = queue.lease().value();
  EXPECT_LE(threads_here(), threads) << "nobody has to look";
}

// Both vendors' drivers in software refuse, as NVIDIA's does without its option, and AMD's always.
TEST(DeviceRegister, ACpuRingsForADeviceThatIsNotLetAtIt) {
  RegisterRig rig(test_kind(), "caller");  // nobody else looks
  DeviceQueue queue =
      DeviceQueue::open(rig.pair.far, {.near = test_device(), .sharing = Sharing::many_threads, .depth_blocks = 64})
          .value();
  const std::string path = queue.path();
  EXPECT_EQ(path.find(test_device() + " -> rings in host memory -> register0 (proxy: a CPU thread rings it while a "
                                      "lease is held, since the poster cannot: "),
            0u)
      << path;
  EXPECT_NE(path.find("I/O memory"), std::string::npos) << "the cause: " << path;

  device::QueueState state{};
  ASSERT_TRUE(rig.pair.asker.copy(&state, queue.handle().value().state, sizeof state));
  ASSERT_TRUE(device::fits(state));
  std::vector<std::uint64_t> marks(64, 0);
  state.send.slots.marks = marks.data();
  device::Queue here = queue.handle().value();
  here.state = &state;
  device::Lane<Sharing::many_threads> lane(here);
  const auto to = queue.remote(rig.target).value();
  const device::Pending first = lane.put_value(std::uint64_t{77}, to, 8);
  EXPECT_EQ(lane.wait(first, in_ms(100)).waited, Waited::timeout) << "nobody has rung";
  EXPECT_EQ(rig.shared.word(8), 0u);
  const std::size_t threads = threads_here();
  {
    const GpuLease lease = queue.lease().value();
    EXPECT_EQ(lane.wait(first, in_ms(60'000)).waited, Waited::ok) << "what was posted before is found";
    for (std::uint64_t i = 2; i <= 200; ++i)
      ASSERT_EQ(lane.wait(lane.put_value(i, to, 8 * i), in_ms(60'000)).waited, Waited::ok) << i;
  }
  for (std::uint64_t i = 2; i <= 200; ++i) EXPECT_EQ(rig.shared.word(8 * i), i);
  const auto until = std::chrono::steady_clock::now() + 10s;  // one that was joined is listed a moment longer
  while (threads_here() > threads && std::chrono::steady_clock::now() < until) ::usleep(1000);
  EXPECT_LE(threads_here(), threads) << "with the lease the thread is gone";
  const device::Pending last = lane.put_value(std::uint64_t{88}, to, 8);
  EXPECT_EQ(lane.wait(last, in_ms(100)).waited, Waited::timeout);
  {
    const GpuLease again = queue.lease().value();
    EXPECT_EQ(lane.wait(last, in_ms(60'000)).waited, Waited::ok);
  }
  // A poll of the host finds what was posted outside a lease, as on a NIC that is driven.
  const device::Pending polled = lane.put_value(std::uint64_t{99}, to, 8);
  EXPECT_EQ(lane.wait(polled, in_ms(100)).waited, Waited::timeout);
  EXPECT_EQ(rig.shared.word(8), 88u);
  EXPECT_GT(rig.pair.asker.poll(), 0) << "one doorbell was passed on";
  EXPECT_EQ(lane.wait(polled, in_ms(60'000)).waited, Waited::ok);
  EXPECT_EQ(rig.shared.word(8), 99u);
}

// Leases that come and go, polls and the Node's own thread ring for the same posters.
TEST(DeviceRegister, WhoeverRingsNothingIsLost) {
  RegisterRig rig(test_kind());
  DeviceQueue queue =
      DeviceQueue::open(rig.pair.far, {.near = test_device(), .sharing = Sharing::many_threads, .depth_blocks = 64})
          .value();
  device::QueueState state{};
  ASSERT_TRUE(rig.pair.asker.copy(&state, queue.handle().value().state, sizeof state));
  std::vector<std::uint64_t> marks(64, 0);
  state.send.slots.marks = marks.data();
  device::Queue here = queue.handle().value();
  here.state = &state;
  device::Lane<Sharing::many_threads> lane(here);
  const auto to = queue.remote(rig.target).value();
  std::atomic<bool> over{false};
  std::thread host([&] {
    while (!over) {
      (void)rig.pair.asker.poll();
      const GpuLease lease = queue.lease().value();
    }
  });
  for (std::uint64_t i = 1; i <= 500; ++i)
    EXPECT_EQ(lane.wait(lane.put_value(i, to, 8 * i), in_ms(60'000)).waited, Waited::ok) << i;
  over = true;
  host.join();
  for (std::uint64_t i = 1; i <= 500; ++i) EXPECT_EQ(rig.shared.word(8 * i), i);
}

// Not a queue: a driver that finds no path to this NIC, on a machine that shows where both are.
TEST(DeviceRegister, WhereThereIsNoPathBothPlacesAreSaid) {
  namespace fs = std::filesystem;
  const std::string address = [] {
    Node node = Node::open(over_registers(test_kind())).value();
    return info(node)["accelerators"][0]["pci_address"].get<std::string>();
  }();
  ASSERT_FALSE(address.empty());
  const fs::path root = fs::path(testing::TempDir()) / ("strait_no_path_" + std::to_string(::getpid()));
  const fs::path gpu = root / "devices/pci0000:17/0000:17:01.0" / address;
  const fs::path nic = root / "devices/pci0000:c9/0000:c9:02.0/0000:ca:00.0";
  for (const fs::path& each : {gpu, nic, root / "bus/pci/devices", root / "class/infiniband/register0"})
    fs::create_directories(each);
  fs::create_directory_symlink(gpu, root / "bus/pci/devices" / address);
  fs::create_directory_symlink(nic, root / "class/infiniband/register0/device");
  const std::string places = test_device() + " is at " + address +
                             " of pci0000:17, register0 at 0000:ca:00.0 of pci0000:c9: no root complex in common.";
  for (const char* const reach : {"dmabuf", "auto"}) {
    NodeOptions options = over_registers(test_kind());
    options.settings.emplace_back("sysfs", root.string());
    options.settings.emplace_back("reach", reach);
    Node node = Node::open(options).value();
    const Memory memory = node.allocate(65536, {.near = test_device()}).value();
    ASSERT_EQ(::setenv("STRAIT_TEST_NO_PATH", "1", 1), 0);
    const auto refused = node.share(memory, access::all);
    ASSERT_EQ(::unsetenv("STRAIT_TEST_NO_PATH"), 0);
    ASSERT_FALSE(refused) << reach;
    EXPECT_EQ(refused.error().code, Code::unsupported);
    EXPECT_NE(refused.error().text.find("errno 524"), std::string::npos) << refused.error().explain();
    EXPECT_EQ(refused.error().remedy, places + " Use another NIC.") << refused.error().explain();
  }
  fs::remove_all(root);
}

}  // namespace
}  // namespace strait::flow
