// SPDX-License-Identifier: Apache-2.0
// Memory of other processes: legacy handles of plain allocations, and pools with their allocations.
#include <cstring>

#include "soft/cuda/entry.hpp"
#include "soft/cuda/share.hpp"
#include "sys/files.hpp"
#include "sys/host.hpp"
#include "sys/note.hpp"

namespace strait::soft::cuda {
namespace {

constexpr const char* kPoolFile = "strait cuda pool";

Token token_of(Driver& driver, const Known& known, TokenKind kind) {
  Token token = make_token(kind);
  token.file = known.piece.block->file();
  token.inode = sys::file_id(token.file).value_or(sys::FileId{}).inode;
  token.offset = known.piece.block_offset;
  token.length_bytes = known.range->length_bytes;
  token.number = kind == TokenKind::pool_memory ? known.range->pool->id : known.range->buffer_id;
  token.device = driver.device(known.range->device).index;
  seal_token(token);
  return token;
}

int device_of(Driver& driver, std::uint32_t index, int otherwise) {
  for (std::size_t i = 0; i < driver.devices().size(); ++i) {
    if (driver.devices()[i].index == index) return static_cast<int>(i);
  }
  return otherwise;
}

// Opened already: the same address again, and one more close to do.
std::uint64_t open_again_at(Driver& driver, const Token& token) {
  const std::unique_lock lock(driver.memory().lock());
  for (const auto& [base, range] : driver.memory().ranges()) {
    if (range->sort != Sort::imported || range->dying || range->pool != nullptr) continue;
    const Piece& piece = range->pieces.front();
    if (piece.block_offset != token.offset || range->length_bytes != token.length_bytes) continue;
    const auto id = sys::file_id(piece.block->file());
    if (!id || id->inode != token.inode) continue;
    ++range->opens;
    return base;
  }
  return 0;
}

}  // namespace

extern "C" {

CUresult cuIpcGetMemHandle(CUipcMemHandle* out, CUdeviceptr address) {
  return enter_with_context([&](Driver& driver, Context&) -> CUresult {
    Known known;
    if (out == nullptr || !driver.memory().find(address, known) || known.range->sort != Sort::plain)
      return CUDA_ERROR_INVALID_VALUE;
    const Token token = token_of(driver, known, TokenKind::memory);
    std::memcpy(out, &token, sizeof token);
    return CUDA_SUCCESS;
  });
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* out, CUipcMemHandle handle, unsigned int flags) {
  return enter_with_context([&](Driver& driver, Context& context) -> CUresult {
    Token token{};
    std::memcpy(&token, &handle, sizeof token);
    if (out == nullptr || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS || !valid_token(token, TokenKind::memory))
      return CUDA_ERROR_INVALID_VALUE;
    if (token.process == static_cast<std::uint32_t>(sys::process_id())) return CUDA_ERROR_INVALID_CONTEXT;
    if (const std::uint64_t known = open_again_at(driver, token); known != 0) {
      *out = known;
      return CUDA_SUCCESS;
    }
    auto block = open_token(token);
    if (!block) return CUDA_ERROR_INVALID_VALUE;
    std::uint64_t address = 0;
    const CUresult answer =
        driver.memory().import(std::move(block), token.offset, token.length_bytes,
                               device_of(driver, token.device, context.device), &context, nullptr, address);
    if (answer == CUDA_SUCCESS) *out = address;
    return answer;
  });
}

CUresult cuIpcOpenMemHandle(CUdeviceptr* out, CUipcMemHandle handle, unsigned int flags) {
  return cuIpcOpenMemHandle_v2(out, handle, flags);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr address) {
  return enter_with_context([&](Driver& driver, Context&) -> CUresult {
    Known known;
    if (!driver.memory().find(address, known) || known.range->pool != nullptr) return CUDA_ERROR_INVALID_VALUE;
    return driver.memory().free(address, {Sort::imported});
  });
}

CUresult cuMemPoolExportToShareableHandle(void* out, CUmemoryPool handle, CUmemAllocationHandleType type,
                                          unsigned long long flags) {
  return enter([&](Driver& driver) -> CUresult {
    Token token = make_token(TokenKind::pool);
    {
      const std::lock_guard lock(driver.lock());
      Pool* const pool = driver.pools().find(handle);
      if (out == nullptr || flags != 0 || pool == nullptr || pool->imported ||
          type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || (pool->props.handleTypes & type) == 0)
        return CUDA_ERROR_INVALID_VALUE;
      token.number = pool->id;
      token.device = driver.device(pool->device).index;
      pool->shared = true;
    }
    seal_token(token);
    auto file = sys::make_note(kPoolFile, sizeof token, &token, sizeof token);
    if (!file) return CUDA_ERROR_OPERATING_SYSTEM;
    const int fd = file->release();
    std::memcpy(out, &fd, sizeof fd);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool* out, void* given, CUmemAllocationHandleType type,
                                            unsigned long long flags) {
  return enter([&](Driver& driver) -> CUresult {
    const int fd = static_cast<int>(reinterpret_cast<std::intptr_t>(given));
    Token token{};
    if (out == nullptr || flags != 0 || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
        sys::memfd_name(fd) != kPoolFile || sys::read_start(fd, &token, sizeof token) != sizeof token ||
        !valid_token(token, TokenKind::pool))
      return CUDA_ERROR_INVALID_VALUE;
    const int device = device_of(driver, token.device, -1);
    if (device < 0) return CUDA_ERROR_INVALID_DEVICE;
    const std::lock_guard lock(driver.lock());
    Pool* const pool = driver.pools().add();
    pool->device = device;
    pool->id = token.number;
    pool->imported = true;
    pool->exporter = token.process;
    pool->props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    pool->props.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    *out = reinterpret_cast<CUmemoryPool>(pool);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData* out, CUdeviceptr address) {
  return enter([&](Driver& driver) -> CUresult {
    Known known;
    if (out == nullptr || !driver.memory().find(address, known) || known.range->sort != Sort::pooled ||
        !known.range->pool->shared)
      return CUDA_ERROR_INVALID_VALUE;
    const Token token = token_of(driver, known, TokenKind::pool_memory);
    std::memcpy(out, &token, sizeof token);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolImportPointer(CUdeviceptr* out, CUmemoryPool handle, CUmemPoolPtrExportData* data) {
  return enter([&](Driver& driver) -> CUresult {
    if (out == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Token token{};
    std::memcpy(&token, data, sizeof token);
    Pool* pool = nullptr;
    {
      const std::lock_guard lock(driver.lock());
      pool = driver.pools().find(handle);
    }
    if (pool == nullptr || !pool->imported || !valid_token(token, TokenKind::pool_memory) ||
        token.process != pool->exporter || token.number != pool->id)
      return CUDA_ERROR_INVALID_VALUE;
    auto block = open_token(token);
    if (!block) return CUDA_ERROR_INVALID_VALUE;
    std::uint64_t address = 0;
    const CUresult answer = driver.memory().import(std::move(block), token.offset, token.length_bytes, pool->device,
                                                   nullptr, pool, address);
    if (answer == CUDA_SUCCESS) *out = address;
    return answer;
  });
}

}  // extern "C"

}  // namespace strait::soft::cuda
