#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Other people's verbs programs, as the distribution ships them, on the software ConnectX.
#   verbs.sh STRAIT FOLDER alone PROGRAM ARGUMENT...    it ends with 0
#   verbs.sh STRAIT FOLDER pair PROGRAM ARGUMENT...     a server, and a client that is given the server's address too
#   verbs.sh STRAIT FOLDER ucx PROGRAM ARGUMENT...      the same for ucx_perftest, which listens on another port
#   verbs.sh STRAIT FOLDER script FILE ARGUMENT...      a script of this folder, within the same network
# Each run has a network namespace of its own with nothing but loopback: fixed port numbers, and nobody to disturb.
set -euo pipefail
strait=$1 folder=$2 kind=$3
shift 3

if [[ ${VERBS_INSIDE-} != yes ]]; then
  rm -rf "$folder"
  mkdir -p "$folder"
  unshare -rn true 2>"$folder/err" || {
    echo "verbs: this needs user and network namespaces, and they are refused: $(cat "$folder/err")"
    echo "allow them (sysctl kernel.unprivileged_userns_clone=1, user.max_user_namespaces), or run as root"
    exit 1
  }
  VERBS_INSIDE=yes exec unshare -rn --kill-child bash "$0" "$strait" "$folder" "$kind" "$@"
fi
ip link set lo up
ip address add 10.77.0.1/24 dev lo
ip -6 address add fd77::1/64 dev lo nodad
command -v "$1" >/dev/null || [[ $kind == script ]] || { echo "verbs: there is no $1; install the package that has it"; exit 1; }

fail() {
  echo "verbs: $1"
  tail -n 40 "$folder"/*.out 2>/dev/null || true
  exit 1
}
# listening PORT PID: waits until the server takes connections.
listening() {
  local port deadline=$((SECONDS + 60))
  port=$(printf ':%04X ' "$1")
  until grep -q "$port.* 0A " /proc/net/tcp /proc/net/tcp6; do
    kill -0 "$2" 2>/dev/null || fail "the server ended before the client came"
    ((SECONDS < deadline)) || fail "the server does not listen on port $1"
    sleep 0.1
  done
}

case $kind in
  alone)
    "$strait" run -- "$@" >"$folder/alone.out" 2>&1 || fail "$* ended with $?"
    cat "$folder/alone.out"
    ;;
  pair | ucx)
    port=18515
    [[ $kind == pair ]] || port=13337
    "$strait" run -- "$@" >"$folder/server.out" 2>&1 &
    server=$!
    listening "$port" "$server"
    "$strait" run -- "$@" 10.77.0.1 >"$folder/client.out" 2>&1 || fail "the client of $* ended with $?"
    wait "$server" || fail "the server of $* ended with $?"
    cat "$folder/client.out"
    ;;
  script)
    # shellcheck source=/dev/null
    . "$(dirname "$0")/$1" "${@:2}"
    ;;
  *) fail "\"$kind\" is none of alone, pair, ucx, script" ;;
esac
