// SPDX-License-Identifier: Apache-2.0
// Context: one open of /dev/infiniband/uverbsN, and everything that was made through it. Closing it destroys all.
//
//   methods.cpp          what each method takes                    context.cpp         finding it, opening, closing
//   context_query.cpp    questions about device, port, GIDs        context_memory.cpp  domains, registrations
//   context_cq.cpp       completion queues and channels            context_qp.cpp      queue pairs
//   context_srq.cpp      shared receive queues                     context_xrc.cpp     XRC domains and targets
//   context_ah.cpp       address handles                           context_window.cpp  memory windows
//   context_dm.cpp       memory of the device
//   context_driver.cpp   methods that only mlx5 has                context_write.cpp   commands of the older kind,
//   devx.cpp, devx_memory.cpp, devx_events.cpp                                         carried by INVOKE_WRITE
//
// Every handler returns 0 or -errno, and leaves nothing behind when it fails.
#pragma once

#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "soft/host/device.hpp"
#include "soft/uverbs/device.hpp"
#include "soft/uverbs/objects.hpp"
#include "soft/uverbs/request.hpp"
#include "sys/fd.hpp"
#include "sys/mapping.hpp"

namespace strait::soft::uverbs {

class Firmware;
class WriteCall;

class Context final : public host::File {
 public:
  // `pages`: what the program's descriptor is of (pages.hpp).
  explicit Context(std::shared_ptr<Device> device, sys::Fd pages = {})
      : device_(std::move(device)), pages_(std::move(pages)) {}
  ~Context() override;

  long ioctl(unsigned long request, void* argument) override;
  // The same, for who has an address instead of a pointer.
  [[nodiscard]] int call(std::uint64_t argument);

  using Handler = int (Context::*)(Request&);
  struct Method {
    std::uint16_t object;
    std::uint16_t method;
    std::span<const AttributeSpec> attributes;
    Handler handler;
    bool before_context = false;  // also before GET_CONTEXT
  };
  using WriteHandler = int (Context::*)(WriteCall&);
  struct WriteMethod {
    std::uint32_t command;
    std::size_t in_bytes;   // the least
    std::size_t out_bytes;  // the least room
    WriteHandler handler;
    bool before_context = false;
  };

 private:
  friend struct Tables;
  // context.cpp
  [[nodiscard]] int get_context(Request& request);
  [[nodiscard]] int query_context(Request& request);
  [[nodiscard]] int alloc_async(Request& request);
  [[nodiscard]] mlx5_ib_alloc_ucontext_resp describe(std::uint32_t doorbells) const;
  void write_clock();

  // context_driver.cpp
  [[nodiscard]] int query_pd(Request& request);
  [[nodiscard]] int query_driver_port(Request& request);
  [[nodiscard]] int alloc_uar(Request& request);
  [[nodiscard]] int destroy_uar(Request& request);

  // context_query.cpp
  [[nodiscard]] int query_port(Request& request);
  [[nodiscard]] int query_gid_table(Request& request);
  [[nodiscard]] int query_gid_entry(Request& request);
  [[nodiscard]] int query_device(WriteCall& call);
  [[nodiscard]] int ex_query_device(WriteCall& call);

  // context_write.cpp
  [[nodiscard]] int invoke_write(Request& request);

  // context_memory.cpp
  [[nodiscard]] int alloc_pd(WriteCall& call);
  [[nodiscard]] int destroy_pd(Request& request);
  [[nodiscard]] int reg_mr(WriteCall& call);
  [[nodiscard]] int rereg_mr(WriteCall& call);
  [[nodiscard]] int reg_dmabuf_mr(Request& request);
  [[nodiscard]] int query_mr(Request& request);
  [[nodiscard]] int advise_mr(Request& request);
  [[nodiscard]] int destroy_mr(Request& request);
  [[nodiscard]] int describe_mr(const Mr& mr, int fd, std::uint64_t fd_offset, strait_nic_mr_request& wanted);
  [[nodiscard]] int make_mr(Mr& mr, int fd, std::uint64_t fd_offset);
  [[nodiscard]] int drop_mr(Mr& mr);
  [[nodiscard]] int import_address(Mr& mr);

