// SPDX-License-Identifier: Apache-2.0
// Memory that is not what it is said to be, on whichever device STRAIT_TEST_DEVICE names: each is answered with a
// sentence, and nothing is left. Run on the software accelerator, and on every vendor's in software.
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <thread>

#include "flow.hpp"

namespace strait::flow {
namespace {

constexpr std::size_t kBlock = 2 << 20;

// Descriptors of this process and what the device has free, before and after everything of a test; gone last.
class NothingLeft {
 public:
  explicit NothingLeft(NodeOptions options)
      : options_(std::move(options)), free_bytes_(free_now()), fds_(settled_fds()) {}
  ~NothingLeft() {
    // A driver in software lets go of memory that nobody maps any more when somebody asks; threads close a moment
    // later.
    const auto until = std::chrono::steady_clock::now() + 20s;
    std::uint64_t free_bytes = free_now();
    while ((open_fds() > fds_ || free_bytes < free_bytes_) && std::chrono::steady_clock::now() < until) {
      ::usleep(5000);
      free_bytes = free_now();
    }
    EXPECT_LE(open_fds(), fds_);
    EXPECT_GE(free_bytes, free_bytes_);
  }
  NothingLeft(const NothingLeft&) = delete;
  NothingLeft& operator=(const NothingLeft&) = delete;

 private:
  [[nodiscard]] std::uint64_t free_now() const {
    Node node = Node::open(options_).value();
    (void)node.allocate(4096, {.near = test_device()}).value();  // contexts and what else the first use makes
    const auto all = info(node);
    for (const auto& memory : all["memory"])
      if (memory["name"] == test_device()) return memory.at("free_bytes");
    ADD_FAILURE() << all;
    return 0;
  }
  const NodeOptions options_;
  const std::uint64_t free_bytes_;
  const int fds_;
};

class WrongMemory : public testing::Test {
 protected:
  void TearDown() override {
    const auto cache = info(node)["cache"];
    EXPECT_EQ(cache["leases"], 0) << "every region of the test has gone";
    EXPECT_EQ(cache["dead_entries"], 0);
  }
  static NodeOptions options(std::vector<std::pair<std::string, std::string>> more = {}) {
    more.emplace_back("accelerators", test_kind() == "soft" ? "soft:1" : test_kind());
    return settings(std::move(more));
  }
  Memory allocate(std::size_t length = kBlock) { return node.allocate(length, {.near = test_device()}).value(); }
  static std::uint8_t* at(const Memory& memory) { return static_cast<std::uint8_t*>(memory.data()); }
  // Where the allocation really ends: drivers round up.
  std::uint8_t* end_of(const Memory& memory) {
    const Region region = node.share(memory, access::local).value();
    const auto path = nlohmann::json::parse(region.path());
    const auto base = std::stoull(path["allocation"]["base"].get<std::string>(), nullptr, 16);
    return reinterpret_cast<std::uint8_t*>(base + path["allocation"]["length"].get<std::uint64_t>());
  }
  static void expect_says(const Error& error, Code code, std::vector<std::string> one_of) {
    EXPECT_EQ(error.code, code) << error.explain();
    bool said = false;
    for (const std::string& part : one_of) said = said || error.text.find(part) != std::string::npos;
    EXPECT_TRUE(said) << error.explain();
  }
  void expect_refused(void* address, std::uint64_t length, std::vector<std::string> one_of) {
    const auto region = node.share(address, length, access::all);
    ASSERT_FALSE(region) << address << " + " << length;
    expect_says(region.error(), Code::invalid, std::move(one_of));
  }

