// SPDX-License-Identifier: Apache-2.0
// Program files, made by hand: what they say, and what is refused before it is started.
#include "soft/host/elf.hpp"

#include <elf.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <vector>

#include "soft/host/program.hpp"
#include "sys/scratch.hpp"

namespace strait::soft::host {
namespace {

using Bytes = std::vector<std::byte>;

template <class T>
void put(Bytes& into, std::size_t at, const T& value) {
  if (into.size() < at + sizeof value) into.resize(at + sizeof value);
  std::memcpy(into.data() + at, &value, sizeof value);
}

void put_text(Bytes& into, std::size_t at, std::string_view text) {
  if (text.empty()) return;
  if (into.size() < at + text.size()) into.resize(at + text.size());
  std::memcpy(into.data() + at, text.data(), text.size());
}

ReadAt reader(const Bytes& bytes) {
  return [&bytes](std::uint64_t offset, std::span<std::byte> into) -> std::size_t {
    if (offset >= bytes.size()) return 0;
    const std::size_t n = std::min<std::size_t>(into.size(), bytes.size() - static_cast<std::size_t>(offset));
    std::memcpy(into.data(), bytes.data() + offset, n);
    return n;
  };
}

Elf64_Ehdr header(std::uint16_t segments) {
  Elf64_Ehdr head{};
  std::memcpy(head.e_ident, ELFMAG, SELFMAG);
  head.e_ident[EI_CLASS] = ELFCLASS64;
  head.e_ident[EI_DATA] = ELFDATA2LSB;
  head.e_type = ET_DYN;
  head.e_machine = own_machine();
  head.e_phoff = sizeof head;
  head.e_phentsize = sizeof(Elf64_Phdr);
  head.e_phnum = segments;
  return head;
}

// A program with this loader ("": static), and nothing that could run.
Bytes program(std::string_view loader) {
  Bytes bytes;
  put(bytes, 0, header(2));
  Elf64_Phdr load{};
  load.p_type = PT_LOAD;
  put(bytes, sizeof(Elf64_Ehdr), load);
  Elf64_Phdr interpreter{};
  interpreter.p_type = loader.empty() ? PT_NULL : PT_INTERP;
  interpreter.p_offset = 0x400;
  interpreter.p_filesz = loader.size() + 1;
  put(bytes, sizeof(Elf64_Ehdr) + sizeof load, interpreter);
  put_text(bytes, 0x400, std::string(loader) + '\0');
  return bytes;
}

constexpr const char* kLoader = "/lib64/ld-linux-x86-64.so.2";

ElfFacts facts_of(const Bytes& bytes) {
  const auto facts = read_elf(reader(bytes));
  EXPECT_TRUE(facts) << facts.error().text;
  EXPECT_TRUE(facts && *facts);
  return facts && *facts ? **facts : ElfFacts{};
}

bool damaged(const Bytes& bytes) {
  const auto facts = read_elf(reader(bytes));
  return !facts && facts.error().code == Code::invalid && !facts.error().text.empty();
}

TEST(Elf, SaysWhichLoaderAProgramWants) {
  const ElfFacts facts = facts_of(program(kLoader));
  EXPECT_TRUE(facts.wide && facts.little && facts.executable);
  EXPECT_EQ(facts.machine, own_machine());
  EXPECT_EQ(facts.interpreter, kLoader);
  EXPECT_FALSE(facts.go);
  EXPECT_EQ(facts_of(program("")).interpreter, "");
}

TEST(Elf, ReadsThisVeryProgram) {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  Bytes bytes;
  for (char c; file.get(c) && bytes.size() < 65536;) bytes.push_back(static_cast<std::byte>(c));
  EXPECT_NE(facts_of(bytes).interpreter.find("ld-"), std::string::npos);
}

TEST(Elf, KnowsGoByItsNote) {
  Bytes bytes = program(kLoader);
  Elf64_Phdr note{};
  note.p_type = PT_NOTE;
  note.p_offset = 0x500;
  note.p_filesz = 64;
  put(bytes, sizeof(Elf64_Ehdr), note);
  put(bytes, 0x500, Elf64_Nhdr{4, 4, NT_GNU_BUILD_ID});
  put_text(bytes, 0x50c, std::string_view("GNU\0abcd", 8));
  put(bytes, 0x514, Elf64_Nhdr{4, 8, 4});
  put_text(bytes, 0x520, std::string_view("Go\0\0buildid!", 12));
  bytes.resize(0x540);
  EXPECT_TRUE(facts_of(bytes).go);
  put_text(bytes, 0x520, "Gx");
  EXPECT_FALSE(facts_of(bytes).go);
}

TEST(Elf, ReadsProgramsOf32BitsAndTheOtherByteOrder) {
  Bytes bytes;
  Elf32_Ehdr head{};
  std::memcpy(head.e_ident, ELFMAG, SELFMAG);
  head.e_ident[EI_CLASS] = ELFCLASS32;
  head.e_ident[EI_DATA] = ELFDATA2MSB;
  head.e_type = __builtin_bswap16(ET_EXEC);
  head.e_machine = __builtin_bswap16(EM_PPC);
  put(bytes, 0, head);
  const ElfFacts facts = facts_of(bytes);
  EXPECT_FALSE(facts.wide || facts.little);
  EXPECT_TRUE(facts.executable);
  EXPECT_EQ(facts.machine, EM_PPC);
}

TEST(Elf, RefusesDamage) {
  const Bytes good = program(kLoader);
  Bytes bytes = good;
  bytes[EI_CLASS] = std::byte{9};
  EXPECT_TRUE(damaged(bytes));
  for (const std::size_t size : {std::size_t{5}, sizeof(Elf64_Ehdr) - 1, sizeof(Elf64_Ehdr) + 10, std::size_t{0x410}})
    EXPECT_TRUE(damaged(Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)))) << size;
  Elf64_Ehdr head = header(2);
  head.e_phentsize = 1;
  put(bytes = good, 0, head);
  EXPECT_TRUE(damaged(bytes));
  put(bytes = good, 0, header(0xffff));
  EXPECT_TRUE(damaged(bytes));
  head = header(2);
  head.e_phoff = ~std::uint64_t{0} - 8;
  put(bytes = good, 0, head);
  EXPECT_TRUE(damaged(bytes));
  Elf64_Phdr interpreter{};
  interpreter.p_type = PT_INTERP;
  interpreter.p_offset = 0x400;
  for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{4}, ~std::uint64_t{0}}) {
    interpreter.p_filesz = size;
    put(bytes = good, sizeof(Elf64_Ehdr), interpreter);
    EXPECT_TRUE(damaged(bytes)) << size;
  }
}

