// SPDX-License-Identifier: Apache-2.0
// Fuzz target: work requests in ring memory. Whatever lies there, the decoder stays inside ring and request; and a key
// that is made of others by one leads to memory of those and to no other.
//
// Input: a byte of shape (bits 0-2: log2 of the ring's blocks, bit 3: receive queue, bit 4: put the expected queue and
// index into the control segment, so that garbage behind it is reached), a byte of published blocks, two of index; the
// rest is the ring. The key 0x1001 is a registration of 4 KiB that requests call 0x1000; 0x1101 is for UMR.
#include <algorithm>
#include <cstring>
#include <memory>
#include <span>

#include "require.hpp"
#include "soft/nic/indirect.hpp"

namespace {

namespace nic = strait::soft::nic;
namespace mlx5 = strait::wire::mlx5;
using strait::fuzz::require;

constexpr std::uint32_t kQpn = 0x00abcd;

template <class Work>
std::uint64_t sum(const Work& work) {
  std::uint64_t total = 0;
  for (std::uint32_t i = 0; i < work.n_pieces; ++i) total += work.pieces[i].length_bytes;
  return total;
}

// What the key has become is used: whatever its check lets pass can be read and written.
void check_key_change(const nic::RingView& ring, const nic::KeyChange& change) {
  nic::Layout layout;
  if (!change.frees && change.list_segments != 0) {
    if (!change.inlined || change.part_of_list) return;  // the engine refuses it
    if (const nic::DecodeFault fault = nic::decode_layout(ring, change.list_offset, change.list_segments, layout)) {
      require(fault.syndrome != mlx5::Syndrome::none, "a fault has a syndrome");
      return;
    }
    require(!layout.parts().empty() && layout.parts().size() <= change.list_segments, "parts fit their request");
  }
  constexpr std::uint64_t kBytes = 4096;
  const std::unique_ptr<std::byte[]> memory(new std::byte[kBytes]());
  nic::MemoryTable table;
  strait_nic_mr_request request{};
  request.struct_size = sizeof request;
  request.access = STRAIT_NIC_LOCAL_WRITE | STRAIT_NIC_HOST_ADDRESS;
  request.fd = -1;
  request.fd_offset = reinterpret_cast<std::uintptr_t>(memory.get());
  request.address = 0x1000;
  request.length_bytes = kBytes;
  require(table.add(request).value().lkey == 0x1001, "the first key");
  nic::IndirectRequest empty;
  empty.room = 64;
  empty.free = true;
  nic::Registration* const key = table.find(table.add_indirect(std::move(empty), false).value());
  require(key->key == 0x1101 && table.find_indirect(change.old_key) == (change.old_key >> 8 == 0x11 ? key : nullptr),
          "the second");
  if (key->indirect->change(change, std::move(layout)) != nullptr) {
    require(key->length_bytes == 0 && key->indirect->is_free(), "a refusal changes nothing");
    return;
  }
  std::byte bytes[2 * kBytes];
  for (const std::uint64_t skip : {std::uint64_t{0}, std::uint64_t{1}, key->length_bytes / 3, key->length_bytes - 1}) {
    const std::uint64_t left = key->length_bytes - skip;
    for (const std::uint64_t n : {std::uint64_t{1}, std::uint64_t{8}, std::uint64_t{100}, left}) {
      nic::KeyFault why = nic::KeyFault::none;
      if (n > sizeof bytes || table.check(key->key, 0, key->address + skip, n, STRAIT_NIC_LOCAL_WRITE, why) == nullptr)
        continue;
      require(n <= left && !key->indirect->is_free(), "a key ends where it ends");
      require(nic::write_bytes(*key, key->address + skip, bytes, n), "what passes is written");
      require(nic::read_bytes(*key, key->address + skip, bytes, n), "and read");
    }
  }
}

void check_send(const nic::RingView& ring, std::uint64_t index, std::uint32_t available) {
  // Poisoned, so that a piece that was never written is noticed.
  const auto work = std::make_unique<nic::SendWork>();
  std::memset(static_cast<void*>(work.get()), 0xa5, sizeof *work);
  const nic::DecodeFault fault = nic::decode_send(ring, index, available, kQpn, *work);
  require(work->blocks >= 1 && (available == 0 || work->blocks <= available),
          "the engine moves on by what was published");
  if (fault) {
    require(fault.syndrome != mlx5::Syndrome::none, "a fault has a syndrome");
    return;
  }
  require(std::uint64_t{work->blocks} * mlx5::kBlockBytes <= ring.bytes, "a request fits its ring");
  require(work->n_pieces <= nic::kMaxPieces, "pieces fit their array");
  if (work->opcode == mlx5::Opcode::umr) check_key_change(ring, work->key);
  require(sum(*work) == work->total_bytes && work->total_bytes <= mlx5::kMaxMessageBytes,
          "the total is the pieces' sum");
  const std::uint64_t begin = index * mlx5::kBlockBytes;
  const std::uint64_t end = begin + std::uint64_t{work->blocks} * mlx5::kBlockBytes;
  for (std::uint32_t i = 0; i < work->n_pieces; ++i) {
    const nic::LocalPiece& piece = work->pieces[i];
    if (!piece.in_ring) continue;
    require(piece.address > begin && piece.address + piece.length_bytes <= end, "inline data lies within its request");
    const std::unique_ptr<std::byte[]> copy(new std::byte[piece.length_bytes]);
    ring.read(piece.address, copy.get(), piece.length_bytes);
  }
}

void check_receive(const nic::RingView& ring, std::uint64_t index, std::uint32_t stride_bytes) {
  const auto work = std::make_unique<nic::ReceiveWork>();
  std::memset(static_cast<void*>(work.get()), 0xa5, sizeof *work);
  if (const nic::DecodeFault fault = nic::decode_receive(ring, index, stride_bytes, *work)) {
    require(fault.syndrome != mlx5::Syndrome::none, "a fault has a syndrome");
    return;
  }
  require(work->n_pieces <= nic::kMaxPieces && work->n_pieces * mlx5::kSegmentBytes <= stride_bytes, "pieces fit");
  require(work->total_bytes == std::min<std::uint64_t>(sum(*work), 0xffffffffu), "the total is the pieces' sum");
  for (std::uint32_t i = 0; i < work->n_pieces; ++i) require(!work->pieces[i].in_ring, "no inline receives");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 4) return 0;
  const std::uint8_t shape = data[0];
  const std::uint32_t available = data[1];
  const std::uint64_t index = std::uint64_t{data[2]} << 8 | data[3];
  const std::uint64_t ring_bytes = std::uint64_t{mlx5::kBlockBytes} << (shape & 7);
  // Of exactly the ring's size: AddressSanitizer sees the first byte beyond it.
  const std::unique_ptr<std::byte[]> memory(new std::byte[ring_bytes]());
  const nic::RingView ring{memory.get(), ring_bytes};
  const std::size_t count = std::min<std::size_t>(size - 4, ring_bytes);
  const std::uint64_t start = index * mlx5::kBlockBytes;
  for (std::size_t i = 0; i < count; ++i) memory[(start + i) % ring_bytes] = static_cast<std::byte>(data[4 + i]);

  if ((shape & 8) != 0) {
    check_receive(ring, index, std::min<std::uint32_t>(static_cast<std::uint32_t>(ring_bytes), 16U << (available & 7)));
    return 0;
  }
  if ((shape & 16) != 0) {
    std::byte* const control = memory.get() + start % ring_bytes;
    control[1] = static_cast<std::byte>(data[2]);
    control[2] = static_cast<std::byte>(data[3]);
    control[4] = static_cast<std::byte>(kQpn >> 16);
    control[5] = static_cast<std::byte>(kQpn >> 8 & 0xff);
    control[6] = static_cast<std::byte>(kQpn & 0xff);
  }
  check_send(ring, index, available);
  return 0;
}
