// SPDX-License-Identifier: Apache-2.0
// Managed memory of CUDA: the CPU reaches it, its pages migrate, and no descriptor of it is made. And memory of several
// handles (VMM) and of a pool, which are exported. And small copies by the CPU, where gdrcopy is there. Run where there
// is a libcuda.so.1: under `strait run --accelerators cuda:1`, or on a machine with a GPU.
#include <dlfcn.h>

#include "flow.hpp"

namespace strait::flow {
namespace {

constexpr std::size_t kBytes = 1 << 20;

// Made by the driver itself, as an application does.
class Managed {
 public:
  Managed() {
    library_ = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) return;
    void* context = nullptr;
    const bool ready = call<int (*)(unsigned)>("cuInit")(0) == 0 &&
                       call<int (*)(void**, int)>("cuDevicePrimaryCtxRetain")(&context, 0) == 0 &&
                       call<int (*)(void*)>("cuCtxPushCurrent_v2")(context) == 0;
    if (ready) (void)call<int (*)(std::uint64_t*, std::size_t, unsigned)>("cuMemAllocManaged")(&address_, kBytes, 1);
  }
  ~Managed() {
    if (address_ == 0) return;
    void* context = nullptr;
    EXPECT_EQ(call<int (*)(std::uint64_t)>("cuMemFree_v2")(address_), 0);
    EXPECT_EQ(call<int (*)(void**)>("cuCtxPopCurrent_v2")(&context), 0);
    EXPECT_EQ(call<int (*)(int)>("cuDevicePrimaryCtxRelease_v2")(0), 0);
  }
  Managed(const Managed&) = delete;
  Managed& operator=(const Managed&) = delete;
  [[nodiscard]] std::uint8_t* data() const { return reinterpret_cast<std::uint8_t*>(address_); }

 private:
  template <class Function>
  [[nodiscard]] Function call(const char* name) const {
    return reinterpret_cast<Function>(::dlsym(library_, name));
  }
  void* library_ = nullptr;
  std::uint64_t address_ = 0;
};

nlohmann::json path_of(const Region& region) {
  return nlohmann::json::parse(region.path());
}

TEST(ManagedMemory, IsHostMemoryToANicThatFollowsItsPages) {
  const Managed managed;
  ASSERT_NE(managed.data(), nullptr) << "there is no CUDA device";
  Pair pair(settings({{"accelerators", "cuda"}, {"nics", "soft"}}), settings({{"accelerators", "none"}}));
  const Region region = pair.owner.share(managed.data(), kBytes, access::all).value();
  const nlohmann::json path = path_of(region);
  EXPECT_EQ(path["kind"], "cuda:0");
  EXPECT_EQ(path["export"]["way"], "host pages");
  EXPECT_TRUE(path["chosen"].get<std::string>().starts_with("zero-copy: host pages -> strait0")) << path["chosen"];
  EXPECT_NE(path["ways"][0]["reason"].get<std::string>().find(
                "host pages (it is managed: it migrates, so it is never exported)"),
            std::string::npos)
      << path["ways"];
  EXPECT_EQ(path["ways"].back()["reason"], "it is host memory already");
  const Published published = pair.owner.publish("managed", region).value();
  const Target place = pair.far.lookup("managed").value();
  Block local(pair.asker, "host", kBytes, access::local);
  const auto bytes = pattern(kBytes, 11);
  local.fill(bytes);
  ASSERT_TRUE(pair.far.put(local.region.slice(0, kBytes), place.at(0)).wait(30s));
  [[maybe_unused]] const Unwatched unwatched;
  EXPECT_EQ(std::vector<std::uint8_t>(managed.data(), managed.data() + kBytes), bytes);
}

#ifdef STRAIT_UNDER_RUN
// A NIC that pins pages is given none of memory that leaves them.
TEST(ManagedMemory, IsStagedForANicThatPins) {
  const Managed managed;
  ASSERT_NE(managed.data(), nullptr) << "there is no CUDA device";
  const std::vector<std::pair<std::string, std::string>> verbs{{"accelerators", "cuda"}, {"nics", "verbs:strait0"}};
  Node strict = Node::open(settings(verbs)).value();
  const auto refused = strict.share(managed.data(), kBytes, access::all);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::unsupported);
  for (const char* part : {"host pages: managed memory of cuda:0 migrates, and strait0 pins pages",
                           "dma-buf: managed memory of cuda:0 migrates and is never exported"})
    EXPECT_NE(refused.error().text.find(part), std::string::npos) << refused.error().text;
  auto allowing = verbs;
  allowing.emplace_back("allow_staging", "1");
  Node node = Node::open(settings(allowing)).value();
  const Region region = node.share(managed.data(), kBytes, access::local).value();
  const nlohmann::json path = path_of(region);
  EXPECT_EQ(path["export"]["way"], "staged through host");
  EXPECT_EQ(path["chosen"], "staged through host memory");
  for (const auto& way : path["ways"]) {
    if (way["label"] == "RoCEv2 packets") {
      EXPECT_EQ(way["reason"],
                "cuda:0 memory is managed: it migrates, and strait0 would keep to pages that it has left");
    }
  }
}
#endif

