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

/* Of NICs and memory ports. Memory providers have their own, below. */
#define STRAIT_PLUGIN_ABI 1u

typedef struct strait_plugin_error {
  int32_t code;      /* strait_code */
  int32_t sys_errno; /* 0: no system call failed */
  char text[384];    /* the cause, one sentence, zero-terminated */
} strait_plugin_error;

/* ---- Memory providers: whose memory is this, and how can a NIC reach it? ------------------------------------------
 *
 * A provider belongs to the process that opened it: in a forked child every call answers STRAIT_GONE (classify: not
 * mine), and close frees nothing on the device.
 */

/* Of the structs of this part. Version 1 was never released and is refused. */
#define STRAIT_PROVIDER_ABI 2u

typedef struct strait_provider strait_provider; /* the plug-in's own object */

enum {
  STRAIT_CAN_ALLOCATE = 1u << 0,
  STRAIT_CAN_COPY = 1u << 1,
  STRAIT_CAN_EXPORT_DMABUF = 1u << 2, /* a file descriptor that a NIC can import or another process can map */
  STRAIT_CAN_IDENTIFY = 1u << 3,      /* claim.identity changes when an address is reused */
  STRAIT_CPU_ACCESSIBLE = 1u << 4,    /* plain loads and stores on the pointer work */
  STRAIT_CAN_IPC = 1u << 5,           /* another process can open it: ipc_export */
  STRAIT_CAN_MAP_CPU = 1u << 6,       /* map_cpu gives the CPU an address of it */
  STRAIT_CAN_ADVISE = 1u << 7,        /* some advice does something */
  STRAIT_CAN_PEER_MEMORY = 1u << 8, /* a kernel peer-memory client of the vendor can serve plain registrations of it */
  STRAIT_CAN_WATCH = 1u << 9        /* watch tells when it is freed */
};

enum { /* strait_claim.sort */
       STRAIT_SORT_UNKNOWN = 0,
       STRAIT_SORT_HOST = 1,        /* ordinary memory of the process */
       STRAIT_SORT_PINNED_HOST = 2, /* host memory that a vendor's runtime allocated or registered */
       STRAIT_SORT_DEVICE = 3,
       STRAIT_SORT_MANAGED = 4, /* migrates between host and device: no NIC can hold on to it */
       STRAIT_SORT_POOL = 5,    /* a stream-ordered pool's */
       STRAIT_SORT_VMM = 6      /* handles mapped into a reservation: see `range` */
};

enum {                             /* strait_claim.ipc_ways, strait_ipc_handle.way */
       STRAIT_IPC_BYTES = 1u << 0, /* the bytes are enough */
       STRAIT_IPC_FD = 1u << 1,    /* bytes and a descriptor, which travels by SCM_RIGHTS */
       STRAIT_IPC_FABRIC = 1u << 2 /* the bytes are enough, on other hosts of the same scale-up fabric too */
};

/* The library zeroes the next three before a call; a plug-in fills in what it knows. */
typedef struct strait_device_info {
  char name[32]; /* "soft:0", "cuda:1": what `near` takes */
  char description[96];
  uint64_t memory_bytes;
  uint32_t capabilities; /* STRAIT_CAN_* */
  uint32_t software;     /* 1: not hardware, and shown so */
  char pci_address[16];  /* as sysfs spells it: "0000:3b:00.0"; empty: unknown or none */
  char driver[64];       /* "CUDA 13.0, driver 580.159.04" */
  uint64_t bar_bytes;    /* the window that peers can address; 0: unknown */
  uint64_t free_bytes;   /* as the driver says now; 0: it does not say */
  int32_t numa_node;     /* -1: unknown. Meaningful when numa_known is 1 */
  uint32_t numa_known;
  uint64_t reserved[4];
  char link[32]; /* what joins devices of this provider, for their copies: "Gaudi link"; empty: the PCIe bus */
} strait_device_info;

/* The answer to "whose is this pointer". `base` and `length_bytes` are the whole allocation; of memory whose sort is
 * STRAIT_SORT_VMM they are the one mapping the address lies in, and `range` knows more. */
typedef struct strait_claim {
  uint64_t base;
  uint64_t length_bytes;
  uint64_t identity; /* never reused for another allocation by the same provider; 0: unknown */
  uint32_t device;   /* index into the provider's devices */
  uint32_t capabilities;
  uint32_t sort;           /* STRAIT_SORT_* */
  uint32_t ipc_ways;       /* STRAIT_IPC_*; 0: another process cannot open it */
  uint64_t block_identity; /* of the physical memory, where that can change under an address; 0: unknown */
  uint64_t cpu_address;    /* where the CPU may load and store `base`; 0: nowhere, or only through map_cpu */
  uint64_t reserved[2];
} strait_claim;

