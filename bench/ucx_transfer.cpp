// SPDX-License-Identifier: Apache-2.0
// The same transfers by UCX's protocol layer, with the same loops and places: ucx_perftest only ever writes to one
// place.
//
//   ucx_transfer latency|rate|bandwidth|get|fetch_add|send_latency|send_bandwidth [workload options]
//                [tls=posix,self]
//
// The memory is UCX's own, which both sides map: puts to other memory become messages there, whatever tls says. As in
// ucx_perftest, a put is complete when UCX says so, which means that the source may be reused.
#include <ucp/api/ucp.h>

#include "operations.hpp"

namespace bench {
namespace {

void check(ucs_status_t status, const char* what) {
  if (status != UCS_OK) give_up(std::string(what) + ": " + ucs_status_string(status));
}

// Requests as UCX hands them out: null is complete.
ucs_status_ptr_t checked(ucs_status_ptr_t request, const char* what) {
  if (UCS_PTR_IS_ERR(request)) [[unlikely]]
    check(UCS_PTR_STATUS(request), what);
  return request;
}

constexpr ucp_tag_t kTag = 0x5717;

class UcxTransport {
 public:
  using Handle = ucs_status_ptr_t;
  static constexpr bool kLastWordLast = true;  // memory is written forward; ucx_perftest relies on the same

  UcxTransport(const Workload& w, Meeting* meeting, int side)
      : workload_(w), transports_(w.option("tls", "posix,self")) {
    open();
    allocate();
    exchange(meeting, side);
  }
  ~UcxTransport() {
    wait(checked(ucp_ep_close_nb(endpoint_, UCP_EP_CLOSE_MODE_FLUSH), "ucp_ep_close_nb"));
    for (ucp_rkey_h key : keys_) ucp_rkey_destroy(key);
    for (const Memory& memory : memory_) ucp_mem_unmap(context_, memory.handle);
    ucp_worker_destroy(worker_);
    ucp_cleanup(context_);
  }
  UcxTransport(const UcxTransport&) = delete;
  UcxTransport& operator=(const UcxTransport&) = delete;

  void post(Place from, Place to) {
    Handle request = checked(ucp_put_nbx(endpoint_, source(from.region) + from.offset, workload_.size_bytes,
                                         remote_base_[to.region] + to.offset, keys_[to.region], &plain_),
                             "ucp_put_nbx");
    if (request == nullptr) return;
    under_way_.push_back(request);
  }
  void progress() { ucp_worker_progress(worker_); }
  void reap_down_to(std::uint32_t n) {
    while (under_way_.size() - reaped_ > n) wait(under_way_[reaped_++]);
    if (reaped_ == under_way_.size() && reaped_ != 0) {
      under_way_.clear();
      reaped_ = 0;
    }
  }
  std::uint8_t* source(std::uint32_t r) { return memory_[2 * r].bytes; }
  std::uint8_t* target(std::uint32_t r) { return memory_[2 * r + 1].bytes; }
  void load_source(std::uint32_t r, const std::uint8_t* bytes) {
    std::memcpy(source(r), bytes, workload_.region_bytes);
  }
  void read_target(std::uint32_t r, std::uint8_t* bytes) { std::memcpy(bytes, target(r), workload_.region_bytes); }
  std::string path() { return "UCX " + std::string(ucp_get_version_string()) + ", " + transports_; }

  void get(Place into, Place from) {
    wait(checked(ucp_get_nbx(endpoint_, target(into.region) + into.offset, workload_.size_bytes,
                             remote_base_[from.region] + from.offset, keys_[from.region], &plain_),
                 "ucp_get_nbx"));
  }
  std::uint64_t fetch_add(Place at, std::uint64_t add) {
    std::uint64_t before = 0;
    adding_.reply_buffer = &before;
    wait(checked(ucp_atomic_op_nbx(endpoint_, UCP_ATOMIC_OP_ADD, &add, 1, remote_base_[at.region] + at.offset,
                                   keys_[at.region], &adding_),
                 "ucp_atomic_op_nbx"));
    return before;
  }
  Handle send(Place from) {
    return checked(ucp_tag_send_nbx(endpoint_, source(from.region) + from.offset, workload_.size_bytes, kTag, &plain_),
                   "ucp_tag_send_nbx");
  }
  Handle receive(Place into) {
    return checked(ucp_tag_recv_nbx(worker_, target(into.region) + into.offset, workload_.size_bytes, kTag,
                                    ~ucp_tag_t{0}, &plain_),
                   "ucp_tag_recv_nbx");
  }
  void wait(Handle request) {
    if (request == nullptr) return;
    ucs_status_t status = ucp_request_check_status(request);
    while (status == UCS_INPROGRESS) {
      ucp_worker_progress(worker_);
      status = ucp_request_check_status(request);
      patience_.spent();
    }
    patience_.again();
    check(status, "request");
    ucp_request_free(request);
  }
  void take_back(Handle request) {
    if (request == nullptr) return;
    ucp_request_cancel(worker_, request);
    while (ucp_request_check_status(request) == UCS_INPROGRESS) ucp_worker_progress(worker_);
    ucp_request_free(request);
  }

 private:
  struct Memory {
    std::uint8_t* bytes;
    ucp_mem_h handle;
  };

