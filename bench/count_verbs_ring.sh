#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Instructions that building, ringing and reaping one 8-byte inline write takes (verbs_ring.cpp), by strait/device and by
# libmlx5, counted by callgrind. What the software NIC does meanwhile is not counted: only the program, libmlx5 and
# libibverbs are.
#   count_verbs_ring.sh STRAIT VERBS_RING [COUNT]
set -euo pipefail
strait=$1 program=$2 count=${3:-2000}
command -v valgrind >/dev/null || { echo "count_verbs_ring: valgrind is not installed" >&2; exit 3; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for way in ours verbs; do
  "$strait" run -- valgrind --tool=callgrind --callgrind-out-file="$folder/$way" --toggle-collect="count_${way}_*" \
    "$program" "$way" "$count" >"$folder/log" 2>&1 || { cat "$folder/log" >&2; exit 1; }
  # Costs of a function itself, by the object it lies in; the line behind "calls=" is what the callee cost.
  total=$(awk -v program="$(basename "$program")" '
    /^ob=/ { name = $0; sub(/^ob=\([0-9]+\) ?/, "", name); id = $0; sub(/^ob=/, "", id); sub(/\).*/, ")", id)
             if (name != "") names[id] = name; object = names[id]; next }
    /^cob=/ { name = $0; sub(/^cob=\([0-9]+\) ?/, "", name); id = $0; sub(/^cob=/, "", id); sub(/\).*/, ")", id)
              if (name != "") names[id] = name; next }
    /^calls=/ { getline; next }
    /^[0-9+*-]/ { n = split(object, parts, "/"); base = parts[n]
                  if (base == program || base ~ /^libmlx5/ || base ~ /^libibverbs/) sum += $2 }
    END { print sum + 0 }' "$folder/$way")
  ((total > 0)) || { echo "count_verbs_ring: callgrind collected nothing of $way" >&2; exit 1; }
  echo "$way $(((total + count / 2) / count))"
done
