/* SPDX-License-Identifier: Apache-2.0
 * Plug-in interfaces: memory providers and NICs. Built-in ones use the same structs.
 *
 * Every struct that crosses this boundary begins with the ABI version and its own size, so that either side can be
 * newer. No function here may throw, abort, or print. Functions return 0 or a strait_code (c.h) and fill `error` when
 * it is not null. Unless said otherwise a function may be called from any thread.
 */
#ifndef STRAIT_PLUGIN_H
#define STRAIT_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STRAIT_PLUGIN_ABI 1u

typedef struct strait_plugin_error {
  int32_t code;      /* strait_code */
  int32_t sys_errno; /* 0: no system call failed */
  char text[384];    /* the cause, one sentence, zero-terminated */
} strait_plugin_error;

/* ---- Memory providers: whose memory is this, and how can a NIC reach it? ------------------------------------------
 */

typedef struct strait_provider strait_provider; /* the plug-in's own object */

enum {
  STRAIT_CAN_ALLOCATE = 1u << 0,
  STRAIT_CAN_COPY = 1u << 1,
  STRAIT_CAN_EXPORT_DMABUF = 1u << 2, /* a file descriptor that a NIC can import or another process can map */
  STRAIT_CAN_IDENTIFY = 1u << 3,      /* claim.identity changes when an address is reused */
  STRAIT_CPU_ACCESSIBLE = 1u << 4     /* plain loads and stores on the pointer work */
};

typedef struct strait_device_info {
  char name[32]; /* "soft:0", "cuda:1": what `near` takes */
  char description[96];
  uint64_t memory_bytes;
  uint32_t capabilities; /* STRAIT_CAN_* */
  uint32_t software;     /* 1: not hardware, and shown so */
} strait_device_info;

/* The answer to "whose is this pointer". `base` and `length_bytes` are the whole allocation. */
typedef struct strait_claim {
  uint64_t base;
  uint64_t length_bytes;
  uint64_t identity; /* never reused for another allocation by the same provider; 0: unknown */
  uint32_t device;   /* index into the provider's devices */
  uint32_t capabilities;
} strait_claim;

typedef struct strait_provider_ops {
  uint32_t abi_version; /* STRAIT_PLUGIN_ABI */
  uint32_t struct_size;
  const char* kind; /* "host", "soft", "cuda", ... */

  /* Opens every device eagerly; fails here with the cause. `config` is "name=value,..." and may be empty. */
  int32_t (*open)(const char* config, strait_provider** out, strait_plugin_error* error);
  void (*close)(strait_provider*);
  uint32_t (*device_count)(strait_provider*);
  int32_t (*device_info)(strait_provider*, uint32_t device, strait_device_info* out);

  /* 1: mine, *out is filled. 0: not mine. Never touches the memory, never fails, costs well under a microsecond. */
  int32_t (*classify)(strait_provider*, uint64_t address, strait_claim* out);

  int32_t (*allocate)(strait_provider*, uint32_t device, uint64_t length_bytes, uint64_t* address,
                      strait_plugin_error*);
  int32_t (*free)(strait_provider*, uint64_t address, strait_plugin_error*);

  /* Copies between any two addresses of which at least one is this provider's; the other may be host memory. Returns
   * when the copy has been queued; `*ticket` is handed to copy_done. */
  int32_t (*copy)(strait_provider*, uint64_t to, uint64_t from, uint64_t length_bytes, uint64_t* ticket,
                  strait_plugin_error*);
  /* 1: finished. 0: not yet. Negative: it failed. */
  int32_t (*copy_done)(strait_provider*, uint64_t ticket);

  /* A descriptor for [address, address + length_bytes), offset of `address` in it. The caller gives it back with
   * close_fd, and with nothing else. */
  int32_t (*export_fd)(strait_provider*, uint64_t address, uint64_t length_bytes, int32_t* fd, uint64_t* offset,
                       strait_plugin_error*);
  void (*close_fd)(strait_provider*, int32_t fd);

  /* "exports=3,opens=1,...": every call counted, for tests and `strait info`. Writes at most `capacity` bytes. */
  void (*counters)(strait_provider*, char* text, size_t capacity);

  /* Optional, and absent in plug-ins whose struct ends here. When export_fd makes a dma-buf of ordinary pages: the
   * sealed memfd that holds the same pages, for a NIC whose driver takes no dma-buf. Given back with close_fd. */
  int32_t (*export_pages)(strait_provider*, uint64_t address, uint64_t length_bytes, int32_t* fd, uint64_t* offset,
                          strait_plugin_error*);
} strait_provider_ops;
#define STRAIT_PROVIDER_OPS_LEAST offsetof(strait_provider_ops, export_pages)

