/* SPDX-License-Identifier: Apache-2.0
 * The C interface of strait, which is its ABI. C++ (strait.hpp) is inline over it.
 *
 * Conventions
 * - Every function that can fail returns a strait_code and, when `error` is not null, fills it. Outputs are written
 * only on success.
 * - Structs that a later version may lengthen begin with struct_size; set it to sizeof.
 * - Durations are nanoseconds; a negative one means the Node's default (option `deadline`).
 * - Handles: strait_node, strait_peer, strait_region, strait_memory and strait_published may be used from any thread. A
 *   strait_lane from strait_lane_open has one owner thread; the lane of strait_peer_lane may be used from any thread.
 * - After fork() every handle is dead in the child and says so (STRAIT_GONE).
 * - The library never throws across this interface, never aborts, and never prints.
 */
#ifndef STRAIT_C_H
#define STRAIT_C_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define STRAIT_API __attribute__((visibility("default")))
#else
#define STRAIT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum strait_code {
  STRAIT_OK = 0,
  STRAIT_INVALID = 1,     /* wrong use: can never succeed as it stands */
  STRAIT_UNSUPPORTED = 2, /* not possible here */
  STRAIT_AGAIN = 3,       /* full right now: reap, then try again */
  STRAIT_TIMEOUT = 4,     /* the deadline passed; the operation may still be going on */
  STRAIT_DENIED = 5,      /* key, ticket or secret not accepted */
  STRAIT_GONE = 6,        /* peer, region or handle no longer exists */
  STRAIT_LIMIT = 7,       /* out of descriptors, memory, ... */
  STRAIT_DEVICE = 8,      /* the NIC reported an error: see syndrome */
  STRAIT_SYSTEM = 9       /* a system call failed: see sys_errno */
} strait_code;

typedef struct strait_error {
  uint32_t struct_size;
  int32_t code;
  int32_t sys_errno;
  uint32_t syndrome; /* the hardware's own code, 0 when there is none */
  char text[512];    /* one sentence: what could not be done, and the cause */
  char remedy[256];  /* what to try; may be empty */
} strait_error;

/* "0.1.0" */
STRAIT_API const char* strait_version(void);
/* Texts that strait hands out as char** are given back with this. */
STRAIT_API void strait_text_free(char* text);

/* ---- Node: owns devices, registrations, the rendezvous and the progress of everything below
 * -------------------------- */

typedef struct strait_node strait_node;

typedef struct strait_setting {
  const char* name; /* a row of `strait info --options` */
  const char* value;
} strait_setting;

/* level: 0 error, 1 warning, 2 info, 3 debug. Called from any thread of the library; must not call strait. */
typedef void (*strait_log_fn)(void* context, int level, const char* text);

typedef struct strait_node_options {
  uint32_t struct_size;
  uint32_t n_settings;
  const strait_setting* settings; /* override STRAIT_* variables, which override defaults */
  strait_log_fn log;              /* null: no log */
  void* log_context;
} strait_node_options;

/* Opens every device now and fails here with the cause. `options` may be null. */
STRAIT_API int32_t strait_node_open(const strait_node_options* options, strait_node** out, strait_error* error);
/* Closes what is still open: regions are revoked, operations detached. Memory of the application is never freed. */
STRAIT_API void strait_node_close(strait_node* node);
/* "127.0.0.1:40123": what a peer passes to strait_connect. Valid as long as the node. */
STRAIT_API const char* strait_node_address(const strait_node* node);
/* JSON: devices, NICs, options with origin, counters, warnings. */
STRAIT_API int32_t strait_node_info(strait_node* node, char** json, strait_error* error);
/* JSON: what a running Node counted, which is asked at its address with this Node's secret: `nics` with their counters,
 * `counters`, `cache`, `monitor` and `grants` as strait_node_info has them. */
STRAIT_API int32_t strait_counters_of(strait_node* node, const char* address, int64_t timeout_ns, char** json,
                                      strait_error* error);

