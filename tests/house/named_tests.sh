#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A page that says which test shows what: every test it names exists, and every row of its tables names one.
#   named_tests.sh PAGE ROOT BUILD    ROOT: the tree whose tests are meant; BUILD: where ctest knows the others
set -euo pipefail
page=$1 root=$2 build=$3
status=0
offence() {
  echo "$page:$1"
  status=1
}

# "Suite.Test" of every TEST, TEST_F and TEST_P; long names stand on a line of their own.
mapfile -t sources < <(find "$root/src" "$root/tests" \( -name '*_test.cpp' -o -name '*_test.cu' \) | sort)
gtests=$(cat "${sources[@]}" | tr '\n' ' ' | grep -oE '\bTEST(_F|_P)?\( *[A-Za-z0-9_]+, *[A-Za-z0-9_]+ *\)' |
  sed -E 's/^TEST(_F|_P)?\( *([A-Za-z0-9_]+), *([A-Za-z0-9_]+) *\)/\2.\3/')
ctests=$(ctest --test-dir "$build" -N | sed -nE 's/^ *Test +#[0-9]+: //p')
known=$(printf '%s\n%s\n' "$gtests" "$ctests")

number=0 rows=0
while IFS= read -r line; do
  number=$((number + 1))
  # The first cell of a row names what is shown, the others may name tests.
  cells=$line
  if [[ $line == '|'* ]]; then
    [[ $line != '|---'* && $line != '| interface |'* && $line != '| difference |'* ]] || continue
    rows=$((rows + 1))
    cells=$(cut -d '|' -f 3- <<<"$line")
    tests=$(cut -d '|' -f 3 <<<"$line")
    [[ $tests == *'`'?*.?*'`'* ]] || offence "$number: a row without a test"
  fi
  while IFS= read -r name; do
    grep -qxF -- "$name" <<<"$known" || offence "$number: there is no test $name"
  done < <(grep -oE '`([A-Z][A-Za-z0-9]*\.[A-Z][A-Za-z0-9_]*|(cassini|flow|interop|house)\.[a-z_.0-9]+)`' <<<"$cells" | tr -d '`')
done <"$page"
((rows != 0)) || offence "1: no table"
exit "$status"
