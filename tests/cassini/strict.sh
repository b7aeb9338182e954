#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# strait run --strict and --faults on the software Cassini: exit status, text, JSON, last line.
# usage: strict.sh STRAIT CLIENT WRONG
set -uo pipefail
strait=$1 client=$2 wrong=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export STRAIT_CASSINI=test-strict-$$
bad=0

# EXPECTED STATUS, then options and program of strait run. Its output is in $scratch/out.
expect() {
  local status=$1
  shift
  "$strait" run --cassini 1 --nics 0 "$@" >"$scratch/out" 2>&1
  local got=$?
  [[ $got == "$status" ]] && return
  echo "strict.sh: exit status $got instead of $status: $*"
  cat "$scratch/out"
  bad=1
}
says() {
  grep -q -- "$1" "$scratch/${2-out}" && return
  echo "strict.sh: nothing like \"$1\" in:"
  cat "$scratch/${2-out}"
  bad=1
}
silent_about() {
  grep -q -- "$1" "$scratch/out" || return 0
  echo "strict.sh: \"$1\" in:"
  cat "$scratch/out"
  bad=1
}

expect 0 -- "$wrong"
silent_about 'strict:'
says 'strait run: 1 process,'
expect 66 --strict --set strict_report="$scratch/report" -- "$wrong"
says 'wrong: done'
says 'strict: process [0-9]*, cxi0, profile [0-9]*: a communication profile was freed while a queue still sends with it$'
says '  rule profile-freed-in-use; remedy: free the queue first'
says ', 1 findings'
says '"nic":"cxi0","object":"profile","number":[0-9]*,"block":null,"rule":"profile-freed-in-use"' report
expect 0 --strict -- "$wrong" right
silent_about 'strict:'
silent_about 'findings'
expect 0 --strict --faults drop=1%,seed=3 -- "$client"
says 'client: all as it should be'
silent_about 'strict:'
expect 3 --faults dup=1% -- "$client"
says 'dup does not fit a Cassini'
exit $bad
