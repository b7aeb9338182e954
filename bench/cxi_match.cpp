// SPDX-License-Identifier: Apache-2.0
// What it costs the software Cassini to find a list entry: 8-byte puts to a matching portal with 1, 1000 and 16384
// entries, the whole command included. No other process takes part.
//
//   cxi_match [PUTS]
//
// Positions: the entry that matches is the first, the last, or any. Entries differ in their match bits ("exact"), or
// each ignores some of them ("masked"), so that no index over exact bits helps.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "soft/cassini/card.hpp"
#include "soft/cassini/client.hpp"
#include "sys/mapping.hpp"

namespace {

namespace cassini = strait::soft::cassini;
namespace sys = strait::sys;
namespace w = strait::wire::cxi;

[[noreturn]] void give_up(const char* sentence) {
  std::fprintf(stderr, "cxi_match: %s\n", sentence);
  std::exit(1);
}

// This process's memory as it is: nobody else chooses addresses here.
class Own final : public cassini::UserMemory {
 public:
  bool read(std::uint64_t address, void* into, std::size_t bytes) override {
    std::memcpy(into, direct(address, bytes), bytes);
    return true;
  }
  bool write(std::uint64_t address, const void* from, std::size_t bytes) override {
    std::memcpy(direct(address, bytes), from, bytes);
    return true;
  }
  bool reaches(std::uint64_t, std::uint64_t, bool) override { return true; }
  std::byte* direct(std::uint64_t address, std::uint64_t) override { return reinterpret_cast<std::byte*>(address); }
};

class NoFiles final : public cassini::CommandFiles {
 public:
  int dmabuf(int, std::uint64_t, std::uint64_t, std::unique_ptr<cassini::UserMemory>&) override { return EBADF; }
  int device_pages(std::uint64_t, std::uint64_t, std::unique_ptr<cassini::UserMemory>&) override { return EOPNOTSUPP; }
};

class Host final : public cassini::ClientHost {
 public:
  void raise(std::uint32_t) override {}
};

struct Ring {
  std::uint32_t blocks = 0;
  std::uint32_t at = w::kFirstBlock;
  sys::Mapping ring, launch;
  template <class Command>
  void emit(const Command& command) {
    static_assert(sizeof command == w::kBlockBytes);
    std::memcpy(ring.data() + std::uint64_t{at} * w::kBlockBytes, &command, sizeof command);
    at = at + 1 == blocks ? w::kFirstBlock : at + 1;
  }
  void announce() const {
    __atomic_store_n(reinterpret_cast<std::uint64_t*>(launch.data()), std::uint64_t{at}, __ATOMIC_RELEASE);
  }
};

constexpr std::uint32_t kVni = 1, kPid = 5;
constexpr std::uint64_t kBytes = 1 << 20;

class Rig {
 public:
  Rig() {
    auto pages = sys::make_sealed_memfd("cxi_match", cassini::Client::kPagesBytes);
    auto memory = sys::map_anonymous(kBytes, sys::Protect::read_write);
    if (!pages || !memory) give_up("no memory");
    pages_ = pages->get();
    memory_ = std::move(*memory);
    client_ = std::make_unique<cassini::Client>(*fabric_.card(0), 1, cassini::Who{.uid = 1000, .gid = 1000, .netns = 1},
                                                own_, std::move(*pages), host_);
    w::LniAllocCmd lni{};
    lni.svc_id = w::kDefaultService;
    lni_ = ask<w::LniAllocResp>(lni).lni;
    w::CpAllocCmd cp{};
    cp.lni = lni_, cp.vni = kVni, cp.tc = w::TrafficClass::best_effort;
    lcid_ = ask<w::CpAllocResp>(cp).lcid;
    w::DomainAllocCmd domain{};
    domain.lni = lni_, domain.vni = kVni, domain.pid = kPid;
    domain_ = ask<w::DomainAllocResp>(domain).domain;
    w::AtuMapCmd map{};
    map.lni = lni_, map.va = reinterpret_cast<std::uint64_t>(memory_.data()), map.len = kBytes;
    map.flags = w::kMapPin | w::kMapRead | w::kMapWrite;
    md_ = ask<w::AtuMapResp>(map).md;
    transmit_ = queue(w::kCqIsTx);
    target_ = queue(0);
    w::CtAllocCmd ct{};
    ct.lni = lni_;
    ct_ = ask<w::CtAllocResp>(ct).ctn;
  }