// Memory that a program makes with the driver's other calls, and a Node shares: registered, moved both ways.
class DriversMemory : public testing::Test {
 protected:
  using Pointer = std::uint64_t;
  struct Location {
    int type = 1;  // a device
    int id = 0;
  };
  struct Access {
    Location location;
    int flags = 3;  // read and write
  };
  struct Properties {
    int type = 1;  // pinned
    int handle_types = 0;
    Location location;
    void* unused = nullptr;
    unsigned char flags[8] = {};
  };
  void SetUp() override {
    library_ = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << "there is no CUDA driver";
    ASSERT_EQ(call<int (*)(unsigned)>("cuInit")(0), 0);
    void* context = nullptr;
    ASSERT_EQ((call<int (*)(void**, int)>("cuDevicePrimaryCtxRetain")(&context, 0)), 0);
    ASSERT_EQ(call<int (*)(void*)>("cuCtxPushCurrent_v2")(context), 0);
  }
  void TearDown() override {
    void* context = nullptr;
    EXPECT_EQ(call<int (*)(void**)>("cuCtxPopCurrent_v2")(&context), 0);
    EXPECT_EQ(call<int (*)(int)>("cuDevicePrimaryCtxRelease_v2")(0), 0);
  }
  template <class Function>
  [[nodiscard]] Function call(const char* name) const {
    const auto found = reinterpret_cast<Function>(::dlsym(library_, name));
    EXPECT_NE(found, nullptr) << name;
    return found;
  }
  static void expect_moved(Pointer base, std::size_t length) {
    Pair pair(settings({{"accelerators", "cuda"}, {"nics", "soft"}}), settings({{"accelerators", "none"}}));
    auto* const at = reinterpret_cast<void*>(base);
    auto region = pair.owner.share(at, length, access::all);
    ASSERT_TRUE(region) << region.error().explain();
    const nlohmann::json path = path_of(*region);
    EXPECT_EQ(path["export"]["way"], "dma-buf fd") << path;
    EXPECT_TRUE(path["chosen"].get<std::string>().starts_with("zero-copy: dma-buf -> strait0")) << path["chosen"];
    EXPECT_EQ(std::stoull(path["allocation"]["base"].get<std::string>(), nullptr, 16), base);
    EXPECT_GE(path["allocation"]["length"].get<std::uint64_t>(), length) << "all of it, not the first handle's";
    const Published published = pair.owner.publish("memory", *region).value();
    const Target place = pair.far.lookup("memory").value();
    Block local(pair.asker, "host", length, access::local);
    const auto bytes = pattern(length, 17);
    local.fill(bytes);
    ASSERT_TRUE(pair.far.put(local.region.all(), place.at(0), {.require = zero_copy}).wait(30s));
    std::vector<std::uint8_t> there(length);
    ASSERT_TRUE(pair.owner.copy(there.data(), at, length));
    EXPECT_EQ(there, bytes);
    const auto other = pattern(length, 18);
    ASSERT_TRUE(pair.owner.copy(at, other.data(), length));
    ASSERT_TRUE(pair.far.get(local.region.all(), place.at(0), {.require = zero_copy}).wait(30s));
    EXPECT_EQ(local.read(0, length), other);
  }

 private:
  void* library_ = nullptr;
};

