#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Programs of librdmacm, two processes each. Part of verbs.sh, which makes the network and has strait, folder and fail.
#   rdmacm.sh SERVICE SERVER ARGUMENT... -- CLIENT ARGUMENT...
# SERVICE: the server's service id in hexadecimal, or "listens=PORT" for programs that meet over TCP first.
# What the client prints is the test's output, and is also in $folder/client.out for who looks closer.
: "${strait:?}" "${folder:?}"
declare -a run # arguments of `strait run`
service=$1
shift
server_command=()
while [[ $1 != -- ]]; do
  server_command+=("$1")
  shift
done
shift
command -v "${server_command[0]}" >/dev/null || fail "there is no ${server_command[0]}; install the package that has it"

# A service that is taken is an abstract socket, which the kernel shows.
"$strait" run "${run[@]}" -- "${server_command[@]}" >"$folder/server.out" 2>&1 &
server=$!
deadline=$((SECONDS + 60))
if [[ $service == listens=* ]]; then
  listening "${service#listens=}" "$server"
else
  # Seen for a second without a break: perftest tries the port, lets go of it, and only then listens.
  for ((seen = 0; seen < 10; )); do
    if grep -q "@strait-cm/service/$service/" /proc/net/unix; then seen=$((seen + 1)); else seen=0; fi
    kill -0 "$server" 2>/dev/null || fail "the server ended before the client came"
    ((SECONDS < deadline)) || fail "the server takes no connections"
    sleep 0.1
  done
fi

# A client that was too early all the same is refused, and the server does not notice: it may come again.
for ((tries = 3; ; --tries)); do
  status=0
  "$strait" run "${run[@]}" -- "$@" >"$folder/client.out" 2>&1 || status=$?
  ! ended_well "$status" || break
  ! left_at_the_end || again "both sides had everything, and one left while the other waited for the library"
  grep -q 'REJECTED\|UNREACHABLE' "$folder/client.out" && kill -0 "$server" 2>/dev/null && ((tries > 1)) ||
    fail "the client of ${server_command[*]} ended with $status"
  sleep 2
done
status=0
wait "$server" || status=$?
ended_well "$status" || server_failed "${server_command[*]}" "$status"
cat "$folder/client.out"
