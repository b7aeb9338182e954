// SPDX-License-Identifier: Apache-2.0
#include "soft/uverbs/methods.hpp"

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5_user_ioctl_cmds.h>

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
                               room(UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT, 8, false),
                               room(MLX5_IB_ATTR_QUERY_CONTEXT_RESP_UCTX, 0, false)};
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
constexpr A kQueryDriverPort[] = {number(MLX5_IB_ATTR_QUERY_PORT_PORT_NUM), room(MLX5_IB_ATTR_QUERY_PORT, 8)};
constexpr A kQueryPd[] = {handle(MLX5_IB_ATTR_QUERY_PD_HANDLE, Form::use, Kind::pd),
                          room(MLX5_IB_ATTR_QUERY_PD_RESP_PDN, 4)};
constexpr A kAllocUar[] = {handle(MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE, Form::make, Kind::uar),
                           number(MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE), room(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, 8),
                           room(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, 4),
                           room(MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, 4)};
constexpr A kDestroyUar[] = {handle(MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE, Form::use, Kind::uar)};
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
                            input(UVERBS_ATTR_REG_DMABUF_MR_FD, 4, 8),
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
constexpr A kAllocDm[] = {handle(UVERBS_ATTR_ALLOC_DM_HANDLE, Form::make, Kind::dm),
                          number(UVERBS_ATTR_ALLOC_DM_LENGTH),
                          input(UVERBS_ATTR_ALLOC_DM_ALIGNMENT, 4, 8),
                          room(MLX5_IB_ATTR_ALLOC_DM_RESP_START_OFFSET, 8, false),
                          room(MLX5_IB_ATTR_ALLOC_DM_RESP_PAGE_INDEX, 2, false),
                          number(MLX5_IB_ATTR_ALLOC_DM_REQ_TYPE, false)};
constexpr A kFreeDm[] = {handle(UVERBS_ATTR_FREE_DM_HANDLE, Form::use, Kind::dm)};
constexpr A kQueryDm[] = {handle(MLX5_IB_ATTR_QUERY_DM_REQ_HANDLE, Form::use, Kind::dm),
                          room(MLX5_IB_ATTR_QUERY_DM_RESP_START_OFFSET, 8),
                          room(MLX5_IB_ATTR_QUERY_DM_RESP_PAGE_INDEX, 2), room(MLX5_IB_ATTR_QUERY_DM_RESP_LENGTH, 8)};
constexpr A kRegDmMr[] = {handle(UVERBS_ATTR_REG_DM_MR_HANDLE, Form::make, Kind::mr),
                          number(UVERBS_ATTR_REG_DM_MR_OFFSET),
                          number(UVERBS_ATTR_REG_DM_MR_LENGTH),
                          handle(UVERBS_ATTR_REG_DM_MR_PD_HANDLE, Form::use, Kind::pd),
                          number(UVERBS_ATTR_REG_DM_MR_ACCESS_FLAGS),
                          handle(UVERBS_ATTR_REG_DM_MR_DM_HANDLE, Form::use, Kind::dm),
                          room(UVERBS_ATTR_REG_DM_MR_RESP_LKEY, 4),
                          room(UVERBS_ATTR_REG_DM_MR_RESP_RKEY, 4)};
constexpr A kDestroyMw[] = {handle(UVERBS_ATTR_DESTROY_MW_HANDLE, Form::use, Kind::mw)};
constexpr A kDestroyXrcd[] = {handle(UVERBS_ATTR_DESTROY_XRCD_HANDLE, Form::use, Kind::xrcd)};

// DevX: command mailboxes have at least a header, and so have their answers.
constexpr std::uint16_t kMailbox = 16;
constexpr A kDevxOther[] = {input(MLX5_IB_ATTR_DEVX_OTHER_CMD_IN, kMailbox, kAny),
                            room(MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT, kMailbox)};
constexpr A kDevxQueryUar[] = {input(MLX5_IB_ATTR_DEVX_QUERY_UAR_USER_IDX, 4, 8),
                               room(MLX5_IB_ATTR_DEVX_QUERY_UAR_DEV_IDX, 4)};
constexpr A kDevxQueryEqn[] = {input(MLX5_IB_ATTR_DEVX_QUERY_EQN_USER_VEC, 4, 8),
                               room(MLX5_IB_ATTR_DEVX_QUERY_EQN_DEV_EQN, 4)};
constexpr A kDevxSubscribe[] = {descriptor(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_HANDLE),
                                handle(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_OBJ_HANDLE, Form::use, Kind::any, false),
                                input(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_TYPE_NUM_LIST, 2, kAny),
                                input(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_NUM, 4, 8, false),
                                number(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_COOKIE, false)};
