// SPDX-License-Identifier: Apache-2.0
// Writes ../golden_cxi_ring.hpp: what the public inline functions put into command rings for a list of calls that
// ../cxi_golden_test.cpp makes with ours. None of their headers is here. To make the file anew, with the folder that
// holds cassini_user_defs.h and cxi_prov_hw.h:
//
//   cc -w -ICASSINI_HEADERS -o record_cxi_ring record_cxi_ring.c && ./record_cxi_ring > ../golden_cxi_ring.hpp
//
// Every ring is written twice, over two fillings; digits that differ were not written by the functions and are
// shown as "-". Padding of a command's own struct is part of what they copy, and is zero here.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cxi_prov_hw.h>

enum { kBlocks = 64 };

static unsigned char rings[2][kBlocks * 64] __attribute__((aligned(4096)));
static uint64_t page[512];
static struct cxi_cq cq;

static void must(int answer) {
  if (answer == 0) return;
  fprintf(stderr, "record_cxi_ring: a command was refused with %d\n", answer);
  exit(1);
}

static struct c_full_dma_cmd dma(unsigned opcode, uint64_t local, uint64_t remote, uint32_t length, uint64_t tag) {
  struct c_full_dma_cmd c = {0};
  c.command.opcode = opcode;
  c.index_ext = 3;
  c.lac = 5;
  c.event_send_disable = 1;
  c.event_success_disable = 1;
  if (opcode == C_CMD_PUT)
    c.event_ct_ack = 1;
  else
    c.event_ct_reply = 1;
  memcpy(&c.dfa, &(uint32_t){0x12345678}, 4);
  c.remote_offset = remote;
  c.local_addr = local;
  c.request_len = length;
  c.ct = 1234;
  c.eq = 777;
  c.initiator = 0xc0ffee;
  c.user_ptr = tag;
  return c;
}

static struct c_dma_amo_cmd amo(int fetching, uint64_t operand, uint64_t remote, uint64_t result, unsigned ct,
                                unsigned index_ext) {
  struct c_dma_amo_cmd c = {0};
  c.index_ext = index_ext;
  c.lac = 5;
  c.event_send_disable = 1;
  c.event_success_disable = 1;
  if (fetching)
    c.event_ct_reply = 1;
  else
    c.event_ct_ack = 1;
  memcpy(&c.dfa, &(uint32_t){0x12345678}, 4);
  c.remote_offset = remote;
  c.local_read_addr = operand;
  c.ct = ct;
  c.eq = 777;
  c.initiator = 0xc0ffee;
  c.atomic_op = C_AMO_OP_SUM;
  c.atomic_type = C_AMO_TYPE_UINT64_T;
  if (fetching) {
    c.local_write_addr = result;
    c.write_lac = 5;
  }
  return c;
}

static struct c_cstate_cmd state(int fetching, unsigned index_ext, unsigned write_lac) {
  struct c_cstate_cmd c = {0};
  c.write_lac = write_lac;
  c.event_send_disable = 1;
  c.event_success_disable = 1;
  if (fetching)
    c.event_ct_reply = 1;
  else
    c.event_ct_ack = 1;
  c.initiator = 0xc0ffee;
  c.index_ext = index_ext;
  c.ct = 1234;
  c.eq = 777;
  return c;
}

static struct c_idc_amo_cmd idc_amo(uint64_t remote, unsigned op, uint64_t operand, uint64_t compare, uint64_t result) {
  struct c_idc_amo_cmd c = {0};
  memcpy(&c.idc_header.dfa, &(uint32_t){0x12345678}, 4);
  c.idc_header.remote_offset = remote;
  c.local_addr = result;
  c.atomic_op = op;
  c.atomic_type = C_AMO_TYPE_UINT64_T;
  c.op1_word1 = operand;
  c.op2_word1 = compare;
  return c;
}

static void puts_and_gets(void) {
  struct c_full_dma_cmd c = dma(C_CMD_PUT, 0x123456789000, 0x40, 4096, 0x1122334455667788);
  must(cxi_cq_emit_dma(&cq, &c));
  c = dma(C_CMD_GET, 0x123456789008, 0x48, 24, 0);
  must(cxi_cq_emit_dma(&cq, &c));
  c = dma(C_CMD_PUT, 0x123456789010, 0x50, 0xffffffff, 0);
  c.match_bits = 0xfedcba9876543210;
  must(cxi_cq_emit_dma(&cq, &c));
  cxi_cq_ring(&cq);
}