  // A portal with `entries` of them. The one of match bits n lies at n * 8 of the memory.
  void portal(std::uint32_t index, std::uint32_t entries, bool masked) {
    w::PteAllocCmd alloc{};
    alloc.lni_hndl = lni_, alloc.opts = w::kPteIsMatching;
    const std::uint32_t pte = ask<w::PteAllocResp>(alloc).pte_number;
    w::PteMapCmd map{};
    map.pte_number = pte, map.domain_hndl = domain_, map.pid_offset = index;
    (void)ask<w::PteMapResp>(map);
    w::SetStateCmd enable{};
    enable.set_header(w::CmdType::cq, w::CmdSize::b64, w::TargetOp::set_state);
    enable.set_ptlte_index(pte);
    enable.set_ptlte_state(w::PteState::enabled);
    enable.set_drop_count(0xffffff);
    target_.emit(enable);
    for (std::uint32_t n = 0; n < entries; ++n) {
      w::TargetCmd c{};
      c.set_header(w::CmdType::cq, w::CmdSize::b64, w::TargetOp::append);
      c.set_ptlte_index(pte);
      c.set_ptl_list(w::PtlList::priority);
      c.set_flags(w::kLeOpPut);
      c.set_match_id(w::kMatchAnyone);
      c.set_match_bits(n);
      if (masked) c.set_ignore_bits(std::uint64_t{1} << (32 + n % 24));
      c.set_lac(md_.lac);
      c.set_start(md_.iova + n * 8);
      c.set_length(8);
      target_.emit(c);
      if (n % 256 == 255 || n + 1 == entries) {
        target_.announce();
        rest();
      }
    }
  }
  // Nanoseconds of one put whose match bits `which` names; the fastest and the middle of 15 rounds.
  template <class Which>
  std::pair<double, double> measure(std::uint32_t index, std::uint32_t puts, Which which) {
    std::vector<double> rounds;
    for (int round = 0; round < 15; ++round) {
      const std::uint64_t before = success();
      double spent = 0;
      for (std::uint32_t done = 0; done < puts;) {
        const std::uint32_t batch = std::min(puts - done, 512u);
        for (std::uint32_t i = 0; i < batch; ++i) {
          w::FullDmaCmd c{};
          c.set_header(w::CmdType::dma, w::CmdSize::b64, w::DmaOp::put);
          c.set_dfa(w::unicast_dfa(fabric_.card(0)->settings().nid, w::endpoint_of(kPid, w::kMaxPidBits, index)));
          c.set_index_ext(w::index_ext_of(index));
          c.set_lac(md_.lac);
          c.set_local_addr(md_.iova + kBytes / 2);
          c.set_request_len(8);
          c.set_match_bits(which());
          c.set_ct(ct_);
          c.set_flags(w::kEventCtAck | w::kEventSuccessDisable);
          transmit_.emit(c);
        }
        transmit_.announce();
        const auto start = std::chrono::steady_clock::now();
        rest();
        spent += std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
        done += batch;
      }
      if (success() != before + puts) give_up("a put did not find its entry");
      rounds.push_back(spent / puts);
    }
    std::sort(rounds.begin(), rounds.end());
    return {rounds.front(), rounds[rounds.size() / 2]};
  }

 private:
  std::uint64_t success() { return fabric_.card(0)->counters.find(ct_)->success; }
  void rest() {
    while (fabric_.drive() != 0) {
    }
  }
  template <class Response, class Command>
  Response ask(Command command) {
    Response response{};
    command.op = Command::kOp;
    command.resp = reinterpret_cast<std::uint64_t>(&response);
    if (client_->write(std::as_bytes(std::span(&command, 1)), files_) < 0) give_up("the device refuses an object");
    return response;
  }
  Ring queue(std::uint32_t flags) {
    w::CqAllocCmd c{};
    c.lni = lni_, c.opts.count = 1024, c.opts.flags = flags, c.opts.lcid = lcid_;
    const auto made = ask<w::CqAllocResp>(c);
    Ring ring;
    ring.blocks = made.count;
    ring.ring = page(made.cmds);
    ring.launch = page(made.wp_addr);
    return ring;
  }
  sys::Mapping page(const w::MmInfo& info) {
    auto mapped = client_->map(info.offset, info.size) == 0
                      ? sys::map_file(pages_, info.offset, info.size, sys::Protect::read_write)
                      : strait::Result<sys::Mapping>(sys::Mapping{});
    if (!mapped || !mapped->valid()) give_up("a page cannot be mapped");
    return std::move(*mapped);
  }

  Own own_;
  NoFiles files_;
  Host host_;
  sys::Mapping memory_;
  cassini::Fabric fabric_{1};
  std::unique_ptr<cassini::Client> client_;
  int pages_ = -1;
  std::uint32_t lni_ = 0, lcid_ = 0, domain_ = 0, ct_ = 0;
  w::Md md_{};
  Ring transmit_, target_;
};

}  // namespace

int main(int argc, char** argv) {
  const std::uint32_t puts = argc > 1 ? static_cast<std::uint32_t>(std::atoi(argv[1])) : 2048;
  std::printf("%8s %-7s %-6s %12s %12s %14s\n", "entries", "bits", "where", "ns, fastest", "ns, middle",
              "ns per entry");
  for (const bool masked : {false, true}) {
    Rig rig;
    double one = 0;
    std::uint32_t index = 1;
    for (const std::uint32_t entries : {1u, 1000u, 16384u}) {
      rig.portal(++index, entries, masked);
      std::uint64_t state = 88172645463325252;
      const auto any = [&] {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        return (state >> 32) * entries >> 32;
      };
      const auto say = [&](const char* where, std::pair<double, double> took, double passed) {
        std::printf("%8u %-7s %-6s %12.1f %12.1f", entries, masked ? "masked" : "exact", where, took.first,
                    took.second);
        if (passed > 0) std::printf(" %14.2f", (took.second - one) / passed);
        std::printf("\n");
      };
      const auto first = rig.measure(index, puts, [] { return std::uint64_t{0}; });
      if (entries == 1) one = first.second;
      say("first", first, 0);
      if (entries == 1) continue;
      say("last", rig.measure(index, puts, [&] { return std::uint64_t{entries - 1}; }), entries - 1);
      say("any", rig.measure(index, puts, any), (entries - 1) / 2.0);
    }
  }
  return 0;
}
