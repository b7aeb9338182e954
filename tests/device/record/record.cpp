// SPDX-License-Identifier: Apache-2.0
// Asks a CUDA driver about device memory, and writes its answers down by name: what can be exported, which error a
// wrong call gets, which numbers change when memory is freed and made again, what keeps memory. Run on a GPU it makes
// the recording that the software driver is compared with; run on the software driver it makes the other side.
//
//   g++ -std=c++20 -O2 -o record record.cpp -ldl && ./record > h200.json
//
// Only answers that do not depend on the machine are written: no addresses, no sizes, no times. It needs nothing but
// this file, a C++ compiler and libcuda.so.1; types and constants are written out here, apart from everybody else's.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using Ptr = unsigned long long;
using Handle = unsigned long long;
using Context = void*;
using Stream = void*;

struct Location {
  int type, id;
};
struct Prop {
  int type, handle_types;
  Location location;
  void* unused;
  unsigned char compression, rdma;
  unsigned short usage;
  unsigned char reserved[4];
};
struct Access {
  Location location;
  int flags;
};
struct Bytes64 {
  char bytes[64];
};
struct PoolProps {
  int type, handle_types;
  Location location;
  void* unused;
  std::size_t most;
  unsigned short usage;
  unsigned char reserved[54];
};

void* g_library = nullptr;

// The function by name, at the version whose arguments are used here.
template <class... Arguments>
int call(const char* name, int version, Arguments... arguments) {
  using Find = int (*)(const char*, void**, int, std::uint64_t, int*);
  static const auto find = reinterpret_cast<Find>(dlsym(g_library, "cuGetProcAddress_v2"));
  void* found = nullptr;
  int status = 0;
  if (find == nullptr || find(name, &found, version, 0, &status) != 0 || found == nullptr) {
    std::fprintf(stderr, "record: the driver has no %s of version %d\n", name, version);
    std::exit(1);
  }
  return reinterpret_cast<int (*)(Arguments...)>(found)(arguments...);
}

void must(int answer, const char* what) {
  if (answer == 0) return;
  std::fprintf(stderr, "record: %s failed with %d\n", what, answer);
  std::exit(1);
}

// Name and answer, in the order in which they were asked.
std::vector<std::pair<std::string, std::string>> g_answers;
void note(const std::string& name, const std::string& answer) {
  g_answers.emplace_back(name, answer);
}
void note(const std::string& name, long long answer) {
  note(name, std::to_string(answer));
}
void note_bool(const std::string& name, bool answer) {
  note(name, std::string(answer ? "yes" : "no"));
}

constexpr std::size_t kMega = 1 << 20;
constexpr unsigned long long kPcie = 1;

Ptr make_plain(std::size_t bytes) {
  Ptr address = 0;
  must(call("cuMemAlloc", 3020, &address, bytes), "cuMemAlloc");
  return address;
}
void free_plain(Ptr address) {
  must(call("cuMemFree", 3020, address), "cuMemFree");
}
std::size_t free_bytes() {
  std::size_t free = 0;
  std::size_t total = 0;
  must(call("cuMemGetInfo", 3020, &free, &total), "cuMemGetInfo");
  return free;
}

int export_answer(Ptr address, std::size_t bytes, unsigned long long flags, int* keep = nullptr) {
  int fd = -1;
  const int answer = call("cuMemGetHandleForAddressRange", 11070, static_cast<void*>(&fd), address, bytes, 1, flags);
  if (answer == 0 && keep == nullptr) close(fd);
  if (keep != nullptr) *keep = fd;
  return answer;
}

