#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A test of libcxi calls a script of this name, in the folder it runs in, to have the driver make (-x) and remove (-c) an
# exclusive communication profile for the VNIs 16 to 31. Theirs does it through configfs; a service with that range is
# the same to the test, and libcxi's own tool makes one.
set -euo pipefail
kept=profile.service
case ${1-} in
  -x)
    cat >profile.yaml <<'YAML'
resource_limits: 0
restricted_members: 0
restricted_tcs: 0
exclusive_cp: 1
vnis:
  vni_min: 16
  vni_max: 31
YAML
    cxi_service create -y profile.yaml | tee profile.out
    sed -nE 's/^Successfully created service: ([0-9]+)$/\1/p' profile.out >"$kept"
    [[ -s $kept ]]
    ;;
  -c)
    cxi_service delete -s "$(cat "$kept")"
    rm "$kept"
    ;;
  *)
    echo "usage: profile.sh -x|-c" >&2
    exit 2
    ;;
esac
