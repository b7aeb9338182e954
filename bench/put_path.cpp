// SPDX-License-Identifier: Apache-2.0
// The whole way of an 8-byte put through the public API, one step at a time in one thread, so that callgrind can count
// each step: two Nodes, each driven only when it is its turn.
//
//   put_path put|land|ack|wait|poll COUNT    does all of it COUNT times; the name is what the caller wants counted
//
// Steps: strait_put (checks, WQE, doorbell, the software NIC's requester); the owner's strait_node_poll (the software
// NIC's responder: key, bounds and rights checked, bytes landed); its next one, which acknowledges what no message the
// other way has carried; strait_wait (acknowledgement to CQE, reaped). With hardware, what the software NIC does here
// is not the CPU's work.
#include <strait/strait.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace {
using namespace std::chrono_literals;
strait_error problem{
    .struct_size = sizeof(strait_error), .code = 0, .sys_errno = 0, .syndrome = 0, .text = {}, .remedy = {}};
}  // namespace

extern "C" {
[[gnu::noinline]] std::int32_t count_put(strait_lane* lane, const strait_slice* from, const strait_target* to,
                                         std::uint64_t offset, strait_op* op) {
  return strait_put(lane, from, to, offset, nullptr, op, &problem);
}
[[gnu::noinline]] std::int32_t count_land(strait_node* node) {
  return strait_node_poll(node);
}
[[gnu::noinline]] std::int32_t count_ack(strait_node* node) {
  return strait_node_poll(node);
}
[[gnu::noinline]] std::int32_t count_wait(strait_op* op, strait_done* done) {
  return strait_wait(op, 1'000'000'000, done, &problem);
}
// Nothing to do: what a turn of a polling loop costs.
[[gnu::noinline]] std::int32_t count_poll(strait_node* node) {
  return strait_node_poll(node);
}
}

int main(int argc, char** argv) try {
  const std::uint64_t count = argc == 3 ? std::strtoull(argv[2], nullptr, 10) : 0;
  if (count == 0) {
    std::fprintf(stderr, "usage: put_path put|land|ack|wait|poll COUNT\n");
    return 2;
  }
  auto owner = strait::Node::open({.settings = {{"progress", "caller"}, {"grant", "ring"}}}).value();
  auto node = strait::Node::open({.settings = {{"progress", "caller"}, {"grant", "ring"}}}).value();
  auto target_memory = owner.allocate(65536).value();
  auto source_memory = node.allocate(65536).value();
  auto into = owner.share(target_memory, strait::access::remote_write).value();
  auto from = node.share(source_memory, strait::access::local).value();
  auto published = owner.publish("bench/0", into).value();
  auto peer = node.connect(owner.address(), {.deadline = 30s}).value();
  auto target = peer.lookup("bench/0", 30s).value();
  auto lane = peer.lane(256, 30s).value();
  auto* source = static_cast<std::uint64_t*>(source_memory.data());
  auto* landed = static_cast<std::uint64_t*>(target_memory.data());

  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t word = i * 2654435761u % 8192;
    source[word] = ~i;
    const strait_slice slice{from.raw(), word * 8, 8};
    strait_op op{};
    strait_done done{};
    done.struct_size = sizeof done;
    if (count_put(lane.raw(), &slice, &target.raw(), word * 8, &op) != STRAIT_OK) {
      std::fprintf(stderr, "put_path: %s\n", problem.text);
      return 1;
    }
    count_land(owner.raw());
    const bool in_time = __atomic_load_n(&landed[word], __ATOMIC_ACQUIRE) == ~i;
    count_ack(owner.raw());
    if (count_wait(&op, &done) != STRAIT_OK || !in_time) {
      std::fprintf(stderr, "put_path: put %llu: %s\n", static_cast<unsigned long long>(i),
                   in_time ? problem.text : "one poll of the owner did not land it");
      return 1;
    }
    count_poll(owner.raw());
  }
  std::printf("%s\n", lane.path().c_str());
  return 0;
} catch (const strait::Failure& failure) {
  std::fprintf(stderr, "put_path: %s\n", failure.what());
  return 1;
}
