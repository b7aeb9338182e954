// SPDX-License-Identifier: Apache-2.0
// Fuzz target: the calls of /dev/cxiN. Whatever a program writes or maps, the answer is a length or an errno, only the
// program's memory is touched, and after its close the card's books are as before.
//
// Input: steps of a kind byte, a length (2 bytes, little endian) and that many bytes.
//   0  write(2) of those bytes                      1  map: an offset (8 bytes), a length (8)
//   2  unmap: an offset (8)                         3  an offset of the memory (2), and what is put there
//   4  whom the program is from now on: a user (0), one with rights (1)
//   5  a descriptor's memory moves away (4)         6  the device looks at its rings
// Memory is 128 KiB from 0x100000 on. A map whose offset is below 4096 names the n-th pair that page 0 holds.
#include <algorithm>

#include "cassini_world.hpp"

namespace {

using namespace strait::fuzz;

constexpr cassini::Who kAdmin{.uid = 0, .gid = 0, .netns = 1, .admin = true, .net_raw = true};

std::uint64_t word_at(std::span<const std::byte> bytes, std::size_t at) {
  std::uint64_t word = 0;
  if (at < bytes.size()) std::memcpy(&word, bytes.data() + at, std::min<std::size_t>(8, bytes.size() - at));
  return word;
}

void step(cassini::Fabric& fabric, Program& program, Memory& memory, unsigned kind, std::span<const std::byte> bytes) {
  switch (kind % 7) {
    case 0: {
      const long answer = program.write(bytes);
      require(answer == static_cast<long>(bytes.size()) || (answer < 0 && answer > -4096),
              "an answer is the length or an errno");
      break;
    }
    case 1: {
      std::uint64_t offset = word_at(bytes, 0), length = word_at(bytes, 8);
      if (offset < kPage) {
        const std::uint64_t pair = Memory::kBase + offset / 8 * 8 % (kPage - 16);
        std::memcpy(&offset, memory.at(pair), 8);
        std::memcpy(&length, memory.at(pair + 8), 8);
      }
      const int answer = program.client->map(offset, length);
      require(answer == 0 || answer == -EINVAL, "a cookie is good or not");
      if (answer == 0) require(program.client->map(offset, length) == -EINVAL, "a cookie is good once");
      if (answer == 0) require(program.client->page(offset) != cassini::Client::Page::none, "it is of some kind");
      break;
    }
    case 2: program.client->unmap(word_at(bytes, 0)); break;
    case 3:
      if (bytes.size() >= 2) {
        const std::size_t offset = word_at(bytes, 0) & 0xffff;
        const std::size_t n = std::min<std::size_t>(bytes.size() - 2, Memory::kBytes - offset);
        if (n != 0) std::memcpy(memory.page(0) + offset, bytes.data() + 2, n);
      }
      break;
    case 4: program.client->become(word_at(bytes, 0) % 2 == 0 ? kProgramUser : kAdmin); break;
    case 5: program.client->tear_down(static_cast<std::uint32_t>(word_at(bytes, 0))); break;
    default: drive_to_rest(fabric, 1000); break;
  }
}

// Services outlive the client that made them: who made or changed some costs the next input new cards.
struct Device {
  Device() : desc(fabric.card(0)->services.find(cxi::kDefaultService)->desc), before(*fabric.card(0)) {}
  [[nodiscard]] bool as_new() {
    const cassini::Card& card = *fabric.card(0);
    bool others = false;
    card.services.each([&](const cassini::Service& each) { others = others || each.id != cxi::kDefaultService; });
    const cassini::Service* const service = card.services.find(cxi::kDefaultService);
    return !others && service != nullptr && std::memcmp(&service->desc, &desc, sizeof desc) == 0 &&
           service->lnis_per_rgid == 1;
  }
  cassini::Fabric fabric{1};
  cxi::SvcDesc desc;
  Books before;
  std::size_t networks = fabric.card(0)->profiles.size();
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Memory& memory = *new Memory(3);
  static auto& device = *new std::unique_ptr<Device>;
  if (!device || !device->as_new()) device = std::make_unique<Device>();
  memory.reset();
  cassini::Fabric& fabric = device->fabric;
  cassini::Card& card = *fabric.card(0);
  {
    Program program(card, memory, kAdmin, 1);
    const auto* at = reinterpret_cast<const std::byte*>(data);
    const std::byte* const end = at + size;
    while (end - at >= 3) {
      const auto asked = static_cast<std::size_t>(at[1]) | static_cast<std::size_t>(at[2]) << 8;
      const std::size_t n = std::min(asked, static_cast<std::size_t>(end - at) - 3);
      step(fabric, program, memory, static_cast<unsigned>(at[0]), {at + 3, n});
      at += 3 + n;
    }
    drive_to_rest(fabric, 20'000);
  }
  card.services.each([&](const cassini::Service& each) {
    require(each.lnis == 0, "closing leaves no LNI in a service");
    for (const std::uint32_t used : each.in_use) require(used == 0, "closing gives a service's credits back");
  });
  require(Books(card) == device->before, "closing gives everything back");
  if (device->as_new()) require(card.profiles.size() == device->networks, "networks go with their users");
  for (const auto& profile : card.profiles) require(profile->pids.none(), "closing gives PIDs back");
  drive_to_rest(fabric, 2);
  return 0;
}