static void immediates(void) {
  struct c_cstate_cmd s = state(0, 3, 0);
  must(cxi_cq_emit_c_state(&cq, &s));
  struct c_idc_put_cmd put = {0};
  memcpy(&put.idc_header.dfa, &(uint32_t){0x12345678}, 4);
  put.idc_header.remote_offset = 0x60;
  uint64_t eight = 0x0807060504030201;
  must(cxi_cq_emit_idc_put(&cq, &put, &eight, 8));
  put.idc_header.remote_offset = 0x68;
  must(cxi_cq_emit_idc_put(&cq, &put, &eight, 3));
  cxi_cq_ring(&cq);  // an odd end
  struct c_idc_amo_cmd a = idc_amo(0x70, C_AMO_OP_SUM, 5, 0, 0);
  must(cxi_cq_emit_idc_amo(&cq, &a, false));
  s = state(1, 3, 5);
  must(cxi_cq_emit_c_state(&cq, &s));
  a = idc_amo(0x78, C_AMO_OP_SUM, 6, 0, 0x123456789100);
  must(cxi_cq_emit_idc_amo(&cq, &a, true));
  a = idc_amo(0x80, C_AMO_OP_CSWAP, 7, 8, 0x123456789108);
  must(cxi_cq_emit_idc_amo(&cq, &a, true));
  s = state(0, 9, 0);
  must(cxi_cq_emit_c_state(&cq, &s));
  a = idc_amo(0x18, C_AMO_OP_SUM, 1, 0, 0);  // a signal
  must(cxi_cq_emit_idc_amo(&cq, &a, false));
  cxi_cq_ring(&cq);
}

static void atomics_of_memory(void) {
  struct c_full_dma_cmd c = dma(C_CMD_PUT, 0x123456789000, 0, 8, 0);
  must(cxi_cq_emit_dma(&cq, &c));
  struct c_dma_amo_cmd a = amo(1, 0x123456789200, 0x88, 0x123456789208, 1234, 3);
  must(cxi_cq_emit_dma_amo(&cq, &a, true));  // behind a gap
  a = amo(0, 0x123456789200, 0x90, 0, 1234, 3);
  must(cxi_cq_emit_dma_amo(&cq, &a, false));
  cxi_cq_ring(&cq);
}

static void counters(void) {
  struct c_ct_cmd c = {0};
  c.ct = 1234;
  must(cxi_cq_emit_ct(&cq, C_CMD_CT_GET, &c));
  memset(&c, 0, sizeof c);
  c.trig_ct = 1234;
  c.threshold = 0xffffffffffff;
  must(cxi_cq_emit_ct(&cq, C_CMD_CT_TRIG_EVENT, &c));
  memset(&c, 0, sizeof c);
  c.ct = 1234;
  c.set_ct_success = 1;
  c.set_ct_failure = 1;
  c.ct_success = 0x123456789abc;
  c.ct_failure = 0x55;
  must(cxi_cq_emit_ct(&cq, C_CMD_CT_SET, &c));
  memset(&c, 0, sizeof c);
  c.ct = 1234;
  must(cxi_cq_emit_ct(&cq, C_CMD_CT_CANCEL, &c));
  cxi_cq_ring(&cq);
}

// The triggered half of a put with a signal, twice: the second behind a gap.
static void signals(void) {
  for (unsigned i = 0; i < 2; ++i) {
    struct c_ct_cmd c = {0};
    c.trig_ct = 321;
    c.threshold = 1 + 2 * i;
    struct c_dma_amo_cmd a = amo(0, 0x123456789300, 8 * i, 0, 321, 9);
    must(cxi_cq_emit_trig_dma_amo(&cq, &c, &a, false));
    memset(&c, 0, sizeof c);
    c.trig_ct = 321;
    c.threshold = 2 + 2 * i;
    must(cxi_cq_emit_ct(&cq, C_CMD_CT_TRIG_EVENT, &c));
  }
  cxi_cq_ring(&cq);
}

