// SPDX-License-Identifier: Apache-2.0
// What the flow tests share: two Nodes that talk to each other through the public API, patterns, and counts of what a
// leak would leave behind.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "strait/strait.hpp"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define STRAIT_UNDER_TSAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define STRAIT_UNDER_TSAN 1
#endif

#ifdef STRAIT_UNDER_TSAN
extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
}
#endif

namespace strait::flow {

// What a NIC reads and writes is ordered by completions. Between two engines of one process these travel through memory
// that is mapped twice, which TSan cannot follow: the test's own look at the payload is left out, all else is checked.
struct Unwatched {
#ifdef STRAIT_UNDER_TSAN
  Unwatched() {
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  }
  ~Unwatched() {
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  }
  Unwatched(const Unwatched&) = delete;
  Unwatched& operator=(const Unwatched&) = delete;
#endif
};

using namespace std::chrono_literals;

inline NodeOptions settings(std::vector<std::pair<std::string, std::string>> more = {}) {
  NodeOptions options;
  options.settings = {{"secret", "flow tests know this secret"}, {"accelerator_memory", "64M"}};
  for (auto& pair : more) {
    std::erase_if(options.settings, [&](const auto& old) { return old.first == pair.first; });
    options.settings.push_back(std::move(pair));
  }
  return options;
}

inline std::vector<std::uint8_t> pattern(std::size_t length, std::uint32_t seed) {
  std::vector<std::uint8_t> bytes(length);
  std::uint32_t state = seed * 2654435761u + 1;
  for (auto& byte : bytes) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<std::uint8_t>(state >> 24);
  }
  return bytes;
}

// On which device a test of any device's memory runs.
inline std::string test_device() {
  const char* const named = std::getenv("STRAIT_TEST_DEVICE");
  return named == nullptr ? "soft:0" : named;
}
inline std::string test_kind() {
  return test_device().substr(0, test_device().find(':'));
}

// Memory of either kind, written and read through the API so that tests are the same for both.
class Block {
 public:
  Block(Node& node, const std::string& kind, std::size_t length, access::Access rights)
      : node_(&node),
        memory_(node.allocate(length, {.near = kind}).value()),
        region(node.share(memory_, rights).value()) {}
  void fill(const std::vector<std::uint8_t>& bytes, std::size_t offset = 0) {
    [[maybe_unused]] const Unwatched unwatched;
    node_->copy(static_cast<std::uint8_t*>(memory_.data()) + offset, bytes.data(), bytes.size()).value();
  }
  [[nodiscard]] std::vector<std::uint8_t> read(std::size_t offset, std::size_t length) const {
    std::vector<std::uint8_t> bytes(length);
    [[maybe_unused]] const Unwatched unwatched;
    node_->copy(bytes.data(), static_cast<std::uint8_t*>(memory_.data()) + offset, length).value();
    return bytes;
  }
  [[nodiscard]] std::uint64_t word(std::size_t offset) const {
    const auto bytes = read(offset, 8);
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data(), 8);
    return value;
  }
  [[nodiscard]] Memory& memory() { return memory_; }

 private:
  Node* node_;
  Memory memory_;

 public:
  Region region;  // goes before its memory
};

inline int open_fds() {
  int count = 0;
  for (auto it = std::filesystem::directory_iterator("/proc/self/fd"); it != std::filesystem::directory_iterator();
       ++it)
    ++count;
  return count;
}

// When threads of the library have closed what they handed on.
inline int settled_fds() {
  int count = open_fds();
  for (int same = 0; same < 10;) {
    ::usleep(5000);
    const int now = open_fds();
    same = now == count ? same + 1 : 0;
    count = now;
  }
  return count;
}

// The same by number and name, for who wants to see which one stayed.
inline std::set<std::string> open_files() {
  std::set<std::string> all;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const auto target = std::filesystem::read_symlink(each.path(), gone);
    if (!gone && target.string().find("/proc/") != 0)
      all.insert(each.path().filename().string() + " " + target.string());
  }
  return all;
}

// What `call` answers while this process can open nothing.
template <class Call>
auto without_descriptors(Call call) {
  rlimit old{};
  EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &old), 0);
  const rlimit few{256, old.rlim_max};
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<int> taken;
  for (int fd = ::dup(0); fd >= 0; fd = ::dup(0)) taken.push_back(fd);
  auto answer = call();
  for (const int fd : taken) ::close(fd);
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &old), 0);
  return answer;
}

inline nlohmann::json info(Node& node) {
  return nlohmann::json::parse(node.info().value());
}

// Two Nodes in one process, connected: `asker` has the peer `far`, `owner` the peer `near`.
struct Pair {
  explicit Pair(NodeOptions owner_options = settings(), NodeOptions asker_options = settings())
      : owner(Node::open(owner_options).value()),
        asker(Node::open(asker_options).value()),
        far(asker.connect(owner.address()).value()),
        near(owner.accept(5s).value()) {}
  Node owner;
  Node asker;
  Peer far;
  Peer near;
};

// First member of a fixture: when everything else of it has gone, no more is open than before it was there.
class NoFilesLeft {
 public:
  NoFilesLeft() = default;
  NoFilesLeft(const NoFilesLeft&) = delete;
  NoFilesLeft& operator=(const NoFilesLeft&) = delete;
  ~NoFilesLeft() {
    const auto until = std::chrono::steady_clock::now() + 5s;  // threads of the library close what they handed on
    while (open_fds() > fds_ && std::chrono::steady_clock::now() < until) ::usleep(2000);
    if (open_fds() <= fds_) return;
    std::string left;
    for (const std::string& each : open_files())
      if (!files_.contains(each)) left += "\n  " + each;
    ADD_FAILURE() << "descriptors are left:" << left;
  }

 private:
  const std::set<std::string> files_ = open_files();
  const int fds_ = open_fds();
};

// Between a fixture's Nodes and what it shares of their memory: when that has gone, they hold no more than before it
// came.
class NothingHeld {
 public:
  explicit NothingHeld(Pair& pair) : pair_(pair), before_(held()) {}
  NothingHeld(const NothingHeld&) = delete;
  NothingHeld& operator=(const NothingHeld&) = delete;
  ~NothingHeld() {
    const auto until = std::chrono::steady_clock::now() + 5s;  // what is under way has to end first
    std::string more = compared();
    for (; !more.empty() && std::chrono::steady_clock::now() < until; more = compared()) {
      (void)pair_.owner.poll();
      (void)pair_.asker.poll();
      ::usleep(2000);
    }
    if (!more.empty()) ADD_FAILURE() << "something is left behind:" << more;
  }

 private:
  using Counts = std::map<std::string, std::int64_t>;
  [[nodiscard]] Counts held() const {
    Counts out;
    for (Node* const node : {&pair_.owner, &pair_.asker}) {
      const std::string whose = node == &pair_.owner ? "owner's " : "asker's ";
      const nlohmann::json all = info(*node);
      for (const char* const name : {"regions", "regions_draining", "names", "lanes"})
        out[whose + name] = all.at("counters").at(name);
      const nlohmann::json nic = all.at("nics").at(0).at("counters");
      out[whose + "registrations"] = nic.at("registrations");
      out[whose + "links"] = nic.value("links", std::int64_t{0});  // a Cassini has none
    }
    return out;
  }
  [[nodiscard]] std::string compared() const {
    std::string more;
    for (const auto& [name, count] : held())
      if (count > before_.at(name))
        more += "\n  " + name + ": " + std::to_string(count) + ", before " + std::to_string(before_.at(name));
    return more;
  }
  Pair& pair_;
  const Counts before_;
};

}  // namespace strait::flow
