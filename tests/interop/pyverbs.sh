#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# rdma-core's own tests, as Debian ships them with its Python binding, on one software ConnectX. Part of verbs.sh,
# which makes the network and has strait, folder and fail.
#   pyverbs.sh PASSES    fails if one of them fails, if fewer than PASSES pass, or if one is skipped for a reason that
#                        pyverbs_skips.txt does not have for it
: "${strait:?}" "${folder:?}"
passes=$1
here=$(dirname "${BASH_SOURCE[0]}")
shipped=/usr/share/doc/rdma-core/tests
[[ -d $shipped ]] || fail "there is no $shipped; install python3-pyverbs with its documentation (dpkg's path-exclude may leave it out)"
mkdir "$folder/tests"
cp "$shipped"/* "$folder/tests"
gunzip -f "$folder"/tests/*.gz
# One test has children of fork go on with their parent's context. Here a child has no devices but those it opens.
sed -i '/def test_multi_process_alloc_dm/a\        self.skipTest("Contexts are not inherited by children of fork")' "$folder/tests/test_device.py"
# The distribution's Python, which has the binding; not another one that comes first in PATH.
(cd "$folder" && "$strait" run -- /usr/bin/python3 tests/run_tests.py --dev strait0 --port 1 -v) >"$folder/pyverbs.out" 2>&1 ||
  fail "run_tests.py ended with $?"
# "test_x (tests.module.Class.test_x)", on the same line or, behind lines about it, a later one "... skipped 'why'", in
# either kind of quotes; the last line says "OK (skipped=160)".
awk -v quotes="^['\"]|['\"]\$" '
  match($0, /^test_[^ ]* \(tests\.[^)]*\)/) { name = substr($0, RSTART, RLENGTH); sub(/.*\(tests\./, "", name); sub(/\)/, "", name) }
  match($0, /\.\.\. skipped ['"'"'"].*['"'"'"]$/) { why = substr($0, RSTART + 12); gsub(quotes, "", why); print name "\t" why }' \
  "$folder/pyverbs.out" >"$folder/skips.txt"
total=$(sed -nE 's/^Ran ([0-9]+) tests.*/\1/p' "$folder/pyverbs.out")
skipped=$(sed -nE 's/^OK \(skipped=([0-9]+)\)$/\1/p' "$folder/pyverbs.out")
[[ -n $total && -n $skipped ]] || fail "run_tests.py does not say how many tests ran and were skipped"
(($(wc -l <"$folder/skips.txt") == skipped)) || fail "$skipped tests were skipped, and not all of them say why"
passed=$((total - skipped))
awk -F '\t' 'NR == FNR { if (!/^#/) { class[NR] = $1; test[NR] = $2; reason[NR] = $3 }; next }
  { found = "new: " $0
    for (row in class) if (index($1, test[row]) == 1 && index($2, reason[row]) == 1) found = class[row]
    print found }' "$here/pyverbs_skips.txt" "$folder/skips.txt" | sort | uniq -c | sort -rn >"$folder/classes.txt"
echo "$total tests: $passed pass, $skipped are skipped"
cat "$folder/classes.txt"
! grep -q ' new: ' "$folder/classes.txt" || fail "a test was skipped for a reason that $here/pyverbs_skips.txt does not have"
((passed >= passes)) || fail "$passed tests pass, and $passes have before"
