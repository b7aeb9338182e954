// SPDX-License-Identifier: Apache-2.0
// A program with one mistake, which a Cassini does not mind until much later: the communication profile of a queue goes
// before the queue. With the word `right` it does the same in the other order. Ends without closing anything.
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cstdint>

#include "strait/wire/cxi.hpp"
#include "strait/wire/cxi_abi.hpp"

namespace wire = strait::wire::cxi;

namespace {

template <class Command>
bool send(int fd, Command& command) {
  command.op = Command::kOp;
  if (write(fd, &command, sizeof command) == static_cast<ssize_t>(sizeof command)) return true;
  perror("wrong: a command");
  return false;
}

template <class Response, class Command>
bool make(int fd, Command& command, Response& response) {
  command.resp = reinterpret_cast<std::uint64_t>(&response);
  return send(fd, command);
}

}  // namespace

int main(int count, char** words) {
  const bool right = count > 1 && strcmp(words[1], "right") == 0;
  const int fd = open("/dev/cxi0", O_RDWR | O_CLOEXEC);
  if (fd < 0) {
    perror("wrong: /dev/cxi0");
    return 1;
  }
  wire::LniAllocCmd lni_alloc{};
  wire::LniAllocResp lni{};
  lni_alloc.svc_id = 1;
  if (!make(fd, lni_alloc, lni)) return 1;
  wire::CpAllocCmd cp_alloc{};
  wire::CpAllocResp cp{};
  cp_alloc.lni = lni.lni;
  cp_alloc.vni = 1;
  cp_alloc.tc = wire::TrafficClass::best_effort;
  if (!make(fd, cp_alloc, cp)) return 1;
  wire::CqAllocCmd cq_alloc{};
  wire::CqAllocResp cq{};
  cq_alloc.lni = lni.lni;
  cq_alloc.opts.count = 64;
  cq_alloc.opts.flags = wire::kCqIsTx;
  cq_alloc.opts.lcid = cp.lcid;
  if (!make(fd, cq_alloc, cq)) return 1;
  wire::CqFreeCmd cq_free{};
  cq_free.cq = cq.cq;
  wire::CpFreeCmd cp_free{};
  cp_free.cp_hndl = cp.cp_hndl;
  if (right && !send(fd, cq_free)) return 1;
  if (!send(fd, cp_free)) return 1;
  if (!right && !send(fd, cq_free)) return 1;
  puts("wrong: done");
  return 0;
}
