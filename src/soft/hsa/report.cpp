// SPDX-License-Identifier: Apache-2.0
#include "soft/hsa/report.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

#include "soft/host/report.hpp"
#include "sys/fork.hpp"

namespace strait::soft::hsa {
namespace {

struct Reported {
  std::mutex mutex;
  sys::ForkMark mark;
  std::map<std::string, std::uint64_t> unsupported;
  Left before;  // of runtimes that ended
  Left now;
};

Reported& reported() {
  static auto* one = new Reported;
  return *one;
}

void leave_locked(const Reported& all) {
  const char* const root = std::getenv("STRAIT_HOST_ROOT");
  if (root == nullptr || all.mark.in_child()) return;
  std::string text;
  for (const auto& [name, count] : all.unsupported) text += fmt::format("unsupported.{}={},", name, count);
  text += fmt::format(
      "accel.unfreed={},accel.unfreed_bytes={},accel.held_by_fds={},accel.held_by_fds_bytes={},accel.processes=1",
      all.before.allocations + all.now.allocations, all.before.bytes + all.now.bytes, all.before.held + all.now.held,
      all.before.held_bytes + all.now.held_bytes);
  host::leave_report(root, "rocm", text);
}

}  // namespace

void count_unsupported(const char* name) {
  const std::lock_guard lock(reported().mutex);
  ++reported().unsupported[name];
  leave_locked(reported());  // at once: whoever calls what is not there may not come to a proper end
}

void report_left(const Left& left, bool closed) {
  Reported& all = reported();
  const std::lock_guard lock(all.mutex);
  all.now = closed ? Left{} : left;
  if (closed) {
    all.before.allocations += left.allocations;
    all.before.bytes += left.bytes;
    all.before.held += left.held;
    all.before.held_bytes += left.held_bytes;
  }
  leave_locked(all);
}

}  // namespace strait::soft::hsa
