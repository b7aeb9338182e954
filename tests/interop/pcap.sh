#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `strait run --pcap`: a server and its client in one run, and what others make of the file: tshark, a second
# implementation of the iCRC. Part of verbs.sh, which makes the network and has strait, folder and fail.
#   pcap.sh CHECKER SENDERS WQES PROGRAM ARGUMENT...
# SENDERS: how many of the two processes post work requests. WQES: how many each of them posts.
: "${strait:?}" "${folder:?}"
declare -a run # arguments of `strait run`
checker=$1 senders=$2 wqes=$3
shift 3
command -v tshark >/dev/null || fail "tshark is missing: install the package tshark"
export HOME=$folder # no personal preferences
capture=$folder/run.pcapng

# shellcheck disable=SC2016  # it is the inner shell that expands
"$strait" run "${run[@]}" --pcap "$capture" -- bash -c '
  "$@" >"$0/server.said" 2>&1 &
  server=$!
  for ((tries = 0; tries < 600; ++tries)); do
    ! grep -q ":4853 .* 0A " /proc/net/tcp /proc/net/tcp6 || break
    sleep 0.1
  done
  "$@" 10.77.0.1 || { echo "the client ended with $?"; cat "$0/server.said"; exit 1; }
  wait $server || { echo "the server ended with $?"; cat "$0/server.said"; exit 1; }' "$folder" "$@" \
  >"$folder/pair.out" 2>&1 || fail "the run of $* ended with $?"
tr -s '\n ' ' ' <"$folder/pair.out" | grep -q 'strait run: 2 processes, .*, capture ' || fail "the run did not speak of a capture"

packets=$("$checker" "$capture" 2>"$folder/checker.out") || fail "an iCRC is wrong, or nothing was captured"

# shellcheck source=tests/interop/tshark.sh
. "$(dirname "$0")/tshark.sh"
dissect() { tshark "${no_guessing[@]}" -r "$capture" "$@" 2>"$folder/tshark.out" || fail "tshark could not read the capture"; }
# Comments count as expert notes too, of the least severity.
objections=$(dissect -o ip.check_checksum:TRUE \
  -Y '_ws.malformed or _ws.expert.severity > 0x00100000 or not infiniband.bth or ip.checksum.status == 0' | sed -n 1,5p)
[[ -z $objections ]] || { echo "$objections"; fail "packets that tshark objects to"; }

# What left says of which queue pair it is, and of which work request: "strait0 queue pair 0x30002, WQE 7". A number's
# first byte is the process's. What arrived says only that.
dissect -T fields -e frame.packet_flags_direction -e frame.time_epoch -e frame.comment >"$folder/packets.txt"
awk -F '\t' -v wanted="$senders $wqes" -v packets="$packets" '
  function bad(what) { print "packet " NR ": " what; failed = 1 }
  BEGIN { split(wanted, want, " ") }
  { if ($2 + 0 < before) bad("earlier than the one before it"); before = $2 + 0 }
  $1 ~ /1$/ { ++arrived; if ($3 != "strait0 received") bad("arrived, and says: " $3); next }
  $1 !~ /2$/ { bad("has the direction " $1); next }
  $3 !~ /^strait0 queue pair 0x[0-9a-f]+(, WQE [0-9]+)?(, fault: [a-z]+)?$/ { bad("left, and says: " $3); next }
  { ++left
    qp = $3; sub(/^strait0 queue pair 0x/, "", qp); sub(/,.*/, "", qp)
    process = substr(qp, 1, length(qp) - 4)
    if (!(process in processes)) { processes[process]; ++n_processes }
    if ($3 ~ /, fault: /) ++faults
    if ($3 !~ /, WQE /) next
    wqe = $3; sub(/.*, WQE /, "", wqe); sub(/,.*/, "", wqe)
    if (!((qp, wqe) in seen)) { seen[qp, wqe]; if (!count[qp]++) ++n_senders } }
  END {
    print "pcap: " left " packets left and " arrived " arrived, of " n_processes " processes; " faults + 0 " faults are named"
    if (left + arrived != packets || arrived < left / 2) bad("as the last; " packets " in the file")
    if (n_processes != 2) bad("as the last; packets of two processes were expected")
    if (n_senders != want[1]) bad("as the last; " n_senders " queue pairs sent work requests instead of " want[1])
    for (qp in count) if (count[qp] != want[2]) bad("as the last; queue pair " qp " sent " count[qp] " work requests instead of " want[2])
    exit failed }' "$folder/packets.txt" >"$folder/judged.out" || fail "the capture does not say what happened"
cat "$folder/judged.out"