TEST(Elf, WhatIsNoneIsNone) {
  for (const char* text : {"", "\x7f", "\x7f\x45L", "#!/bin/sh\n", "text"}) {
    Bytes bytes;
    put_text(bytes, 0, text);
    const auto facts = read_elf(reader(bytes));
    ASSERT_TRUE(facts);
    EXPECT_FALSE(*facts) << text;
  }
}

TEST(Script, NamesItsInterpreter) {
  const auto interpreter = [](std::string_view text) {
    Bytes bytes;
    put_text(bytes, 0, text);
    return script_interpreter(reader(bytes)).value_or("none");
  };
  EXPECT_EQ(interpreter("#!/bin/sh\n"), "/bin/sh");
  EXPECT_EQ(interpreter("#! /usr/bin/env python3\nx"), "/usr/bin/env");
  EXPECT_EQ(interpreter("#!/bin/sh"), "/bin/sh");
  EXPECT_EQ(interpreter("#!\n/bin/sh"), "none");
  EXPECT_EQ(interpreter("#!   \n"), "none");
  EXPECT_EQ(interpreter("/bin/sh"), "none");
  EXPECT_EQ(interpreter(""), "none");
}

class CheckProgram : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const Bytes& bytes, mode_t mode = 0755) {
    const std::string path = scratch_.path() + "/" + name;
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }
  std::string script(const std::string& name, const std::string& line) {
    Bytes bytes;
    put_text(bytes, 0, line);
    return write(name, bytes);
  }
  static std::string refused(const std::string& path) {
    const auto checked = check_program(path);
    if (checked) return "";
    EXPECT_EQ(checked.error().code, Code::unsupported);
    EXPECT_FALSE(checked.error().remedy.empty());
    return checked.error().text;
  }
  sys::Scratch scratch_ = sys::Scratch::create(sys::temporary_folder(), "strait-elf-test").value();
};

TEST_F(CheckProgram, OrdinaryProgramsAndScriptsAreFine) {
  EXPECT_EQ(refused(write("fine", program(kLoader))), "");
  EXPECT_EQ(refused("/bin/sh"), "");
  EXPECT_EQ(refused(script("script", "#!/bin/sh\nexit 0\n")), "");
  EXPECT_EQ(refused(write("ld-linux-x86-64.so.2", program(""))), "");
}

TEST_F(CheckProgram, RefusesWhatAPreloadDoesNotReach) {
  const std::string fixed = write("static", program(""));
  EXPECT_NE(refused(fixed).find("statically"), std::string::npos);
  EXPECT_NE(refused(script("script", "#!" + fixed + "\n")).find(fixed), std::string::npos);
  EXPECT_NE(refused(write("musl", program("/lib/ld-musl-x86_64.so.1"))).find("musl"), std::string::npos);
  Bytes other = program(kLoader);
  Elf64_Ehdr head = header(2);
  head.e_machine = EM_RISCV;
  put(other, 0, head);
  EXPECT_NE(refused(write("other", other)).find("another processor"), std::string::npos);
}

TEST_F(CheckProgram, RefusesProgramsThatGetOtherRights) {
  const std::string path = write("setuid", program(kLoader), 04755);
  EXPECT_EQ(refused(path), "");  // our own: they are the same rights
  if (::getuid() == 0) {
    ASSERT_EQ(::chown(path.c_str(), 65534, 65534), 0);
    ASSERT_EQ(::chmod(path.c_str(), 04755), 0);
    EXPECT_NE(refused(path).find("other rights"), std::string::npos);
  } else {
    EXPECT_NE(refused("/bin/su").find("other rights"), std::string::npos);
  }
}

TEST_F(CheckProgram, SaysWhatIsNoProgram) {
  for (const std::string& path : {script("text", "hello\n"), script("damaged", "\x7f\x45LF"), script("a", "")}) {
    const auto checked = check_program(path);
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.error().code, Code::invalid) << path;
  }
  EXPECT_EQ(check_program(scratch_.path() + "/nobody").error().code, Code::gone);
  const std::string self = scratch_.path() + "/self";
  EXPECT_EQ(check_program(script("self", "#!" + self + "\n")).error().code, Code::invalid);
}

}  // namespace
}  // namespace strait::soft::host