typedef struct strait_range {
  uint64_t base;
  uint64_t length_bytes;
  uint64_t identity; /* what `identity` says about exactly this range */
} strait_range;

#define STRAIT_EXPORT_PCIE_MAPPING 1u /* export_fd: addresses of the PCIe path; only for a NIC with data-direct */

#define STRAIT_HOST_IO_MEMORY 1u /* reach_host: registers of a device, not memory */

#define STRAIT_IPC_BYTES_MOST 256u
typedef struct strait_ipc_handle {
  uint32_t way;        /* one of STRAIT_IPC_* */
  uint32_t bytes_used; /* of `bytes`, which mean something to the same provider in another process only */
  int32_t fd;          /* STRAIT_IPC_FD: given back with close_fd by who called ipc_export; otherwise -1 */
  uint32_t reserved;
  uint64_t length_bytes; /* of the range */
  uint8_t bytes[STRAIT_IPC_BYTES_MOST];
} strait_ipc_handle;

enum { /* advise: what is said about a range. `device` matters for those with a place; STRAIT_HOST_PLACE: the CPU */
       STRAIT_ADVICE_READ_MOSTLY = 1,
       STRAIT_ADVICE_NOT_READ_MOSTLY = 2,
       STRAIT_ADVICE_PREFER_PLACE = 3,
       STRAIT_ADVICE_NO_PREFERRED_PLACE = 4,
       STRAIT_ADVICE_ACCESSED_BY = 5,
       STRAIT_ADVICE_NOT_ACCESSED_BY = 6,
       STRAIT_ADVICE_WILL_NEED = 7, /* bring it to the place now */
       /* A whole allocation: from now on it has pages of its own, with the same bytes at the same address, and its
        * identity is another. Who maps what was exported before keeps the old pages. */
       STRAIT_ADVICE_OWN_PAGES = 8,
       STRAIT_ADVICE_LAST = 8
};
#define STRAIT_HOST_PLACE 0xffffffffu

enum { /* advise: three answers that are not the same */
       STRAIT_ADVICE_DONE = 1,
       STRAIT_ADVICE_IGNORED = 2,    /* known, and changes nothing for this memory */
       STRAIT_ADVICE_UNSUPPORTED = 3 /* this provider or this memory knows no such advice */
};

enum { /* strait_flush_need.need: after a NIC wrote into device memory, what makes a *running* kernel see it in order */
       STRAIT_FLUSH_UNKNOWN = 0,
       STRAIT_FLUSH_NOT_NEEDED = 1,
       STRAIT_FLUSH_BY_CALL = 2, /* `flush` does it */
       STRAIT_FLUSH_BY_READ = 3  /* a small read of the same memory by the same NIC */
};
typedef struct strait_flush_need {
  uint32_t need; /* STRAIT_FLUSH_* */
  uint32_t done; /* 1: this call flushed */
  char text[160];
} strait_flush_need;

enum { STRAIT_REQUIREMENT_MISSING = 0, STRAIT_REQUIREMENT_MET = 1, STRAIT_REQUIREMENT_UNKNOWN = 2 };
typedef struct strait_requirement {
  char what[96];   /* "cuMemGetHandleForAddressRange (driver 11.7 or later)" */
  uint32_t state;  /* STRAIT_REQUIREMENT_* */
  uint32_t serves; /* the STRAIT_CAN_* that depend on it, of a NIC the STRAIT_NIC_SERVES_*; 0: everything */
  char text[256];  /* what was found, one sentence */
} strait_requirement;

struct strait_memory_port;

/* Runs on the thread that frees, before the memory is gone: short, and without calls of the provider. */
typedef void (*strait_freed_callback)(void* context, uint64_t base);

