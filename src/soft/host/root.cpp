// SPDX-License-Identifier: Apache-2.0
#include "soft/host/root.hpp"

#include <sys/sysmacros.h>

#include <filesystem>
#include <fstream>

#include "soft/host/report.hpp"
#include "sys/caller.hpp"

namespace strait::soft::host {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "strait-run";

bool is_plain(std::string_view path) {
  return path.size() > 1 && path.front() == '/' && path.back() != '/' && path.find("/../") == path.npos &&
         path.find("//") == path.npos && !path.ends_with("/..") && path.find('\n') == path.npos;
}

}  // namespace

Result<Root> Root::create() {
  const std::string parent = sys::temporary_folder();
  sys::Scratch::sweep(parent, kName);
  STRAIT_TRY(sys::Scratch scratch, sys::Scratch::create(parent, kName));
  Root root(std::move(scratch));
  STRAIT_CHECK(root.folder(kReports));
  STRAIT_CHECK(root.folder(kCaptures));
  STRAIT_CHECK(root.write("/claims", ""));
  // A program of root's may take on another user's id on the way, and still has devices to open: it knows the way in.
  // Nobody else can list it, and what was captured stays with who ran it.
  if (sys::real_user() == 0) {
    using fs::perms;
    std::error_code failed;
    fs::permissions(root.path() + kCaptures, perms::owner_all, failed);
    if (!failed) fs::permissions(root.path(), perms::owner_all | perms::group_exec | perms::others_exec, failed);
    if (failed) return fail_errno(failed.value(), fmt::format("opening {} to other ids of root", root.path()));
  }
  return root;
}

Result<std::string> Root::prepare(std::string_view path) const {
  if (!is_plain(path)) return fail(Code::invalid, "\"{}\" is no absolute path without detours", path);
  std::string real = scratch_.path() + std::string(path);
  std::error_code failed;
  fs::create_directories(fs::path(real).parent_path(), failed);
  if (failed) return fail_errno(failed.value(), fmt::format("making the folder of {}", real));
  return real;
}

Status Root::write(std::string_view path, std::string_view text) const {
  STRAIT_TRY(const std::string real, prepare(path));
  std::ofstream out(real, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  if (!out) return fail_errno(errno, fmt::format("writing {}", real));
  return {};
}

Status Root::claim(std::string_view path) {
  claims_ += std::string(path) + "\n";
  STRAIT_TRY(const std::string real, prepare(path));
  std::error_code nothing;
  if (!fs::exists(fs::symlink_status(real, nothing))) STRAIT_CHECK(folder(path));
  return write("/claims", claims_);
}

bool Root::claimed(std::string_view path) const {
  std::string_view left = claims_;
  while (!left.empty()) {
    const std::string_view claim = left.substr(0, left.find('\n'));
    left.remove_prefix(claim.size() + 1);
    if (path.starts_with(claim) && (path.size() == claim.size() || path[claim.size()] == '/')) return true;
  }
  return false;
}

Status Root::file(std::string_view path, std::string_view text) {
  std::string whole(text);
  if (whole.empty() || whole.back() != '\n') whole.push_back('\n');
  return write(path, whole);
}

Status Root::live(std::string_view path) {
  return write(path, kLiveMark);
}

Status Root::live_folder(std::string_view path) {
  return write(std::string(path) + kLiveFolder, kLiveMark);
}

Status Root::folder(std::string_view path) {
  STRAIT_TRY(const std::string real, prepare(path));
  std::error_code failed;
  fs::create_directory(real, failed);
  if (failed) return fail_errno(failed.value(), fmt::format("making the folder {}", real));
  return {};
}

Status Root::link(std::string_view path, std::string_view target) {
  STRAIT_TRY(const std::string real, prepare(path));
  std::error_code failed;
  fs::create_symlink(std::string(target), real, failed);
  if (failed) return fail_errno(failed.value(), fmt::format("making the link {}", real));
  return {};
}

Status Root::node(std::string_view path, std::uint64_t number) {
  if (!path.starts_with("/dev/")) return fail(Code::invalid, "a device node is below /dev, which {} is not", path);
  STRAIT_CHECK(write(path, fmt::format("{}:{}\n", major(number), minor(number))));
  return {};
}

}  // namespace strait::soft::host
