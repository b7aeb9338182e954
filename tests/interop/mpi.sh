#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Open MPI: two ranks that exchange messages, reduce, and write into each other's memory, with every byte compared.
# Part of verbs.sh, which makes the network and has strait, folder and fail.
#   mpi.sh ARGUMENT OF MPIRUN...
: "${strait:?}" "${folder:?}"
declare -a run # arguments of `strait run`
for program in mpicc mpirun; do
  command -v $program >/dev/null || fail "there is no $program; install openmpi-bin and libopenmpi-dev"
done
mpicc -O1 -Wall -Wextra -o "$folder/mpi_exchange" "$(dirname "$0")/mpi_exchange.c" >"$folder/build.out" 2>&1 ||
  fail "mpi_exchange.c does not compile"
# Ranks that wait give their core away: there may be fewer cores than processes that poll.
"$strait" run "${run[@]}" -- mpirun --allow-run-as-root --oversubscribe -np 2 --mca mpi_yield_when_idle 1 \
  "$@" "$folder/mpi_exchange" >"$folder/mpirun.out" 2>&1 || fail "mpirun $* ended with $?"
cat "$folder/mpirun.out"
grep -q 'all bytes right' "$folder/mpirun.out" || fail "the ranks did not say that all is right"
# Not past the device, over TCP or shared memory of MPI's own.
grep -Eq 'strait run: 2 processes, .*[1-9][0-9]* (packets|messages)' "$folder/mpirun.out" ||
  fail "no traffic went over the device"
