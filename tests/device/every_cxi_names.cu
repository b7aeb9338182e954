// SPDX-License-Identifier: Apache-2.0
// Compiled, not run: every call of strait/cxi.h that touches mapped pages in a kernel, by its public name and beside
// the same on the host; and what the header promises to the program that makes the queues.
#include "strait/cxi.h"

#if !defined(STRAIT_CXI_GLOBAL_NAMES)
#error "alone, the names of cxi.h are global"
#endif

// What a kernel is given: addresses are those of the side that posts.
struct Given {
  cxi_cq* transmit;
  cxi_cq* target;
  void *transmit_ring, *target_ring, *transmit_page, *target_page;
  cxi_ct ct;
  cxi_md md;
  std::uint64_t buffer;
};

STRAIT_HD inline unsigned call_every(const Given& given) {
  cxi_cq_init(given.transmit, given.transmit_ring, 64, given.transmit_page, 0);
  cxi_cq_init(given.target, given.target_ring, 64, given.target_page, 1024);

  c_cmdu any{};
  any.target.command.opcode = C_CMD_TGT_APPEND;
  any.target.start = CXI_VA_TO_IOVA(&given.md, given.buffer) & 0x1ffffffffffffff;
  c_target_cmd append{};
  append.command.opcode = C_CMD_TGT_APPEND;
  append.length = CXI_IOVA_TO_VA(&given.md, given.md.iova) == given.md.va ? 4096 : 0;
  c_set_state_cmd enable{};
  enable.command.opcode = C_CMD_TGT_SETSTATE;
  enable.ptlte_state = C_PTLTE_ENABLED;
  int bad = 0;
  bad |= cxi_cq_emit_target(given.target, &any);
  bad |= cxi_cq_emit_target(given.target, &append);
  bad |= cxi_cq_emit_target(given.target, &enable);
  cxi_cq_ring(given.target);

  c_full_dma_cmd put{};
  put.command.opcode = C_CMD_PUT;
  put.local_addr = CXI_VA_TO_IOVA(&given.md, given.buffer) & 0x1ffffffffffffff;
  put.request_len = 8;
  bad |= cxi_cq_emit_dma(given.transmit, &put);
  cxi_cq_ring(given.transmit);

  cxi_ct ct = given.ct;
  cxi_ct_inc_success(&ct, 1);
  cxi_ct_inc_failure(&ct, 1);
  cxi_ct_reset_success(&ct);
  cxi_ct_reset_failure(&ct);
  return bad == 0 ? 1 : 0;
}

__global__ void call_every_in_a_kernel(Given given, unsigned* out) {
  *out = call_every(given);
}

unsigned on_the_host(const Given& given) {
  return call_every(given);
}

// What makes them: on the host, from the same header and in the same source.
unsigned made_on_the_host(cxi_dev* dev, const cxi_cq_alloc_opts& opts, c_ct_writeback* word) {
  cxi_lni* const lni = cxi_lni_alloc(dev, 1);
  if (lni == nullptr) return 0;
  cxi_ct* const ct = cxi_ct_alloc(lni, word);
  cxi_cq* const cq = cxi_cq_alloc(lni, nullptr, &opts);
  if (cq != nullptr) cxi_cq_free(cq);
  if (ct != nullptr) cxi_ct_free(ct);
  return cxi_lni_free(lni) == 0 ? 1 : 0;
}
