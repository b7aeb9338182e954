// SPDX-License-Identifier: Apache-2.0
// What the interop tests share: one guest for all of them, our NIC outside it anew for each, connected queue pairs.
#pragma once

#include "checks.hpp"
#include "interop_side.hpp"
#include "pattern.hpp"

namespace strait::lab {

namespace m = wire::mlx5;
using soft::nic::testing::Wqe;

// Two queue pairs that know each other: ours outside, rxe's inside.
struct Ends {
  std::unique_ptr<TestQueue> near;
  RxeQueue far;
};
struct EndsOptions {
  std::uint32_t rnr_retries = 7;
  std::int64_t ack_timeout_ns = 1'000'000'000;
  std::uint32_t retries = 7;
  std::string theirs{};  // of RxeRemote::more
  bool reliable = true;
};

class InteropTest : public testing::Test {
 protected:
  // Our NIC, and the guest's device opened for the same wire. False: the test has failed.
  void start(const Wire& wire, const std::string& sends = "", const std::string& arrives = "");
  void TearDown() override;

  [[nodiscard]] Result<Ends> connected(const EndsOptions& options = {});
  [[nodiscard]] Result<Ends> datagrams();

  // Our work request done, with that syndrome.
  void expect_ours(Ends& ends, const Wqe& wqe, m::Syndrome syndrome = m::Syndrome::none);
  // Theirs, with that status of ibv_wc_status.
  void expect_theirs(const Ends& ends, const RxeWork& work, int status = 0);
  void theirs_done(const Ends& ends, std::uint64_t wr, int status = 0);
  void ours_done(Ends& ends, m::Syndrome syndrome = m::Syndrome::none);

  [[nodiscard]] Wqe ours(m::Opcode opcode, std::uint64_t at, std::uint32_t bytes) const;
  [[nodiscard]] Wqe ours(m::Opcode opcode, std::uint64_t at, std::uint32_t bytes, const Ends& ends,
                         std::uint64_t far_at) const;
  [[nodiscard]] RxeWork theirs(const char* op, std::uint64_t at, std::uint32_t bytes) const;
  [[nodiscard]] RxeWork theirs(const char* op, std::uint64_t at, std::uint32_t bytes, std::uint64_t near_at) const;
  void post_receive(Ends& ends, std::uint64_t at, std::uint32_t bytes);

  void expect_bytes_here(std::uint64_t at, std::uint32_t bytes, std::uint64_t seed);
  void expect_bytes_there(const Ends& ends, std::uint64_t at, std::uint32_t bytes, std::uint64_t seed);

  // One message of a kind, both ways, every byte checked.
  void write_both_ways(Ends& ends, std::uint32_t bytes);
  void read_both_ways(Ends& ends, std::uint32_t bytes);
  void send_both_ways(Ends& ends, std::uint32_t bytes, bool immediate);
  void write_imm_both_ways(Ends& ends, std::uint32_t bytes);
  void add_and_swap_both_ways(Ends& ends);
  void datagram_both_ways(Ends& ends, std::uint32_t bytes);

  Wire wire_;
  std::string capture_;  // set before start()
  std::unique_ptr<Side> side_;
  RxeClient* rxe_ = nullptr;
  std::vector<std::uint64_t> far_ids_;
  std::uint64_t seed_ = 100;

 private:
  std::int64_t since_ns_ = 0;
};

// The guest of this program, booted by the first test that needs it.
class Inside {
 public:
  [[nodiscard]] static Result<Inside*> get();
  [[nodiscard]] static const std::string& folder();
  // Every frame of the link since the guest was booted, as qemu saw them.
  [[nodiscard]] static std::string link_capture() { return folder() + "/link.pcap"; }
  static void end();

  RxeClient& rxe() { return rxe_; }

 private:
  explicit Inside(std::unique_ptr<Guest> guest) : guest_(std::move(guest)), rxe_(*guest_) {}
  std::unique_ptr<Guest> guest_;
  RxeClient rxe_;
};

}  // namespace strait::lab