// One attribute as the batched call gives it, or as the single one with its error.
template <class T>
std::string attribute(int which, Ptr address) {
  T value{};
  const int answer = call("cuPointerGetAttribute", 4000, static_cast<void*>(&value), which, address);
  if (answer != 0) return "error " + std::to_string(answer);
  return std::to_string(static_cast<long long>(value));
}
std::string attribute_set(int which, Ptr address) {
  void* value = nullptr;
  const int answer = call("cuPointerGetAttribute", 4000, static_cast<void*>(&value), which, address);
  if (answer != 0) return "error " + std::to_string(answer);
  return value == nullptr ? "null" : "set";
}
unsigned long long id_of(int which, Ptr address) {
  unsigned long long id = 0;
  must(call("cuPointerGetAttribute", 4000, static_cast<void*>(&id), which, address), "an id");
  return id;
}

// The columns of the table of what is exportable.
void record_sort(const std::string& sort, Ptr address, std::size_t bytes) {
  note(sort + ".memory_type", attribute<unsigned>(2, address));
  note(sort + ".context", attribute_set(1, address));
  note(sort + ".is_managed", attribute<unsigned>(8, address));
  note(sort + ".device_ordinal", attribute<int>(9, address));
  note(sort + ".legacy_ipc_capable", attribute<unsigned>(10, address));
  note(sort + ".rdma_capable", attribute<unsigned>(15, address));
  note(sort + ".mapped", attribute<unsigned>(13, address));
  note(sort + ".pool", attribute_set(17, address));
  note(sort + ".export", export_answer(address, bytes, 0));
  note(sort + ".export_pcie", export_answer(address, bytes, kPcie));
  Bytes64 handle{};
  note(sort + ".ipc_get_handle", call("cuIpcGetMemHandle", 4010, &handle, address));
  Handle retained = 0;
  const int answer = call("cuMemRetainAllocationHandle", 11000, &retained, reinterpret_cast<void*>(address));
  note(sort + ".retain_handle", answer);
  if (answer == 0) must(call("cuMemRelease", 10020, retained), "cuMemRelease");
  unsigned on = 1;
  note(sort + ".set_sync_memops", call("cuPointerSetAttribute", 6000, static_cast<const void*>(&on), 6, address));
  note(sort + ".advise_read_mostly", call("cuMemAdvise", 8000, address, bytes, 1, 0));
}

void record_devices() {
  for (const int which : {41, 102, 103, 110, 115, 116, 118, 124, 146}) {
    int value = -1;
    must(call("cuDeviceGetAttribute", 2000, &value, which, 0), "cuDeviceGetAttribute");
    note("device.attribute." + std::to_string(which), value);
  }
  int value = 0;
  note("device.attribute_unknown", call("cuDeviceGetAttribute", 2000, &value, 100000, 0));
  note("device.of_ordinal_beyond", call("cuDeviceGet", 2000, &value, 1000));
}

void record_contexts(Context primary) {
  const Ptr address = make_plain(4096);
  std::thread([&] {
    Context current = primary;
    must(call("cuCtxGetCurrent", 4000, &current), "cuCtxGetCurrent");
    note_bool("no_context.current_is_null", current == nullptr);
    note("no_context.attribute_memory_type", attribute<unsigned>(2, address));
    Ptr base = 0;
    std::size_t bytes = 0;
    note("no_context.address_range", call("cuMemGetAddressRange", 3020, &base, &bytes, address));
    note("no_context.export", export_answer(address, 4096, 0));
    note("no_context.alloc", call("cuMemAlloc", 3020, &base, std::size_t{4096}));
    note("no_context.pop", call("cuCtxPopCurrent", 4000, &current));
    note("no_context.get_device", call("cuCtxGetDevice", 2000, reinterpret_cast<int*>(&bytes)));
    note("no_context.push_null", call("cuCtxPushCurrent", 4000, Context{nullptr}));
  }).join();
  free_plain(address);
  unsigned flags = 0;
  int active = -1;
  must(call("cuDevicePrimaryCtxGetState", 7000, 0, &flags, &active), "cuDevicePrimaryCtxGetState");
  note("primary.active_while_retained", active);
  Context again = nullptr;
  must(call("cuDevicePrimaryCtxRetain", 7000, &again, 0), "cuDevicePrimaryCtxRetain");
  note_bool("primary.same_handle", again == primary);
  must(call("cuDevicePrimaryCtxRelease", 11000, 0), "cuDevicePrimaryCtxRelease");
  note("primary.destroy", call("cuCtxDestroy", 4000, primary));
}

