// SPDX-License-Identifier: Apache-2.0
// Fuzz target: command mailboxes of DevX, with queues and keys in memory of the program's own. Whatever a mailbox says,
// the answer is 0, an errno, or a refusal with status and syndrome and nothing else in it; and everything is given
// back.
//
// Input: steps of what (1 byte), a handle (1), room for the answer in units of 8 bytes (1), a length (2 bytes, little
// endian) and that many bytes.
//   what 0 create   1 modify   2 query   3 destroy   4 about the device   5 umem: offset (2), length (2), access (1)
// The program has a doorbell page (handle 1, page 8192) and a umem (handle 2) over the upper half of its 64 KiB. The
// number 0xfffffe stands for the newest domain, completion queue, shared receive queue and queue pair.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <vector>

#include "strait/wire/prm.hpp"
#include "uverbs_world.hpp"

namespace {

using namespace strait::fuzz;
namespace prm = strait::wire::prm;

constexpr std::uint64_t kIn = kBase + 0x1000;
constexpr std::uint64_t kOut = kBase + 0x4000;
constexpr std::size_t kMostIn = 0x3000;
constexpr std::uint32_t kNewest = 0xfffffe;

struct Attribute {
  std::uint16_t id;
  std::uint16_t length;
  std::uint64_t data;
};

int call(uverbs::Context& context, const Arena& arena, std::uint16_t object, std::uint16_t method,
         const std::vector<Attribute>& attributes) {
  const std::uint16_t header[] = {static_cast<std::uint16_t>(24 + 16 * attributes.size()), object, method,
                                  static_cast<std::uint16_t>(attributes.size())};
  std::memset(arena.at(kBase), 0, 24);
  std::memcpy(arena.at(kBase), header, sizeof header);
  const std::uint32_t driver = 1;
  std::memcpy(arena.at(kBase + 16), &driver, 4);
  std::uint64_t at = kBase + 24;
  for (const Attribute& attribute : attributes) {
    const std::uint16_t fields[] = {attribute.id, attribute.length, 1, 0};
    std::memcpy(arena.at(at), fields, sizeof fields);
    std::memcpy(arena.at(at + 8), &attribute.data, 8);
    at += 16;
  }
  const int answer = context.call(kBase);
  require(answer <= 0 && answer > -4096, "an answer is 0 or an errno");
  return answer;
}

// Objects and methods of the driver's own numbers, which begin here.
constexpr std::uint16_t kOwn = 0x1000;
enum : std::uint16_t { kDevx = kOwn, kObject, kUmem, kUar = kOwn + 8 };

class Program {
 public:
  Program(World& world, uverbs::Context& context) : world_(world), context_(context) {
    require(
        call(
            context, arena(), kUar, kOwn,
            {{kOwn, 0, 0}, {kOwn + 1, 8, 1}, {kOwn + 2, 8, kOut}, {kOwn + 3, 4, kOut + 8}, {kOwn + 4, 4, kOut + 16}}) ==
            0,
        "a doorbell page");
    require(umem(0x8000, 0x8000, 1) == 0, "a umem");
  }

  int umem(std::uint64_t offset, std::uint64_t length, std::uint32_t access) {
    return call(context_, arena(), kUmem, kOwn,
                {{kOwn, 0, 0},
                 {kOwn + 1, 8, kBase + offset},
                 {kOwn + 2, 8, length},
                 {kOwn + 3, 4, access},
                 {kOwn + 4, 4, kOut}});
  }