enum {
  STRAIT_REACH_EVERY_DEVICE = 1u << 0 /* otherwise one device of each kind */
};
/* JSON: by which ways each NIC reaches each kind of memory, every one tried now with a small buffer (exported,
 * registered, deregistered, freed), or what is missing; and what providers and NICs need from the machine. A failed
 * trial is an answer, not an error. Takes a device into use where the vendor has such a step (a CUDA context, a Gaudi's
 * compute node), until the Node closes. */
STRAIT_API int32_t strait_node_reach(strait_node* node, uint32_t flags, char** json, strait_error* error);

enum {
  STRAIT_EXPLAIN_TEXT = 1u << 0,     /* a table of at most 80 columns, for people; otherwise JSON */
  STRAIT_EXPLAIN_ZERO_COPY = 1u << 1 /* as with STRAIT_REQUIRE_ZERO_COPY */
};
/* Which way bytes would take from memory `from` (a device name of `strait info`, or "host") to memory `to`, and why not
 * another. `to`: "cuda:1" in this Node; "cuda:1@HOST:PORT" in a running Node, which is asked; "cuda:1@peer" on another
 * host with the same devices. Moves none of the caller's bytes; what copies cost is timed the first time, some
 * milliseconds each, with memory of its own, which takes a device into use as strait_node_reach does. The text is given
 * back with strait_text_free. */
STRAIT_API int32_t strait_explain(strait_node* node, const char* from, const char* to, uint32_t flags,
                                  int64_t timeout_ns, char** text, strait_error* error);
/* One bounded pass of progress on this thread; returns how much was done. Needed with progress=caller, harmless else.
 */
STRAIT_API int32_t strait_node_poll(strait_node* node);
/* progress=eventfd: readable when strait_node_poll has something to do. Owned by the node. */
STRAIT_API int32_t strait_node_event_fd(strait_node* node, int32_t* fd, strait_error* error);
/* With progress=eventfd, before sleeping on the descriptor: 1 sleep, 0 poll again first. */
STRAIT_API int32_t strait_node_arm(strait_node* node);

/* ---- Memory
 * ---------------------------------------------------------------------------------------------------------- */

typedef struct strait_memory strait_memory;

/* `near`: "host", or a device name of `strait info` ("soft:0"). Null or "": host. */
STRAIT_API int32_t strait_allocate(strait_node* node, uint64_t length_bytes, const char* near_device,
                                   strait_memory** out, strait_error* error);
enum {                                     /* strait_allocate_with */
       STRAIT_ALLOCATE_NETWORKED = 1u << 0 /* exported and registered with every NIC at once, so that the first share is
                                              a lookup; fails, with nothing allocated, where no NIC can reach it */
};
STRAIT_API int32_t strait_allocate_with(strait_node* node, uint64_t length_bytes, const char* near_device,
                                        uint32_t flags, strait_memory** out, strait_error* error);
/* Fails with STRAIT_AGAIN while a region still shares it; the handle then stays good. */
STRAIT_API int32_t strait_memory_free(strait_memory* memory, strait_error* error);
/* Frees it now or, while a region still shares it, as soon as the last one has drained. */
STRAIT_API void strait_memory_drop(strait_memory* memory);
/* Accelerator memory: a device address the CPU cannot follow. */
STRAIT_API void* strait_memory_address(const strait_memory* memory);
STRAIT_API uint64_t strait_memory_length(const strait_memory* memory);
/* Copies between host and accelerator memory, either way or within; finds out by itself which is which. */
STRAIT_API int32_t strait_copy(strait_node* node, void* to, const void* from, uint64_t length_bytes, int64_t timeout_ns,
                               strait_error* error);

/* ---- Region: memory that a NIC can reach
 * ------------------------------------------------------------------------------ */

typedef struct strait_region strait_region;

enum { /* what peers may do; 0: only this process uses it, as source or destination */
       STRAIT_REMOTE_READ = 1u << 0,
       STRAIT_REMOTE_WRITE = 1u << 1,
       STRAIT_REMOTE_ATOMIC = 1u << 2
};

