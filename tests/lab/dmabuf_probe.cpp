// SPDX-License-Identifier: Apache-2.0
// Runs in the lab's guest: what the kernel answers when memory that a dma-buf names is to be registered with rxe. The
// verbs rail relies on exactly these answers; a kernel that changes one makes this fail first.
#include <infiniband/verbs.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>

#include "sys/mapping.hpp"
#include "sys/udmabuf.hpp"

namespace {

using strait::sys::Protect;

constexpr std::size_t kBytes = 1 << 20;
constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

int failures = 0;

const char* name_of(int error) {
  return error == 0 ? "ok" : strerrorname_np(error);
}

// Wrong answers are counted, not fatal: one run shows all of them.
void expect(std::string_view what, int wanted, int got) {
  const bool same = wanted == got;
  std::printf("%s %-44.*s %s", same ? "ok   " : "WRONG", static_cast<int>(what.size()), what.data(), name_of(got));
  if (!same) std::printf(" (wanted %s)", name_of(wanted));
  std::printf("\n");
  failures += same ? 0 : 1;
}

template <auto Close>
struct Closer {
  template <class T>
  void operator()(T* object) const {
    Close(object);
  }
};
using Device = std::unique_ptr<ibv_context, Closer<ibv_close_device>>;
using Domain = std::unique_ptr<ibv_pd, Closer<ibv_dealloc_pd>>;
using Region = std::unique_ptr<ibv_mr, Closer<ibv_dereg_mr>>;

Device open_device(std::string_view name) {
  const std::unique_ptr<ibv_device*, Closer<ibv_free_device_list>> list(ibv_get_device_list(nullptr));
  for (ibv_device** at = list.get(); at != nullptr && *at != nullptr; ++at)
    if (name == ibv_get_device_name(*at)) return Device(ibv_open_device(*at));
  return nullptr;
}

// The errno of a registration, 0 when it was made (and undone again).
template <class Register>
int answer(Register make) {
  errno = 0;
  const Region region(make());
  return region ? 0 : errno;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: dmabuf_probe DEVICE\n");
    return 2;
  }
  const Device device = open_device(argv[1]);
  const Domain domain(device ? ibv_alloc_pd(device.get()) : nullptr);
  if (!domain) {
    std::fprintf(stderr, "dmabuf_probe: cannot open %s: %s\n", argv[1], std::strerror(errno));
    return 2;
  }
  const auto memfd = strait::sys::make_sealed_memfd("probe", kBytes);
  const auto dmabuf = memfd ? strait::sys::make_udmabuf(memfd->get(), 0, kBytes) : memfd.error();
  if (!dmabuf) {
    std::fprintf(stderr, "dmabuf_probe: %s\n", dmabuf.error().explain().c_str());
    return 2;
  }
  const auto through_dmabuf = strait::sys::map_file(dmabuf->get(), 0, kBytes, Protect::read_write);
  const auto through_memfd = strait::sys::map_file(memfd->get(), 0, kBytes, Protect::read_write);
  if (!through_dmabuf || !through_memfd) {
    std::fprintf(stderr, "dmabuf_probe: a mapping was refused\n");
    return 2;
  }

  expect("ibv_reg_dmabuf_mr of a udmabuf", EOPNOTSUPP,
         answer([&] { return ibv_reg_dmabuf_mr(domain.get(), 0, kBytes, 0, dmabuf->get(), kAccess); }));
  expect("ibv_reg_mr of the udmabuf's mapping", EFAULT,
         answer([&] { return ibv_reg_mr(domain.get(), through_dmabuf->data(), kBytes, kAccess); }));
  expect("ibv_reg_mr of the memfd's mapping", 0,
         answer([&] { return ibv_reg_mr(domain.get(), through_memfd->data(), kBytes, kAccess); }));

  // The two mappings are the same pages: what a NIC writes through one is what the other's owner reads.
  std::fill_n(through_memfd->data(), kBytes, std::byte{0x5a});
  const bool same = std::all_of(through_dmabuf->data(), through_dmabuf->data() + kBytes,
                                [](std::byte byte) { return byte == std::byte{0x5a}; });
  expect("memfd and udmabuf are the same pages", 0, same ? 0 : EIO);
  return failures == 0 ? 0 : 1;
}
