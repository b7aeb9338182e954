// SPDX-License-Identifier: Apache-2.0
// The C face of the drivers' table: nothing thrown leaves, and a forked child begins with an empty table of its own:
// the parent's, whose lock may be taken for ever, is left alone.
#include "soft/kernel/driver.h"

#include <atomic>
#include <cerrno>
#include <exception>
#include <memory>

#include "soft/kernel/drivers.hpp"
#include "sys/fork.hpp"

namespace strait::soft::kernel {
namespace {

struct MachineTable {
  explicit MachineTable(const MachineTable* of_the_parent) : parent(of_the_parent) {}
  const MachineTable* parent;  // so that a leak checker sees that it is kept on purpose
  const sys::ForkMark mark;
  Drivers drivers;
};
MachineTable& machine_table() {
  static std::atomic<MachineTable*> table{nullptr};
  MachineTable* now = table.load();
  while (now == nullptr || now->mark.in_child()) {
    auto mine = std::make_unique<MachineTable>(now);
    if (table.compare_exchange_strong(now, mine.get())) now = mine.release();
  }
  return *now;
}

template <class Do>
std::int32_t driver_call(Do call) noexcept {
  try {
    return call(machine_table().drivers);
  } catch (const std::exception&) {
    return -ENOMEM;
  }
}

}  // namespace

Drivers& machine_drivers() {
  return machine_table().drivers;
}

}  // namespace strait::soft::kernel

using strait::soft::kernel::driver_call;
using strait::soft::kernel::Drivers;

#define STRAIT_SOFT_SHOWN __attribute__((visibility("default")))

extern "C" STRAIT_SOFT_SHOWN std::int32_t strait_soft_driver_add(const strait_soft_driver_memory* memory) {
  if (memory == nullptr) return -EINVAL;
  return driver_call([&](Drivers& drivers) { return drivers.add(*memory); });
}

extern "C" STRAIT_SOFT_SHOWN std::int32_t strait_soft_driver_remove(std::uint64_t base, std::uint64_t identity) {
  return driver_call([&](Drivers& drivers) { return drivers.remove(base, identity); });
}

extern "C" STRAIT_SOFT_SHOWN std::int32_t strait_soft_driver_find(std::uint64_t address,
                                                                  strait_soft_driver_memory* out) {
  if (out == nullptr || out->struct_size < sizeof *out) return 0;
  return driver_call([&](Drivers& drivers) {
    const auto found = drivers.find(address);
    if (found) *out = found->said();
    return found ? 1 : 0;
  });
}
