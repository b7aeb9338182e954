// SPDX-License-Identifier: Apache-2.0
// Two processes connected by libstrait, through its public API alone: what strait_transfer and strait_operations share.
//
// Options: [memory=host|malloc|soft:0] [signal_every=N] [depth=N] [lane=own|peer] [lanes=N] [carrier=grant|roce]
// [mtu=N]
//          [faults=SPEC] [grant=auto|map|copy|ring]
//
// Both sides drive their own engine (progress=caller). lane=peer: both use the lane that every connection has, which
// takes a lock and lets acknowledgements ride on answers; lane=own: each opens one, which takes none.
#pragma once

#include <strait/strait.hpp>

#include <chrono>
#include <memory>

#include "workload.hpp"

namespace bench {

// Memory of one region: from the Node (host or accelerator), or the application's own.
struct Buffer {
  Buffer(strait::Node& node, const std::string& kind, std::uint64_t length) {
    if (kind == "malloc") {
      own.reset(static_cast<std::uint8_t*>(std::aligned_alloc(4096, (length + 4095) / 4096 * 4096)));
      if (!own) give_up("out of memory");
      address = cpu = own.get();
    } else {
      memory = std::make_unique<strait::Memory>(node.allocate(length, {.near = kind}).value());
      address = static_cast<std::uint8_t*>(memory->data());
      if (kind == "host") cpu = address;
    }
  }
  struct Free {
    void operator()(std::uint8_t* bytes) const { std::free(bytes); }
  };
  std::unique_ptr<std::uint8_t, Free> own;
  std::unique_ptr<strait::Memory> memory;
  std::uint8_t* address = nullptr;
  std::uint8_t* cpu = nullptr;  // null: only the device's copies reach it
};

class StraitTransport {
 public:
  StraitTransport(const Workload& w, Meeting* meeting, int side)
      : workload_(w), node_(strait::Node::open({.settings = settings_of(w)}).value()), ops_(2 * (w.window_mask + 1)) {
    const std::string kind = w.option("memory", "host");
    const std::vector<std::uint8_t> zeros(w.region_bytes);
    for (std::uint32_t r = 0; r < w.regions; ++r) {
      sources_.emplace_back(node_, kind, w.region_bytes);
      targets_.emplace_back(node_, kind, w.region_bytes);
      node_.copy(targets_[r].address, zeros.data(), w.region_bytes).value();
      from_.push_back(node_.share(sources_[r].address, w.region_bytes, strait::access::local).value());
      into_.push_back(node_.share(targets_[r].address, w.region_bytes, rights_of(w.test)).value());
      published_.push_back(node_.publish("bench/" + std::to_string(r), into_[r]).value());
    }
    if (w.test != Test::rate && w.test != Test::bandwidth && targets_[0].cpu == nullptr)
      give_up("the CPU cannot look at a word in " + kind);
    std::snprintf(meeting->name[side], sizeof meeting->name[side], "%s", node_.address().c_str());
    meet(meeting, side);
    connect(meeting, side);
    for (std::uint32_t r = 0; r < w.regions; ++r) remote_.push_back(look_up(r));
    const auto depth = static_cast<std::uint32_t>(std::stoul(w.option("depth", "256")));
    const auto every = static_cast<std::uint32_t>(std::stoul(w.option("signal_every", "1")));
    // A message arrives at the lane that its own is connected to: of those that both sides hold, there is one.
    const bool message = w.test == Test::send_latency || w.test == Test::send_bandwidth;
    if (w.option("lane", message ? "peer" : "own") == "own") {
      lane_ = std::make_unique<strait::Lane>(peer_->lane(depth, std::chrono::seconds(10), every).value());
      raw_ = lane_->raw();
    } else {
      raw_ = strait_peer_lane(raw_peer_);
    }
    // More of them, used in turn; only the initiator posts on them.
    const auto lanes = side == 0 ? std::stoul(w.option("lanes", "1")) : 1;
    for (std::size_t i = 1; i < lanes; ++i)
      lanes_.push_back(peer_->lane(depth, std::chrono::seconds(10), every).value());
    meet(meeting, side);
  }

