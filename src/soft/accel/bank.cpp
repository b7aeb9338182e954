// SPDX-License-Identifier: Apache-2.0
#include "soft/accel/bank.hpp"

#include <algorithm>
#include <atomic>

#include "sys/aligned.hpp"
#include "sys/file_hold.hpp"
#include "sys/files.hpp"

namespace strait::soft::accel {
namespace {

std::uint64_t next_block_id() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

Result<sys::Fd> Block::open_file() const {
  const std::lock_guard lock(mutex_);  // nobody asks open_elsewhere() meanwhile, which would be in the way
  STRAIT_TRY(sys::Fd file, sys::open_again(file_.get()));
  if (!sys::hold_file(file.get())) return fail(Code::again, "block {} is being given back", id_);
  return file;
}

void Block::hold_while_open(std::shared_ptr<sys::Fd> file) {
  const std::lock_guard lock(mutex_);
  std::erase_if(windows_, [](const auto& each) { return !sys::is_held_elsewhere(each->get()); });
  windows_.push_back(std::move(file));
}

bool Block::open_elsewhere() const {
  const std::lock_guard lock(mutex_);
  return sys::is_held_elsewhere(file_.get()) ||
         std::ranges::any_of(windows_, [](const auto& each) { return sys::is_held_elsewhere(each->get()); });
}

std::shared_ptr<Bank> Bank::make(std::string name, std::uint64_t memory_bytes, const sys::Calls& calls) {
  return std::shared_ptr<Bank>(new Bank(std::move(name), memory_bytes, calls));
}

Result<std::shared_ptr<Block>> Bank::take(std::uint64_t length_bytes) {
  if (length_bytes == 0) return fail(Code::invalid, "{}: cannot take 0 bytes", name_);
  std::uint64_t file_bytes = length_bytes;
  {
    const std::lock_guard lock(mutex_);
    if (length_bytes <= memory_bytes_) file_bytes = sys::round_up(length_bytes, sys::page_bytes());
    sweep_locked();
    if (file_bytes > memory_bytes_ - used_bytes_) {
      return fail(Code::limit, "{} has {} of its {} bytes left, {} were asked for", name_, memory_bytes_ - used_bytes_,
                  memory_bytes_, file_bytes);
    }
    used_bytes_ += file_bytes;
  }
  auto made = [&]() -> Result<std::unique_ptr<Block>> {
    STRAIT_TRY(sys::Fd file, sys::make_sealed_memfd(name_.c_str(), file_bytes, *calls_));
    STRAIT_TRY(sys::Mapping alias, sys::map_file_aligned(file.get(), file_bytes, sys::Protect::read_write, *calls_));
    return std::unique_ptr<Block>(new Block(next_block_id(), std::move(file), std::move(alias)));
  }();
  if (!made) {
    const std::lock_guard lock(mutex_);
    used_bytes_ -= file_bytes;
    return std::move(made).error();
  }
  // The bank lives at least as long as its blocks.
  return std::shared_ptr<Block>(
      made->release(), [bank = shared_from_this()](Block* block) { bank->give_back(std::unique_ptr<Block>(block)); });
}

Result<std::shared_ptr<Block>> Bank::adopt(sys::Fd file) {
  const std::int64_t bytes = sys::file_bytes(file.get());
  if (bytes <= 0) return fail(Code::invalid, "fd {} is no memory of a device", file.get());
  const auto length_bytes = static_cast<std::size_t>(bytes);
  STRAIT_CHECK(sys::check_sealed(file.get(), length_bytes));
  STRAIT_TRY(sys::Mapping alias, sys::map_file(file.get(), 0, length_bytes, sys::Protect::read_write));
  return std::shared_ptr<Block>(new Block(next_block_id(), std::move(file), std::move(alias)));
}

void Bank::give_back(std::unique_ptr<Block> block) {
  const bool held = block->open_elsewhere();
  const std::uint64_t bytes = block->length_bytes();
  if (!held) block.reset();  // unmapping is slow: outside the lock
  const std::lock_guard lock(mutex_);
  if (held) {
    waiting_.push_back(std::move(block));
  } else {
    used_bytes_ -= bytes;
  }
}

void Bank::sweep_locked() {
  std::erase_if(waiting_, [this](const std::unique_ptr<Block>& block) {
    if (block->open_elsewhere()) return false;
    used_bytes_ -= block->length_bytes();
    return true;
  });
}

std::uint64_t Bank::free_bytes() {
  const std::lock_guard lock(mutex_);
  sweep_locked();
  return memory_bytes_ - used_bytes_;
}

Bank::Leaks Bank::leaks() {
  const std::lock_guard lock(mutex_);
  sweep_locked();
  Leaks leaks;
  for (const auto& block : waiting_) {
    ++leaks.blocks;
    leaks.bytes += block->length_bytes();
  }
  return leaks;
}

}  // namespace strait::soft::accel
