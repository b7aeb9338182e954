// SPDX-License-Identifier: Apache-2.0
// The interface of a CXI device under the names that the driver, libcxi and the papers on kernel-initiated networking
// give it: cxi_ct_alloc, cxi_cq_emit_dma, CXI_VA_TO_IOVA, ... C++20; g++, clang, nvcc, hipcc.
//
//   cxi/types.hpp   structures, flags, limits
//   cxi/queues.hpp  what touches mapped pages: host and device code
//   cxi/host.hpp    what the kernel exports to its modules, for programs; host only
//
// What differs, because this is not the kernel:
// - cxi_ct_user_info() and cxi_cq_user_info() give mapped pointers and sizes in bytes, not physical addresses and
// pages.
// - Calls that return ERR_PTR in the kernel return null and set errno.
// - A command is one write(2); there is no ioctl. cxi_ct_wb_update() gets no answer but success.
// - Doorbell stores of a software device are atomic additions, so that no two equal ones become one.
// - A counter is written back for a GET, a TRIG_EVENT, a reset and its first failure, not whenever it changes:
//   strait/device/cxi/lane.hpp waits for it in the way that works.
//
// Beside the vendor's headers: everything is in namespace strait::cxi. Alone, its names are usable without it. Where
// the vendor's headers (cxi_prov_hw.h, cassini_user_defs.h, cxi-abi.h, libcxi.h, linux/hpe/cxi/cxi.h) came first, or
// STRAIT_CXI_NO_GLOBAL_NAMES is defined, they are not: write strait::cxi::cxi_cq_ring(). Macros are theirs then, with
// the same values. Vendor's headers after this one do not compile with it unless that macro was defined: include them
// first.
#pragma once

#if !defined(__cplusplus)
#error "strait/cxi.h is C++: from C use strait/c.h, whose strait_cxi_* calls are the same device"
#endif

#include "strait/cxi/host.hpp"
#include "strait/cxi/queues.hpp"
#include "strait/cxi/types.hpp"

#if !defined(STRAIT_CXI_NO_GLOBAL_NAMES) && !defined(__CXI_PROV_HW) && !defined(__CASSINI_USER_DEFS_H) && \
    !defined(__UAPI_CXI_ABI_H) && !defined(__LIBCXI_H__) && !defined(_LINUX_CXI_H)
#define STRAIT_CXI_GLOBAL_NAMES 1
using namespace strait::cxi;  // NOLINT: the names are the interface
#endif
