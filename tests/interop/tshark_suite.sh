#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What the engines really send, judged by tshark and by a second implementation of the iCRC: the suite of all operations
# over packets, the other transports, refusals, losses over IPv6, and `strait demo` between two processes. A run with
# damage on purpose shows that the second judge notices.
#   tshark_suite.sh NIC_TESTS CHECKER STRAIT FOLDER
set -euo pipefail
tests=$1 checker=$2 strait=$3 folder=$4
command -v tshark mergecap >/dev/null || { echo "tshark or mergecap is missing: install the package tshark"; exit 1; }
rm -rf "$folder"
mkdir -p "$folder/suite" "$folder/demo" "$folder/damaged"
trap 'rm -rf "$folder"' EXIT
export HOME=$folder # no personal preferences

# To stderr: it is also called where stdout is a result.
fail() {
  {
    echo "tshark_suite: $1"
    [[ ! -s $folder/err ]] || head -20 "$folder/err"
  } >&2
  exit 1
}
# shellcheck source=tests/interop/tshark.sh
. "$(dirname "$0")/tshark.sh"
dissect() { tshark "${no_guessing[@]}" -r "$@" 2>"$folder/err"; }
# Comments count as expert notes too, of the least severity.
objection='_ws.malformed or _ws.expert.severity > 0x00100000 or not infiniband.bth'

objections() { # FILE
  dissect "$1" -o ip.check_checksum:TRUE -Y "$objection or ip.checksum.status == 0" | sed -n 1,5p
}

judge() { # FOLDER: prints the number of packets, and leaves all of them in FOLDER.all
  local files=("$1"/*.pcapng) file bad packets
  [[ -e ${files[0]} ]] || fail "nothing was captured in $1"
  packets=$("$checker" "${files[@]}" 2>"$folder/err") || fail "an iCRC is wrong"
  mergecap -a -w "$1.all" "${files[@]}" 2>"$folder/err" || fail "mergecap does not like the captures of $1"
  bad=$(objections "$1.all")
  [[ -z $bad ]] && { echo "$packets"; return; }
  for file in "${files[@]}"; do [[ -z $(objections "$file") ]] || echo "in $file" >&2; done
  echo "$bad" >&2
  fail "tshark objects to what is in $1"
}

# 1. Every operation (the test that wraps ring indices has 140000 packets and no others than the rest), and then: UC, UD,
# XRC, keys that are invalidated, what is refused and what has to come again, IPv6.
suite_filter='*Operations*packets:All/Life.Carries*:XrcTarget.Each*:XrcTarget.Serves*:Window.TheSenderOfAMessage*:*Loss*drops_v6'
suite_filter+=':*Faults.*Invalidated*packets:*Faults.SendsWait*packets:*Faults.ASendThatDoesNotFit*packets'
suite_filter+=':*Rejections*unknown_rkey_packets:-*RingIndices*'
STRAIT_TEST_CAPTURE=$folder/suite "$tests" --gtest_filter="$suite_filter" >"$folder/log" ||
  { cat "$folder/log"; fail "the suite itself failed"; }
suite=$(judge "$folder/suite")
seen=$(dissect "$folder/suite.all" -T fields -e infiniband.bth.opcode -e infiniband.aeth.syndrome -e ipv6.version |
  awk -F'\t' '{ seen["opcode " $1]; if ($2 != "") seen["syndrome " $2]; if ($3 == 6) seen["IPv6"] }
    END { for (what in seen) print what }')
must_have() { # WHAT NUMBER...
  local what=$1 number
  shift
  for number in "$@"; do
    grep -qx "$what$number" <<<"$seen" || fail "$what$number never appeared; seen: $(sort <<<"$seen" | tr '\n' ',')"
  done
}
# SEND first to only with immediate, WRITE, READ and its responses, acknowledgements, atomics, SEND with invalidate.
must_have "opcode " 0 1 3 5 6 7 8 10 11 12 13 14 15 16 17 18 19 20 23
must_have "opcode " 36 100 160 162 164 166 172 177 178 180 # UC; UD; XRC
must_have "syndrome " 31 33 96 97 98                            # ACK, RNR, out of sequence, invalid request, access
must_have IPv6 ""

# 2. The demo, between processes, over sockets.
STRAIT_CARRIER=roce STRAIT_ROCE_MTU=4096 STRAIT_CAPTURE=$folder/demo/%p.pcapng \
  "$strait" demo --json --size 64K >"$folder/log" 2>&1 || { cat "$folder/log"; fail "strait demo failed"; }
demo=$(judge "$folder/demo")

# 3. Damage is noticed.
STRAIT_TEST_CAPTURE=$folder/damaged "$tests" --gtest_filter='*Loss*corrupts' >"$folder/log" ||
  { cat "$folder/log"; fail "the damaged run failed"; }
if "$checker" "$folder"/damaged/*.pcapng >/dev/null 2>&1; then fail "damaged packets, and every iCRC is right"; fi

echo "tshark: $suite packets of the suite and $demo of the demo, no objection; every iCRC verified"
