#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The same perftest over the kernel's rdma_rxe and over `strait run`, in turn, in one boot of the lab's guest.
#
#   versus.sh STRAIT FOLDER ROUNDS [PROGRAM]...    STRAIT: the tool, with its libraries beside it as a build has them
#
# A PROGRAM is one of tests/interop that takes "GID udmabuf": run under `strait run` first, since here is a kernel that
# makes dma-bufs (docs/lab.md).
#
# Prints every figure and the ratio of the medians. Emulated, and on whatever else the machine does: the figures say
# nothing by themselves, their ratio does. One line of each kind of traffic that fails fails the whole.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin
here=$(cd "$(dirname "$0")" && pwd)
strait=$(realpath "$1") folder=$2 rounds=${3:-3}
programs=("${@:4}")
libraries=$(dirname "$strait")/../lib
mkdir -p "$folder/share"
"$here/kernel" >"$folder/kernel.out" || { cat "$folder/kernel.out"; exit 1; }
kernel=$(tail -n 1 "$folder/kernel.out")
tools=()
for tool in ip rdma ib_write_bw ib_send_lat rping; do
  tools+=("$(command -v "$tool")") || { echo "lab: there is no $tool"; echo "  as root: apt-get install iproute2 perftest rdmacm-utils"; exit 1; }
done
also=()
for file in "$libraries"/libstrait-host.so.0 "$libraries"/libstrait-soft.so.0 /usr/lib/*/libibverbs/libmlx5-rdmav*.so; do
  also+=(--also "$file")
done
"$here/guest" "$kernel" "$folder/versus.cpio.gz" "${also[@]}" "${tools[@]}" "$strait" "${programs[@]}"

cat >"$folder/versus.run" <<GUEST
export TMPDIR=/dev/shm
mkdir -p /etc/libibverbs.d
echo 'driver mlx5' >/etc/libibverbs.d/mlx5.driver
# pair NAME COMMAND...: a server, and a client on the same machine; the client's last line of figures.
pair() {
  name=\$1
  shift
  "\$@" >/dev/shm/server.out 2>&1 &
  server=\$!
  n=0
  until grep -qi ':4853 .* 0A ' /proc/net/tcp /proc/net/tcp6; do
    n=\$((n + 1))
    if [ \$n -gt 600 ] || ! kill -0 \$server 2>/dev/null; then echo "\$name: the server does not listen"; cat /dev/shm/server.out; return 1; fi
    usleep 100000
  done
  if ! "\$@" 198.51.100.2 >/dev/shm/client.out 2>&1; then
    echo "\$name: failed"; cat /dev/shm/client.out; kill \$server; return 1
  fi
  wait \$server
  echo "figures \$name \$(grep -E '^ *[0-9]+ +[0-9]+ ' /dev/shm/client.out | tail -n 1)"
}
failed=0
for program in ${programs[*]##*/}; do
  if ! strait run -q -- \$program 0 udmabuf; then echo "\$program: failed with dma-bufs of the kernel"; failed=1; fi
done
bw="ib_write_bw -F -u 21 -s 65536 -n 200"
lat="ib_send_lat -F -u 21 -s 8 -n 200"
for round in $(seq "$rounds" | tr '\n' ' '); do
  pair rxe.write_bw \$bw -d rxe0 -x 1 || failed=1
  pair strait.write_bw strait run -q -- \$bw -x 0 || failed=1
  pair packets.write_bw strait run -q --set carrier=roce -- \$bw -x 0 || failed=1
  pair rxe.send_lat \$lat -d rxe0 -x 1 || failed=1
  pair strait.send_lat strait run -q -- \$lat -x 0 || failed=1
  pair packets.send_lat strait run -q --set carrier=roce -- \$lat -x 0 || failed=1
done
exit \$failed
GUEST
"$here/run" --kernel "$kernel" --guest "$folder/versus.cpio.gz" --share "$folder/share" --smp 2 --limit 850 \
  "$folder/versus.run" | tee "$folder/versus.out"

# perftest: size, iterations, peak and average MiB/s; or size, iterations, least, most and typical us.
python3 - "$folder/versus.out" <<'EOF'
import statistics
import sys

found = {}
for line in open(sys.argv[1]):
    words = line.split()
    if words[:1] == ["figures"]:
        found.setdefault(words[1], []).append(float(words[5 if words[1].endswith("bw") else 6]))
median = {name: statistics.median(values) for name, values in found.items()}
for name, values in found.items():
    print(f"{name:18} {median[name]:10.1f} {'MiB/s' if name.endswith('bw') else 'us'}   of {values}")
for what in ("strait", "packets"):
    print(f"{what} / rxe: bandwidth {median[what + '.write_bw'] / median['rxe.write_bw']:.1f} x, "
          f"latency {median[what + '.send_lat'] / median['rxe.send_lat']:.2f} x")
EOF
