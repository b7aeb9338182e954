// SPDX-License-Identifier: Apache-2.0
#include "sys/file_hold.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "sys/files.hpp"
#include "sys/mapping.hpp"

namespace strait::sys {
namespace {

TEST(FileHold, HolderIsSeenUntilItsLastDescriptorIsClosed) {
  auto memfd = make_sealed_memfd("held", 8192);
  ASSERT_TRUE(memfd);
  EXPECT_FALSE(is_held_elsewhere(memfd->get()));
  auto again = open_again(memfd->get());
  ASSERT_TRUE(again);
  EXPECT_EQ(file_id(again->get()), file_id(memfd->get()));
  EXPECT_FALSE(is_held_elsewhere(memfd->get()));
  ASSERT_TRUE(hold_file(again->get()));
  EXPECT_TRUE(is_held_elsewhere(memfd->get()));
  auto leaked = again->duplicate();
  ASSERT_TRUE(leaked);
  again->reset();
  EXPECT_TRUE(is_held_elsewhere(memfd->get())) << "the duplicate holds it too";
  leaked->reset();
  EXPECT_FALSE(is_held_elsewhere(memfd->get()));
}

TEST(FileHold, ChildThatInheritedItKeepsIt) {
  auto memfd = make_sealed_memfd("held", 4096);
  ASSERT_TRUE(memfd);
  auto again = open_again(memfd->get());
  ASSERT_TRUE(again);
  ASSERT_TRUE(hold_file(again->get()));
  int gate[2];
  ASSERT_EQ(::pipe(gate), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char byte = 0;
    ::close(gate[1]);
    (void)!::read(gate[0], &byte, 1);
    ::_exit(0);
  }
  ::close(gate[0]);
  again->reset();
  EXPECT_TRUE(is_held_elsewhere(memfd->get()));
  ::close(gate[1]);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(is_held_elsewhere(memfd->get()));
}

TEST(FileHold, OnlyOneTakesItAlone) {
  auto memfd = make_sealed_memfd("held", 4096);
  ASSERT_TRUE(memfd);
  auto first = open_again(memfd->get());
  auto second = open_of_process(::getpid(), memfd->get());
  ASSERT_TRUE(first && second);
  EXPECT_TRUE(take_file_alone(first->get()));
  EXPECT_FALSE(take_file_alone(second->get()));
  EXPECT_FALSE(hold_file(second->get()));
  EXPECT_FALSE(hold_file_before(second->get(), Deadline::after_ns(1'000'000)));
  ASSERT_TRUE(hold_file(first->get())) << "from alone to one of several";
  EXPECT_FALSE(take_file_alone(second->get()));
  EXPECT_TRUE(hold_file(second->get()));
}

TEST(FileHold, WhatIsNotThereIsSaid) {
  EXPECT_EQ(open_of_process(::getpid(), 1'000'000).error().code, Code::gone);
  EXPECT_EQ(open_again(-1).error().sys_errno, ENOENT);
  EXPECT_EQ(open_path("/nowhere/at/all").error().sys_errno, ENOENT);
  EXPECT_FALSE(hold_file(-1));
  EXPECT_FALSE(take_file_alone(-1));
}

TEST(FileHold, DroppedPagesReadAsZero) {
  auto memfd = make_sealed_memfd("held", 8192);
  ASSERT_TRUE(memfd);
  auto mapping = map_file(memfd->get(), 0, 8192, Protect::read_write);
  ASSERT_TRUE(mapping);
  std::memset(mapping->data(), 0x5a, 8192);
  ASSERT_TRUE(drop_file_pages(memfd->get(), 0, 4096));
  EXPECT_EQ(mapping->data()[100], std::byte{0});
  EXPECT_EQ(mapping->data()[5000], std::byte{0x5a});
  EXPECT_FALSE(drop_file_pages(-1, 0, 4096));
}

}  // namespace
}  // namespace strait::sys
