// SPDX-License-Identifier: Apache-2.0
// Fuzz target: program files that `strait run` looks at before it starts them.
//
// Input: the file.
#include <algorithm>
#include <cstring>
#include <memory>
#include <span>

#include "require.hpp"
#include "soft/host/elf.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using strait::fuzz::require;
  namespace host = strait::soft::host;
  const std::unique_ptr<std::byte[]> memory(new std::byte[size]);
  if (size != 0) std::memcpy(memory.get(), data, size);
  const std::span<const std::byte> file(memory.get(), size);
  std::size_t reads = 0;
  const host::ReadAt read_at = [&](std::uint64_t offset, std::span<std::byte> into) -> std::size_t {
    ++reads;
    if (offset >= file.size()) return 0;
    const std::span<const std::byte> there = file.subspan(static_cast<std::size_t>(offset));
    const std::size_t count = std::min(there.size(), into.size());
    std::copy_n(there.begin(), count, into.begin());
    return count;
  };
  const auto facts = host::read_elf(read_at);
  require(reads < 5000, "a file does not keep us busy");
  require(facts.has_value() || !facts.error().text.empty(), "a refusal has a reason");
  if (facts && *facts) {
    const std::string& interpreter = (*facts)->interpreter;
    require(interpreter.find('\0') == std::string::npos && interpreter.size() < 4096, "a loader has a proper name");
  }
  const auto script = host::script_interpreter(read_at);
  require(!(script && facts && *facts), "nothing is both a script and an ELF file");
  require(!script || (!script->empty() && script->find_first_of(" \t\n") == std::string::npos),
          "an interpreter is one word");
  return 0;
}
