// SPDX-License-Identifier: Apache-2.0
// What strait adds to the vendor's own calls on CUDA memory: recognising a pointer, making it reachable for a NIC, and
// moving it through host memory. Needs a GPU, or the software one of `strait run --accelerators cuda:1`, and says
// which.
//
//   device_memory classify     a malloc'd pointer, a device pointer
//   device_memory register     export, register with the software ConnectX, deregister, close
//   device_memory staged [KIB] 64 MiB from device to device through host memory, beside both legs alone; in pieces of
//                              KIB
//
// Prints one line of JSON a row. The bare calls and ours alternate in one process; ratios are of neighbours.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "buffer/built_in.hpp"
#include "buffer/providers.hpp"
#include "export/through_host.hpp"
#include "soft/nic/engine.hpp"
#include "workload.hpp"

namespace bench {
namespace {

namespace buffer = strait::buffer;
using Pointer = std::uint64_t;

constexpr int kTurns = 21;

struct Bare {  // the driver's own calls, as a program would make them
  int (*attributes)(unsigned, int*, void**, Pointer) = nullptr;
  int (*range_handle)(void*, Pointer, std::size_t, int, unsigned long long) = nullptr;
  int (*retain)(void**, int) = nullptr;
  int (*set_current)(void*) = nullptr;
  int (*copy_in)(Pointer, const void*, std::size_t, void*) = nullptr;
  int (*copy_out)(void*, Pointer, std::size_t, void*) = nullptr;
  int (*stream)(void**, unsigned) = nullptr;
  int (*synchronize)(void*) = nullptr;
  int (*host_alloc)(void**, std::size_t, unsigned) = nullptr;
};

Bare find_bare() {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) give_up("there is no libcuda.so.1");
  Bare bare;
  const auto find = [&](auto& into, const char* name) {
    into = reinterpret_cast<std::remove_reference_t<decltype(into)>>(dlsym(library, name));
    if (into == nullptr) give_up(std::string("libcuda.so.1 has no ") + name);
  };
  find(bare.attributes, "cuPointerGetAttributes");
  find(bare.range_handle, "cuMemGetHandleForAddressRange");
  find(bare.retain, "cuDevicePrimaryCtxRetain");
  find(bare.set_current, "cuCtxSetCurrent");
  find(bare.copy_in, "cuMemcpyHtoDAsync_v2");
  find(bare.copy_out, "cuMemcpyDtoHAsync_v2");
  find(bare.stream, "cuStreamCreate");
  find(bare.synchronize, "cuStreamSynchronize");
  find(bare.host_alloc, "cuMemHostAlloc");
  void* context = nullptr;
  if (bare.retain(&context, 0) != 0 || bare.set_current(context) != 0) give_up("no primary context of device 0");
  return bare;
}

// Both in turn; the median of each and of the ratios.
struct Compared {
  double bare = 0, ours = 0, ratio = 0, low = 0, high = 0;
};
double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}
template <class First, class Second>
Compared compare(std::uint64_t rounds, First bare, Second ours) {
  std::vector<double> a, b, ratios;
  const auto time = [&](auto& run) {
    const std::uint64_t start = now_ns();
    for (std::uint64_t i = 0; i < rounds; ++i) run(i);
    return static_cast<double>(now_ns() - start) / static_cast<double>(rounds);
  };
  for (int turn = 0; turn < kTurns; ++turn) {
    const double x = time(bare);
    const double y = time(ours);
    if (turn < 3) continue;  // warm
    a.push_back(x);
    b.push_back(y);
    ratios.push_back(y / x);
  }
  std::vector<double> sorted = ratios;
  std::sort(sorted.begin(), sorted.end());
  return {median(a), median(b), median(ratios), sorted[sorted.size() / 10], sorted[sorted.size() * 9 / 10]};
}

void print(const char* what, const char* unit, const Compared& c, const std::string& device) {
  std::printf(
      "{\"what\": \"%s\", \"device\": \"%s\", \"unit\": \"%s\", \"bare\": %.2f, \"strait\": %.2f, \"ratio\": %.3f, "
      "\"p10\": %.3f, \"p90\": %.3f}\n",
      what, device.c_str(), unit, c.bare, c.ours, c.ratio, c.low, c.high);
}

struct World {
  Bare bare;
  std::unique_ptr<buffer::Providers> all;
  buffer::Provider* cuda = nullptr;
  std::string name;
};

World open_world() {
  World world;
  std::vector<buffer::Plugin> plugins;
  plugins.push_back(buffer::use_plugin(buffer::built_in_provider("cuda")).value());
  auto opened = buffer::Providers::open(std::move(plugins));
  if (!opened) give_up(opened.error().text);
  world.all = std::move(*opened);
  world.cuda = world.all->providers().back().get();
  const buffer::Device& device = world.cuda->devices().front();
  world.name = device.description + (device.software ? " (software)" : "");
  world.bare = find_bare();
  return world;
}