static void target(void) {
  struct c_target_cmd c = {0};
  c.command.opcode = C_CMD_TGT_APPEND;
  c.ptl_list = C_PTL_LIST_PRIORITY;
  c.ptlte_index = 1021;
  cxi_target_cmd_setopts(&c, C_LE_EVENT_CT_COMM | C_LE_EVENT_SUCCESS_DISABLE | C_LE_OP_PUT | C_LE_OP_GET);
  c.ct = 1234;
  c.buffer_id = 0xbeef;
  c.lac = 5;
  c.start = 0x123456789000;
  c.length = 0x10000;
  c.match_id = 0xffffffff;
  c.match_bits = 0x1111111111111111;
  c.ignore_bits = 0x2222222222222222;
  must(cxi_cq_emit_target(&cq, &c));
  struct c_set_state_cmd s = {0};
  s.command.opcode = C_CMD_TGT_SETSTATE;
  s.ptlte_state = C_PTLTE_ENABLED;
  s.ptlte_index = 1021;
  must(cxi_cq_emit_target(&cq, &s));
  cxi_cq_ring(&cq);
}

// Many puts, taken, then puts and atomics across the end of the ring.
static void around(void) {
  for (unsigned i = 0; i < 57; ++i) {
    struct c_full_dma_cmd c = dma(C_CMD_PUT, 0x123456789000 + i, i, i, i);
    must(cxi_cq_emit_dma(&cq, &c));
  }
  cxi_cq_ring(&cq);
  cq.status->rd_ptr = 61;
  for (unsigned i = 0; i < 3; ++i) {
    struct c_dma_amo_cmd a = amo(0, 0x123456789200 + 8 * i, 8 * i, 0, 1234, 3);
    must(cxi_cq_emit_dma_amo(&cq, &a, false));
  }
  cxi_cq_ring(&cq);
  cq.status->rd_ptr = 4;
}

static void record(const char* name, void (*write)(void)) {
  uint64_t end = 0;
  for (unsigned i = 0; i < 2; ++i) {
    memset(rings[i], i == 0 ? 0xee : 0x11, sizeof rings[i]);
    memset(&cq, 0, sizeof cq);
    memset(page, 0, sizeof page);
    // The functions do not write the status word whole.
    memset(rings[i], 0, 8);
    cxi_cq_init(&cq, (struct cxi_cmd64*)rings[i], kBlocks, page, 0);
    write();
    end = page[0];
  }
  printf("      {\"%s\", %u,\n", name, (unsigned)end);
  size_t last = sizeof rings[0];
  while (last > 256 && rings[0][last - 1] == 0xee && rings[1][last - 1] == 0x11) --last;
  for (size_t at = 256; at < last; at += 32) {
    printf("       \"");
    for (size_t i = at; i < at + 32; ++i) {
      for (unsigned shift = 8; shift != 0; shift -= 4) {
        const unsigned a = rings[0][i] >> (shift - 4) & 15, b = rings[1][i] >> (shift - 4) & 15;
        printf(a == b ? "%x" : "-", a);
      }
    }
    printf("\"%s\n", at + 32 < last ? "" : "},");
  }
}

int main(void) {
  printf(
      "// SPDX-License-Identifier: Apache-2.0\n"
      "// What the public CXI inline functions put into command rings, from slot 8 on, 32 bytes a line. Written by\n"
      "// record/record_cxi_ring.c, not by the code under test; see there for the calls and how to make it anew. \"-\" "
      "is\n"
      "// a digit that they leave as it was.\n"
      "#pragma once\n\n"
      "#include <cstdint>\n#include <string>\n#include <vector>\n\n"
      "namespace golden_cxi {\n\n"
      "struct RingImage {\n  const char* name;\n  std::uint64_t write_pointer;  // that was rung last\n  std::string "
      "hex;\n};\n\n"
      "// clang-format off\n"
      "inline const std::vector<RingImage>& rings() {\n"
      "  static const std::vector<RingImage> all = {\n");
  record("puts_and_gets", puts_and_gets);
  record("immediates", immediates);
  record("atomics_of_memory", atomics_of_memory);
  record("counters", counters);
  record("signals", signals);
  record("target", target);
  record("around", around);
  printf("  };\n  return all;\n}\n// clang-format on\n\n}  // namespace golden_cxi\n");
  return 0;
}
