// SPDX-License-Identifier: Apache-2.0
// Loans: memory that lies in a sealed file is mapped by the engine that lands or fetches its bytes, instead of being
// copied by a system call per operation.
//
// Only a peer that could read and write this whole process anyway (the probe of link.cpp succeeded) is lent anything,
// so a loan gives away nothing. It concerns the requester's side of an operation; the owner of the target still checks
// and lands every one. The descriptor travels over the link's socket before the first message that names it, and the
// loan ends when the registration does.
#include <cstring>

#include "soft/nic/engine.hpp"

namespace strait::soft::nic {
namespace {

constexpr std::uint32_t kLoanMagic = 0x4e414f4c;  // "LOAN"
enum class LoanOp : std::uint32_t { begin = 1, end = 2 };

struct LoanPacket {
  std::uint32_t magic;
  LoanOp op;
  std::uint32_t key;
  std::uint32_t reserved;
  std::uint64_t address;
  std::uint64_t length_bytes;
  std::uint64_t file_offset;
};

constexpr std::size_t kMaxBorrowed = 4096;  // per peer
constexpr int kLoansPerLook = 64;

Result<Borrowed> borrow(const LoanPacket& told, int file) {
  const std::uint64_t skip = told.file_offset % sys::page_bytes();
  if (told.length_bytes == 0 || told.file_offset + told.length_bytes < told.file_offset) {
    return fail(Code::invalid, "a loan of {} bytes at file offset {}", told.length_bytes, told.file_offset);
  }
  STRAIT_CHECK(sys::check_sealed(file, told.file_offset + told.length_bytes));
  STRAIT_TRY(sys::Mapping mapping,
             sys::map_file(file, told.file_offset - skip, told.length_bytes + skip, sys::Protect::read_write));
  std::byte* bytes = mapping.data() + skip;
  return Borrowed{told.address, told.length_bytes, bytes, std::move(mapping)};
}

}  // namespace

// A loan that is not offered is no failure.
void Engine::offer_loan(std::uint32_t key, const strait_nic_mr_request& request) {
  auto file = sys::Fd::copy_of(request.fd);
  if (!file) return;
  if (loan_order_.size() >= kMostLoans) {  // peers that were lent it keep their mapping until it is deregistered
    loans_.erase(loan_order_.front());
    loan_order_.pop_front();
  }
  loans_.emplace(key, Loan{std::move(*file), request.fd_offset});
  loan_order_.push_back(key);
}

// The key under which the peer finds this registration mapped, or 0.
std::uint32_t Engine::lend(Link& link, std::uint32_t key) {
  if (link.loopback) return 0;
  if (link.lent.contains(key)) return key;
  const auto loan = loans_.find(key);
  if (loan == loans_.end()) return 0;
  const Registration& registration = *memory_.find(key);
  const LoanPacket packet{kLoanMagic,
                          LoanOp::begin,
                          key,
                          0,
                          reinterpret_cast<std::uint64_t>(registration.bytes),
                          registration.length_bytes,
                          loan->second.offset};
  const int file = loan->second.file.get();
  if (!sys::send_packet(link.socket.get(), std::as_bytes(std::span(&packet, 1)), std::span(&file, 1))) return 0;
  link.lent.insert(key);
  return key;
}

// Pieces of payload for this peer: made with the first. What is in it the peer is to have anyway, so it is lent whether
// or not the peer reaches this process.
PiecePool* Engine::pool_of(Link& link) {
  if (link.pool || link.no_pool) return link.pool.get();
  link.no_pool = true;
  if (link.loopback || link.lossy) return nullptr;  // loss is for messages whose payload goes with them
  auto file = sys::make_sealed_memfd("strait-pieces", kPoolBytes, *config_.calls);
  if (!file) return nullptr;
  auto mapping = sys::map_file(file->get(), 0, kPoolBytes, sys::Protect::read_write, *config_.calls);
  if (!mapping) return nullptr;
  const LoanPacket packet{kLoanMagic, LoanOp::begin, kPoolKey, 0, 0, kPoolBytes, 0};
  const int raw = file->get();
  if (!sys::send_packet(link.socket.get(), std::as_bytes(std::span(&packet, 1)), std::span(&raw, 1))) return nullptr;
  link.pool = std::make_unique<PiecePool>(std::make_shared<PieceMemory>(std::move(*mapping)));
  link.no_pool = false;
  return link.pool.get();
}

void Engine::let_go_of_ports() {
  const auto unused = [this](const strait_memory_port* port) { return memory_.behind(port) == 0; };
  for (const auto& link : links_) {
    if (link->pool) link->pool->memory()->let_go(unused);
    if (link->their_pool) link->their_pool->let_go(unused);
  }
}

void Engine::end_loans(std::uint32_t key) {
  if (loans_.erase(key) != 0) std::erase(loan_order_, key);
  for (const auto& link : links_) {
    if (link->lent.erase(key) == 0 || link->dead) continue;
    const LoanPacket packet{kLoanMagic, LoanOp::end, key, 0, 0, 0, 0};
    // If it does not get through, the peer keeps a mapping of pages that nobody else uses, until it ends.
    (void)sys::send_packet(link->socket.get(), std::as_bytes(std::span(&packet, 1)), {});
  }
}

void Engine::read_loans(Link& link) {
  for (int i = 0; i < kLoansPerLook; ++i) {  // the rest next time: who sends without end does not keep this engine busy
    auto packet = sys::receive_packet(link.socket.get(), sizeof(LoanPacket));
    if (!packet) return;
    LoanPacket told{};
    if (packet->bytes.size() != sizeof told) {
      ++counts_.garbage;
      continue;
    }
    std::memcpy(&told, packet->bytes.data(), sizeof told);
    link.borrowed.erase(told.key);
    if (told.magic != kLoanMagic || told.op != LoanOp::begin || packet->fds.size() != 1) {
      if (told.magic != kLoanMagic || told.op != LoanOp::end) ++counts_.garbage;
      continue;
    }
    if (told.key == kPoolKey) {
      auto pool = told.length_bytes == kPoolBytes && told.file_offset == 0 && link.their_pool == nullptr
                      ? borrow(told, packet->fds[0].get())
                      : Result<Borrowed>(fail(Code::invalid, "a pool of {} bytes", told.length_bytes));
      if (pool) {
        link.their_pool = std::make_shared<PieceMemory>(std::move(pool->mapping));
      } else {
        ++counts_.garbage;
      }
      continue;
    }
    if (link.borrowed.size() >= kMaxBorrowed) continue;
    auto made = borrow(told, packet->fds[0].get());
    if (made) {
      link.borrowed.emplace(told.key, std::move(*made));
    } else {
      ++counts_.garbage;
    }
  }
}

// Where this process has the peer's pieces mapped. False: not all of them, copy by system call instead.
bool Engine::find_borrowed(Link& link, std::span<const ListEntry> far, std::span<iovec> out) {
  for (std::size_t i = 0; i < far.size(); ++i) {
    const ListEntry& entry = far[i];
    if (entry.key == 0) return false;
    auto found = link.borrowed.find(entry.key);
    if (found == link.borrowed.end()) {
      read_loans(link);  // it was sent before the message that names it
      found = link.borrowed.find(entry.key);
      if (found == link.borrowed.end()) return false;
    }
    const Borrowed& borrowed = found->second;
    const std::uint64_t offset = entry.address - borrowed.address;
    if (entry.address < borrowed.address || entry.length_bytes > borrowed.length_bytes ||
        offset > borrowed.length_bytes - entry.length_bytes) {
      return false;
    }
    out[i] = {borrowed.bytes + offset, entry.length_bytes};
  }
  return true;
}

}  // namespace strait::soft::nic
