// SPDX-License-Identifier: Apache-2.0
// The ways to accelerators' memory by name: each moves data, says which it was, fails with its cause, and ends when the
// memory is taken away under it. And memory that the caller has as a descriptor.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "flow.hpp"

namespace strait::flow {
namespace {

constexpr std::size_t kBytes = 1 << 20;

bool tells(const Error& error, const std::string& part) {
  return error.text.find(part) != std::string::npos || error.remedy.find(part) != std::string::npos;
}

std::string way_of(const Region& region) {
  return nlohmann::json::parse(region.path())["export"]["way"];
}

// Connections of a peer that has gone are closed by a thread, a moment later.
bool settles_at(int fds) {
  const auto until = std::chrono::steady_clock::now() + 20s;
  while (open_fds() != fds && std::chrono::steady_clock::now() < until) ::usleep(10'000);
  return open_fds() == fds;
}

struct Named {
  const char* reach;
  const char* way;
};
class Reached : public testing::TestWithParam<Named> {};

TEST_P(Reached, MovesDataBothWaysAndLeavesNothing) {
  const NodeOptions options = settings({{"reach", GetParam().reach}});
  int before = 0;
  for (int round = 0; round < 2; ++round) {
    {
      Pair pair(options, options);
      Block target(pair.owner, "soft:0", kBytes, access::all);
      Block local(pair.asker, "soft:0", kBytes, access::local);
      EXPECT_EQ(way_of(target.region), GetParam().way);
      const Published published = pair.owner.publish("block", target.region).value();
      const Target place = pair.far.lookup("block").value();
      const auto bytes = pattern(kBytes, 7);
      local.fill(bytes);
      ASSERT_TRUE(pair.far.put(local.region.slice(3, kBytes - 100), place.at(50)).wait(30s));
      EXPECT_EQ(target.read(50, kBytes - 100), std::vector<std::uint8_t>(bytes.begin() + 3, bytes.end() - 97));
      const auto other = pattern(kBytes, 8);
      target.fill(other);
      ASSERT_TRUE(pair.far.get(local.region.slice(0, kBytes), place.at(0)).wait(30s));
      EXPECT_EQ(local.read(0, kBytes), other);
    }
    if (round == 0) before = open_fds();
  }
  EXPECT_TRUE(settles_at(before)) << open_fds() << " descriptors are open, not " << before;
}

INSTANTIATE_TEST_SUITE_P(Ways, Reached,
                         testing::Values(Named{"dmabuf", "dma-buf fd"}, Named{"peermem", "peer-memory client"},
                                         Named{"p2p", "nvidia_p2p pages"}, Named{"auto", "dma-buf fd"}),
                         [](const auto& each) { return std::string(each.param.reach); });

// Every step that can fail, and what a person is told.
struct Broken {
  const char* name;
  const char* reach;
  const char* faults;
  Code code;
  const char* says;
};
class ReachBroken : public testing::TestWithParam<Broken> {};

TEST_P(ReachBroken, SaysWhyAndLeavesNothing) {
  Node node = Node::open(settings({{"reach", GetParam().reach}, {"kernel_faults", GetParam().faults}})).value();
  Memory memory = node.allocate(kBytes, {.near = "soft:0"}).value();
  const int before = open_fds();
  for (int i = 0; i < 3; ++i) {
    const auto region = node.share(memory, access::all);
    ASSERT_FALSE(region);
    EXPECT_EQ(region.error().code, GetParam().code) << region.error().explain();
    EXPECT_TRUE(tells(region.error(), GetParam().says)) << region.error().explain();
  }
  EXPECT_EQ(open_fds(), before);
  EXPECT_TRUE(memory.free());
}

INSTANTIATE_TEST_SUITE_P(
    Faults, ReachBroken,
    testing::Values(Broken{"topology", "dmabuf", "attach=524", Code::unsupported, "refused this NIC"},
                    Broken{"no_path", "dmabuf", "map=EPERM", Code::unsupported, "no peer-to-peer path"},
                    Broken{"reset", "dmabuf", "map=EBUSY", Code::again, "in reset"},
                    Broken{"bar", "dmabuf", "bar=64K", Code::limit, "BAR"},
                    Broken{"unsupported", "dmabuf", "attach=EOPNOTSUPP", Code::unsupported, "no dma-buf registration"},
                    Broken{"client_refuses", "peermem", "acquire=EFAULT", Code::unsupported, "no peer-memory client"},
                    Broken{"client_pages", "peermem", "get_pages=ENOMEM", Code::limit, "BAR"},
                    Broken{"client_map", "peermem", "dma_map=EINVAL", Code::invalid, "gives no pages"},
                    Broken{"p2p_pages", "p2p", "p2p_get=EINVAL", Code::invalid, "gives no pages"},
                    Broken{"p2p_bar", "p2p", "bar=64K", Code::limit, "BAR"},
                    Broken{"p2p_map", "p2p", "p2p_map=ENOMEM", Code::limit, "BAR"}),
    [](const auto& each) { return std::string(each.param.name); });

// The accelerator's driver takes the pages back at a byte in the middle of a transfer.
class Invalidated : public testing::TestWithParam<const char*> {};

TEST_P(Invalidated, InTheMiddleOfATransferEndsItAndNothingElse) {
  Pair pair(settings({{"reach", GetParam()}, {"kernel_faults", "invalidate@64K"}}));
  Block target(pair.owner, "soft:0", kBytes, access::all);
  Block local(pair.asker, "host", kBytes, access::local);
  const Published published = pair.owner.publish("block", target.region).value();
  const Target place = pair.far.lookup("block").value();
  local.fill(pattern(kBytes, 9));
  const auto put = pair.far.lane().value().put(local.region.slice(0, kBytes), place.at(0)).wait(30s);
  ASSERT_FALSE(put);
  EXPECT_EQ(put.error().code, Code::denied) << put.error().explain();
  EXPECT_EQ(put.error().syndrome, 0x13u) << "remote access error, as of a key that maps nothing";
  EXPECT_TRUE(tells(put.error(), "was refused by the owner's NIC: ") && tells(put.error(), " (syndrome 0x13)"))
      << put.error().explain();
  EXPECT_FALSE(put.error().remedy.empty()) << put.error().explain();
  EXPECT_EQ(target.read(kBytes - 4096, 4096), std::vector<std::uint8_t>(4096)) << "the end never arrived";
  // Other memory of the same NIC still works.
  Block another(pair.owner, "host", 4096, access::all);
  const Published there = pair.owner.publish("another", another.region).value();
  const Target here = pair.far.lookup("another").value();
  EXPECT_TRUE(pair.far.lane().value().put(local.region.slice(0, 4096), here.at(0)).wait(30s));
}

INSTANTIATE_TEST_SUITE_P(Ways, Invalidated, testing::Values("peermem", "p2p"),
                         [](const auto& each) { return std::string(each.param); });

// The exporter moves the buffer at such a byte: the NIC's table is taken away, and the rest goes to where the memory is
// now. Whoever moves the bytes only sees that it took longer. A peer with a map grant does not ask the NIC, and is not
// here.
struct Carried {
  const char* name;
  const char* carrier;
  const char* grant;
};
class Moved : public testing::TestWithParam<Carried> {};

TEST_P(Moved, InTheMiddleOfATransferIsASuccess) {
  const auto carried = [](std::vector<std::pair<std::string, std::string>> more) {
    more.insert(more.end(), {{"carrier", GetParam().carrier}, {"grant", GetParam().grant}});
    return settings(std::move(more));
  };
  const auto moves = [](Node& node) {
    const auto told = nlohmann::json::parse(node.info().value());
    return told.at("nics").at(0).at("counters").at("kernel_moves").get<std::uint64_t>();
  };
  Pair pair(carried({{"reach", "dmabuf"}, {"kernel_faults", "move@64K"}}), carried({}));
  Block local(pair.asker, "host", kBytes, access::local);
  const auto bytes = pattern(kBytes, 14);
  std::uint64_t moved = 0;
  for (const bool is_put : {true, false}) {
    Block target(pair.owner, "soft:0", kBytes, access::all);  // each registration is moved once
    EXPECT_EQ(way_of(target.region), "dma-buf fd");
    const Published published = pair.owner.publish("block", target.region).value();
    const Target place = pair.far.lookup("block").value();
    (is_put ? local : target).fill(bytes);
    const auto done = is_put ? pair.far.put(local.region.slice(0, kBytes), place.at(0)).wait(30s)
                             : pair.far.get(local.region.slice(0, kBytes), place.at(0)).wait(30s);
    ASSERT_TRUE(done) << done.error().explain();
    EXPECT_EQ((is_put ? target : local).read(0, kBytes), bytes);
    EXPECT_EQ(moves(pair.owner), ++moved);
    local.fill(std::vector<std::uint8_t>(kBytes));
  }
}

INSTANTIATE_TEST_SUITE_P(Carriers, Moved,
                         testing::Values(Carried{"ring", "auto", "ring"}, Carried{"copy", "auto", "copy"},
                                         Carried{"packets", "roce", "auto"}),
                         [](const auto& each) { return std::string(each.param.name); });

TEST(Reach, StagedByNameIsLocalAndRefusedWhereZeroCopyIsRequired) {
  Pair pair(settings(), settings({{"reach", "staged"}}));
  Block target(pair.owner, "soft:0", kBytes, access::all);
  const auto shared = [&] {
    Memory memory = pair.asker.allocate(4096, {.near = "soft:0"}).value();
    return pair.asker.share(memory, access::all);
  }();
  ASSERT_FALSE(shared) << "nobody else can reach what is staged";
  Block local(pair.asker, "soft:0", kBytes, access::local);
  EXPECT_EQ(way_of(local.region), "staged through host");
  const Published published = pair.owner.publish("block", target.region).value();
  const Target place = pair.far.lookup("block").value();
  const auto bytes = pattern(kBytes, 3);
  local.fill(bytes);
  ASSERT_TRUE(pair.far.put(local.region.slice(0, kBytes), place.at(0)).wait(30s));
  EXPECT_EQ(target.read(0, kBytes), bytes);
  const auto strictly = pair.far.put(local.region.slice(0, 64), place.at(0), {.require = zero_copy}).wait(30s);
  ASSERT_FALSE(strictly);
  EXPECT_EQ(strictly.error().code, Code::unsupported);
}

TEST(Reach, StagedInPiecesIsOneOperation) {
  constexpr std::size_t kLong = 1'000'003;
  for (const char* progress : {"thread", "caller"}) {
    Pair pair(settings(), settings({{"reach", "staged"}, {"staging_piece", "64K"}, {"progress", progress}}));
    Block target(pair.owner, "soft:0", kLong, access::all);
    Block local(pair.asker, "soft:0", kLong, access::local);
    const Published published = pair.owner.publish("block", target.region).value();
    const Target place = pair.far.lookup("block").value();
    const auto bytes = pattern(kLong, 11);
    local.fill(bytes);
    Lane lane = pair.far.lane().value();
    const auto put = lane.put(local.region.slice(1, kLong - 1), place.at(0), {.signal = 3}).wait(60s);
    ASSERT_TRUE(put) << put.error().explain();
    EXPECT_EQ(put->bytes, kLong - 1) << "of all pieces";
    EXPECT_EQ(target.region.signal(3).read().value(), 1u) << "one signal, behind the last byte";
    EXPECT_EQ(target.read(0, kLong - 1), std::vector<std::uint8_t>(bytes.begin() + 1, bytes.end()));
    const auto other = pattern(kLong, 12);
    target.fill(other);
    const auto got = lane.get(local.region.slice(0, kLong), place.at(0)).wait(60s);
    ASSERT_TRUE(got) << got.error().explain();
    EXPECT_EQ(got->bytes, kLong);
    EXPECT_EQ(local.read(0, kLong), other);
    // A lane with room for few: pieces wait for each other.
    Lane narrow = pair.far.lane(2).value();
    local.fill(bytes);
    ASSERT_TRUE(narrow.put(local.region.slice(0, kLong), place.at(0)).wait(60s));
    EXPECT_EQ(target.read(0, kLong), bytes);
  }
}

TEST(Reach, AForkInTheMiddleTouchesNothingOfTheParents) {
  for (const char* reach : {"dmabuf", "peermem", "p2p"}) {
    Pair pair(settings({{"reach", reach}}));
    Block target(pair.owner, "soft:0", 65536, access::all);
    Block local(pair.asker, "host", 65536, access::local);
    const Published published = pair.owner.publish("block", target.region).value();
    const Target place = pair.far.lookup("block").value();
    const pid_t child = ::fork();
    if (child == 0) {
      const bool refused = !pair.owner.share(target.memory(), access::all);
      ::_exit(refused ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << reach;
    const auto bytes = pattern(65536, 4);
    local.fill(bytes);
    ASSERT_TRUE(pair.far.put(local.region.slice(0, 65536), place.at(0)).wait(30s)) << reach;
    EXPECT_EQ(target.read(0, 65536), bytes);
  }
}

TEST(Reach, WithoutDescriptorsTheErrorSaysSo) {
  Node node = Node::open(settings({{"reach", "dmabuf"}})).value();
  Memory memory = node.allocate(65536, {.near = "soft:0"}).value();
  const auto region = without_descriptors([&] { return node.share(memory, access::all); });
  ASSERT_FALSE(region);
  EXPECT_EQ(region.error().code, Code::limit) << region.error().explain();
  EXPECT_TRUE(tells(region.error(), "EMFILE")) << region.error().explain();
  EXPECT_TRUE(node.share(memory, access::all)) << "with descriptors it works again";
}

class Descriptor : public testing::Test {
 protected:
  void SetUp() override {
    fd_ = ::memfd_create("descriptor test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ASSERT_GE(fd_, 0);
    ASSERT_EQ(::ftruncate(fd_, kBytes), 0);
    ASSERT_EQ(::fcntl(fd_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
    bytes_ = static_cast<std::uint8_t*>(::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0));
    ASSERT_NE(bytes_, MAP_FAILED);
  }
  void TearDown() override {
    ::munmap(bytes_, kBytes);
    EXPECT_EQ(::close(fd_), 0) << "it is still the caller's";
  }
  int fd_ = -1;
  std::uint8_t* bytes_ = nullptr;
};

TEST_F(Descriptor, IsSharedAtAnOffsetAndStaysTheCallers) {
  Pair pair;
  int before = 0;
  for (int round = 0; round < 2; ++round) {
    if (round == 1) before = open_fds();  // what two Nodes need to talk is open by now
    std::memset(bytes_, 0, kBytes);
    auto region = pair.owner.share_dmabuf(fd_, 4100, 200'000, access::all);
    ASSERT_TRUE(region) << region.error().explain();
    EXPECT_EQ(region->size(), 200'000u);
    const Published published = pair.owner.publish("file", *region).value();
    const Target place = pair.far.lookup("file").value();
    Block local(pair.asker, "host", kBytes, access::local);
    const auto bytes = pattern(200'000, 5);
    local.fill(bytes);
    ASSERT_TRUE(pair.far.put(local.region.slice(0, 200'000), place.at(0)).wait(30s));
    EXPECT_EQ(std::vector<std::uint8_t>(bytes_ + 4100, bytes_ + 204'100), bytes);
    EXPECT_EQ(bytes_[4099], 0);
    EXPECT_EQ(bytes_[204'100], 0);
    // And as a source of the one who shared it.
    Block target(pair.asker, "host", kBytes, access::all);
    const Published there = pair.asker.publish("target", target.region).value();
    const Target to = pair.near.lookup("target").value();
    ASSERT_TRUE(pair.near.put(region->slice(100, 1000), to.at(0)).wait(30s));
    EXPECT_EQ(target.read(0, 1000), std::vector<std::uint8_t>(bytes.begin() + 100, bytes.begin() + 1100));
  }
  EXPECT_TRUE(settles_at(before)) << open_fds() << " descriptors are open, not " << before;
}

TEST_F(Descriptor, WrongOnesAreAnswered) {
  Node node = Node::open(settings()).value();
  const int before = open_fds();
  const auto refused = [&](int fd, std::uint64_t offset, std::uint64_t length, std::uint64_t address) {
    const auto region = node.share_dmabuf(fd, offset, length, access::all, address);
    EXPECT_FALSE(region);
    if (region) return std::string();
    EXPECT_EQ(region.error().code, Code::invalid) << region.error().explain();
    return region.error().text;
  };
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  EXPECT_TRUE(has(refused(-1, 0, 4096, 0), "not open"));
  EXPECT_TRUE(has(refused(9999, 0, 4096, 0), "not open"));
  EXPECT_TRUE(has(refused(null, 0, 4096, 0), "neither a dma-buf nor"));
  EXPECT_TRUE(has(refused(fd_, kBytes, 1, 0), "end past"));
  EXPECT_TRUE(has(refused(fd_, 4096, kBytes, 0), "end past"));
  EXPECT_TRUE(has(refused(fd_, ~std::uint64_t{0}, 2, 0), "wrap around"));
  EXPECT_TRUE(has(refused(fd_, 0, 0, 0), "0 bytes"));
  EXPECT_TRUE(has(refused(fd_, 4096, 4096, 0x10'0000'0010), "same place in a page"));
  ::close(null);
  const auto unknown = node.share_dmabuf(fd_, 0, 4096, static_cast<access::Access>(0x100));
  EXPECT_FALSE(unknown);
  EXPECT_TRUE(node.share_dmabuf(fd_, 16, 4096, access::all, 0x10'0000'0010)) << "the same place in a page";
  EXPECT_EQ(open_fds(), before);
}

}  // namespace
}  // namespace strait::flow
