// SPDX-License-Identifier: Apache-2.0
// What many regions and many peers cost: puts of 8 bytes to one picked at random, beside puts to the first of them plus
// the cache misses that any random access takes.
//
//   many_targets regions|peers|peers_memory|peers_connect [--window N] [count=N] [apart=0|1] [grant=...]
//                [workload options]
//
// regions: pages of one peer, each shared and published by itself; both sides drive their engine. apart=1: every one is
// an allocation of its own, as memory must be that a peer is to map; no process has a hundred thousand of those. peers:
// Nodes of two processes, each with a thread for its progress and one region; the initiator is one Node that is
// connected to all of them. Where the owner lands what is put (ring), the thread of each has to wake up for that. The
// bare misses: for each access a record, a check and a page of its own, each access after the one before. peers_memory:
// KiB that a connected peer takes of the initiator, after a put to each, beside the 64 that were asked for.
// peers_connect: ms to connect and look up one region, on average, beside the median of the first ten.
#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <strait/strait.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>

#include "workload.hpp"

namespace bench {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kPage = 4096;
constexpr double kLongS = 300;  // a thousand Nodes take a while to open
constexpr int kRounds = 5;

struct Name {
  char text[64];
};

std::uint64_t count_of(const Workload& w) {
  const std::uint64_t count = std::strtoull(w.option("count", "1000").c_str(), nullptr, 10);
  if (count == 0 || count > 1'000'000) give_up("count takes 1 to 1000000");
  return count;
}

bool many_peers(const Workload& w) {
  return w.test != Test::regions;
}

strait::Node open_node(const Workload& w, const char* progress) {
  std::vector<std::pair<std::string, std::string>> settings = {{"progress", progress}, {"accelerators", "none"}};
  if (const std::string grant = w.option("grant", ""); !grant.empty()) settings.emplace_back("grant", grant);
  return strait::Node::open({.settings = settings}).value();
}

// The place in a page differs from page to page, so that they do not all compete for the same lines of the cache.
std::uint64_t offset_in(std::uint64_t target) {
  return target * 64 % kPage;
}

// One loop of puts, so that it can be made again for the check.
struct Batch {
  std::uint64_t among;  // the first so many targets
  std::uint64_t count;
  std::uint64_t seed;
};

void replay(const std::vector<Batch>& batches, std::vector<std::uint64_t>& words) {
  for (const Batch& batch : batches) {
    Random random(batch.seed);
    for (std::uint64_t i = 0; i < batch.count; ++i) words[random.below(batch.among)] = tag(batch.seed, i);
  }
}

// What both processes see beside the meeting page.
struct Shared {
  std::atomic<std::uint64_t> n_batches;
  Batch batches[64];
  std::atomic<std::uint64_t> owner_kib;  // of resident memory per peer
  std::atomic<std::uint64_t> helpers_ready;
  Name names[1];  // as many as there are Nodes
};

double resident_kib() {
  return resident_bytes() / 1024;
}

// ---- who is written to ---------------------------------------------------------------------------------------------

struct Owned {
  std::vector<strait::Node> nodes;
  std::vector<strait::Memory> memory;
  std::vector<strait::Region> regions;
  std::vector<strait::Published> published;
  std::vector<strait::Peer> peers;
  std::vector<std::uint8_t*> words;
};

void own_one(Owned& owned, strait::Node& node, std::uint8_t* page, std::uint64_t target) {
  owned.regions.push_back(node.share(page, kPage, strait::access::remote_write).value());
  owned.published.push_back(node.publish("many/" + std::to_string(target), owned.regions.back()).value());
  owned.words.push_back(page + offset_in(target));
}

// The targets of one process: all, or some of very many Nodes, which have more descriptors than one process may.
struct Part {
  std::uint64_t first = 0;
  std::uint64_t end = 0;
};

Owned open_part(const Workload& w, Part part, Shared& shared) {
  Owned owned;
  const std::uint64_t n_pages =
      many_peers(w) || w.option("apart", "0") == "1" ? 1 : part.end - part.first;  // of an allocation
  for (std::uint64_t i = part.first; i < part.end; ++i) {
    if (many_peers(w) || i == part.first) {
      // A single Node is driven by its owner, who has nothing else to do; a thousand sleep until somebody comes.
      owned.nodes.push_back(open_node(w, many_peers(w) ? "thread" : "caller"));
      std::snprintf(shared.names[i].text, sizeof shared.names[i].text, "%s", owned.nodes.back().address().c_str());
    }
    strait::Node& node = owned.nodes.back();
    if (i % n_pages == 0) {
      owned.memory.push_back(node.allocate(n_pages * kPage).value());
      std::memset(owned.memory.back().data(), 0, n_pages * kPage);
    }
    own_one(owned, node, static_cast<std::uint8_t*>(owned.memory.back().data()) + i % n_pages * kPage, i);
  }
  return owned;
}

void serve_part(const Workload& w, Part part, Owned& owned, Meeting* meeting, Shared& shared) {
  for (strait::Node& node : owned.nodes) owned.peers.push_back(node.accept(std::chrono::seconds(300)).value());
  while (meeting->over[0].load() == 0) {
    if (!many_peers(w))
      owned.nodes[0].poll();
    else
      usleep(1000);
  }
  std::vector<std::uint64_t> expected(count_of(w));
  replay({shared.batches, shared.batches + shared.n_batches.load()}, expected);
  for (std::uint64_t i = part.first; i < part.end; ++i) {
    if (load_word(owned.words[i - part.first]) != expected[i]) meeting->wrong.fetch_add(8);
  }
}

// The second half of very many Nodes, in a process of their own.
class Helper {
 public:
  Helper(const Workload& w, Part part, Meeting* meeting, Shared& shared) {
    pid_ = fork();
    if (pid_ < 0) give_up("no further process");
    if (pid_ > 0) return;
    Owned owned = open_part(w, part, shared);
    shared.helpers_ready.fetch_add(1);
    serve_part(w, part, owned, meeting, shared);
    _exit(0);
  }
  void await(const Shared& shared) const {
    while (shared.helpers_ready.load() == 0) {
      if (waitpid(pid_, nullptr, WNOHANG) != 0) give_up("half of the Nodes could not be opened");
      usleep(1000);
    }
  }
  void join() const {
    int status = 0;
    if (waitpid(pid_, &status, 0) != pid_ || status != 0) give_up("half of the Nodes ended early");
  }

