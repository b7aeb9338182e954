// SPDX-License-Identifier: Apache-2.0
// Puts by UCX's transport layer: one copy by system call between private memories (cma), with the same loops and places
// as everybody. Its protocol layer does not use cma for puts, and ucx_perftest only ever writes to one place.
//
//   uct_transfer bandwidth [workload options] [huge=1]     huge=1: ask the kernel for huge pages, as ucx_perftest does
#include <sys/mman.h>
#include <ucs/async/async_fwd.h>
#include <uct/api/uct.h>

#include "transfer.hpp"

namespace bench {
namespace {

constexpr char kTransport[] = "cma";

void check(ucs_status_t status, const char* what) {
  if (status != UCS_OK) give_up(std::string(what) + ": " + ucs_status_string(status));
}

std::uint8_t* pages(std::uint64_t bytes, bool huge) {
  constexpr std::uint64_t kHuge = 2 << 20;
  const std::uint64_t length = (bytes + kHuge - 1) / kHuge * kHuge;
  void* const at = std::aligned_alloc(kHuge, length);
  if (at == nullptr) give_up("no memory");
  if (huge) (void)madvise(at, length, MADV_HUGEPAGE);
  std::memset(at, 0, length);
  return static_cast<std::uint8_t*>(at);
}

class UctTransport {
 public:
  UctTransport(const Workload& w, Meeting* meeting, int side) : workload_(w) {
    const bool huge = w.option("huge", "0") == "1";
    for (std::uint32_t r = 0; r < w.regions; ++r) {
      source_.push_back(pages(w.region_bytes, huge));
      target_.push_back(pages(w.region_bytes, huge));
    }
    open();
    connect(meeting, side);
  }
  ~UctTransport() {
    uct_ep_destroy(endpoint_);
    uct_iface_close(interface_);
    uct_worker_destroy(worker_);
    ucs_async_context_destroy(async_);
    uct_md_close(domain_);
    for (std::uint32_t r = 0; r < workload_.regions; ++r) {
      std::free(source_[r]);
      std::free(target_[r]);
    }
  }
  UctTransport(const UctTransport&) = delete;
  UctTransport& operator=(const UctTransport&) = delete;

  void post(Place from, Place to) {
    uct_iov_t piece{};
    piece.buffer = source(from.region) + from.offset;
    piece.length = workload_.size_bytes;
    piece.memh = UCT_MEM_HANDLE_NULL;
    piece.count = 1;
    ++ends_.count;
    ucs_status_t status = UCS_ERR_NO_RESOURCE;
    while ((status = uct_ep_put_zcopy(endpoint_, &piece, 1, there_[to.region] + to.offset, key_, &ends_)) ==
           UCS_ERR_NO_RESOURCE)
      progress();
    if (status == UCS_OK)
      --ends_.count;
    else if (status != UCS_INPROGRESS)
      check(status, "uct_ep_put_zcopy");
  }
  void progress() { uct_worker_progress(worker_); }
  void reap_down_to(std::uint32_t n) {
    Patience patience;
    while (static_cast<std::uint32_t>(ends_.count) > n) {
      progress();
      patience.spent();
    }
    check(ends_.status, "put");
  }
  std::uint8_t* source(std::uint32_t r) { return source_[r]; }
  std::uint8_t* target(std::uint32_t r) { return target_[r]; }
  void load_source(std::uint32_t r, const std::uint8_t* bytes) {
    std::memcpy(source_[r], bytes, workload_.region_bytes);
  }
  void read_target(std::uint32_t r, std::uint8_t* bytes) { std::memcpy(bytes, target_[r], workload_.region_bytes); }
  std::string path() { return std::string("UCX ") + kTransport; }

