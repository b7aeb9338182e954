// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>

#include "cxi.hpp"
#include "kernels.hpp"
#include "strait/cxi_queue.hpp"
#include "strait/device/cxi/lane.hpp"

namespace bench::gpu {
namespace {

namespace ki = strait::device::cxi;

constexpr std::uint64_t kPuts = 2000;
constexpr std::uint64_t kPutPatienceNs = 5000000000;

__global__ void counted_puts(ki::Queue queue, ki::LocalMemory from, ki::RemoteMemory to, Span* span) {
  ki::Lane<Sharing::one_thread> lane(queue);
  Watch watch;
  watch.start();
  std::uint64_t done = 0;
  while (done < kPuts && lane.put(from, 0, to, 8 * done, 8, {.arm = true}).ok() &&
         lane.flush(sd::Deadline::after_ns(kPutPatienceNs)).waited == sd::Waited::ok)
    ++done;
  watch.stop();
  *span = watch.span(done);
}

}  // namespace

Launches cxi_on_cassini(unsigned launches) {
  Launches out;
  const strait::Node node = strait::Node::open().value();
  const strait::CxiDevice near = strait::CxiDevice::open("local0").value();
  const strait::CxiDevice far = strait::CxiDevice::open("local1").value();
  HostPages source(4096), target(kPuts * 8);
  const auto queue = strait::CxiQueue::open(near, {.near = "cuda:0", .node = &node}).value();
  const auto owner = strait::CxiQueue::open(far, {}).value();
  const ki::LocalMemory from = queue.local({source.here(), source.size()}).value();
  const ki::RemoteMemory to = queue.remote(owner.expose({target.here(), target.size()}).value()).value();
  DeviceMemory span(sizeof(Span));
  for (unsigned i = 0; i <= launches; ++i) {
    const double bare = flag_trip_ns();
    counted_puts<<<1, 1>>>(queue.handle().value(), from, to, span.as<Span>());
    check(cudaDeviceSynchronize(), "the kernel");
    Span found{};
    check(cudaMemcpy(&found, span.as<void>(), sizeof found, cudaMemcpyDeviceToHost), "copy");
    if (found.posted != kPuts) throw std::runtime_error("a put did not complete");
    if (i == 0) continue;  // the first loads its kernel
    out.bare.push_back(bare);
    out.ours.push_back(static_cast<double>(found.end_ns - found.begin_ns) / static_cast<double>(found.posted));
  }
  return out;
}

}  // namespace bench::gpu
