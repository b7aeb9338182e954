// SPDX-License-Identifier: Apache-2.0
// Root: the tree of files that stands for device nodes and sysfs in one run. Written by `strait run` before the program
// starts; libstrait-host.so shows it to the program.
//
//   Root root = ...;
//   root.claim("/sys/class/infiniband");
//   root.file("/sys/class/infiniband/strait0/node_type", "1: CA");
//   root.link("/sys/class/infiniband/strait0/device", "/sys/devices/pci...");
//   root.node("/dev/infiniband/uverbs0", makedev(231, 192));
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "sys/scratch.hpp"

namespace strait::soft::host {

class Root {
 public:
  // A new one, empty, in the folder for temporary files; those of runs that were killed are removed first.
  [[nodiscard]] static Result<Root> create();
  [[nodiscard]] const std::string& path() const { return scratch_.path(); }

  // At and below this path the root answers and the machine's own files are not seen. A claim inside another is fine.
  // It makes a folder where there is nothing yet.
  [[nodiscard]] Status claim(std::string_view path);
  // At or below a claim.
  [[nodiscard]] bool claimed(std::string_view path) const;
  // A file; a newline is added if the text has none at its end. Folders on the way are made. All of these take absolute
  // paths as programs know them, at or below a claim.
  [[nodiscard]] Status file(std::string_view path, std::string_view text);
  // A file whose text a family makes for every open; a folder in which every name is one.
  [[nodiscard]] Status live(std::string_view path);
  [[nodiscard]] Status live_folder(std::string_view path);
  [[nodiscard]] Status folder(std::string_view path);
  // The target is stored as it is given: programs read it. Relative ones start where the link is; absolute ones are
  // paths as programs know them.
  [[nodiscard]] Status link(std::string_view path, std::string_view target);
  // A device node, below /dev. `number`: st_rdev, as makedev() gives it.
  [[nodiscard]] Status node(std::string_view path, std::uint64_t number);

 private:
  explicit Root(sys::Scratch scratch) : scratch_(std::move(scratch)) {}
  // The real path, with the folders above it made.
  [[nodiscard]] Result<std::string> prepare(std::string_view path) const;
  [[nodiscard]] Status write(std::string_view path, std::string_view text) const;
  sys::Scratch scratch_;
  std::string claims_;
};

}  // namespace strait::soft::host
