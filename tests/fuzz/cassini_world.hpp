// SPDX-License-Identifier: Apache-2.0
// For fuzz targets that speak to a software Cassini: memory of programs with canaries, clients in this process, and the
// books of a card, so that what a client leaves behind is seen.
#pragma once

#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "require.hpp"
#include "soft/cassini/card.hpp"
#include "soft/cassini/client.hpp"
#include "sys/mapping.hpp"

namespace strait::fuzz {

namespace cassini = soft::cassini;
namespace cxi = wire::cxi;

inline constexpr std::uint64_t kPage = 4096;

// A program's memory: pages from 1 MiB on, nothing else. Each byte starts as a function of its address, so that pages
// which nobody may write are known to be as they were.
class Memory final : public cassini::UserMemory {
 public:
  static constexpr std::uint64_t kBase = 0x100000;
  static constexpr std::uint64_t kPages = 32;
  static constexpr std::uint64_t kBytes = kPages * kPage;

  // Not direct: as memory that only the kernel's copies reach.
  explicit Memory(std::uint8_t salt, bool direct = true)
      : direct_(direct), bytes_(new std::byte[kBytes]), fresh_(new std::byte[kBytes]) {
    for (std::uint64_t i = 0; i < kBytes; ++i) fresh_[i] = static_cast<std::byte>(i * 7 + salt + (i >> 12));
    reset();
  }
  void reset() { std::memcpy(bytes_.get(), fresh_.get(), kBytes); }
  // As it was at first.
  void restore(std::uint64_t page, std::uint64_t bytes) {
    std::memcpy(bytes_.get() + page * kPage, fresh_.get() + page * kPage, bytes);
  }
  void set_direct(bool direct) { direct_ = direct; }
  [[nodiscard]] bool read(std::uint64_t address, void* into, std::size_t bytes) override {
    if (bytes == 0) return true;
    if (!inside(address, bytes)) return false;
    std::memcpy(into, at(address), bytes);
    return true;
  }
  [[nodiscard]] bool write(std::uint64_t address, const void* from, std::size_t bytes) override {
    if (bytes == 0) return true;
    if (!inside(address, bytes)) return false;
    std::memmove(at(address), from, bytes);
    return true;
  }
  [[nodiscard]] bool reaches(std::uint64_t address, std::uint64_t bytes, bool) override {
    return bytes != 0 && inside(address, bytes);
  }
  [[nodiscard]] std::byte* direct(std::uint64_t address, std::uint64_t bytes) override {
    return direct_ && bytes != 0 && inside(address, bytes) ? at(address) : nullptr;
  }
  [[nodiscard]] bool inside(std::uint64_t address, std::uint64_t bytes) const {
    return address >= kBase && bytes <= kBytes && address - kBase <= kBytes - bytes;
  }
  [[nodiscard]] std::byte* at(std::uint64_t address) const { return bytes_.get() + (address - kBase); }
  [[nodiscard]] std::byte* page(std::uint64_t number) const { return bytes_.get() + number * kPage; }
  [[nodiscard]] static constexpr std::uint64_t address_of(std::uint64_t page) { return kBase + page * kPage; }

  void require_untouched(std::uint64_t first_page, std::uint64_t end_page, const char* promise) const {
    const std::uint64_t first = first_page * kPage;
    require(std::memcmp(bytes_.get() + first, fresh_.get() + first, end_page * kPage - first) == 0, promise);
  }

 private:
  bool direct_;
  std::unique_ptr<std::byte[]> bytes_;  // of exactly this size: AddressSanitizer sees the first byte beyond
  std::unique_ptr<std::byte[]> fresh_;
};

// Bytes of an "accelerator" that the device reaches by copies only.
class Lump final : public cassini::UserMemory {
 public:
  Lump(std::byte* base, std::uint64_t bytes) : base_(base), bytes_(bytes) {}
  [[nodiscard]] bool read(std::uint64_t address, void* into, std::size_t bytes) override {
    if (!reaches(address, bytes, false)) return false;
    std::memcpy(into, base_ + address, bytes);
    return true;
  }
  [[nodiscard]] bool write(std::uint64_t address, const void* from, std::size_t bytes) override {
    if (!reaches(address, bytes, true)) return false;
    std::memcpy(base_ + address, from, bytes);
    return true;
  }
  [[nodiscard]] bool reaches(std::uint64_t address, std::uint64_t bytes, bool) override {
    return bytes != 0 && address <= bytes_ && bytes <= bytes_ - address;
  }
  [[nodiscard]] std::byte* direct(std::uint64_t, std::uint64_t) override { return nullptr; }