/* The one symbol a provider plug-in exports. */
typedef const strait_provider_ops* (*strait_provider_entry)(void);
#define STRAIT_PROVIDER_ENTRY "strait_provider_plugin"

/* ---- MemoryPort: how a software NIC reaches memory that cannot be mapped -------------------------------------------
 */

typedef struct strait_memory_port {
  uint32_t abi_version;
  uint32_t struct_size;
  void* context;
  int32_t (*read)(void* context, uint64_t address, void* into, uint64_t length_bytes);
  int32_t (*write)(void* context, uint64_t address, const void* from, uint64_t length_bytes);
  /* new = (old & ~swap_mask) | (swap & swap_mask) if (old & compare_mask) == (compare & compare_mask); width 4 or 8. */
  int32_t (*compare_swap)(void* context, uint64_t address, uint32_t width, uint64_t compare, uint64_t compare_mask,
                          uint64_t swap, uint64_t swap_mask, uint64_t* old);
  /* Carries stop at every set bit of `boundary`. */
  int32_t (*fetch_add)(void* context, uint64_t address, uint32_t width, uint64_t add, uint64_t boundary, uint64_t* old);
  void (*order)(void* context); /* earlier writes become visible before later ones */
} strait_memory_port;

/* ---- NICs with mlx5 rings -------------------------------------------------------------------------------------------
 */

typedef struct strait_nic strait_nic; /* the plug-in's own object */

enum { /* access of a memory region or a queue pair */
       STRAIT_NIC_LOCAL_WRITE = 1u << 0,
       STRAIT_NIC_REMOTE_WRITE = 1u << 1,
       STRAIT_NIC_REMOTE_READ = 1u << 2,
       STRAIT_NIC_REMOTE_ATOMIC = 1u << 3,
       /* Of a registration with a descriptor: `address` is also where this process has it mapped, readable and
          writable. */
       STRAIT_NIC_CPU_ADDRESS = 1u << 16,
       /* Of a registration with a descriptor: pages_fd and pages_offset are valid too. */
       STRAIT_NIC_PAGES_FD = 1u << 17,
       /* Of a registration of host memory: it lies at fd_offset in this process; `address` is only its name. */
       STRAIT_NIC_HOST_ADDRESS = 1u << 18
};

enum { STRAIT_NIC_CQ_COLLAPSED = 1u << 0, STRAIT_NIC_CQ_IGNORE_OVERRUN = 1u << 1 };

typedef struct strait_nic_info {
  char name[32];
  char description[96];
  char address_text[64]; /* for people */
  uint32_t software;
  uint32_t max_inline_bytes;
  uint32_t imports_fds; /* registers memory by file descriptor */
  uint32_t has_packets; /* reaches other hosts */
  uint32_t wants_pages; /* its driver takes no dma-buf: hand it the memfd behind one as well */
} strait_nic_info;

/* Where a NIC can be found by another one: exchanged by the two ends before they connect. Opaque bytes. */
typedef struct strait_nic_address {
  uint8_t bytes[64];
} strait_nic_address;

typedef struct strait_nic_mr_request {
  uint32_t struct_size;
  uint32_t pd;
  uint32_t access;
  int32_t fd; /* -1: host memory at `address` */
  uint64_t fd_offset;
  uint64_t address; /* what work requests will call the first byte */
  uint64_t length_bytes;
  const strait_memory_port* port; /* not null: reach it through the port */
  int32_t pages_fd;               /* with STRAIT_NIC_PAGES_FD: a sealed memfd that holds the same pages as `fd` */
  uint32_t reserved;
  uint64_t pages_offset; /* of the first byte in it */
} strait_nic_mr_request;

typedef struct strait_nic_mr {
  uint32_t lkey;
  uint32_t rkey;
} strait_nic_mr;

typedef struct strait_nic_cq_request {
  uint32_t struct_size;
  uint32_t entries;   /* power of two */
  uint32_t cqe_bytes; /* 64 or 128 */
  uint32_t flags;
  void* ring;   /* 64-byte aligned */
  void* record; /* 8 bytes, 8-byte aligned */
} strait_nic_cq_request;

