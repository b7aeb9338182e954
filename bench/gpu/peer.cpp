// SPDX-License-Identifier: Apache-2.0
#include "peer.hpp"

#include <dlfcn.h>

#include <filesystem>

namespace bench::gpu {

const Peer& rdmaxcel() {
  static const Peer peer = [] {
    Peer out;
    const auto beside = std::filesystem::read_symlink("/proc/self/exe").replace_filename("libgpu_bench_rdmaxcel.so");
    void* const library = ::dlopen(beside.c_str(), RTLD_NOW | RTLD_LOCAL);  // for as long as the program runs
    if (library == nullptr) return out;
    out.post = reinterpret_cast<PeerPost>(::dlsym(library, "strait_bench_peer_post"));
    out.launch = reinterpret_cast<PeerLaunch>(::dlsym(library, "strait_bench_peer_launch"));
    return out;
  }();
  return peer;
}

}  // namespace bench::gpu