/* Recognises whose memory it is, exports and registers it. The caller keeps ownership of the memory. */
STRAIT_API int32_t strait_share(strait_node* node, void* address, uint64_t length_bytes, uint32_t access,
                                strait_region** out, strait_error* error);
/* The same for memory that the caller has as a descriptor: a dma-buf that some driver exported, or a memfd sealed
 * against shrinking. The descriptor is duplicated and stays the caller's; close it when you like. `address`: what the
 * region calls its first byte, at the same place in a page as `offset`; 0: chosen here. No CPU finds the bytes there.
 */
STRAIT_API int32_t strait_share_dmabuf(strait_node* node, int32_t fd, uint64_t offset, uint64_t length_bytes,
                                       uint64_t address, uint32_t access, strait_region** out, strait_error* error);
/* Revokes and forgets. Operations in flight keep the registration alive until they drained; the memory is never freed.
 */
STRAIT_API void strait_region_drop(strait_region* region);
/* No peer can touch it any more when this returns STRAIT_OK. STRAIT_TIMEOUT: own operations still hold it
 * (quarantined). */
STRAIT_API int32_t strait_region_revoke(strait_region* region, int64_t timeout_ns, strait_error* error);
STRAIT_API void* strait_region_address(const strait_region* region);
STRAIT_API uint64_t strait_region_length(const strait_region* region);
/* JSON: recognised by whom, whole allocation, how exported, which keys, ranked ways with reasons. */
STRAIT_API int32_t strait_region_path(const strait_region* region, char** json, strait_error* error);

/* Signals: STRAIT_SIGNALS 64-bit words beside each region that a peer may write, raised after the data of a put. */
#define STRAIT_SIGNALS 64u
STRAIT_API int32_t strait_signal_read(const strait_region* region, uint32_t index, uint64_t* value,
                                      strait_error* error);
STRAIT_API int32_t strait_signal_write(strait_region* region, uint32_t index, uint64_t value, strait_error* error);
/* Everything put before the signal is visible to this CPU (and by strait_copy) when it returns STRAIT_OK. */
STRAIT_API int32_t strait_signal_wait(strait_region* region, uint32_t index, uint64_t at_least, int64_t timeout_ns,
                                      uint64_t* value, strait_error* error);

/* ---- Publishing and tickets
 * ------------------------------------------------------------------------------------------- */

typedef struct strait_published strait_published;

/* Under this name any peer that knows the secret finds the region. Names: 1 to 255 bytes. */
STRAIT_API int32_t strait_publish(strait_node* node, const char* name, strait_region* region, strait_published** out,
                                  strait_error* error);
STRAIT_API void strait_withdraw(strait_published* published);

#define STRAIT_TICKET_BYTES 128u
typedef struct strait_ticket {
  uint8_t bytes[STRAIT_TICKET_BYTES]; /* may be sent anywhere; carries region, rights, range, epoch, expiry and a MAC */
} strait_ticket;

/* `access` may only narrow what the region was shared with. `lifetime_ns` negative: option `ticket_lifetime`. */
STRAIT_API int32_t strait_ticket_make(strait_region* region, uint64_t offset, uint64_t length_bytes, uint32_t access,
                                      int64_t lifetime_ns, strait_ticket* out, strait_error* error);

/* ---- Peers
 * ------------------------------------------------------------------------------------------------------------ */

typedef struct strait_peer strait_peer;

STRAIT_API int32_t strait_connect(strait_node* node, const char* address, int64_t timeout_ns, strait_peer** out,
                                  strait_error* error);
/* The next peer that connected to this node. */
STRAIT_API int32_t strait_accept(strait_node* node, int64_t timeout_ns, strait_peer** out, strait_error* error);
STRAIT_API void strait_peer_close(strait_peer* peer);
STRAIT_API const char* strait_peer_name(const strait_peer* peer);

