// SPDX-License-Identifier: Apache-2.0
// Servers of librdmacm that die at every step of a connection: the client hears of it, and the port is the next one's.
#include <signal.h>

#include <set>

#include "street.hpp"

namespace strait::testing {
namespace {

enum class Step { listening, asked, accepted, established };

struct End {
  Step step;
  bool killed;  // else stopped
};

std::string end_name(const ::testing::TestParamInfo<End>& info) {
  static const char* const kSteps[] = {"Listening", "Asked", "Accepted", "Established"};
  return std::string(info.param.killed ? "Killed" : "Stopped") + kSteps[static_cast<int>(info.param.step)];
}

class Served : public ::testing::Test {
 protected:
  Served() { server_ = std::make_unique<Resident>(scratch_.path(), "auto"); }
  static std::string event(Resident& of, int patience_ms = kPatienceMs) {
    return of.must("cm_event " + std::to_string(patience_ms))["event"];
  }
  void as_far_as(Step step) {
    server_->must("cm_listen " + port_);
    if (step == Step::listening) return;
    client_->must("cm_connect " + port_);
    ASSERT_EQ(event(*server_), "CONNECT_REQUEST");
    if (step == Step::asked) return;
    server_->must("cm_accept");
    if (step == Step::accepted) return;  // the client has not looked yet
    ASSERT_EQ(event(*client_), "ESTABLISHED");
    ASSERT_EQ(event(*server_), "ESTABLISHED");
  }
  sys::Scratch scratch_ = sys::Scratch::create(sys::temporary_folder(), "strait-hostile-test").value();
  const std::string port_ = std::to_string(20'000 + ::getpid() % 20'000);
  std::unique_ptr<Resident> client_ = std::make_unique<Resident>(scratch_.path(), "auto");
  std::unique_ptr<Resident> server_;
};

class Server : public Served, public ::testing::WithParamInterface<End> {};

INSTANTIATE_TEST_SUITE_P(All, Server,
                         ::testing::Values(End{Step::listening, true}, End{Step::asked, true},
                                           End{Step::accepted, true}, End{Step::established, true},
                                           End{Step::asked, false}),
                         end_name);

// Who is only silent may yet answer: it is asked for some 50 s, as on any network. Who is dead is not.
TEST_P(Server, IsMissedByItsClient) {
  as_far_as(GetParam().step);
  const pid_t inner = server_->inner();
  ASSERT_EQ(::kill(inner, GetParam().killed ? SIGKILL : SIGSTOP), 0);
  if (GetParam().step == Step::listening) client_->must("cm_connect " + port_);
  const int patience_ms = GetParam().killed ? 30'000 : 100'000;
  std::string came = event(*client_, patience_ms);
  if (GetParam().step == Step::accepted && came == "ESTABLISHED") came = event(*client_, patience_ms);
  const std::set<std::string> said{"UNREACHABLE", "REJECTED", "DISCONNECTED"};
  EXPECT_TRUE(said.contains(came)) << came;
  if (GetParam().step == Step::established) {
    EXPECT_EQ(came, "DISCONNECTED");
  }
  ::kill(inner, SIGKILL);
  (void)server_->program().finish();
  // The port is free, and the client as good as before.
  server_ = std::make_unique<Resident>(scratch_.path(), "auto");
  as_far_as(Step::established);
}

// The other way round: the server hears of its client's end.
TEST_F(Served, HearsThatItsClientDied) {
  as_far_as(Step::established);
  ASSERT_EQ(::kill(client_->inner(), SIGKILL), 0);
  EXPECT_EQ(event(*server_, 30'000), "DISCONNECTED");
}

}  // namespace
}  // namespace strait::testing
