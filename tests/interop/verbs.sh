#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Other people's verbs programs, as the distribution ships them, on the software ConnectX.
#   verbs.sh STRAIT FOLDER alone PROGRAM ARGUMENT...    it ends with 0
#   verbs.sh STRAIT FOLDER pair PROGRAM ARGUMENT...     a server, and a client that is given the server's address too
#   verbs.sh STRAIT FOLDER crossed PROGRAM ARGUMENT...  a pair, the server on the first NIC and the client on the second
#   verbs.sh STRAIT FOLDER ucx PROGRAM ARGUMENT...      the same for ucx_perftest, which listens on another port
#   verbs.sh STRAIT FOLDER script FILE ARGUMENT...      a script of this folder, within the same network
# STRAIT_RUN_ARGUMENTS: what `strait run` is told besides. STRAIT_RUN_SAYS: what it has to say at the end, of either side.
# VERBS_SHOWS: what else the output of either side has, expressions of grep -E with commas between them; blanks, ends of
# lines and # are one blank each there.
# VERBS_FINDS: rules of the strict NIC with commas between them: each is found (but those with a ? not every time), no other
# one is, and at least one side ends with 66, as it does when something is found. The programs themselves end with 0.
# VERBS_ONE_CPU=yes: each side of a pair has one processor, the first and the last of those there are.
# Each run has a network namespace of its own with nothing but loopback: fixed port numbers, and nobody to disturb.
set -euo pipefail
strait=$1 folder=$2 kind=$3
shift 3
read -ra run <<<"${STRAIT_RUN_ARGUMENTS-}"

if [[ ${VERBS_INSIDE-} != yes ]]; then
  rm -rf "$folder"
  mkdir -p "$folder"
  unshare -rn true 2>"$folder/err" || {
    echo "verbs: this needs user and network namespaces, and they are refused: $(cat "$folder/err")"
    echo "allow them (sysctl kernel.unprivileged_userns_clone=1, user.max_user_namespaces), or run as root"
    exit 1
  }
  # Where packets are lost, the last acknowledgement may be, and then nobody is left to repeat it: a server fails whose
  # client has every byte. Such a run proves nothing in either direction and is made again. So is one in which rping of
  # older rdma-core closes its event channel before its other thread, which then finds it gone, is through.
  for ((run_number = 1; ; ++run_number)); do
    status=0
    VERBS_INSIDE=yes unshare -rn --kill-child bash "$0" "$strait" "$folder" "$kind" "$@" || status=$?
    ((status == 75 && run_number < 3)) || break
    echo "verbs: run $run_number of at most 3 proves nothing, for the reason above; once more"
  done
  ((run_number == 1)) || echo "verbs: made again: $((run_number - 1)) times"
  exit "$status"
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
# fi_pingpong over rxm has measured and compared every size on both sides, and one of them left while the other still
# waited for a message of the library's own, which is flushed then: on a NIC that is late on purpose, now and then.
left_at_the_end() {
  grep -qh '^\[error\].*Work Request Flushed Error' "$folder"/*.out && (($(grep -lE '^1m +20 +=20' "$folder"/*.out | wc -l) == 2))
}
# last_word_lost FILE: who wrote it heard nothing more, in the words of perftest, ibverbs-utils, rping, UCX or libfabric.
# The other side ended with 0, having compared what it compares. Any other end of a run with losses is a failure.
last_word_lost() {
  [[ ${run[*]} == *drop=* ]] && grep -qE 'retry count(er)? +exceeded|[Ss]tatus:? 12\b|Endpoint timeout' "$1"
}
again() {
  echo "verbs: $1"
  exit 75
}
# ended_well STATUS
found_by=0
ended_well() {
  (($1 != 0)) || return 0
  [[ -n ${VERBS_FINDS-} ]] && (($1 == 66)) || return 1
  found_by=$((found_by + 1))
}
# server_failed COMMAND STATUS: its client did not.
server_failed() {
  echo "verbs: the server $1 ended with $2"
  tail -n 40 "$folder"/*.out
  ! last_word_lost "$folder/server.out" || again "its client had everything, and the last acknowledgement was lost"
  ! grep -q '^rdma_get_cm_event: Bad file descriptor' "$folder/server.out" || again "its event channel went first"
  ! left_at_the_end || again "both sides had everything, and one left while the other waited for the library"
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

on_server=() on_client=()
if [[ ${VERBS_ONE_CPU-} == yes ]]; then
  cpus=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)
  on_server=(taskset -c "${cpus%%[,-]*}") on_client=(taskset -c "${cpus##*[,-]}")
fi

case $kind in
  alone)
    "$strait" run "${run[@]}" -- "$@" >"$folder/alone.out" 2>&1 || fail "$* ended with $?"
    cat "$folder/alone.out"
    ;;
  pair | crossed | ucx)
    port=18515
    [[ $kind != ucx ]] || port=13337
    server_says=() client_says=()
    [[ $kind != crossed ]] || server_says=(-d strait0) client_says=(-d strait1)
    "${on_server[@]}" "$strait" run "${run[@]}" -- "$@" "${server_says[@]}" >"$folder/server.out" 2>&1 &
    server=$!
    listening "$port" "$server"
    status=0
    "${on_client[@]}" "$strait" run "${run[@]}" -- "$@" "${client_says[@]}" 10.77.0.1 >"$folder/client.out" 2>&1 || status=$?
    if ! ended_well "$status"; then
      # Whoever is through first leaves, and takes the repetition of a lost last acknowledgement along.
      ! last_word_lost "$folder/client.out" || ! wait "$server" ||
        again "the client ended with $status: its server had everything, and the last acknowledgement was lost"
      fail "the client of $* ended with $status"
    fi
    status=0
    wait "$server" || status=$?
    ended_well "$status" || server_failed "$*" "$status"
    cat "$folder/client.out"
    ;;
  script)
    # shellcheck source=/dev/null
    . "$(dirname "$0")/$1" "${@:2}"
    ;;
  *) fail "\"$kind\" is none of alone, pair, crossed, ucx, script" ;;
esac
said() { cat "$folder"/*.out | tr -s '\n\t #' ' '; }
IFS=, read -ra shows <<<"${VERBS_SHOWS-}"
for what in "${shows[@]}"; do
  said | grep -E "$what" >/dev/null || fail "the output does not have \"$what\""
done
# What it says may be broken into lines anywhere.
[[ -z ${STRAIT_RUN_SAYS-} ]] || said | grep "strait run: .*$STRAIT_RUN_SAYS" >/dev/null ||
  fail "neither side said \"$STRAIT_RUN_SAYS\""
if [[ -n ${VERBS_FINDS-} ]]; then
  ((found_by > 0)) || fail "neither side ended with 66"
  found=$(said | grep -oE ' rule [a-z-]+;' | sort -u | sed 's/^ rule //; s/;$//') || true
  for rule in ${VERBS_FINDS//,/ }; do
    [[ $rule == *\? ]] || grep -qx -e "$rule" <<<"$found" || fail "the rule \"$rule\" was not found"
  done
  for rule in $found; do
    [[ ,${VERBS_FINDS//\?/}, == *",$rule,"* ]] || fail "the rule \"$rule\" was found, and was not expected"
  done
fi
