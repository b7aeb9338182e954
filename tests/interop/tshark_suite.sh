#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What the engines really send, judged by tshark and by a second implementation of the iCRC: the suite of all operations
# over packets, and `strait demo` between two processes. A run with damage on purpose shows that both judges notice.
#   tshark_suite.sh NIC_TESTS CHECKER STRAIT FOLDER
set -euo pipefail
tests=$1 checker=$2 strait=$3 folder=$4
command -v tshark >/dev/null || { echo "tshark is missing: install the package tshark"; exit 1; }
rm -rf "$folder"
mkdir -p "$folder/suite" "$folder/demo" "$folder/damaged"
trap 'rm -rf "$folder"' EXIT
export HOME=$folder # no personal preferences

fail() { echo "tshark_suite: $1"; [[ ! -s $folder/err ]] || cat "$folder/err"; exit 1; }
# rpcordma claims small SENDs by guessing, and then calls them malformed.
dissect() { tshark --disable-protocol rpcordma -r "$@" 2>"$folder/err"; }
# Comments count as expert notes too, of the least severity.
objection='_ws.malformed or _ws.expert.severity > 0x00100000 or not infiniband.bth'

judge() { # FOLDER: prints the number of packets
  local files=("$1"/*.pcapng) file bad packets
  [[ -e ${files[0]} ]] || fail "nothing was captured in $1"
  packets=$("$checker" "${files[@]}" 2>"$folder/err") || fail "an iCRC is wrong"
  for file in "${files[@]}"; do
    bad=$(dissect "$file" -o ip.check_checksum:TRUE -Y "$objection or ip.checksum.status == 0" | head -5)
    [[ -z $bad ]] || { echo "$bad"; fail "tshark objects to $file"; }
  done
  echo "$packets"
}
opcodes() { # FOLDER: which were seen, in decimal
  local file
  for file in "$1"/*.pcapng; do dissect "$file" -T fields -e infiniband.bth.opcode; done | sort -nu | tr '\n' ' '
}

# 1. Every operation. The test that wraps ring indices has 140000 packets and no others than the rest.
STRAIT_TEST_CAPTURE=$folder/suite "$tests" --gtest_filter='*Operations*packets-*RingIndices*' >"$folder/log" ||
  { cat "$folder/log"; fail "the suite itself failed"; }
suite=$(judge "$folder/suite")
seen=$(opcodes "$folder/suite")
# SEND first to only with immediate, WRITE, READ and its responses, acknowledgements, atomics.
for opcode in 0 1 3 5 6 7 8 10 11 12 13 14 15 16 17 18 19 20; do
  [[ " $seen" == *" $opcode "* ]] || fail "opcode $opcode never appeared; seen: $seen"
done

# 2. The demo, between processes, over sockets.
STRAIT_CARRIER=roce STRAIT_ROCE_MTU=4096 STRAIT_CAPTURE=$folder/demo/%p.pcapng \
  "$strait" demo --json --size 64K >"$folder/log" 2>&1 || { cat "$folder/log"; fail "strait demo failed"; }
demo=$(judge "$folder/demo")

# 3. Damage is noticed.
STRAIT_TEST_CAPTURE=$folder/damaged "$tests" --gtest_filter='*Loss*corrupts' >"$folder/log" ||
  { cat "$folder/log"; fail "the damaged run failed"; }
if "$checker" "$folder"/damaged/*.pcapng >/dev/null 2>&1; then fail "damaged packets, and every iCRC is right"; fi

echo "tshark: $suite packets of the suite and $demo of the demo, no objection; every iCRC verified"
