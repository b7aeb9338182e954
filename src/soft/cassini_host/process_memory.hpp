// SPDX-License-Identifier: Apache-2.0
// The memory of a client's process, as the device reaches it: by process_vm_readv, by asking the client where that is
// refused, and directly where the client said that a range lies on a file.
//
// The kernel makes a copy wait for pages that somebody else has to bring (userfaultfd, FUSE). So each is a call of a
// relay: a process that keeps the device for too long is left alone, and operations on its memory fail.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>

#include "base/error.hpp"
#include "soft/cassini/user_memory.hpp"
#include "soft/cassini_host/asked_memory.hpp"
#include "soft/cassini_host/file_memory.hpp"
#include "sys/address_space.hpp"
#include "sys/files.hpp"
#include "sys/relay.hpp"

namespace strait::soft::cassini {

class ProcessMemory final : public UserMemory {
 public:
  // `probe`: an address of the process that holds `expected`, to learn whether the kernel lets us. `relay` carries the
  // caller. `patience`: of the process.
  ProcessMemory(sys::Relay& relay, pid_t pid, std::uint64_t probe, std::uint64_t expected,
                std::shared_ptr<MemoryAsker> asker, std::shared_ptr<Patience> patience, bool may_reach);

  [[nodiscard]] bool read(std::uint64_t address, void* into, std::size_t bytes) override;
  [[nodiscard]] bool write(std::uint64_t address, const void* from, std::size_t bytes) override;
  [[nodiscard]] bool reaches(std::uint64_t address, std::uint64_t bytes, bool writable) override;
  [[nodiscard]] std::uint32_t huge_shift(std::uint64_t address, std::uint64_t bytes) override;
  [[nodiscard]] std::byte* direct(std::uint64_t address, std::uint64_t bytes) override;
  [[nodiscard]] bool lost() const override {
    return has_to_ask() ? asker_ == nullptr || asker_->dead() : patience_->given_up();
  }

  // 0 or -errno: EEXIST, EINVAL (the file could shrink), ENOMEM.
  [[nodiscard]] int share(std::uint64_t address, std::uint64_t bytes, int fd, std::uint64_t offset);
  [[nodiscard]] int unshare(std::uint64_t address);
  // The process has to have somebody who answers.
  [[nodiscard]] bool has_to_ask() const { return !reached_ || !space_; }

 private:
  // Never unmapped before the client goes: rings and descriptors hold places in them.
  using FileKey = std::tuple<sys::FileId, std::uint64_t, std::uint64_t>;
  struct Share {
    std::uint64_t bytes = 0;
    std::byte* at = nullptr;
  };
  enum class Way : std::uint8_t { read, write };
  // By the kernel's call, through the bounce: a copy that was left behind may end at any time, on any bytes.
  [[nodiscard]] bool copy(Way way, std::uint64_t address, std::byte* here, std::size_t bytes);
  [[nodiscard]] bool copy_bounce(Way way, std::uint64_t address, std::byte* between, std::size_t bytes);
  template <class Call>
  [[nodiscard]] bool within_patience(const Call& call);
  // What the kernel says of the address space, which waits as well while somebody changes it.
  template <class Look, class Answer>
  [[nodiscard]] Answer looked(const Look& look, Answer otherwise);

  sys::Relay& relay_;
  const pid_t pid_;
  const std::shared_ptr<Patience> patience_;
  bool reached_ = false;
  std::shared_ptr<sys::AddressSpace> space_;
  std::shared_ptr<MemoryAsker> asker_;
  std::map<std::uint64_t, Share> shares_;
  std::map<FileKey, FileBytes> files_;
};

}  // namespace strait::soft::cassini
