// SPDX-License-Identifier: Apache-2.0
#include "interop.hpp"

namespace strait::lab {
namespace {

constexpr std::uint32_t kFirstPsn = 0xfffff0;  // wraps within every test
constexpr std::uint32_t kQkey = 0x11111111;    // the guest's

std::unique_ptr<Inside>& the_guest() {
  static std::unique_ptr<Inside> guest;
  return guest;
}

// Ends the guest before the program does, and looks at how it ended.
class EndOfGuest final : public testing::Environment {
 public:
  void TearDown() override { Inside::end(); }
};
const testing::Environment* const kEndOfGuest = testing::AddGlobalTestEnvironment(new EndOfGuest);

}  // namespace

const std::string& Inside::folder() {
  static const std::string name = [] {
    std::string pattern = (std::filesystem::temp_directory_path() / "strait-interop.XXXXXX").string();
    return ::mkdtemp(pattern.data()) == nullptr ? std::string() : pattern;
  }();
  return name;
}

Result<Inside*> Inside::get() {
  if (!the_guest()) {
    GuestOptions options;
    options.name = "interop";
    options.more = {"--carrier",        "dgram",  "--local",     folder() + "/guest", "--remote",
                    folder() + "/host", "--pcap", link_capture()};
    STRAIT_TRY(auto guest, Guest::boot(options));
    the_guest().reset(new Inside(std::move(guest)));
  }
  return the_guest().get();
}

void Inside::end() {
  if (the_guest()) {
    ASSERT_GOT(status, the_guest()->guest_->finish());
    EXPECT_EQ(status, 0) << the_guest()->guest_->said();
    the_guest().reset();
  }
  std::filesystem::remove_all(folder());
}

void InteropTest::start(const Wire& wire, const std::string& sends, const std::string& arrives) {
  since_ns_ = sys::now_ns();
  wire_ = wire;
  ASSERT_FALSE(Inside::folder().empty());
  auto side =
      Side::open({.wire = wire, .folder = Inside::folder(), .sends = sends, .arrives = arrives, .capture = capture_});
  ASSERT_TRUE(side) << side.error().explain();
  side_ = std::move(*side);
  ASSERT_GOT(inside, Inside::get());
  rxe_ = &inside->rxe();
  ASSERT_GOT(gid, rxe_->open(wire.family, wire.pmtu_bytes));
  EXPECT_EQ(gid[15], 2);
}

void InteropTest::TearDown() {
  for (const std::uint64_t id : far_ids_) EXPECT_DONE(rxe_->close(id));
  if (side_) {
    // Nobody damages what arrives, so that each of these would be a disagreement on the format.
    for (const roce::Drop why : {roce::Drop::too_short, roce::Drop::bad_version, roce::Drop::unknown_opcode,
                                 roce::Drop::bad_pkey, roce::Drop::bad_pad, roce::Drop::bad_length,
                                 roce::Drop::bad_icrc, roce::Drop::wrong_transport, roce::Drop::wrong_address})
      EXPECT_EQ(side_->drops(why), 0u) << roce::drop_text(why);
    EXPECT_EQ(side_->port().counters().send_refused, 0u);
    EXPECT_GT(side_->counts().packets_received, 0u);
  }
  side_.reset();
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  std::string name = std::string("interop.") + test.name();
  std::replace(name.begin(), name.end(), '/', '.');
  fmt::print("{} {} {:.1f}\n", name, HasFailure() ? 1 : 0, static_cast<double>(sys::now_ns() - since_ns_) / 1e9);
  std::fflush(stdout);
}

Result<Ends> InteropTest::connected(const EndsOptions& options) {
  Ends ends;
  STRAIT_TRY(ends.far, rxe_->make(options.reliable ? QueueKind::rc : QueueKind::uc));
  far_ids_.push_back(ends.far.id);
  ends.near = side_->make();
  PacketPath path;
  path.transport = options.reliable ? wire::roce::Transport::rc : wire::roce::Transport::uc;
  path.to.gid = ends.far.gid;
  path.remote_qpn = ends.far.qpn;
  path.send_psn = kFirstPsn;
  path.receive_psn = ends.far.psn;
  path.pmtu_bytes = wire_.pmtu_bytes;
  path.ack_timeout_ns = options.ack_timeout_ns;
  path.retries = options.retries;
  path.rnr_retries = options.rnr_retries;
  path.rnr_timer = 12;
  path.max_reads_out = path.max_reads_in = 8;  // what rxe_peer asks for
  STRAIT_CHECK(side_->engine().connect_packets(ends.near->qpn, path));
  STRAIT_CHECK(rxe_->connect(
      ends.far.id,
      {.gid = wire_.address().gid, .qpn = ends.near->qpn, .psn = kFirstPsn, .qkey = 0, .more = options.theirs}));
  if (options.reliable) {
    // Nothing but a first packet: the port asks for the guest's MAC address, and keeps only some packets meanwhile.
    ends.near->post(ours(m::Opcode::rdma_write, 0, 0, ends, 0));
    const auto event = side_->wait(*ends.near);
    if (!event || event->syndrome != m::Syndrome::none) return fail(Code::timeout, "the guest does not answer");
  }
  return ends;
}

Result<Ends> InteropTest::datagrams() {
  Ends ends;
  STRAIT_TRY(ends.far, rxe_->make(QueueKind::ud));
  far_ids_.push_back(ends.far.id);
  ends.near = side_->make();
  PacketPath path;
  path.transport = wire::roce::Transport::ud;
  path.pmtu_bytes = wire_.pmtu_bytes;
  path.qkey = kQkey;
  STRAIT_CHECK(side_->engine().connect_packets(ends.near->qpn, path));
  STRAIT_CHECK(rxe_->connect(ends.far.id, {}));
  return ends;
}

void InteropTest::ours_done(Ends& ends, m::Syndrome syndrome) {
  const auto event = side_->wait(*ends.near);
  ASSERT_TRUE(event) << "our NIC completes nothing\n" << side_->engine().counters_text();
  EXPECT_EQ(event->opcode, syndrome == m::Syndrome::none ? m::CqeOpcode::requester : m::CqeOpcode::requester_error);
  EXPECT_EQ(event->syndrome, syndrome);
}
void InteropTest::theirs_done(const Ends& ends, std::uint64_t wr, int status) {
  ASSERT_GOT(done, rxe_->wait(ends.far.id));
  EXPECT_EQ(done.status, status) << done.text;
  EXPECT_EQ(done.wr, wr);
}
void InteropTest::expect_ours(Ends& ends, const Wqe& wqe, m::Syndrome syndrome) {
  ends.near->post(wqe);
  ours_done(ends, syndrome);
}
void InteropTest::expect_theirs(const Ends& ends, const RxeWork& work, int status) {
  EXPECT_DONE(rxe_->post(ends.far.id, work));
  theirs_done(ends, work.wr, status);
}

Wqe InteropTest::ours(m::Opcode opcode, std::uint64_t at, std::uint32_t bytes) const {
  Wqe wqe{.opcode = opcode};
  if (bytes != 0) wqe.data = {{side_->address(at), bytes, side_->lkey()}};
  return wqe;
}
Wqe InteropTest::ours(m::Opcode opcode, std::uint64_t at, std::uint32_t bytes, const Ends& ends,
                      std::uint64_t far_at) const {
  Wqe wqe = ours(opcode, at, bytes);
  wqe.raddr = ends.far.va + far_at;
  wqe.rkey = ends.far.rkey;
  return wqe;
}
RxeWork InteropTest::theirs(const char* op, std::uint64_t at, std::uint32_t bytes) const {
  RxeWork work;
  work.op = op;
  work.wr = 7;
  work.at = at;
  work.bytes = bytes;
  work.sges = bytes < 8 ? 1 : 3;
  return work;
}
RxeWork InteropTest::theirs(const char* op, std::uint64_t at, std::uint32_t bytes, std::uint64_t near_at) const {
  RxeWork work = theirs(op, at, bytes);
  work.va = side_->address(near_at);
  work.rkey = side_->rkey();
  return work;
}
void InteropTest::post_receive(Ends& ends, std::uint64_t at, std::uint32_t bytes) {
  if (bytes == 0) return ends.near->post_receive({});
  ends.near->post_receive({{side_->address(at), bytes, side_->lkey()}});
}

void InteropTest::expect_bytes_here(std::uint64_t at, std::uint32_t bytes, std::uint64_t seed) {
  EXPECT_EQ(crc32(side_->memory(at, bytes)), crc32_of_fill(bytes, seed)) << bytes << " bytes that came to us";
}
void InteropTest::expect_bytes_there(const Ends& ends, std::uint64_t at, std::uint32_t bytes, std::uint64_t seed) {
  ASSERT_GOT(crc, rxe_->crc(ends.far.id, at, bytes));
  EXPECT_EQ(crc, crc32_of_fill(bytes, seed)) << bytes << " bytes that went to them";
}

void InteropTest::write_both_ways(Ends& ends, std::uint32_t bytes) {
  fill(side_->memory(4099, bytes), ++seed_);
  expect_ours(ends, ours(m::Opcode::rdma_write, 4099, bytes, ends, 17));
  expect_bytes_there(ends, 17, bytes, seed_);
  RxeWork work = theirs("write", 300'001, bytes, 200'003);
  work.seed = ++seed_;
  expect_theirs(ends, work);
  expect_bytes_here(200'003, bytes, seed_);
}

void InteropTest::read_both_ways(Ends& ends, std::uint32_t bytes) {
  EXPECT_DONE(rxe_->fill(ends.far.id, 19, bytes, ++seed_));
  expect_ours(ends, ours(m::Opcode::rdma_read, 4097, bytes, ends, 19));
  expect_bytes_here(4097, bytes, seed_);
  fill(side_->memory(200'005, bytes), ++seed_);
  expect_theirs(ends, theirs("read", 300'003, bytes, 200'005));
  expect_bytes_there(ends, 300'003, bytes, seed_);
}

void InteropTest::send_both_ways(Ends& ends, std::uint32_t bytes, bool immediate) {
  EXPECT_DONE(rxe_->receive(ends.far.id, 100, 64, 150'000));
  fill(side_->memory(4101, bytes), ++seed_);
  Wqe wqe = ours(immediate ? m::Opcode::send_imm : m::Opcode::send, 4101, bytes);
  wqe.imm = __builtin_bswap32(0xdeadbe00 + bytes % 251);
  expect_ours(ends, wqe);
  ASSERT_GOT(there, rxe_->wait(ends.far.id));
  EXPECT_EQ(there.status, 0) << there.text;
  EXPECT_EQ(there.wr, 100u);
  EXPECT_EQ(there.bytes, bytes);
  EXPECT_EQ(there.imm, immediate ? 0xdeadbe00 + bytes % 251 : 0);
  expect_bytes_there(ends, 64, bytes, seed_);

  post_receive(ends, 200'007, 150'000);
  RxeWork work = theirs(immediate ? "send_imm" : "send", 300'005, bytes);
  work.imm = 0xfeed0000 + bytes % 251;
  work.seed = ++seed_;
  expect_theirs(ends, work);
  const auto here = side_->wait(*ends.near);
  ASSERT_TRUE(here);
  EXPECT_EQ(here->opcode, immediate ? m::CqeOpcode::responder_send_imm : m::CqeOpcode::responder_send);
  EXPECT_EQ(here->bytes, bytes);
  if (immediate) {
    EXPECT_EQ(here->imm, work.imm);
  }
  expect_bytes_here(200'007, bytes, seed_);
}

void InteropTest::write_imm_both_ways(Ends& ends, std::uint32_t bytes) {
  EXPECT_DONE(rxe_->receive(ends.far.id, 55, 0, 0));
  fill(side_->memory(4103, bytes), ++seed_);
  Wqe wqe = ours(m::Opcode::rdma_write_imm, 4103, bytes, ends, 21);
  wqe.imm = __builtin_bswap32(0xcafe0001);
  expect_ours(ends, wqe);
  ASSERT_GOT(there, rxe_->wait(ends.far.id));
  EXPECT_EQ(there.wr, 55u);
  EXPECT_EQ(there.imm, 0xcafe0001u);
  EXPECT_EQ(there.bytes, bytes);
  expect_bytes_there(ends, 21, bytes, seed_);

  post_receive(ends, 0, 0);
  RxeWork work = theirs("write_imm", 300'007, bytes, 200'009);
  work.imm = 0xcafe0002;
  work.seed = ++seed_;
  expect_theirs(ends, work);
  const auto here = side_->wait(*ends.near);
  ASSERT_TRUE(here);
  EXPECT_EQ(here->opcode, m::CqeOpcode::responder_write_imm);
  EXPECT_EQ(here->imm, 0xcafe0002u);
  EXPECT_EQ(here->bytes, bytes);
  expect_bytes_here(200'009, bytes, seed_);
}

void InteropTest::add_and_swap_both_ways(Ends& ends) {
  const auto word = [&](std::uint64_t at) {
    std::uint64_t value = 0;
    std::memcpy(&value, side_->memory(at, 8).data(), 8);
    return value;
  };
  const std::uint64_t begin = 0x1122334455667788 + ++seed_;
  EXPECT_DONE(rxe_->poke(ends.far.id, 64, begin));
  Wqe wqe = ours(m::Opcode::atomic_fa, 512, 8, ends, 64);
  wqe.atomic = {0x0102030405060708, 0};
  expect_ours(ends, wqe);
  EXPECT_EQ(word(512), begin) << "what was there before";
  const std::uint64_t sum = begin + 0x0102030405060708;
  for (const bool fits : {true, false}) {
    Wqe swap = ours(m::Opcode::atomic_cs, 520, 8, ends, 64);
    swap.atomic = {0xfeedfacecafebeef, fits ? sum : sum + 1};
    expect_ours(ends, swap);
    EXPECT_EQ(word(520), fits ? sum : 0xfeedfacecafebeef);
  }
  ASSERT_GOT(there, rxe_->peek(ends.far.id, 64));
  EXPECT_EQ(there, 0xfeedfacecafebeef);

  std::memcpy(side_->memory(1024, 8).data(), &begin, 8);
  RxeWork add = theirs("fetch_add", 128, 8, 1024);
  add.sges = 1;
  add.add = 0x0102030405060708;
  expect_theirs(ends, add);
  ASSERT_GOT(fetched, rxe_->peek(ends.far.id, 128));
  EXPECT_EQ(fetched, begin);
  EXPECT_EQ(word(1024), sum);
  for (const bool fits : {true, false}) {
    RxeWork swap = theirs("cmp_swap", 136, 8, 1024);
    swap.sges = 1;
    swap.compare = fits ? sum : sum + 1;
    swap.swap = 77;
    expect_theirs(ends, swap);
    ASSERT_GOT(found, rxe_->peek(ends.far.id, 136));
    EXPECT_EQ(found, fits ? sum : 77);
  }
  EXPECT_EQ(word(1024), 77u);
}

void InteropTest::datagram_both_ways(Ends& ends, std::uint32_t bytes) {
  constexpr std::uint32_t kArea = 40;
  EXPECT_DONE(rxe_->receive(ends.far.id, 5, 0, 8192));
  fill(side_->memory(4099, bytes), ++seed_);
  Wqe wqe = ours(m::Opcode::send_imm, 4099, bytes);
  wqe.imm = __builtin_bswap32(0xdada0000 + bytes);
  const auto half = [&](std::size_t from) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < 8; ++i) value = value << 8 | ends.far.gid[from + i];
    return value;
  };
  // The address segments: key, queue pair (its top bit: the rest is valid), hop limit, GID.
  wqe.atomic = {std::uint64_t{ends.far.qkey} << 32,
                std::uint64_t{0x80000000 | ends.far.qpn} << 32,
                0,
                std::uint64_t{64} << 32,
                half(0),
                half(8)};
  expect_ours(ends, wqe);
  ASSERT_GOT(there, rxe_->wait(ends.far.id));
  EXPECT_EQ(there.status, 0) << there.text;
  EXPECT_EQ(there.bytes, kArea + bytes);
  EXPECT_EQ(there.imm, 0xdada0000 + bytes);
  EXPECT_EQ(there.src_qp, ends.near->qpn);
  expect_bytes_there(ends, kArea, bytes, seed_);
  // The last eight bytes of the area, either way: IPv4's two addresses, or the end of IPv6's second one.
  ASSERT_GOT(tail, rxe_->peek(ends.far.id, 32));
  EXPECT_EQ(__builtin_bswap64(tail), wire_.family == Family::v4 ? 0xc6336401c6336402 : 2);

  post_receive(ends, 65'536, 8192);
  RxeWork work = theirs("send_imm", 0, bytes);
  work.imm = 0xadad0000 + bytes;
  work.seed = ++seed_;
  work.to = RxeRemote{.gid = wire_.address().gid, .qpn = ends.near->qpn, .psn = 0, .qkey = kQkey, .more = {}};
  expect_theirs(ends, work);
  const auto here = side_->wait(*ends.near);
  ASSERT_TRUE(here);
  EXPECT_EQ(here->opcode, m::CqeOpcode::responder_send_imm);
  EXPECT_EQ(here->bytes, kArea + bytes);
  EXPECT_EQ(here->imm, work.imm);
  EXPECT_EQ(here->flags_rqpn & 0xffffff, ends.far.qpn);
  expect_bytes_here(65'536 + kArea, bytes, seed_);
  const auto area = side_->memory(65'536, kArea);
  const auto& mine = wire_.address().gid;
  const std::size_t n = wire_.family == Family::v4 ? 4 : 16;
  EXPECT_EQ(std::memcmp(area.data() + kArea - n, mine.data() + 16 - n, n), 0) << "to us";
  EXPECT_EQ(std::memcmp(area.data() + kArea - 2 * n, ends.far.gid.data() + 16 - n, n), 0) << "from them";
  EXPECT_EQ(area[wire_.family == Family::v4 ? 20 : 0], std::byte(wire_.family == Family::v4 ? 0x45 : 0x60));
}

}  // namespace strait::lab
