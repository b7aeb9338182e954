// SPDX-License-Identifier: Apache-2.0
// Programs that have nothing to do with RDMA do the same with us in front of their C library as without.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "run_of_ours.hpp"
#include "sys/scratch.hpp"

namespace strait::testing {
namespace {

void same(const std::vector<std::string>& command) {
  const OurRun ours;
  const Outcome without = run(command, 100);
  const Outcome with = ours.run(command);
  EXPECT_EQ(without.status, 0) << command[0] << without.err;
  EXPECT_EQ(with.status, without.status) << with.err;
  EXPECT_EQ(with.out, without.out);
  EXPECT_EQ(with.err, without.err);
}

TEST(Strangers, Shell) {
  same({"/bin/bash", "-c",
        "cd /usr/lib; pwd; cd ..; pwd; for i in 1 2 3; do echo $i | cat; done; exec 7</etc/passwd; read -u 7 x; echo "
        "$x; "
        "ls -d /u*; test -c /dev/null && echo yes; (exit 3) || echo $?; cat <(echo sub); ulimit -n >/dev/null"});
}

TEST(Strangers, ListsOfSysfs) {
  same({"/bin/ls", "-lR", "/sys/class/net"});
  same({"/usr/bin/find", "/sys/class/net/", "-maxdepth", "2"});
}

TEST(Strangers, Python) {
  same({"/usr/bin/python3", "-c",
        "import os, subprocess, glob, tempfile, json, threading\n"
        "print(sorted(os.listdir('/sys/class/net')), os.stat('/dev/null').st_rdev, glob.glob('/usr/b*'))\n"
        "print(subprocess.run(['echo', 'x'], capture_output=True, close_fds=True).stdout)\n"
        "print(os.path.realpath('/usr/../usr/bin'), os.getcwd() != '')\n"
        "with tempfile.TemporaryDirectory() as d:\n"
        "  os.chdir(d); open('a', 'w').write('b'); os.symlink('a', 'l'); print(os.readlink('l'), open('l').read())\n"
        "  os.chdir('/')\n"});
}

TEST(Strangers, Compiler) {
  const sys::Scratch scratch = sys::Scratch::create(sys::temporary_folder(), "strait-host-test").value();
  std::ofstream(scratch.path() + "/x.cpp") << "#include <cstdio>\nint main() { std::puts(\"compiled\"); }\n";
  const OurRun ours;
  const Outcome compiled = ours.run({HOST_CXX, scratch.path() + "/x.cpp", "-o", scratch.path() + "/x"});
  EXPECT_EQ(compiled.status, 0) << compiled.err;
  EXPECT_EQ(compiled.err, "");
  EXPECT_EQ(ours.run({scratch.path() + "/x"}).out, "compiled\n");
}

TEST(Strangers, SeeTheTreeTheySearch) {
  const OurRun ours;
  EXPECT_EQ(
      ours.run({"/bin/sh", "-c", "cat /sys/class/strait-test/*/name; cd /sys/class/strait-test/strait0 && /bin/pwd -P"})
          .out,
      "strait0\n/sys/devices/strait-test/pci0/strait0\n");
  const Outcome found = ours.run({"/usr/bin/find", "/sys/class/strait-test/", "-follow", "-name", "name"});
  EXPECT_NE(found.out.find("/sys/class/strait-test/strait0/name\n"), std::string::npos) << found.out << found.err;
  EXPECT_EQ(
      ours.run({"/usr/bin/python3", "-c",
                "import os, glob, pathlib\n"
                "print(os.path.realpath('/sys/class/strait-test/strait0'), sorted(os.listdir('/dev/strait-test')),\n"
                "  glob.glob('/sys/class/strait-*/v*'), pathlib.Path('/sys/class/strait-test/version').read_text())\n"})
          .out,
      "/sys/devices/strait-test/pci0/strait0 ['busy', 'node0', 'node1'] ['/sys/class/strait-test/version'] 7\n\n");
  const Outcome listed = ours.run({"/bin/ls", "-l", "/dev/strait-test/node0"});
  EXPECT_EQ(listed.out.substr(0, 10), "crw-rw-rw-") << listed.out;
  EXPECT_NE(listed.out.find("511, 7"), std::string::npos) << listed.out;
  EXPECT_EQ(listed.err, "");
}

}  // namespace
}  // namespace strait::testing
