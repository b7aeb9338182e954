// SPDX-License-Identifier: Apache-2.0
// ExportBook: how the NICs reach an allocation, found out once and shared by every registration made from it while any
// of them lives.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/mutex.hpp"
#include "export/reach.hpp"

namespace strait::node {

// What tells the memory behind a claim from all others, in the book and in the registration cache; 0: nothing does.
[[nodiscard]] std::uint64_t key_identity(const buffer::Claim& claim);

// The descriptors of an export, open while somebody registers with them. A NIC holds the memory by itself.
struct ExportFiles {
  exports::ExportedFd fd;
  exports::ExportedFd pages;
};

// The way that a NIC took in the end, and those before it that were none.
struct Taken {
  exports::Way way = exports::Way::dmabuf;
  std::vector<exports::Rejected> before{};
};

// An answer of exports::make_reachable without the descriptors: who registers opens them, and they close with the last
// who does.
//
// Threads: any.
class Reached : public std::enable_shared_from_this<Reached> {
 public:
  using Files = std::shared_ptr<ExportFiles>;

  // Takes the descriptors of `how` into `files`. They are exported anew from the claim when they are asked for later;
  // of a claim without a provider (a descriptor of the application) they are not.
  Reached(exports::Exported how, const buffer::Claim& claim, Files& files, std::vector<exports::Rejected> refused = {});

  [[nodiscard]] exports::Way way() const { return how_.way; }
  [[nodiscard]] exports::Lifetime lifetime() const { return how_.lifetime(); }
  [[nodiscard]] buffer::Range range() const { return how_.range; }
  [[nodiscard]] const strait_memory_port* port() const { return how_.port; }
  [[nodiscard]] const std::string& text() const { return how_.text; }
  [[nodiscard]] const std::vector<exports::Rejected>& rejected() const { return how_.rejected; }
  [[nodiscard]] Taken taken() const;
  [[nodiscard]] std::string rejected_text() const;  // "; dma-buf: because; staged through host: because"
  // The ways that were tried before and what the NIC said: part of the rejected.
  [[nodiscard]] const std::vector<exports::Rejected>& refused() const { return refused_; }
  [[nodiscard]] const buffer::Claim& claim() const { return claim_; }
  // Registered by the address that the device calls it by, without a descriptor.
  [[nodiscard]] bool by_device_address() const {
    return how_.way == exports::Way::peer_memory || how_.way == exports::Way::p2p_pages;
  }
  [[nodiscard]] bool has_files() const { return has_fd_; }
  // Only what is open already can be trusted to be this memory.
  [[nodiscard]] bool can_open_again() const { return claim_.provider != nullptr && claim_.identity != 0; }

  // What a NIC said that would not register it so; empty where it has not been asked, or took it.
  void note_refusal(std::size_t rail, std::string why);
  [[nodiscard]] std::string refusal_of(std::size_t rail) const;

  // Those that are open now, or a fresh export; null where none belong to it. Code::gone: other memory is there now.
  [[nodiscard]] Result<Files> open();

 private:
  [[nodiscard]] bool still_the_same() const;

  exports::Exported how_;
  const std::vector<exports::Rejected> refused_;
  const buffer::Claim claim_;
  const bool has_fd_;
  const bool has_pages_;
  mutable Mutex mutex_;
  std::weak_ptr<ExportFiles> open_now_ STRAIT_GUARDED_BY(mutex_);
  std::map<std::size_t, std::string> refused_by_ STRAIT_GUARDED_BY(mutex_);  // by the number of the NIC
};

class ExportBook {
 public:
  using Shared = std::shared_ptr<Reached>;

  // How the whole allocation is reached: what is known already, or what is found out now. Whatever descriptors that
  // opened stay open while `files` lives.
  [[nodiscard]] Result<Shared> get(const buffer::Claim& claim, const exports::NicAbilities& nic,
                                   const exports::Policy& policy, Reached::Files& files);
  // Found out now, whatever is known: a NIC has refused what was.
  [[nodiscard]] Result<Shared> find_out(const buffer::Claim& claim, const exports::NicAbilities& nic,
                                        const exports::Policy& policy, Reached::Files& files);
  // What lies there now is other memory than what is known.
  void forget(const buffer::Range& range);
  // A NIC has registered it: from now on that is how memory of its device is reached, as far as anybody knows.
  void registered(const Reached& how);
  [[nodiscard]] std::optional<Taken> last_of(const std::string& device) const;

 private:
  using Key = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>;
  mutable Mutex mutex_;
  std::map<Key, std::weak_ptr<Reached>> entries_ STRAIT_GUARDED_BY(mutex_);
  // Of host memory without identity: the same answer for all of it, so made once.
  Shared plain_host_ STRAIT_GUARDED_BY(mutex_);
  // Of devices whose memory is not reached by the first way, and whether there are any.
  std::map<std::string, Taken> last_ STRAIT_GUARDED_BY(mutex_);
  std::atomic<bool> some_last_{false};
  std::size_t sweep_at_ STRAIT_GUARDED_BY(mutex_) = 64;
};

}  // namespace strait::node
