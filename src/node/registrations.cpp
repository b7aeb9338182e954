// SPDX-License-Identifier: Apache-2.0
// The registration cache of a Node: one entry per allocation, with a key of every NIC.
#include <cerrno>
#include <optional>

#include "node/core.hpp"
#include "plan/place.hpp"

namespace strait::node {
namespace {

constexpr std::size_t kMostKnown = 4096;

// What this thread was told last, by which Node: programs share slices of the same memory again and again. Its identity
// is asked about all the same, so a claim of before is never believed. The provider it points to lives as long as the
// Node, whose number is never used again.
struct LastClaim {
  std::uint64_t node = 0;  // 0: none
  buffer::Claim claim;
};
thread_local constinit LastClaim last_claim;

bool lies_in(const buffer::Range& range, const buffer::Range& whole) {
  const std::uint64_t skip = range.address - whole.address;
  return range.length_bytes != 0 && skip < whole.length_bytes && range.length_bytes <= whole.length_bytes - skip;
}

bool still_is(const buffer::Claim& claim) {
  return claim.provider->identity(claim.whole) == claim.identity;
}

// The same memory, asked about by another range.
buffer::Claim asked_anew(const buffer::Claim& known, const buffer::Range& range) {
  buffer::Claim claim = known;
  if (claim.cpu_address != 0) claim.cpu_address += range.address - claim.asked.address;
  claim.asked = range;
  return claim;
}

// Without what was being done: the way and the NIC are named beside it.
std::string cause_of(const Error& why) {
  std::size_t at = why.text.find("did not register");
  if (at != std::string::npos) at = why.text.find(": ", at);
  return at == std::string::npos ? why.text : why.text.substr(at + 2);
}

bool passes(const Error& why) {
  return why.code == Code::again || why.code == Code::timeout || why.code == Code::gone;
}

// The driver found no path between the two: what to do depends on where both are.
bool for_its_place(const Error& why) {
  constexpr int kExporterRefused = 524;  // ENOTSUPP of the kernel, which has no name here
  return why.sys_errno == kExporterRefused || why.sys_errno == EPERM;
}

// "cuda:0 is at 0000:1b:00.0 of pci0000:17, mlx5_1 at 0000:ca:00.0 of pci0000:c9: no root complex in common."; empty
// where the machine does not show one of the places.
std::string places(const plan::Memory& memory, const plan::Nic& nic) {
  const plan::Distance apart = plan::distance(memory.place, nic.place);
  if (apart.nearness == plan::Nearness::unknown) return {};
  // Of which NUMA nodes they are is not always said; that nothing below the processors joins them is.
  const bool nothing = apart.nearness == plan::Nearness::numa_node || apart.nearness == plan::Nearness::machine;
  return fmt::format("{} is at {} of {}, {} at {} of {}: {}.", memory.name, memory.place.path.back(),
                     memory.place.path.front(), nic.name, nic.place.path.back(), nic.place.path.front(),
                     nothing ? "no root complex in common" : plan::distance_text(apart));
}

// What a NIC is not even to be asked; empty: it decides. The way was chosen for all of them.
std::string not_for(const exports::NicAbilities& nic, const Reached& exported) {
  if (exported.way() == exports::Way::dmabuf && !nic.imports_fds)
    return fmt::format("{} imports no descriptors", nic.name);
  if (exported.way() == exports::Way::host_pages && exported.claim().sort == STRAIT_SORT_MANAGED && !nic.follows_pages)
    return fmt::format("the memory is managed: it migrates, and {} would keep to pages that it has left", nic.name);
  return {};
}

}  // namespace

std::uint64_t Core::next_number() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

void Core::open_cache() {
  keys::CacheLimits limits;
  limits.entries = static_cast<std::size_t>(options_.integer("cache_entries"));
  limits.bytes = static_cast<std::uint64_t>(options_.integer("cache_bytes"));
  limits.dead_bytes = static_cast<std::uint64_t>(options_.integer("cache_dead_bytes"));
  limits.refusal_ns = options_.duration_ns("cache_refusals");
  // Dropping `keep` deregisters.
  freed_.sleeper = &sleeper_;
  cache_ =
      std::make_unique<keys::Cache>([this](const keys::Allocation& allocation,
                                           std::uint32_t access) { return register_everywhere(allocation, access); },
                                    [](const keys::Registration&) {}, limits);
  if (options_.text("monitor") != "userfaultfd") return;
  auto started =
      keys::Monitor::start([cache = cache_.get()](std::uint64_t address,
                                                  std::uint64_t length) { return cache->try_forget(address, length); },
                           [cache = cache_.get()] { cache->reap(); });
  if (started) {
    monitor_ = std::move(*started);
    host_remembered_ = &counters_.get("host_remembered");
  } else {
    warnings_.push_back("option monitor: " + started.error().text +
                        "; host memory that this Node did not allocate is registered at every share");
  }
}

// What the whole allocation's provider said of it, if that still knows it by the same identity: an address that was
// freed and handed out again has another one. One question to one provider, where classify() asks them all.
std::optional<buffer::Claim> Core::recognised_before(buffer::Range range) {
  LastClaim& last = last_claim;
  if (last.node == number_ && lies_in(range, last.claim.whole) && still_is(last.claim)) {
    claims_remembered_.add();
    return asked_anew(last.claim, range);
  }
  std::optional<buffer::Claim> claim;
  {
    const Locked lock(known_mutex_);
    const auto after = known_.upper_bound(range.address);
    if (after == known_.begin() || !lies_in(range, std::prev(after)->second.whole)) return std::nullopt;
    claim = std::prev(after)->second;
  }
  if (!still_is(*claim)) return std::nullopt;
  claims_remembered_.add();
  last = {number_, *claim};
  return asked_anew(*claim, range);
}

// "This is host memory" is only remembered while the monitor would have told of any change: addresses are used again,
// also by devices. Everything else is asked about anew.
Result<buffer::Claim> Core::recognise(buffer::Range range, std::int64_t& took_ns) {
  if (monitor_ && cache_) {
    monitor_->settle();
    const keys::Allocation known{range.address, range.length_bytes, 0, true, true};
    if (cache_->knows(known, STRAIT_NIC_LOCAL_WRITE)) {
      host_remembered_->add();
      took_ns = 0;  // less than it takes to look at the clock
      return providers_->host_claim(range);
    }
  }
  const std::int64_t before_ns = sys::now_ns();
  if (auto known = recognised_before(range)) {
    took_ns = sys::now_ns() - before_ns;
    return *known;
  }
  auto claim = providers_->classify(range);
  took_ns = sys::now_ns() - before_ns;
  if (claim && claim->identity != 0) {
    const Locked lock(known_mutex_);
    if (known_.size() >= kMostKnown) known_.clear();  // finding out again is no more than what it costs without
    known_.insert_or_assign(claim->whole.address, *claim);
    last_claim = {number_, *claim};
  }
  return claim;
}

// The cache keeps what is registered here until the memory is freed or something newer needs the place; the memory
// keeps its export, so that whatever is shared of it later exports nothing.
Result<Reached::Files> Core::register_early(buffer::Range range) {
  if (rails_.empty()) return fail(Code::unsupported, "this Node has no NIC that memory could be registered with");
  STRAIT_TRY(const buffer::Claim claim, providers_->classify(range));
  Reached::Files files;
  STRAIT_TRY(ExportBook::Shared exported, book_.get(claim, abilities_, exports::Policy{false, settings_.reach}, files));
  keys::Allocation allocation{claim.whole.address, claim.whole.length_bytes, key_identity(claim), true};
  while (exported->way() != exports::Way::staged) {  // which is asked for by name: no NIC is to see it
    const auto lease = acquire(allocation, *exported, STRAIT_NIC_LOCAL_WRITE);
    if (lease) return exported->way() == exports::Way::dmabuf ? files : Reached::Files();
    STRAIT_TRY(exported, next_way(*exported, lease.error(), false, files));
  }
  return Reached::Files();
}

// By its address or by a descriptor: two registrations, of which one may be refused and remembered as such.
Result<keys::Lease> Core::acquire(keys::Allocation allocation, Reached& exported, std::uint32_t access) {
  allocation.told = &exported;
  return cache_->acquire(allocation,
                         access | (exported.by_device_address() ? std::uint32_t{STRAIT_NIC_DEVICE_ADDRESS} : 0u));
}

// Which way works is known for certain only when the NIC has been asked. What it will not register one way may be
// reached by the next, unless a way was asked for by name; what it said is kept with what is tried then.
Result<ExportBook::Shared> Core::next_way(const Reached& refused, const Error& why, bool may_stage,
                                          Reached::Files& files) {
  if (passes(why) || settings_.reach != exports::Reach::automatic || refused.way() == exports::Way::host_pages ||
      refused.claim().provider == nullptr)
    return why;
  exports::Policy policy{may_stage, settings_.reach, refused.refused()};
  policy.refused.push_back({refused.way(), cause_of(why)});
  files.reset();
  auto next = book_.find_out(refused.claim(), abilities_, policy, files);
  if (next) {
    counters_.get("reach_fallbacks").add();
    log_.write(Level::info, "memory of {}: {} is not taken ({}), {} is tried", refused.claim().device->name,
               exports::way_name(refused.way()), cause_of(why), exports::way_name((*next)->way()));
    return next;
  }
  Error all = next.error();
  all.code = why.code;
  all.sys_errno = why.sys_errno;
  if (!why.remedy.empty()) all.remedy = why.remedy;
  return all;
}

// Only memory of no file: of shared memory the kernel does not tell in every case (shmdt).
bool Core::watch_host(const keys::Allocation& allocation) {
  return address_space_.look(allocation.base, allocation.length_bytes).anonymous &&
         monitor_->watch(allocation.base, allocation.length_bytes).has_value();
}

Result<std::vector<rail::MemoryKey>> Core::register_with_all(Reached& exported, const rail::MemoryRequest& request,
                                                             bool* passing) {
  std::vector<rail::MemoryKey> made(rails_.size());
  std::optional<Error> first;
  bool some = false;
  for (std::size_t i = 0; i < rails_.size(); ++i) {
    const std::string never = not_for(rails_[i].abilities, exported);
    auto key = never.empty() ? rails_[i].nic->register_memory(request)
                             : Result<rail::MemoryKey>(fail(Code::unsupported, "{}", never));
    if (key) {
      made[i] = std::move(*key);
      some = true;
      continue;
    }
    Error why = key.error();
    if (for_its_place(why) && exported.claim().device != nullptr) {
      std::string said = places(record_of(*exported.claim().device), record_of(rails_[i]));
      if (!said.empty()) why.remedy = why.remedy.empty() ? std::move(said) : said + " " + why.remedy;
    }
    exported.note_refusal(i, cause_of(why));
    if (passing != nullptr) *passing |= passes(why) || why.code == Code::limit;
    if (!first) first = std::move(why);
  }
  if (!some) return *first;
  return made;
}

// The descriptors are closed when this returns, unless somebody else is registering with them.
Result<keys::Registration> Core::register_everywhere(const keys::Allocation& allocation, std::uint32_t access) {
  const ExportBook::Shared exported = static_cast<Reached*>(allocation.told)->shared_from_this();
  STRAIT_TRY(const Reached::Files files, exported->open());
  rail::MemoryRequest request;
  request.address = allocation.base;
  request.length_bytes = allocation.length_bytes;
  request.access = access;
  if (files) {
    request.fd = files->fd.fd();
    request.fd_offset = files->fd.offset();
    request.port = exported->port();
    if (files->pages.valid()) {
      request.pages_fd = files->pages.fd();
      request.pages_offset = files->pages.offset();
    }
    if (exported->way() == exports::Way::host_pages) request.access |= STRAIT_NIC_CPU_ADDRESS;
  }
  struct Kept {
    ExportBook::Shared exported;  // who shares it again need not find out how it is reached
    std::vector<rail::MemoryKey> keys;
    FreeWatch watch;
  };
  keys::Registration made;
  // Before the NIC is asked: what happens to the memory from here on is known.
  const std::shared_ptr<Kept> kept(new Kept{exported, {}, FreeWatch(exported->claim(), cache_.get(), &freed_)});
  if (allocation.monitored) made.once = !watch_host(allocation);
  bool passing = false;
  STRAIT_TRY(kept->keys, register_with_all(*exported, request, &passing));
  made.once |= passing;  // the next one to share it asks that NIC again
  for (std::size_t i = 0; i < rails_.size(); ++i) {
    const rail::MemoryKey& key = kept->keys[i];
    made.rails[i] = key.valid() ? keys::RailKeys{key.lkey(), key.rkey()} : keys::RailKeys{kNoKey, kNoKey};
  }
  made.keep = kept;
  return made;
}

}  // namespace strait::node