void record_plain() {
  const Ptr a = make_plain(4 * kMega);
  record_sort("plain", a, 4 * kMega);
  record_sort("plain_part", a + kMega, 8192);
  int fd = -1;
  note("plain_part.export_kept", export_answer(a + kMega, 8192, 0, &fd));
  note("plain_part.length_is_exact", lseek(fd, 0, SEEK_END) == 8192 ? "yes" : "no");
  close(fd);
  note("plain.export_misaligned", export_answer(a + 512, 4096, 0));
  note("plain.export_odd_length", export_answer(a, 1000, 0));
  note("plain.export_nothing", export_answer(a, 0, 0));
  note("plain.export_beyond", export_answer(a, 64 * kMega, 0));
  note("plain.export_unknown_flag", export_answer(a, 4096, 2));
  Ptr base = 0;
  std::size_t bytes = 0;
  must(call("cuMemGetAddressRange", 3020, &base, &bytes, a + 5), "cuMemGetAddressRange");
  note_bool("plain.range_is_the_allocation", base == a && bytes == 4 * kMega);
  note("plain.free_inside", call("cuMemFree", 3020, a + 1));
  Bytes64 handle{};
  must(call("cuIpcGetMemHandle", 4010, &handle, a), "cuIpcGetMemHandle");
  note("plain.ipc_open_own", call("cuIpcOpenMemHandle", 11000, &base, handle, 1u));
  free_plain(a);
  note("freed.free_again", call("cuMemFree", 3020, a));
  note("freed.memory_type", attribute<unsigned>(2, a));
  note("freed.address_range", call("cuMemGetAddressRange", 3020, &base, &bytes, a));
  note("freed.export", export_answer(a, 4096, 0));
  note("alloc.nothing", call("cuMemAlloc", 3020, &base, std::size_t{0}));
  note("alloc.too_much", call("cuMemAlloc", 3020, &base, std::size_t{1} << 46));
  note("free.null", call("cuMemFree", 3020, Ptr{0}));
}

void record_small() {
  const Ptr a = make_plain(1000);
  note("small.export_a_page", export_answer(a, 4096, 0));
  note("small.export_64k", export_answer(a, 65536, 0));
  Ptr base = 0;
  std::size_t bytes = 0;
  must(call("cuMemGetAddressRange", 3020, &base, &bytes, a), "cuMemGetAddressRange");
  note_bool("small.range_is_as_asked", base == a && bytes == 1000);
  const Ptr b = make_plain(1000);
  note_bool("small.neighbours_share_a_block", id_of(20, a) == id_of(20, b));
  note_bool("small.neighbours_have_ids_of_their_own", id_of(7, a) != id_of(7, b));
  free_plain(b);
  free_plain(a);
}

void record_ids() {
  const Ptr a = make_plain(4 * kMega);
  const unsigned long long first = id_of(7, a);
  free_plain(a);
  const Ptr b = make_plain(4 * kMega);
  note_bool("realloc.same_address", a == b);
  note_bool("realloc.buffer_id_rises", id_of(7, b) > first);
  free_plain(b);
}

void record_fd_keeps_memory() {
  constexpr std::size_t kBytes = 32 * kMega;
  const Ptr a = make_plain(kBytes);
  int first = -1;
  int second = -1;
  must(export_answer(a, kBytes, 0, &first), "export");
  must(export_answer(a, kBytes, 0, &second), "export");
  const std::size_t with = free_bytes();
  free_plain(a);
  note_bool("fd.free_gives_bytes_back", free_bytes() > with + kBytes / 2);
  close(first);
  note_bool("fd.first_close_gives_bytes_back", free_bytes() > with + kBytes / 2);
  close(second);
  note_bool("fd.last_close_gives_bytes_back", free_bytes() > with + kBytes / 2);
}

