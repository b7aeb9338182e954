#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Fails when building, ringing and reaping an 8-byte inline write takes over 10 % more instructions than instructions.txt
# says, or another program's steps more than FILE. Fewer are welcome: then lower the number there.
#   instructions_test.sh PROGRAM [FILE]
set -euo pipefail
here=$(dirname "$0")
program=$1 file=${2:-$here/instructions.txt}
status=0 seen=0
while read -r step committed _; do
  [[ -n $step && $step != \#* ]] || continue
  [[ $committed =~ ^[1-9][0-9]*$ ]] || { echo "$file: '$step $committed' is not a step and a number"; exit 1; }
  now=$("$here/count_instructions.sh" "$program" "$step" 1000)
  verdict=ok
  if ((now * 10 > committed * 11)); then verdict="more than 10 % over"; status=1; fi
  echo "$step: $now instructions, committed $committed: $verdict"
  seen=$((seen + 1))
done <"$file"
((seen > 0)) || { echo "$file names no step"; exit 1; }
exit $status
