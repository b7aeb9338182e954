// SPDX-License-Identifier: Apache-2.0
// strait run, as a stranger runs it: exit statuses, what is refused, and that nothing is left behind.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>

#include "program.hpp"
#include "sys/scratch.hpp"

namespace strait::testing {
namespace {

namespace fs = std::filesystem;

// A folder for temporary files of our own, so that other runs on this machine are not in it.
class Run : public ::testing::Test {
 protected:
  Outcome strait_run(std::vector<std::string> arguments,
                     std::vector<std::pair<std::string, std::string>> environment = {}) {
    arguments.insert(arguments.begin(), "run");
    environment.emplace_back("TMPDIR", scratch_.path());
    return strait(std::move(arguments), 100, environment);
  }
  [[nodiscard]] int roots() const {
    int count = 0;
    for (const auto& entry : fs::directory_iterator(scratch_.path()))
      count += entry.path().filename().string().starts_with("strait-run") ? 1 : 0;
    return count;
  }
  sys::Scratch scratch_ = sys::Scratch::create(sys::temporary_folder(), "strait-host-test").value();
};

TEST_F(Run, PassesOnHowTheProgramEnded) {
  EXPECT_EQ(strait_run({"--", "/bin/sh", "-c", "exit 0"}).status, 0);
  EXPECT_EQ(strait_run({"--", "/bin/sh", "-c", "exit 42"}).status, 42);
  EXPECT_EQ(strait_run({"--", "/bin/sh", "-c", "kill -15 $$"}).status, 128 + 15);
  EXPECT_EQ(strait_run({"sh", "-c", "exit 5"}).status, 5) << "without --";
  EXPECT_EQ(roots(), 0);
}

TEST_F(Run, ArgumentsAndStreamsAreTheProgramsOwn) {
  const Outcome outcome =
      strait_run({"-q", "--", "/bin/sh", "-c", "echo \"$@\"; echo err >&2", "x", "--help", "-q", "--", "a b"});
  EXPECT_EQ(outcome.out, "--help -q -- a b\n");
  EXPECT_EQ(outcome.err, "err\n");
}

TEST_F(Run, EndsWithOneLine) {
  const Outcome outcome = strait_run({"--", "/bin/true"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(unwrapped(outcome.err),
            "strait run: no device was opened (a static program or raw system calls? try --watch) ");
}

TEST_F(Run, ShowsDevices) {
  const Outcome outcome = strait_run({"-q", "--", "/bin/ls", "-d", "/sys/class/infiniband", "/dev/infiniband"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "/dev/infiniband\n/sys/class/infiniband\n");
}

TEST_F(Run, OptionsReachTheDevices) {
  const auto said = [&](std::vector<std::string> options, const std::string& variable) {
    options.insert(options.end(), {"-q", "--", "/bin/sh", "-c", "echo \"$" + variable + "\""});
    return strait_run(std::move(options)).out;
  };
  EXPECT_EQ(said({"--faults", "drop=2%"}, "STRAIT_FAULTS"), "drop=2%\n");
  EXPECT_EQ(said({"--faults", "drop=2%", "--seed", "9"}, "STRAIT_FAULTS"), "drop=2%,seed=9\n");
  EXPECT_EQ(said({"--seed", "9"}, "STRAIT_FAULTS"), "seed=9\n");
  EXPECT_EQ(said({"--strict"}, "STRAIT_STRICT"), "1\n");
  EXPECT_EQ(said({"--pcap", scratch_.path() + "/x.pcapng"}, "STRAIT_CARRIER"), "roce\n");
  EXPECT_EQ(said({"--set", "roce_mtu=1024"}, "STRAIT_ROCE_MTU"), "1024\n");
  EXPECT_EQ(said({}, "STRAIT_STRICT"), "\n");
}

TEST_F(Run, Shell) {
  const Outcome outcome = strait_run({"-q", "--shell"}, {{"SHELL", "/bin/true"}});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(strait_run({"--shell", "--", "ls"}).status, 2);
}

TEST_F(Run, RefusesProgramsThatWouldNotSeeTheDevices) {
  const Outcome outcome = strait_run({"--", HOST_STATIC});
  EXPECT_EQ(outcome.status, 3);
  EXPECT_NE(unwrapped(outcome.err).find("linked statically"), std::string::npos) << outcome.err;
  EXPECT_LE(widest(outcome.err), 80u) << outcome.err;
  EXPECT_EQ(roots(), 0);
}

TEST_F(Run, SaysWhatIsWrongWithTheCommand) {
  EXPECT_EQ(strait_run({"--", "no-such-program-here"}).status, 127);
  EXPECT_EQ(strait_run({"--", "/etc/passwd"}).status, 126);
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{},
                                                {"--nics", "0", "--", "true"},
                                                {"--nics", "99", "--", "true"},
                                                {"--faults", "drop=x", "--", "true"},
                                                {"--seed", "x", "--", "true"},
                                                {"--set", "no_such=1", "--", "true"},
                                                {"--nonsense", "--", "true"}}) {
    const Outcome outcome = strait_run(wrong);
    EXPECT_EQ(outcome.status, 2) << outcome.err;
    EXPECT_EQ(outcome.err.rfind("strait: ", 0), 0u) << outcome.err;
    EXPECT_LE(widest(outcome.err), 80u) << outcome.err;
  }
}

TEST_F(Run, AFolderForTemporaryFilesThatIsNoneIsNamed) {
  const Outcome outcome = strait({"run", "--", "true"}, 60, {{"TMPDIR", "/nowhere/at/all"}});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(unwrapped(outcome.err).find("/nowhere/at/all"), std::string::npos) << outcome.err;
}

TEST_F(Run, SignalsReachTheProgramAndNothingStays) {
  Program running(strait_command({"run", "-q", "--", "/bin/sh", "-c",
                                  "trap 'echo caught; exit 9' TERM; echo ready; while :; do sleep 0.02; done"}),
                  {{"TMPDIR", scratch_.path()}});
  ASSERT_EQ(running.read_line(), "ready");
  EXPECT_EQ(roots(), 1);
  running.signal(SIGTERM);
  const Outcome outcome = running.finish();
  EXPECT_EQ(outcome.status, 9) << outcome.err;
  EXPECT_NE(outcome.out.find("caught"), std::string::npos);
  EXPECT_EQ(roots(), 0);
}

TEST_F(Run, AfterACrashTheNextOneCleansUp) {
  {
    Program running(strait_command({"run", "--", "/bin/sh", "-c", "echo ready; exec sleep 1000"}),
                    {{"TMPDIR", scratch_.path()}});
    ASSERT_EQ(running.read_line(), "ready");
    const std::vector<pid_t> children = children_of(running.pid());
    ASSERT_EQ(children.size(), 1u);
    running.signal(SIGKILL);
    (void)running.finish();
    for (int i = 0; i < 1000 && runs(children[0]); ++i) ::usleep(10'000);
    EXPECT_FALSE(runs(children[0])) << "it was to end with the one who started it";
  }
  EXPECT_EQ(roots(), 1);
  Program living(strait_command({"run", "-q", "--", "/bin/sh", "-c", "echo ready; exec sleep 1000"}),
                 {{"TMPDIR", scratch_.path()}});
  ASSERT_EQ(living.read_line(), "ready");
  EXPECT_EQ(roots(), 1) << "the dead one's is gone, the living one's is there";
  EXPECT_EQ(strait_run({"-q", "--", "/bin/true"}).status, 0);
  EXPECT_EQ(roots(), 1);
  living.signal(SIGTERM);
  EXPECT_EQ(living.finish().status, 128 + SIGTERM);
  EXPECT_EQ(roots(), 0);
}

TEST_F(Run, SystemCallsPastTheDevicesAreReported) {
  const Outcome outcome =
      strait_run({"-q", "--watch", "--", "/bin/sh", "-c",
                  "ls /dev/infiniband >/dev/null; " HOST_PROBE " raw /dev/infiniband/uverbs0x; exit 4"});
  EXPECT_EQ(outcome.status, 4);
  const std::string said = unwrapped(outcome.err);
  EXPECT_NE(said.find("(host_probe) opened /dev/infiniband/uverbs0x with a system call of its own"), std::string::npos)
      << outcome.err;
  EXPECT_EQ(said.find("(ls)"), std::string::npos) << "what goes through the C library is no stray" << outcome.err;
  EXPECT_LE(widest(outcome.err), 80u);
  EXPECT_EQ(strait_run({"-q", "--", HOST_PROBE, "raw", "/dev/infiniband/uverbs0x"}).err, "");
}

#ifndef HOST_SANITIZED  // the run time of a sanitizer wants to be the first thing that is loaded, in the tool and its
                        // devices
TEST_F(Run, OthersThatArePreloadedStay) {
  const Outcome outcome = strait_run({"-q", "--", "/bin/sh", "-c", "echo $LD_PRELOAD"}, {{"LD_PRELOAD", "libc.so.6"}});
  EXPECT_TRUE(outcome.out.ends_with(":libc.so.6\n")) << outcome.out;
}

TEST_F(Run, AProcessThatOpensADeviceIsCounted) {
  const Outcome outcome = strait_run({"--", "/bin/sh", "-c", "exec 3<>/dev/infiniband/uverbs0 && kill -9 $$"});
  EXPECT_EQ(outcome.status, 128 + 9) << outcome.err;
  EXPECT_EQ(outcome.err, "strait run: 1 process, no traffic\n");
}
#endif

}  // namespace
}  // namespace strait::testing