 private:
  pid_t pid_ = -1;
};

void owner(const Workload& w, Meeting* meeting, Shared& shared) {
  Part part{0, count_of(w)};
  std::optional<Helper> helper;
  if (many_peers(w) && part.end > 1) {
    helper.emplace(w, Part{part.end / 2, part.end}, meeting, shared);
    part.end /= 2;
  }
  Owned owned = open_part(w, part, shared);
  if (helper) helper->await(shared);
  const double before = resident_kib();
  meet(meeting, 1, kLongS);
  serve_part(w, part, owned, meeting, shared);
  const double grown = std::max(resident_kib() - before, 0.0);
  shared.owner_kib.store(static_cast<std::uint64_t>(grown / static_cast<double>(owned.nodes.size())));
  if (helper) helper->join();
  meet(meeting, 1, kLongS);
  meet(meeting, 1, kLongS);
}

// ---- who writes ----------------------------------------------------------------------------------------------------

class Writer {
 public:
  Writer(const Workload& w, Meeting* meeting, Shared& shared)
      : workload_(w),
        shared_(shared),
        count_(count_of(w)),
        node_(open_node(w, many_peers(w) ? "thread" : "caller")),
        under_way_(w.window_mask + 1) {
    memory_.push_back(node_.allocate(kPage).value());
    from_.push_back(node_.share(memory_[0], strait::access::local).value());
    source_ = static_cast<std::uint8_t*>(memory_[0].data());
    if ((w.window_mask + 1) * 8 > kPage) give_up("--window takes up to 512");
    meet(meeting, 0, kLongS);
    const double before = resident_kib();
    for (std::uint64_t i = 0; i < (many_peers(w) ? count_ : 1); ++i) connect(i);
    if (!many_peers(w)) {
      for (std::uint64_t i = 0; i < count_; ++i) add_target(peers_[0], i);
    }
    put_to_each();
    kib_each_ = std::max(resident_kib() - before, 0.0) / static_cast<double>(peers_.size());
  }