/* Remote memory: a value. It grants nothing once the owner revoked it. */
typedef struct strait_target {
  uint32_t struct_size;
  uint32_t access;
  uint64_t region_id;
  uint64_t epoch;
  uint64_t address;
  uint64_t length_bytes;
  uint32_t rkey;
  uint32_t signal_rkey;
  uint64_t signal_address; /* 0: no signals */
  /* Of the owner's further NICs: a lane takes the key of the one that it ends at. */
  uint32_t more_rkeys[3];
  uint32_t more_signal_rkeys[3];
} strait_target;

STRAIT_API int32_t strait_lookup(strait_peer* peer, const char* name, int64_t timeout_ns, strait_target* out,
                                 strait_error* error);
/* Presents a ticket to its owner: forged, expired and stale ones are refused with the reason. */
STRAIT_API int32_t strait_redeem(strait_peer* peer, const strait_ticket* ticket, int64_t timeout_ns, strait_target* out,
                                 strait_error* error);

/* ---- Lanes and operations
 * --------------------------------------------------------------------------------------------- */

typedef struct strait_lane strait_lane;

typedef struct strait_lane_options {
  uint32_t struct_size;
  uint32_t depth; /* operations in flight, power of two; 0: option `lane_depth` */
  /* 0 or 1: the NIC reports every operation. n: only every n-th by itself, the others when they are waited for or
   * flushed; saves completions when many operations are posted and few are waited for. */
  uint32_t signal_every;
  /* Null: lanes take equal NICs in turn. "cuda:0": the NIC that is best for memory of that device, as strait_explain
   * has it. */
  const char* near_device;
} strait_lane_options;

/* A queue of its own to the peer, used by one thread and without a lock. `options` may be null. */
STRAIT_API int32_t strait_lane_open(strait_peer* peer, const strait_lane_options* options, int64_t timeout_ns,
                                    strait_lane** out, strait_error* error);
/* Waits for nothing: operations in flight are detached, then flushed. */
STRAIT_API void strait_lane_close(strait_lane* lane);
/* The peer's own lane, shared by all threads (takes a lock). Lives as long as the peer. */
STRAIT_API strait_lane* strait_peer_lane(strait_peer* peer);

/* An operation in flight: a value. Wait for it or detach it, once; both make it empty (lane null). An operation that is
 * neither keeps its place in the lane occupied. */
typedef struct strait_op {
  strait_lane* lane;
  uint64_t id;
} strait_op;
/* In an id: the operation was complete when the call that posted it returned (a map or copy grant), and `id &
 * STRAIT_OP_BYTES` is how many bytes it moved. It may be waited for like any other, and need not be. */
#define STRAIT_OP_COMPLETE (UINT64_C(1) << 63)
#define STRAIT_OP_BY_COPY (UINT64_C(1) << 62)
/* An atomic of a map grant: carried out, and its result is to be waited for (which never takes long) or detached. */
#define STRAIT_OP_BY_MAP (UINT64_C(1) << 61)
#define STRAIT_OP_BYTES (STRAIT_OP_BY_MAP - 1)

/* STRAIT_REQUIRE_ZERO_COPY: no bounce buffer of strait's between this side's memory and its NIC, which memory that no
 * NIC reaches needs (option allow_staging). How bytes are carried from there is not asked: the software NIC's ring
 * grant copies them once or, through its shared ring, twice, and a map or copy grant moves them by the CPU. Each of
 * these stands for the wire, and takes the bytes from where they are. */
enum {
  STRAIT_REQUIRE_ZERO_COPY = 1u << 0, /* refuse a bounce buffer: see above */
  STRAIT_FENCE = 1u << 1,             /* start after earlier gets and atomics of this lane are complete */
  STRAIT_WITH_IMM = 1u << 2,          /* put: consumes a receive at the peer and hands it `imm` */
  STRAIT_WITH_SIGNAL = 1u << 3        /* put: adds `signal_add` to signal `signal` after the data */
};