void record_other_sorts() {
  Ptr address = 0;
  must(call("cuMemAllocAsync", 11020, &address, 4 * kMega, Stream{nullptr}), "cuMemAllocAsync");
  must(call("cuCtxSynchronize", 2000), "cuCtxSynchronize");
  record_sort("async", address, 4 * kMega);
  must(call("cuMemFreeAsync", 11020, address, Stream{nullptr}), "cuMemFreeAsync");
  must(call("cuCtxSynchronize", 2000), "cuCtxSynchronize");

  must(call("cuMemAllocManaged", 6000, &address, kMega, 1u), "cuMemAllocManaged");
  record_sort("managed", address, kMega);
  free_plain(address);

  void* host = nullptr;
  must(call("cuMemHostAlloc", 2020, &host, kMega, 0u), "cuMemHostAlloc");
  record_sort("host", reinterpret_cast<Ptr>(host), kMega);
  must(call("cuMemFreeHost", 2000, host), "cuMemFreeHost");

  std::vector<char> some(2 * kMega);
  const Ptr pageable = (reinterpret_cast<Ptr>(some.data()) + 4095) / 4096 * 4096;
  record_sort("malloc", pageable, kMega);
  unsigned type = 77;
  int ordinal = 77;
  unsigned long long id = 77;
  Context context = &some;
  int which[] = {2, 9, 7, 1};
  void* data[] = {&type, &ordinal, &id, &context};
  note("malloc.batched", call("cuPointerGetAttributes", 7000, 4u, which, data, pageable));
  note("malloc.batched_memory_type", type);
  note("malloc.batched_device_ordinal", ordinal);
  note_bool("malloc.batched_rest_is_zero", id == 0 && context == nullptr);

  auto* const page = reinterpret_cast<char*>(pageable);
  must(call("cuMemHostRegister", 6050, static_cast<void*>(page), 16 * std::size_t{4096}, 0u), "cuMemHostRegister");
  note("register.twice", call("cuMemHostRegister", 6050, static_cast<void*>(page), 16 * std::size_t{4096}, 0u));
  note("register.inside", call("cuMemHostRegister", 6050, static_cast<void*>(page + 4096), std::size_t{8}, 0u));
  Ptr device = 0;
  must(call("cuMemHostGetDevicePointer", 3020, &device, static_cast<void*>(page), 0u), "cuMemHostGetDevicePointer");
  note_bool("register.device_pointer_is_host_pointer", device == pageable);
  note("register.memory_type", attribute<unsigned>(2, pageable));
  must(call("cuMemHostUnregister", 4000, static_cast<void*>(page)), "cuMemHostUnregister");
  note("register.unregister_twice", call("cuMemHostUnregister", 4000, static_cast<void*>(page)));
}

