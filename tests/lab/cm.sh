#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# rdma_cm outside the guest against the kernel's inside: Debian's rdmacm-utils on both ends, each end as server and as
# client. Outside they run under `strait run`, over a tap device in a network namespace of their own; inside over rxe.
#
#   cm.sh STRAIT FOLDER    STRAIT: the tool, with its libraries beside it as a build has them
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin
here=$(cd "$(dirname "$0")" && pwd)
strait=$1 folder=$2
share=$folder/share

if [[ ${3-} != inside ]]; then
  rm -rf "$folder"
  mkdir -p "$share"
  "$here/kernel" >"$folder/kernel.out" || { cat "$folder/kernel.out"; exit 1; }
  tools=()
  for tool in ip rdma rping ucmatose udaddy; do
    tools+=("$(command -v "$tool")") || { echo "lab: there is no $tool"; echo "  as root: apt-get install iproute2 rdmacm-utils"; exit 1; }
  done
  kernel=$(tail -n 1 "$folder/kernel.out")
  "$here/guest" "$kernel" "$folder/cm.cpio.gz" "${tools[@]}"
  ln -sfn "$kernel" "$folder/kernel"
  unshare -rn true 2>"$folder/err" || {
    echo "lab: this needs user and network namespaces, and they are refused: $(cat "$folder/err")"
    echo "allow them (sysctl kernel.unprivileged_userns_clone=1, user.max_user_namespaces), or run as root"
    exit 1
  }
  exec unshare -rn --kill-child bash "$0" "$strait" "$folder" inside
fi

ip link set lo up
ip tuntap add lab0 mode tap
ip link set lab0 mtu 4200 up
ip address add 198.51.100.1/24 dev lab0
ip -6 address add fd00:db8::1/64 dev lab0 nodad

# Each is run twice: the server inside, then outside. AT is its address. The number is the service that a server outside
# takes (docs/soft-cm.md).
programs=(
  '1061c06:rping -s -a AT -v -V -C 10:rping -c -a AT -v -V -C 10'
  '1061c06:rping -s -a AT6 -v -V -C 10:rping -c -a AT6 -v -V -C 10'
  '1061c06:rping -s -a AT -V -S 60000 -C 10:rping -c -a AT -V -S 60000 -C 10'
  '1061c06:rping -s -a AT6 -V -S 60000 -C 10:rping -c -a AT6 -V -S 60000 -C 10'
  '1061d2f:ucmatose -c 3 -C 10:ucmatose -s AT -c 3 -C 10'
  '1111c06:udaddy -c 1 -C 4:udaddy -s AT -c 1 -C 4'
)
at() { # LAST COMMAND: on the end whose addresses end so
  local command=${2//AT6/fd00:db8::$1}
  echo "${command//AT/198.51.100.$1}"
}

# What each end says lies in the share, and so do the signs that a server listens.
{
  cat <<'GUEST'
failed=0
server() { # NAME COMMAND...
  name=$1
  shift
  "$@" >/out/$name.inside 2>&1 &
  until rdma resource show cm_id | grep -q LISTEN; do
    kill -0 $! || break
    usleep 100000
  done
  touch /out/$name.listens
  wait $! || { echo "$name: the server inside ended with $?"; failed=1; }
}
client() {
  name=$1
  shift
  until [ -e /out/$name.listens ]; do usleep 100000; done
  "$@" >/out/$name.inside 2>&1 || { echo "$name: the client inside ended with $?"; failed=1; }
}
GUEST
  for i in "${!programs[@]}"; do
    IFS=: read -r _ server client <<<"${programs[i]}"
    echo "server in$i $(at 2 "$server")"
    echo "client out$i $(at 1 "$client")"
  done
  echo "exit \$failed"
} >"$folder/cm.run"

set -m  # a process group for the guest, so that it goes when this fails
"$here/run" --kernel "$folder/kernel" --guest "$folder/cm.cpio.gz" --share "$share" --carrier tap --tap lab0 --limit 800 \
  "$folder/cm.run" >"$folder/guest.out" 2>&1 &
guest=$!
set +m
trap 'kill -- -$guest 2>/dev/null || true' EXIT

fail() {
  echo "lab: $1"
  tail -n 20 "$folder"/guest.out "$share"/*side 2>/dev/null || true
  exit 1
}
until_there() { # WHAT COMMAND...: while the guest runs
  local what=$1
  shift
  until "$@"; do
    kill -0 $guest 2>/dev/null || fail "the guest ended before $what"
    sleep 0.2
  done
}
takes() { # SERVICE
  kill -0 "$outside" 2>/dev/null || fail "the server outside ended before it listened"
  grep -q "@strait-cm/service/$1/" /proc/net/unix
}
for i in "${!programs[@]}"; do
  IFS=: read -r service server client <<<"${programs[i]}"
  until_there "in$i listened" test -e "$share/in$i.listens"
  # shellcheck disable=SC2046  # the command's words
  timeout 200 "$strait" run -- $(at 2 "$client") >"$share/in$i.outside" 2>&1 || fail "in$i: the client outside ended with $?"
  echo "ok: $(at 2 "$client"), the kernel's rdma_cm is the server"
  # shellcheck disable=SC2046
  timeout 200 "$strait" run -- $(at 1 "$server") >"$share/out$i.outside" 2>&1 &
  outside=$!
  until_there "out$i listened" takes "$service"
  touch "$share/out$i.listens"
  wait $outside || fail "out$i: the server outside ended with $?"
  echo "ok: $(at 1 "$server"), the kernel's rdma_cm is the client"
done
wait $guest || fail "the guest ended with $?"
