// SPDX-License-Identifier: Apache-2.0
// Our NIC outside the guest against the kernel's rdma_rxe inside it: every operation, begun by either side.
#include "interop.hpp"

namespace strait::lab {
namespace {

class Interop : public InteropTest, public testing::WithParamInterface<Wire> {
 protected:
  void SetUp() override { start(GetParam()); }
  // Around the packet's size, with 0 to 3 bytes of padding, and of many packets.
  [[nodiscard]] std::vector<std::uint32_t> sizes() const {
    const std::uint32_t p = GetParam().pmtu_bytes;
    return {1, 2, 3, 4, 61, p - 1, p, p + 1, 3 * p - 2, 40'001};
  }
};

INSTANTIATE_TEST_SUITE_P(Lab, Interop,
                         testing::Values(Wire{Family::v4, 1024}, Wire{Family::v6, 1024}, Wire{Family::v4, 4096},
                                         Wire{Family::v6, 4096}),
                         [](const auto& test) { return test.param.name(); });

TEST_P(Interop, writes) {
  ASSERT_GOT_MOVED(ends, connected());
  write_both_ways(ends, 0);
  for (const std::uint32_t bytes : sizes()) write_both_ways(ends, bytes);
  write_imm_both_ways(ends, 0);
  for (const std::uint32_t bytes : sizes()) write_imm_both_ways(ends, bytes);
}

TEST_P(Interop, reads) {
  ASSERT_GOT_MOVED(ends, connected());
  read_both_ways(ends, 0);
  for (const std::uint32_t bytes : sizes()) read_both_ways(ends, bytes);
}

TEST_P(Interop, sends) {
  ASSERT_GOT_MOVED(ends, connected());
  for (const bool immediate : {false, true}) {
    send_both_ways(ends, 0, immediate);
    for (const std::uint32_t bytes : sizes()) send_both_ways(ends, bytes, immediate);
  }
}

TEST_P(Interop, atomics) {
  ASSERT_GOT_MOVED(ends, connected());
  for (int i = 0; i < 3; ++i) add_and_swap_both_ways(ends);
}

// Nobody acknowledges: the sender is done before the bytes are there, and only a receive tells of them.
TEST_P(Interop, unreliable) {
  ASSERT_GOT_MOVED(ends, connected({.reliable = false}));
  for (const std::uint32_t bytes : sizes()) {
    send_both_ways(ends, bytes, bytes % 2 == 0);
    write_imm_both_ways(ends, bytes);
  }
}

TEST_P(Interop, invalidates) {
  ASSERT_GOT_MOVED(ends, connected());
  post_receive(ends, 200'000, 8192);
  RxeWork work = theirs("send_inval", 0, 3001);
  work.rkey = side_->rkey();
  work.seed = 5;
  expect_theirs(ends, work);
  const auto here = side_->wait(*ends.near);
  ASSERT_TRUE(here);
  EXPECT_EQ(here->opcode, m::CqeOpcode::responder_send_inval);
  EXPECT_EQ(here->imm, side_->rkey()) << "the key that is gone";
  expect_bytes_here(200'000, 3001, 5);
  expect_theirs(ends, theirs("write", 0, 8, 0), 10);  // IBV_WC_REM_ACCESS_ERR

  // rxe lets nobody invalidate the memory of its users: it acknowledges the message, and fails its own receive.
  ASSERT_GOT_MOVED(other, connected());
  EXPECT_DONE(rxe_->receive(other.far.id, 3, 0, 8192));
  Wqe wqe{.opcode = m::Opcode::send_inval};
  wqe.imm = __builtin_bswap32(other.far.rkey);
  expect_ours(other, wqe);
  theirs_done(other, 3, 9);  // IBV_WC_REM_INV_REQ_ERR
  ASSERT_GOT(state, rxe_->state(other.far.id));
  EXPECT_EQ(state, "ERR");
}

TEST_P(Interop, datagrams) {
  ASSERT_GOT_MOVED(ends, datagrams());
  for (const std::uint32_t bytes : {0u, 1u, 2u, 3u, 4u, 999u, GetParam().pmtu_bytes}) datagram_both_ways(ends, bytes);
  // A wrong key: gone without a trace but in the counters.
  RxeWork work = theirs("send", 0, 8);
  work.to = RxeRemote{.gid = wire_.address().gid, .qpn = ends.near->qpn, .psn = 0, .qkey = 5, .more = {}};
  expect_theirs(ends, work);
  datagram_both_ways(ends, 100);
  EXPECT_EQ(side_->drops(roce::Drop::bad_qkey), 1u);
}

// Many at once in both directions, so that requests, responses and acknowledgements mix on the wire.
TEST_P(Interop, both_at_once) {
  ASSERT_GOT_MOVED(ends, connected());
  constexpr std::uint32_t kBytes = 9'001;
  constexpr std::uint64_t kStep = 10'000;
  constexpr std::uint64_t kRounds = 8;
  for (std::uint64_t i = 0; i < kRounds; ++i) {
    fill(side_->memory(i * kStep, kBytes), 1000 + i);                   // what we write
    fill(side_->memory(200'000 + i * kStep, kBytes), 2000 + i);         // what they read
    EXPECT_DONE(rxe_->fill(ends.far.id, i * kStep, kBytes, 3000 + i));  // what we read
  }
  for (std::uint64_t i = 0; i < kRounds; ++i) {
    ends.near->post(ours(m::Opcode::rdma_write, i * kStep, kBytes, ends, 200'000 + i * kStep));
    ends.near->post(ours(m::Opcode::rdma_read, 400'000 + i * kStep, kBytes, ends, i * kStep));
    EXPECT_DONE(rxe_->post(ends.far.id, theirs("read", 400'000 + i * kStep, kBytes, 200'000 + i * kStep)));
    RxeWork work = theirs("write", 600'000 + i * kStep, kBytes, 600'000 + i * kStep);
    work.seed = 4000 + i;
    EXPECT_DONE(rxe_->post(ends.far.id, work));
  }
  for (std::uint64_t i = 0; i < 2 * kRounds; ++i) {
    ours_done(ends);
    theirs_done(ends, 7);
  }
  for (std::uint64_t i = 0; i < kRounds; ++i) {
    expect_bytes_there(ends, 200'000 + i * kStep, kBytes, 1000 + i);
    expect_bytes_there(ends, 400'000 + i * kStep, kBytes, 2000 + i);
    expect_bytes_here(400'000 + i * kStep, kBytes, 3000 + i);
    expect_bytes_here(600'000 + i * kStep, kBytes, 4000 + i);
  }
}

// ---- What tshark says
// ------------------------------------------------------------------------------------------------

// What tshark shows of the file; a tshark that fails says so. It does not guess what a payload is.
std::string tshark(const std::string& file, const std::string& filter) {
  const std::string command = "HOME=" + Inside::folder() +
                              " tshark $(tshark -G heuristic-decodes 2>/dev/null |"
                              " sed -n 's/^infiniband.payload\\t\\([^\\t]*\\).*/--disable-protocol \\1/p')"
                              " -o infiniband.identify_payload:FALSE"
                              " -o ip.check_checksum:TRUE -o udp.check_checksum:TRUE"
                              " -r '" +
                              file + "' -Y '" + filter + "' 2>/dev/null";
  std::string text;
  FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return "cannot run " + command;
  char piece[4096];
  for (std::size_t n; (n = std::fread(piece, 1, sizeof piece, pipe)) != 0;) text.append(piece, n);
  if (const int status = ::pclose(pipe); status != 0) text += fmt::format("'{}' ended with {}", command, status);
  return text;
}
// Comments are expert notes too, of the least severity.
constexpr const char* kObjection = "(_ws.malformed or _ws.expert.severity > 0x00100000)";

// Frames in one of qemu's captures, which are in the old format of pcap.
std::size_t frames_in(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  std::size_t frames = 0;
  for (std::size_t at = 24; at + 16 <= bytes.size(); ++frames) {
    std::uint32_t kept = 0;
    std::memcpy(&kept, bytes.data() + at + 8, sizeof kept);
    at += 16 + kept;
  }
  return frames;
}

class Captured : public InteropTest, public testing::WithParamInterface<Wire> {};
INSTANTIATE_TEST_SUITE_P(Lab, Captured, testing::Values(Wire{Family::v4, 1024}, Wire{Family::v6, 1024}),
                         [](const auto& test) { return test.param.name(); });

TEST_P(Captured, for_tshark) {
  capture_ = Inside::folder() + "/" + GetParam().name() + ".pcapng";
  start(GetParam());
  if (HasFatalFailure()) return;
  const std::size_t before = frames_in(Inside::link_capture());
  {
    ASSERT_GOT_MOVED(ends, connected());
    ASSERT_GOT_MOVED(datagram, datagrams());
    write_both_ways(ends, 3001);
    read_both_ways(ends, 3002);
    send_both_ways(ends, 3003, true);
    write_imm_both_ways(ends, 5);
    add_and_swap_both_ways(ends);
    datagram_both_ways(datagram, 61);
    // An answer that is an error, too.
    Wqe wrong = ours(m::Opcode::rdma_write, 0, 8, ends, 0);
    wrong.rkey ^= 0x100;
    expect_ours(ends, wrong, m::Syndrome::remote_access);
  }
  const PacketCounts counts = side_->counts();
  EXPECT_EQ(side_->drops(roce::Drop::bad_icrc), 0u);
  side_.reset();  // writes what it still holds
  // The engine's own capture: everything it counted is there, and nothing to object to.
  const std::string all = tshark(capture_, "infiniband.bth");
  EXPECT_EQ(static_cast<std::uint64_t>(std::count(all.begin(), all.end(), '\n')),
            counts.packets_sent + counts.packets_received)
      << all;
  EXPECT_EQ(tshark(capture_, kObjection), "");
  EXPECT_EQ(tshark(capture_, "not infiniband.bth"), "");
  const char* const here = GetParam().family == Family::v4 ? "ip.dst == 198.51.100.1" : "ipv6.dst == fd00:db8::1";
  const char* const there = GetParam().family == Family::v4 ? "ip.dst == 198.51.100.2" : "ipv6.dst == fd00:db8::2";
  EXPECT_EQ(tshark(capture_, fmt::format("not ({} or {})", here, there)), "");
  // qemu's: the frames as they were. rxe sends IPv6 without a UDP checksum, which tshark does not like.
  const auto on_link = [&](const std::string& what) {
    return tshark(Inside::link_capture(),
                  fmt::format("frame.number > {} and udp.dstport == 4791 and {}", before, what));
  };
  EXPECT_NE(on_link("infiniband.bth"), "");
  EXPECT_EQ(on_link("not infiniband.bth"), "");
  EXPECT_EQ(on_link(fmt::format("{} and not (udp.checksum.zero and {})", kObjection, here)), "");
  if (GetParam().family == Family::v6) {
    EXPECT_NE(on_link(kObjection), "") << "it can object";
  }
  EXPECT_EQ(on_link(fmt::format("{} and (ip.checksum.status == 0 or udp.checksum.status == 0)", there)), "");
}

}  // namespace
}  // namespace strait::lab
