// SPDX-License-Identifier: Apache-2.0
// Host pages that a GPU may reach. Queues share pages (records, doorbell registers, a ring that begins where another
// ends), and a page can be registered once: what is registered is kept in pieces of whole pages, each counted.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace strait::rdmaxcel {

// The runtime as far as it is needed here; cuda.hpp has CUDA's. Numbers are the runtime's own, 0 is success. As it
// stands: the "GPU" is this CPU, and every address is the same on it.
struct Runtime {
  static constexpr int kInvalid = 1;    // cudaErrorInvalidValue
  static constexpr int kNoMemory = 2;   // cudaErrorMemoryAllocation
  static constexpr int kAlready = 712;  // cudaErrorHostMemoryAlreadyRegistered

  int (*pin)(void* begin, std::size_t bytes, bool io) = [](void*, std::size_t, bool) { return 0; };
  int (*unpin)(void* begin) = [](void*) { return 0; };
  int (*view)(void** out, void* host) = [](void** out, void* host) { return *out = host, 0; };
  // Zeroed, on a line of its own; shared: with one address for both sides. Otherwise host memory that view() knows.
  void* (*allocate)(std::size_t bytes, bool shared) = nullptr;
  void (*release)(void* p, bool shared) = nullptr;
  int (*started)() = [] { return 0; };  // asked before a launch on this CPU; CUDA says of its own launches itself
  int (*settle)() = [] { return 0; };   // until everything launched so far has run
  int (*publish)() = [] { return 0; };  // the table, to every copy of it
};

inline std::uintptr_t page_bytes() {
  static const auto bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

class Pages {
 public:
  // Pieces by where they begin: they are never cut, so that names them.
  using Held = std::vector<std::uintptr_t>;

  // Makes [p, p + bytes) reachable and gives its address there; what it holds is appended to `held`. On failure nothing
  // has changed. io: a device's register. Where the runtime does not take it as one, it may be the plain memory of a
  // NIC in software: `why_plain` is then what the runtime said to the register, and 0 where it took it.
  int hold(const Runtime& runtime, void* p, std::size_t bytes, bool io, Held& held, void*& there, int& why_plain) {
    const std::uintptr_t page = page_bytes();
    const std::uintptr_t first = reinterpret_cast<std::uintptr_t>(p);
    if (p == nullptr || bytes == 0 || first + bytes < first) return Runtime::kInvalid;
    const std::uintptr_t end = (first + bytes + page - 1) / page * page;
    Held mine;
    int status = 0;
    for (std::uintptr_t at = first / page * page; at < end && status == 0;) {
      Piece* const covered = piece_at(at);
      if (covered != nullptr) {
        ++covered->users;
        if (io && !covered->io) why_plain = covered->why_plain != 0 ? covered->why_plain : Runtime::kAlready;
        mine.push_back(covered->begin);
        at = covered->end;
        continue;
      }
      Piece piece{at, next_piece(at, end), io, false, 0, 1};
      status = pin(runtime, piece);
      // Some of these pages are somebody else's, and which is known of one alone only: the others are ours to register.
      if (status == Runtime::kAlready && piece.end > at + page) {
        piece.end = at + page;
        status = pin(runtime, piece);
      }
      if (status == Runtime::kAlready) {
        piece.foreign = true;
        status = 0;
      }
      if (status != 0) break;
      if (io && !piece.io) why_plain = piece.why_plain;
      pieces_.push_back(piece);
      mine.push_back(at);
      at = piece.end;
    }
    if (status == 0) status = one_view(runtime, p, mine, there);
    if (status != 0) {
      drop(runtime, mine);
      return status;
    }
    held.insert(held.end(), mine.begin(), mine.end());
    return 0;
  }

  // In reverse order; what nobody else holds is unregistered.
  void drop(const Runtime& runtime, Held& held) {
    for (auto name = held.rbegin(); name != held.rend(); ++name)
      for (std::size_t i = 0; i < pieces_.size(); ++i) {
        if (pieces_[i].begin != *name) continue;
        if (--pieces_[i].users == 0) {
          if (!pieces_[i].foreign) (void)runtime.unpin(reinterpret_cast<void*>(pieces_[i].begin));
          pieces_.erase(pieces_.begin() + static_cast<std::ptrdiff_t>(i));
        }
        break;
      }
    held.clear();
  }

  std::size_t pieces() const { return pieces_.size(); }

 private:
  struct Piece {
    std::uintptr_t begin, end;
    bool io;
    bool foreign;   // one page, registered by somebody else, who will unregister it
    int why_plain;  // what the runtime said to it as a register, where it was to be one and is not
    unsigned users;
  };

  static int pin(const Runtime& runtime, Piece& piece) {
    void* const begin = reinterpret_cast<void*>(piece.begin);
    const std::size_t bytes = piece.end - piece.begin;
    int status = runtime.pin(begin, bytes, piece.io);
    if (status == 0 || status == Runtime::kAlready || !piece.io) return status;
    // A page that is not taken either way is a register all the same: the first answer is the one that says why.
    const int plain = runtime.pin(begin, bytes, false);
    if (plain != 0 && plain != Runtime::kAlready) return status;
    piece.io = false;
    piece.why_plain = status;
    return plain;
  }

  // Asked for where pieces begin, which is what the runtime knows. A ring in several pieces is one ring only if they
  // lie as far apart over there as here.
  static int one_view(const Runtime& runtime, void* p, const Held& mine, void*& there) {
    std::uintptr_t distance = 0;
    for (std::size_t i = 0; i < mine.size(); ++i) {
      void* seen = nullptr;
      if (const int status = runtime.view(&seen, reinterpret_cast<void*>(mine[i]))) return status;
      const std::uintptr_t here_to_there = reinterpret_cast<std::uintptr_t>(seen) - mine[i];
      if (i != 0 && here_to_there != distance) return Runtime::kInvalid;
      distance = here_to_there;
    }
    there = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(p) + distance);
    return 0;
  }

  Piece* piece_at(std::uintptr_t at) {
    for (Piece& piece : pieces_)
      if (piece.begin <= at && at < piece.end) return &piece;
    return nullptr;
  }
  std::uintptr_t next_piece(std::uintptr_t at, std::uintptr_t end) const {
    for (const Piece& piece : pieces_)
      if (piece.begin > at && piece.begin < end) end = piece.begin;
    return end;
  }

  std::vector<Piece> pieces_;
};

}  // namespace strait::rdmaxcel
