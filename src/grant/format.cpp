// SPDX-License-Identifier: Apache-2.0
#include "grant/format.hpp"

#include <algorithm>
#include <cstring>

#include "sys/socket.hpp"

namespace strait::grant {

Result<Note> read_note(std::span<const std::byte> bytes) {
  Note note;
  if (bytes.size() != sizeof note)
    return fail(Code::invalid, "a note about a grant has {} bytes, not {}", sizeof note, bytes.size());
  std::memcpy(&note, bytes.data(), sizeof note);
  if (note.magic != kMagic) return fail(Code::invalid, "a process sent something that is no note about a grant");
  if (note.version != kVersion)
    return fail(Code::unsupported, "the other Node speaks version {} of map and copy grants, this one {}", note.version,
                kVersion);
  const auto what = static_cast<std::uint16_t>(note.what);
  if (what == 0 || what > kLastWhat) return fail(Code::invalid, "a note about a grant is of the unknown kind {}", what);
  if (static_cast<std::uint32_t>(note.way) > static_cast<std::uint32_t>(Way::copy))
    return fail(Code::invalid, "a note names the unknown way {}", static_cast<std::uint32_t>(note.way));
  if (static_cast<std::uint32_t>(note.code) == 0 ||
      static_cast<std::uint32_t>(note.code) > static_cast<std::uint32_t>(Code::system))
    note.code = Code::invalid;
  note.text.back() = '\0';
  return note;
}

void say(Note& note, const std::string& text) {
  note.text = {};
  std::copy_n(text.begin(), std::min(text.size(), note.text.size() - 1), note.text.begin());
}

Status send_note(int socket, const Note& note, std::span<const int> fds) {
  return sys::send_packet(socket, std::as_bytes(std::span(&note, 1)), fds);
}

std::string door_name(const NodeId& node) {
  std::string name = "strait-grant-";
  for (const std::byte byte : node) name += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return name;
}

}  // namespace strait::grant
