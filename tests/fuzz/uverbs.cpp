// SPDX-License-Identifier: Apache-2.0
// Fuzz target: RDMA_VERBS_IOCTL, attributes and what they point to, the older commands inside INVOKE_WRITE included.
// Whatever a program says, the device answers with 0 or an errno, touches nothing outside the program's memory, and
// gives everything back when it is closed.
//
// Input: steps of a kind byte, a length (2 bytes, little endian) and that many bytes.
//   kind 0  an ioctl: the bytes lie at address 0x10000     kind 1  where (2 bytes), and what is put there
// The program's memory is 64 KiB from 0x10000 on; nothing else is there.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <vector>

#include "require.hpp"
#include "soft/nic/engine.hpp"
#include "soft/roce/memory_port.hpp"
#include "soft/uverbs/context.hpp"
#include "sys/files.hpp"

namespace {

using namespace strait;
using namespace strait::soft;
using fuzz::require;

constexpr std::uint64_t kBase = 0x10000;
constexpr std::size_t kBytes = 0x10000;
constexpr int kMostFds = 256;

class Arena final : public uverbs::UserMemory {
 public:
  [[nodiscard]] bool inside(std::uint64_t at, std::uint64_t n) const {
    return at >= kBase && n <= kBytes && at - kBase <= kBytes - n;
  }
  [[nodiscard]] bool copy_in(std::uint64_t from, void* into, std::size_t n) const override {
    if (n != 0 && !inside(from, n)) return false;
    if (n != 0) std::memcpy(into, at(from), n);
    return true;
  }
  [[nodiscard]] bool copy_out(std::uint64_t to, const void* from, std::size_t n) const override {
    if (n != 0 && !inside(to, n)) return false;
    if (n != 0) std::memcpy(at(to), from, n);
    return true;
  }
  [[nodiscard]] std::byte* lasting(std::uint64_t address, std::uint64_t n, bool) const override {
    return n != 0 && inside(address, n) ? at(address) : nullptr;
  }
  [[nodiscard]] std::byte* at(std::uint64_t address) const { return bytes_ + (address - kBase); }
  void clear() const { std::memset(bytes_, 0, kBytes); }

 private:
  alignas(4096) static inline std::byte bytes_[kBytes];
};

std::set<int> open_fds() {
  std::set<int> out;
  for (int fd = 0; fd < kMostFds; ++fd) {
    if (sys::is_open_fd(fd)) out.insert(fd);
  }
  return out;
}

// One device for all inputs, on a port that leads nowhere.
struct World {
  World() {
    auto ports = roce::MemoryPort::make_pair(roce::IpAddress::v4(10, 0, 0, 1), roce::IpAddress::v4(10, 0, 0, 2));
    far = std::move(ports.second);
    uverbs::DeviceSettings settings;
    settings.gids = {{roce::IpAddress::v4(10, 0, 0, 1), "lo", 1, 65536}};
    settings.memory = &arena;
    settings.alone = true;
    settings.open_engine = [port = std::make_shared<std::unique_ptr<roce::MemoryPort>>(std::move(ports.first))](
                               const nic::EngineConfig&) -> Result<std::unique_ptr<nic::Engine>> {
      STRAIT_TRY(auto opened, nic::Engine::open({}));
      STRAIT_CHECK(opened->attach_port(std::move(*port)));
      return opened;
    };
    device = std::make_shared<uverbs::Device>(std::move(settings));
    engine = device->engine().value();
    fds = open_fds();
  }
  Arena arena;
  std::unique_ptr<roce::MemoryPort> far;
  std::shared_ptr<uverbs::Device> device;
  nic::Engine* engine = nullptr;
  std::set<int> fds;
};

void open_context(uverbs::Context& context, const Arena& arena) {
  // GET_CONTEXT with the driver's request and its answer.
  const std::uint16_t header[] = {24 + 2 * 16, 0, 3, 2};
  std::memcpy(arena.at(kBase), header, sizeof header);
  const std::uint32_t driver = 1;
  std::memcpy(arena.at(kBase + 16), &driver, 4);
  const auto attribute = [&](unsigned i, std::uint16_t id, std::uint16_t length, std::uint64_t data) {
    const std::uint16_t fields[] = {id, length, 1, 0};
    std::memcpy(arena.at(kBase + 24 + i * 16), fields, sizeof fields);
    std::memcpy(arena.at(kBase + 32 + i * 16), &data, 8);
  };
  attribute(0, 0x1000, 32, kBase + 0x1000);
  attribute(1, 0x1001, 256, kBase + 0x2000);
  *reinterpret_cast<std::uint8_t*>(arena.at(kBase + 0x1000 + 16)) = 1;  // max_cqe_version
  require(context.call(kBase) == 0, "a context opens");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
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
  for (int fd = 0; fd < kMostFds; ++fd) {
    if (sys::is_open_fd(fd) && !world.fds.contains(fd)) ::close(fd);  // what became the program's
  }
  world.far->on_the_way().clear();
  world.engine->drive(0);
  const std::string counters = world.engine->counters_text();
  require(counters.find("registrations=0") != std::string::npos, "closing gives registrations back");
  require(counters.find("queue_pairs=0") != std::string::npos, "closing gives queue pairs back");
  return 0;
}
