#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# ./dev answers wrong command lines before it installs, configures or builds anything, and says what it ran again.
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
for word in demo build test lab bench lint fuzz clean help unit clang debug asan tsan arm64 gpu install release; do
  grep -qE "^    $word " <<<"$manual" || fail "the manual has no entry for '$word'"
done
while IFS= read -r line; do ((${#line} <= 80)) || fail "the manual has a line of ${#line} columns"; done <<<"$manual"

# ---- tests that fail are run once more: cmake and ctest are actors, and the tree is a copy that holds ./dev alone ----

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
mkdir -p "$stage/bin" "$stage/tree"
cp "$dev" "$stage/tree/dev"
echo '{}' >"$stage/tree/CMakePresets.json"
actor() { # NAME: the rest of its script is read from here
  { echo '#!/bin/bash' && cat; } >"$stage/bin/$1"
  chmod +x "$stage/bin/$1"
}
actor cmake <<'ACTOR'
[[ $1 != --preset ]] || { mkdir -p "build/$2" && touch "build/$2/build.ninja"; }
ACTOR
actor apt-get <<<'exit 1'
actor dpkg-query <<'ACTOR'
for name in "$@"; do echo "installed $name"; done
ACTOR
# Its first run of a preset fails the tests that FAIL_<preset> names; again they pass unless FOR_GOOD names them.
actor ctest <<'ACTOR'
folder=$2 preset=${2##*/} failing=FAIL_${2##*/}
results=$folder/Testing/Temporary
mkdir -p "$results"
if [[ " $* " == *" --rerun-failed "* ]]; then
  if [[ -n ${FOR_GOOD:-} ]]; then echo "still: $FOR_GOOD"; exit 8; fi
  echo "100% tests passed, 0 tests failed out of 1"
else
  echo "${REPORT:-}" >"$results/LastTest.log"
  if [[ -n ${!failing:-} ]]; then
    for name in ${!failing}; do echo "7:$name"; done >"$results/LastTestsFailed.log"
    echo "99% tests passed, 1 tests failed out of 3000 in $preset"
    exit 8
  fi
  echo "100% tests passed, 0 tests failed out of 3000"
fi
echo "Total Test time (real) = 1.00 sec"
ACTOR

# play STATUS [NAME=VALUE...] -- ARGUMENT...: ./dev with these arguments on that stage; what it says is in $said.
play() {
  local status=$1 with=() rc=0
  for (( ; ; )); do
    shift
    [[ $1 != -- ]] || break
    with+=("$1")
  done
  shift
  # By a file: a pipe would stay open for as long as the watcher of a step that is over sleeps.
  env PATH="$stage/bin:$PATH" JOBS=1 "${with[@]}" "$stage/tree/dev" "$@" >"$stage/said" 2>&1 </dev/null || rc=$?
  said=$(<"$stage/said")
  ((rc == status)) || fail "'dev $*' (${with[*]}) ended with $rc, wanted $status: $said"
}
# says LINE...: these lines, in this order, whatever is between them.
says() {
  local at=1 line found
  for line in "$@"; do
    found=$(tail -n "+$at" <<<"$said" | grep -nF -m 1 -- "$line") || fail "no '$line' behind line $at of: $said"
    ((at += ${found%%:*}))
  done
}
silent() { [[ $said != *"$1"* ]] || fail "'$1' is in: $said"; }
ends() { [[ $(tail -n 1 <<<"$said") == "$1" ]] || fail "the last line is not '$1' of: $said"; }
closing='Total Test time (real) = 1.00 sec'

play 0 -- test asan release
silent "again, alone"
ends "$closing"
play 0 FAIL_asan='flow.slow tool.slow' -- test asan release
says "once more, alone: flow.slow tool.slow" "100% tests passed, 0 tests failed out of 1" \
  "Passed only when run again, alone:" "  asan: flow.slow tool.slow" "== release" "out of 3000"
ends "$closing"
play 0 FAIL_release=unit.slow -- test asan release
says "== release" "99% tests passed" "once more, alone: unit.slow" "100% tests passed, 0 tests failed out of 1"
silent "Passed only"
ends "$closing"
play 0 FAIL_asan=flow.slow -- test asan
says "once more, alone: flow.slow" "100% tests passed, 0 tests failed out of 1"
ends "  100% tests passed, 0 tests failed out of 1"
play 1 FAIL_asan='one two three' -- test asan release
silent "once more"
silent "== release"
play 1 FAIL_asan=one REPORT='ERROR: AddressSanitizer: heap' -- test asan release
silent "once more"
play 1 FAIL_asan=one FOR_GOOD=one -- test asan release
says "once more, alone: one" "still: one"
silent "Passed only"
play 8 FAIL_release=one FOR_GOOD=one -- test release
says "once more, alone: one" "still: one"
play 0 -- test --without-lab lab release
ends "The lane lab was left out (--without-lab): nothing ran against the kernel's RDMA stack."
