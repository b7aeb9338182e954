// SPDX-License-Identifier: Apache-2.0
// Every pair of memories that this process has, as `strait explain --table` lists them: the bytes are moved, and the
// way they took is the one that was said. Run by ctest on the software accelerators of all vendors (`strait run
// --accelerators`), and by hand wherever there is hardware.
#include <dlfcn.h>

#include <map>

#include "flow.hpp"
#include "process.hpp"

namespace strait::flow {
namespace {

constexpr std::size_t kBytes = 300'001;

std::vector<std::string> memories(Node& node) {
  std::vector<std::string> names;
  const auto all = info(node);
  for (const auto& memory : all["memory"]) names.push_back(memory["name"]);
  EXPECT_GE(names.size(), 2u) << "host memory, and a device's";
  return names;
}

std::string kind_of(const std::string& memory) {
  return memory.substr(0, memory.find(':'));
}

// What a Node has counted so far that says which way bytes went.
struct Counted {
  std::map<std::string, std::uint64_t> copies;  // by kind of memory
  std::uint64_t through_host = 0;
  std::uint64_t wqes = 0;
};
Counted counted(Node& node) {
  Counted out;
  const auto all = info(node);
  for (const auto& [name, value] : all["counters"].items()) {
    // A GPU's memory that nobody can map: there the copies are how a NIC in software reads and writes it.
    if (name.starts_with("memory_") && value.is_object())
      out.copies[name.substr(7)] = value.value("copies", 0ull) - value.value("port_copies", 0ull);
  }
  out.through_host = all["counters"].value("copies_through_host", 0ull);
  for (const auto& nic : all["nics"]) out.wqes += nic["counters"].value("work_requests", 0ull);
  return out;
}

// What software Gaudis count of their own bytes; empty where there are none.
std::map<std::string, std::uint64_t> gaudi_bytes() {
  std::map<std::string, std::uint64_t> out;
  void* const library = ::dlopen("libstrait-gaudi.so", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return out;
  const auto counters =
      reinterpret_cast<std::size_t (*)(char*, std::size_t)>(::dlsym(library, "strait_soft_gaudi_counters"));
  std::string text(16384, '\0');
  text.resize(counters(text.data(), text.size()));
  ::dlclose(library);
  for (const std::string name : {"host_bytes", "link_bytes"}) {
    const std::size_t at = text.find("," + name + "=");
    EXPECT_NE(at, std::string::npos) << text;
    if (at != std::string::npos) out[name] = std::stoull(text.substr(at + name.size() + 2));
  }
  return out;
}

nlohmann::json chosen(Node& node, const std::string& from, const std::string& to) {
  const auto text = node.explain(from, to, {.json = true});
  EXPECT_TRUE(text) << text.error().explain();
  const auto plan = nlohmann::json::parse(*text);
  if (plan["chosen"].is_null()) return nullptr;
  return plan["ways"][plan["chosen"].get<std::size_t>()];
}

Memory filled(Node& node, const std::string& where, const std::vector<std::uint8_t>& bytes) {
  Memory memory = node.allocate(bytes.size(), {.near = where}).value();
  [[maybe_unused]] const Unwatched unwatched;
  EXPECT_TRUE(node.copy(memory.data(), bytes.data(), bytes.size()));
  return memory;
}

std::vector<std::uint8_t> read(Node& node, const Memory& memory) {
  std::vector<std::uint8_t> bytes(memory.size());
  [[maybe_unused]] const Unwatched unwatched;
  EXPECT_TRUE(node.copy(bytes.data(), memory.data(), bytes.size()));
  return bytes;
}

// Host and device, within a device, between devices of one vendor: copies of one process.
TEST(Paths, CopiesWithinAProcessTakeTheWayThatIsSaid) {
  Node node = Node::open(settings()).value();
  std::uint32_t seed = 0;
  for (const std::string& from : memories(node)) {
    for (const std::string& to : memories(node)) {
      SCOPED_TRACE(from + " to " + to);
      const auto way = chosen(node, from, to);
      ASSERT_FALSE(way.is_null());
      const auto bytes = pattern(kBytes, ++seed);
      const Memory source = filled(node, from, bytes);
      const Memory target = filled(node, to, std::vector<std::uint8_t>(kBytes));
      const bool by_link = kind_of(from) == "gaudi" && kind_of(to) == "gaudi" && from != to;
      const Counted before = counted(node);
      auto bytes_before = gaudi_bytes();
      const auto copied = node.copy(target.data(), source.data(), kBytes);
      auto bytes_after = gaudi_bytes();
      const Counted after = counted(node);
      if (by_link) {
        EXPECT_EQ(way["kind"], "link");
        EXPECT_EQ(way["name"], from + " -> " + to + " over Gaudi link");
        if (!bytes_after.empty()) {  // hardware counts nowhere that we know
          EXPECT_EQ(bytes_after["link_bytes"], bytes_before["link_bytes"] + kBytes);
          EXPECT_EQ(bytes_after["host_bytes"], bytes_before["host_bytes"]) << "no byte passed host memory";
        }
      } else if (kind_of(from) == kind_of(to)) {
        EXPECT_EQ(way["kind"], from == to ? "engine" : "link");
      }
      EXPECT_EQ(after.wqes, before.wqes) << "no NIC took part";
      if (way["kind"] == "engine" || way["kind"] == "link") {
        ASSERT_TRUE(copied) << copied.error().explain();
        EXPECT_EQ(read(node, target), bytes);
        const std::string worker = from == "host" ? kind_of(to) : kind_of(from);
        if (worker != "host") {
          EXPECT_EQ(after.copies.at(worker), before.copies.at(worker) + 1);
        }
      } else {
        // Two vendors: not behind anybody's back.
        ASSERT_FALSE(copied);
        EXPECT_EQ(copied.error().code, Code::unsupported);
        EXPECT_NE(copied.error().remedy.find("allow_staging"), std::string::npos) << copied.error().explain();
      }
      EXPECT_EQ(after.through_host, before.through_host);
    }
  }
}

TEST(Paths, BetweenVendorsThroughHostMemoryWhereThatIsAllowed) {
  Node node = Node::open(settings({{"allow_staging", "1"}})).value();
  for (const std::string& from : memories(node)) {
    for (const std::string& to : memories(node)) {
      if (from == "host" || to == "host" || kind_of(from) == kind_of(to)) continue;
      SCOPED_TRACE(from + " to " + to);
      const auto bytes = pattern(kBytes, 77);
      const Memory source = filled(node, from, bytes);
      const Memory target = filled(node, to, std::vector<std::uint8_t>(kBytes));
      const Counted before = counted(node);
      const auto copied = node.copy(target.data(), source.data(), kBytes);
      ASSERT_TRUE(copied) << copied.error().explain();
      EXPECT_EQ(read(node, target), bytes);
      EXPECT_EQ(counted(node).through_host, before.through_host + 1);
    }
  }
}

// To a peer: the NICs of both ends reach the memory themselves, whoever made it. No copy engine moves a byte between.
class PathsToAPeer : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Carriers, PathsToAPeer, testing::Values("auto", "roce"),
                         [](const auto& carrier) { return std::string(carrier.param); });

TEST_P(PathsToAPeer, EveryPairOfMemoriesWithoutACopy) {
  Node owner = Node::open(settings({{"carrier", GetParam()}, {"grant", "ring"}})).value();
  Node asker = Node::open(settings({{"carrier", GetParam()}, {"grant", "ring"}})).value();
  Peer far = asker.connect(owner.address()).value();
  std::uint32_t seed = 1000;
  for (const std::string& from : memories(asker)) {
    for (const std::string& to : memories(owner)) {
      SCOPED_TRACE(from + " to " + to + " of a peer");
      const auto bytes = pattern(kBytes, ++seed);
      const Memory source = filled(asker, from, bytes);
      const Memory target = filled(owner, to, std::vector<std::uint8_t>(kBytes));
      const Region local = asker.share(source, access::local).value();
      const Region remote = owner.share(target, access::all).value();
      const Published published = owner.publish("target", remote).value();
      const Target place = far.lookup("target").value();
      const Counted before = counted(asker);
      auto done = far.put(local.all(), place.at(0), {.require = zero_copy}).wait(20s);
      ASSERT_TRUE(done) << done.error().explain();
      const Counted after = counted(asker);
      EXPECT_EQ(after.copies, before.copies) << "the NIC reads the memory itself";
      EXPECT_GT(after.wqes, before.wqes);
      EXPECT_EQ(read(owner, target), bytes);

      const auto back = pattern(kBytes, ++seed);
      {
        [[maybe_unused]] const Unwatched unwatched;
        ASSERT_TRUE(owner.copy(target.data(), back.data(), kBytes));
      }
      done = far.get(local.all(), place.at(0), {.require = zero_copy}).wait(20s);
      ASSERT_TRUE(done) << done.error().explain();
      EXPECT_EQ(read(asker, source), back);

      const std::string said = GetParam() == std::string("roce") ? "roce" : "copy";
      EXPECT_EQ(chosen(asker, from, to + "@" + owner.address())["kind"], said);
    }
  }
}

// Where a CPU may move the bytes itself, that is said before, and after.
TEST(Paths, GrantsAreTakenWhereTheyAreSaid) {
  Node owner = Node::open(settings({{"grant", "auto"}})).value();
  Node asker = Node::open(settings({{"grant", "auto"}})).value();
  Peer far = asker.connect(owner.address()).value();
  int mapped = 0;
  for (const std::string& from : memories(asker)) {
    for (const std::string& to : memories(owner)) {
      SCOPED_TRACE(from + " to " + to + " of a peer");
      const auto bytes = pattern(kBytes, 7);
      const Memory source = filled(asker, from, bytes);
      const Memory target = filled(owner, to, std::vector<std::uint8_t>(kBytes));
      const Region local = asker.share(source, access::local).value();
      const Region remote = owner.share(target, access::all).value();
      const Published published = owner.publish("target", remote).value();
      const Target place = far.lookup("target").value();
      const bool said = chosen(asker, from, to + "@" + owner.address())["kind"] == "map";
      auto done = far.put(local.all(), place.at(0)).wait(20s);
      ASSERT_TRUE(done) << done.error().explain();
      EXPECT_EQ(done->path.str().starts_with("map grant"), said) << done->path.str();
      EXPECT_EQ(read(owner, target), bytes);
      mapped += said ? 1 : 0;
    }
  }
  EXPECT_GE(mapped, 1) << "host memory to host memory";
}

// Descriptors of this process, and what the devices have left: a registration that stays keeps both.
struct Left {
  int fds = 0;
  std::map<std::string, std::uint64_t> free_bytes;
  explicit Left(Node& node) {
    const auto all = info(node);
    for (const auto& memory : all["memory"])
      if (memory["name"] != "host") free_bytes[memory["name"]] = memory.at("free_bytes");
    fds = open_fds();  // after software accelerators were asked, who let go of what nobody has open any more then
  }
};

// A Gaudi has one owner process: one for each side. Others are shared.
struct OneGaudi {
  explicit OneGaudi(const char* number) { ::setenv("HABANA_VISIBLE_MODULES", number, 1); }
  ~OneGaudi() { ::unsetenv("HABANA_VISIBLE_MODULES"); }
  OneGaudi(const OneGaudi&) = delete;
  OneGaudi& operator=(const OneGaudi&) = delete;
};

// The other process: hands out a buffer of the memory it is told, checks what came, answers with other bytes.
void own_buffers(Process::Wire wire) {
  const OneGaudi mine("1");
  Node node = Node::open(settings()).value();
  wire.say(node.address());
  for (std::string where = wire.hear(); !where.empty() && where != "end"; where = wire.hear()) {
    if (where == "left") {
      const Left now(node);
      std::string text = "fds=" + std::to_string(now.fds);
      for (const auto& [name, bytes] : now.free_bytes) text += " " + name + "=" + std::to_string(bytes);
      wire.say(text);
      continue;
    }
    const Memory target = filled(node, where, std::vector<std::uint8_t>(kBytes));
    const Region region = node.share(target, access::all).value();
    const Published published = node.publish("target", region).value();
    wire.say("published");
    if (wire.hear() != "put") return;
    const bool right = read(node, target) == pattern(kBytes, 1);
    const auto other = pattern(kBytes, 2);
    [[maybe_unused]] const Unwatched unwatched;
    const bool answered = node.copy(target.data(), other.data(), kBytes).has_value();
    wire.say(right && answered ? "verified" : "wrong");
    if (wire.hear() != "got") return;
  }
}

TEST(Paths, BetweenTwoProcessesBytesArriveAndNothingIsLeft) {
  Process owner(own_buffers);
  const std::string address = owner.wire().hear();
  const OneGaudi gaudi("0");
  Node node = Node::open(settings()).value();
  Peer far = node.connect(address).value();
  const auto round = [&] {
    for (const std::string& where : memories(node)) {
      SCOPED_TRACE(where);
      owner.wire().say(where);
      ASSERT_EQ(owner.wire().hear(), "published");
      const Memory mine = filled(node, where, pattern(kBytes, 1));
      const Region local = node.share(mine, access::local).value();
      const Target place = far.lookup("target").value();
      auto done = far.put(local.all(), place.at(0), {.require = zero_copy}).wait(20s);
      ASSERT_TRUE(done) << done.error().explain();
      owner.wire().say("put");
      EXPECT_EQ(owner.wire().hear(), "verified");
      done = far.get(local.all(), place.at(0), {.require = zero_copy}).wait(20s);
      ASSERT_TRUE(done) << done.error().explain();
      EXPECT_EQ(read(node, mine), pattern(kBytes, 2));
      owner.wire().say("got");
    }
  };
  const auto left_there = [&] {
    owner.wire().say("left");
    return owner.wire().hear();
  };
  round();  // the first use of everything: streams, links, blocks that a driver keeps
  const std::string there = left_there();
  const Left here(node);
  for (int i = 0; i < 3; ++i) round();
  EXPECT_EQ(left_there(), there);
  const Left after(node);
  EXPECT_EQ(after.fds, here.fds);
  EXPECT_EQ(after.free_bytes, here.free_bytes);
  EXPECT_EQ(owner.finish(), 0);
}

}  // namespace
}  // namespace strait::flow
