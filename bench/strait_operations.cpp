// SPDX-License-Identifier: Apache-2.0
// Operations other than puts between two processes with libstrait, through its public API alone.
//
//   strait_operations get|fetch_add|send_latency|send_bandwidth [workload options] [options of strait_transport.hpp]
#include "operations.hpp"
#include "strait_transport.hpp"

namespace bench {
namespace {

constexpr std::int64_t kPatienceNs = 10'000'000'000;

// Posts, and waits for what was posted; gives up when either fails.
class StraitOperations : public StraitTransport {
 public:
  using Handle = strait_op;
  using StraitTransport::StraitTransport;

  void get(Place into, Place from) {
    const strait_slice slice = target_slice(into);
    strait_op op;
    check("get", strait_get(lane(), &slice, &remote(from.region), from.offset, nullptr, &op, &error_));
    wait(op);
  }
  std::uint64_t fetch_add(Place at, std::uint64_t add) {
    strait_op op;
    check("fetch_add", strait_fetch_add(lane(), &remote(at.region), at.offset, add, nullptr, &op, &error_));
    wait(op);
    return done_.value;
  }
  strait_op send(Place from) {
    const strait_slice slice = source_slice(from);
    strait_op op;
    check("send", strait_send(lane(), &slice, nullptr, &op, &error_));
    return op;
  }
  strait_op receive(Place into) {
    const strait_slice slice = target_slice(into);
    strait_op op;
    check("receive", strait_receive(lane(), &slice, &op, &error_));
    return op;
  }
  void wait(strait_op& op) {
    done_.struct_size = sizeof done_;
    check("wait", strait_wait(&op, kPatienceNs, &done_, &error_));
  }

 private:
  void check(const char* what, std::int32_t code) {
    if (code != STRAIT_OK) [[unlikely]]
      give_up(std::string(what) + ": " + error_.text);
  }
  strait_done done_{};
  strait_error error_{
      .struct_size = sizeof(strait_error), .code = 0, .sys_errno = 0, .syndrome = 0, .text = {}, .remedy = {}};
};

}  // namespace
}  // namespace bench

int main(int argc, char** argv) try {
  const bench::Workload workload = bench::parse_workload(argc, argv);
  bench::Meeting* meeting = nullptr;
  const int side = bench::split(workload, &meeting);
  {
    bench::StraitOperations transport(workload, meeting, side);
    bench::run_operations(workload, meeting, side, transport);
  }
  if (side == 0) bench::join();
  return 0;
} catch (const std::exception& failure) {
  bench::give_up(failure.what());
}
