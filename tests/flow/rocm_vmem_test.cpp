// SPDX-License-Identifier: Apache-2.0
// Memory that a program maps with the HSA runtime's hsa_amd_vmem_* calls, as hipMemCreate and expandable segments do.
// The runtime has no identity for it and does not tell when it goes: it is recognised, shared and moved, and nothing
// about it is remembered. Run where there is an HSA runtime with these calls and a GPU.
#include <dlfcn.h>

#include "flow.hpp"

namespace strait::flow {
namespace {

constexpr std::size_t kMapped = 2 << 20;

struct Agent {
  std::uint64_t handle = 0;
};
struct Pool {
  std::uint64_t handle = 0;
};
struct Handle {
  std::uint64_t handle = 0;
};
struct Access {
  int permissions = 3;  // read and write
  Agent agent;
};

template <class Function>
Function* hsa(const char* name) {
  static void* const library = ::dlopen("libhsa-runtime64.so.1", RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<Function*>(::dlsym(library, name));
}

// The first GPU and its pool of coarse-grained memory.
struct Gpu {
  Agent agent;
  Pool pool;
};
Gpu first_gpu() {
  Gpu found;
  const auto look = [](Agent agent, void* into) {
    auto& gpu = *static_cast<Gpu*>(into);
    std::uint32_t kind = 0;
    (void)hsa<int(Agent, int, void*)>("hsa_agent_get_info")(agent, 17, &kind);
    if (kind == 1 && gpu.agent.handle == 0) gpu.agent = agent;
    return 0;
  };
  EXPECT_EQ(hsa<int(int (*)(Agent, void*), void*)>("hsa_iterate_agents")(look, &found), 0);
  const auto choose = [](Pool pool, void* into) {
    auto& gpu = *static_cast<Gpu*>(into);
    const auto ask = hsa<int(Pool, int, void*)>("hsa_amd_memory_pool_get_info");
    std::uint32_t segment = 1, flags = 0;
    bool allocates = false;
    (void)ask(pool, 0, &segment);
    (void)ask(pool, 1, &flags);
    (void)ask(pool, 5, &allocates);
    if (segment == 0 && allocates && (flags & 4) != 0 && gpu.pool.handle == 0) gpu.pool = pool;
    return 0;
  };
  EXPECT_EQ(
      hsa<int(Agent, int (*)(Pool, void*), void*)>("hsa_amd_agent_iterate_memory_pools")(found.agent, choose, &found),
      0);
  return found;
}

// A reservation with something mapped into all of it.
class Mapped {
 public:
  explicit Mapped(const Gpu& gpu) : gpu_(gpu) {
    EXPECT_EQ(hsa<int(void**, std::size_t, std::uint64_t, std::uint64_t)>("hsa_amd_vmem_address_reserve")(
                  &room_, kMapped, 0, 0),
              0);
    map();
  }
  ~Mapped() {
    unmap();
    EXPECT_EQ(hsa<int(void*, std::size_t)>("hsa_amd_vmem_address_free")(room_, kMapped), 0);
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  void map() {
    Handle made;
    EXPECT_EQ(hsa<int(Pool, std::size_t, int, std::uint64_t, Handle*)>("hsa_amd_vmem_handle_create")(gpu_.pool, kMapped,
                                                                                                     1, 0, &made),
              0);
    EXPECT_EQ(hsa<int(void*, std::size_t, std::size_t, Handle, std::uint64_t)>("hsa_amd_vmem_map")(room_, kMapped, 0,
                                                                                                   made, 0),
              0);
    EXPECT_EQ(hsa<int(Handle)>("hsa_amd_vmem_handle_release")(made), 0);  // the mapping keeps it
    const Access access{3, gpu_.agent};
    EXPECT_EQ(
        hsa<int(void*, std::size_t, const Access*, std::size_t)>("hsa_amd_vmem_set_access")(room_, kMapped, &access, 1),
        0);
  }
  void unmap() { EXPECT_EQ(hsa<int(void*, std::size_t)>("hsa_amd_vmem_unmap")(room_, kMapped), 0); }
  [[nodiscard]] std::uint8_t* data() const { return static_cast<std::uint8_t*>(room_); }

 private:
  const Gpu gpu_;
  void* room_ = nullptr;
};

std::uint64_t cached(Node& node, const char* name) {
  return info(node)["cache"][name].get<std::uint64_t>();
}

TEST(RocmVmem, IsRecognisedSharedAndMovedAndNotRemembered) {
  Pair pair(settings({{"accelerators", "rocm"}}), settings({{"accelerators", "none"}}));
  const Mapped mapped(first_gpu());
  const std::uint64_t entries = cached(pair.owner, "entries");
  const std::uint64_t registered = cached(pair.owner, "registered");
  constexpr std::size_t kSkip = 5000;
  constexpr std::size_t kPart = 1 << 20;
  Block local(pair.asker, "host", kPart, access::local);
  for (std::uint64_t round = 1; round <= 2; ++round) {
    const auto region = pair.owner.share(mapped.data() + kSkip, kPart, access::all);
    ASSERT_TRUE(region) << region.error().explain();
    const auto path = nlohmann::json::parse(region->path());
    EXPECT_EQ(path["kind"], "rocm:0");
    EXPECT_EQ(path["allocation"]["length"], kMapped) << "one mapping is the whole";
    EXPECT_EQ(path["allocation"]["identity"], 0);
    EXPECT_EQ(path["export"]["way"], "dma-buf fd");
    EXPECT_EQ(cached(pair.owner, "registered"), registered + round) << "each time anew";
    EXPECT_EQ(cached(pair.owner, "entries"), entries) << "and for this one region";
    const Published published = pair.owner.publish("block", *region).value();
    const Target place = pair.far.lookup("block").value();
    const auto bytes = pattern(kPart, static_cast<std::uint32_t>(round));
    local.fill(bytes);
    ASSERT_TRUE(pair.far.put(local.region.all(), place.at(0)).wait(30s));
    std::vector<std::uint8_t> there(kPart);
    ASSERT_TRUE(pair.owner.copy(there.data(), mapped.data() + kSkip, kPart));
    EXPECT_EQ(there, bytes);
  }
}

// Why nothing is remembered: other memory under the same addresses looks the same.
TEST(RocmVmem, OtherMemoryUnderTheSameAddressesIsReachedAndNotTheOld) {
  Pair pair(settings({{"accelerators", "rocm"}}), settings({{"accelerators", "none"}}));
  Mapped mapped(first_gpu());
  Block local(pair.asker, "host", kMapped, access::local);
  for (std::uint32_t round = 0; round < 3; ++round) {
    if (round != 0) {
      mapped.unmap();
      EXPECT_FALSE(pair.owner.share(mapped.data(), kMapped, access::all)) << "reserved, and nobody's";
      mapped.map();
    }
    const auto region = pair.owner.share(mapped.data(), kMapped, access::all);
    ASSERT_TRUE(region) << region.error().explain();
    const Published published = pair.owner.publish("block", *region).value();
    const Target place = pair.far.lookup("block").value();
    const auto bytes = pattern(kMapped, 70 + round);
    local.fill(bytes);
    ASSERT_TRUE(pair.far.put(local.region.all(), place.at(0)).wait(30s));
    std::vector<std::uint8_t> there(kMapped);
    ASSERT_TRUE(pair.owner.copy(there.data(), mapped.data(), kMapped));
    EXPECT_EQ(there, bytes) << round;
  }
}

}  // namespace
}  // namespace strait::flow
