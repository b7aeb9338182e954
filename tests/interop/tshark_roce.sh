#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tshark reads a capture with a packet of every opcode: nothing malformed, no expert note, and the fields that were
# meant. A capture with a cut packet shows that the check can fail.
#   tshark_roce.sh WRITER FOLDER
set -euo pipefail
writer=$1 folder=$2
command -v tshark >/dev/null || { echo "tshark is missing: install the package tshark"; exit 1; }
mkdir -p "$folder"
export HOME=$folder # no personal preferences

# shellcheck source=tests/interop/tshark.sh
. "$(dirname "$0")/tshark.sh"
dissect() { tshark "${no_guessing[@]}" -r "$@" 2>"$folder/tshark.err"; }
fail() { echo "tshark_roce: $1"; cat "$folder/tshark.err"; exit 1; }

# Comments count as expert notes too, of the least severity.
objection='_ws.malformed or _ws.expert.severity > 0x00100000'

# 1. Nothing to complain about.
"$writer" "$folder/all.pcapng" >"$folder/expected.txt"
dissect "$folder/all.pcapng" >"$folder/list.txt" || fail "tshark could not read the capture"
total=$(wc -l <"$folder/list.txt")
((total == 2 * 38)) || fail "$total packets instead of 76"
bad=$(dissect "$folder/all.pcapng" -Y "$objection or not infiniband.bth")
[[ -z $bad ]] || {
  echo "$bad"
  dissect "$folder/all.pcapng" -V -Y "$objection" | grep -iE 'expert|malformed' || true
  fail "packets that tshark objects to"
}

# 2. The fields are where it looks for them.
fields=()
for field in bth.{opcode,destqp,psn,padcnt,a,se,m} reth.{va,r_key,dmalen} aeth.{syndrome,msn} atomiceth.{swapdt,cmpdt} \
  atomicacketh.origremdt immdt ieth deth.{q_key,srcqp}; do fields+=(-e "infiniband.$field"); done
# Some fields are shown twice, as a header and as the value in it.
dissect "$folder/all.pcapng" -T fields -E separator='|' -E occurrence=f "${fields[@]}" >"$folder/found.txt"
diff -u "$folder/expected.txt" "$folder/found.txt" || fail "fields differ: above, + is what tshark read"

# 3. Checksums of the synthesized headers, which tshark verifies only when told to.
bad=$(dissect "$folder/all.pcapng" -o ip.check_checksum:TRUE -o udp.check_checksum:TRUE \
  -Y 'ip.checksum.status == 0 or (ipv6 and udp.checksum.status != 1)')
[[ -z $bad ]] || { echo "$bad"; fail "wrong checksums"; }

# 4. Comments and direction.
comments=$(dissect "$folder/all.pcapng" -T fields -e frame.comment | grep -c 'RC WRITE only$')
((comments == 2)) || fail "$comments comments 'RC WRITE only' instead of 2"
outgoing=$(dissect "$folder/all.pcapng" -Y 'frame.packet_flags_direction == 2' | wc -l)
((outgoing > 0 && outgoing < total)) || fail "$outgoing of $total packets are marked as outgoing"

# 5. A bad packet is noticed.
"$writer" "$folder/cut.pcapng" --malformed >/dev/null
bad=$(dissect "$folder/cut.pcapng" -Y "$objection" | wc -l)
((bad >= 1)) || fail "a packet was cut on purpose and nobody noticed"
echo "tshark: $total packets, no objection"
