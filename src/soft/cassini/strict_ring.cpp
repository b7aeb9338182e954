// SPDX-License-Identifier: Apache-2.0
// Strict, command queues: the ring is copied when it is rung, and sources are summed; both are compared when the card
// gets to the command, which under strict is a little later than it could be.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "soft/cassini/strict.hpp"
#include "soft/cassini/translation.hpp"

namespace strait::soft::cassini {

using wire::ReturnCode;

namespace {

constexpr std::uint32_t kLatest = 16;  // passes
// Others wait while sources are summed.
constexpr std::uint64_t kMostSummed = 1 << 20;  // of one source, from its first byte on
constexpr std::uint64_t kMostAtOnce = 4 << 20;  // of all that one ring brings

Thing thing_of(const Cq& cq) {
  return cq.transmit ? Thing::transmit_queue : Thing::target_queue;
}

std::uint32_t distance(const Cq& cq, std::uint32_t from, std::uint32_t to) {
  return to >= from ? to - from : (cq.slots - from) + (to - wire::kFirstBlock);
}

bool copy_blocks(const Cq& cq, std::vector<std::uint64_t>& copy, std::uint32_t from, std::uint32_t to) {
  const auto piece = [&](std::uint32_t first, std::uint32_t end) {
    return first >= end || read(cq.ring, std::uint64_t{first} * wire::kBlockBytes, copy.data() + std::size_t{first} * 8,
                                (end - first) * wire::kBlockBytes);
  };
  return to >= from ? piece(from, to) : piece(from, cq.slots) && piece(wire::kFirstBlock, to);
}

}  // namespace

std::uint64_t Strict::random() {
  state_ ^= state_ << 13;
  state_ ^= state_ >> 7;
  state_ ^= state_ << 17;
  return state_ >> 11;
}

// 0: it cannot be read now.
std::uint64_t Strict::sum_of(const Lni& lni, const Source& source) {
  Extents from;
  if (translate(lni, source.lac, source.iova, source.bytes, false, from) != ReturnCode::ok) return 0;
  std::uint64_t sum = 1469598103934665603ull;
  std::array<std::uint64_t, 2048> chunk;
  for (std::uint64_t done = 0; done < source.bytes;) {
    const std::uint64_t bytes = std::min<std::uint64_t>(sizeof chunk, source.bytes - done);
    chunk[(bytes - 1) / 8] = 0;
    if (read(part(from, done, bytes), chunk.data(), bytes) != ReturnCode::ok) return 0;
    for (std::uint64_t i = 0; i < (bytes + 7) / 8; ++i) sum = (sum ^ chunk[i]) * 1099511628211ull;
    done += bytes;
  }
  return sum == 0 ? 1 : sum;
}

void Strict::look_ahead(const Cq& cq, Ring& ring, std::uint32_t to) {
  const bool sends = cq.transmit && !cq.triggered;
  std::uint64_t summed = 0;
  while (ring.parsed != to) {
    const std::uint32_t left = distance(cq, ring.parsed, to);
    const auto first = static_cast<std::uint8_t>(ring.copy[std::size_t{ring.parsed} * 8]);
    const std::uint32_t blocks = std::max(wire::bytes_of(wire::size_of_header(first)) / wire::kBlockBytes, 1u);
    if (blocks > left) return;  // its second half comes with the next ring
    for (std::uint32_t half = 0; half < 2; ++half) {
      const std::uint64_t* const words = ring.copy.data() + std::size_t{ring.parsed} * 8 + half * 4;
      const auto header = static_cast<std::uint8_t>(words[0]);
      const bool small = wire::size_of_header(header) == wire::CmdSize::b32;
      // A longer one does not begin in the second half; the card will say so.
      if (half == 1 && (wire::size_of_header(first) != wire::CmdSize::b32 || !small)) break;
      if (!sends || wire::type_of_header(header) != wire::CmdType::dma) continue;
      Source source;
      switch (static_cast<wire::DmaOp>(wire::opcode_of_header(header))) {
        case wire::DmaOp::put:
        case wire::DmaOp::rendezvous_put: {
          if (small) continue;
          wire::FullDmaCmd command;
          std::memcpy(&command, words, sizeof command);
          source.lac = command.lac();
          source.iova = command.local_addr();
          source.bytes = command.request_len();
          // The rest is fetched later, through an entry.
          if (static_cast<wire::DmaOp>(wire::opcode_of_header(header)) == wire::DmaOp::rendezvous_put)
            source.bytes = std::min<std::uint64_t>(source.bytes, command.eager_length());
          break;
        }
        case wire::DmaOp::nomatch_put: {
          if (!small) continue;
          wire::NomatchDmaCmd command;
          std::memcpy(&command, words, sizeof command);
          source.lac = command.lac();
          source.iova = command.local_addr();
          source.bytes = command.request_len();
          break;
        }
        default: continue;
      }
      source.bytes = std::min(source.bytes, kMostSummed);
      if (source.bytes == 0 || summed >= kMostAtOnce) continue;
      summed += source.bytes;
      source.sum = sum_of(*cq.lni, source);
      if (source.sum != 0) ring.sources[ring.parsed * 2 + half] = source;
    }
    ring.parsed += blocks;
    if (ring.parsed >= cq.slots) ring.parsed = ring.parsed - cq.slots + wire::kFirstBlock;
  }
}

void Strict::rung(Cq& cq, std::uint32_t to) {
  const std::uint32_t from = cq.seen_write_slot;
  if (from == to) return;
  Ring& ring = rings_[&cq];
  ring.copy.resize(std::size_t{cq.slots} * 8);
  const std::uint32_t waiting = distance(cq, cq.read_slot, from);
  const std::uint32_t steps = distance(cq, from, to);
  if (waiting != 0 && waiting + steps >= cq.slots - wire::kFirstBlock) {
    found(
        Rule::queue_overrun, thing_of(cq), cq.id,
        fmt::format("the write pointer went from {} to {}, the card is at block {}: {} blocks wait, the ring holds {}",
                    from, to, cq.read_slot, waiting + steps, cq.slots - wire::kFirstBlock - 1),
        cq.read_slot);
    // Which of them are new, nobody can say any more.
    (void)copy_blocks(cq, ring.copy, cq.read_slot, to);
    ring.sources.clear();
    ring.parsed = to;
    return;
  }
  if (!copy_blocks(cq, ring.copy, from, to)) return;
  // Late only where nothing waits: who keeps ringing must not keep its own commands waiting.
  if (waiting == 0 && cq.transmit) cq.hold = static_cast<std::uint32_t>(random() % kLatest);
  look_ahead(cq, ring, to);
}

void Strict::outside(const Cq& cq, std::uint32_t pointer) {
  found(Rule::pointer_outside, cq.transmit ? Thing::transmit_queue : Thing::target_queue, cq.id,
        fmt::format("it is {}; blocks {} to {} are in the ring, and the queue has stopped for good", pointer,
                    wire::kFirstBlock, cq.slots - 1));
}

void Strict::begins(const Cq& cq, const std::uint64_t* words, std::uint32_t bytes) {
  const auto known = rings_.find(&cq);
  if (known == rings_.end()) return;
  Ring& ring = known->second;
  const std::uint32_t slot = cq.read_slot * 2 + (cq.second_half ? 1 : 0);
  if (std::memcmp(ring.copy.data() + std::size_t{slot} * 4, words, bytes) != 0) {
    found(Rule::command_changed, thing_of(cq), cq.id,
          fmt::format("its {} bytes are not what they were when the write pointer passed them", bytes), cq.read_slot);
  }
  const auto source = ring.sources.find(slot);
  if (source == ring.sources.end()) return;
  const std::uint64_t sum = sum_of(*cq.lni, source->second);
  if (sum != 0 && sum != source->second.sum) {
    found(Rule::source_changed, thing_of(cq), cq.id,
          fmt::format("{} bytes from IOVA {:#x} of context {} are not what they were when the queue was rung",
                      source->second.bytes, source->second.iova, source->second.lac),
          cq.read_slot);
  }
  ring.sources.erase(source);
}

void Strict::refused(const Cq& cq, ReturnCode code, std::uint32_t header) {
  if (code == ReturnCode::pcie_unsuccess_cmpl) return;  // the ring's memory is gone, and mostly its process
  const auto byte = static_cast<std::uint8_t>(header);
  found(Rule::command_refused, thing_of(cq), cq.id,
        fmt::format("return code {}; a command of type {}, operation {}, {} bytes (header {:#x})",
                    static_cast<unsigned>(code), static_cast<unsigned>(wire::type_of_header(byte)),
                    wire::opcode_of_header(byte), wire::bytes_of(wire::size_of_header(byte)), header),
        cq.read_slot);
}

}  // namespace strait::soft::cassini
