// SPDX-License-Identifier: Apache-2.0
// Every option of the library, one row each. docs/options.md is this table as a page; a test compares them.
#include <array>

#include "base/options.hpp"

namespace strait {
namespace {

using enum OptionType;

constexpr std::array kTable = {
    OptionRow{"listen", "127.0.0.1:0", text, "Address the rendezvous listens on; port 0 takes any free one.", nullptr},
    OptionRow{"secret", "", text, "Secret that peers must share; empty: the one in the secret file.", nullptr, true},
    OptionRow{"secret_file", "", text,
              "File that holds the secret; empty: a file of this user, made when it is missing.", nullptr},
    OptionRow{"progress", "thread", choice,
              "Who drives the queues: a thread of the node, the caller's polls, or a poll when an eventfd is readable.",
              "thread|caller|eventfd"},
    OptionRow{
        "nics", "soft", text,
        "NICs to open, separated by commas: soft, soft:2 for two of them, verbs:rxe0 for that RDMA device "
        "(verbs:rxe0/3 with the GID of index 3), cxi:cxi0 for that Slingshot NIC (cxi:cxi0/10 on VNI 10), cxi:soft for "
        "the software Cassini, cxi for the first of these there is, none.",
        nullptr},
    OptionRow{"accelerators", "soft:1,auto", text,
              "Accelerators to open, separated by commas: soft:N for N software accelerators; cuda, rocm, gaudi: that "
              "vendor's, or an error; auto: every vendor's whose driver is there; none.",
              nullptr},
    OptionRow{"accelerator_memory", "256M", bytes, "Memory of each software accelerator.", nullptr, false, 4096,
              std::int64_t{1} << 40},
    OptionRow{"accelerator_export", "1", flag, "Software accelerators can export their memory as file descriptors.",
              nullptr},
    OptionRow{"provider_config", "", text,
              "What the vendors' providers are told, separated by semicolons, for example "
              "cuda:cpu_map=gdrcopy,cpu_copies=4096/64;rocm:ipc_cache=8.",
              nullptr},
    OptionRow{"soft_library", "", text, "Path of libstrait-soft; empty: beside the library, then the usual places.",
              nullptr},
    OptionRow{"verbs_library", "", text, "Path of libstrait-verbs; empty: beside the library, then the usual places.",
              nullptr},
    OptionRow{"allow_staging", "0", flag, "Copy through host memory when a NIC cannot reach the memory itself.",
              nullptr},
    OptionRow{
        "staging_piece", "4M", bytes,
        "What copies through host memory are cut into, so that one piece is on the wire while the next is copied.",
        nullptr, false, 4096, std::int64_t{1} << 30},
    OptionRow{
        "reach", "auto", choice,
        "How NICs reach accelerators' memory: by dma-buf, by its address through a peer-memory client (peermem) or "
        "nvidia_p2p pages (p2p), by a copy through host memory (staged), or by the best there is.",
        "auto|dmabuf|peermem|p2p|staged"},
    OptionRow{"cache_entries", "65536", integer,
              "Registrations that are remembered; the least recently used goes first. 0: none.", nullptr, false, 0,
              std::int64_t{1} << 26},
    OptionRow{"cache_bytes", "1024G", bytes, "Memory that remembered registrations cover, together.", nullptr, false,
              0},
    OptionRow{"cache_fds", "512", integer,
              "File descriptors that memory allocated as networked keeps open, so that sharing it exports nothing; "
              "others are closed "
              "as soon as a NIC has registered the memory.",
              nullptr, false, 0, 1 << 20},
    OptionRow{"cache_dead_bytes", "16G", bytes,
              "Memory that was freed or unmapped while operations under way still use it: beyond that much nothing new "
              "is registered.",
              nullptr, false, 0},
    OptionRow{"cache_refusals", "1s", duration, "How long a NIC's refusal to register something is remembered.",
              nullptr, false, 0},
    OptionRow{"monitor", "none", choice,
              "How changes of host memory are noticed, so that its registrations can be remembered: not at all, or by "
              "userfaultfd.",
              "none|userfaultfd"},
    OptionRow{"carrier", "auto", choice,
              "How the bytes of the software NIC reach a peer: by shared memory on one host (grant), as RoCEv2 packets "
              "(roce), or by whichever works.",
              "auto|grant|roce"},
    OptionRow{"grant", "auto", choice,
              "How operations reach the memory of a peer on this host: by a mapping of it (map), by the kernel's copy "
              "between processes (copy), only through the owner's NIC (ring), or by the best there is.",
              "auto|map|copy|ring"},
    OptionRow{"revoked_pages", "keep", choice,
              "Host memory that peers had mapped keeps its pages when it is revoked and they say that they have let go "
              "(keep), or gets others whatever they say (leave).",
              "keep|leave"},
    OptionRow{"roce_address", "auto", text,
              "Address the software NIC's packets come from; auto: the one of `listen`, on loopback one of its own.",
              nullptr},
    OptionRow{"roce_mtu", "0", integer,
              "Payload of one packet: 256, 512, 1024, 2048 or 4096 bytes; 0: the most the interface takes.", nullptr,
              false, 0, 4096},
    OptionRow{"capture", "", text,
              "File for a capture of the software NIC's packets (pcapng, for Wireshark); %p becomes the process id; "
              "empty: none.",
              nullptr},
    OptionRow{
        "strict", "0", flag,
        "The software NIC as a sanitizer: lands bytes late and out of order, reports what a program may not do, and "
        "makes the process exit with 66 if it did. A software Cassini reads commands late and reports likewise.",
        nullptr},
    OptionRow{"strict_report", "", text, "File that also gets the findings of `strict`, one JSON object a line.",
              nullptr},
    OptionRow{"strict_seed", "0", integer,
              "From what `strict` takes its random delays and orders; findings name it. 0: the seed of `faults`, or 1 "
              "where there are none.",
              nullptr, false, 0, 4294967295},
    OptionRow{"background", "0", flag,
              "Under `strait run`: a thread drives the software NIC all the time, not the program's own calls. For "
              "programs that wait by looking at memory.",
              nullptr},
    OptionRow{
        "trap_doorbells", "0", flag,
        "Under `strait run`: a program's stores to doorbells are noticed as they happen, by a signal handler. For "
        "programs that post by hand and call nothing.",
        nullptr},
    OptionRow{"faults", "", text,
              "What the software NIC does wrong on purpose, for example drop=2%,dup=1%,reorder=1%,seed=7. A software "
              "Cassini takes those of them that its programs could see.",
              nullptr},
    OptionRow{
        "peer_memory", "none", text,
        "Ways of the software NIC to device memory by its plain address, separated by commas: the peer-memory "
        "clients nvidia (or nvidia_persistent) and amd, and p2p for nvidia_p2p pages; none. A software Cassini has "
        "nvidia_persistent and amd until somebody sets this.",
        nullptr},
    OptionRow{"kernel_faults", "", text,
              "What the software machine's kernel does wrong with device memory on purpose, for example "
              "attach=524,map=EPERM@2,invalidate@64K; 1:attach=524 is for the second NIC only.",
              nullptr},
    OptionRow{"cassini", "", text,
              "Name of the process that has the software Cassinis of this user; another name, other cards. Empty: the "
              "one that all share.",
              nullptr},
    OptionRow{
        "cassini_moves", "tear_down", choice,
        "What a software Cassini does with device memory that moves: its descriptor is dead from then on, as with "
        "the driver, or it is mapped again.",
        "tear_down|remap"},
    OptionRow{
        "cross_memory", "auto", choice,
        "Let the owner's engine copy large payloads with one system call (process_vm_readv) instead of through the "
        "shared ring.",
        "auto|off"},
    OptionRow{"deadline", "30s", duration, "Deadline of operations that are given none.", nullptr, false, 1},
    OptionRow{"connect_deadline", "5s", duration, "Deadline of connections that are given none.", nullptr, false, 1},
    OptionRow{"ack_timeout", "500ms", duration, "How long a NIC waits for an acknowledgement before it tries again.",
              nullptr, false, 1'000},
    OptionRow{"retries", "7", integer, "How often a NIC tries again when no acknowledgement comes.", nullptr, false, 0,
              7},
    OptionRow{"rnr_retries", "7", integer,
              "How often a NIC tries again when the peer has posted no receive; 7: for ever.", nullptr, false, 0, 7},
    OptionRow{"lane_depth", "256", integer,
              "Operations that can be under way on one lane; rounded up to a power of two.", nullptr, false, 1, 8192},
    OptionRow{"ticket_lifetime", "1h", duration, "How long a ticket is good after it was made.", nullptr, false, 1},
    OptionRow{"spin", "20us", duration, "How long progress polls before it sleeps.", nullptr},
    OptionRow{"log", "warn", choice, "Messages up to this level reach the log sink.", "error|warn|info|debug"},
    OptionRow{"sysfs", "/sys", text, "Folder that stands for /sys when distances are looked up: a recorded machine.",
              nullptr},
    OptionRow{"numa", "auto", text,
              "Where memory, rings and the thread of the node go on machines with several NUMA nodes: auto (near the "
              "first NIC, memory else near the CPU that asks for it), the number of a node, or off.",
              nullptr},
    OptionRow{"plugins", "", text, "Paths of provider plug-ins to load, separated by colons.", nullptr},
};

}  // namespace

std::span<const OptionRow> option_table() {
  return kTable;
}

}  // namespace strait
