// SPDX-License-Identifier: Apache-2.0
#include "soft/accel/window.hpp"

#include <cstring>

#include "sys/clock.hpp"
#include "sys/file_hold.hpp"
#include "sys/files.hpp"
#include "sys/host.hpp"
#include "sys/mapping.hpp"
#include "sys/note.hpp"
#include "sys/pause.hpp"

namespace strait::soft::accel {
namespace {

Result<OpenedPiece> open_piece(const ListedPiece& listed) {
  STRAIT_TRY(sys::Fd file, sys::open_of_process(static_cast<pid_t>(listed.process), listed.file));
  const auto id = sys::file_id(file.get());
  if (!id || id->device != listed.device || id->inode != listed.inode)
    return fail(Code::gone, "the memory behind a dma-buf of process {} is gone", listed.process);
  const std::int64_t bytes = sys::file_bytes(file.get());
  if (bytes < 0 || listed.offset > static_cast<std::uint64_t>(bytes) ||
      listed.length_bytes > static_cast<std::uint64_t>(bytes) - listed.offset)
    return fail(Code::invalid, "a dma-buf of process {} claims bytes past the end of its memory", listed.process);
  // Its owner may be asking at this very moment whether somebody holds it.
  const sys::Deadline deadline = sys::Deadline::after_ns(1'000'000'000);
  for (std::uint32_t turn = 0; !sys::hold_file(file.get()); ++turn) {
    if (deadline.passed()) return fail(Code::gone, "the memory behind a dma-buf of process {} is gone", listed.process);
    sys::pause_turn(turn);
  }
  return OpenedPiece{std::move(file), listed.offset, listed.length_bytes};
}

}  // namespace

Result<sys::Fd> make_window(std::span<const WindowPiece> pieces) {
  if (pieces.empty() || pieces.size() > kMostPieces)
    return fail(Code::limit, "a dma-buf of {} pieces cannot be made, from 1 to {} can", pieces.size(), kMostPieces);
  PieceList list{};
  list.magic = kWindowMagic;
  list.count = pieces.size();
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto id = sys::file_id(pieces[i].file);
    if (!id || pieces[i].length_bytes == 0 || pieces[i].length_bytes % sys::page_bytes() != 0)
      return fail(Code::invalid, "piece {} of a dma-buf is no whole pages of an open file", i);
    list.pieces[i] = {static_cast<std::uint32_t>(sys::process_id()),
                      pieces[i].file,
                      id->device,
                      id->inode,
                      pieces[i].offset,
                      pieces[i].length_bytes};
    total += pieces[i].length_bytes;
  }
  return sys::make_note(kWindowName, total, &list, sizeof list);
}

Result<std::optional<std::vector<OpenedPiece>>> open_window(int fd) {
  using Pieces = std::optional<std::vector<OpenedPiece>>;
  if (sys::memfd_name(fd) != kWindowName) return Pieces{};
  PieceList list{};
  if (sys::read_start(fd, &list, sizeof list) != sizeof list || list.magic != kWindowMagic || list.count == 0 ||
      list.count > kMostPieces)
    return fail(Code::invalid, "fd {} looks like a dma-buf, but does not say what is in it", fd);
  std::vector<OpenedPiece> pieces;
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < list.count; ++i) {
    STRAIT_TRY(OpenedPiece piece, open_piece(list.pieces[i]));
    total += piece.length_bytes;
    pieces.push_back(std::move(piece));
  }
  if (static_cast<std::int64_t>(total) != sys::file_bytes(fd))
    return fail(Code::invalid, "the pieces of dma-buf fd {} are not as long as it is", fd);
  return Pieces(std::move(pieces));
}

}  // namespace strait::soft::accel