  // ns for each put, to one of the first `among` at random; all are complete at the end.
  double put(std::uint64_t among, std::uint64_t count) {
    const std::uint64_t batch = shared_.n_batches.load();
    if (batch == std::size(shared_.batches)) give_up("too many batches");
    const std::uint64_t seed = batch + 1;
    shared_.batches[batch] = {among, count, seed};
    shared_.n_batches.store(batch + 1);
    Random random(seed);
    std::uint64_t waited = 0;
    const std::uint64_t start = now_ns();
    for (std::uint64_t i = 0; i < count; ++i) {
      if (i - waited == workload_.window) wait(under_way_[waited++ & workload_.window_mask]);
      post(random.below(among), i, tag(seed, i));
    }
    while (waited < count) wait(under_way_[waited++ & workload_.window_mask]);
    return static_cast<double>(now_ns() - start) / static_cast<double>(count);
  }

  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] double kib_each() const { return kib_each_; }
  [[nodiscard]] const std::vector<double>& connect_ms() const { return connect_ms_; }
  [[nodiscard]] std::string path() const { return strait_lane_path(targets_[0].lane); }

 private:
  // What a program keeps of one place to write to.
  struct Target {
    strait_target target;
    strait_lane* lane;
  };
  void connect(std::uint64_t i) {
    const std::uint64_t start = now_ns();
    strait_peer* raw = nullptr;
    check("connect", strait_connect(node_.raw(), shared_.names[i].text, 60'000'000'000, &raw, &error_));
    peers_.push_back(strait::Peer(raw));
    lanes_.push_back(strait_peer_lane(raw));
    if (many_peers(workload_)) add_target(peers_.back(), i);
    connect_ms_.push_back(static_cast<double>(now_ns() - start) / 1e6);
  }
  void add_target(strait::Peer& peer, std::uint64_t i) {
    const auto found = peer.lookup("many/" + std::to_string(i), 60s).value();
    targets_.push_back({found.raw(), lanes_.back()});
  }
  // Every ring and every mapping has been used once when the clock starts.
  void put_to_each() {
    for (std::uint64_t among = 1;; among = std::min(among * 8, count_)) {
      put(among, 4 * among);
      if (among == count_) return;
    }
  }
  void post(std::uint64_t target, std::uint64_t i, std::uint64_t word) {
    const std::uint64_t slot = i & workload_.window_mask;
    store_word(source_ + slot * 8, word);
    const strait_slice slice{from_[0].raw(), slot * 8, 8};
    const Target& to = targets_[target];
    for (;;) {
      const std::int32_t code =
          strait_put(to.lane, &slice, &to.target, offset_in(target), nullptr, &under_way_[slot], &error_);
      if (code == STRAIT_OK) return;
      if (code != STRAIT_AGAIN) check("put", code);
      strait_node_poll(node_.raw());
    }
  }
  void wait(strait_op& op) {
    done_.struct_size = sizeof done_;
    check("wait", strait_wait(&op, 30'000'000'000, &done_, &error_));
  }
  void check(const char* what, std::int32_t code) {
    if (code != STRAIT_OK) [[unlikely]]
      give_up(std::string(what) + ": " + error_.text);
  }

  const Workload& workload_;
  Shared& shared_;
  std::uint64_t count_;
  strait::Node node_;
  std::vector<strait::Memory> memory_;
  std::vector<strait::Region> from_;
  std::uint8_t* source_ = nullptr;
  std::vector<strait::Peer> peers_;
  std::vector<strait_lane*> lanes_;
  std::vector<Target> targets_;
  std::vector<strait_op> under_way_;
  std::vector<double> connect_ms_;
  double kib_each_ = 0;
  strait_done done_{};
  strait_error error_{
      .struct_size = sizeof(strait_error), .code = 0, .sys_errno = 0, .syndrome = 0, .text = {}, .remedy = {}};
};

// What a random access takes whoever makes it.
class Bare {
 public:
  explicit Bare(std::uint64_t count) : records_(count), checks_(count) {
    void* pages = mmap(nullptr, count * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) give_up("out of memory");
    pages_ = static_cast<std::uint8_t*>(pages);
    bytes_ = count * kPage;
    std::memset(pages_, 1, bytes_);
    for (std::uint64_t i = 0; i < count; ++i) records_[i].place = i * kPage + offset_in(i);
  }
  Bare(const Bare&) = delete;
  Bare& operator=(const Bare&) = delete;
  ~Bare() { munmap(pages_, bytes_); }
  // ns for each.
  double access(std::uint64_t among, std::uint64_t count) {
    Random random(7);
    std::uint64_t zero = 0;  // of what was read last: the next access waits for it
    const std::uint64_t start = now_ns();
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t target = random.below(among) + zero;
      const Line& record = records_[target];
      store_word(pages_ + record.place, i);
      zero = record.zero + checks_[target].zero;
      asm volatile("" : "+r"(zero)::"memory");
    }
    return static_cast<double>(now_ns() - start) / static_cast<double>(count);
  }

 private:
  struct alignas(64) Line {
    std::uint64_t place = 0;
    std::uint64_t zero = 0;
  };
  std::vector<Line> records_, checks_;
  std::uint8_t* pages_ = nullptr;
  std::uint64_t bytes_ = 0;
};

struct Compared {
  double many_ns;
  double limit_ns;
  double one_ns;
  double misses_ns;
  std::uint64_t puts;
};

Compared compare(const Workload& w, Writer& writer) {
  Bare bare(writer.count());
  const double part = w.seconds * 1e9 / kRounds / 2;
  const auto fit = [&](double each) { return static_cast<std::uint64_t>(std::clamp(part / each, 500.0, 1e7)); };
  const std::uint64_t puts_one = fit(writer.put(1, 2000));
  const std::uint64_t puts_many = fit(writer.put(writer.count(), 2000));
  (void)bare.access(writer.count(), 1'000'000);
  std::vector<double> one, many, misses;
  for (int round = 0; round < kRounds; ++round) {
    one.push_back(writer.put(1, puts_one));
    many.push_back(writer.put(writer.count(), puts_many));
    misses.push_back(bare.access(writer.count(), 500'000) - bare.access(1, 500'000));
  }
  const double more = std::max(median(misses), 0.0);
  return {median(many), median(one) + more, median(one), more, puts_many};
}

void initiator(const Workload& w, Meeting* meeting, Shared& shared) {
  Writer writer(w, meeting, shared);
  Compared puts{};
  if (w.test == Test::regions || w.test == Test::peers) puts = compare(w, writer);
  meeting->over[0].store(1);
  meet(meeting, 0, kLongS);
  const std::uint64_t wrong = meeting->wrong.load();
  if (w.test == Test::peers_memory) {
    print_result(w, writer.kib_each(), "KiB", writer.count(), wrong,
                 writer.path() + "; " + std::to_string(shared.owner_kib.load()) + " KiB more at the peer", 64);
  } else if (w.test == Test::peers_connect) {
    const std::vector<double>& ms = writer.connect_ms();
    double sum = 0;
    for (const double each : ms) sum += each;
    print_result(w, sum / static_cast<double>(ms.size()), "ms", ms.size(), wrong, writer.path(),
                 median({ms.begin(), ms.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(ms.size(), 10))}));
  } else {
    print_result(w, puts.many_ns, "ns", puts.puts, wrong,
                 writer.path() + "; to the first of them " + std::to_string(puts.one_ns) + " ns, bare misses " +
                     std::to_string(puts.misses_ns) + " ns",
                 puts.limit_ns);
  }
  meet(meeting, 0, kLongS);
}

// As many descriptors as we may have: a Node holds a dozen.
void raise_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) try {
  const bench::Workload workload = bench::parse_workload(argc, argv);
  if (workload.test < bench::Test::regions || workload.test > bench::Test::peers_connect)
    bench::give_up("only regions, peers, peers_memory and peers_connect are measured here");
  bench::raise_limit();
  const std::size_t bytes = sizeof(bench::Shared) + bench::count_of(workload) * sizeof(bench::Name);
  void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) bench::give_up("no memory for both processes");
  auto& shared = *new (pages) bench::Shared{};
  bench::Meeting* meeting = nullptr;
  if (bench::split(workload, &meeting) == 1) {
    bench::owner(workload, meeting, shared);
  } else {
    bench::initiator(workload, meeting, shared);
    bench::join();
  }
  return 0;
} catch (const std::exception& failure) {
  bench::give_up(failure.what());
}