  // context_window.cpp
  [[nodiscard]] int alloc_mw(WriteCall& call);
  [[nodiscard]] int destroy_mw(Request& request);

  // context_dm.cpp
  [[nodiscard]] int alloc_dm(Request& request);
  [[nodiscard]] int free_dm(Request& request);
  [[nodiscard]] int query_dm(Request& request);
  [[nodiscard]] int reg_dm_mr(Request& request);
  [[nodiscard]] bool find_room(Dm& dm);

  // context_cq.cpp
  [[nodiscard]] int create_channel(WriteCall& call);
  [[nodiscard]] int create_cq(Request& request);
  [[nodiscard]] int destroy_cq(Request& request);
  [[nodiscard]] int resize_cq(WriteCall& call);
  [[nodiscard]] std::shared_ptr<Channel> find_channel(std::int64_t fd);

  // context_qp.cpp
  [[nodiscard]] int create_qp(Request& request);
  [[nodiscard]] int destroy_qp(Request& request);
  [[nodiscard]] int modify_qp(WriteCall& call);
  [[nodiscard]] int ex_modify_qp(WriteCall& call);
  [[nodiscard]] int apply(const ib_uverbs_modify_qp& wanted, std::uint32_t known);
  [[nodiscard]] int query_qp(WriteCall& call);
  [[nodiscard]] int destroy(Qp& qp);

  // context_xrc.cpp
  [[nodiscard]] int open_xrcd(WriteCall& call);
  [[nodiscard]] int destroy_xrcd(Request& request);
  [[nodiscard]] int create_target(Request& request);
  [[nodiscard]] int open_qp(WriteCall& call);

  // context_srq.cpp
  [[nodiscard]] int create_srq(Request& request);
  [[nodiscard]] int destroy_srq(Request& request);
  [[nodiscard]] int modify_srq(WriteCall& call);
  [[nodiscard]] int query_srq(WriteCall& call);

  // context_ah.cpp
  [[nodiscard]] int create_ah(WriteCall& call);
  [[nodiscard]] int destroy_ah(Request& request);
  [[nodiscard]] int check_port_and_source(std::uint8_t port, bool global, std::uint8_t sgid_index) const;

  // devx.cpp
  [[nodiscard]] int devx_other(Request& request);
  [[nodiscard]] int devx_create(Request& request);
  [[nodiscard]] int devx_destroy(Request& request);
  [[nodiscard]] int devx_modify(Request& request);
  [[nodiscard]] int devx_query(Request& request);
  [[nodiscard]] int devx_query_uar(Request& request);
  [[nodiscard]] int devx_query_eqn(Request& request);
  [[nodiscard]] int need_devx();
  [[nodiscard]] Firmware firmware();
  // devx_memory.cpp
  [[nodiscard]] int umem_reg(Request& request);
  [[nodiscard]] int umem_dereg(Request& request);
  // devx_events.cpp
  [[nodiscard]] int devx_alloc_events(Request& request);
  [[nodiscard]] int devx_subscribe(Request& request);

  // Opened by the first object that needs it. 0 or -errno.
  [[nodiscard]] int need_engine();
  void trap_pages();

  std::shared_ptr<Device> device_;
  sys::Fd pages_;  // invalid: of a test
  sys::Mapping clock_;
  std::mutex mutex_;  // one call at a time
  bool opened_ = false;
  bool devx_ = false;             // opened for it
  std::uint8_t cqe_version_ = 0;  // 1: completions name the program's own index of a queue
  nic::Engine* engine_ = nullptr;
  Objects objects_;
  std::shared_ptr<Channel> async_;
  std::vector<std::shared_ptr<Channel>> channels_;  // for completions
  struct DevxChannel {
    std::shared_ptr<Channel> channel;
    bool with_data = false;
  };
  std::vector<DevxChannel> devx_channels_;
};

// Of a registration: whether these rights go together. 0 or -errno.
[[nodiscard]] int check_access(std::uint32_t access);

// What `failed` of a registration by descriptor is to a program. -errno.
[[nodiscard]] int dmabuf_errno(int failed, bool is_dmabuf);

// What a failure of the engine is to a program.
[[nodiscard]] int errno_of(const Error& error);

}  // namespace strait::soft::uverbs
