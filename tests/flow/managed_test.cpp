// SPDX-License-Identifier: Apache-2.0
// Managed memory of CUDA: the CPU reaches it, its pages migrate, and no descriptor of it is made. Run where there is a
// libcuda.so.1: under `strait run --accelerators cuda:1`, or on a machine with a GPU.
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

}  // namespace
}  // namespace strait::flow