typedef struct strait_op_options {
  uint32_t struct_size;
  uint32_t flags;
  uint32_t imm;
  uint32_t signal;
  uint64_t signal_add;
} strait_op_options;

typedef struct strait_done {
  uint32_t struct_size; /* too short: nothing is written */
  uint32_t flags;       /* STRAIT_WITH_IMM: imm is valid */
  uint64_t bytes;
  uint64_t value; /* atomics: what was there before */
  uint32_t imm;
  uint32_t reserved;
} strait_done;

/* A local piece of a region. */
typedef struct strait_slice {
  strait_region* region;
  uint64_t offset;
  uint64_t length_bytes;
} strait_slice;

/* Posting never waits for a peer or for room: a full lane answers STRAIT_AGAIN. But where a map or copy grant is the
 * way (strait_target_path), the bytes move inside the posting call, by this CPU: it takes as long as the copy does, and
 * no deadline ends it earlier. `options` may be null. Bounds and rights are checked here first, and by the owner's NIC
 * again where one carries the bytes. */
STRAIT_API int32_t strait_put(strait_lane* lane, const strait_slice* from, const strait_target* to, uint64_t to_offset,
                              const strait_op_options* options, strait_op* out, strait_error* error);
STRAIT_API int32_t strait_get(strait_lane* lane, const strait_slice* into, const strait_target* from,
                              uint64_t from_offset, const strait_op_options* options, strait_op* out,
                              strait_error* error);
/* 8 bytes at an 8-byte aligned place; the old value arrives in strait_done.value. */
STRAIT_API int32_t strait_fetch_add(strait_lane* lane, const strait_target* at, uint64_t offset, uint64_t add,
                                    const strait_op_options* options, strait_op* out, strait_error* error);
STRAIT_API int32_t strait_compare_swap(strait_lane* lane, const strait_target* at, uint64_t offset, uint64_t expected,
                                       uint64_t desired, const strait_op_options* options, strait_op* out,
                                       strait_error* error);
STRAIT_API int32_t strait_send(strait_lane* lane, const strait_slice* from, const strait_op_options* options,
                               strait_op* out, strait_error* error);
/* `into` may be null: receives only the immediate of a put. */
STRAIT_API int32_t strait_receive(strait_lane* lane, const strait_slice* into, strait_op* out, strait_error* error);

enum { STRAIT_PUT = 1, STRAIT_GET = 2 };
typedef struct strait_item {
  uint32_t kind; /* STRAIT_PUT or STRAIT_GET */
  uint32_t reserved;
  strait_slice local;
  const strait_target* remote;
  uint64_t remote_offset;
} strait_item;
/* All items or none are posted, with one doorbell; the operation is done when all are. */
STRAIT_API int32_t strait_batch(strait_lane* lane, const strait_item* items, uint32_t n_items,
                                const strait_op_options* options, strait_op* out, strait_error* error);

/* STRAIT_OK: complete at the target. STRAIT_TIMEOUT: still in flight, the operation stays valid and keeps its memory.
 */
STRAIT_API int32_t strait_wait(strait_op* op, int64_t timeout_ns, strait_done* out, strait_error* error);
/* Like strait_wait with no time to wait, answering STRAIT_AGAIN while in flight. */
STRAIT_API int32_t strait_test(strait_op* op, strait_done* out, strait_error* error);
/* Nobody will ask again; it completes by itself. */
STRAIT_API void strait_detach(strait_op* op);
/* Everything posted on the lane before is complete at the target, detached operations included; their first failure is
 * reported here. */
STRAIT_API int32_t strait_flush(strait_lane* lane, int64_t timeout_ns, strait_error* error);
/* "soft:0 dma-buf -> strait0 -> ring grant to process 4711 -> strait0": for people. Valid as long as the lane. */
STRAIT_API const char* strait_lane_path(strait_lane* lane);
/* The same for one operation, before it is waited for: the lane's path, or "map grant -> 127.0.0.1:4711 (process 7)"
 * for what this process moved by itself. */