typedef struct strait_provider_ops {
  uint32_t abi_version; /* STRAIT_PROVIDER_ABI */
  uint32_t struct_size;
  const char* kind; /* "host", "soft", "cuda", ... */

  /* The first five functions are required, all others may be null.
   *
   * Opens every device eagerly; fails here with the cause. `config` is "name=value,..." and may be empty. */
  int32_t (*open)(const char* config, strait_provider** out, strait_plugin_error* error);
  void (*close)(strait_provider*);
  uint32_t (*device_count)(strait_provider*);
  int32_t (*device_info)(strait_provider*, uint32_t device, strait_device_info* out);

  /* 1: mine, *out is filled. 0: not mine. Never touches the memory, never fails, costs well under a microsecond. */
  int32_t (*classify)(strait_provider*, uint64_t address, strait_claim* out);

  /* STRAIT_HOST_PLACE for a device, where the vendor has such: pinned host memory, which its copies move fastest. */
  int32_t (*allocate)(strait_provider*, uint32_t device, uint64_t length_bytes, uint64_t* address,
                      strait_plugin_error*);
  int32_t (*free)(strait_provider*, uint64_t address, strait_plugin_error*);

  /* Copies between any two addresses of which at least one is this provider's; the other may be host memory. Returns
   * when the copy has been queued; `*ticket` is handed to copy_done. */
  int32_t (*copy)(strait_provider*, uint64_t to, uint64_t from, uint64_t length_bytes, uint64_t* ticket,
                  strait_plugin_error*);
  /* 1: finished. 0: not yet. Negative: it failed. A ticket that was answered with anything but 0 is used up; asking
   * again may be answered with 1 or with a failure. */
  int32_t (*copy_done)(strait_provider*, uint64_t ticket);

  /* A descriptor for [address, address + length_bytes), offset of `address` in it. The caller gives it back with
   * close_fd, and with nothing else. `flags`: STRAIT_EXPORT_*; one that is not known is STRAIT_UNSUPPORTED. */
  int32_t (*export_fd)(strait_provider*, uint64_t address, uint64_t length_bytes, uint32_t flags, int32_t* fd,
                       uint64_t* offset, strait_plugin_error*);
  void (*close_fd)(strait_provider*, int32_t fd);

  /* "exports=3,opens=1,...": every call counted, for tests and `strait info`. Writes at most `capacity` bytes. */
  void (*counters)(strait_provider*, char* text, size_t capacity);

  /* When export_fd makes a dma-buf of ordinary pages: the sealed memfd that holds the same pages, for a NIC whose
   * driver takes no dma-buf. Given back with close_fd. */
  int32_t (*export_pages)(strait_provider*, uint64_t address, uint64_t length_bytes, int32_t* fd, uint64_t* offset,
                          strait_plugin_error*);

  /* The largest range around `address` that one export_fd covers: the neighbouring mappings of a reservation, a pool.
   * 1: filled. 0: not mine. */
  int32_t (*range)(strait_provider*, uint64_t address, strait_range* out);

  /* Who lives in [address, address + length_bytes) now: the cheap check of somebody who remembers an answer. Equal to
   * strait_claim.identity of memory that is one allocation; one number for all mappings in the range otherwise.
   * 0: unknown, or not all of it is mine any more. */
  uint64_t (*identity)(strait_provider*, uint64_t address, uint64_t length_bytes);

  /* Calls back once when the allocation that holds `address` is freed; `*watch` is for unwatch, after which no call
   * comes nor is still under way. A watch that has called back need not be given back, but may be. */
  int32_t (*watch)(strait_provider*, uint64_t address, strait_freed_callback call, void* context, uint64_t* watch,
                   strait_plugin_error*);
  void (*unwatch)(strait_provider*, uint64_t watch);

  /* Another process on this host opens the range with the same provider. ipc_open gives the address at which the
   * first byte of the exported range lies there; opened handles are counted, and ipc_close takes that address. The
   * handle's fd stays the caller's. Handles come from strangers: all of it is checked. */
  int32_t (*ipc_export)(strait_provider*, uint64_t address, uint64_t length_bytes, strait_ipc_handle* out,
                        strait_plugin_error*);
  int32_t (*ipc_open)(strait_provider*, uint32_t device, const strait_ipc_handle* handle, uint64_t* address,
                      strait_plugin_error*);
  int32_t (*ipc_close)(strait_provider*, uint64_t address, strait_plugin_error*);

  /* An address at which the CPU loads and stores [address, address + length_bytes): for small copies and flags. */
  int32_t (*map_cpu)(strait_provider*, uint64_t address, uint64_t length_bytes, void** cpu_address,
                     strait_plugin_error*);
  void (*unmap_cpu)(strait_provider*, void* cpu_address);

  /* Fails only for a range or advice that does not exist; *answer is one of three. */
  int32_t (*advise)(strait_provider*, uint64_t address, uint64_t length_bytes, uint32_t advice, uint32_t place,
                    uint32_t* answer, strait_plugin_error*);

  /* Says what is needed after a NIC wrote into memory of `device`; with `perform` and STRAIT_FLUSH_BY_CALL does it. */
  int32_t (*flush)(strait_provider*, uint32_t device, uint32_t perform, strait_flush_need* out, strait_plugin_error*);

  /* What it needs from the machine. 1: filled. 0: there is no requirement `index`. With a null provider: before or
   * after a failed open, what of it is there. */
  int32_t (*requirements)(strait_provider*, uint32_t index, strait_requirement* out);

  /* How a software NIC of this process reaches the memory of every device of this provider, which outlives its use. */
  int32_t (*memory_port)(strait_provider*, struct strait_memory_port* out, strait_plugin_error*);

  /* Lets all devices load and store whole pages of host memory until release_host, which takes the same first byte;
   * `*device_address` is where `device` finds it. `flags`: STRAIT_HOST_*; one that is not known is
   * STRAIT_UNSUPPORTED. A page is registered once at a time: who shares pages counts. */
  int32_t (*reach_host)(strait_provider*, uint32_t device, void* host, uint64_t length_bytes, uint32_t flags,
                        uint64_t* device_address, strait_plugin_error*);
  int32_t (*release_host)(strait_provider*, void* host, strait_plugin_error*);
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

  /* From here on optional: null, or not covered by struct_size, where the port has no such thing.
   *
   * Whole pages of host memory that many copies of this port will come from or go to, until release, which takes the
   * same first byte: they are pinned. 0: done. Anything else: they are not, and copies go as they would without. */
  int32_t (*prepare)(void* context, void* host, uint64_t length_bytes);
  void (*release)(void* context, void* host);
  /* Copies that go on by themselves; both ranges belong to the copy until it has ended. 0: it was begun, and `*ticket`
   * is for done. */
  int32_t (*start_read)(void* context, uint64_t address, void* into, uint64_t length_bytes, uint64_t* ticket);
  int32_t (*start_write)(void* context, uint64_t address, const void* from, uint64_t length_bytes, uint64_t* ticket);
  /* 1: it has ended, and its bytes are visible. 0: not yet. Negative: it has failed, and touches nothing any more. A
   * ticket that was answered with anything but 0 is used up. */
  int32_t (*done)(void* context, uint64_t ticket);
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
       STRAIT_NIC_HOST_ADDRESS = 1u << 18,
       /* Of a registration without a descriptor: `address` is device memory, which a peer-memory client or p2p pages
          are to answer for. */
       STRAIT_NIC_DEVICE_ADDRESS = 1u << 19
};

