// SPDX-License-Identifier: Apache-2.0
// Bytes as g++ 12 and clang 16 make them, with what they store.
#include "soft/host/store.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace strait::soft::host {
namespace {

struct X86 {
  const char* text;
  std::vector<std::uint8_t> code;
  std::uint64_t address;
  std::uint32_t width;
  std::uint64_t value;
};

sys::ProcessorState some_state() {
  sys::ProcessorState state;
  for (std::uint64_t i = 0; i < 32; ++i) state.registers[i] = 0x1000 * (i + 1);
  for (std::uint64_t i = 0; i < 32; ++i) state.vectors[i] = 0xabcd'0000'0000'0000 + i;
  state.at = 0x400000;
  return state;
}

TEST(StoreX86, KnowsWhatCompilersMake) {
  // rax 0x1000, rcx 0x2000, rdx 0x3000, rbx 0x4000, rsp 0x5000, rbp 0x6000, rsi 0x7000, rdi 0x8000, r8 0x9000 ...
  const X86 all[] = {
      {"mov [rax], rcx", {0x48, 0x89, 0x08}, 0x1000, 8, 0x2000},
      {"mov [rax], ecx", {0x89, 0x08}, 0x1000, 4, 0x2000},
      {"mov [rax+0x40], rsi", {0x48, 0x89, 0x70, 0x40}, 0x1040, 8, 0x7000},
      {"mov [rdi+0x80], rsi", {0x48, 0x89, 0xb7, 0x80, 0x00, 0x00, 0x00}, 0x8080, 8, 0x7000},
      {"mov [rdi-8], rsi", {0x48, 0x89, 0x77, 0xf8}, 0x7ff8, 8, 0x7000},
      {"mov [r8], r9", {0x4d, 0x89, 0x08}, 0x9000, 8, 0xa000},
      {"mov [rsp+8], rax", {0x48, 0x89, 0x44, 0x24, 0x08}, 0x5008, 8, 0x1000},
      {"mov [r12], rax", {0x49, 0x89, 0x04, 0x24}, 0xd000, 8, 0x1000},
      {"mov [r13+0], rax", {0x49, 0x89, 0x45, 0x00}, 0xe000, 8, 0x1000},
      {"mov [rax+rcx*8], rdx", {0x48, 0x89, 0x14, 0xc8}, 0x1000 + 0x2000 * 8, 8, 0x3000},
      {"mov [rax+r10*4+0x10], rdx", {0x4a, 0x89, 0x54, 0x90, 0x10}, 0x1000 + 0xb000 * 4 + 0x10, 8, 0x3000},
      {"mov [rcx*8+0x100], rdx", {0x48, 0x89, 0x14, 0xcd, 0x00, 0x01, 0x00, 0x00}, 0x2000 * 8 + 0x100, 8, 0x3000},
      {"mov [rip+0x100], rax", {0x48, 0x89, 0x05, 0x00, 0x01, 0x00, 0x00}, 0x400000 + 7 + 0x100, 8, 0x1000},
      {"mov qword [rax], 10", {0x48, 0xc7, 0x00, 0x0a, 0x00, 0x00, 0x00}, 0x1000, 8, 10},
      {"mov qword [rax+0x40], -1", {0x48, 0xc7, 0x40, 0x40, 0xff, 0xff, 0xff, 0xff}, 0x1040, 8, ~std::uint64_t{0}},
      {"mov dword [rax], -1", {0xc7, 0x00, 0xff, 0xff, 0xff, 0xff}, 0x1000, 4, 0xffffffff},
      {"mov word [rax], 7", {0x66, 0xc7, 0x00, 0x07, 0x00}, 0x1000, 2, 7},
      {"mov byte [rax], 7", {0xc6, 0x00, 0x07}, 0x1000, 1, 7},
      {"mov [rax], ch", {0x88, 0x28}, 0x1000, 1, 0x20},
      {"mov [rax], bpl", {0x40, 0x88, 0x28}, 0x1000, 1, 0},
      {"movnti [rdi], rsi", {0x48, 0x0f, 0xc3, 0x37}, 0x8000, 8, 0x7000},
      {"movnti [rdi], esi", {0x0f, 0xc3, 0x37}, 0x8000, 4, 0x7000},
      {"movq [rdi], xmm1", {0x66, 0x0f, 0xd6, 0x0f}, 0x8000, 8, 0xabcd'0000'0000'0001},
      {"movsd [rdi], xmm9", {0xf2, 0x44, 0x0f, 0x11, 0x0f}, 0x8000, 8, 0xabcd'0000'0000'0009},
      {"movlps [rdi], xmm2", {0x0f, 0x13, 0x17}, 0x8000, 8, 0xabcd'0000'0000'0002},
      {"movq [rdi], xmm3 (7e)", {0x66, 0x48, 0x0f, 0x7e, 0x1f}, 0x8000, 8, 0xabcd'0000'0000'0003},
      {"vmovq [rdi], xmm4", {0xc5, 0xf9, 0xd6, 0x27}, 0x8000, 8, 0xabcd'0000'0000'0004},
      {"vmovsd [r8], xmm10", {0xc4, 0x41, 0x7b, 0x11, 0x10}, 0x9000, 8, 0xabcd'0000'0000'000a},
  };
  for (const X86& each : all) {
    std::vector<std::uint8_t> code = each.code;
    const std::size_t length = code.size();
    for (int i = 0; i < 4; ++i) code.push_back(0x90);
    const auto store = decode_store_x86(code, some_state());
    ASSERT_TRUE(store) << each.text;
    EXPECT_EQ(store->address, each.address) << each.text;
    EXPECT_EQ(store->width, each.width) << each.text;
    EXPECT_EQ(store->values[0], each.value) << each.text;
    EXPECT_EQ(store->length, length) << each.text;
    // Less of it is not taken for another instruction.
    for (std::size_t n = 0; n < length; ++n)
      EXPECT_FALSE(decode_store_x86(std::span(each.code).first(n), some_state())) << each.text << " cut to " << n;
  }
}

TEST(StoreX86, LeavesTheRestAlone) {
  const std::vector<std::uint8_t> others[] = {
      {0x48, 0x8b, 0x08},        // mov rcx, [rax]: a load
      {0x48, 0x89, 0xc8},        // mov rax, rcx: no memory
      {0xf0, 0x48, 0x01, 0x08},  // lock add [rax], rcx
      {0x48, 0x01, 0x08},        // add [rax], rcx
      {0x0f, 0x29, 0x00},        // movaps [rax], xmm0: 16 bytes
      {0x0f, 0x11, 0x00},        // movups
      {0xc5, 0xfe, 0x7f, 0x07},  // vmovdqu [rdi], ymm0
      {0xc7, 0xf8, 0, 0, 0, 0},  // xbegin
      {0x64, 0x48, 0x89, 0x08},  // mov fs:[rax], rcx
      {0x67, 0x48, 0x89, 0x08},  // mov [eax], rcx
      {0xf3, 0x48, 0xab},        // rep stosq
      {0x48, 0xab},              // stosq
      {0x0f, 0x0b},              // ud2
      {},
  };
  for (const auto& code : others) EXPECT_FALSE(decode_store_x86(code, some_state()));
}

struct Arm {
  const char* text;
  std::uint32_t word;
  std::uint64_t address;
  std::uint32_t width;
  std::uint32_t count;
  std::uint64_t values[2];
  int base;
  std::uint64_t base_after;
};

TEST(StoreArm64, KnowsWhatCompilersMake) {
  // x0 0x1000, x1 0x2000, x2 0x3000 ... sp 0x20000
  const Arm all[] = {
      {"str x1, [x0]", 0xf9000001, 0x1000, 8, 1, {0x2000, 0}, -1, 0},
      {"str x1, [x0, #64]", 0xf9002001, 0x1040, 8, 1, {0x2000, 0}, -1, 0},
      {"str xzr, [x0, #128]", 0xf900401f, 0x1080, 8, 1, {0, 0}, -1, 0},
      {"str w1, [x0]", 0xb9000001, 0x1000, 4, 1, {0x2000, 0}, -1, 0},
      {"stur x1, [x0, #-8]", 0xf81f8001, 0xff8, 8, 1, {0x2000, 0}, -1, 0},
      {"str x1, [x0], #8", 0xf8008401, 0x1000, 8, 1, {0x2000, 0}, 0, 0x1008},
      {"str x1, [x0, #8]!", 0xf8008c01, 0x1008, 8, 1, {0x2000, 0}, 0, 0x1008},
      {"str x1, [x0, x2, lsl #3]", 0xf8227801, 0x1000 + 0x3000 * 8, 8, 1, {0x2000, 0}, -1, 0},
      {"str x1, [sp]", 0xf90003e1, 0x20000, 8, 1, {0x2000, 0}, -1, 0},
      {"stlr x1, [x0]", 0xc89ffc01, 0x1000, 8, 1, {0x2000, 0}, -1, 0},
      {"stp x1, x2, [x0]", 0xa9000801, 0x1000, 8, 2, {0x2000, 0x3000}, -1, 0},
      {"stp x1, x2, [x0, #16]!", 0xa9810801, 0x1010, 8, 2, {0x2000, 0x3000}, 0, 0x1010},
      {"str d1, [x0]", 0xfd000001, 0x1000, 8, 1, {0xabcd'0000'0000'0001, 0}, -1, 0},
  };
  for (const Arm& each : all) {
    std::uint8_t code[4];
    for (unsigned i = 0; i < 4; ++i) code[i] = static_cast<std::uint8_t>(each.word >> (8 * i));
    const auto store = decode_store_arm64(code, some_state());
    ASSERT_TRUE(store) << each.text;
    EXPECT_EQ(store->address, each.address) << each.text;
    EXPECT_EQ(store->width, each.width) << each.text;
    EXPECT_EQ(store->count, each.count) << each.text;
    EXPECT_EQ(store->values[0], each.values[0]) << each.text;
    EXPECT_EQ(store->values[1], each.values[1]) << each.text;
    EXPECT_EQ(store->base, each.base) << each.text;
    EXPECT_EQ(store->base_after, each.base_after) << each.text;
    EXPECT_EQ(store->length, 4u);
  }
}

TEST(WideStore, X86HasALengthAndNothingBehindIt) {
  const std::vector<std::uint8_t> all[] = {
      {0x0f, 0x11, 0x00},                                // movups xmm0,(rax)
      {0x45, 0x0f, 0x29, 0x4c, 0x24, 0x40},              // movaps xmm9,0x40(r12)
      {0x0f, 0x2b, 0x0c, 0xc8},                          // movntps xmm1,(rax,rcx,8)
      {0x66, 0x0f, 0x7f, 0x97, 0x00, 0x01, 0x00, 0x00},  // movdqa xmm2,0x100(rdi)
      {0xf3, 0x0f, 0x7f, 0x14, 0x24},                    // movdqu xmm2,(rsp)
      {0x66, 0x45, 0x0f, 0xe7, 0x5d, 0x10},              // movntdq xmm11,0x10(r13)
      {0xc5, 0xfc, 0x11, 0x08},                          // vmovups ymm1,(rax)
      {0xc4, 0x41, 0x7d, 0x7f, 0x48, 0x20},              // vmovdqa ymm9,0x20(r8)
      {0xc5, 0xfd, 0xe7, 0x08},                          // vmovntdq ymm1,(rax)
      {0xc4, 0x81, 0x7a, 0x7f, 0x1c, 0x51},              // vmovdqu xmm3,(r9,r10,2)
      {0x62, 0xf1, 0xfe, 0x48, 0x7f, 0x48, 0x01},        // vmovdqu64 zmm1,0x40(rax)
      {0x62, 0xe1, 0xfd, 0x48, 0x7f, 0x27},              // vmovdqa64 zmm20,(rdi)
      {0x62, 0xf1, 0x7d, 0x48, 0xe7, 0x0f},              // vmovntdq zmm1,(rdi)
      {0x62, 0xd1, 0x7c, 0x48, 0x11, 0x6b, 0x02},        // vmovups zmm5,0x80(r11)
      {0x62, 0xd1, 0x7f, 0x48, 0x7f, 0x2b},              // vmovdqu8 zmm5,(r11)
  };
  for (const auto& each : all) {
    std::vector<std::uint8_t> code = each;
    EXPECT_FALSE(decode_store_x86(code, some_state()));
    EXPECT_EQ(wide_store_x86(code), each.size());
    code.resize(16, 0x90);
    EXPECT_EQ(wide_store_x86(code), each.size());
    code.resize(each.size() - 1);
    EXPECT_FALSE(wide_store_x86(code));
  }
  // mov [rax], rcx; movss; movq mm; movntq mm; movups of registers; a load; rep movsq
  for (const std::vector<std::uint8_t>& code : {std::vector<std::uint8_t>{0x48, 0x89, 0x08},
                                                {0xf3, 0x0f, 0x11, 0x00},
                                                {0x0f, 0x7f, 0x00},
                                                {0x0f, 0xe7, 0x00},
                                                {0x0f, 0x11, 0xc1},
                                                {0x0f, 0x10, 0x00},
                                                {0xf3, 0x48, 0xa5}})
    EXPECT_FALSE(wide_store_x86(code));
}

TEST(WideStore, Arm64) {
  const auto wide = [](std::uint32_t word) {
    std::uint8_t code[4];
    for (unsigned i = 0; i < 4; ++i) code[i] = static_cast<std::uint8_t>(word >> (8 * i));
    return wide_store_arm64(code).has_value();
  };
  // str q1, [x0]; stp q1, q2, [x0]; stnp; st4 {v0.2d-v3.2d}, [x0]
  for (const std::uint32_t word : {0x3d800001u, 0xad000801u, 0xac000801u, 0x4c000c00u}) EXPECT_TRUE(wide(word));
  // ldr q1; stp with writeback; st4 with post-index; str x1
  for (const std::uint32_t word : {0x3dc00001u, 0xad800801u, 0x4c9f0c00u, 0xf9000001u}) EXPECT_FALSE(wide(word));
}

TEST(StoreArm64, LeavesTheRestAlone) {
  // ldr x1, [x0]; ldp; str q1, [x0]; stp q; ldadd; stxr; nop; dc zva
  for (const std::uint32_t word :
       {0xf9400001u, 0xa9400801u, 0x3d800001u, 0xad000801u, 0xf8210002u, 0xc8027c01u, 0xd503201fu, 0xd50b7420u}) {
    std::uint8_t code[4];
    for (unsigned i = 0; i < 4; ++i) code[i] = static_cast<std::uint8_t>(word >> (8 * i));
    EXPECT_FALSE(decode_store_arm64(code, some_state())) << std::hex << word;
  }
}

}  // namespace
}  // namespace strait::soft::host