STRAIT_API const char* strait_op_path(const strait_op* op);
/* Which way puts and gets to this target take: by the grant there is, or the lane's path. */
STRAIT_API const char* strait_target_path(strait_lane* lane, const strait_target* target);

/* ---- Device queues: a kernel on an accelerator, or a grid of CPU threads, posts by itself
 * ----------------------------- */

typedef struct strait_device_queue strait_device_queue;

enum { /* who posts at the same time */
       STRAIT_SHARING_ONE_THREAD = 0,
       STRAIT_SHARING_ONE_BLOCK = 1,   /* the threads of one block of a grid */
       STRAIT_SHARING_MANY_THREADS = 2 /* any number, of one device or of this process */
};

typedef struct strait_device_queue_options {
  uint32_t struct_size;
  uint32_t sharing;      /* STRAIT_SHARING_* */
  uint32_t depth_blocks; /* 64-byte blocks of the send ring, power of two; 0: option `lane_depth` */
  uint32_t receives;     /* entries of the receive ring, power of two; 0: none */
  uint32_t counters;     /* how many counters operations may name */
  uint32_t reserved;
  const char* near_device; /* who posts: "cuda:0"; null, "" or "host": CPU threads of this process */
} strait_device_queue_options;

/* A queue of its own to the peer. Its rings are host memory that the device is let at; the state that its posters share
 * is memory of the device. `options` may be null. Usable from any thread of the host. */
STRAIT_API int32_t strait_device_queue_open(strait_peer* peer, const strait_device_queue_options* options,
                                            int64_t timeout_ns, strait_device_queue** out, strait_error* error);
/* Ends waits and leases, flushes what is under way. The caller sees to it that no kernel uses a handle any more: the
 * pages are taken back from the device. The same holds for strait_node_close. */
STRAIT_API void strait_device_queue_close(strait_device_queue* queue);
/* "cuda:0 -> rings in host memory -> strait0 (software: a CPU thread polls the rings while a lease is held) -> ...":
 * for people. Valid as long as the queue. */
STRAIT_API const char* strait_device_queue_path(const strait_device_queue* queue);

/* Handles that are passed to kernels by value: strait::device::Queue, LocalRegion, RemoteRegion, Signal of
 * strait/device/queue.hpp. `handle_bytes` is sizeof it; another size is another version, and refused. A region whose
 * handles are in use must not be dropped before the queue is closed: operations that name it then end with a syndrome,
 * and its signals are gone. */
STRAIT_API int32_t strait_device_queue_handle(strait_device_queue* queue, void* handle, size_t handle_bytes,
                                              strait_error* error);
STRAIT_API int32_t strait_device_local(strait_device_queue* queue, const strait_slice* slice, void* handle,
                                       size_t handle_bytes, strait_error* error);
STRAIT_API int32_t strait_device_remote(strait_device_queue* queue, const strait_target* target, void* handle,
                                        size_t handle_bytes, strait_error* error);
STRAIT_API int32_t strait_device_signal(strait_device_queue* queue, strait_region* region, uint32_t index, void* handle,
                                        size_t handle_bytes, strait_error* error);

/* raise 1: every wait of a poster ends as aborted, now and until raise 0. Operations go on. */
STRAIT_API void strait_device_queue_abort(strait_device_queue* queue, uint32_t raise);
/* The first failure that a poster has seen, with its syndrome; STRAIT_OK: none. */
STRAIT_API int32_t strait_device_queue_failure(strait_device_queue* queue, strait_error* error);

/* While a lease is held a thread of this Node polls the queue's rings: a GPU's stores wake nobody. No lease, no
 * polling: what was posted then is found by the next lease or strait_node_poll, if not by another look of the host's at
 * its NIC before (a call that waits, the Node's thread while it is awake). Leases are counted. */
typedef struct strait_gpu_lease strait_gpu_lease;
STRAIT_API int32_t strait_gpu_lease_begin(strait_device_queue* queue, strait_gpu_lease** out, strait_error* error);
STRAIT_API void strait_gpu_lease_end(strait_gpu_lease* lease);