enum { STRAIT_NIC_CQ_COLLAPSED = 1u << 0, STRAIT_NIC_CQ_IGNORE_OVERRUN = 1u << 1 };

enum {
  STRAIT_NIC_WAY_PEER_MEMORY = 1u << 0,
  STRAIT_NIC_WAY_P2P_PAGES = 1u << 1,
  STRAIT_NIC_WAY_UNKNOWN = 1u << 2,   /* only a registration tells */
  STRAIT_NIC_WAY_PERSISTENT = 1u << 3 /* NVIDIA's pages survive the free of their memory, and nobody is told of it */
};

enum {                                  /* registered_by: which way a registration was made in the end */
       STRAIT_NIC_BY_REQUEST = 0,       /* as it was asked for */
       STRAIT_NIC_BY_MAPPING = 1,       /* of a descriptor: by a mapping of its pages, not as a dma-buf */
       STRAIT_NIC_BY_DMABUF = 2,        /* as a dma-buf */
       STRAIT_NIC_BY_PEER_MEMORY = 3,   /* a peer-memory client answered for the address */
       STRAIT_NIC_BY_P2P_PAGES = 4,     /* nvidia_p2p pages did */
       STRAIT_NIC_BY_DEVICE_ADDRESS = 5 /* one of these two did, and the kernel does not say which */
};

enum { /* strait_requirement.serves of a NIC; 0: everything */
       STRAIT_NIC_SERVES_DMABUF = 1u << 0,
       STRAIT_NIC_SERVES_PEER_MEMORY = 1u << 1,
       STRAIT_NIC_SERVES_P2P_PAGES = 1u << 2
};

