#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Instructions that one call of count_STEP in PROGRAM takes, counted by callgrind over COUNT calls.
#   count_instructions.sh PROGRAM STEP COUNT
set -euo pipefail
program=$1 step=$2 count=$3
command -v valgrind >/dev/null || { echo "count_instructions: valgrind is not installed" >&2; exit 3; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
valgrind --tool=callgrind --callgrind-out-file="$folder/out" --toggle-collect="count_$step" "$program" "$step" "$count" \
  >"$folder/log" 2>&1 || { cat "$folder/log" >&2; exit 1; }
total=$(sed -n 's/^totals: *//p' "$folder/out")
[[ $total =~ ^[1-9][0-9]*$ ]] || { echo "count_instructions: callgrind collected nothing in count_$step" >&2; exit 1; }
echo $(((total + count / 2) / count))
