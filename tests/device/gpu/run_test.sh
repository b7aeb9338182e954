#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gpu/run with stand-ins for the GPU, the compiler and the programs: which it runs, what it answers, and that results.json is
# there however it ends.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder"/{tree/tests/device/gpu,tree/bench/gpu,bin}
cp "$here/run" "$folder/tree/tests/device/gpu/"
build=$folder/tree/build/gpu-suite
said=$folder/said

stand_in() {  # file, what it does
  mkdir -p "$(dirname "$1")"
  printf '#!/bin/bash\n%s\n' "$2" >"$1"
  chmod +x "$1"
}
# One that writes what GoogleTest would.
# shellcheck disable=SC2016
tests='echo "$(basename "$0") ${STRAIT_ACCELERATORS:-} $*" >>"$SAID"
for a in "$@"; do [[ $a != --gtest_output=json:* ]] || printf "{\"tests\": %d}\n" "${TESTS:-3}" >"${a#*json:}"; done
[[ ${FAILS:-} != "$(basename "$0")" ]]'
for program in tests/device/strait_lane_gpu_test tests/device/strait_cxi_gpu_test tests/device/strait_queue_gpu_test tests/interop/rdmaxcel_example_gpu \
  src/buffer/strait_provider_conformance src/buffer/strait_ipc_test tests/flow/strait_paths_test bin/strait; do
  stand_in "$build/$program" "$tests"
done
# shellcheck disable=SC2016
{
  stand_in "$folder/tree/bench/gpu/with_mps" '"$@"'
  stand_in "$folder/tree/bench/gpu/run" 'echo "{\"rows\": []}" >"$OUT/gpu.json"'
  stand_in "$folder/bin/nvidia-smi" 'echo "GPU 0: a stand-in"'
  stand_in "$folder/bin/nvcc" ''
  stand_in "$folder/bin/cmake" 'echo "cmake $*" >>"$SAID"; [[ ${FAILS:-} != cmake || $1 != --build ]]'
  # As ctest: an error where there is no test and it was told to mind.
  stand_in "$folder/bin/ctest" 'echo "ctest $*" >>"$SAID"
    [[ -n ${NO_DISASSEMBLER:-} && "$*" == *"-R nvcc_sass"* && "$*" == *--no-tests=error* ]] && exit 1
    [[ ${FAILS:-} != ctest ]]'
}

problems=0
problem() { echo "$*"; problems=1; }
attempt() {  # status that is expected, arguments...
  local expected=$1 status=0
  shift
  rm -f "$said" "$build/results.json"
  SAID=$said PATH=$folder/bin:$PATH "$folder/tree/tests/device/gpu/run" "$@" >"$folder/out" 2>&1 || status=$?
  [[ $status == "$expected" ]] || { problem "gpu/run $*: answered $status, not $expected"; cat "$folder/out"; }
  grep -qs "\"status\": $expected" "$build/results.json" || problem "gpu/run $*: results.json does not say $expected"
  python3 -m json.tool "$build/results.json" >/dev/null || problem "gpu/run $*: results.json is no JSON"
}
has() { grep -qF -- "$2" "$1" || problem "no '$2' in $(basename "$1"): $(cat "$1")"; }

attempt 0
for part in lane nvcc nvcc_sass cxi queue queue_verbs rdmaxcel conformance ipc paths paths_two_processes bench; do
  has "$build/results.json" "\"$part\": {\"status\": 0"
done
has "$said" "strait_provider_conformance  --kind cuda"
has "$said" "strait_ipc_test  --gtest_filter=All/Ipc.*/host:All/Ipc.*/cuda"
has "$said" "strait_paths_test cuda,soft:1 --gtest_filter=-*TwoProcesses*"
has "$said" "strait_paths_test cuda,soft:1 --gtest_filter=*TwoProcesses*"
has "$said" "strait_queue_gpu_test  --gtest_filter=-*Verbs*"
grep -q '^strait  run -- .*/strait_queue_gpu_test --gtest_filter=\*Verbs\*' "$said" || problem "no verbs under strait run"
has "$said" "strait_provider_conformance strait_ipc_test strait_paths_test"
has "$build/results.json" '"figures": {"rows": []}'

attempt 0 --built
has "$build/results.json" '"bench": {"status": 0'
! grep -q '^c[mt]' "$said" || problem "gpu/run --built builds: $(cat "$said")"

FAILS=cmake attempt 1
has "$build/results.json" '"built": {"status": 1'
FAILS=strait_ipc_test attempt 1 memory
has "$build/results.json" '"conformance": {"status": 0'
has "$build/results.json" '"ipc": {"status": 1'
TESTS=0 attempt 1 lane
has "$folder/out" "lane: no test has run"
FAILS=ctest attempt 1 nvcc
NO_DISASSEMBLER=1 attempt 1 nvcc
has "$build/results.json" '"nvcc": {"status": 0'
has "$build/results.json" '"nvcc_sass": {"status": 1'
attempt 2 nonsense
stand_in "$folder/bin/nvidia-smi" 'exit 9'
attempt 3 lane
exit $problems
