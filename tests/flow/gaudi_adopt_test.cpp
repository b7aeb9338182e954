// SPDX-License-Identifier: Apache-2.0
// A Gaudi that the program's framework acquired by SynapseAI, before the Node opened or after: its memory is
// recognised, copied and shared, and the device stays the framework's. Run where there is a libSynapse.so with two free
// devices: under `strait run --accelerators gaudi:2`, or on a machine with them.
#include <dlfcn.h>

#include "flow.hpp"

namespace strait::flow {
namespace {

constexpr std::size_t kAdoptedBytes = 1 << 20;
constexpr int kAlreadyInitialized = 29;

// What a framework does.
class Framework {
 public:
  explicit Framework(std::uint32_t module) {
    library_ = ::dlopen("libSynapse.so", RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) return;
    const int answer = call<int (*)()>("synInitialize")();
    EXPECT_TRUE(answer == 0 || answer == kAlreadyInitialized) << answer;
    EXPECT_EQ((call<int (*)(std::uint32_t*, std::uint32_t)>("synDeviceAcquireByModuleId")(&device_, module)), 0);
    EXPECT_EQ((call<int (*)(std::uint32_t, std::uint64_t, std::uint64_t, std::uint32_t, std::uint64_t*)>(
                  "synDeviceMalloc")(device_, kAdoptedBytes, 0, 0, &address_)),
              0);
  }
  ~Framework() {
    if (address_ == 0) return;
    EXPECT_EQ((call<int (*)(std::uint32_t, std::uint64_t, std::uint32_t)>("synDeviceFree")(device_, address_, 0)), 0)
        << "the Node has left the device to its owner";
    EXPECT_EQ(call<int (*)(std::uint32_t)>("synDeviceRelease")(device_), 0);
    EXPECT_EQ(call<int (*)()>("synDestroy")(), 0);
  }
  Framework(const Framework&) = delete;
  Framework& operator=(const Framework&) = delete;
  [[nodiscard]] std::uint8_t* data() const { return reinterpret_cast<std::uint8_t*>(address_); }

 private:
  template <class Function>
  [[nodiscard]] Function call(const char* name) const {
    return reinterpret_cast<Function>(::dlsym(library_, name));
  }
  void* library_ = nullptr;
  std::uint32_t device_ = 0;
  std::uint64_t address_ = 0;
};

const std::vector<std::pair<std::string, std::string>> kGaudi{{"accelerators", "gaudi"}};

void expect_shared(Node& owner, const Framework& framework, const char* kind) {
  ASSERT_NE(framework.data(), nullptr) << "there is no Gaudi to acquire";
  const auto region = owner.share(framework.data() + 4096, kAdoptedBytes - 4096, access::all);
  ASSERT_TRUE(region) << region.error().explain();
  EXPECT_EQ(nlohmann::json::parse(region->path())["kind"], kind);
  const Published published = owner.publish("adopted", *region).value();
  Node asker = Node::open(settings({{"accelerators", "none"}})).value();
  Peer far = asker.connect(owner.address()).value();
  const Target place = far.lookup("adopted").value();
  Block local(asker, "host", 65536, access::local);
  const auto bytes = pattern(65536, 5);
  local.fill(bytes);
  ASSERT_TRUE(far.put(local.region.all(), place.at(0)).wait(30s));
  std::vector<std::uint8_t> back(65536);
  ASSERT_TRUE(owner.copy(back.data(), framework.data() + 4096, back.size()));
  EXPECT_EQ(back, bytes);
}

TEST(GaudiOfAFramework, AcquiredBeforeTheNodeOpens) {
  const Framework framework(0);
  Node node = Node::open(settings(kGaudi)).value();
  expect_shared(node, framework, "gaudi:0");
}

TEST(GaudiOfAFramework, AcquiredAfterTheNodeOpened) {
  std::optional<Node> node = Node::open(settings(kGaudi)).value();
  const Framework framework(1);
  expect_shared(*node, framework, "gaudi:1");
  node.reset();  // which initialised SynapseAI, and leaves it to the framework
}

// hl-thunk's own word: a compute node has one owner.
bool is_taken(std::uint32_t module) {
  void* const library = ::dlopen("libhl-thunk.so", RTLD_NOW | RTLD_LOCAL);
  const int fd = reinterpret_cast<int (*)(std::uint32_t)>(::dlsym(library, "hlthunk_open_by_module_id"))(module);
  if (fd < 0) return fd == -EBUSY;
  EXPECT_EQ(reinterpret_cast<int (*)(int)>(::dlsym(library, "hlthunk_close"))(fd), 0);
  return false;
}

NodeOptions told(const char* acquire) {
  return settings({{"accelerators", "gaudi"}, {"provider_config", acquire}});
}

TEST(GaudiIsAcquired, WithTheFirstAllocationUnlessToldOtherwise) {
  for (const char* config : {"", "gaudi:acquire=first"}) {
    {
      Node node = Node::open(told(config)).value();
      EXPECT_FALSE(is_taken(0)) << config;
      const Memory memory = node.allocate(4096, {.near = "gaudi:0"}).value();
      EXPECT_TRUE(is_taken(0)) << config;
      EXPECT_FALSE(is_taken(1)) << config;
    }
    EXPECT_FALSE(is_taken(0)) << config;
  }
}

TEST(GaudiIsAcquired, WhenTheNodeOpensIfThatIsAskedFor) {
  {
    Node node = Node::open(told("gaudi:acquire=open")).value();
    EXPECT_TRUE(is_taken(0));
    EXPECT_TRUE(is_taken(1));
    EXPECT_TRUE(node.allocate(4096, {.near = "gaudi:1"}));
  }
  EXPECT_FALSE(is_taken(0));
  EXPECT_FALSE(is_taken(1));
}

// Then opening is where it fails, and nothing stays taken.
TEST(GaudiIsAcquired, AndADeviceThatSomebodyHasFailsTheOpening) {
  {
    const Framework framework(0);  // of this process: used as it is
    EXPECT_TRUE(Node::open(told("gaudi:acquire=open")));
  }
  void* const library = ::dlopen("libhl-thunk.so", RTLD_NOW | RTLD_LOCAL);
  const int held = reinterpret_cast<int (*)(std::uint32_t)>(::dlsym(library, "hlthunk_open_by_module_id"))(1);
  ASSERT_GE(held, 0);
  const auto refused = Node::open(told("gaudi:acquire=open"));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text.find("gaudi:1"), std::string::npos) << refused.error().explain();
  EXPECT_NE(refused.error().remedy.find("gaudi:acquire=open"), std::string::npos) << refused.error().explain();
  EXPECT_FALSE(is_taken(0));
  EXPECT_EQ(reinterpret_cast<int (*)(int)>(::dlsym(library, "hlthunk_close"))(held), 0);
  EXPECT_FALSE(Node::open(told("gaudi:acquire=later")));
}

}  // namespace
}  // namespace strait::flow