TEST_F(DriversMemory, OfTwoHandlesSideBySideIsOneRegistration) {
  Properties properties;
  std::size_t unit = 0;
  ASSERT_EQ(
      (call<int (*)(std::size_t*, const Properties*, int)>("cuMemGetAllocationGranularity")(&unit, &properties, 0)), 0);
  Pointer base = 0;
  ASSERT_EQ((call<int (*)(Pointer*, std::size_t, std::size_t, Pointer, unsigned long long)>("cuMemAddressReserve")(
                &base, 2 * unit, 0, 0, 0)),
            0);
  const Access both;
  for (const std::size_t at : {std::size_t{0}, unit}) {
    std::uint64_t handle = 0;
    ASSERT_EQ((call<int (*)(std::uint64_t*, std::size_t, const Properties*, unsigned long long)>("cuMemCreate")(
                  &handle, unit, &properties, 0)),
              0);
    ASSERT_EQ((call<int (*)(Pointer, std::size_t, std::size_t, std::uint64_t, unsigned long long)>("cuMemMap")(
                  base + at, unit, 0, handle, 0)),
              0);
    ASSERT_EQ(
        (call<int (*)(Pointer, std::size_t, const Access*, std::size_t)>("cuMemSetAccess")(base + at, unit, &both, 1)),
        0);
    ASSERT_EQ(call<int (*)(std::uint64_t)>("cuMemRelease")(handle), 0);
  }
  expect_moved(base, 2 * unit);
  for (const std::size_t at : {std::size_t{0}, unit})
    ASSERT_EQ((call<int (*)(Pointer, std::size_t)>("cuMemUnmap")(base + at, unit)), 0);
  ASSERT_EQ((call<int (*)(Pointer, std::size_t)>("cuMemAddressFree")(base, 2 * unit)), 0);
}

TEST_F(DriversMemory, OfAPool) {
  Pointer base = 0;
  ASSERT_EQ((call<int (*)(Pointer*, std::size_t, void*)>("cuMemAllocAsync")(&base, kBytes, nullptr)), 0);
  ASSERT_EQ(call<int (*)(void*)>("cuStreamSynchronize")(nullptr), 0);
  expect_moved(base, kBytes);
  ASSERT_EQ((call<int (*)(Pointer, void*)>("cuMemFreeAsync")(base, nullptr)), 0);
  ASSERT_EQ(call<int (*)(void*)>("cuStreamSynchronize")(nullptr), 0);
}

// Words that a program copies again and again go through a window for the CPU, which nobody asked for, as long as the
// machine has one and the configuration lets it.
std::uint64_t words_by_cpu(const std::string& config) {
  Node node = Node::open(settings({{"accelerators", "cuda"}, {"nics", "none"}, {"provider_config", config}})).value();
  const Memory memory = node.allocate(65536, {.near = "cuda:0"}).value();
  auto* const at = static_cast<std::uint8_t*>(memory.data());
  for (std::uint64_t i = 1; i <= 20; ++i) {
    std::uint64_t back = 0;
    EXPECT_TRUE(node.copy(at + 8 * i, &i, sizeof i));
    EXPECT_TRUE(node.copy(&back, at + 8 * i, sizeof back));
    EXPECT_EQ(back, i);
  }
  return info(node)["counters"]["memory_cuda"]["copies_by_cpu"].get<std::uint64_t>();
}

TEST(SmallCopies, OfANodeGoThroughAWindow) {
  EXPECT_GT(words_by_cpu("cuda:cpu_map=gdrcopy,cpu_copies=4096/64"), 30u);
  EXPECT_EQ(words_by_cpu("cuda:cpu_copies=off;rocm:ipc_cache=8"), 0u);
}

TEST(ProviderConfig, IsToldToTheVendorAndWrongOnesAreRefused) {
  for (const auto& [wrong, part] : std::vector<std::pair<std::string, std::string>>{
           {"cuda:cpu_copies=perhaps", "the cuda provider: cpu_copies=\"perhaps\" says no lengths"},
           {"cuda:colour=red", "the cuda provider knows no \"colour=red\""},
           {"soft:memory=1", "option provider_config: \"soft:memory=1\" begins with no vendor"},
           {"cpu_copies=off", "option provider_config: \"cpu_copies=off\" begins with no vendor"},
           {"cuda:cpu_copies=off;cuda:ipc_cache=1", "option provider_config: cuda is there twice"}}) {
    const auto node = Node::open(settings({{"accelerators", "cuda"}, {"nics", "none"}, {"provider_config", wrong}}));
    ASSERT_FALSE(node) << wrong;
    EXPECT_EQ(node.error().code, Code::invalid) << wrong;
    EXPECT_NE(node.error().text.find(part), std::string::npos) << node.error().text;
  }
}

}  // namespace
}  // namespace strait::flow
