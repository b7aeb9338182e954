// SPDX-License-Identifier: Apache-2.0
// Fuzz target: the record of a machine, as a peer sends it, and plans made with it.
#include <string_view>

#include "plan/record.hpp"
#include "require.hpp"

using strait::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace plan = strait::plan;
  const auto machine = plan::from_record({reinterpret_cast<const char*>(data), size});
  if (!machine) {
    require(machine.error().code == strait::Code::invalid && !machine.error().text.empty(), "a refusal says why");
    return 0;
  }
  const std::string again = plan::to_record(*machine);
  const auto second = plan::from_record(again);
  require(second && plan::to_record(*second) == again, "what is accepted is written the same");
  if (machine->memories.empty()) return 0;
  const plan::Memory& from = machine->memories.front();
  plan::Peer peer{"peer", plan::Reach::other_host, false, {}, machine->memories.back(), false, machine->nics};
  const auto made = plan::make_plan(from, machine->nics, peer, {}, {}, machine->rank_of(from));
  for (const plan::Way& way : made.ways) require(!way.reason.empty(), "every way has its reason");
  require(!plan::to_text(made).empty(), "a plan can be shown");
  return 0;
}
