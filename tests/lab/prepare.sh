#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Everything a boot needs, in one folder: FOLDER/kernel (a link), FOLDER/guest.cpio.gz.
#
#   prepare.sh FOLDER [--also FILE]... PROGRAM...
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin
here=$(cd "$(dirname "$0")" && pwd)
folder=$1
shift
said=$(mktemp)
trap 'rm -f "$said"' EXIT
"$here/kernel" >"$said" || { cat "$said"; exit 1; }
cat "$said"
ln -sfn "$(tail -n 1 "$said")" "$folder/kernel"
tools=()
for tool in ip rdma ibv_devinfo ibv_rc_pingpong; do
  tools+=("$(command -v "$tool")") || { echo "lab: there is no $tool"; echo "  as root: apt-get install iproute2 ibverbs-utils"; exit 1; }
done
"$here/guest" "$folder/kernel" "$folder/guest.cpio.gz" "${tools[@]}" "$@"
