// SPDX-License-Identifier: Apache-2.0
// Who moves small bytes, and what advice is answered with: the vendors in software, under `strait run --accelerators
// cuda:1,rocm:1@bar,gaudi:1`.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "buffer/built_in.hpp"
#include "buffer/cpu_limits.hpp"
#include "buffer/cuda/driver.hpp"
#include "buffer/provider.hpp"
#include "sys/library.hpp"
#include "sys/mapping.hpp"

namespace strait::buffer {
namespace {

std::unique_ptr<Provider> open_kind(const std::string& kind, const std::string& config = "") {
  auto opened = Provider::open(std::move(use_plugin(built_in_provider(kind), config).value()));
  EXPECT_TRUE(opened) << opened.error().explain();
  return opened ? std::move(*opened) : nullptr;
}

std::uint64_t count_of(const Provider& provider, const std::string& name) {
  const std::string all = "," + provider.counters();
  const std::size_t at = all.find("," + name + "=");
  EXPECT_NE(at, std::string::npos) << name;
  return at == std::string::npos ? 0 : std::stoull(all.substr(at + name.size() + 2));
}

struct Window {
  const char* name;
  const char* kind;
  const char* config;
  bool mapped_first;  // the mapping has to be asked for
};
class CpuCopies : public ::testing::TestWithParam<Window> {};

// Small copies go through the window, larger ones by the engine: a window writes fast and reads slowly.
TEST_P(CpuCopies, SmallOnesGoThroughTheWindow) {
  const auto provider = open_kind(GetParam().kind, GetParam().config);
  ASSERT_NE(provider, nullptr);
  const std::uint64_t memory = provider->allocate(0, 65536).value();
  std::vector<unsigned char> bytes(8192);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i * 3 + 1);
  const auto here = reinterpret_cast<std::uint64_t>(bytes.data());
  const auto move = [&](std::uint64_t to, std::uint64_t from, std::uint64_t length_bytes) {
    const std::uint64_t before = count_of(*provider, "copies_by_cpu");
    const auto ticket = provider->start_copy(to, from, length_bytes);
    EXPECT_TRUE(ticket) << ticket.error().explain();
    const Status done = provider->wait_copy(ticket.value_or(0), sys::Deadline::after_ns(30'000'000'000));
    EXPECT_TRUE(done) << done.error().explain();
    return count_of(*provider, "copies_by_cpu") - before;
  };
  void* window = nullptr;
  if (GetParam().mapped_first) {
    EXPECT_EQ(move(memory, here, 64), 0u) << "nothing is mapped yet";
    const auto mapped = provider->map_cpu({memory, 65536});
    ASSERT_TRUE(mapped) << mapped.error().explain();
    window = *mapped;
  }
  EXPECT_EQ(move(memory, here, 4096), 1u);
  EXPECT_EQ(move(memory + 4096, here + 4096, 4096), 1u);
  EXPECT_EQ(move(memory, here, 4097), 0u);
  std::vector<unsigned char> back(8192);
  const auto there = reinterpret_cast<std::uint64_t>(back.data());
  EXPECT_EQ(move(there, memory, 8192), 0u);
  EXPECT_EQ(back, bytes) << "engine and window are the same bytes";
  std::fill(back.begin(), back.end(), 0);
  EXPECT_EQ(move(there, memory + 100, 64), 1u);
  EXPECT_EQ(move(there + 64, memory + 164, 65), 0u);
  EXPECT_TRUE(std::equal(back.begin(), back.begin() + 129, bytes.begin() + 100));
  if (window != nullptr) {
    EXPECT_EQ(static_cast<volatile unsigned char*>(window)[777], bytes[777]) << "a flag is read without any copy";
    provider->unmap_cpu(window);
    EXPECT_EQ(move(memory, here, 64), 0u) << "the window is gone";
  }
  EXPECT_TRUE(provider->free(memory));
}

INSTANTIATE_TEST_SUITE_P(All, CpuCopies,
                         ::testing::Values(Window{"gdrcopy", "cuda", "cpu_map=gdrcopy,cpu_copies=4096/64", true},
                                           Window{"bar", "rocm", "cpu_copies=4096/64", false}),
                         [](const auto& about) { return std::string(about.param.name); });

// What has Dmabuf in its name runs on cuda:1@map, where dma-bufs can be mapped as by driver 13.3; the rest without.
INSTANTIATE_TEST_SUITE_P(Dmabuf, CpuCopies,
                         ::testing::Values(Window{"dmabuf", "cuda", "cpu_map=dmabuf,cpu_copies=4096/64", true},
                                           Window{"auto", "cuda", "cpu_copies=4096/64", true}),
                         [](const auto& about) { return std::string(about.param.name); });

// Of a device with a window: who moved 64 bytes each way, and what the provider says of its limits.
struct Moved {
  std::uint64_t in = 0, out = 0;  // by the CPU
  std::uint64_t timed = 0, in_most = 0, out_most = 0;
};
Moved move_short(Provider& provider) {
  const std::uint64_t free_bytes = provider.free_bytes(0);
  const std::uint64_t memory = provider.allocate(0, 65536).value();
  void* const window = provider.map_cpu({memory, 65536}).value();
  std::array<unsigned char, 64> bytes{}, back{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i * 5 + 3);
  const auto move = [&](std::uint64_t to, std::uint64_t from) {
    const std::uint64_t before = count_of(provider, "copies_by_cpu");
    const auto ticket = provider.start_copy(to, from, bytes.size());
    EXPECT_TRUE(ticket && provider.wait_copy(*ticket, sys::Deadline::after_ns(30'000'000'000)));
    return count_of(provider, "copies_by_cpu") - before;
  };
  Moved moved;
  moved.in = move(memory, reinterpret_cast<std::uint64_t>(bytes.data()));
  moved.out = move(reinterpret_cast<std::uint64_t>(back.data()), memory);
  EXPECT_EQ(bytes, back);
  moved.timed = count_of(provider, "cpu_timed");
  moved.in_most = count_of(provider, "cpu_in_most");
  moved.out_most = count_of(provider, "cpu_out_most");
  provider.unmap_cpu(window);
  EXPECT_TRUE(provider.free(memory));
  EXPECT_GE(provider.free_bytes(0), free_bytes) << "what was timed is freed";
  return moved;
}

TEST(CpuCopiesByTime, AFastWindowWins) {
  const std::vector<std::pair<const char*, const char*>> all{{"cuda", "cpu_map=gdrcopy"}, {"rocm", ""}};
  for (const auto& [kind, config] : all) {
    const auto provider = open_kind(kind, config);
    const Moved moved = move_short(*provider);
    EXPECT_EQ(moved.timed, 1u) << kind;
    EXPECT_EQ(moved.in, 1u) << kind;
    EXPECT_EQ(moved.out, 1u) << kind;
    EXPECT_GE(moved.in_most, kShortCopy) << kind;
    EXPECT_GE(moved.out_most, kShortCopy) << kind;
    EXPECT_LE(std::max(moved.in_most, moved.out_most), kCpuCopiesMost) << kind;
    EXPECT_EQ(move_short(*provider).timed, 1u) << kind << ": once";
  }
}

TEST(CpuCopiesByTime, AFastWindowOnADmabufWins) {
  const auto provider = open_kind("cuda", "cpu_map=dmabuf");
  const Moved moved = move_short(*provider);
  EXPECT_EQ(moved.timed, 1u);
  EXPECT_EQ(moved.in, 1u);
  EXPECT_EQ(moved.out, 1u);
}

TEST(CpuMapByDmabuf, BeginsAtTheFirstByteOfTheRange) {
  const auto provider = open_kind("cuda", "cpu_map=dmabuf,cpu_copies=off");
  const std::uint64_t memory = provider->allocate(0, 1 << 20).value();
  std::vector<unsigned char> bytes(1 << 20);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i * 7 + (i >> 8));
  const auto move = [&](std::uint64_t to, std::uint64_t from) {
    const auto ticket = provider->start_copy(to, from, bytes.size());
    EXPECT_TRUE(ticket && provider->wait_copy(*ticket, sys::Deadline::after_ns(30'000'000'000)));
  };
  move(memory, reinterpret_cast<std::uint64_t>(bytes.data()));
  constexpr std::size_t kFrom = 5 * 4096 + 40, kLength = 300'001;  // in no page's first byte, and over many
  const auto mapped = provider->map_cpu({memory + kFrom, kLength});
  ASSERT_TRUE(mapped) << mapped.error().explain();
  auto* const window = static_cast<unsigned char*>(*mapped);
  EXPECT_TRUE(std::equal(window, window + kLength, bytes.begin() + kFrom));
  for (const std::size_t at : {std::size_t{0}, kLength - 1}) window[at] = bytes[kFrom + at] ^= 0x5a;
  std::vector<unsigned char> back(bytes.size());
  move(reinterpret_cast<std::uint64_t>(back.data()), memory);
  EXPECT_EQ(back, bytes) << "what the CPU wrote there, and nothing else";
  provider->unmap_cpu(window);
  EXPECT_TRUE(provider->free(memory));
}

// As anybody maps it: at any page of it, and not past its end.
TEST(CpuMapByDmabuf, TheDescriptorIsMappedLikeAFile) {
  const auto provider = open_kind("cuda", "cpu_copies=off");
  const std::uint64_t memory = provider->allocate(0, 65536).value();
  std::vector<unsigned char> bytes(65536);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i * 11 + (i >> 8));
  const auto ticket = provider->start_copy(memory, reinterpret_cast<std::uint64_t>(bytes.data()), bytes.size());
  ASSERT_TRUE(ticket && provider->wait_copy(*ticket, sys::Deadline::after_ns(30'000'000'000)));
  const auto exported = provider->export_fd({memory, 65536}).value();
  const auto map = [&](std::uint64_t offset, std::size_t length) {
    return sys::map_file(exported.fd, offset, length, sys::Protect::read);
  };
  ASSERT_EQ(exported.offset, 0u);
  for (const std::uint64_t at : {0u, 4096u, 61440u}) {
    const auto seen = map(at, 4096);
    ASSERT_TRUE(seen) << seen.error().explain();
    EXPECT_TRUE(std::equal(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                           bytes.begin() + static_cast<std::ptrdiff_t>(at) + 4096,
                           reinterpret_cast<const unsigned char*>(seen->data())))
        << at;
  }
  EXPECT_EQ(map(65536, 4096).error().sys_errno, EINVAL);
  EXPECT_EQ(map(4096, 65536).error().sys_errno, EINVAL);
  provider->close_fd(exported.fd);
  EXPECT_TRUE(provider->free(memory));
}

TEST(CpuMapByDmabuf, IsRefusedWhereTheConfigSaysIt) {
  const auto provider = open_kind("cuda", "cpu_map=none");
  const std::uint64_t memory = provider->allocate(0, 65536).value();
  const auto mapped = provider->map_cpu({memory, 4096});
  ASSERT_FALSE(mapped);
  EXPECT_NE(mapped.error().text.find("by dma-buf: cpu_map in the provider's config says no"), std::string::npos)
      << mapped.error().text;
  EXPECT_TRUE(provider->free(memory));
}

TEST(CpuCopiesByTime, ASlowWindowLoses) {
  ::setenv("STRAIT_SOFT_WINDOW_NS", "30000000", 1);
  const auto provider = open_kind("cuda", "cpu_map=gdrcopy");
  ::unsetenv("STRAIT_SOFT_WINDOW_NS");
  const Moved moved = move_short(*provider);
  EXPECT_EQ(moved.timed, 1u);
  EXPECT_EQ(moved.in, 0u);
  EXPECT_EQ(moved.out, 0u);
  EXPECT_EQ(moved.in_most, 0u);
  EXPECT_EQ(moved.out_most, 0u);
}

TEST(CpuCopiesByTime, NothingIsTimedWhereTheConfigSaysIt) {
  for (const char* kind : {"cuda", "rocm"}) {
    const Moved off = move_short(*open_kind(kind, "cpu_copies=off"));
    EXPECT_EQ(off.timed, 0u) << kind;
    EXPECT_EQ(off.in + off.out + off.in_most + off.out_most, 0u) << kind;
    const Moved one_way = move_short(*open_kind(kind, "cpu_copies=128/0"));
    EXPECT_EQ(one_way.timed, 0u) << kind;
    EXPECT_EQ(one_way.in, 1u) << kind;
    EXPECT_EQ(one_way.out, 0u) << kind;
  }
  EXPECT_FALSE(Provider::open(std::move(use_plugin(built_in_provider("gaudi"), "cpu_copies=auto").value())));
}

// The figures are those that were fixed before anything was timed.
TEST(CpuCopiesByTime, AFullDeviceIsNotTimed) {
  const auto provider = open_kind("cuda", "cpu_map=gdrcopy");
  const std::uint64_t memory = provider->allocate(0, 65536).value();
  std::vector<std::uint64_t> rest;
  for (std::uint64_t bytes = std::uint64_t{1} << 30; bytes >= 4096; bytes /= 2) {
    while (const auto more = provider->allocate(0, bytes)) rest.push_back(*more);
  }
  void* const window = provider->map_cpu({memory, 65536}).value();
  EXPECT_EQ(count_of(*provider, "cpu_timed"), 0u);
  EXPECT_EQ(count_of(*provider, "cpu_in_most"), 4096u);
  EXPECT_EQ(count_of(*provider, "cpu_out_most"), 64u);
  bool said = false;
  for (const Requirement& each : provider->requirements())
    said = said || each.text.find("copies of up to 4096 bytes to it and 64 from it, not timed: no device memory") !=
                       std::string::npos;
  EXPECT_TRUE(said);
  provider->unmap_cpu(window);
  for (const std::uint64_t each : rest) EXPECT_TRUE(provider->free(each));
  EXPECT_TRUE(provider->free(memory));
}

// Nobody asks for a mapping: where small copies keep coming, the provider makes itself a window.
std::uint64_t moved_by_cpu(Provider& provider, std::uint64_t to, std::uint64_t from, std::uint64_t length_bytes,
                           int times) {
  const std::uint64_t before = count_of(provider, "copies_by_cpu");
  for (int i = 0; i < times; ++i) {
    const auto ticket = provider.start_copy(to, from, length_bytes);
    EXPECT_TRUE(ticket && provider.wait_copy(*ticket, sys::Deadline::after_ns(30'000'000'000)));
  }
  return count_of(provider, "copies_by_cpu") - before;
}
constexpr int kManyCopies = 20;
constexpr const char* kFixed = "cpu_map=gdrcopy,cpu_copies=4096/64";

TEST(CpuWindows, AreOpenedWhereSmallCopiesKeepComing) {
  const auto provider = open_kind("cuda", kFixed);
  const std::uint64_t memory = provider->allocate(0, 4 << 20).value();
  std::array<std::uint64_t, 2> word{0x1122334455667788, 0};
  const auto here = reinterpret_cast<std::uint64_t>(word.data());
  EXPECT_EQ(moved_by_cpu(*provider, memory + 8, here, 8, 1), 0u) << "one copy is not worth a mapping";
  EXPECT_EQ(count_of(*provider, "cpu_windows"), 0u);
  EXPECT_GT(moved_by_cpu(*provider, memory + 8, here, 8, kManyCopies), 0u);
  EXPECT_EQ(count_of(*provider, "cpu_windows"), 1u);
  EXPECT_EQ(moved_by_cpu(*provider, here + 8, memory + 8, 8, kManyCopies), std::uint64_t{kManyCopies});
  EXPECT_EQ(word[1], word[0]);
  EXPECT_EQ(moved_by_cpu(*provider, memory, here, 16, 1), 1u) << "anywhere in it";
  EXPECT_EQ(count_of(*provider, "cpu_maps"), 0u) << "those are what callers asked for";
  // The caller's own mapping is beside it.
  void* const mapped = provider->map_cpu({memory, 65536}).value();
  provider->unmap_cpu(mapped);
  EXPECT_EQ(count_of(*provider, "cpu_windows"), 1u);
  EXPECT_TRUE(provider->free(memory));
  EXPECT_EQ(count_of(*provider, "cpu_windows"), 0u) << "what strait frees it has no window on";
}

TEST(CpuWindows, AreNotForMachinesThatAreToldNot) {
  for (const char* config : {"cpu_copies=off", "cpu_map=none", "cpu_map=dmabuf"}) {
    const auto provider = open_kind("cuda", config);
    const std::uint64_t memory = provider->allocate(0, 65536).value();
    std::uint64_t word = 1;
    EXPECT_EQ(moved_by_cpu(*provider, memory, reinterpret_cast<std::uint64_t>(&word), 8, kManyCopies), 0u) << config;
    EXPECT_EQ(count_of(*provider, "cpu_windows"), 0u) << config;
    EXPECT_TRUE(provider->free(memory));
  }
}

TEST(CpuWindows, AreFewAndTheLeastRecentlyUsedGoes) {
  constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;
  constexpr std::uint64_t kPieces = 40;
  const auto provider = open_kind("cuda", kFixed);
  const std::uint64_t raw = provider->allocate(0, (kPieces + 1) * kPiece).value();
  const std::uint64_t memory = (raw + kPiece - 1) / kPiece * kPiece;
  std::uint64_t word = 7;
  const auto here = reinterpret_cast<std::uint64_t>(&word);
  for (std::uint64_t i = 0; i < kPieces; ++i) {
    EXPECT_GT(moved_by_cpu(*provider, memory + i * kPiece, here, 8, kManyCopies), 0u) << i;
    EXPECT_EQ(moved_by_cpu(*provider, memory, here, 8, 1), 1u) << "the first is used all the time";
    EXPECT_LE(count_of(*provider, "cpu_windows"), 32u);
  }
  EXPECT_EQ(count_of(*provider, "cpu_windows"), 32u);
  EXPECT_EQ(moved_by_cpu(*provider, memory + kPiece, here, 8, 1), 0u) << "the second went long ago";
  EXPECT_EQ(moved_by_cpu(*provider, memory + (kPieces - 1) * kPiece, here, 8, 1), 1u);
  EXPECT_TRUE(provider->free(raw));
}

// The program frees its memory and gets the address again: a window of before is not the new allocation.
TEST(CpuWindows, AreNotTakenForWhatLiesAtTheSameAddressSince) {
  const auto provider = open_kind("cuda", kFixed);
  const std::uint64_t other = provider->allocate(0, 4096).value();  // the device is in use
  const cuda::Driver& driver = *cuda::Driver::get().value();
  cuda::Context context = nullptr;
  ASSERT_EQ(driver.primary_retain(&context, 0), cuda::kOk);
  ASSERT_EQ(driver.push(context), cuda::kOk);
  cuda::Pointer memory = 0;
  ASSERT_EQ(driver.alloc(&memory, 1 << 20), cuda::kOk);
  std::uint64_t word = 3;
  const auto here = reinterpret_cast<std::uint64_t>(&word);
  EXPECT_GT(moved_by_cpu(*provider, memory, here, 8, kManyCopies), 0u);
  EXPECT_EQ(count_of(*provider, "cpu_windows"), 1u);
  ASSERT_EQ(driver.free(memory), cuda::kOk);
  cuda::Pointer again = 0;
  ASSERT_EQ(driver.alloc(&again, 1 << 20), cuda::kOk);
  ASSERT_EQ(again, memory) << "the address is used again, which is what this is about";
  word = 4;
  EXPECT_EQ(moved_by_cpu(*provider, again, here, 8, 1), 0u);
  EXPECT_EQ(count_of(*provider, "cpu_windows"), 0u) << "gone with the first look";
  std::uint64_t back = 0;
  ASSERT_EQ(driver.copy_out(&back, again, 8, nullptr), cuda::kOk);
  ASSERT_EQ(driver.stream_wait(nullptr), cuda::kOk);
  EXPECT_EQ(back, 4u);
  EXPECT_EQ(driver.free(again), cuda::kOk);
  ASSERT_EQ(driver.pop(&context), cuda::kOk);
  EXPECT_EQ(driver.primary_release(0), cuda::kOk);
  EXPECT_TRUE(provider->free(other));
}

TEST(CpuMapWays, AreRefusedWithTheReason) {
  // The driver in software is as those before 13.3: its dma-bufs cannot be mapped.
  for (const char* way : {"cpu_map=none", "cpu_map=dmabuf"}) {
    const auto provider = open_kind("cuda", way);
    const std::uint64_t memory = provider->allocate(0, 65536).value();
    const auto mapped = provider->map_cpu({memory, 4096});
    ASSERT_FALSE(mapped);
    EXPECT_EQ(mapped.error().code, Code::unsupported);
    EXPECT_NE(mapped.error().text.find("by gdrcopy: cpu_map in the provider's config"), std::string::npos)
        << mapped.error().text;
    EXPECT_TRUE(provider->free(memory));
  }
  for (const char* wrong : {"cpu_map=", "cpu_map=both", "cpu_map"})
    EXPECT_FALSE(Provider::open(std::move(use_plugin(built_in_provider("cuda"), wrong).value()))) << wrong;
  EXPECT_FALSE(Provider::open(std::move(use_plugin(built_in_provider("rocm"), "cpu_map=auto").value())));
}

// Three answers that are not the same.
using Answer = Provider::Advised;
Answer advised(Provider& provider, std::uint64_t address, std::uint32_t advice) {
  const auto answer = provider.advise({address, 4096}, advice, STRAIT_HOST_PLACE);
  EXPECT_TRUE(answer) << answer.error().explain();
  return answer.value_or(Answer{});
}

TEST(Advice, IsDoneForHostMemoryThatWillBeNeededAndIgnoredAboutPlaces) {
  const auto provider = open_kind("host");
  const std::uint64_t memory = provider->allocate(0, 65536).value();
  EXPECT_EQ(advised(*provider, memory, STRAIT_ADVICE_WILL_NEED), Answer::done);
  EXPECT_EQ(advised(*provider, memory, STRAIT_ADVICE_PREFER_PLACE), Answer::ignored);
  EXPECT_TRUE(provider->free(memory));
}

TEST(Advice, IsIgnoredForDeviceMemory) {
  for (const char* kind : {"cuda", "rocm"}) {
    const auto provider = open_kind(kind);
    const std::uint64_t memory = provider->allocate(0, 65536).value();
    for (std::uint32_t advice = 1; advice <= STRAIT_ADVICE_LAST; ++advice)
      EXPECT_EQ(advised(*provider, memory, advice),
                advice == STRAIT_ADVICE_OWN_PAGES ? Answer::unsupported : Answer::ignored)
          << kind << " " << advice;
    EXPECT_TRUE(provider->free(memory));
  }
}

TEST(Advice, IsUnsupportedByGaudi) {
  const auto provider = open_kind("gaudi");
  const std::uint64_t memory = provider->allocate(0, 65536).value();
  for (std::uint32_t advice = 1; advice <= STRAIT_ADVICE_LAST; ++advice)
    EXPECT_EQ(advised(*provider, memory, advice), Answer::unsupported) << advice;
  EXPECT_TRUE(provider->free(memory));
}

TEST(Advice, IsDoneForManagedMemory) {
  const auto provider = open_kind("cuda");
  const std::uint64_t other = provider->allocate(0, 4096).value();  // the device is in use
  const cuda::Driver& driver = *cuda::Driver::get().value();
  const sys::Library library = sys::Library::open("libcuda.so.1").value();
  using Managed = cuda::CuResult (*)(cuda::Pointer*, std::size_t, unsigned);
  cuda::Context context = nullptr;
  ASSERT_EQ(driver.primary_retain(&context, 0), cuda::kOk);
  ASSERT_EQ(driver.push(context), cuda::kOk);
  cuda::Pointer memory = 0;
  ASSERT_EQ(library.symbol<Managed>("cuMemAllocManaged").value()(&memory, 1 << 20, 1), cuda::kOk);
  for (std::uint32_t advice = 1; advice < STRAIT_ADVICE_OWN_PAGES; ++advice)
    EXPECT_EQ(advised(*provider, memory, advice), Answer::done) << advice;
  EXPECT_EQ(advised(*provider, memory, STRAIT_ADVICE_OWN_PAGES), Answer::unsupported);
  EXPECT_EQ(driver.free(memory), cuda::kOk);
  ASSERT_EQ(driver.pop(&context), cuda::kOk);
  EXPECT_EQ(driver.primary_release(0), cuda::kOk);
  EXPECT_TRUE(provider->free(other));
}

// What stands in `strait info`: which runtime and which kernel driver it is, from what these say.
TEST(Requirements, NameTheRuntimeAndTheKernelsDriver) {
  const std::vector<std::tuple<const char*, const char*, const char*>> all{
      {"rocm", "interface 1.1, build ", "amdgpu kernel driver"},
      {"gaudi", "SynapseAI says it is of version ", "habanalabs kernel driver"}};
  for (const auto& [kind, runtime, driver] : all) {
    const auto provider = open_kind(kind);
    ASSERT_NE(provider, nullptr);
    bool has_runtime = false;
    bool has_driver = false;
    for (const Requirement& each : provider->requirements()) {
      const std::size_t at = each.text.find(runtime);
      has_runtime |= at != std::string::npos && each.text.size() > at + std::string(runtime).size();
      has_driver |=
          each.what == driver && each.state == STRAIT_REQUIREMENT_MET && each.text.find("Linux ") != std::string::npos;
    }
    EXPECT_TRUE(has_runtime) << kind;
    EXPECT_TRUE(has_driver) << kind;
  }
}

}  // namespace
}  // namespace strait::buffer
