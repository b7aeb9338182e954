// SPDX-License-Identifier: Apache-2.0
// For fuzz targets that speak to a uverbs device: a program's memory, and one device for all inputs, on a port that
// leads nowhere.
#pragma once

#include <unistd.h>

#include <cstring>
#include <memory>
#include <set>
#include <string>

#include "require.hpp"
#include "soft/nic/engine.hpp"
#include "soft/roce/memory_port.hpp"
#include "soft/uverbs/context.hpp"
#include "sys/files.hpp"

namespace strait::fuzz {

namespace nic = soft::nic;
namespace roce = soft::roce;
namespace uverbs = soft::uverbs;

inline constexpr std::uint64_t kBase = 0x10000;
inline constexpr std::size_t kBytes = 0x10000;
inline constexpr int kMostFds = 256;

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

inline std::set<int> open_fds() {
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

inline void open_context(uverbs::Context& context, const Arena& arena, std::uint32_t flags = 0) {
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
  std::memcpy(arena.at(kBase + 0x1000 + 8), &flags, 4);
  *reinterpret_cast<std::uint8_t*>(arena.at(kBase + 0x1000 + 16)) = 1;  // max_cqe_version
  require(context.call(kBase) == 0, "a context opens");
}

// After a context has gone: everything it had is given back.
inline void require_clean(World& world) {
  for (int fd = 0; fd < kMostFds; ++fd) {
    if (sys::is_open_fd(fd) && !world.fds.contains(fd)) ::close(fd);  // what became the program's
  }
  world.far->on_the_way().clear();
  world.engine->drive(0);
  const std::string counters = world.engine->counters_text();
  require(counters.find("registrations=0") != std::string::npos, "closing gives registrations back");
  require(counters.find("queue_pairs=0") != std::string::npos, "closing gives queue pairs back");
}

}  // namespace strait::fuzz
