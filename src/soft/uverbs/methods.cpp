// SPDX-License-Identifier: Apache-2.0
#include "soft/uverbs/methods.hpp"

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>

#include "soft/uverbs/write_call.hpp"

namespace strait::soft::uverbs {

namespace {

using A = AttributeSpec;
constexpr std::uint16_t kAny = 0xffff;
// Numbers that a program hands over as 8 bytes, whatever their size.
constexpr A number(std::uint16_t id, bool mandatory = true) {
  return {id, Form::input, mandatory, 1, 8};
}
constexpr A room(std::uint16_t id, std::uint16_t least, bool mandatory = true) {
  return {id, Form::output, mandatory, least, kAny};
}
constexpr A input(std::uint16_t id, std::uint16_t least, std::uint16_t known, bool mandatory = true) {
  return {id, Form::input, mandatory, least, known};
}
constexpr A handle(std::uint16_t id, Form form, Kind kind, bool mandatory = true) {
  return {id, form, mandatory, 0, 0, kind};
}
constexpr A descriptor(std::uint16_t id, bool mandatory = true) {
  return {id, Form::descriptor, mandatory};
}
// The driver's part. What is behind what we know is for the handler to judge.
constexpr A kDriverIn{UVERBS_ATTR_UHW_IN, Form::input, false, 0, kAny};
constexpr A kDriverOut{UVERBS_ATTR_UHW_OUT, Form::output, false, 0, kAny};

constexpr A kInvokeWrite[] = {input(UVERBS_ATTR_CORE_IN, 4, kAny, false), room(UVERBS_ATTR_CORE_OUT, 0, false),
                              number(UVERBS_ATTR_WRITE_CMD), kDriverIn, kDriverOut};
constexpr A kGetContext[] = {room(UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, 4, false),
                             room(UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, 8, false), kDriverIn, kDriverOut};
constexpr A kQueryContext[] = {room(UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS, 4, false),
                               room(UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT, 8, false), kDriverIn, kDriverOut};
constexpr A kQueryPort[] = {number(UVERBS_ATTR_QUERY_PORT_PORT_NUM),
                            room(UVERBS_ATTR_QUERY_PORT_RESP, sizeof(ib_uverbs_query_port_resp))};
constexpr A kQueryGidTable[] = {
    number(UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE), number(UVERBS_ATTR_QUERY_GID_TABLE_FLAGS, false),
    room(UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, 0), room(UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, 8)};
constexpr A kQueryGidEntry[] = {number(UVERBS_ATTR_QUERY_GID_ENTRY_PORT), number(UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX),
                                number(UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS),
                                room(UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, sizeof(ib_uverbs_gid_entry))};
constexpr A kAsyncAlloc[] = {descriptor(UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE)};
constexpr A kDestroyPd[] = {handle(UVERBS_ATTR_DESTROY_PD_HANDLE, Form::use, Kind::pd)};
constexpr A kDestroyMr[] = {handle(UVERBS_ATTR_DESTROY_MR_HANDLE, Form::use, Kind::mr)};
constexpr A kQueryMr[] = {handle(UVERBS_ATTR_QUERY_MR_HANDLE, Form::use, Kind::mr),
                          room(UVERBS_ATTR_QUERY_MR_RESP_LKEY, 4), room(UVERBS_ATTR_QUERY_MR_RESP_RKEY, 4),
                          room(UVERBS_ATTR_QUERY_MR_RESP_LENGTH, 8), room(UVERBS_ATTR_QUERY_MR_RESP_IOVA, 8, false)};
constexpr A kAdviseMr[] = {handle(UVERBS_ATTR_ADVISE_MR_PD_HANDLE, Form::use, Kind::pd),
                           number(UVERBS_ATTR_ADVISE_MR_ADVICE), number(UVERBS_ATTR_ADVISE_MR_FLAGS),
                           input(UVERBS_ATTR_ADVISE_MR_SGE_LIST, 16, kAny)};
constexpr A kRegDmabuf[] = {handle(UVERBS_ATTR_REG_DMABUF_MR_HANDLE, Form::make, Kind::mr),
                            handle(UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, Form::use, Kind::pd),
                            number(UVERBS_ATTR_REG_DMABUF_MR_OFFSET),
                            number(UVERBS_ATTR_REG_DMABUF_MR_LENGTH),
                            number(UVERBS_ATTR_REG_DMABUF_MR_IOVA),
                            descriptor(UVERBS_ATTR_REG_DMABUF_MR_FD),
                            number(UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS),
                            room(UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, 4),
                            room(UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, 4)};

constexpr A kCreateCq[] = {handle(UVERBS_ATTR_CREATE_CQ_HANDLE, Form::make, Kind::cq),
                           input(UVERBS_ATTR_CREATE_CQ_CQE, 4, 8),
                           number(UVERBS_ATTR_CREATE_CQ_USER_HANDLE),
                           descriptor(UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL, false),
                           input(UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, 4, 8),
                           number(UVERBS_ATTR_CREATE_CQ_FLAGS, false),
                           room(UVERBS_ATTR_CREATE_CQ_RESP_CQE, 4),
                           descriptor(UVERBS_ATTR_CREATE_CQ_EVENT_FD, false),
                           kDriverIn,
                           kDriverOut};
constexpr A kDestroyCq[] = {handle(UVERBS_ATTR_DESTROY_CQ_HANDLE, Form::use, Kind::cq),
                            room(UVERBS_ATTR_DESTROY_CQ_RESP, sizeof(ib_uverbs_destroy_cq_resp))};
constexpr A kCreateQp[] = {handle(UVERBS_ATTR_CREATE_QP_HANDLE, Form::make, Kind::qp),
                           handle(UVERBS_ATTR_CREATE_QP_XRCD_HANDLE, Form::use, Kind::xrcd, false),
                           handle(UVERBS_ATTR_CREATE_QP_PD_HANDLE, Form::use, Kind::pd, false),
                           handle(UVERBS_ATTR_CREATE_QP_SRQ_HANDLE, Form::use, Kind::srq, false),
                           handle(UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, Form::use, Kind::cq, false),
                           handle(UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, Form::use, Kind::cq, false),
                           handle(UVERBS_ATTR_CREATE_QP_IND_TABLE_HANDLE, Form::use, Kind::any, false),
                           number(UVERBS_ATTR_CREATE_QP_USER_HANDLE),
                           input(UVERBS_ATTR_CREATE_QP_CAP, sizeof(ib_uverbs_qp_cap), sizeof(ib_uverbs_qp_cap)),
                           number(UVERBS_ATTR_CREATE_QP_TYPE),
                           number(UVERBS_ATTR_CREATE_QP_FLAGS, false),
                           number(UVERBS_ATTR_CREATE_QP_SOURCE_QPN, false),
                           descriptor(UVERBS_ATTR_CREATE_QP_EVENT_FD, false),
                           room(UVERBS_ATTR_CREATE_QP_RESP_CAP, sizeof(ib_uverbs_qp_cap)),
                           room(UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, 4),
                           kDriverIn,
                           kDriverOut};
constexpr A kDestroyQp[] = {handle(UVERBS_ATTR_DESTROY_QP_HANDLE, Form::use, Kind::qp),
                            room(UVERBS_ATTR_DESTROY_QP_RESP, sizeof(ib_uverbs_destroy_qp_resp))};
constexpr A kCreateSrq[] = {handle(UVERBS_ATTR_CREATE_SRQ_HANDLE, Form::make, Kind::srq),
                            handle(UVERBS_ATTR_CREATE_SRQ_PD_HANDLE, Form::use, Kind::pd),
                            handle(UVERBS_ATTR_CREATE_SRQ_XRCD_HANDLE, Form::use, Kind::xrcd, false),
                            handle(UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE, Form::use, Kind::cq, false),
                            number(UVERBS_ATTR_CREATE_SRQ_USER_HANDLE),
                            input(UVERBS_ATTR_CREATE_SRQ_MAX_WR, 4, 8),
                            input(UVERBS_ATTR_CREATE_SRQ_MAX_SGE, 4, 8),
                            input(UVERBS_ATTR_CREATE_SRQ_LIMIT, 4, 8),
                            input(UVERBS_ATTR_CREATE_SRQ_MAX_NUM_TAGS, 4, 8, false),
                            number(UVERBS_ATTR_CREATE_SRQ_TYPE),
                            descriptor(UVERBS_ATTR_CREATE_SRQ_EVENT_FD, false),
                            room(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, 4),
                            room(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, 4),
                            room(UVERBS_ATTR_CREATE_SRQ_RESP_SRQ_NUM, 4, false),
                            kDriverIn,
                            kDriverOut};
constexpr A kDestroySrq[] = {handle(UVERBS_ATTR_DESTROY_SRQ_HANDLE, Form::use, Kind::srq),
                             room(UVERBS_ATTR_DESTROY_SRQ_RESP, sizeof(ib_uverbs_destroy_srq_resp))};
constexpr A kDestroyAh[] = {handle(UVERBS_ATTR_DESTROY_AH_HANDLE, Form::use, Kind::ah)};

}  // namespace

const Context::Method* Tables::find(std::uint32_t object_method) {
  using C = Context;
  static constexpr C::Method kMethods[] = {
      {UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE, kInvokeWrite, &C::invoke_write, true},
      {UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT, kGetContext, &C::get_context, true},
      {UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT, kQueryContext, &C::query_context},
      {UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT, kQueryPort, &C::query_port},
      {UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_TABLE, kQueryGidTable, &C::query_gid_table},
      {UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_ENTRY, kQueryGidEntry, &C::query_gid_entry},
      {UVERBS_OBJECT_ASYNC_EVENT, UVERBS_METHOD_ASYNC_EVENT_ALLOC, kAsyncAlloc, &C::alloc_async},
      {UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY, kDestroyPd, &C::destroy_pd},
      {UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY, kDestroyMr, &C::destroy_mr},
      {UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR, kQueryMr, &C::query_mr},
      {UVERBS_OBJECT_MR, UVERBS_METHOD_ADVISE_MR, kAdviseMr, &C::advise_mr},
      {UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR, kRegDmabuf, &C::reg_dmabuf_mr},
      {UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE, kCreateCq, &C::create_cq},
      {UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY, kDestroyCq, &C::destroy_cq},
      {UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE, kCreateQp, &C::create_qp},
      {UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY, kDestroyQp, &C::destroy_qp},
      {UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE, kCreateSrq, &C::create_srq},
      {UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_DESTROY, kDestroySrq, &C::destroy_srq},
      {UVERBS_OBJECT_AH, UVERBS_METHOD_AH_DESTROY, kDestroyAh, &C::destroy_ah},
  };
  for (const C::Method& method : kMethods) {
    if ((std::uint32_t{method.object} << 16 | method.method) == object_method) return &method;
  }
  return nullptr;
}

const Context::WriteMethod* Tables::find_write(std::uint64_t command) {
  using C = Context;
  constexpr std::uint32_t kEx = 0x80000000;
  static constexpr C::WriteMethod kCommands[] = {
      {IB_USER_VERBS_CMD_QUERY_DEVICE, sizeof(ib_uverbs_query_device), sizeof(ib_uverbs_query_device_resp),
       &C::query_device, true},
      {kEx | IB_USER_VERBS_EX_CMD_QUERY_DEVICE, sizeof(ib_uverbs_ex_query_device),
       offsetof(ib_uverbs_ex_query_device_resp, odp_caps), &C::ex_query_device},
      {IB_USER_VERBS_CMD_ALLOC_PD, sizeof(ib_uverbs_alloc_pd), sizeof(ib_uverbs_alloc_pd_resp), &C::alloc_pd},
      {IB_USER_VERBS_CMD_REG_MR, sizeof(ib_uverbs_reg_mr), sizeof(ib_uverbs_reg_mr_resp), &C::reg_mr},
      {IB_USER_VERBS_CMD_REREG_MR, sizeof(ib_uverbs_rereg_mr), sizeof(ib_uverbs_rereg_mr_resp), &C::rereg_mr},
      {IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, sizeof(ib_uverbs_create_comp_channel),
       sizeof(ib_uverbs_create_comp_channel_resp), &C::create_channel},
      {IB_USER_VERBS_CMD_RESIZE_CQ, sizeof(ib_uverbs_resize_cq), offsetof(ib_uverbs_resize_cq_resp, reserved),
       &C::resize_cq},
      {IB_USER_VERBS_CMD_MODIFY_SRQ, sizeof(ib_uverbs_modify_srq), 0, &C::modify_srq},
      {IB_USER_VERBS_CMD_QUERY_SRQ, sizeof(ib_uverbs_query_srq), sizeof(ib_uverbs_query_srq_resp), &C::query_srq},
      {IB_USER_VERBS_CMD_MODIFY_QP, sizeof(ib_uverbs_modify_qp), 0, &C::modify_qp},
      {kEx | IB_USER_VERBS_EX_CMD_MODIFY_QP, sizeof(ib_uverbs_modify_qp), sizeof(ib_uverbs_ex_modify_qp_resp),
       &C::ex_modify_qp},
      {IB_USER_VERBS_CMD_QUERY_QP, sizeof(ib_uverbs_query_qp), sizeof(ib_uverbs_query_qp_resp), &C::query_qp},
      {IB_USER_VERBS_CMD_CREATE_AH, sizeof(ib_uverbs_create_ah), sizeof(ib_uverbs_create_ah_resp), &C::create_ah},
  };
  for (const C::WriteMethod& method : kCommands) {
    if (method.command == command) return &method;
  }
  return nullptr;
}

}  // namespace strait::soft::uverbs
