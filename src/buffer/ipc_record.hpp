// SPDX-License-Identifier: Apache-2.0
// IpcRecord: what strait's own providers write into the bytes of a strait_ipc_handle, before the vendor's part. Taken
// from a stranger: read() checks all of it.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/error.hpp"
#include "buffer/opened_handles.hpp"
#include "strait/plugin.h"

namespace strait::buffer {

struct IpcRecord {
  std::array<char, 8> magic{};  // "strait" and the vendor's letter
  ProcessToken token{};
  std::uint64_t base = 0;          // of the whole allocation, in the process that exported it
  std::uint64_t length_bytes = 0;  // of the whole allocation
  std::uint64_t offset = 0;        // of the exported range in it
  std::uint64_t identity = 0;
  std::uint32_t sort = 0;  // STRAIT_SORT_*
  std::uint32_t reserved = 0;
  std::array<std::uint8_t, 128> vendor{};

  // "strait" + letter: a handle of another vendor, or of nobody, is told apart.
  [[nodiscard]] static std::array<char, 8> magic_of(char vendor) { return {'s', 't', 'r', 'a', 'i', 't', vendor, '2'}; }

  void write(strait_ipc_handle& out) const {
    static_assert(sizeof(IpcRecord) <= STRAIT_IPC_BYTES_MOST && std::is_trivially_copyable_v<IpcRecord>);
    std::memcpy(out.bytes, this, sizeof *this);
    out.bytes_used = sizeof *this;
  }

  [[nodiscard]] static Result<IpcRecord> read(const strait_ipc_handle& handle, char vendor, const char* kind) {
    IpcRecord record;
    if (handle.bytes_used != sizeof record)
      return fail(Code::invalid, "a {} memory handle of {} bytes was expected, this one has {}", kind, sizeof record,
                  handle.bytes_used);
    std::memcpy(&record, handle.bytes, sizeof record);
    if (record.magic != magic_of(vendor)) return fail(Code::invalid, "these bytes are no {} memory handle", kind);
    if (record.length_bytes == 0 || record.length_bytes > UINT64_MAX - record.base ||
        record.offset >= record.length_bytes || handle.length_bytes == 0 ||
        handle.length_bytes > record.length_bytes - record.offset) {
      return fail(Code::invalid, "a {} memory handle names {} bytes at offset {} of an allocation of {}", kind,
                  handle.length_bytes, record.offset, record.length_bytes);
    }
    return record;
  }
};

}  // namespace strait::buffer
