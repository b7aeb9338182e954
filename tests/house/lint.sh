#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The rules of the house that a machine can check: one line per offence, exit status 1 if there was one.
set -euo pipefail
cd "$(dirname "$0")/../.."
status=0
offence() { echo "$1"; status=1; }

mapfile -t code < <(find include src tests bench examples -type f \
  \( -name '*.cpp' -o -name '*.hpp' -o -name '*.c' -o -name '*.h' -o -name '*.cu' \) | sort)
mapfile -t scripts < <(find . -path ./build -prune -o -path ./.git -prune -o -type f \
  \( -name CMakeLists.txt -o -name '*.cmake' -o -name '*.sh' -o -path ./dev -o -path ./.ci/run \) -print | sort)
((${#code[@]})) || { echo "lint: no source files found"; exit 1; }

clang-format-16 --dry-run -Werror "${code[@]}" || offence "layout: run clang-format-16 -i on the files above"

for file in "${code[@]}" "${scripts[@]}"; do
  head -n 2 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0' ||
    offence "$file:1: no SPDX-License-Identifier line at the top"
  lines=$(wc -l <"$file")
  ((lines <= 800)) || offence "$file: $lines lines, the house allows 800: split it"
done
# grep answers 1 when it finds nothing, which is what we want to hear.
forbid() { # PATTERN REASON FILE...
  local pattern=$1 reason=$2 found
  shift 2
  found=$(grep -nE "$pattern" "$@" /dev/null || true)
  [[ -z $found ]] || offence "$found"$'\n'"  $reason"
}
forbid '#include "\.\./' 'includes name the module ("sys/fd.hpp"), never a way around it' "${code[@]}"
forbid $'\t' 'no tabs' "${code[@]}" "${scripts[@]}"
forbid '[[:space:]]+$' 'no blanks at the end of a line' "${code[@]}" "${scripts[@]}"
exit $status
