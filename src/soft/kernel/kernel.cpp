// SPDX-License-Identifier: Apache-2.0
#include "soft/kernel/kernel.hpp"

#include <array>
#include <cerrno>
#include <utility>

#include "soft/accel/window.hpp"
#include "soft/kernel/peer_clients.hpp"

namespace strait::soft::kernel {
namespace {

// What undoes what; two that undo count together.
struct Pair {
  const char* done;
  const char* undone;
  const char* or_undone;
};
constexpr std::array kPairs = {Pair{"dmabuf_get", "dmabuf_put", nullptr},
                               Pair{"attach", "detach", nullptr},
                               Pair{"pin", "unpin", nullptr},
                               Pair{"map", "unmap", nullptr},
                               Pair{"peer_acquire", "peer_release", nullptr},
                               Pair{"peer_get_pages", "peer_put_pages", nullptr},
                               Pair{"peer_dma_map", "peer_dma_unmap", nullptr},
                               Pair{"p2p_get", "p2p_put", "p2p_free_table"},
                               Pair{"p2p_map", "p2p_unmap", "p2p_free_mapping"}};

}  // namespace

Result<KernelSettings> KernelSettings::parse(std::string_view peer_memory, std::string_view faults) {
  KernelSettings out;
  while (!peer_memory.empty()) {
    const std::string_view word = peer_memory.substr(0, peer_memory.find_first_of(",;"));
    peer_memory.remove_prefix(word.size() == peer_memory.size() ? word.size() : word.size() + 1);
    if (word == "nvidia") {
      out.nvidia = true;
    } else if (word == "nvidia_persistent") {
      out.nvidia = out.persistent = true;
    } else if (word == "amd") {
      out.amd = true;
    } else if (word == "p2p") {
      out.p2p = true;
    } else if (word != "none") {
      return fail(Code::invalid,
                  "peer_memory: \"{}\" is none of nvidia, nvidia_persistent, amd, p2p and none, separated by commas",
                  word);
    }
  }
  STRAIT_TRY(out.faults, KernelFaults::parse(faults));
  return out;
}

Kernel::Kernel(Drivers& drivers, KernelSettings settings)
    : drivers_(drivers),
      settings_(std::move(settings)),
      p2p_(drivers_, settings_.faults, counters_, bar_),
      peers_(settings_.faults, counters_) {
  if (settings_.nvidia) (void)peers_.add(make_nvidia_client(p2p_, settings_.persistent), !settings_.persistent);
  if (settings_.amd) (void)peers_.add(make_amd_client(drivers_, bar_, settings_.faults), true);
}

// What is behind a descriptor: the file of an allocation, or a window on parts of several.
bool Kernel::open_files(int fd, sys::FileId id, ExporterNeeds& needs) {
  const auto take = [&](const std::shared_ptr<DeviceMemory>& memory, sys::Fd file, std::uint64_t offset,
                        std::uint64_t bytes) {
    // Another process's memory is nobody's here: only that it is an accelerator's is known.
    needs.vendor = memory != nullptr ? memory->said().vendor : std::uint32_t{STRAIT_SOFT_VENDOR_SOFT};
    needs.device = memory != nullptr ? memory->said().device : 0;
    needs.size_bytes += bytes;
    needs.files.push_back(
        {memory != nullptr ? memory->shared_file() : std::make_shared<const sys::Fd>(std::move(file)), offset, bytes});
  };
  if (const auto memory = drivers_.find_file(id)) {
    if ((memory->said().flags & STRAIT_SOFT_NOT_EXPORTABLE) != 0) return false;
    const std::int64_t size = sys::file_bytes(fd);
    if (size <= 0) return false;
    take(memory, sys::Fd(), 0, static_cast<std::uint64_t>(size));
    return true;
  }
  auto window = accel::open_window(fd);
  if (!window || !*window) return false;
  for (accel::OpenedPiece& piece : **window) {
    const auto of = sys::file_id(piece.file.get());
    const auto memory = of ? drivers_.find_file(*of) : nullptr;
    take(memory, std::move(piece.file), piece.offset, piece.length_bytes);
  }
  return needs.size_bytes != 0;
}

std::shared_ptr<DmaBuf> Kernel::get(int fd) {
  const auto id = sys::file_id(fd);
  if (!id) return nullptr;
  const std::lock_guard lock(mutex_);
  const auto known = buffers_.find(*id);
  if (known != buffers_.end()) {
    if (auto alive = known->second.lock()) return alive;
    buffers_.erase(known);
  }
  ExporterNeeds needs;
  if (!open_files(fd, *id, needs)) return nullptr;
  needs.faults = &settings_.faults;
  needs.bar = &bar_;
  const std::uint64_t size_bytes = needs.size_bytes;
  auto made = std::make_shared<DmaBuf>(make_exporter(std::move(needs)), size_bytes, settings_.faults, counters_);
  buffers_.emplace(*id, made);
  return made;
}

int Kernel::import_dmabuf(const DmaDevice& device, int fd, std::uint64_t offset, std::uint64_t length_bytes,
                          std::uint64_t iova, NicMemoryOwner& out) {
  auto buffer = get(fd);
  if (!buffer) return 1;
  return make_dmabuf_memory(*this, std::move(buffer), device, offset, length_bytes, iova, out);
}

int Kernel::import_address(const DmaDevice& device, std::uint64_t address, std::uint64_t length_bytes,
                           std::uint64_t iova, bool write, NicMemoryOwner& out) {
  if (length_bytes == 0 || address + length_bytes < address) return 1;
  // Also a range that only runs into device memory: no host memory is there.
  if (!drivers_.find_overlap(address, address + length_bytes)) return 1;
  const int failed = make_peer_memory(*this, device, address, length_bytes, iova, write, out);
  if (failed != -EFAULT || !settings_.p2p) return failed;
  return make_p2p_memory(*this, device, address, length_bytes, iova, out);
}

std::string Kernel::unbalanced() const {
  const auto all = counters_.snapshot();
  const auto value = [&](const char* name) {
    for (const auto& [each, count] : all) {
      if (name != nullptr && each == name) return count;
    }
    return std::uint64_t{0};
  };
  std::string out;
  for (const Pair& pair : kPairs) {
    const std::uint64_t left = value(pair.done) - value(pair.undone) - value(pair.or_undone);
    if (left != 0) out += fmt::format("{}{}={}", out.empty() ? "" : ",", pair.done, static_cast<std::int64_t>(left));
  }
  return out;
}

std::string Kernel::counters_text() const {
  std::string out;
  for (const auto& [name, count] : counters_.snapshot())
    out += fmt::format("{}kernel_{}={}", out.empty() ? "" : ",", name, count);
  return out;
}

}  // namespace strait::soft::kernel
