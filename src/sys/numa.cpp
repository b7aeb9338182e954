// SPDX-License-Identifier: Apache-2.0
#include "sys/numa.hpp"

#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>

#include "sys/files.hpp"

namespace strait::sys {
namespace {

constexpr int kMostNodes = 1024;
constexpr std::size_t kWordBits = 8 * sizeof(unsigned long);
using NodeMask = std::array<unsigned long, kMostNodes / kWordBits>;

NodeMask mask_of(int node) {
  NodeMask mask{};
  mask[static_cast<std::size_t>(node) / kWordBits] = 1ul << (static_cast<std::size_t>(node) % kWordBits);
  return mask;
}

Status refused(const char* call, int node) {
  const int why = errno;
  Error error = fail_errno(why, fmt::format("{} for NUMA node {}", call, node));
  if (why == EPERM || why == ENOSYS) error.remedy = "Containers often forbid it: it takes CAP_SYS_NICE there.";
  return error;
}

}  // namespace

const NumaCalls& real_numa_calls() {
  static constexpr NumaCalls kCalls{
      [](void* address, unsigned long length_bytes, int mode, const unsigned long* nodes, unsigned long bits,
         unsigned flags) { return ::syscall(SYS_mbind, address, length_bytes, mode, nodes, bits, flags); },
      [](int* mode, unsigned long* nodes, unsigned long bits) {
        return ::syscall(SYS_get_mempolicy, mode, nodes, bits, nullptr, 0ul);
      },
      [](int mode, const unsigned long* nodes, unsigned long bits) {
        return ::syscall(SYS_set_mempolicy, mode, nodes, bits);
      },
      [] {
        unsigned cpu = 0, node = 0;
        return ::syscall(SYS_getcpu, &cpu, &node, nullptr) == 0 ? static_cast<int>(node) : -1;
      },
      [](const int* cpus, int n_cpus) -> long {
        cpu_set_t allowed, both;
        if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return -1;
        CPU_ZERO(&both);
        for (int i = 0; i < n_cpus; ++i) {
          const auto cpu = static_cast<std::size_t>(cpus[i]);
          if (cpu < CPU_SETSIZE && CPU_ISSET(cpu, &allowed)) CPU_SET(cpu, &both);
        }
        if (CPU_COUNT(&both) != 0) return ::sched_setaffinity(0, sizeof both, &both);
        errno = EINVAL;
        return -1;
      }};
  return kCalls;
}

std::vector<int> parse_numbers(std::string_view text) {
  std::vector<int> all;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    int first = 0;
    auto got = std::from_chars(at, end, first);
    if (got.ec != std::errc() || first < 0) break;
    int last = first;
    if (got.ptr != end && *got.ptr == '-') {
      got = std::from_chars(got.ptr + 1, end, last);
      if (got.ec != std::errc()) break;
    }
    for (int each = first; each <= last && all.size() < 4096; ++each) all.push_back(each);
    at = got.ptr;
    if (at == end || *at != ',') break;
    ++at;
  }
  return all;
}

std::vector<int> numa_nodes(const std::string& sysfs) {
  const std::string with_memory = read_small_file((sysfs + "/devices/system/node/has_memory").c_str());
  return parse_numbers(with_memory);
}

std::vector<int> numa_cpus(const std::string& sysfs, int node) {
  return parse_numbers(read_small_file(fmt::format("{}/devices/system/node/node{}/cpulist", sysfs, node).c_str()));
}

Status prefer_node(void* address, std::size_t length_bytes, int node, const NumaCalls& calls) {
  if (node < 0 || node >= kMostNodes) return fail(Code::invalid, "there is no NUMA node {}", node);
  const NodeMask mask = mask_of(node);
  // The kernel takes one bit less than it is told.
  if (calls.mbind(address, length_bytes, MPOL_PREFERRED, mask.data(), kMostNodes + 1, 0) == 0) return {};
  return refused("mbind", node);
}

Status run_on_cpus(std::span<const int> cpus, const NumaCalls& calls) {
  if (cpus.empty()) return fail(Code::unsupported, "the node has no CPUs");
  if (calls.run_on(cpus.data(), static_cast<int>(cpus.size())) == 0) return {};
  return fail_errno(errno, "sched_setaffinity: this process may use none of the node's CPUs");
}

NodeWish::NodeWish(int node, const NumaCalls& calls) : calls_(calls) {
  if (node < 0 || node >= kMostNodes) return;
  const NodeMask mask = mask_of(node);
  if (calls_.get_mempolicy(&mode_, nodes_, kMostNodes + 1) != 0) {
    status_ = refused("get_mempolicy", node);
  } else if (calls_.set_mempolicy(MPOL_PREFERRED, mask.data(), kMostNodes + 1) != 0) {
    status_ = refused("set_mempolicy", node);
  } else {
    made_ = true;
  }
}

NodeWish::~NodeWish() {
  if (made_) (void)calls_.set_mempolicy(mode_, mode_ == MPOL_DEFAULT ? nullptr : nodes_, kMostNodes + 1);
}

}  // namespace strait::sys