typedef struct strait_nic_qp_request {
  uint32_t struct_size;
  uint32_t pd;
  uint32_t sq_blocks;      /* power of two, 64-byte blocks, at most 32768 */
  uint32_t rq_entries;     /* power of two or 0 */
  uint32_t rq_stride_log2; /* bytes of one receive entry, log2, at least 4 */
  uint32_t send_cqn;
  uint32_t recv_cqn;
  uint32_t user_index; /* 24 bits, echoed in completions */
  uint32_t access;     /* what the remote side may do through this queue pair */
  uint32_t all_signaled;
  void* sq;     /* 64-byte aligned */
  void* rq;     /* 16-byte aligned or null */
  void* record; /* doorbell record: 8 bytes, 8-byte aligned */
} strait_nic_qp_request;

typedef struct strait_nic_qp {
  uint32_t qpn;
  uint32_t reserved;
  void* doorbell; /* where to store the 8 doorbell bytes */
} strait_nic_qp;

typedef struct strait_nic_connect_request {
  uint32_t struct_size;
  uint32_t remote_qpn;
  strait_nic_address remote;
  int64_t deadline_ns;    /* from now, for this call */
  int64_t ack_timeout_ns; /* a request without an answer for so long, times (retries + 1), ends with syndrome 0x15 */
  uint32_t retries;
  uint32_t rnr_retries; /* 7: for ever */
  int64_t rnr_wait_ns;  /* what this side tells a sender to wait when no receive is posted */
} strait_nic_connect_request;

typedef struct strait_nic_ops {
  uint32_t abi_version;
  uint32_t struct_size;
  const char* kind; /* "soft" */

  int32_t (*open)(const char* config, strait_nic** out, strait_plugin_error* error);
  void (*close)(strait_nic*);
  int32_t (*info)(strait_nic*, strait_nic_info* out);
  int32_t (*address)(strait_nic*, strait_nic_address* out);

  int32_t (*alloc_pd)(strait_nic*, uint32_t* pd, strait_plugin_error*);
  int32_t (*free_pd)(strait_nic*, uint32_t pd, strait_plugin_error*);
  int32_t (*register_memory)(strait_nic*, const strait_nic_mr_request*, strait_nic_mr* out, strait_plugin_error*);
  /* After it returns no operation reads or writes the memory any more. */
  int32_t (*deregister_memory)(strait_nic*, uint32_t lkey, strait_plugin_error*);
  int32_t (*create_cq)(strait_nic*, const strait_nic_cq_request*, uint32_t* cqn, strait_plugin_error*);
  int32_t (*destroy_cq)(strait_nic*, uint32_t cqn, strait_plugin_error*);
  int32_t (*create_qp)(strait_nic*, const strait_nic_qp_request*, strait_nic_qp* out, strait_plugin_error*);
  int32_t (*connect_qp)(strait_nic*, uint32_t qpn, const strait_nic_connect_request*, strait_plugin_error*);
  /* Outstanding work is flushed with syndrome 0x05. */
  int32_t (*fail_qp)(strait_nic*, uint32_t qpn, strait_plugin_error*);
  int32_t (*destroy_qp)(strait_nic*, uint32_t qpn, strait_plugin_error*);
  /* What the queue pair runs over, for people: "ring grant to process 4711 (one copy)". */
  int32_t (*describe_qp)(strait_nic*, uint32_t qpn, char* text, size_t capacity);

  /* One bounded pass of the engine on the caller's thread: looks at queue pair `qpn_hint` first (0: at all of them),
   * then at what has arrived. Returns how much it did; 0: nothing. Never blocks; if another thread is in it, that
   * thread does this caller's share. On hardware: does nothing. */
  int32_t (*drive)(strait_nic*, uint32_t qpn_hint);
  /* Before sleeping on event_fd: 1: armed, the descriptor becomes readable when there is work. 0: there is work now. */
  int32_t (*arm)(strait_nic*);
  int32_t (*event_fd)(strait_nic*);
  /* "wqes=12,cqes=12,..." */
  void (*counters)(strait_nic*, char* text, size_t capacity);

  /* Optional, and absent in plug-ins whose struct ends here. How this memory was registered, for people: "dma-buf
   * refused (EOPNOTSUPP), the mapping of its memfd was registered". */
  int32_t (*describe_mr)(strait_nic*, uint32_t lkey, char* text, size_t capacity);
} strait_nic_ops;
#define STRAIT_NIC_OPS_LEAST offsetof(strait_nic_ops, describe_mr)

typedef const strait_nic_ops* (*strait_nic_entry)(void);
#define STRAIT_NIC_ENTRY "strait_nic_plugin"

#ifdef __cplusplus
}
#endif
#endif