/* ---- CXI devices: the kernel's calls of /dev/cxiN, on hardware and on software devices ---------------------------
 *
 * For who speaks the interface itself (cxi.h does): what it says is in wire/cxi_abi.hpp. May be used from any thread.
 */

typedef struct strait_cxi_device strait_cxi_device;

enum { /* strait_cxi_about.flags */
       STRAIT_CXI_IS_SOFTWARE = 1u << 0,
       /* The doorbell page of a counter is memory: an addition has to be an atomic add to its word, not a store. */
       STRAIT_CXI_ADDS_TO_DOORBELLS = 1u << 1
};

typedef struct strait_cxi_about {
  uint32_t struct_size;
  uint32_t flags;
  uint32_t nid;
  uint32_t pid_bits;
  uint32_t pid_granule;
  uint32_t platform; /* 0: silicon */
  char name[32];     /* "cxi0" */
} strait_cxi_about;

/* `name`: "cxi0" is the node /dev/cxi0, "soft0" a software device that all processes of this user share, "local0" one
 * of this process alone; null or "": the first node there is, else "soft0". */
STRAIT_API int32_t strait_cxi_open(const char* name, strait_cxi_device** out, strait_error* error);
/* Everything made with it and not freed is freed. Pages that are still mapped must be unmapped before. */
STRAIT_API void strait_cxi_close(strait_cxi_device* device);
STRAIT_API int32_t strait_cxi_about_device(strait_cxi_device* device, strait_cxi_about* out, strait_error* error);
/* As write(2) on the node. The error says what the errno means for that command. */
STRAIT_API int32_t strait_cxi_command(strait_cxi_device* device, const void* command, size_t length,
                                      strait_error* error);
/* What the answer to a command says may be mapped: with exactly that offset and length, once. */
STRAIT_API int32_t strait_cxi_map(strait_cxi_device* device, uint64_t offset, uint64_t length, void** address,
                                  strait_error* error);
STRAIT_API void strait_cxi_unmap(strait_cxi_device* device, void* address, uint64_t length);
/* The descriptor that is urgent (POLLPRI) while the wait object is raised; a byte is read to clear it. The caller
 * closes it. */
STRAIT_API int32_t strait_cxi_wait_fd(strait_cxi_device* device, uint32_t client, uint32_t wait, int32_t* fd,
                                      strait_error* error);
/* A hint for software devices: [address, address + length) is a shared mapping of `fd` from `offset` on, until
 * strait_cxi_unshare. STRAIT_UNSUPPORTED: this device has no use for it. */
STRAIT_API int32_t strait_cxi_share(strait_cxi_device* device, const void* address, uint64_t length, int32_t fd,
                                    uint64_t offset, strait_error* error);
STRAIT_API void strait_cxi_unshare(strait_cxi_device* device, const void* address);

/* ---- CXI queues: a kernel on an accelerator, or a grid of CPU threads, posts a CXI device's own commands ---------
 *
 * Nobody looks at rings for it, and there is no peer on the host: places of memory are plain bytes that programs send
 * each other. May be used from any thread of the host.
 */

typedef struct strait_cxi_queue strait_cxi_queue;

typedef struct strait_cxi_queue_options {
  uint32_t struct_size;
  uint32_t sharing;        /* STRAIT_SHARING_* */
  uint32_t depth_blocks;   /* 64-byte blocks of each command ring; 0: 1024 */
  uint32_t counters;       /* that operations, and what peers do here, may count on; 0: 4 */
  uint32_t signalled_puts; /* under way at a time, a power of two; 0: 16 */
  uint32_t vni;            /* 0: 1 */
  uint32_t service;        /* 0: the default one */
  uint32_t update_policy;  /* when the device says how far it has read a ring: 0 after each command, 1 often,
                              2 seldom, both also when it has read all; 3 seldom */
  const char* near_device; /* who posts: "cuda:0"; null, "" or "host": CPU threads of this process */
} strait_cxi_queue_options;

