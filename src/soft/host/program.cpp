// SPDX-License-Identifier: Apache-2.0
#include "soft/host/program.hpp"

#include <cerrno>

#include "soft/host/elf.hpp"
#include "sys/program_file.hpp"

namespace strait::soft::host {
namespace {

constexpr int kMostInterpreters = 5;  // the kernel's limit for scripts run by scripts

std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

// Run by hand, as "ld-linux-x86-64.so.2 program": it loads what is preloaded as ever.
bool is_loader(const std::string& path) {
  return base_name(path).starts_with("ld-linux") || base_name(path).starts_with("ld.so");
}

Error refuse(const std::string& path, std::string_view why, std::string remedy) {
  return with_remedy(fail(Code::unsupported, "{} would not see the devices: {}", path, why), std::move(remedy));
}

Result<ProgramFacts> check_elf(const std::string& path, const ElfFacts& facts) {
  if (!facts.executable) return fail(Code::invalid, "{} is an ELF file, but no program", path);
  if (!facts.wide || !facts.little || facts.machine != own_machine())
    return refuse(path, "it is a program for another processor, and a preloaded library has to be for the same one",
                  "Use a build of it for this machine.");
  if (facts.interpreter.empty() && !is_loader(path))
    return refuse(path, "it is linked statically, and no library can be preloaded into it",
                  "Use a build of it that is linked to the C library dynamically.");
  if (base_name(facts.interpreter).starts_with("ld-musl"))
    return refuse(path, "it uses the C library musl, and libstrait-host.so is built for the GNU C library",
                  "Use a build of it for the GNU C library.");
  return ProgramFacts{facts.go};
}

}  // namespace

Result<ProgramFacts> check_program(const std::string& path) {
  std::string at = path;
  for (int i = 0; i < kMostInterpreters; ++i) {
    const auto opened = sys::ProgramFile::open(at);
    // May be run, but not read: nothing is known against it.
    if (!opened && opened.error().sys_errno == EACCES) return ProgramFacts{};
    if (!opened) return opened.error();
    const sys::ProgramFile& file = *opened;
    const ReadAt read_at = [&](std::uint64_t offset, std::span<std::byte> into) { return file.read_at(offset, into); };
    if (file.changes_rights())
      return refuse(at, "it runs with other rights than yours, and the loader then ignores preloaded libraries",
                    "Copy it: a copy has no such rights.");
    auto facts = read_elf(read_at);
    if (!facts) return fail(facts.error().code, "{} is no program that can be run: {}", at, facts.error().text);
    if (*facts) return check_elf(at, **facts);
    auto interpreter = script_interpreter(read_at);
    if (!interpreter)
      return with_remedy(fail(Code::invalid, "{} is neither a program nor a script that begins with #!", at),
                         "To run a script without that line, name its interpreter: `strait run -- sh SCRIPT`.");
    at = std::move(*interpreter);
  }
  return fail(Code::invalid, "{} is a script run by a script, and so on, too often", path);
}

}  // namespace strait::soft::host
