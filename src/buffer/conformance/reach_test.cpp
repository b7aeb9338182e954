// SPDX-License-Identifier: Apache-2.0
// Conformance: descriptors, CPU mappings, advice, flush, requirements, the memory port.
#include <sys/resource.h>

#include <cstring>

#include "buffer/conformance/target.hpp"
#include "sys/files.hpp"
#include "sys/mapping.hpp"

namespace strait::buffer::conformance {
namespace {

TEST_F(Conformance, ExportsAllOfItAndAnOddPartOfIt) {
  const std::uint64_t base = memory(1 << 20);
  const auto bytes = pattern(1 << 20, 5);
  put(base, bytes);
  if (!can(STRAIT_CAN_EXPORT_DMABUF)) {
    if (!can(STRAIT_CPU_ACCESSIBLE)) refused(provider_->export_fd({base, 4096}), {Code::unsupported});
    return;
  }
  const auto export_parts = [&] {
    for (const Range part : {Range{base, 1 << 20}, Range{base + 12'345, 54'321}, Range{base, 1}}) {
      const auto exported = provider_->export_fd(part);
      ASSERT_TRUE(exported) << exported.error().explain();
      EXPECT_TRUE(sys::is_open_fd(exported->fd));
      const std::int64_t size = sys::file_bytes(exported->fd);
      ASSERT_GE(size, static_cast<std::int64_t>(exported->offset + part.length_bytes));
      // Not every driver lets a CPU map its descriptors. Where it does, the bytes are there.
      const std::uint64_t page = sys::page_bytes();
      const std::uint64_t first = exported->offset / page * page;
      const auto mapped =
          sys::map_file(exported->fd, first, sys::round_up(exported->offset + part.length_bytes - first, page),
                        sys::Protect::read_write);
      if (mapped) {
        EXPECT_EQ(std::memcmp(mapped->data() + (exported->offset - first), bytes.data() + (part.address - base),
                              part.length_bytes),
                  0)
            << "the offset points to other bytes";
      }
      provider_->close_fd(exported->fd);
    }
  };
  export_parts();
  const int before = sys::count_open_fds();  // a driver may keep something from its first export on
  export_parts();
  EXPECT_EQ(sys::count_open_fds(), before);
}

TEST_F(Conformance, ThousandsOfExportsLeaveNoDescriptor) {
  const std::uint64_t base = memory(1 << 20);
  const int cycles = can(STRAIT_CAN_EXPORT_DMABUF) ? 10'000 : 0;
  int after_one = sys::count_open_fds();
  for (int i = 0; i < cycles; ++i) {
    const auto exported = provider_->export_fd({base, 1 << 20});
    ASSERT_TRUE(exported) << i << ": " << exported.error().explain();
    provider_->close_fd(exported->fd);
    if (i == 0) after_one = sys::count_open_fds();
  }
  EXPECT_EQ(sys::count_open_fds(), after_one);
}

TEST_F(Conformance, WrongExportsAreRefused) {
  const std::uint64_t base = memory(1 << 20);
  const auto claim = provider_->classify(base);
  ASSERT_TRUE(claim);
  const std::uint64_t end = claim->base + claim->length_bytes;
  int here = 0;
  const int before = sys::count_open_fds();
  refused(provider_->export_fd({base, 0}), {Code::invalid, Code::unsupported});
  refused(provider_->export_fd({end - 1, 4096 * 64}), {Code::invalid, Code::unsupported});
  refused(provider_->export_fd({base, UINT64_MAX - 100}), {Code::invalid, Code::unsupported});
  refused(provider_->export_fd({reinterpret_cast<std::uint64_t>(&here), 4}), {Code::invalid, Code::unsupported});
  refused(provider_->export_fd({0, 4096}), {Code::invalid, Code::unsupported});
  refused(provider_->export_fd({base, 4096}, 1u << 31), {Code::unsupported});
  const std::uint64_t freed = memory(1 << 20);
  give_back(freed);
  refused(provider_->export_fd({freed, 4096}), {Code::invalid, Code::unsupported});
  EXPECT_EQ(sys::count_open_fds(), before);
}

TEST_F(Conformance, ADescriptorOutlivesTheFreeAndTheMemoryComesBackWithIt) {
  if (!can(STRAIT_CAN_EXPORT_DMABUF)) {
    EXPECT_EQ(counter("live_fds"), 0u);
    return;
  }
  constexpr std::uint64_t kBytes = 32 << 20;
  give_back(memory(kBytes));  // what a driver keeps from its first use on
  const std::uint64_t before = provider_->free_bytes(0);
  const std::uint64_t base = memory(kBytes);
  const auto exported = provider_->export_fd({base, kBytes});
  ASSERT_TRUE(exported) << exported.error().explain();
  give_back(base);
  EXPECT_TRUE(sys::is_open_fd(exported->fd));
  EXPECT_GE(sys::file_bytes(exported->fd), static_cast<std::int64_t>(kBytes));
  const std::uint64_t held = provider_->free_bytes(0);
  provider_->close_fd(exported->fd);
  if (before != 0) {
    constexpr std::uint64_t kSlack = 4 << 20;  // others use the device, too
    const std::uint64_t after = provider_->free_bytes(0);
    EXPECT_GE(after + kSlack, before) << "the memory did not come back";
    // Of a pool that is exported once the descriptor holds all of it, and the range is free for the next allocation.
    if (counter("pool_exports") == 0) {
      EXPECT_GE(after + kSlack, held + kBytes) << "the descriptor did not hold it";
    }
  }
}

TEST_F(Conformance, OutOfDescriptorsIsALimitAndPasses) {
  const std::uint64_t base = memory(1 << 20);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  if (can(STRAIT_CAN_EXPORT_DMABUF)) {
    // Every number below the limit is taken; the next one cannot be had.
    std::vector<sys::Fd> taken;
    rlimit low = before;
    low.rlim_cur = static_cast<rlim_t>(sys::count_open_fds() + 8);
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
    for (auto fd = sys::Fd::copy_of(2); fd; fd = sys::Fd::copy_of(2)) taken.push_back(std::move(*fd));
    const auto exported = provider_->export_fd({base, 1 << 20});
    taken.clear();
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    refused(exported, {Code::limit});
  }
  const auto again = provider_->export_fd({base, 1 << 20});
  EXPECT_TRUE(again || !can(STRAIT_CAN_EXPORT_DMABUF));
  if (again) provider_->close_fd(again->fd);
}

TEST_F(Conformance, MapsForTheCpuIfItSaysSo) {
  const std::uint64_t base = memory(1 << 20);
  const auto bytes = pattern(1 << 20, 8);
  put(base, bytes);
  const auto claim = provider_->classify(base);
  ASSERT_TRUE(claim);
  const auto mapped = provider_->map_cpu({base + 4096, 65536});
  if ((claim->capabilities & STRAIT_CAN_MAP_CPU) == 0) {
    refused(mapped, {Code::unsupported});
    return;
  }
  ASSERT_TRUE(mapped) << mapped.error().explain();
  auto* const cpu = static_cast<volatile unsigned char*>(*mapped);
  for (const std::size_t at : {std::size_t{0}, std::size_t{1}, std::size_t{65535}})
    EXPECT_EQ(cpu[at], bytes[4096 + at]);
  cpu[17] = 0xa5;
  EXPECT_EQ(get(base + 4096 + 17, 1), std::vector<unsigned char>{0xa5});
  put(base + 4096 + 33, {1, 2, 3});
  EXPECT_EQ(cpu[34], 2) << "small copies and the mapping are the same bytes";
  provider_->unmap_cpu(*mapped);
  EXPECT_EQ(get(base + 4096 + 17, 1), std::vector<unsigned char>{0xa5});
  refused(provider_->map_cpu({16, 16}), {Code::invalid});
}

TEST_F(Conformance, AMappingIsNotTakenForWhatComesAfterIt) {
  const auto claims_mapping = [&](std::uint64_t address) {
    const auto claim = provider_->classify(address);
    return claim && (claim->capabilities & STRAIT_CAN_MAP_CPU) != 0 &&
           (claim->capabilities & STRAIT_CPU_ACCESSIBLE) == 0;
  };
  const std::uint64_t base = memory(65536);
  const auto mapped = claims_mapping(base) ? provider_->map_cpu({base, 65536}) : Result<void*>(nullptr);
  ASSERT_TRUE(mapped);
  give_back(base);  // while it is mapped
  const std::uint64_t next = memory(65536);
  put(next, pattern(65536, 1));
  put(next + 8, {42});
  EXPECT_EQ(get(next + 8, 1), std::vector<unsigned char>{42});
  if (*mapped != nullptr) provider_->unmap_cpu(*mapped);
  EXPECT_EQ(get(next + 8, 1), std::vector<unsigned char>{42});
}

TEST_F(Conformance, AdviceGetsOneOfThreeAnswers) {
  const std::uint64_t base = memory(1 << 20);
  for (std::uint32_t advice = 1; advice <= STRAIT_ADVICE_LAST; ++advice) {
    for (const std::uint32_t place : {std::uint32_t{0}, STRAIT_HOST_PLACE}) {
      const auto answer = provider_->advise({base, 1 << 20}, advice, place);
      ASSERT_TRUE(answer) << advice << ": " << answer.error().explain();
      if (!can(STRAIT_CAN_ADVISE)) {
        EXPECT_NE(*answer, Provider::Advised::done);
      }
    }
  }
  refused(provider_->advise({base, 1 << 20}, 0, 0), {Code::invalid});
  refused(provider_->advise({base, 1 << 20}, 99, 0), {Code::invalid});
  const auto nowhere = provider_->advise({16, 16}, STRAIT_ADVICE_WILL_NEED, STRAIT_HOST_PLACE);
  EXPECT_TRUE(!nowhere || *nowhere != Provider::Advised::done);
}

TEST_F(Conformance, SaysWhetherAFlushIsNeeded) {
  const auto flush = provider_->flush(0, false);
  if (flush) {
    EXPECT_LE(flush->need, static_cast<std::uint32_t>(STRAIT_FLUSH_BY_READ));
    EXPECT_FALSE(flush->text.empty());
    EXPECT_FALSE(flush->done) << "nobody asked for it";
    (void)memory(4096);
    const auto performed = provider_->flush(0, true);
    ASSERT_TRUE(performed) << performed.error().explain();
    EXPECT_EQ(performed->done, performed->need == STRAIT_FLUSH_BY_CALL);
    refused(provider_->flush(1000, false), {Code::invalid});
  } else {
    refused(flush, {Code::unsupported});
  }
}

TEST_F(Conformance, LetsItsDevicesAtHostPagesOrSaysThatItDoesNot) {
  const auto mapped = sys::map_anonymous(4 * sys::page_bytes(), sys::Protect::read_write).value();
  const Range pages{reinterpret_cast<std::uint64_t>(mapped.data()), mapped.size()};
  const auto first = provider_->reach_host(0, pages, 0);
  if (!first) {
    refused(provider_->reach_host(0, pages, 0), {Code::unsupported});
    return;
  }
  EXPECT_NE(*first, 0u);
  // It is the CPU's memory as before.
  std::memset(mapped.data(), 0x5a, mapped.size());
  EXPECT_EQ(mapped.data()[mapped.size() - 1], std::byte{0x5a});
  ASSERT_TRUE(provider_->release_host(pages));
  EXPECT_FALSE(provider_->release_host(pages)) << "it was given back already";
  // One page of it, and all of it after that.
  const Range second{pages.address + sys::page_bytes(), sys::page_bytes()};
  ASSERT_TRUE(provider_->reach_host(0, second, 0));
  ASSERT_TRUE(provider_->release_host(second));
  ASSERT_TRUE(provider_->reach_host(0, pages, 0));
  ASSERT_TRUE(provider_->release_host(pages));
  refused(provider_->reach_host(0, pages, 1u << 31), {Code::unsupported});
  refused(provider_->reach_host(99, pages, 0), {Code::invalid});
}

TEST_F(Conformance, NamesItsRequirements) {
  for (const Requirement& requirement : provider_->requirements()) {
    EXPECT_FALSE(requirement.what.empty());
    EXPECT_FALSE(requirement.text.empty()) << requirement.what;
    EXPECT_LE(requirement.state, static_cast<std::uint32_t>(STRAIT_REQUIREMENT_UNKNOWN));
    if (requirement.serves == 0) {
      EXPECT_NE(requirement.state, static_cast<std::uint32_t>(STRAIT_REQUIREMENT_MISSING))
          << "it is open without " << requirement.what;
    }
  }
  const Plugin closed = make_plugin();
  for (const Requirement& requirement : requirements_of(closed.ops, nullptr)) {
    EXPECT_FALSE(requirement.what.empty()) << "asked before it was opened";
  }
}

TEST_F(Conformance, ItsMemoryPortReadsWritesAndCounts) {
  const auto port = provider_->memory_port();
  if (!port) {
    refused(port, {Code::unsupported});
    EXPECT_TRUE(can(STRAIT_CPU_ACCESSIBLE) || can(STRAIT_CAN_EXPORT_DMABUF)) << "then how does a NIC get at it?";
    return;
  }
  const std::uint64_t base = memory(1 << 20);
  const auto bytes = pattern(100'001, 4);
  ASSERT_EQ(port->write(port->context, base + 3, bytes.data(), bytes.size()), 0);
  EXPECT_EQ(get(base + 3, bytes.size()), bytes);
  std::vector<unsigned char> back(bytes.size());
  ASSERT_EQ(port->read(port->context, base + 3, back.data(), back.size()), 0);
  EXPECT_EQ(back, bytes);

  std::uint64_t word = 40;
  ASSERT_EQ(port->write(port->context, base + 64, &word, 8), 0);
  std::uint64_t old = 0;
  ASSERT_EQ(port->fetch_add(port->context, base + 64, 8, 2, 0, &old), 0);
  EXPECT_EQ(old, 40u);
  ASSERT_EQ(port->compare_swap(port->context, base + 64, 8, 41, UINT64_MAX, 7, UINT64_MAX, &old), 0);
  EXPECT_EQ(old, 42u);
  ASSERT_EQ(port->compare_swap(port->context, base + 64, 8, 42, UINT64_MAX, 7, UINT64_MAX, &old), 0);
  ASSERT_EQ(port->fetch_add(port->context, base + 64, 4, 0xffff'ffff, 0, &old), 0);
  EXPECT_EQ(old, 7u);
  port->order(port->context);
  ASSERT_EQ(port->read(port->context, base + 64, &word, 8), 0);
  EXPECT_EQ(word, 6u) << "a 4-byte sum does not carry into the next word";
  // Two fields of 16 bits: neither carries into the other.
  word = 0xffff'ffff;
  ASSERT_EQ(port->write(port->context, base + 64, &word, 8), 0);
  ASSERT_EQ(port->fetch_add(port->context, base + 64, 4, 0x0001'0001, 0x8000'8000, &old), 0);
  ASSERT_EQ(port->read(port->context, base + 64, &word, 8), 0);
  EXPECT_EQ(word, 0u);

  EXPECT_NE(port->read(port->context, 16, &word, 8), 0);
  EXPECT_NE(port->write(port->context, base + (1 << 20) - 4, &word, 4096 * 1024), 0);
  EXPECT_NE(port->fetch_add(port->context, base + 1, 8, 1, 0, &old), 0) << "not aligned";
  EXPECT_NE(port->fetch_add(port->context, base, 3, 1, 0, &old), 0) << "no such width";
}

// What a NIC does with pieces of a pool: a mapping of a file that others have mapped too, pinned if it can be.
TEST_F(Conformance, ItsMemoryPortCopiesByItselfOrHasNoSuchFunctions) {
  const auto port = provider_->memory_port();
  if (!port) return refused(port, {Code::unsupported});
  const bool complete = port->prepare != nullptr && port->release != nullptr && port->start_read != nullptr &&
                        port->start_write != nullptr && port->done != nullptr;
  const bool none = port->prepare == nullptr && port->release == nullptr && port->start_read == nullptr &&
                    port->start_write == nullptr && port->done == nullptr;
  ASSERT_TRUE(complete || none);
  if (none) return;
  constexpr std::uint64_t kBytes = 1 << 20;
  const std::uint64_t base = memory(4 * kBytes);
  const auto file = sys::make_sealed_memfd("pieces", 8 * kBytes).value();
  const auto mapped = sys::map_file(file.get(), 0, 8 * kBytes, sys::Protect::read_write).value();
  const auto finish = [&](std::uint64_t ticket) {
    const sys::Deadline deadline = sys::Deadline::after_ns(20'000'000'000);
    std::int32_t state = 0;
    while ((state = port->done(port->context, ticket)) == 0 && !deadline.passed()) {
    }
    return state;
  };
  for (const bool prepared : {true, false}) {
    const bool pinned = prepared && port->prepare(port->context, mapped.data(), mapped.size()) == 0;
    std::memset(mapped.data(), prepared ? 0x11 : 0x22, 4 * kBytes);
    std::uint64_t tickets[4] = {};
    for (std::uint64_t i = 0; i < 4; ++i) {
      mapped.data()[i * kBytes] = static_cast<std::byte>(i);
      ASSERT_EQ(port->start_write(port->context, base + i * kBytes, mapped.data() + i * kBytes, kBytes, &tickets[i]),
                0);
    }
    for (const std::uint64_t ticket : tickets) EXPECT_EQ(finish(ticket), 1);
    for (std::uint64_t i = 0; i < 4; ++i) {
      std::byte* const into = mapped.data() + (4 + i) * kBytes;
      ASSERT_EQ(port->start_read(port->context, base + i * kBytes, into, kBytes, &tickets[i]), 0);
    }
    for (const std::uint64_t ticket : tickets) EXPECT_EQ(finish(ticket), 1);
    EXPECT_EQ(std::memcmp(mapped.data(), mapped.data() + 4 * kBytes, 4 * kBytes), 0);
    if (pinned) port->release(port->context, mapped.data());
  }
  std::uint64_t ticket = 0;
  EXPECT_NE(port->start_read(port->context, 16, mapped.data(), 8, &ticket), 0);
  EXPECT_NE(port->start_write(port->context, base + 4 * kBytes - 4, mapped.data(), 4 * kBytes, &ticket), 0);
}

}  // namespace
}  // namespace strait::buffer::conformance
