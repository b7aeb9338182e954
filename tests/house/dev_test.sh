#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# ./dev answers wrong command lines before it installs, configures or builds anything.
set -euo pipefail
dev=$(cd "$(dirname "$0")/../.." && pwd)/dev
fail() { echo "dev_test: $*"; exit 1; }

# expect STATUS WORDS ARGUMENT...
expect() {
  local status=$1 words=$2 rc=0 said
  shift 2
  said=$("$dev" "$@" 2>&1 </dev/null) || rc=$?
  ((rc == status)) || fail "'dev $*' ended with $rc, wanted $status: $said"
  [[ $said == *"$words"* ]] || fail "'dev $*' does not say '$words' but: $said"
}
expect 0 "./dev demo [ARGUMENT...]" help
expect 0 "./dev demo [ARGUMENT...]" --help
expect 2 "there is no command 'demmo'" demmo
expect 2 "there is no lane 'asam'" test asam
expect 2 "there is no lane 'asam'" test unit asam
expect 2 "leaves nothing of what was asked for" test --without-lab lab
expect 2 "--without-gpu leaves nothing of what was asked for" test --without-gpu gpu
expect 2 "leaves nothing of what was asked for" test --without-lab gpu --without-gpu lab
expect 2 "there is no lane '--without-laboratory'" test --without-laboratory
expect 2 "'ten' is not a number of seconds" fuzz wqe ten

manual=$("$dev" help)
for word in demo build test lab bench lint fuzz clean help unit clang asan tsan arm64 gpu install release; do
  grep -qE "^    $word " <<<"$manual" || fail "the manual has no entry for '$word'"
done
while IFS= read -r line; do ((${#line} <= 80)) || fail "the manual has a line of ${#line} columns"; done <<<"$manual"