void classify(World& world) {
  // What the provider asks in one call: type, managed, context.
  const auto ask = [&](Pointer pointer) {
    int names[] = {2, 8, 1};
    unsigned type = 0;
    unsigned managed = 0;
    void* context = nullptr;
    void* data[] = {&type, &managed, &context};
    return world.bare.attributes(3, names, data, pointer);
  };
  std::vector<char> plain(1 << 20);
  const auto host = reinterpret_cast<Pointer>(plain.data());
  const auto spread = [](std::uint64_t i) { return i * 4096 & 0xff000; };
  print("classify malloc", "ns",
        compare(
            20'000, [&](std::uint64_t i) { (void)ask(host + spread(i)); },
            [&](std::uint64_t i) { (void)world.cuda->classify(host + spread(i)); }),
        world.name);
  // And with what the kernel says about the mapping, which a Node asks besides.
  print("classify malloc, all providers and the kernel", "ns",
        compare(
            20'000, [&](std::uint64_t i) { (void)ask(host + spread(i)); },
            [&](std::uint64_t i) { (void)world.all->classify(plain.data() + spread(i), 64); }),
        world.name);
  const auto memory = world.all->allocate("cuda:0", 1 << 20);
  if (!memory) give_up(memory.error().text);
  const Pointer device = memory->range().address;
  print("classify device memory", "ns",
        compare(
            20'000, [&](std::uint64_t i) { (void)ask(device + spread(i)); },
            [&](std::uint64_t i) {
              (void)world.all->classify({device + spread(i), 64});
            }),
        world.name);
}

void register_rows(World& world) {
  constexpr std::uint64_t kBytes = 4 << 20;
  const auto memory = world.all->allocate("cuda:0", kBytes);
  if (!memory) give_up(memory.error().text);
  const auto port = world.cuda->memory_port();
  if (!port) give_up(port.error().text);
  auto engine = strait::soft::nic::Engine::open({});
  if (!engine) give_up(engine.error().text);
  const std::uint32_t pd = (*engine)->alloc_pd();
  print("export, register, deregister, close", "ns",
        compare(
            200,
            [&](std::uint64_t) {
              int fd = -1;
              if (world.bare.range_handle(&fd, memory->range().address, kBytes, 1, 0) != 0) give_up("no export");
              close(fd);
            },
            [&](std::uint64_t) {
              const auto fd = world.cuda->export_fd(memory->range());
              if (!fd) give_up(fd.error().text);
              strait_nic_mr_request request{};
              request.struct_size = sizeof request;
              request.pd = pd;
              request.access = STRAIT_NIC_LOCAL_WRITE | STRAIT_NIC_REMOTE_WRITE | STRAIT_NIC_REMOTE_READ;
              request.fd = fd->fd;
              request.fd_offset = fd->offset;
              request.address = memory->range().address;
              request.length_bytes = kBytes;
              request.port = &*port;
              const auto key = (*engine)->register_memory(request);
              if (!key) give_up(key.error().text);
              if (!(*engine)->deregister_memory(key->lkey)) give_up("the key does not go");
              world.cuda->close_fd(fd->fd);
            }),
        world.name);
}

void staged(World& world, std::uint64_t piece_bytes) {
  constexpr std::uint64_t kBytes = 64 << 20;
  const auto from = world.all->allocate("cuda:0", kBytes);
  const auto to = world.all->allocate("cuda:0", kBytes);
  if (!from || !to) give_up("no device memory");
  void* pinned = nullptr;
  void* stream = nullptr;
  if (world.bare.host_alloc(&pinned, kBytes, 0) != 0 || world.bare.stream(&stream, 1) != 0) give_up("no pinned memory");
  const auto source = world.all->classify(from->range()).value();
  const auto target = world.all->classify(to->range()).value();
  std::vector<unsigned char> pattern(kBytes), got(kBytes);
  for (std::size_t i = 0; i < kBytes; ++i) pattern[i] = static_cast<unsigned char>(i * 7 + (i >> 12));
  const auto deadline = [] { return strait::sys::Deadline::after_ns(30'000'000'000); };
  if (!world.all->copy(from->data(), pattern.data(), kBytes, deadline())) give_up("the source is not filled");
  strait::exports::HostRelay relay(*world.all, piece_bytes);
  const auto run = [&](std::uint64_t) {
    const auto done = relay.copy(target, source, deadline());
    if (!done) give_up(done.error().text);
  };
  const auto out = compare(
      1,
      [&](std::uint64_t) {
        (void)world.bare.copy_out(pinned, from->range().address, kBytes, stream);
        (void)world.bare.synchronize(stream);
      },
      run);
  const auto in = compare(
      1,
      [&](std::uint64_t) {
        (void)world.bare.copy_in(to->range().address, pinned, kBytes, stream);
        (void)world.bare.synchronize(stream);
      },
      run);
  if (!world.all->copy(got.data(), to->data(), kBytes, deadline()) || got != pattern) give_up("the bytes are wrong");
  const auto gb_s = [](Compared c) {
    return Compared{kBytes / c.bare, kBytes / c.ours, 1 / c.ratio, 1 / c.high, 1 / c.low};
  };
  print("staged, beside device to host alone", "GB/s", gb_s(out), world.name);
  print("staged, beside host to device alone", "GB/s", gb_s(in), world.name);
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  bench::World world = bench::open_world();
  if (what == "classify") {
    bench::classify(world);
  } else if (what == "register") {
    bench::register_rows(world);
  } else if (what == "staged") {
    const std::uint64_t kib = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0;
    bench::staged(world, kib == 0 ? strait::exports::HostRelay::kPieceBytes : kib << 10);
  } else {
    bench::give_up("device_memory classify | register | staged");
  }
  return 0;
}
