// SPDX-License-Identifier: Apache-2.0
// The peer of cxi_emit.cpp: libcxi's inline functions, from a folder of their headers.
#include <stdint.h>
#include <string.h>

#include <cxi_prov_hw.h>

static struct cxi_cq queue;
static struct c_full_dma_cmd prepared;

void cxi_emit_peer_open(void* ring, unsigned blocks, void* page) {
  cxi_cq_init(&queue, (struct cxi_cmd64*)ring, blocks, page, 0);
  memset(&prepared, 0, sizeof prepared);
  prepared.command.opcode = C_CMD_PUT;
  prepared.index_ext = 3;
  prepared.lac = 2;
  prepared.event_send_disable = 1;
  prepared.event_success_disable = 1;
  prepared.event_ct_ack = 1;
  memcpy(&prepared.dfa, &(uint32_t){0x12345}, 4);
  prepared.ct = 5;
  prepared.eq = 9;
  prepared.initiator = 77;
}

__attribute__((noinline)) int count_libcxi(uint64_t offset, uint32_t bytes, uint64_t tag) {
  struct c_full_dma_cmd put = prepared;
  put.local_addr = 0x7f0000000000 + offset;
  put.remote_offset = offset;
  put.request_len = bytes;
  put.user_ptr = tag;
  const int rc = cxi_cq_emit_dma(&queue, &put);
  cxi_cq_ring(&queue);
  return rc;
}
