/* SPDX-License-Identifier: Apache-2.0 */
/* What cxi_emit_peer.c has, if it was built; null otherwise. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
__attribute__((weak)) void cxi_emit_peer_open(void* ring, unsigned blocks, void* page);
__attribute__((weak)) int count_libcxi(uint64_t offset, uint32_t bytes, uint64_t tag);
#ifdef __cplusplus
}
#endif
