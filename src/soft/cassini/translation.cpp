// SPDX-License-Identifier: Apache-2.0
#include "soft/cassini/translation.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>

namespace strait::soft::cassini {

using wire::ReturnCode;

namespace {

// Where in a list one is.
class ExtentCursor {
 public:
  explicit ExtentCursor(const Extents& list) : at_(list.begin()), end_(list.end()) {}
  // What is left of the current piece; 0: the list is at its end.
  [[nodiscard]] std::uint64_t left() {
    while (at_ != end_ && done_ == at_->bytes) {
      ++at_;
      done_ = 0;
    }
    return at_ == end_ ? 0 : at_->bytes - done_;
  }
  [[nodiscard]] std::byte* direct() const { return at_->direct == nullptr ? nullptr : at_->direct + done_; }
  [[nodiscard]] bool read(void* into, std::uint64_t bytes) const {
    return at_->memory != nullptr && at_->memory->read(at_->address + done_, into, bytes);
  }
  [[nodiscard]] bool write(const void* from, std::uint64_t bytes) const {
    return at_->memory != nullptr && at_->memory->write(at_->address + done_, from, bytes);
  }
  void advance(std::uint64_t bytes) { done_ += bytes; }

 private:
  const Extent* at_;
  const Extent* end_;
  std::uint64_t done_ = 0;
};

// The one that the address lies in; null: none.
const Md* descriptor_at(AddressContext& context, std::uint64_t iova) {
  const Md* const last = context.found_last;
  if (last != nullptr && iova - last->iova < last->length) return last;
  const auto next = context.by_iova.upper_bound(iova);
  if (next == context.by_iova.begin()) return nullptr;
  Md* const md = std::prev(next)->second;
  if (iova - md->iova >= md->length) return nullptr;
  context.found_last = md;
  return md;
}

bool through_bounce(ExtentCursor& from, ExtentCursor& to, std::uint64_t bytes) {
  std::byte* const between = bounce();
  return from.read(between, bytes) && to.write(between, bytes);
}

template <class Word>
bool store_one(std::byte* to, const void* from) {
  if (reinterpret_cast<std::uintptr_t>(to) % sizeof(Word) != 0) return false;
  using Aliased [[gnu::may_alias]] = Word;
  Word value;
  // What a program stores as one word is read as one, too.
  if (reinterpret_cast<std::uintptr_t>(from) % sizeof(Word) == 0) {
    value = __atomic_load_n(static_cast<const Aliased*>(from), __ATOMIC_RELAXED);
  } else {
    std::memcpy(&value, from, sizeof value);
  }
  __atomic_store_n(reinterpret_cast<Word*>(to), value, __ATOMIC_RELEASE);
  return true;
}

}  // namespace

// Never inlined: the compiler may keep the place of a thread_local for as long as a function lasts.
[[gnu::noinline]] std::byte* bounce() {
  thread_local const std::unique_ptr<std::byte[]> bytes(new std::byte[kBounceBytes]);
  return bytes.get();
}

void store_bytes(std::byte* to, const void* from, std::uint64_t bytes) {
  switch (bytes) {
    case 0: return;
    case 1:
      if (store_one<std::uint8_t>(to, from)) return;
      break;
    case 2:
      if (store_one<std::uint16_t>(to, from)) return;
      break;
    case 4:
      if (store_one<std::uint32_t>(to, from)) return;
      break;
    case 8:
      if (store_one<std::uint64_t>(to, from)) return;
      break;
    default: break;
  }
  std::memmove(to, from, bytes);  // a client may put onto itself
}

ReturnCode translate(const Lni& lni, std::uint32_t lac, std::uint64_t iova, std::uint64_t bytes, bool write,
                     Extents& out) {
  out.clear();
  if (lac >= lni.acs.size() || !lni.acs[lac]) return ReturnCode::invalid_ac;
  if (bytes == 0) return ReturnCode::ok;  // nothing is touched, so nothing has to be there
  if (iova + bytes < iova) return ReturnCode::no_translation;
  const std::uint32_t needed = write ? wire::kMapWrite : wire::kMapRead;
  while (bytes != 0) {
    const Md* const found = descriptor_at(*lni.acs[lac], iova);
    if (found == nullptr || found->dead || found->memory == nullptr) return ReturnCode::no_translation;
    const Md& md = *found;
    if ((md.flags & needed) == 0) return ReturnCode::page_perm_error;
    const std::uint64_t inside = iova - md.iova;
    const std::uint64_t here = std::min(bytes, md.length - inside);
    const std::uint64_t address = md.at + inside;
    out.push_back({.memory = md.memory, .address = address, .direct = md.memory->direct(address, here), .bytes = here});
    iova += here;
    bytes -= here;
  }
  return ReturnCode::ok;
}

ReturnCode move(const Extents& from, const Extents& to, std::uint64_t bytes) {
  // Nearly always: one piece on either side, and both can be touched.
  if (from.size() == 1 && to.size() == 1) {
    const Extent& in = from.front();
    const Extent& out = to.front();
    if (in.direct != nullptr && out.direct != nullptr && bytes <= in.bytes && bytes <= out.bytes) {
      store_bytes(out.direct, in.direct, bytes);
      return ReturnCode::ok;
    }
  }
  ExtentCursor source(from);
  ExtentCursor target(to);
  while (bytes != 0) {
    std::uint64_t here = std::min({bytes, source.left(), target.left()});
    if (here == 0) return ReturnCode::no_translation;
    std::byte* const in = source.direct();
    std::byte* const out = target.direct();
    bool moved = true;
    if (in != nullptr && out != nullptr) {
      store_bytes(out, in, here);
    } else if (in != nullptr) {
      moved = target.write(in, here);
    } else if (out != nullptr) {
      moved = source.read(out, here);
    } else {
      here = std::min(here, kBounceBytes);
      moved = through_bounce(source, target, here);
    }
    if (!moved) return ReturnCode::no_translation;
    source.advance(here);
    target.advance(here);
    bytes -= here;
  }
  return ReturnCode::ok;
}

ReturnCode read(const Extents& from, void* into, std::uint64_t bytes) {
  return move(from, plain(into, bytes), bytes);
}

ReturnCode write(const Extents& to, const void* from, std::uint64_t bytes) {
  return move(plain(from, bytes), to, bytes);
}

Extents part(const Extents& of, std::uint64_t offset, std::uint64_t bytes) {
  Extents out;
  for (const Extent& piece : of) {
    if (bytes == 0) break;
    if (offset >= piece.bytes) {
      offset -= piece.bytes;
      continue;
    }
    const std::uint64_t here = std::min(bytes, piece.bytes - offset);
    out.push_back({.memory = piece.memory,
                   .address = piece.address + offset,
                   .direct = piece.direct == nullptr ? nullptr : piece.direct + offset,
                   .bytes = here});
    bytes -= here;
    offset = 0;
  }
  return out;
}

bool read(const Place& place, std::uint64_t offset, void* into, std::uint64_t bytes) {
  if (place.direct != nullptr) {
    std::memcpy(into, place.direct + offset, bytes);
    return true;
  }
  return place.memory != nullptr && place.memory->read(place.address + offset, into, bytes);
}

bool write(const Place& place, std::uint64_t offset, const void* from, std::uint64_t bytes) {
  if (place.direct != nullptr) {
    store_bytes(place.direct + offset, from, bytes);
    return true;
  }
  return place.memory != nullptr && place.memory->write(place.address + offset, from, bytes);
}

}  // namespace strait::soft::cassini
