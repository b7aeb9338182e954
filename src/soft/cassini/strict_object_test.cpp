// SPDX-License-Identifier: Apache-2.0
// Strict, objects: what is freed or unmapped while something still needs it, and the same in the right order.
#include <gtest/gtest.h>

#include "soft/cassini/strict_testing.hpp"

namespace strait::soft::cassini {
namespace {

using testing::Watched;

// Arms a trigger of the program's counting queue.
void arm(Watched& it, wire::CtOp op, std::uint32_t watched, std::uint32_t acted, std::uint64_t threshold) {
  struct Slot : wire::CmdWords<8> {
  } slot{};
  wire::CtCmd command{};
  command.set_header(wire::CmdType::ct, wire::CmdSize::b64, op);
  command.set_ct(acted);
  command.set_trig_ct(watched);
  command.set_threshold(threshold);
  command.set_ct_success(1);
  command.set_with_success(true);
  std::memcpy(&slot, &command, sizeof command);
  it.program.counting.emit(slot);
  it.program.counting.announce();
  it.drive(40);
}

void cancel(Watched& it, std::uint32_t ct) {
  arm(it, wire::CtOp::cancel, 0, ct, 0);
}

int unmap(Watched& it, const wire::Md& md) {
  return it.program.client.free<wire::AtuUnmapCmd>(md.id);
}

TEST(CassiniStrictObject, ACounterThatIsFreedUnderItsTriggers) {
  for (const bool right : {false, true}) {
    Watched it;
    const std::uint32_t ct = it.program.client.ct(it.program.lni).ctn;
    arm(it, wire::CtOp::trig_inc, ct, it.program.ct, 10);
    if (right) cancel(it, ct);
    EXPECT_EQ(it.program.client.free<wire::CtFreeCmd>(ct), 0);
    EXPECT_EQ(it.rules(), right ? "" : "counter-freed-in-use");
  }
}

TEST(CassiniStrictObject, WhoOnlyWaitsForACounterMayFreeIt) {
  Watched it;
  const std::uint32_t ct = it.program.client.ct(it.program.lni).ctn;
  arm(it, wire::CtOp::trig_event, ct, 0, 10);  // stores the counter then, and tells no queue
  ASSERT_EQ(it.program.client.client->card().counters.find(ct)->triggers.size(), 1u);
  EXPECT_EQ(it.program.client.free<wire::CtFreeCmd>(ct), 0);
  EXPECT_EQ(it.rules(), "");
}

TEST(CassiniStrictObject, ACounterThatIsFreedBeforeATriggerActsOnIt) {
  for (const bool right : {false, true}) {
    Watched it;
    const std::uint32_t ct = it.program.client.ct(it.program.lni).ctn;
    arm(it, wire::CtOp::trig_inc, it.program.ct, ct, 1);
    if (!right) {
      EXPECT_EQ(it.program.client.free<wire::CtFreeCmd>(ct), 0);
    }
    it.program.client.client->card().count(it.program.counter(), 1, 0);
    it.drive(4);
    if (right) {
      EXPECT_EQ(it.program.client.free<wire::CtFreeCmd>(ct), 0);
    }
    const auto found = it.findings();
    ASSERT_EQ(found.size(), right ? 0u : 1u);
    if (right) continue;
    EXPECT_EQ(found[0].rule, Rule::counter_freed_in_use);
    EXPECT_EQ(found[0].number, ct);
  }
}

TEST(CassiniStrictObject, MemoryThatIsUnmappedUnderAListEntry) {
  for (const bool right : {false, true}) {
    Watched it;
    it.open_target();
    if (right) {
      wire::TargetCmd unlink{};
      unlink.set_header(wire::CmdType::cq, wire::CmdSize::b64, wire::TargetOp::unlink);
      unlink.set_ptlte_index(it.pte);
      unlink.set_ptl_list(wire::PtlList::priority);
      it.program.append(unlink);
      it.drive(4);
    }
    EXPECT_EQ(unmap(it, it.program.md), 0);
    const auto found = it.findings();
    ASSERT_EQ(found.size(), right ? 0u : 1u);
    if (right) continue;
    EXPECT_EQ(found[0].rule, Rule::unmapped_in_use);
    EXPECT_EQ(found[0].number, it.program.md.id);
    EXPECT_NE(found[0].what.find(fmt::format("of portal {}", it.pte)), std::string::npos) << found[0].what;
  }
}

TEST(CassiniStrictObject, MemoryThatIsUnmappedUnderCommandsAndTriggers) {
  Watched it;
  it.open_target();
  testing::Pages pages(1);
  const wire::Md md = it.program.client.map_memory(it.program.lni, pages.data(), pages.size());
  const wire::Md other = it.program.client.map_memory(it.program.lni, pages.data(), pages.size());
  auto command = it.put();
  command.set_local_addr(md.iova);
  it.ring_many(200, command);
  it.fabric.drive();  // most of them wait
  EXPECT_EQ(unmap(it, md), 0);
  it.drive();
  EXPECT_EQ(it.rules(), "unmapped-in-use used-after-unmap");

  std::array<std::uint64_t, 16> slot{};
  wire::CtCmd trigger{};
  trigger.set_header(wire::CmdType::ct, wire::CmdSize::b128, wire::CtOp::trig_dma);
  trigger.set_trig_ct(it.program.ct);
  trigger.set_threshold(1'000'000);
  std::memcpy(slot.data(), &trigger, sizeof trigger);
  command.set_local_addr(other.iova);
  std::memcpy(slot.data() + wire::kEmbeddedDmaOffset / 8, &command, sizeof command);
  it.program.counting.emit_bytes(slot.data(), sizeof slot, 128);
  it.program.counting.announce();
  it.drive(40);
  EXPECT_EQ(unmap(it, other), 0);
  const auto found = it.findings();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].what.find("a trigger that waits for 1000000"), std::string::npos) << found[0].what;
}

