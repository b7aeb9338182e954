#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# fi_pingpong of libfabric, with its bytes compared (-c). Part of verbs.sh, as rdmacm.sh is.
#   fabric.sh PROVIDER ARGUMENT...
call=(fi_pingpong -I 20 -c -p "$@")
# shellcheck source=/dev/null
. "$(dirname "$0")/rdmacm.sh" listens=47592 "${call[@]}" -- "${call[@]}" 10.77.0.1