 private:
  std::byte* base_;
  std::uint64_t bytes_;
};

// Descriptor 3 is a buffer of 8 KiB, and there are 128 KiB of device memory at 1 GiB.
class Files final : public cassini::CommandFiles {
 public:
  static constexpr std::uint64_t kDevice = 0x40000000;
  int dmabuf(int fd, std::uint64_t offset, std::uint64_t bytes, std::unique_ptr<cassini::UserMemory>& out) override {
    if (fd != 3) return EBADF;
    if (offset > buffer_.size() || bytes > buffer_.size() - offset) return EFAULT;
    out = std::make_unique<Lump>(buffer_.data() + offset, bytes);
    return 0;
  }
  int device_pages(std::uint64_t address, std::uint64_t bytes, std::unique_ptr<cassini::UserMemory>& out) override {
    if (address < kDevice || bytes > device_.size() || address - kDevice > device_.size() - bytes) return EINVAL;
    out = std::make_unique<Lump>(device_.data() + (address - kDevice), bytes);
    return 0;
  }

 private:
  std::vector<std::byte> buffer_ = std::vector<std::byte>(2 * kPage);
  std::vector<std::byte> device_ = std::vector<std::byte>(32 * kPage);
};

// What a card has handed out, number by number.
struct Books {
  explicit Books(const cassini::Card& card) {
    const std::uint64_t seen[] = {card.lnis.taken(),
                                  card.domains.taken(),
                                  card.transmit_queues.taken(),
                                  card.target_queues.taken(),
                                  card.event_queues.taken(),
                                  card.counters.taken(),
                                  card.ptes.taken(),
                                  card.mds.taken(),
                                  card.acs.count(),
                                  card.rgids_available(),
                                  card.addresses.size(),
                                  card.les_in_use,
                                  card.tles_in_use};
    numbers.assign(std::begin(seen), std::end(seen));
    std::uint64_t mapped = 0;
    for (const auto& each : card.mapping_table) mapped += each ? 1 : 0;
    numbers.push_back(mapped);
    for (const std::uint32_t les : card.les_in_pe) numbers.push_back(les);
    for (const cassini::ResourceUse& each : card.resources) numbers.push_back(each.shared_use);
    if (const cassini::Service* service = card.services.find(cxi::kDefaultService)) {
      for (const std::uint32_t each : service->in_use) numbers.push_back(each);
      numbers.push_back(service->lnis);
    }
  }
  bool operator==(const Books&) const = default;
  std::vector<std::uint64_t> numbers;
};

// One open of the device. A response goes to the first bytes of page 0.
class Program final : public cassini::ClientHost {
 public:
  Program(cassini::Card& card, Memory& memory, const cassini::Who& who, std::uint32_t id,
          const cassini::ClientOptions& options = {})
      : memory_(memory) {
    auto pages = sys::make_sealed_memfd("cassini-fuzz", cassini::Client::kPagesBytes);
    require(pages.has_value(), "there are files in memory");
    pages_ = pages->get();
    client = std::make_unique<cassini::Client>(card, id, who, memory, std::move(*pages), *this);
    client->use(options);
  }
  void raise(std::uint32_t) override { ++raised; }

  long write(std::span<const std::byte> command) { return client->write(command, files); }
  template <class Command>
  void send(Command command) {
    command.op = Command::kOp;
    if constexpr (requires { command.resp; }) command.resp = Memory::kBase;
    require(write(std::as_bytes(std::span(&command, 1))) == static_cast<long>(sizeof command), "the setup is accepted");
  }
  template <class Response, class Command>
  Response ask(const Command& command) {
    send(command);
    Response response;
    std::memcpy(&response, memory_.at(Memory::kBase), sizeof response);
    return response;
  }
  // A cookie's pages as the program sees them.
  sys::Mapping map(const cxi::MmInfo& info) {
    require(client->map(info.offset, info.size) == 0, "a cookie is good once");
    auto mapping = sys::map_file(pages_, info.offset, info.size, sys::Protect::read_write);
    require(mapping.has_value(), "its pages can be mapped");
    return std::move(*mapping);
  }

  Files files;
  std::uint64_t raised = 0;
  std::unique_ptr<cassini::Client> client;

 private:
  Memory& memory_;
  int pages_ = -1;
};

inline constexpr cassini::Who kProgramUser{.uid = 1000, .gid = 1000, .netns = 1, .admin = false, .net_raw = false};

// Until nothing is left to do. Rings of a finite length cannot keep a device busy for ever.
inline void drive_to_rest(cassini::Fabric& fabric, std::uint32_t most_passes) {
  for (std::uint32_t pass = 0; pass < most_passes; ++pass) {
    if (fabric.drive() == 0) return;
  }
  require(false, "the device comes to rest");
}

}  // namespace strait::fuzz
