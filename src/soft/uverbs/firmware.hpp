// SPDX-License-Identifier: Apache-2.0
// Firmware: what answers command mailboxes. It makes the same objects that verbs calls make, out of memory that the
// program chose (umem), and tells of the device what it holds programs to.
//
//   firmware.cpp       which command goes where                firmware_caps.cpp    capabilities
//   firmware_cq.cpp    domains and completion queues           firmware_qp.cpp      making queue pairs
//   firmware_memory.cpp  keys, receives that are shared        firmware_modify.cpp  their states
//
// Everything in a mailbox is the program's word, and every number in it must be of this program's own: a number of
// another context is one that does not exist.
#pragma once

#include <memory>

#include "soft/uverbs/device.hpp"
#include "soft/uverbs/devx_objects.hpp"
#include "soft/uverbs/mailbox.hpp"

namespace strait::soft::uverbs {

class Firmware {
 public:
  Firmware(Device& device, nic::Engine& engine, Objects& objects, std::uint8_t cqe_version)
      : device_(device), engine_(engine), objects_(objects), cqe_version_(cqe_version) {}

  // About the device.
  [[nodiscard]] Verdict run(Mailbox& mailbox);
  // Makes what `made` then holds; nothing when it is refused.
  [[nodiscard]] Verdict create(Mailbox& mailbox, DevxObject& made);
  // About a queue pair, whoever made it.
  [[nodiscard]] Verdict modify(const Mailbox& mailbox, Qp& qp);
  [[nodiscard]] Verdict query(Mailbox& mailbox, Object& object);
  // 0 or -errno.
  [[nodiscard]] int destroy(DevxObject& object);

 private:
  [[nodiscard]] Verdict query_caps(Mailbox& mailbox) const;
  [[nodiscard]] Verdict create_pd(DevxObject& made);
  [[nodiscard]] Verdict create_cq(const Mailbox& mailbox, DevxObject& made);
  [[nodiscard]] Verdict create_qp(const Mailbox& mailbox, DevxObject& made);
  [[nodiscard]] Verdict create_rmp(const Mailbox& mailbox, DevxObject& made);
  [[nodiscard]] Verdict create_mkey(const Mailbox& mailbox, DevxObject& made);
  [[nodiscard]] Verdict make_registration(const Mailbox& mailbox, Mr& mr, DevxObject& made);
  [[nodiscard]] Verdict make_alias(const Mailbox& mailbox, Mr& mr);
  [[nodiscard]] Verdict query_qp(Mailbox& mailbox, const Qp& qp, const DevxObject* made);

  struct Said {
    Kind kind;
    std::uint32_t context;  // in bits
    std::size_t bytes;
  };
  [[nodiscard]] Verdict query_said(Mailbox& mailbox, Object& object, const Said& said) const;

  // `bytes` from `offset` on in a umem of the program's; the object holds on to that umem.
  struct Place {
    std::byte* at = nullptr;
    Verdict verdict;
  };
  [[nodiscard]] Place place(DevxObject& made, std::uint32_t umem_id, std::uint64_t offset, std::uint64_t bytes,
                            bool writable);

  Device& device_;
  nic::Engine& engine_;
  Objects& objects_;
  std::uint8_t cqe_version_;
};

// What a failure of the engine is to a program.
[[nodiscard]] Verdict verdict_of(const Error& error);

}  // namespace strait::soft::uverbs
