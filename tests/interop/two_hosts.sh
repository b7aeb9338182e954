#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Two hosts, as far as the network can tell: two network namespaces joined by a veth pair, made without privileges in a
# user namespace. Nothing but packets leads from one to the other (shared memory is found through unix sockets, which
# belong to a namespace), so this is the way that processes on different machines take.
#   two_hosts.sh STRAIT FOLDER
set -euo pipefail
strait=$1 folder=$2

if [[ ${3-} != inside ]]; then
  rm -rf "$folder"
  mkdir -p "$folder"
  unshare -rn true 2>"$folder/err" || {
    echo "two_hosts: this needs user and network namespaces, and they are refused: $(cat "$folder/err")"
    echo "allow them (sysctl kernel.unprivileged_userns_clone=1, user.max_user_namespaces), or run as root"
    exit 1
  }
  exec unshare -rn --kill-child bash "$0" "$strait" "$folder" inside
fi

fail() {
  echo "two_hosts: $1"
  tail -n 20 "$folder"/*.out "$folder"/*.err 2>/dev/null
  exit 1
}
unshare -n sleep 300 >/dev/null 2>&1 &
far=$!
trap 'kill "$far" 2>/dev/null || true' EXIT
there() { nsenter -t "$far" -n "$@"; }
# The child has its own namespace only when unshare has run.
for _ in {1..100}; do
  [[ $(readlink "/proc/$far/ns/net") == "$(readlink /proc/self/ns/net)" ]] || break
  sleep 0.05
done
ip link set lo up
there ip link set lo up
ip link add near type veth peer name far netns "$far"
ip address add 10.77.0.1/24 dev near
ip -6 address add fd77::1/64 dev near nodad
ip link set near up
there ip address add 10.77.0.2/24 dev far
there ip -6 address add fd77::2/64 dev far nodad
there ip link set far up

export STRAIT_SECRET=two-hosts-that-are-one
run() { # NAME LISTEN_NEAR LISTEN_FAR [VARIABLE=VALUE...]
  local name=$1 near=$2 far_address=$3
  shift 3
  there env "$@" STRAIT_CAPTURE="$folder/$name.pcapng" "$strait" perf --listen "$far_address" --once \
    >"$folder/$name-server.out" 2>"$folder/$name-server.err" &
  local server=$!
  for _ in {1..100}; do
    [[ -z $(there ss -Hltn "sport = :7471") ]] || break
    kill -0 "$server" 2>/dev/null || fail "$name: the server ended"
    sleep 0.1
  done
  env "$@" STRAIT_LISTEN="$near" timeout 120 "$strait" perf "$far_address" --json --iterations 40 \
    --test put_lat,get_lat,send_lat,fetch_add_lat,put_bw --sizes 8,64K >"$folder/$name-client.out" \
    2>"$folder/$name-client.err" || fail "$name: the client failed"
  wait "$server" || fail "$name: the server failed"
  if grep -q '"verified": *false' "$folder/$name-client.out"; then fail "$name: wrong bytes"; fi
  grep -q '"verified": *true' "$folder/$name-client.out" || fail "$name: nothing was verified"
  # More than a greeting went over the wire as packets.
  (($(stat -c %s "$folder/$name.pcapng") > 100000)) || fail "$name: hardly any packets were captured"
  echo "two_hosts: $name: every byte verified, over packets"
}
run auto 10.77.0.1:0 10.77.0.2:7471
run roce 10.77.0.1:0 10.77.0.2:7471 STRAIT_CARRIER=roce
run ipv6 '[fd77::1]:0' '[fd77::2]:7471' STRAIT_CARRIER=roce
run loss 10.77.0.1:0 10.77.0.2:7471 STRAIT_CARRIER=roce STRAIT_FAULTS=drop=2%,dup=1%,reorder=1%,corrupt=1%,seed=3
rm -rf "$folder"
