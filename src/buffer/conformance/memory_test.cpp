// SPDX-License-Identifier: Apache-2.0
// Conformance: devices, allocation, recognition, identity, copies.
#include <algorithm>
#include <set>

#include "buffer/conformance/target.hpp"

namespace strait::buffer::conformance {
namespace {

TEST_F(Conformance, EveryDeviceHasANameAndSaysWhatItCanDo) {
  std::set<std::string> names;
  for (const Device& device : provider_->devices()) {
    EXPECT_TRUE(names.insert(device.name).second) << device.name;
    EXPECT_TRUE(device.name.starts_with(provider_->kind())) << device.name;
    EXPECT_FALSE(device.description.empty());
    EXPECT_NE(device.capabilities & STRAIT_CAN_ALLOCATE, 0u) << "this suite needs memory to look at";
    if (!device.pci_address.empty()) {
      EXPECT_EQ(device.pci_address.size(), 12u) << device.pci_address;
      EXPECT_EQ(device.pci_address.find_first_not_of("0123456789abcdef:."), std::string::npos) << device.pci_address;
    }
  }
}

TEST_F(Conformance, OpenedTwiceAndClosedTwiceLeavesNothing) {
  const int before = sys::count_open_fds();
  for (int i = 0; i < 20; ++i) {
    auto other = Provider::open(make_plugin());
    ASSERT_TRUE(other) << other.error().explain();
    EXPECT_EQ((*other)->devices().size(), provider_->devices().size());
    const auto address = (*other)->allocate(0, 4096);
    ASSERT_TRUE(address) << address.error().explain();
    ASSERT_TRUE((*other)->free(*address));
  }
  EXPECT_EQ(sys::count_open_fds(), before);
}

TEST_F(Conformance, RecognisesWhatItAllocated) {
  for (std::uint32_t device = 0; device < provider_->devices().size(); ++device) {
    for (const std::uint64_t length : {1ull, 1000ull, 4096ull, (1ull << 20) + 1}) {
      const std::uint64_t base = memory(length, device);
      for (const std::uint64_t at : {std::uint64_t{0}, length / 2, length - 1}) {
        const auto claim = provider_->classify(base + at);
        ASSERT_TRUE(claim) << length << " bytes, byte " << at;
        EXPECT_EQ(claim->device, device);
        EXPECT_LE(claim->base, base);
        EXPECT_GE(claim->base + claim->length_bytes, base + length);
        EXPECT_NE(claim->sort, static_cast<std::uint32_t>(STRAIT_SORT_UNKNOWN));
        EXPECT_NE(claim->sort, static_cast<std::uint32_t>(STRAIT_SORT_MANAGED)) << "allocate gives memory that stays";
        if (can(STRAIT_CAN_IDENTIFY, device)) {
          EXPECT_NE(claim->identity, 0u);
        }
      }
    }
  }
}

TEST_F(Conformance, OnePastTheEndIsNotItsMemory) {
  const std::uint64_t base = memory(1 << 20);
  const auto inside = provider_->classify(base);
  ASSERT_TRUE(inside);
  const auto behind = provider_->classify(inside->base + inside->length_bytes);
  if (behind) {
    EXPECT_GE(behind->base, inside->base + inside->length_bytes) << "another allocation may follow at once";
  }
}

TEST_F(Conformance, HostMemoryOfOthersIsNotClaimed) {
  int on_the_stack = 0;
  static char in_data[100];
  const std::vector<char> on_the_heap(1 << 20);
  for (const void* const address : {static_cast<const void*>(&on_the_stack), static_cast<const void*>(in_data),
                                    static_cast<const void*>(on_the_heap.data()), static_cast<const void*>(nullptr)}) {
    EXPECT_FALSE(provider_->classify(reinterpret_cast<std::uint64_t>(address)));
    EXPECT_EQ(provider_->identity({reinterpret_cast<std::uint64_t>(address), 1}), 0u);
  }
  for (const std::uint64_t address :
       {std::uint64_t{1}, std::uint64_t{4096}, UINT64_MAX, UINT64_MAX / 2, std::uint64_t{1} << 47}) {
    EXPECT_FALSE(provider_->classify(address)) << address;
  }
}

TEST_F(Conformance, FreedMemoryIsNobodysAndAReusedAddressIsSomebodyElse) {
  constexpr int kRounds = 50;
  give_back(memory(1 << 20));  // what a driver keeps from its first use on
  const std::uint64_t before = provider_->free_bytes(0);
  std::set<std::uint64_t> identities;
  for (int i = 0; i < kRounds; ++i) {
    const auto base = provider_->allocate(0, 1 << 20);
    ASSERT_TRUE(base) << base.error().explain();
    const auto claim = provider_->classify(*base);
    ASSERT_TRUE(claim);
    const std::uint64_t identity = provider_->identity({*base, 1 << 20});
    if (can(STRAIT_CAN_IDENTIFY)) {
      EXPECT_EQ(identity, claim->identity) << "what is remembered is compared with what is asked";
      EXPECT_TRUE(identities.insert(identity).second) << "an identity came back";
    }
    ASSERT_TRUE(provider_->free(*base));
    const auto after = provider_->classify(*base);
    if (after) {
      EXPECT_NE(after->identity, claim->identity);
    }
    EXPECT_TRUE(identity == 0 || provider_->identity({*base, 1 << 20}) != identity);
  }
  if (before != 0) {
    constexpr std::uint64_t kSlack = 16 << 20;  // others use the device, too
    static_assert(kSlack < std::uint64_t{kRounds} << 20, "or a leak of every round fits in");
    EXPECT_GE(provider_->free_bytes(0) + kSlack, before) << "device memory leaked";
  }
}

TEST_F(Conformance, RangeAndIdentityAgreeWithTheClaim) {
  const std::uint64_t base = memory(256 << 10);
  const auto claim = provider_->classify(base + 100);
  ASSERT_TRUE(claim);
  const auto range = provider_->range_of(base + 100);
  if (range) {
    EXPECT_LE(range->base, claim->base);
    EXPECT_GE(range->base + range->length_bytes, claim->base + claim->length_bytes);
    EXPECT_EQ(range->identity, provider_->identity({range->base, range->length_bytes}));
    EXPECT_FALSE(provider_->range_of(16));
  }
  if (can(STRAIT_CAN_IDENTIFY)) {
    EXPECT_EQ(provider_->identity({base + 5000, 10}), claim->identity);
  }
}

TEST_F(Conformance, CopiesInOutAndInsideWithOddOffsets) {
  constexpr std::size_t kRoom = (2 << 20) + 4096;
  const std::uint64_t a = memory(kRoom);
  const std::uint64_t b = memory(kRoom);
  unsigned seed = 0;
  for (const std::size_t length : {std::size_t{1}, std::size_t{3}, std::size_t{64}, std::size_t{4096},
                                   std::size_t{65537}, std::size_t{(2 << 20) + 13}}) {
    for (const std::size_t offset : {std::size_t{0}, std::size_t{1}, std::size_t{1021}}) {
      const auto bytes = pattern(length, ++seed);
      put(a + offset, bytes);
      EXPECT_EQ(get(a + offset, length), bytes) << length << " at " << offset;
      copy(b + 7, a + offset, length);
      EXPECT_EQ(get(b + 7, length), bytes) << "inside the device, " << length << " at " << offset;
      if (HasFatalFailure()) return;
    }
  }
  const auto zero = provider_->start_copy(a, b, 0);
  if (zero) {
    EXPECT_TRUE(provider_->wait_copy(*zero, soon()));
  }
}

TEST_F(Conformance, CopiesBetweenItsDevices) {
  const auto bytes = pattern(100'000, 3);
  for (std::uint32_t from = 0; from < provider_->devices().size(); ++from) {
    const std::uint32_t to = (from + 1) % static_cast<std::uint32_t>(provider_->devices().size());
    const std::uint64_t source = memory(bytes.size(), from);
    const std::uint64_t target = memory(bytes.size(), to);
    put(source, bytes);
    copy(target, source, bytes.size());
    EXPECT_EQ(get(target, bytes.size()), bytes) << from << " to " << to;
  }
}

TEST_F(Conformance, PinnedHostMemoryIsHostMemory) {
  const auto pinned = provider_->allocate(STRAIT_HOST_PLACE, 100'000);
  if (!pinned) {
    EXPECT_FALSE(pinned.error().text.empty());
    return;
  }
  const auto bytes = pattern(100'000, 9);
  std::memcpy(reinterpret_cast<void*>(*pinned), bytes.data(), bytes.size());
  const std::uint64_t device = memory(bytes.size());
  copy(device, *pinned, bytes.size());
  EXPECT_EQ(get(device, bytes.size()), bytes);
  std::memset(reinterpret_cast<void*>(*pinned), 0, bytes.size());
  copy(*pinned, device, bytes.size());
  EXPECT_EQ(std::memcmp(reinterpret_cast<const void*>(*pinned), bytes.data(), bytes.size()), 0);
  EXPECT_TRUE(provider_->free(*pinned));
  EXPECT_FALSE(provider_->free(*pinned));
}

TEST_F(Conformance, ManyCopiesAtOnceAllEnd) {
  constexpr std::size_t kCopies = 200;
  constexpr std::size_t kEach = 8192;
  const std::uint64_t base = memory(kCopies * kEach);
  const auto bytes = pattern(kCopies * kEach, 9);
  std::vector<std::uint64_t> tickets;
  for (std::size_t i = 0; i < kCopies; ++i) {
    const auto ticket = provider_->start_copy(base + i * kEach, address_of(bytes) + i * kEach, kEach);
    ASSERT_TRUE(ticket) << ticket.error().explain();
    tickets.push_back(*ticket);
  }
  std::reverse(tickets.begin(), tickets.end());
  for (const std::uint64_t ticket : tickets) ASSERT_TRUE(provider_->wait_copy(ticket, soon()));
  EXPECT_EQ(get(base, bytes.size()), bytes);
  EXPECT_FALSE(provider_->wait_copy(0x7fff'ffff'ffff'fff1, soon())) << "nobody was given that ticket";
}

TEST_F(Conformance, WrongCopiesAreRefused) {
  const std::uint64_t base = memory(1 << 20);
  const auto claim = provider_->classify(base);
  ASSERT_TRUE(claim);
  std::vector<unsigned char> host(4096);
  const std::uint64_t end = claim->base + claim->length_bytes;
  refused(provider_->start_copy(end - 1, address_of(host), 2), {Code::invalid});
  refused(provider_->start_copy(address_of(host), end - 1, 2), {Code::invalid});
  refused(provider_->start_copy(base, 0, 1), {Code::invalid});
  refused(provider_->start_copy(0, base, 1), {Code::invalid});
  refused(provider_->start_copy(base, address_of(host), UINT64_MAX - 5), {Code::invalid});
}

TEST_F(Conformance, WrongAllocationsAndFreesAreRefused) {
  refused(provider_->allocate(0, 0), {Code::invalid});
  refused(provider_->allocate(0, UINT64_MAX), {Code::invalid, Code::limit});
  refused(provider_->allocate(0, std::uint64_t{1} << 60), {Code::invalid, Code::limit});
  refused(provider_->allocate(static_cast<std::uint32_t>(provider_->devices().size()), 4096), {Code::invalid});
  refused(provider_->allocate(STRAIT_HOST_PLACE - 1, 4096), {Code::invalid});
  int here = 0;
  refused(provider_->free(0), {Code::invalid});
  refused(provider_->free(reinterpret_cast<std::uint64_t>(&here)), {Code::invalid});
  const auto base = provider_->allocate(0, 8192);
  ASSERT_TRUE(base);
  refused(provider_->free(*base + 4096), {Code::invalid});
  ASSERT_TRUE(provider_->free(*base));
  refused(provider_->free(*base), {Code::invalid});
}

TEST_F(Conformance, TellsWhenMemoryIsFreed) {
  const auto freed = [](void* context, std::uint64_t base) {
    static_cast<std::vector<std::uint64_t>*>(context)->push_back(base);
  };
  std::vector<std::uint64_t> told;
  const std::uint64_t base = memory(1 << 16);
  const auto watch = provider_->watch(base + 100, freed, &told);
  if (!can(STRAIT_CAN_WATCH)) {
    refused(watch, {Code::unsupported});
    return;
  }
  ASSERT_TRUE(watch) << watch.error().explain();
  const std::uint64_t quiet = memory(1 << 16);
  const auto dropped = provider_->watch(quiet, freed, &told);
  ASSERT_TRUE(dropped);
  EXPECT_NE(*dropped, *watch);
  provider_->unwatch(*dropped);
  give_back(quiet);
  EXPECT_TRUE(told.empty()) << "an unwatched allocation was told about";
  give_back(base);
  EXPECT_EQ(told, std::vector<std::uint64_t>{base});
  refused(provider_->watch(base, freed, &told), {Code::invalid});
  provider_->unwatch(*watch);
}

}  // namespace
}  // namespace strait::buffer::conformance
