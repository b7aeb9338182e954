#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The lab tells a test that fails from a guest that breaks: a script's own status comes back, a panic is 125 with the
# console, a guest that hangs is ended. Without this, a lab that ran nothing could look like one that found nothing.
#
#   broken.sh FOLDER    what prepare.sh made
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=$1
share=$folder/broken
mkdir -p "$share"

# expect NAME STATUS WORDS OPTIONS SCRIPT_TEXT
expect() {
  local name=$1 rc=0
  shift
  echo "$4" >"$share/script.sh"
  # shellcheck disable=SC2086  # the options are words
  "$here/run" --kernel "$folder/kernel" --guest "$folder/guest.cpio.gz" --share "$share" $3 "$share/script.sh" \
    >"$share/said.txt" 2>&1 || rc=$?
  if ((rc != $1)) || ! grep -q "$2" "$share/said.txt"; then
    cat "$share/said.txt"
    echo "lab: '$name' ended with $rc, wanted $1 and the words '$2'"
    exit 1
  fi
  echo "ok: $name ends with $rc and says '$2'"
}
expect 'two failing tests of three' 2 'lab: 3 tests, 2 failed' '' "
  printf '%s\n' 'good 9 true' 'bad 9 exit 7' 'slow 1 sleep 60' >/out/tests.txt
  $(<"$here/each.sh")"
expect panic 125 'Kernel panic' '' 'echo c >/proc/sysrq-trigger'
expect hang 125 'still running after' '--limit 20' 'sleep 600'
expect 'a wrong option' 125 'there is no carrier' '--carrier pigeon' 'true'

# A machine without qemu fails; it does not skip.
rc=0
said=$(PATH=/nonexistent /bin/bash "$here/run" --kernel "$folder/kernel" --guest "$folder/guest.cpio.gz" "$share/script.sh" 2>&1) || rc=$?
[[ $rc == 125 && $said == *'there is no qemu-system-x86_64'* ]] || { echo "lab: without qemu: $rc, $said"; exit 1; }
echo "ok: no qemu ends with 125 and says how to get it"
