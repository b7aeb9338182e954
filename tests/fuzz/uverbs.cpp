// SPDX-License-Identifier: Apache-2.0
// Fuzz target: RDMA_VERBS_IOCTL, attributes and what they point to, the older commands inside INVOKE_WRITE included.
// Whatever a program says, the device answers with 0 or an errno, touches nothing outside the program's memory, and
// gives everything back when it is closed.
//
// Input: steps of a kind byte, a length (2 bytes, little endian) and that many bytes.
//   kind 0  an ioctl: the bytes lie at address 0x10000     kind 1  where (2 bytes), and what is put there
// The program's memory is 64 KiB from 0x10000 on; nothing else is there.
#include <algorithm>
#include <cstring>

#include "uverbs_world.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace strait::fuzz;
  static World& world = *new World;
  world.arena.clear();
  {
    uverbs::Context context(world.device);
    open_context(context, world.arena);
    world.arena.clear();
    const std::uint8_t* at = data;
    const std::uint8_t* const end = data + size;
    while (end - at >= 3) {
      const unsigned kind = at[0];
      const auto asked = static_cast<std::size_t>(at[1] | at[2] << 8);
      at += 3;
      std::size_t n = std::min<std::size_t>(asked, static_cast<std::size_t>(end - at));
      if (kind % 2 == 1) {
        if (n < 2) break;
        const auto offset = static_cast<std::size_t>(at[0] | at[1] << 8);
        const std::size_t count = std::min(n - 2, kBytes - offset);
        std::memcpy(world.arena.at(kBase + offset), at + 2, count);
      } else {
        std::memcpy(world.arena.at(kBase), at, n);
        const int answer = context.call(kBase);
        require(answer <= 0 && answer > -4096, "an answer is 0 or an errno");
        world.engine->drive(0);
      }
      at += n;
    }
  }
  require_clean(world);
  return 0;
}