void record_vmm(bool capable, const std::string& sort) {
  Prop prop{};
  prop.type = 1;
  prop.handle_types = 1;
  prop.location = {1, 0};
  prop.rdma = capable ? 1 : 0;
  std::size_t step = 0;
  must(call("cuMemGetAllocationGranularity", 10020, &step, static_cast<const Prop*>(&prop), 0), "granularity");
  Handle first = 0;
  Handle second = 0;
  must(call("cuMemCreate", 10020, &first, step, static_cast<const Prop*>(&prop), 0ull), "cuMemCreate");
  must(call("cuMemCreate", 10020, &second, step, static_cast<const Prop*>(&prop), 0ull), "cuMemCreate");
  Ptr base = 0;
  must(call("cuMemAddressReserve", 10020, &base, 4 * step, std::size_t{0}, Ptr{0}, 0ull), "cuMemAddressReserve");
  note(sort + ".unmapped_memory_type", attribute<unsigned>(2, base));
  must(call("cuMemMap", 10020, base, step, std::size_t{0}, first, 0ull), "cuMemMap");
  must(call("cuMemMap", 10020, base + step, step, std::size_t{0}, second, 0ull), "cuMemMap");
  Access access{{1, 0}, 3};
  must(call("cuMemSetAccess", 10020, base, 2 * step, static_cast<const Access*>(&access), std::size_t{1}),
       "cuMemSetAccess");
  record_sort(sort, base, step);
  int fd = -1;
  note(sort + ".export_two_handles", export_answer(base, 2 * step, 0, &fd));
  note_bool(sort + ".two_handles_full_length", lseek(fd, 0, SEEK_END) == static_cast<off_t>(2 * step));
  close(fd);
  note(sort + ".export_into_the_unmapped", export_answer(base, 3 * step, 0));
  Ptr at = 0;
  std::size_t bytes = 0;
  must(call("cuMemGetAddressRange", 3020, &at, &bytes, base + step + 5), "cuMemGetAddressRange");
  note_bool(sort + ".range_is_one_handle", at == base + step && bytes == step);
  std::size_t whole = 0;
  must(call("cuPointerGetAttribute", 4000, static_cast<void*>(&whole), 12, base), "attribute 12");
  note_bool(sort + ".attribute_12_is_the_reservation", whole == 4 * step);
  const unsigned long long buffer = id_of(7, base);
  const unsigned long long block = id_of(20, base);
  must(call("cuMemUnmap", 10020, base, step), "cuMemUnmap");
  Handle third = 0;
  must(call("cuMemCreate", 10020, &third, step, static_cast<const Prop*>(&prop), 0ull), "cuMemCreate");
  must(call("cuMemMap", 10020, base, step, std::size_t{0}, third, 0ull), "cuMemMap");
  must(call("cuMemSetAccess", 10020, base, step, static_cast<const Access*>(&access), std::size_t{1}),
       "cuMemSetAccess");
  note_bool(sort + ".remap_changes_buffer_id", id_of(7, base) != buffer);
  note_bool(sort + ".remap_changes_block_id", id_of(20, base) != block);
  note(sort + ".free_reservation_while_mapped", call("cuMemAddressFree", 10020, base, 4 * step));
  must(call("cuMemUnmap", 10020, base, 2 * step), "cuMemUnmap");
  for (const Handle handle : {first, second, third}) must(call("cuMemRelease", 10020, handle), "cuMemRelease");
  must(call("cuMemAddressFree", 10020, base, 4 * step), "cuMemAddressFree");
}

void record_wrong_calls() {
  const Ptr a = make_plain(4096);
  char host[16] = {};
  note("copy.past_the_end", call("cuMemcpyHtoD", 3020, a + 16 * kMega, static_cast<const void*>(host), sizeof host));
  note("copy.nothing", call("cuMemcpyDtoD", 3020, a, a, std::size_t{0}));
  note("flush.owner", call("cuFlushGPUDirectRDMAWrites", 11030, 0, 100));
  note("flush.all_devices", call("cuFlushGPUDirectRDMAWrites", 11030, 0, 200));
  note("flush.unknown_scope", call("cuFlushGPUDirectRDMAWrites", 11030, 0, 5));
  unsigned value = 0;
  note("attribute.unknown", call("cuPointerGetAttribute", 4000, static_cast<void*>(&value), 99, a));
  void* event = nullptr;
  must(call("cuEventCreate", 2000, &event, 2u), "cuEventCreate");
  note("event.never_recorded", call("cuEventQuery", 2000, event));
  must(call("cuEventDestroy", 4000, event), "cuEventDestroy");
  free_plain(a);
  void* found = nullptr;
  int status = -1;
  note("proc_address.unknown",
       call("cuGetProcAddress", 12000, "cuNoSuchThing", &found, 13000, std::uint64_t{0}, &status));
  note("proc_address.unknown_status", status);
  note("proc_address.too_old",
       call("cuGetProcAddress", 12000, "cuMemGetHandleForAddressRange", &found, 11000, std::uint64_t{0}, &status));
  note("proc_address.too_old_status", status);
}

