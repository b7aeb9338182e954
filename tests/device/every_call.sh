#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Of each public call of a Lane: that the kernel which runs on a stalled NIC makes it, and that the page names it.
#   every_call.sh LANE.HPP LANE_BODIES.HPP LANE.MD
set -euo pipefail
lane=$1 bodies=$2 page=$3
mapfile -t calls < <(sed -n '/^class Lane {/,/^ private:/p' "$lane" |
  sed -nE 's/^  STRAIT_HD_INLINE [A-Za-z_:]+ ([a-z_]+)\(.*/\1/p' | sort -u)
# Fewer than there are today: the headers are no longer written as this script reads them.
((${#calls[@]} >= 27)) || { echo "only ${#calls[@]} calls found in $lane: ${calls[*]}"; exit 1; }
stalled=$(sed -n '/^struct Stalled {/,/^};/p' "$bodies")
status=0
for call in "${calls[@]}"; do
  grep -q "lane\.$call(" <<<"$stalled" || { echo "$call: not called while the NIC is stalled (Stalled in $bodies)"; status=1; }
  grep -q "\`$call\`" "$page" || { echo "$call: not in $page"; status=1; }
done
echo "${#calls[@]} calls"
exit $status
