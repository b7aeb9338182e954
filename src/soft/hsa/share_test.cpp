// SPDX-License-Identifier: Apache-2.0
// Two processes. The second is this program again, started with "--peer": it reads commands and answers each with a
// line.
#include <unistd.h>

#include <iostream>
#include <sstream>

#include "soft/hsa/testing.hpp"
#include "sys/child.hpp"
#include "sys/mapping.hpp"

namespace strait::soft::hsa::testing {
namespace {

std::string words_of(const IpcMemory& handle) {
  std::string line;
  for (const std::uint32_t word : handle.handle) line += " " + std::to_string(word);
  return line;
}

// "attach LENGTH w0..w7" answers the status; "sum" adds up its bytes; "fill N" writes; "detach".
void run_peer() {
  HSA(hsa_init)();
  std::string line;
  std::byte* at = nullptr;
  std::size_t length = 0;
  while (std::getline(std::cin, line)) {
    std::istringstream in(line);
    std::string command;
    in >> command;
    Answer answer = kError;
    if (command == "attach") {
      IpcMemory handle{};
      in >> length;
      for (std::uint32_t& word : handle.handle) in >> word;
      void* pointer = nullptr;
      answer = HSA(hsa_amd_ipc_memory_attach)(&handle, length, 0, nullptr, &pointer);
      at = static_cast<std::byte*>(pointer);
    } else if (command == "type") {
      PointerInfo info{};
      info.size = sizeof info;
      HSA(hsa_amd_pointer_info)(at + length - 1, &info, nullptr, nullptr, nullptr);
      answer = info.type;
    } else if (command == "sum") {
      std::vector<std::byte> bytes(length);
      HSA(hsa_memory_copy)(bytes.data(), at, length);
      answer = 0;
      for (const std::byte each : bytes) answer += static_cast<Answer>(each);
    } else if (command == "fill") {
      std::uint32_t value = 0;
      in >> value;
      answer = HSA(hsa_amd_memory_fill)(at, value, length / 4);
    } else if (command == "detach") {
      answer = HSA(hsa_amd_ipc_memory_detach)(at);
    }
    std::cout << answer << std::endl;
  }
  HSA(hsa_shut_down)();
}

class HsaShare : public HsaTest {
 protected:
  // Started before this process has an engine, as Child asks.
  void SetUp() override {
    auto started = sys::Child::start_self({"--peer"});
    ASSERT_TRUE(started) << started.error().text;
    peer_ = std::make_unique<sys::Child>(std::move(*started));
    HsaTest::SetUp();
  }
  Answer ask(const std::string& line) {
    EXPECT_TRUE(peer_->write(line));
    const auto said = peer_->read(sys::Deadline::after_ns(60'000'000'000));
    EXPECT_TRUE(said) << said.error().text;
    return said ? std::stoi(*said) : -1;
  }
  std::unique_ptr<sys::Child> peer_;
};

TEST_F(HsaShare, AnotherProcessReadsAndWritesIt) {
  (void)device(4096);
  for (const std::size_t size : {std::size_t{5000}, std::size_t{4} << 20}) {
    std::byte* memory = device(size);
    ASSERT_EQ(HSA(hsa_memory_copy)(memory, std::vector<std::byte>(size, std::byte{3}).data(), size), kSuccess);
    IpcMemory handle{};
    ASSERT_EQ(HSA(hsa_amd_ipc_memory_create)(memory, size, &handle), kSuccess);
    ASSERT_EQ(ask("attach " + std::to_string(size) + words_of(handle)), kSuccess);
    EXPECT_EQ(ask("type"), kPointerIpc);
    EXPECT_EQ(ask("sum"), static_cast<Answer>(3 * size));
    EXPECT_EQ(ask("fill 16843009"), kSuccess);  // ones
    EXPECT_EQ(get(memory, 4), (std::vector<std::byte>(4, std::byte{1})));
    EXPECT_EQ(ask("detach"), kSuccess);
    EXPECT_EQ(ask("detach"), kInvalidArgument);
    EXPECT_EQ(free(memory), kSuccess);
  }
  // The 4096 bytes of the first line: found again by their neighbour's block.
  EXPECT_EQ(counter("live_ranges"), 1u);
  EXPECT_EQ(HSA(hsa_shut_down)(), kSuccess) << "what is left goes with the runtime";
  ASSERT_EQ(HSA(hsa_init)(), kSuccess);
  ASSERT_EQ(HSA(hsa_signal_create)(1, 0, nullptr, &done_), kSuccess);
}

TEST_F(HsaShare, AttachedMemoryIsTakenUntilDetached) {
  const std::uint64_t before = available();
  std::byte* memory = device(std::size_t{4} << 20);
  IpcMemory handle{};
  ASSERT_EQ(HSA(hsa_amd_ipc_memory_create)(memory, std::size_t{4} << 20, &handle), kSuccess);
  ASSERT_EQ(ask("attach 4194304" + words_of(handle)), kSuccess);
  EXPECT_EQ(free(memory), kSuccess);
  EXPECT_EQ(available(), before - (4u << 20));
  EXPECT_EQ(ask("sum"), 0) << "still there";
  EXPECT_EQ(ask("detach"), kSuccess);
  EXPECT_EQ(available(), before);
  EXPECT_EQ(ask("attach 4194304" + words_of(handle)), kInvalidArgument) << "a handle of memory that is gone";
}

TEST_F(HsaShare, WrongHandlesAreRefused) {
  std::byte* memory = device(5000);
  IpcMemory handle{};
  EXPECT_EQ(HSA(hsa_amd_ipc_memory_create)(memory + 1, 4999, &handle), kInvalidArgument);
  EXPECT_EQ(HSA(hsa_amd_ipc_memory_create)(memory, 4999, &handle), kInvalidArgument) << "only the whole allocation";
  EXPECT_EQ(HSA(hsa_amd_ipc_memory_create)(memory, 8192, &handle), kSuccess) << "or its whole pages";
  EXPECT_EQ(HSA(hsa_amd_ipc_memory_create)(memory, 5000, &handle), kSuccess);
  EXPECT_EQ(ask("attach 0" + words_of(handle)), kInvalidArgument);
  EXPECT_EQ(ask("attach 9000" + words_of(handle)), kInvalidArgument);
  EXPECT_EQ(ask("attach 100" + words_of(handle)), kInvalidArgument);
  for (int word = 0; word < 8; ++word) {
    for (const std::uint32_t flip : {1u, 0x80000000u, 0xffffffffu}) {
      IpcMemory wrong = handle;
      wrong.handle[word] ^= flip;
      const Answer answer = ask("attach 5000" + words_of(wrong));
      EXPECT_EQ(answer, kInvalidArgument) << "word " << word << " flip " << flip;
    }
  }
  EXPECT_EQ(ask("attach 5000" + words_of(handle)), kSuccess);
  EXPECT_EQ(ask("detach"), kSuccess);
  EXPECT_EQ(free(memory), kSuccess);
}

TEST_F(HsaShare, AnOutsideBufferIsMappedAndLetGo) {
  auto file = sys::make_sealed_memfd("somebody's buffer", 16384);
  ASSERT_TRUE(file);
  std::size_t size = 0, metadata = 7;
  void* pointer = nullptr;
  ASSERT_EQ(HSA(hsa_amd_interop_map_buffer)(1, &gpu_, file->get(), 0, &size, &pointer, &metadata, nullptr), kSuccess);
  EXPECT_EQ(size, 16384u);
  EXPECT_EQ(metadata, 0u);
  EXPECT_EQ(info_of(pointer).type, kPointerGraphics);
  EXPECT_EQ(HSA(hsa_amd_memory_fill)(pointer, 0x05050505, 4096), kSuccess);
  auto look = sys::map_file(file->get(), 0, 16384, sys::Protect::read);
  ASSERT_TRUE(look);
  EXPECT_EQ(look->data()[16383], std::byte{5});
  EXPECT_EQ(HSA(hsa_amd_interop_unmap_buffer)(pointer), kSuccess);
  EXPECT_EQ(HSA(hsa_amd_interop_map_buffer)(1, &gpu_, -1, 0, &size, &pointer, nullptr, nullptr), kInvalidArgument);
  EXPECT_EQ(HSA(hsa_amd_interop_map_buffer)(1, &gpu_, 0, 0, &size, &pointer, nullptr, nullptr), kInvalidArgument);
  EXPECT_EQ(HSA(hsa_amd_interop_map_buffer)(1, &cpu_, file->get(), 0, &size, &pointer, nullptr, nullptr),
            kInvalidAgent);
}

}  // namespace
}  // namespace strait::soft::hsa::testing

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "--peer") {
    strait::soft::hsa::testing::run_peer();
    return 0;
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