  const NothingLeft left_{options()};
  Node node = Node::open(options()).value();
};

TEST_F(WrongMemory, OnePastTheEnd) {
  const Memory memory = allocate();
  std::uint8_t* const end = end_of(memory);
  expect_refused(end - 1, 2, {"the range ends 1 bytes past the allocation of"});
  expect_refused(at(memory), static_cast<std::uint64_t>(end - at(memory)) + 1,
                 {"the range ends 1 bytes past the allocation of"});
  expect_refused(end, 1, {"is reserved but not accessible, and no accelerator claims it", "is not mapped"});
  EXPECT_TRUE(node.share(end - 1, 1, access::local)) << "the last byte is there";
}

TEST_F(WrongMemory, Freed) {
  Memory memory = allocate();
  std::uint8_t* const was = at(memory);
  ASSERT_TRUE(node.share(memory, access::local));
  ASSERT_TRUE(memory.free());
  expect_refused(was, 4096, {"is reserved but not accessible, and no accelerator claims it", "is not mapped"});
  std::uint8_t byte = 0;
  const auto copied = node.copy(&byte, was, 1);
  ASSERT_FALSE(copied);
  expect_says(copied.error(), Code::invalid, {"is reserved but not accessible", "is not mapped"});
}

// Not by the Node that registered it. A provider that can tell does; the others' identities do when it is shared again.
TEST_F(WrongMemory, FreedByAnotherNode) {
  Node other = Node::open(options()).value();
  Memory theirs = other.allocate(kBlock, {.near = test_device()}).value();
  std::uint8_t* const was = at(theirs);
  const auto shared = node.share(was, kBlock, access::local);
  if (test_kind() == "soft") {  // nobody but the opener knows what is whose
    ASSERT_FALSE(shared);
    expect_says(shared.error(), Code::invalid,
                {"is reserved but not accessible, and no accelerator claims it", "is not mapped in this process"});
    return;
  }
  ASSERT_TRUE(shared) << shared.error().explain();
  const auto cached = [&] { return info(node)["cache"]; };
  EXPECT_EQ(cached()["entries"], 1);
  ASSERT_TRUE(theirs.free());
  bool told = false;
  const auto abilities = info(node)["accelerators"][0]["capabilities"];
  for (const auto& can : abilities) told = told || can == "watch";
  EXPECT_EQ(told, test_kind() == "rocm");
  EXPECT_EQ(cached()["entries"], told ? 0 : 1) << "forgotten while it is in use, where the provider tells";
  EXPECT_EQ(cached()["dead_entries"], told ? 1 : 0);
  // Perhaps at the same address: never under the old registration.
  Memory again = other.allocate(kBlock, {.near = test_device()}).value();
  const auto registered = cached()["registered"].get<std::uint64_t>();
  ASSERT_TRUE(node.share(again.data(), kBlock, access::local));
  EXPECT_EQ(cached()["registered"].get<std::uint64_t>(), registered + 1);
}

// What was recognised is remembered by its identity: freed and allocated at the same address it is another, however
// often it was hit before.
TEST_F(WrongMemory, AnAddressThatIsUsedAgainIsRecognisedAnew) {
  const auto remembered = [&] { return info(node)["counters"]["claims_remembered"].get<std::uint64_t>(); };
  const auto registered = [&] { return info(node)["cache"]["registered"].get<std::uint64_t>(); };
  const auto identity = [](const Region& region) {
    return nlohmann::json::parse(region.path())["allocation"]["identity"].get<std::uint64_t>();
  };
  int again = 0;
  std::uint8_t* was = nullptr;
  std::uint64_t last = 0;
  for (int i = 0; i < 50 && again < 3; ++i) {
    Memory memory = allocate();
    const std::uint64_t before = remembered();
    const std::uint64_t known = registered();
    const Region region = node.share(memory, access::local).value();
    EXPECT_EQ(remembered(), before) << "never seen, whatever was at this address";
    EXPECT_EQ(registered(), known + 1);
    EXPECT_NE(identity(region), last);
    if (at(memory) == was) ++again;
    was = at(memory);
    last = identity(region);
    for (const std::size_t offset : {std::size_t{0}, std::size_t{4096}}) {
      const Region part = node.share(at(memory) + offset, kBlock - offset, access::local).value();
      EXPECT_EQ(identity(part), last);
      EXPECT_EQ(nlohmann::json::parse(part.path())["kind"], test_device());
    }
    EXPECT_EQ(remembered(), before + 2);
    EXPECT_EQ(registered(), known + 1);
    const auto past = node.share(at(memory) + 4096, kBlock * 64, access::local);
    EXPECT_FALSE(past) << "what is remembered ends where it ends";
  }
  EXPECT_EQ(again, 3) << "the device hands out freed addresses again, or this shows nothing";
}

TEST_F(WrongMemory, StraddlingTwoAllocations) {
  const Memory one = allocate();
  const Memory other = allocate();
  const Memory& low = at(one) < at(other) ? one : other;
  const Memory& high = at(one) < at(other) ? other : one;
  expect_refused(at(low) + kBlock - 4096, static_cast<std::uint64_t>(at(high) - at(low)),
                 {"bytes past the allocation of"});
}

TEST_F(WrongMemory, HostPointersThatLookLikeADevices) {
  const Memory memory = allocate();
  // Reserved and not accessible, as device memory is to the CPU; and nobody's.
  void* const reserved = ::mmap(nullptr, kBlock, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(reserved, MAP_FAILED);
  expect_refused(reserved, 4096, {"is reserved but not accessible, and no accelerator claims it"});
  // Made accessible it is host memory, wherever it lies.
  ASSERT_EQ(::mprotect(reserved, kBlock, PROT_READ | PROT_WRITE), 0);
  {
    const Region region = node.share(reserved, kBlock, access::all).value();
    EXPECT_EQ(nlohmann::json::parse(region.path())["kind"], "host");
  }
  // Half of it.
  ASSERT_EQ(::mprotect(static_cast<std::uint8_t*>(reserved) + 4096, kBlock - 4096, PROT_NONE), 0);
  expect_refused(reserved, kBlock, {"(inside the range) is reserved but not accessible"});
  ASSERT_EQ(::munmap(reserved, kBlock), 0);
  expect_refused(reserved, 4096, {"is not mapped in this process"});
}

TEST_F(WrongMemory, HugeSizes) {
  const Memory memory = allocate();
  expect_refused(at(memory), ~std::uint64_t{0}, {"wrap around the end of the address space"});
  expect_refused(at(memory), std::uint64_t{1} << 46, {"bytes past the allocation of"});
  expect_refused(at(memory), 0, {"a range of 0 bytes"});
  for (const std::uint64_t length : {std::uint64_t{1} << 40, ~std::uint64_t{0} - 4096, ~std::uint64_t{0}}) {
    const auto huge = node.allocate(length, {.near = test_device()});
    ASSERT_FALSE(huge) << length;
    EXPECT_TRUE(huge.error().code == Code::limit || huge.error().code == Code::invalid ||
                huge.error().code == Code::device || huge.error().code == Code::system)
        << huge.error().explain();
    const std::string& why = huge.error().text;
    EXPECT_TRUE(why.find("allocate") != why.npos || why.find("were asked for") != why.npos) << huge.error().explain();
  }
  EXPECT_TRUE(node.share(memory, access::all));
}

TEST_F(WrongMemory, OutOfDescriptors) {
  const Memory memory = allocate();
  const auto region = without_descriptors([&] { return node.share(memory, access::all); });
  ASSERT_FALSE(region);
  // Each vendor has words of its own for it; what to do is said once, and the same for all.
  EXPECT_NE(region.error().remedy.find("ulimit -n"), std::string::npos) << region.error().explain();
  EXPECT_EQ(region.error().text.find('\n'), std::string::npos) << region.error().explain();
  const auto again = node.share(memory, access::all);
  EXPECT_TRUE(again) << "with descriptors it works again: " << again.error().explain();
}

TEST_F(WrongMemory, TheNicOrTheAcceleratorIsGone) {
  Node broken = Node::open(options({{"kernel_faults", "attach=ENODEV"}, {"allow_staging", "1"}})).value();
  const Memory memory = broken.allocate(kBlock, {.near = test_device()}).value();
  const auto region = broken.share(memory, access::local);
  ASSERT_FALSE(region) << "nothing is copied through host memory because a device went";
  expect_says(region.error(), Code::gone, {"the NIC or the accelerator is no longer there"});
}

TEST_F(WrongMemory, AForkInTheMiddle) {
  Node asker = Node::open(options()).value();
  Peer far = asker.connect(node.address()).value();
  const Peer near = node.accept(10s).value();
  Memory memory = allocate();
  const Region region = node.share(memory, access::all).value();
  const Published published = node.publish("block", region).value();
  const Target place = far.lookup("block").value();
  Block local(asker, "host", 65536, access::local);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto refused = node.share(memory, access::all);
    const auto copied = node.copy(memory.data(), memory.data(), 16);
    ::_exit(!refused && refused.error().text.find("fork") != std::string::npos && !copied ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  const auto bytes = pattern(65536, 4);
  local.fill(bytes);
  ASSERT_TRUE(far.put(local.region.all(), place.at(0)).wait(30s));
  std::vector<std::uint8_t> there(65536);
  ASSERT_TRUE(node.copy(there.data(), memory.data(), there.size()));
  EXPECT_EQ(there, bytes);
}

// For the race checker: everything of the device is used for the first time by sixteen threads at once.
TEST_F(WrongMemory, SixteenThreadsDoTheFirstUse) {
  std::atomic<int> ready{0};
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 16; ++t) {
    threads.emplace_back([&, t] {
      ++ready;
      while (ready < 16) std::this_thread::yield();
      Memory memory = node.allocate(65536, {.near = test_device()}).value();
      const auto bytes = pattern(65536, t);
      EXPECT_TRUE(node.copy(memory.data(), bytes.data(), bytes.size()));
      EXPECT_TRUE(node.share(memory, access::all));
      EXPECT_TRUE(node.share(memory, access::local));
      std::vector<std::uint8_t> back(65536);
      EXPECT_TRUE(node.copy(back.data(), memory.data(), back.size()));
      EXPECT_EQ(back, bytes);
      EXPECT_TRUE(memory.free());
    });
  }
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(info(node)["cache"]["entries"], 0);
  EXPECT_EQ(info(node)["cache"]["fds"], 0);
}

// The device is reset under a registration. Only some vendors let a process do that.
class DeviceReset : public WrongMemory {
 protected:
  static int reset() {
    if (test_kind() == "cuda") {
      const auto call =
          reinterpret_cast<int (*)(int)>(::dlsym(::dlopen("libcuda.so.1", RTLD_NOW), "cuDevicePrimaryCtxReset_v2"));
      return call(0);
    }
    const auto call = reinterpret_cast<int (*)(std::uint32_t)>(
        ::dlsym(::dlopen("libstrait-gaudi.so", RTLD_NOW), "strait_soft_gaudi_reset"));
    return call(0);
  }
};

TEST_F(DeviceReset, WhileItsMemoryIsRegistered) {
  ASSERT_TRUE(test_kind() == "cuda" || test_kind() == "gaudi") << test_kind() << " has no call that resets a device";
  const int before = open_fds();
  {
    Node asker = Node::open(options()).value();
    Node owner = Node::open(options()).value();
    Peer far = asker.connect(owner.address()).value();
    const Peer near = owner.accept(10s).value();
    Memory memory = owner.allocate(kBlock, {.near = test_device()}).value();
    std::uint8_t* const was = at(memory);
    Region region = owner.share(memory, access::all).value();
    const Published published = owner.publish("block", region).value();
    const Target place = far.lookup("block").value();
    Block local(asker, "host", 65536, access::local);
    ASSERT_TRUE(far.put(local.region.all(), place.at(0)).wait(30s));
    ASSERT_EQ(reset(), 0);
    // A reference holds the bytes, or the peer is told; either way the operation ends.
    const auto put = far.put(local.region.all(), place.at(0)).wait(30s);
    if (!put) {
      // A driver in software holds the bytes; a NIC that copies by the vendor's calls is refused by these.
      const std::string& said = put.error().text;
      EXPECT_TRUE(said.find("failed: the peer failed while executing the request") != said.npos ||
                  said.find("was refused by the owner's NIC: ") != said.npos)
          << put.error().explain();
    }
    const auto shared = owner.share(was, kBlock, access::all);
    ASSERT_FALSE(shared) << "the memory went with the reset";
    const std::string& why = shared.error().text;
    EXPECT_TRUE(why.find("was reset: what was allocated on it is gone") != why.npos ||
                why.find("no accelerator claims it") != why.npos || why.find("is not mapped") != why.npos)
        << shared.error().explain();
    std::uint8_t byte = 0;
    EXPECT_FALSE(owner.copy(&byte, was, 1));
  }
  {
    // A driver in software lets go of memory that nobody maps any more when somebody wants some.
    Node next = Node::open(options()).value();
    const Memory some = next.allocate(4096, {.near = test_device()}).value();
  }
  for (const auto until = std::chrono::steady_clock::now() + 20s;
       open_fds() != before && std::chrono::steady_clock::now() < until;)
    ::usleep(2000);
  EXPECT_LE(open_fds(), before);
}

}  // namespace
}  // namespace strait::flow
