// SPDX-License-Identifier: Apache-2.0
#include "soft/gaudi/machine.hpp"

#include <cstdlib>
#include <filesystem>
#include <new>

#include "sys/file_hold.hpp"
#include "sys/files.hpp"
#include "sys/host.hpp"

namespace strait::soft::gaudi {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolder = "/gaudi";

Status link_file(const std::string& root, const std::string& name, const sys::Fd& file) {
  if (root.empty()) return {};
  std::error_code failed;
  fs::create_directories(root + kFolder, failed);
  fs::create_symlink(fmt::format("/proc/{}/fd/{}", sys::process_id(), file.get()), root + kFolder + "/" + name, failed);
  if (failed) return fail_errno(failed.value(), fmt::format("making the link {}{}/{}", root, kFolder, name));
  return {};
}

Result<sys::Fd> make_file(const std::string& root, const std::string& name, std::uint64_t length_bytes) {
  STRAIT_TRY(sys::Fd file, sys::make_sealed_memfd(("strait soft gaudi " + name).c_str(), length_bytes));
  STRAIT_CHECK(link_file(root, name, file));
  return file;
}

std::string segment_name(std::uint32_t slot, std::uint32_t segment) {
  return fmt::format("hbm{}.{}", slot, segment);
}

Result<DeviceFiles> open_linked(const std::string& folder, std::uint32_t slot) {
  DeviceFiles files;
  STRAIT_TRY(files.compute, sys::open_path(fmt::format("{}/compute{}", folder, slot)));
  STRAIT_TRY(files.control, sys::open_path(fmt::format("{}/control{}", folder, slot)));
  for (std::uint32_t i = 0; i < kSegments; ++i) {
    STRAIT_TRY(files.hbm[i], sys::open_path(folder + "/" + segment_name(slot, i)));
  }
  return files;
}

Result<DeviceFiles> open_own(const DeviceFiles& own) {
  DeviceFiles files;
  STRAIT_TRY(files.compute, sys::open_again(own.compute.get()));
  STRAIT_TRY(files.control, sys::open_again(own.control.get()));
  for (std::uint32_t i = 0; i < kSegments; ++i) {
    STRAIT_TRY(files.hbm[i], sys::open_again(own.hbm[i].get()));
  }
  return files;
}

bool is_held(const DeviceFiles& files) {
  bool held = sys::is_held_elsewhere(files.compute.get()) || sys::is_held_elsewhere(files.control.get());
  for (const sys::Fd& segment : files.hbm) held = held || sys::is_held_elsewhere(segment.get());
  return held;
}

}  // namespace

Result<Machine> Machine::create(const std::string& root, const accel::VendorSpec& spec) {
  Machine machine;
  const std::uint64_t memory = sys::round_up(spec.memory_bytes, kDramPageBytes);
  for (std::uint32_t slot = 0; slot < spec.devices; ++slot) {
    DeviceFiles files;
    STRAIT_TRY(files.compute, make_file(root, fmt::format("compute{}", slot), sys::page_bytes()));
    STRAIT_TRY(files.control, make_file(root, fmt::format("control{}", slot), sys::page_bytes()));
    for (std::uint32_t i = 0; i < kSegments; ++i) {
      STRAIT_TRY(files.hbm[i], make_file(root, segment_name(slot, i), memory));
    }
    machine.devices_.push_back(std::move(files));
  }
  STRAIT_TRY(machine.links_, make_file(root, "links", sys::round_up(sizeof(LinkWords), sys::page_bytes())));
  return machine;
}

Result<View> View::open(const accel::VendorSpec& spec) {
  View view;
  view.devices_ = spec.devices;
  view.segment_bytes_ = sys::round_up(spec.memory_bytes, kDramPageBytes);
  view.own_.resize(spec.devices);
  view.ids_.resize(spec.devices);
  const std::size_t words_bytes = sys::round_up(sizeof(LinkWords), sys::page_bytes());
  const char* root = std::getenv("STRAIT_HOST_ROOT");
  std::error_code ignored;
  if (root == nullptr || !fs::is_symlink(std::string(root) + kFolder + "/links", ignored)) {
    STRAIT_TRY(view.links_, sys::map_anonymous(words_bytes, sys::Protect::read_write));
    return view;
  }
  view.root_ = std::string(root) + kFolder;
  STRAIT_TRY(const sys::Fd links, sys::open_path(view.root_ + "/links"));
  STRAIT_CHECK(sys::check_sealed(links.get(), words_bytes));
  STRAIT_TRY(view.links_, sys::map_file(links.get(), 0, words_bytes, sys::Protect::read_write));
  for (std::uint32_t slot = 0; slot < spec.devices; ++slot) {
    STRAIT_TRY(const DeviceFiles files, open_linked(view.root_, slot));
    for (const sys::Fd& segment : files.hbm) STRAIT_CHECK(sys::check_sealed(segment.get(), view.segment_bytes_));
    view.ids_[slot] = {sys::file_id(files.compute.get()), sys::file_id(files.control.get())};
  }
  return view;
}

Status View::make_own(std::uint32_t slot) {
  if (own_[slot]) return {};
  accel::VendorSpec one;
  one.devices = 1;
  one.memory_bytes = segment_bytes_;
  STRAIT_TRY(Machine machine, Machine::create("", one));
  own_[slot] = std::make_unique<Machine>(std::move(machine));
  const DeviceFiles& files = own_[slot]->device(0);
  ids_[slot] = {sys::file_id(files.compute.get()), sys::file_id(files.control.get())};
  return {};
}

Result<DeviceFiles> View::device(std::uint32_t slot) {
  if (!root_.empty()) return open_linked(root_, slot);
  STRAIT_CHECK(make_own(slot));
  return open_own(own_[slot]->device(0));
}

Result<sys::Fd> View::control(std::uint32_t slot) {
  if (!root_.empty()) return sys::open_path(fmt::format("{}/control{}", root_, slot));
  STRAIT_CHECK(make_own(slot));
  return sys::open_again(own_[slot]->device(0).control.get());
}

void View::forget(std::uint32_t slot) {
  if (!own_[slot] || is_held(own_[slot]->device(0))) return;
  own_[slot].reset();
  ids_[slot] = {};
}

}  // namespace strait::soft::gaudi
