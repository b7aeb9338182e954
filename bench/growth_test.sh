#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The instruction test can fail: told that 15 % less than the present number was committed, it must say so.
#   growth_test.sh PROGRAM
set -euo pipefail
here=$(dirname "$0")
lowered=$(mktemp)
trap 'rm -f "$lowered"' EXIT
now=$("$here/count_instructions.sh" "$1" post 1000)
echo "post $((now * 85 / 100))" >"$lowered"
if "$here/instructions_test.sh" "$1" "$lowered"; then
  echo "a growth of 15 % went unnoticed"
  exit 1
fi
