// SPDX-License-Identifier: Apache-2.0
// Context: one open of /dev/infiniband/uverbsN, and everything that was made through it. Closing it destroys all.
//
//   methods.cpp          what each method takes                    context.cpp         finding it, opening, closing
//   context_query.cpp    questions about device, port, GIDs        context_memory.cpp  domains, registrations
//   context_cq.cpp       completion queues and channels            context_qp.cpp      queue pairs
//   context_srq.cpp      shared receive queues
//   context_ah.cpp       address handles                           context_write.cpp   commands of the older kind,
//                                                                                      carried by INVOKE_WRITE
//
// Every handler returns 0 or -errno, and leaves nothing behind when it fails.
#pragma once

#include <rdma/ib_user_verbs.h>

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "soft/host/device.hpp"
#include "soft/uverbs/device.hpp"
#include "soft/uverbs/objects.hpp"
#include "soft/uverbs/request.hpp"

namespace strait::soft::uverbs {

class WriteCall;

class Context final : public host::File {
 public:
  explicit Context(std::shared_ptr<Device> device) : device_(std::move(device)) {}
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
  void release(Qp& qp);

  // context_srq.cpp
  [[nodiscard]] int create_srq(Request& request);
  [[nodiscard]] int destroy_srq(Request& request);
  [[nodiscard]] int modify_srq(WriteCall& call);
  [[nodiscard]] int query_srq(WriteCall& call);

  // context_ah.cpp
  [[nodiscard]] int create_ah(WriteCall& call);
  [[nodiscard]] int destroy_ah(Request& request);
  [[nodiscard]] int check_port_and_source(std::uint8_t port, bool global, std::uint8_t sgid_index) const;

  // Opened by the first object that needs it. 0 or -errno.
  [[nodiscard]] int need_engine();

  std::shared_ptr<Device> device_;
  std::mutex mutex_;  // one call at a time
  bool opened_ = false;
  std::uint8_t cqe_version_ = 0;  // 1: completions name the program's own index of a queue
  nic::Engine* engine_ = nullptr;
  Objects objects_;
  std::shared_ptr<Channel> async_;
  std::vector<std::shared_ptr<Channel>> channels_;  // for completions
};

// What a failure of the engine is to a program.
[[nodiscard]] int errno_of(const Error& error);

}  // namespace strait::soft::uverbs