TEST(CassiniStrictObject, MemoryThatIsUsedAfterItWasUnmapped) {
  Watched it;
  it.open_target();
  testing::Pages pages(1);
  const wire::Md md = it.program.client.map_memory(it.program.lni, pages.data(), pages.size());
  auto command = it.put();
  command.set_local_addr(md.iova);
  it.program.send(command);
  it.drive(40);
  EXPECT_EQ(unmap(it, md), 0);
  EXPECT_EQ(it.rules(), "") << "it was complete";
  it.program.send(command);
  it.drive(40);
  const auto found = it.findings();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rule, Rule::used_after_unmap);
  EXPECT_EQ(found[0].thing, Thing::transmit_queue);

  // A peer's put is the owner's mistake, too, when the entry is left behind.
  it.program.append(it.program.entry(it.pte, wire::PtlList::overflow, 0, 64));
  wire::TargetCmd stale = it.program.entry(it.program.portal(1), wire::PtlList::priority, 0, 64);
  it.drive(4);
  stale.set_start(md.iova);
  it.program.append(stale);
  it.drive(4);
  const auto again = it.findings();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].rule, Rule::used_after_unmap);
  EXPECT_EQ(again[0].thing, Thing::portal);
}

TEST(CassiniStrictObject, AddressesThatNeverWereAreNoBusinessOfItsOwn) {
  Watched it;
  it.open_target();
  auto command = it.put();
  command.set_local_addr(it.program.md.iova + it.program.md.len + (std::uint64_t{1} << 30));
  it.program.send(command);
  it.drive(40);
  EXPECT_EQ(it.program.counter().failure, 1u) << "the program is told by the card";
  EXPECT_EQ(it.rules(), "");
}

TEST(CassiniStrictObject, AnEntryThatIsLongerThanItsMemory) {
  Watched it;
  const std::uint64_t all = it.program.md.len;
  const std::uint32_t pte = it.program.portal(0);
  it.drive(4);
  it.program.append(it.program.entry(pte, wire::PtlList::priority, 0, all));
  it.program.append(it.program.entry(pte, wire::PtlList::priority, all - 1, 1));
  // One that takes all of an address space, whatever is mapped there: how rendezvous buffers are offered.
  wire::TargetCmd whole = it.program.entry(pte, wire::PtlList::priority, 0, (std::uint64_t{1} << 56) - 1);
  it.program.append(whole);
  whole.set_start(0);
  it.program.append(whole);
  it.drive(4);
  EXPECT_EQ(it.rules(), "");
  it.program.append(it.program.entry(pte, wire::PtlList::priority, 64, all));
  it.drive(4);
  EXPECT_EQ(it.rules(), "entry-beyond-memory");
}

TEST(CassiniStrictObject, AProfileThatIsFreedUnderAQueue) {
  for (const bool right : {false, true}) {
    Watched it;
    const auto cp = it.program.client.cp(it.program.lni, testing::Neighbour::kVni, wire::CpType::non_triggered);
    ASSERT_NE(cp.lcid, 0u);
    const std::uint32_t cq = it.program.client.cq(it.program.lni, wire::kCqIsTx, cp.lcid).cq;
    if (right) {
      EXPECT_EQ(it.program.client.free<wire::CqFreeCmd>(cq), 0);
    }
    EXPECT_EQ(it.program.client.free<wire::CpFreeCmd>(cp.cp_hndl), 0);
    EXPECT_EQ(it.rules(), right ? "" : "profile-freed-in-use");
  }
}

TEST(CassiniStrictObject, WhoEndsWithoutFreeingAnythingIsNotBlamed) {
  Fabric fabric{1};
  Counter& findings = fabric.card(0)->numbers.get("strict_findings");
  {
    testing::Neighbour program(*fabric.card(0), 1, 5, wire::kDefaultService, testing::kUser,
                               {.strict = true, .faults = {}});
    program.append(program.entry(program.portal(0), wire::PtlList::priority, 0, 64));
    for (int i = 0; i < 100; ++i) fabric.drive();
  }
  EXPECT_EQ(findings.load(), 0u);
}

}  // namespace
}  // namespace strait::soft::cassini
