/* SPDX-License-Identifier: Apache-2.0
 * What the vendors' drivers tell the software machine's kernel: which device memory exists. The stand-ins for vendor
 * libraries and the software accelerator call these; the kernel's dma-buf core, its peer-memory clients and its p2p
 * pages answer from them. One table per process, in libstrait-soft.so; any thread. A forked child has an empty one. */
#ifndef STRAIT_SOFT_KERNEL_DRIVER_H
#define STRAIT_SOFT_KERNEL_DRIVER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum strait_soft_vendor {
  STRAIT_SOFT_VENDOR_CUDA = 1,
  STRAIT_SOFT_VENDOR_ROCM = 2,
  STRAIT_SOFT_VENDOR_GAUDI = 3,
  STRAIT_SOFT_VENDOR_SOFT = 4
};

/* flags */
#define STRAIT_SOFT_P2P_CAPABLE 1u    /* p2p pages and peer-memory clients may have it (CUDA: pointer attribute 15) */
#define STRAIT_SOFT_NOT_EXPORTABLE 2u /* the vendor's driver would make no dma-buf of it (managed memory) */

struct strait_soft_driver_memory {
  uint32_t struct_size; /* sizeof(struct strait_soft_driver_memory) */
  uint32_t vendor;
  uint32_t device;
  uint32_t flags;
  uint64_t base; /* the device pointer */
  uint64_t length_bytes;
  uint64_t identity; /* never used again in this process */
  int32_t memfd;     /* sealed, holds the bytes; add() duplicates it, find() lends the duplicate until remove() */
  uint32_t reserved; /* 0 */
  uint64_t memfd_offset;
};
#ifndef __cplusplus
typedef struct strait_soft_driver_memory strait_soft_driver_memory;
#endif

/* Memory was made. 0, or -EINVAL (null, too short, empty, wraps around, unknown vendor, descriptor too short), -EEXIST
 * (overlaps memory that is announced), -EMFILE and what else a duplicate can fail with. */
int32_t strait_soft_driver_add(const strait_soft_driver_memory* memory);

/* Memory is about to be freed: call it before the bytes go, and with no lock held that an allocation or a copy takes.
 * When it returns the free callbacks and invalidate upcalls have run, and no NIC of this process uses the range by its
 * address. Descriptors that were exported keep the bytes. 0, or -ENOENT when this base and identity are not there. */
int32_t strait_soft_driver_remove(uint64_t base, uint64_t identity);

/* 1 and *out when `address` is in announced memory, else 0. Set out->struct_size first. */
int32_t strait_soft_driver_find(uint64_t address, strait_soft_driver_memory* out);

#ifdef __cplusplus
}
#endif
#endif