typedef struct strait_nic_info {
  char name[32];
  char description[96];
  char address_text[64]; /* for people */
  uint32_t software;     /* 1: not hardware; its doorbells are ordinary memory, and it looks for receives by itself */
  uint32_t max_inline_bytes;
  uint32_t imports_fds;       /* registers memory by file descriptor */
  uint32_t has_packets;       /* reaches other hosts */
  uint32_t wants_pages;       /* its driver takes no dma-buf: hand it the memfd behind one as well */
  uint32_t plain_ways;        /* STRAIT_NIC_WAY_*: what may answer for device memory given by its address */
  uint32_t cpu_atomics;       /* its atomics and a CPU's on the same word are atomic to each other */
  uint32_t doorbell_register; /* 1: a queue pair's doorbell is a register of the device, which acts on it by itself.
                                 0: it is memory, and drive() looks there */
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
  const strait_memory_port* port; /* for a NIC of this process, where `fd` is -1 or cannot be mapped; may be null */
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
  void* doorbell; /* where to store the 8 doorbell bytes; on a page with nothing of the program's */
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

  /* Optional. STRAIT_NIC_BY_*; negative: there is no such registration. */
  int32_t (*registered_by)(strait_nic*, uint32_t lkey);

  /* Optional. What it needs from the machine, as a provider says it. 1: filled. 0: there is no requirement `index`. */
  int32_t (*requirements)(strait_nic*, uint32_t index, strait_requirement* out);
} strait_nic_ops;
#define STRAIT_NIC_OPS_LEAST offsetof(strait_nic_ops, describe_mr)

typedef const strait_nic_ops* (*strait_nic_entry)(void);
#define STRAIT_NIC_ENTRY "strait_nic_plugin"

/* ---- CXI devices: what the node /dev/cxiN answers, without the node ------------------------------------------------
 *
 * The calls are those of the kernel's driver: commands by write(2), pages by mmap(2). The library opens the node itself
 * where there is one; a plug-in serves devices that have none.
 */

typedef struct strait_cxi strait_cxi; /* one open of a device */

enum { /* strait_cxi_info.flags */
       STRAIT_CXI_SOFTWARE = 1u << 0,
       /* Doorbell pages of counters are memory: a store to the add words has to be an atomic addition, and a reset word
        * is stored any value but all ones. */
       STRAIT_CXI_MEMORY_DOORBELLS = 1u << 1
};

typedef struct strait_cxi_info {
  char name[32];  /* "cxi0" */
  uint32_t flags; /* STRAIT_CXI_* */
  uint32_t index; /* N of /dev/cxiN */
  uint64_t reserved[4];
} strait_cxi_info;

typedef struct strait_cxi_ops {
  uint32_t abi_version;
  uint32_t struct_size;
  const char* kind; /* "soft" */

  /* `config`: "device=0,host=shared": devices that all processes of this user share, or host=local: this process's own,
   * driven by a thread of it. */
  int32_t (*open)(const char* config, strait_cxi** out, strait_plugin_error* error);
  void (*close)(strait_cxi*);
  int32_t (*info)(strait_cxi*, strait_cxi_info* out);

  /* As write(2) on the node: the length, or -errno. Pointers in the command are this process's. */
  int64_t (*write)(strait_cxi*, const void* command, uint64_t length_bytes);
  /* As mmap(2) with MAP_SHARED, for reading and writing, and munmap(2): 0 or -errno. */
  int32_t (*map)(strait_cxi*, uint64_t offset, uint64_t length_bytes, void** address);
  int32_t (*unmap)(strait_cxi*, void* address, uint64_t length_bytes);
  /* What the `intr` file of a wait object is: polled for POLLPRI, cleared by reading a byte. Owned by the caller. */
  int32_t (*wait_fd)(strait_cxi*, uint32_t wait);

  /* [address, address + length_bytes) of this process is a shared mapping of `fd` from `offset` on, until unshare: the
   * device may use the file instead of asking for the process's memory. 0 or -errno; a hint, never required. */
  int32_t (*share)(strait_cxi*, uint64_t address, uint64_t length_bytes, int32_t fd, uint64_t offset);
  /* The range is memory of an accelerator, which is reached through the port: it may be mapped by its address, hold a
   * ring or a counter's word. Until unshare, which waits for what is under way. Both also where the device is a process
   * of its own: then a thread of this one is asked for every copy. */
  int32_t (*share_port)(strait_cxi*, uint64_t address, uint64_t length_bytes, const strait_memory_port* port);
  int32_t (*unshare)(strait_cxi*, uint64_t address);

  /* "commands=12,..." */
  void (*counters)(strait_cxi*, char* text, size_t capacity);
} strait_cxi_ops;
#define STRAIT_CXI_OPS_LEAST sizeof(strait_cxi_ops)

typedef const strait_cxi_ops* (*strait_cxi_entry)(void);
#define STRAIT_CXI_ENTRY "strait_cxi_plugin"

#ifdef __cplusplus
}
#endif
#endif
