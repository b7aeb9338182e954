#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs in the guest: every test of the list, whatever the others do, with its status and how long it took.
#
# The list is /out/tests.txt: a line is NAME LIMIT_SECONDS COMMAND..., a # begins a comment. Says "NAME STATUS SECONDS"
# after each, and ends with the number of tests that failed, 100 at most. An empty list is a failure.
count=0
failed=0
now() { cut -d ' ' -f 1 /proc/uptime; }
while read -r name limit command; do
  case $name in '' | '#'*) continue ;; esac
  count=$((count + 1))
  start=$(now)
  timeout "$limit" sh -c "$command" >/tmp/said 2>&1 </dev/null
  status=$?
  sed "s/^/  $name: /" /tmp/said
  echo "$name $status $(echo "$(now) $start" | awk '{ printf "%.1f", $1 - $2 }')"
  [ $status = 0 ] || failed=$((failed + 1))
done </out/tests.txt
echo "lab: $count tests, $failed failed"
[ $count -gt 0 ] || exit 99
[ $failed -le 100 ] || failed=100
exit $failed