constexpr A kDevxCreate[] = {handle(MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE, Form::make, Kind::devx),
                             input(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN, kMailbox, kAny),
                             room(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, kMailbox)};
constexpr A kDevxDestroy[] = {handle(MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE, Form::use, Kind::devx)};
constexpr A kDevxModify[] = {handle(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE, Form::use, Kind::any),
                             input(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN, kMailbox, kAny),
                             room(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT, kMailbox)};
constexpr A kDevxQuery[] = {handle(MLX5_IB_ATTR_DEVX_OBJ_QUERY_HANDLE, Form::use, Kind::any),
                            input(MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_IN, kMailbox, kAny),
                            room(MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_OUT, kMailbox)};
constexpr A kUmemReg[] = {handle(MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE, Form::make, Kind::umem),
                          number(MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR),
                          number(MLX5_IB_ATTR_DEVX_UMEM_REG_LEN),
                          number(MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS),
                          room(MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID, 4),
                          number(MLX5_IB_ATTR_DEVX_UMEM_REG_PGSZ_BITMAP, false),
                          descriptor(MLX5_IB_ATTR_DEVX_UMEM_REG_DMABUF_FD, false)};
constexpr A kUmemDereg[] = {handle(MLX5_IB_ATTR_DEVX_UMEM_DEREG_HANDLE, Form::use, Kind::umem)};
constexpr A kDevxEvents[] = {descriptor(MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_HANDLE),
                             number(MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_FLAGS)};

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
      {UVERBS_OBJECT_DEVICE, MLX5_IB_METHOD_QUERY_PORT, kQueryDriverPort, &C::query_driver_port},
      {UVERBS_OBJECT_PD, MLX5_IB_METHOD_PD_QUERY, kQueryPd, &C::query_pd},
      {MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_ALLOC, kAllocUar, &C::alloc_uar},
      {MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_DESTROY, kDestroyUar, &C::destroy_uar},
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
      {UVERBS_OBJECT_MR, UVERBS_METHOD_DM_MR_REG, kRegDmMr, &C::reg_dm_mr},
      {UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC, kAllocDm, &C::alloc_dm},
      {UVERBS_OBJECT_DM, UVERBS_METHOD_DM_FREE, kFreeDm, &C::free_dm},
      {UVERBS_OBJECT_DM, MLX5_IB_METHOD_DM_QUERY, kQueryDm, &C::query_dm},
      {UVERBS_OBJECT_MW, UVERBS_METHOD_MW_DESTROY, kDestroyMw, &C::destroy_mw},
      {UVERBS_OBJECT_XRCD, UVERBS_METHOD_XRCD_DESTROY, kDestroyXrcd, &C::destroy_xrcd},
      {UVERBS_OBJECT_AH, UVERBS_METHOD_AH_DESTROY, kDestroyAh, &C::destroy_ah},
      {MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_OTHER, kDevxOther, &C::devx_other},
      {MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_QUERY_UAR, kDevxQueryUar, &C::devx_query_uar},
      {MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_QUERY_EQN, kDevxQueryEqn, &C::devx_query_eqn},
      {MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_SUBSCRIBE_EVENT, kDevxSubscribe, &C::devx_subscribe},
      {MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_CREATE, kDevxCreate, &C::devx_create},
      {MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_DESTROY, kDevxDestroy, &C::devx_destroy},
      {MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_MODIFY, kDevxModify, &C::devx_modify},
      {MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_QUERY, kDevxQuery, &C::devx_query},
      {MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_REG, kUmemReg, &C::umem_reg},
      {MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_DEREG, kUmemDereg, &C::umem_dereg},
      {MLX5_IB_OBJECT_DEVX_ASYNC_EVENT_FD, MLX5_IB_METHOD_DEVX_ASYNC_EVENT_FD_ALLOC, kDevxEvents,
       &C::devx_alloc_events},
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
      {IB_USER_VERBS_CMD_ALLOC_MW, sizeof(ib_uverbs_alloc_mw), sizeof(ib_uverbs_alloc_mw_resp), &C::alloc_mw},
      {IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, sizeof(ib_uverbs_create_comp_channel),
       sizeof(ib_uverbs_create_comp_channel_resp), &C::create_channel},
      {IB_USER_VERBS_CMD_RESIZE_CQ, sizeof(ib_uverbs_resize_cq), offsetof(ib_uverbs_resize_cq_resp, reserved),
       &C::resize_cq},
      {IB_USER_VERBS_CMD_OPEN_XRCD, sizeof(ib_uverbs_open_xrcd), sizeof(ib_uverbs_open_xrcd_resp), &C::open_xrcd},
      {IB_USER_VERBS_CMD_OPEN_QP, sizeof(ib_uverbs_open_qp), sizeof(ib_uverbs_create_qp_resp), &C::open_qp},
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