 private:
  void open() {
    ends_.func = [](uct_completion_t*) {};
    ends_.status = UCS_OK;
    uct_component_h* components = nullptr;
    unsigned count = 0;
    check(uct_query_components(&components, &count), "uct_query_components");
    uct_component_h found = nullptr;
    for (unsigned i = 0; i < count; ++i) {
      uct_component_attr_t attributes{};
      attributes.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME;
      check(uct_component_query(components[i], &attributes), "uct_component_query");
      if (std::string_view(attributes.name) == kTransport) found = components[i];
    }
    uct_release_component_list(components);
    if (found == nullptr) give_up("this UCX has no cma");
    uct_md_config_t* domain_config = nullptr;
    check(uct_md_config_read(found, nullptr, nullptr, &domain_config), "uct_md_config_read");
    check(uct_md_open(found, kTransport, domain_config, &domain_), "uct_md_open");
    uct_config_release(domain_config);
    check(ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK, &async_), "ucs_async_context_create");
    check(uct_worker_create(async_, UCS_THREAD_MODE_SINGLE, &worker_), "uct_worker_create");
    uct_iface_config_t* config = nullptr;
    check(uct_md_iface_config_read(domain_, kTransport, nullptr, nullptr, &config), "uct_md_iface_config_read");
    uct_iface_params_t params{};
    params.field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE;
    params.open_mode = UCT_IFACE_OPEN_MODE_DEVICE;
    params.mode.device.tl_name = kTransport;
    params.mode.device.dev_name = "memory";
    check(uct_iface_open(domain_, worker_, &params, config, &interface_), "uct_iface_open");
    uct_config_release(config);
    uct_iface_progress_enable(interface_, UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
  }

  void connect(Meeting* meeting, int side) {
    uct_iface_attr_t attributes{};
    check(uct_iface_query(interface_, &attributes), "uct_iface_query");
    const std::size_t device_bytes = attributes.device_addr_len;
    if (device_bytes + attributes.iface_addr_len > Meeting::kLetterBytes) give_up("UCX's addresses are too long");
    const auto device = [&](int of) { return reinterpret_cast<uct_device_addr_t*>(meeting->letter[of]); };
    const auto address = [&](int of) {
      return reinterpret_cast<uct_iface_addr_t*>(meeting->letter[of] + device_bytes);
    };
    check(uct_iface_get_device_address(interface_, device(side)), "uct_iface_get_device_address");
    check(uct_iface_get_address(interface_, address(side)), "uct_iface_get_address");
    for (std::uint32_t r = 0; r < workload_.regions; ++r)
      meeting->base[side][r] = reinterpret_cast<std::uint64_t>(target_[r]);
    meet(meeting, side);
    uct_ep_params_t params{};
    params.field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR | UCT_EP_PARAM_FIELD_IFACE_ADDR;
    params.iface = interface_;
    params.dev_addr = device(1 - side);
    params.iface_addr = address(1 - side);
    check(uct_ep_create(&params, &endpoint_), "uct_ep_create");
    for (std::uint32_t r = 0; r < workload_.regions; ++r) there_[r] = meeting->base[1 - side][r];
    meet(meeting, side);
  }

  const Workload& workload_;
  std::vector<std::uint8_t*> source_, target_;
  uct_md_h domain_ = nullptr;
  ucs_async_context_t* async_ = nullptr;
  uct_worker_h worker_ = nullptr;
  uct_iface_h interface_ = nullptr;
  uct_ep_h endpoint_ = nullptr;
  uct_completion_t ends_{};  // of all of them: it counts those under way, and what it calls when none is does nothing
  std::uint64_t there_[Meeting::kMaxRegions] = {};
  uct_rkey_t key_ = UCT_INVALID_RKEY;  // cma names memory by its address
};

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  const bench::Workload workload = bench::parse_workload(argc, argv);
  if (workload.test != bench::Test::bandwidth) bench::give_up("only bandwidth is measured here");
  bench::Meeting* meeting = nullptr;
  const int side = bench::split(workload, &meeting);
  {
    bench::UctTransport transport(workload, meeting, side);
    bench::run_transfer(workload, meeting, side, transport);
    bench::meet(meeting, side);
  }
  if (side == 0) bench::join();
  return 0;
}