/* The device must outlive the queue. `node` has the accelerators; it may be null when CPU threads post. `options` may
 * be null. */
STRAIT_API int32_t strait_cxi_queue_open(strait_cxi_device* device, strait_node* node,
                                         const strait_cxi_queue_options* options, strait_cxi_queue** out,
                                         strait_error* error);
/* Ends waits and takes the pages back from the accelerator, with the memory that was given to it. The caller sees to it
 * that no kernel uses a handle any more. */
STRAIT_API void strait_cxi_queue_close(strait_cxi_queue* queue);

typedef struct strait_cxi_memory {
  uint32_t struct_size;
  int32_t dmabuf; /* a descriptor of the memory; below 0: memory of this process or of an accelerator of the queue's
                     Node, by its address */
  void* address;  /* with a dma-buf: what commands call its first byte */
  uint64_t length_bytes;
  uint64_t dmabuf_offset;
} strait_cxi_memory;

typedef struct strait_cxi_place { /* what a peer has to know */
  uint32_t nid;
  uint32_t pid;
  uint32_t index; /* of the portal entry */
  uint32_t reserved;
  uint64_t length_bytes;
} strait_cxi_place;
#define STRAIT_CXI_NO_COUNTER 0xffffffffu

/* Handles that are passed to kernels by value: strait::device::cxi::Queue, LocalMemory and RemoteMemory of
 * strait/device/cxi/queue.hpp, strait::device::Signal. `handle_bytes` is sizeof it; another size is another version,
 * and refused. */
STRAIT_API int32_t strait_cxi_queue_handle(strait_cxi_queue* queue, void* handle, size_t handle_bytes,
                                           strait_error* error);
/* Memory for commands of the posters, until strait_cxi_release or as long as the queue. */
STRAIT_API int32_t strait_cxi_local(strait_cxi_queue* queue, const strait_cxi_memory* memory, void* handle,
                                    size_t handle_bytes, strait_error* error);
/* Takes back what strait_cxi_local made: commands that name it fail from now on. The caller sees to it that none is
 * under way. */
STRAIT_API int32_t strait_cxi_release(strait_cxi_queue* queue, const void* handle, size_t handle_bytes,
                                      strait_error* error);
/* Memory that peers reach; what they do counts on `counter` of this queue, or on none. `rights`: STRAIT_REMOTE_WRITE
 * (put, signal, add), STRAIT_REMOTE_READ (get), or both, which fetching atomics need. They are those of everybody on
 * the queue's VNI: a place is no secret. It stays until strait_cxi_unexpose or as long as the queue. */
STRAIT_API int32_t strait_cxi_expose(strait_cxi_queue* queue, const strait_cxi_memory* memory, uint32_t counter,
                                     uint32_t rights, strait_cxi_place* out, strait_error* error);
/* Takes back what strait_cxi_expose made: nothing arrives there from now on, and peers that still use the place are
 * told. Another piece is found there when all other portal entries have been used. */
STRAIT_API int32_t strait_cxi_unexpose(strait_cxi_queue* queue, const strait_cxi_place* place, strait_error* error);
/* `signals`: 64-bit words that the peer exposed for that; may be null. */
STRAIT_API int32_t strait_cxi_remote(strait_cxi_queue* queue, const strait_cxi_place* memory,
                                     const strait_cxi_place* signals, void* handle, size_t handle_bytes,
                                     strait_error* error);
/* A 64-bit word of this process's memory, or of the poster's device, that peers raise and a poster waits for. */
STRAIT_API int32_t strait_cxi_signal(strait_cxi_queue* queue, const uint64_t* word, void* handle, size_t handle_bytes,
                                     strait_error* error);
/* raise 1: every wait of a poster ends as aborted, now and until raise 0. Operations go on. */
STRAIT_API void strait_cxi_queue_abort(strait_cxi_queue* queue, uint32_t raise);

#ifdef __cplusplus
}
#endif
#endif