  void open() {
    ucp_config_t* config = nullptr;
    check(ucp_config_read(nullptr, nullptr, &config), "ucp_config_read");
    check(ucp_config_modify(config, "TLS", transports_.c_str()), "UCX_TLS");
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_RMA | UCP_FEATURE_AMO64 | UCP_FEATURE_TAG;
    check(ucp_init(&params, config, &context_), "ucp_init");
    ucp_config_release(config);
    ucp_worker_params_t worker{};
    worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    worker.thread_mode = UCS_THREAD_MODE_SINGLE;
    check(ucp_worker_create(context_, &worker, &worker_), "ucp_worker_create");
    adding_.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER;
    adding_.datatype = ucp_dt_make_contig(8);
  }

  void allocate() {
    const std::uint64_t length = (workload_.region_bytes + 4095) / 4096 * 4096;
    for (std::uint32_t i = 0; i < 2 * workload_.regions; ++i) {
      Memory memory{nullptr, nullptr};
      ucp_mem_map_params_t params{};
      params.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS;
      params.length = length;
      params.flags = UCP_MEM_MAP_ALLOCATE;
      check(ucp_mem_map(context_, &params, &memory.handle), "ucp_mem_map");
      ucp_mem_attr_t attributes{};
      attributes.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS;
      check(ucp_mem_query(memory.handle, &attributes), "ucp_mem_query");
      memory.bytes = static_cast<std::uint8_t*>(attributes.address);
      std::memset(memory.bytes, 0, length);
      memory_.push_back(memory);
    }
  }

  // What the other side has to know: a worker's address and a key for each region.
  void exchange(Meeting* meeting, int side) {
    Letter out;
    ucp_address_t* address = nullptr;
    std::size_t length = 0;
    check(ucp_worker_get_address(worker_, &address, &length), "ucp_worker_get_address");
    out.add(address, length);
    ucp_worker_release_address(worker_, address);
    for (std::uint32_t r = 0; r < workload_.regions; ++r) {
      void* key = nullptr;
      check(ucp_rkey_pack(context_, memory_[2 * r + 1].handle, &key, &length), "ucp_rkey_pack");
      out.add(key, length);
      ucp_rkey_buffer_release(key);
      meeting->base[side][r] = reinterpret_cast<std::uint64_t>(target(r));
    }
    out.leave(meeting->letter[side]);
    meet(meeting, side);
    Letter in(meeting->letter[1 - side]);
    const std::vector<std::uint8_t> there = in.next();
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    params.address = reinterpret_cast<const ucp_address_t*>(there.data());
    check(ucp_ep_create(worker_, &params, &endpoint_), "ucp_ep_create");
    for (std::uint32_t r = 0; r < workload_.regions; ++r) {
      ucp_rkey_h key = nullptr;
      check(ucp_ep_rkey_unpack(endpoint_, in.next().data(), &key), "ucp_ep_rkey_unpack");
      keys_.push_back(key);
      remote_base_[r] = meeting->base[1 - side][r];
    }
    meet(meeting, side);
  }

  // Pieces of bytes, one after the other, each with its length before it.
  class Letter {
   public:
    Letter() = default;
    explicit Letter(const std::uint8_t (&from)[Meeting::kLetterBytes]) : bytes_(std::begin(from), std::end(from)) {}
    void add(const void* piece, std::uint64_t length) {
      const auto* const size = reinterpret_cast<const std::uint8_t*>(&length);
      bytes_.insert(bytes_.end(), size, size + sizeof length);
      const auto* const at = static_cast<const std::uint8_t*>(piece);
      bytes_.insert(bytes_.end(), at, at + length);
    }
    void leave(std::uint8_t (&into)[Meeting::kLetterBytes]) const {
      if (bytes_.size() > sizeof into) give_up("UCX's addresses and keys are longer than was thought");
      std::copy(bytes_.begin(), bytes_.end(), into);
    }
    std::vector<std::uint8_t> next() {
      std::uint64_t length = 0;
      std::memcpy(&length, bytes_.data() + read_, sizeof length);
      read_ += sizeof length;
      const auto from = bytes_.begin() + static_cast<std::ptrdiff_t>(read_);
      read_ += length;
      return {from, from + static_cast<std::ptrdiff_t>(length)};
    }

   private:
    std::vector<std::uint8_t> bytes_;
    std::size_t read_ = 0;
  };

  const Workload& workload_;
  std::string transports_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucp_ep_h endpoint_ = nullptr;
  std::vector<Memory> memory_;  // source, target, source, ...
  std::vector<ucp_rkey_h> keys_;
  std::uint64_t remote_base_[Meeting::kMaxRegions] = {};
  std::vector<Handle> under_way_;
  std::size_t reaped_ = 0;
  ucp_request_param_t plain_{};
  ucp_request_param_t adding_{};
  Patience patience_;
};

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  const bench::Workload workload = bench::parse_workload(argc, argv);
  bench::Meeting* meeting = nullptr;
  const int side = bench::split(workload, &meeting);
  {
    bench::UcxTransport transport(workload, meeting, side);
    if (bench::is_put(workload.test)) {
      bench::run_transfer(workload, meeting, side, transport);
    } else {
      bench::run_operations(workload, meeting, side, transport);
    }
    bench::meet(meeting, side);
  }
  if (side == 0) bench::join();
  return 0;
}
