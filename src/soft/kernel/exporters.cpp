// SPDX-License-Identifier: Apache-2.0
#include "soft/kernel/exporters.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "soft/kernel/driver.h"

namespace strait::soft::kernel {
namespace {

// Memory in a file, mapped whole; lists are cut where the importer's longest segment ends.
class FileExporter : public Exporter {
 public:
  explicit FileExporter(ExporterNeeds needs) : needs_(std::move(needs)) {}

  int map(Attachment& attachment, DmaList& out) override {
    if (!needs_.bar->take(bar(), window(attachment), needs_.faults->bar_bytes)) return -ENOMEM;
    const int failed = map_pieces(attachment, out);
    if (failed != 0) {
      out = DmaList{};
      needs_.bar->give_back(bar(), window(attachment));
    }
    return failed;
  }
  void unmap(Attachment& attachment, DmaList&) override { needs_.bar->give_back(bar(), window(attachment)); }
  Whole whole() const override {
    if (needs_.files.size() != 1) return {};
    return {needs_.files.front().file->get(), needs_.files.front().offset};
  }

 protected:
  // How much of the file lies together for a device.
  [[nodiscard]] virtual std::uint64_t piece_bytes() const { return needs_.size_bytes; }

  int map_pieces(Attachment& attachment, DmaList& out) {
    const std::uint64_t most = std::max<std::uint64_t>(attachment.device.max_segment_bytes, 1);
    for (const FilePiece& file : needs_.files) {
      for (std::uint64_t at = 0; at < file.length_bytes; at += piece_bytes()) {
        const std::uint64_t n = std::min(piece_bytes(), file.length_bytes - at);
        auto mapped = sys::map_file(file.file->get(), file.offset + at, n, sys::Protect::read_write);
        if (!mapped) return mapped.error().sys_errno == ENOMEM ? -ENOMEM : -EIO;
        for (std::uint64_t done = 0; done < n; done += most)
          out.segments.push_back({mapped->data() + done, std::min(most, n - done)});
        out.mappings.push_back(std::move(*mapped));
      }
    }
    return 0;
  }
  [[nodiscard]] std::uint64_t window(const Attachment& attachment) const {
    return attachment.window_bytes != 0 ? attachment.window_bytes : needs_.size_bytes;
  }
  [[nodiscard]] std::uint64_t bar() const { return BarSpace::of(needs_.vendor, needs_.device); }
  [[nodiscard]] bool has_path(const Attachment& attachment) const {
    return attachment.device.peer_path && !needs_.faults->no_p2p;
  }

  ExporterNeeds needs_;
};

class NvidiaExporter final : public FileExporter {
 public:
  using FileExporter::FileExporter;
  const char* name() const override { return "nv_dmabuf"; }
  int attach(Attachment& attachment) override {
    // Both are the same errno to who asked, and print as "Unknown error 524".
    if (!attachment.peer2peer) return -kNotSupported524;
    return needs_.faults->topology || !has_path(attachment) ? -kNotSupported524 : 0;
  }
};

class HabanaExporter final : public FileExporter {
 public:
  using FileExporter::FileExporter;
  const char* name() const override { return "habanalabs"; }
  int attach(Attachment& attachment) override {
    if (!has_path(attachment)) attachment.peer2peer = false;
    return 0;
  }
  int map(Attachment& attachment, DmaList& out) override {
    if (needs_.faults->reset) return -EBUSY;
    if (!attachment.peer2peer) return -EPERM;
    return FileExporter::map(attachment, out);
  }
};

// Pinned in one place: in the accelerator for peers, or in system memory for those that cannot reach it there.
class MovingExporter : public FileExporter {
 public:
  using FileExporter::FileExporter;
  bool moves() const override { return true; }
  int pin(Attachment& attachment) override {
    const bool peer = attachment.peer2peer;
    if (pins_ != 0 && pinned_for_peers_ != peer) return -EBUSY;  // pinned elsewhere
    pinned_for_peers_ = peer;
    ++pins_;
    return 0;
  }
  void unpin(Attachment&) override { --pins_; }

 private:
  unsigned pins_ = 0;
  bool pinned_for_peers_ = false;
};

class AmdgpuExporter final : public MovingExporter {
 public:
  using MovingExporter::MovingExporter;
  const char* name() const override { return "amdgpu"; }
  int attach(Attachment& attachment) override {
    if (!has_path(attachment)) attachment.peer2peer = false;
    return 0;
  }
  int map(Attachment& attachment, DmaList& out) override {
    if (attachment.peer2peer || !needs_.faults->static_moves) return MovingExporter::map(attachment, out);
    return map_copy(out);
  }
  void unmap(Attachment& attachment, DmaList& list) override {
    if (attachment.peer2peer || !needs_.faults->static_moves) MovingExporter::unmap(attachment, list);
  }

 protected:
  // Its memory comes in pieces: a list with holes between the addresses, as a real one.
  std::uint64_t piece_bytes() const override { return std::uint64_t{2} << 20; }

 private:
  // The buffer went to system memory and the GPU was not told: the importer has a copy of what it was.
  int map_copy(DmaList& out) const {
    auto copy = sys::map_anonymous(needs_.size_bytes, sys::Protect::read_write);
    if (!copy) return -ENOMEM;
    std::uint64_t at = 0;
    for (const FilePiece& file : needs_.files) {
      const auto now = sys::map_file(file.file->get(), file.offset, file.length_bytes, sys::Protect::read);
      if (!now) return -ENOMEM;
      std::memcpy(copy->data() + at, now->data(), file.length_bytes);
      at += file.length_bytes;
    }
    out.segments.push_back({copy->data(), needs_.size_bytes});
    out.mappings.push_back(std::move(*copy));
    return 0;
  }
};

class SoftExporter final : public MovingExporter {
 public:
  using MovingExporter::MovingExporter;
  const char* name() const override { return "soft_accel"; }
  bool moves() const override { return needs_.faults->move_at.has_value(); }
};

}  // namespace

bool BarSpace::take(std::uint64_t which, std::uint64_t bytes, std::uint64_t limit) {
  const std::lock_guard lock(mutex_);
  std::uint64_t& used = used_[which];
  if (limit != 0 && (used > limit || bytes > limit - used)) return false;
  used += bytes;
  return true;
}

void BarSpace::give_back(std::uint64_t which, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  used_[which] -= bytes;
}

std::uint64_t BarSpace::used(std::uint64_t which) const {
  const std::lock_guard lock(mutex_);
  const auto found = used_.find(which);
  return found == used_.end() ? 0 : found->second;
}

std::unique_ptr<Exporter> make_exporter(ExporterNeeds needs) {
  switch (needs.vendor) {
    case STRAIT_SOFT_VENDOR_CUDA: return std::make_unique<NvidiaExporter>(std::move(needs));
    case STRAIT_SOFT_VENDOR_ROCM: return std::make_unique<AmdgpuExporter>(std::move(needs));
    case STRAIT_SOFT_VENDOR_GAUDI: return std::make_unique<HabanaExporter>(std::move(needs));
    default: return std::make_unique<SoftExporter>(std::move(needs));
  }
}

}  // namespace strait::soft::kernel
