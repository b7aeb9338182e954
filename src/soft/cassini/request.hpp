// SPDX-License-Identifier: Apache-2.0
// What goes from one card to another: a request and its answer. Cards of one fabric call each other; no packets.
#pragma once

#include <cstdint>
#include <span>

#include "soft/cassini/translation.hpp"
#include "strait/wire/cxi.hpp"

namespace strait::soft::cassini {

namespace wire = strait::wire::cxi;

struct Request {
  wire::DmaOp op = wire::DmaOp::put;  // put, get, rendezvous_put, atomic, fetching_atomic, small_message
  bool restricted = false;            // no matching, no events of success at the target
  bool no_match_command = false;      // the 32-byte form
  bool flush = false;
  std::uint32_t source_nid = 0;
  std::uint32_t vni = 0;
  std::uint32_t endpoint = 0;  // 12 bits of the DFA
  std::uint32_t index_ext = 0;
  std::uint32_t initiator = 0;
  std::uint64_t match_bits = 0;
  std::uint64_t header_data = 0;
  std::uint64_t remote_offset = 0;
  std::uint32_t length = 0;        // rlength
  std::uint32_t eager_length = 0;  // rendezvous_put: so much comes along
  std::uint8_t rendezvous_id = 0;
  bool use_offset_for_get = false;

  // A long put or get comes in pieces: first the bytes alone, without an event or a count, from the offset of each...
  bool piece = false;
  std::uint64_t left = 0;  // of the whole request, from the piece on
  // ...then the request itself. What it finds to be there already, in the same place, is not moved again.
  Moved moved{};

  // put: where the payload is; get: where it goes. Immediate payloads are an Extent list over plain bytes.
  Extents local;

  // Atomics.
  wire::AtomicOp atomic_op{};
  wire::AtomicType atomic_type{};
  wire::CswapOp cswap_op{};
  std::uint64_t operand1[2] = {};  // fetched by the initiator
  std::uint64_t operand2[2] = {};
};

struct Answer {
  wire::ReturnCode code = wire::ReturnCode::ok;
  std::uint32_t mlength = 0;
  wire::PtlList list = wire::PtlList::priority;
  bool rendezvous = false;        // the rest will be fetched
  Moved moved{};                  // of a piece
  std::uint64_t fetched[2] = {};  // what the target held, for fetching atomics
};

}  // namespace strait::soft::cassini
