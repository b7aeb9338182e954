#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs ./dev in a new Debian 12 that holds nothing but the base system. By hand, as root: it downloads some 100 MB
# (demo) to 600 MB (test) and takes minutes, which is why it is no lane.
#
#   fresh_debian.sh [demo|test|...]    what to give to ./dev, default: demo and then test
#
# The mirror is the one this machine uses. FRESH_ROOT=/path keeps the root there instead of in a temporary folder
# that is removed in the end.
set -euo pipefail
source=$(cd "$(dirname "$0")/../.." && pwd)
((EUID == 0)) || { echo "fresh_debian: chroot needs root: sudo $0 $*" >&2; exit 1; }
command -v debootstrap >/dev/null || { echo "fresh_debian: apt-get install debootstrap first" >&2; exit 1; }
# In a mount namespace of its own: what is mounted below is seen by nobody else and ends with this process.
[[ -n ${FRESH_INSIDE:-} ]] || FRESH_INSIDE=1 exec unshare --mount --propagation private "$0" "$@"

mirror=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 'Created-By: Packages' |
  awk '$2 == "bookworm" && $1 ~ /debian\/?$/ {print $1; exit}')
[[ -n $mirror ]] || { echo "fresh_debian: apt names no mirror of bookworm on this machine; run apt-get update" >&2; exit 1; }

if [[ -n ${FRESH_ROOT:-} ]]; then root=$FRESH_ROOT; else root=$(mktemp -d /var/tmp/fresh-debian.XXXXXX); fi
leave() {
  umount -l "$root"/{dev/shm,dev,sys,proc} 2>/dev/null || true
  # Never across a mount that would not go away: below it is this machine's own /dev.
  [[ -n ${FRESH_ROOT:-} ]] || rm -rf --one-file-system "$root"
}
trap leave EXIT

if [[ ! -x $root/usr/bin/apt-get ]]; then
  echo "== debootstrap minbase bookworm from $mirror"
  debootstrap --variant=minbase bookworm "$root" "$mirror" >"$root.log" 2>&1 || { tail -n 40 "$root.log"; exit 1; }
  rm -f "$root.log"
fi
cp /etc/resolv.conf /etc/hosts "$root/etc/"
# A proxy or another way to the network is a fact of this machine, not of strait.
for file in /etc/apt/apt.conf.d/*proxy*; do [[ -f $file ]] && cp "$file" "$root/etc/apt/apt.conf.d/"; done
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount --bind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/dev/shm"

rm -rf "$root/strait"
mkdir "$root/strait"
git -C "$source" ls-files -z --cached --others --exclude-standard |
  tar -C "$source" --null --ignore-failed-read -T - -cf - | tar -C "$root/strait" -xf -

# inside COMMAND: in the fresh Debian, in the tree.
inside() {
  chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb \
    ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} ${JOBS:+JOBS="$JOBS"} \
    /bin/bash -o pipefail -c "cd /strait && $1" </dev/null
}

# What is there already is neither installed nor built again: the demo begins at once.
second_demo() {
  local ms
  # shellcheck disable=SC2016  # the other bash's variables
  ms=$(inside 'began=${EPOCHREALTIME/[.,]/}
    ./dev demo | { IFS= read -r _ && echo $(((${EPOCHREALTIME/[.,]/} - began) / 1000)) && cat >/dev/null; }')
  echo "== a second ./dev demo says its first line after $ms ms"
  ((ms < 2000)) || { echo "fresh_debian: a second ./dev demo should begin within 2 s" >&2; exit 1; }
}

commands=("$@")
((${#commands[@]})) || commands=(demo test)
for command in "${commands[@]}"; do
  echo "== ./dev $command in a fresh Debian"
  start=$SECONDS
  inside "./dev $command"
  echo "== ./dev $command: $((SECONDS - start)) s"
  [[ $command != demo ]] || second_demo
done