void record_pools() {
  PoolProps props{};
  props.type = 1;
  props.handle_types = 1;
  props.location = {1, 0};
  void* pool = nullptr;
  must(call("cuMemPoolCreate", 11020, &pool, static_cast<const PoolProps*>(&props)), "cuMemPoolCreate");
  int fd = -1;
  note("pool.export", call("cuMemPoolExportToShareableHandle", 11020, static_cast<void*>(&fd), pool, 1, 0ull));
  close(fd);
  void* standard = nullptr;
  must(call("cuDeviceGetDefaultMemPool", 11020, &standard, 0), "cuDeviceGetDefaultMemPool");
  note("pool.export_default",
       call("cuMemPoolExportToShareableHandle", 11020, static_cast<void*>(&fd), standard, 1, 0ull));
  note("pool.destroy_default", call("cuMemPoolDestroy", 11020, standard));
  must(call("cuMemPoolDestroy", 11020, pool), "cuMemPoolDestroy");
}

void record_child() {
  const pid_t child = fork();
  if (child == 0) {
    int count = 0;
    const int answer = call("cuDeviceGetCount", 2000, &count);
    _exit(answer > 125 ? 125 : answer);
  }
  int status = 0;
  waitpid(child, &status, 0);
  note_bool("fork.child_is_refused", WIFEXITED(status) && WEXITSTATUS(status) != 0);
}

void print_answers() {
  char name[128] = {};
  int version = 0;
  must(call("cuDeviceGetName", 2000, name, static_cast<int>(sizeof name), 0), "cuDeviceGetName");
  must(call("cuDriverGetVersion", 2020, &version), "cuDriverGetVersion");
  std::printf("{\n  \"_from\": \"%s, driver %d\",\n", name, version);
  for (std::size_t i = 0; i < g_answers.size(); ++i)
    std::printf("  \"%s\": \"%s\"%s\n", g_answers[i].first.c_str(), g_answers[i].second.c_str(),
                i + 1 == g_answers.size() ? "" : ",");
  std::printf("}\n");
}

// With the word "leave": ends with memory that was not freed, memory that a descriptor holds, and a call that a driver
// without processors does not know.
int leave_things() {
  (void)make_plain(3 * kMega);
  const Ptr held = make_plain(5 * kMega);
  int fd = -1;
  must(export_answer(held, 4096, 0, &fd), "export");
  free_plain(held);
  const auto launch = reinterpret_cast<int (*)()>(dlsym(g_library, "cuLaunchKernel"));
  return launch == nullptr || launch() != 801 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  g_library = dlopen("libcuda.so.1", RTLD_NOW);
  if (g_library == nullptr) {
    std::fprintf(stderr, "record: %s\n", dlerror());
    return 1;
  }
  must(call("cuInit", 2000, 0u), "cuInit");
  Context context = nullptr;
  must(call("cuDevicePrimaryCtxRetain", 7000, &context, 0), "cuDevicePrimaryCtxRetain");
  must(call("cuCtxSetCurrent", 4000, context), "cuCtxSetCurrent");
  if (argc == 2 && std::strcmp(argv[1], "leave") == 0) return leave_things();
  record_devices();
  record_contexts(context);
  record_plain();
  record_small();
  record_ids();
  record_fd_keeps_memory();
  record_other_sorts();
  record_vmm(false, "vmm");
  record_vmm(true, "vmm_rdma");
  record_wrong_calls();
  record_pools();
  record_child();
  print_answers();
  return 0;
}
