// SPDX-License-Identifier: Apache-2.0
// The same transfers by libfabric's shm provider: RMA writes, completions read from the completion queue.
//
//   fabric_transfer latency|rate|bandwidth [workload options] [delivery=0|1] [virtual=0|1]
//
// delivery=1 asks for completions that mean "the target's memory is written", which strait's always mean; the
// provider's default only says that the source may be reused. virtual=0 asks for offsets instead of virtual addresses.
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>

#include "transfer.hpp"

namespace bench {
namespace {

void check(std::int64_t code, const char* what) {
  if (code < 0) give_up(std::string(what) + ": " + fi_strerror(static_cast<int>(-code)));
}

class FabricTransport {
 public:
  // Not promised by libfabric, but so in the shm provider, which copies forward; ucx_perftest relies on the same.
  static constexpr bool kLastWordLast = true;

  FabricTransport(const Workload& w, Meeting* meeting, int side) : workload_(w) {
    open(w);
    allocate(w, meeting, side);
    std::size_t length = sizeof meeting->name[side];
    check(fi_getname(&endpoint_->fid, meeting->name[side], &length), "fi_getname");
    meet(meeting, side);
    if (fi_av_insert(addresses_, meeting->name[1 - side], 1, &peer_, 0, nullptr) != 1)
      give_up("fi_av_insert refused the peer");
    for (std::uint32_t r = 0; r < w.regions; ++r) remote_base_[r] = meeting->base[1 - side][r];
    meet(meeting, side);
  }
  ~FabricTransport() {
    fi_close(&endpoint_->fid);
    for (fid_mr* region : registered_) fi_close(&region->fid);
    fi_close(&addresses_->fid);
    fi_close(&completions_->fid);
    fi_close(&domain_->fid);
    fi_close(&fabric_->fid);
    fi_freeinfo(info_);
    for (std::uint8_t* bytes : memory_) std::free(bytes);
  }
  FabricTransport(const FabricTransport&) = delete;
  FabricTransport& operator=(const FabricTransport&) = delete;

  void post(Place from, Place to) {
    const std::uint8_t* bytes = source(from.region) + from.offset;
    for (;;) {
      const ssize_t code = fi_write(endpoint_, bytes, workload_.size_bytes, descriptors_[from.region], peer_,
                                    remote_base_[to.region] + to.offset, target_key(to.region), nullptr);
      if (code == 0) break;
      if (code != -FI_EAGAIN) check(code, "fi_write");
      progress();
    }
    ++under_way_;
  }
  void progress() {
    fi_cq_entry entries[16];
    const ssize_t got = fi_cq_read(completions_, entries, 16);
    if (got > 0) {
      under_way_ -= static_cast<std::uint32_t>(got);
    } else if (got != -FI_EAGAIN) {
      check(got, "fi_cq_read");
    }
  }
  void reap_down_to(std::uint32_t n) {
    while (under_way_ > n) {
      progress();
      if (under_way_ > n) patience_.spent();
    }
    patience_.again();
  }
  std::uint8_t* source(std::uint32_t r) { return memory_[2 * r]; }
  std::uint8_t* target(std::uint32_t r) { return memory_[2 * r + 1]; }
  void load_source(std::uint32_t r, const std::uint8_t* bytes) {
    std::memcpy(source(r), bytes, workload_.region_bytes);
  }
  void read_target(std::uint32_t r, std::uint8_t* bytes) { std::memcpy(bytes, target(r), workload_.region_bytes); }
  std::string path() {
    return std::string("libfabric ") + info_->fabric_attr->prov_name + (virtual_ ? ", virtual addresses" : ", offsets");
  }

 private:
  static std::uint64_t target_key(std::uint32_t r) { return 1000 + r; }

  void open(const Workload& w) {
    fi_info* hints = fi_allocinfo();
    hints->caps = FI_RMA | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->mr_mode = w.option("virtual", "1") == "1" ? FI_MR_VIRT_ADDR : 0;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;  // no locks: the program has one thread
    hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
    hints->fabric_attr->prov_name = strdup("shm");
    if (w.option("delivery", "0") == "1") hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
    check(fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints, &info_), "no shm provider (fi_getinfo)");
    fi_freeinfo(hints);
    virtual_ = (info_->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
    check(fi_fabric(info_->fabric_attr, &fabric_, nullptr), "fi_fabric");
    check(fi_domain(fabric_, info_, &domain_, nullptr), "fi_domain");
    fi_cq_attr cq{};
    cq.format = FI_CQ_FORMAT_CONTEXT;
    cq.size = 4096;
    check(fi_cq_open(domain_, &cq, &completions_, nullptr), "fi_cq_open");
    fi_av_attr av{};
    av.type = FI_AV_TABLE;
    check(fi_av_open(domain_, &av, &addresses_, nullptr), "fi_av_open");
    check(fi_endpoint(domain_, info_, &endpoint_, nullptr), "fi_endpoint");
    check(fi_ep_bind(endpoint_, &completions_->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
    check(fi_ep_bind(endpoint_, &addresses_->fid, 0), "fi_ep_bind");
    check(fi_enable(endpoint_), "fi_enable");
  }

  void allocate(const Workload& w, Meeting* meeting, int side) {
    const std::uint64_t length = (w.region_bytes + 4095) / 4096 * 4096;
    for (std::uint32_t i = 0; i < 2 * w.regions; ++i) {
      auto* bytes = static_cast<std::uint8_t*>(std::aligned_alloc(4096, length));
      if (bytes == nullptr) give_up("out of memory");
      std::memset(bytes, 0, length);
      memory_.push_back(bytes);
      const bool is_target = i % 2 == 1;
      fid_mr* region = nullptr;
      check(fi_mr_reg(domain_, bytes, length, is_target ? FI_REMOTE_WRITE : FI_WRITE, 0,
                      is_target ? target_key(i / 2) : i / 2, 0, &region, nullptr),
            "fi_mr_reg");
      registered_.push_back(region);
      if (!is_target) descriptors_.push_back(fi_mr_desc(region));
      if (is_target) meeting->base[side][i / 2] = virtual_ ? reinterpret_cast<std::uint64_t>(bytes) : 0;
    }
  }

  const Workload& workload_;
  fi_info* info_ = nullptr;
  fid_fabric* fabric_ = nullptr;
  fid_domain* domain_ = nullptr;
  fid_cq* completions_ = nullptr;
  fid_av* addresses_ = nullptr;
  fid_ep* endpoint_ = nullptr;
  fi_addr_t peer_ = 0;
  std::vector<std::uint8_t*> memory_;  // source, target, source, ...
  std::vector<fid_mr*> registered_;
  std::vector<void*> descriptors_;
  std::uint64_t remote_base_[Meeting::kMaxRegions] = {};
  std::uint32_t under_way_ = 0;
  bool virtual_ = false;
  Patience patience_;
};

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  const bench::Workload workload = bench::parse_workload(argc, argv);
  bench::Meeting* meeting = nullptr;
  const int side = bench::split(workload, &meeting);
  {
    bench::FabricTransport transport(workload, meeting, side);
    bench::run_transfer(workload, meeting, side, transport);
    bench::meet(meeting, side);
  }
  if (side == 0) bench::join();
  return 0;
}