  void post(Place from, Place to) {
    const strait_slice slice{from_[from.region].raw(), from.offset, workload_.size_bytes};
    const strait_target& target = remote_[to.region].raw();
    strait_op& op = ops_[posted_ & (ops_.size() - 1)];
    strait_lane* lane = raw_;
    if (!lanes_.empty()) {
      if (const std::size_t turn = posted_ % (lanes_.size() + 1); turn != 0) lane = lanes_[turn - 1].raw();
    }
    for (;;) {
      const std::int32_t code = strait_put(lane, &slice, &target, to.offset, nullptr, &op, &error_);
      if (code == STRAIT_OK) break;
      if (code != STRAIT_AGAIN || posted_ == reaped_) give_up(std::string("put: ") + error_.text);
      reap_one();
    }
    ++posted_;
  }
  void progress() { strait_node_poll(node_.raw()); }
  void reap_down_to(std::uint32_t n) {
    while (posted_ - reaped_ > n) reap_one();
  }
  std::uint8_t* source(std::uint32_t r) { return sources_[r].cpu; }
  std::uint8_t* target(std::uint32_t r) { return targets_[r].cpu; }
  void load_source(std::uint32_t r, const std::uint8_t* bytes) {
    node_.copy(sources_[r].address, bytes, workload_.region_bytes).value();
  }
  void read_target(std::uint32_t r, std::uint8_t* bytes) {
    node_.copy(bytes, targets_[r].address, workload_.region_bytes).value();
  }
  std::string path() { return strait_lane_path(raw_); }

  // For operations other than puts.
  strait_lane* lane() { return raw_; }
  strait_slice source_slice(Place at) { return {from_[at.region].raw(), at.offset, workload_.size_bytes}; }
  strait_slice target_slice(Place at) { return {into_[at.region].raw(), at.offset, workload_.size_bytes}; }
  const strait_target& remote(std::uint32_t r) { return remote_[r].raw(); }

 private:
  static std::vector<std::pair<std::string, std::string>> settings_of(const Workload& w) {
    std::vector<std::pair<std::string, std::string>> settings = {{"progress", "caller"},
                                                                 {"carrier", w.option("carrier", "auto")},
                                                                 {"roce_mtu", w.option("mtu", "0")},
                                                                 {"faults", w.option("faults", "")}};
    if (const std::string grant = w.option("grant", ""); !grant.empty()) settings.emplace_back("grant", grant);
    return settings;
  }
  static strait::access::Access rights_of(Test test) {
    if (test == Test::get) return strait::access::remote_read;
    if (test == Test::fetch_add) return strait::access::remote_atomic;
    return strait::access::remote_write;
  }

  void reap_one() {
    strait_op& op = ops_[reaped_++ & (ops_.size() - 1)];
    if ((op.id & STRAIT_OP_COMPLETE) != 0) return;  // as the call that posted it said
    strait_done done;
    done.struct_size = sizeof done;
    const std::int32_t code = strait_wait(&op, 10'000'000'000, &done, &error_);
    if (code != STRAIT_OK) give_up(std::string("wait: ") + error_.text);
  }

  // One connection serves both directions.
  void connect(Meeting* meeting, int side) {
    const std::int32_t code = side == 0
                                  ? strait_connect(node_.raw(), meeting->name[1], 10'000'000'000, &raw_peer_, &error_)
                                  : strait_accept(node_.raw(), 10'000'000'000, &raw_peer_, &error_);
    if (code != STRAIT_OK) give_up(std::string("connect: ") + error_.text);
    peer_ = std::make_unique<strait::Peer>(raw_peer_);
  }
  strait::Target look_up(std::uint32_t r) {
    return peer_->lookup("bench/" + std::to_string(r), std::chrono::seconds(10)).value();
  }

  const Workload& workload_;
  strait::Node node_;
  std::vector<Buffer> sources_, targets_;
  std::vector<strait::Region> from_, into_;
  std::vector<strait::Published> published_;
  std::unique_ptr<strait::Peer> peer_;
  strait_peer* raw_peer_ = nullptr;
  std::vector<strait::Target> remote_;
  std::unique_ptr<strait::Lane> lane_;
  std::vector<strait::Lane> lanes_;
  strait_lane* raw_ = nullptr;
  std::vector<strait_op> ops_;  // a power of two
  std::uint64_t posted_ = 0;
  std::uint64_t reaped_ = 0;
  strait_error error_{
      .struct_size = sizeof(strait_error), .code = 0, .sys_errno = 0, .syndrome = 0, .text = {}, .remedy = {}};
};

}  // namespace bench
