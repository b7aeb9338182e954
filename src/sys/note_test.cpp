// SPDX-License-Identifier: Apache-2.0
#include "sys/note.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include "sys/files.hpp"
#include "sys/mapping.hpp"

namespace strait::sys {
namespace {

TEST(NoteTest, NamesMemoryFilesAndReadsTheirStart) {
  const Fd file = make_sealed_memfd("strait test file", page_bytes()).value();
  EXPECT_EQ(memfd_name(file.get()), "strait test file");
  EXPECT_EQ(memfd_name(-1), "");
  EXPECT_EQ(memfd_name(0), "");
  const Fd note = make_note("strait test note", page_bytes(), "abcd", 4).value();
  EXPECT_EQ(file_bytes(note.get()), static_cast<std::int64_t>(page_bytes()));
  char text[4] = {};
  EXPECT_EQ(read_start(note.get(), text, sizeof text), 4u);
  EXPECT_EQ(std::string(text, 4), "abcd");
  EXPECT_EQ(read_start(-1, text, sizeof text), 0u);
  EXPECT_LT(::pwrite(note.get(), "efgh", 4, 0), 0);
  EXPECT_FALSE(map_file(note.get(), 0, page_bytes(), Protect::read_write));
}

}  // namespace
}  // namespace strait::sys
