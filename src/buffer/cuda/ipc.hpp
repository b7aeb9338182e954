// SPDX-License-Identifier: Apache-2.0
// Ipc: CUDA memory across processes of one host: by legacy handle (cuMemAlloc), by the descriptor or fabric handle of a
// mapped allocation (VMM), or by a pool's descriptor and a pointer export.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/error.hpp"
#include "buffer/cuda/gpu.hpp"
#include "buffer/cuda/pointers.hpp"
#include "buffer/ipc_record.hpp"
#include "buffer/opened_handles.hpp"

namespace strait::buffer::cuda {

class Ipc {
 public:
  Ipc(const Driver& driver, const Pointers& pointers, std::size_t idle_most, ProcessToken token)
      : driver_(driver), pointers_(pointers), token_(token), opened_(idle_most) {}

  // STRAIT_IPC_* of an allocation: legacy capable, then fabric, then descriptor, as the driver says.
  [[nodiscard]] static std::uint32_t ways(const Found& found, const Extent& extent);

  // A context of the memory's device is current. The caller owns handle.fd.
  [[nodiscard]] Result<strait_ipc_handle> make(Pointer address, std::uint64_t length_bytes, const Found& found,
                                               const Extent& extent);
  // `gpu` is attached. A handle of this very process gives the address itself: the driver refuses to open those.
  [[nodiscard]] Result<std::uint64_t> open(Gpu& gpu, const strait_ipc_handle& handle);
  [[nodiscard]] Status close(std::uint64_t address);

  [[nodiscard]] OpenedHandles::Counts counts() const { return opened_.counts(); }
  void forget() { opened_.forget(); }

 private:
  [[nodiscard]] Result<OpenedHandles::Opened> open_legacy(Gpu& gpu, const IpcRecord& record);
  [[nodiscard]] Result<OpenedHandles::Opened> open_handle(Gpu& gpu, const IpcRecord& record,
                                                          const strait_ipc_handle& handle);
  [[nodiscard]] Result<OpenedHandles::Opened> open_pool(Gpu& gpu, const IpcRecord& record, int fd);

  const Driver& driver_;
  const Pointers& pointers_;
  const ProcessToken token_;
  OpenedHandles opened_;
};

}  // namespace strait::buffer::cuda