  void mailbox(unsigned what, std::uint32_t handle, std::size_t room, const std::uint8_t* bytes, std::size_t n) {
    n = std::min(n, kMostIn);
    auto* const in = reinterpret_cast<std::uint8_t*>(arena().at(kIn));
    std::memcpy(in, bytes, n);
    const auto command = n >= 2 ? static_cast<prm::Command>(prm::get(in, prm::kOpcode)) : prm::Command{};
    name_newest(in, n, what, command);
    std::memset(arena().at(kOut), 0x5a, room);
    const auto in_length = static_cast<std::uint16_t>(n);
    const auto out_length = static_cast<std::uint16_t>(room);
    // What fits into an attribute lies in it.
    std::uint64_t in_data = kIn;
    if (n <= 8) {
      in_data = 0;
      std::memcpy(&in_data, in, n);
    }
    int answer = 0;
    if (what == 4) {
      answer = call(context_, arena(), kDevx, kOwn, {{kOwn, in_length, in_data}, {kOwn + 1, out_length, kOut}});
    } else {
      static constexpr std::array<std::uint16_t, 3> kMethods = {kOwn, kOwn + 2, kOwn + 3};
      answer = call(context_, arena(), kObject, kMethods[what],
                    {{kOwn, 0, handle}, {kOwn + 1, in_length, in_data}, {kOwn + 2, out_length, kOut}});
    }
    const auto* const out = reinterpret_cast<const std::uint8_t*>(arena().at(kOut));
    if (answer == -EREMOTEIO || (answer == -EOPNOTSUPP && room >= 16)) {
      require(prm::get(out, prm::kStatus) != 0 && prm::get(out, prm::kSyndrome) != 0, "a refusal says why");
      require(std::all_of(out + 8, out + room, [](std::uint8_t b) { return b == 0; }), "and nothing else");
    }
    if (answer == 0 && what == 0) newest_[command] = static_cast<std::uint32_t>(prm::get(out, prm::kNumber));
  }

 private:
  [[nodiscard]] const Arena& arena() const { return world_.arena; }

  // Numbers go up from input to input, so no input can know them.
  void name_newest(std::uint8_t* in, std::size_t n, unsigned what, prm::Command command) {
    const auto name = [&](prm::Field field, prm::Command maker) {
      if (prm::end_of(field) <= n && prm::get(in, field) == kNewest) prm::put(in, field, newest_[maker]);
    };
    if (what == 1 || what == 2) name(prm::kNumber, prm::Command::create_qp);
    if (what != 0) return;
    if (command == prm::Command::create_qp) {
      name(prm::at(prm::create_qp::kContext, prm::qpc::kPd), prm::Command::alloc_pd);
      name(prm::at(prm::create_qp::kContext, prm::qpc::kSendCqn), prm::Command::create_cq);
      name(prm::at(prm::create_qp::kContext, prm::qpc::kReceiveCqn), prm::Command::create_cq);
      name(prm::at(prm::create_qp::kContext, prm::qpc::kSharedNumber), prm::Command::create_rmp);
    }
    if (command == prm::Command::create_rmp) name(prm::at(prm::create_rmp::kWq, prm::wq::kPd), prm::Command::alloc_pd);
    if (command == prm::Command::create_mkey) {
      name(prm::at(prm::create_mkey::kContext, prm::mkc::kPd), prm::Command::alloc_pd);
      for (std::size_t entry = prm::create_mkey::kBytes; entry < n; entry += prm::klm::kBytes) {
        const prm::Field part = prm::at(static_cast<std::uint32_t>(entry * 8), prm::klm::kKey);
        if (prm::end_of(part) <= n && prm::get(in, part) >> 8 == kNewest)
          prm::put(in, part, newest_[command] << 8 | (prm::get(in, part) & 0xff));
      }
    }
  }

  World& world_;
  uverbs::Context& context_;
  std::map<prm::Command, std::uint32_t> newest_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static World& world = *new World;
  world.arena.clear();
  {
    uverbs::Context context(world.device);
    open_context(context, world.arena, 1);
    world.arena.clear();
    Program program(world, context);
    const std::uint8_t* at = data;
    const std::uint8_t* const end = data + size;
    while (end - at >= 5) {
      const unsigned what = at[0] % 6u;
      const std::uint32_t handle = at[1];
      const std::size_t room = std::size_t{at[2]} * 8;
      const std::size_t n =
          std::min<std::size_t>(at[3] | std::size_t{at[4]} << 8, static_cast<std::size_t>(end - at) - 5);
      at += 5;
      if (what == 3) {
        (void)call(context, world.arena, kObject, kOwn + 1, {{kOwn, 0, handle}});
      } else if (what == 5) {
        if (n >= 5) (void)program.umem(at[0] + 256ULL * at[1], at[2] + 256ULL * at[3], at[4]);
      } else {
        program.mailbox(what, handle, room, at, n);
      }
      at += n;
      world.engine->drive(0);
    }
  }
  require_clean(world);
  return 0;
}
