// SPDX-License-Identifier: Apache-2.0
// From an address of an LNI (its context and an IOVA) to bytes, and from bytes to bytes.
#pragma once

#include <cstdint>

#include "soft/cassini/extents.hpp"
#include "soft/cassini/objects.hpp"

namespace strait::soft::cassini {

// ok, invalid_ac, no_translation (nothing mapped there, or it moved away), page_perm_error. An access may reach over
// several descriptors that follow each other. Nothing of `out` is valid unless ok.
[[nodiscard]] wire::ReturnCode translate(const Lni& lni, std::uint32_t lac, std::uint64_t iova, std::uint64_t bytes,
                                         bool write, Extents& out);

// The first `bytes` of one list to the first `bytes` of another, each byte once where either side is direct. Up to
// eight aligned bytes are one store: others wait for them. no_translation: the memory behind one of them is gone, or a
// list is too short.
[[nodiscard]] wire::ReturnCode move(const Extents& from, const Extents& to, std::uint64_t bytes);
[[nodiscard]] wire::ReturnCode read(const Extents& from, void* into, std::uint64_t bytes);
[[nodiscard]] wire::ReturnCode write(const Extents& to, const void* from, std::uint64_t bytes);
// The part [offset, offset + bytes), as far as there is one.
[[nodiscard]] Extents part(const Extents& of, std::uint64_t offset, std::uint64_t bytes);
// Plain bytes of the device as a list: the payload of an immediate command. Lists that are read from and those that are
// written to are one type; a payload is only ever read from.
inline void add_plain(Extents& list, const void* bytes, std::uint64_t length) {
  if (length != 0) list.push_back({nullptr, 0, const_cast<std::byte*>(static_cast<const std::byte*>(bytes)), length});
}
[[nodiscard]] inline Extents plain(const void* bytes, std::uint64_t length) {
  Extents out;
  add_plain(out, bytes, length);
  return out;
}

// Where bytes lie on their way between two memories that the device cannot touch. Of the thread that runs: after a copy
// that failed it may be another one, and what was lent before is left to whom it failed with. Each copy asks anew.
inline constexpr std::uint64_t kBounceBytes = 64 << 10;
[[nodiscard]] std::byte* bounce();

// Rings, queues and words that client and device share. False: the memory is gone.
[[nodiscard]] bool read(const Place& place, std::uint64_t offset, void* into, std::uint64_t bytes);
[[nodiscard]] bool write(const Place& place, std::uint64_t offset, const void* from, std::uint64_t bytes);

// Bytes as the device stores them: 1, 2, 4 or 8 aligned ones with one store, after everything stored before.
void store_bytes(std::byte* to, const void* from, std::uint64_t bytes);

}  // namespace strait::soft::cassini
