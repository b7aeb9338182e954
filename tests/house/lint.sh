#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The rules of the house that a machine can check: one line per offence, exit status 1 if there was one.
#   lint.sh [ROOT]    ROOT: another tree to look at (lint_test.sh hands it bad ones)
set -euo pipefail
cd "${1:-$(dirname "$0")/../..}"
status=0
offence() {
  echo "$1"
  status=1
}

# sources FOLDER...: the C and C++ files below the folders that exist.
sources() {
  local folder
  for folder in "$@"; do
    [[ ! -d $folder ]] || find "$folder" -type f -regextype posix-extended -regex '.*\.(cpp|hpp|c|h|cu)' -print
  done | sort
}
mapfile -t code < <(sources include src tests bench examples cmake)
mapfile -t scripts < <(find . \( -path ./build -o -path ./.git \) -prune -o -type f \
  \( -name CMakeLists.txt -o -name '*.cmake' -o -name '*.sh' -o -name '*.py' -o -path ./dev -o -path ./.ci/run \
  -o -regex './tests/lab/[a-z]+' \) -print | sort)
((${#code[@]})) || { echo "lint: no source files found"; exit 1; }

clang-format-16 --dry-run -Werror "${code[@]}" || offence "layout: run clang-format-16 -i on the files above"
mapfile -t shell < <(grep -lE '^#!/bin/(ba)?sh' "${scripts[@]}" /dev/null)
((${#shell[@]} == 0)) || shellcheck --severity=warning "${shell[@]}" || offence "scripts: see shellcheck above"

for file in "${code[@]}" "${scripts[@]}"; do
  head -n 2 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0' ||
    offence "$file:1: the first line must be the SPDX-License-Identifier (the second one after #!)"
  lines=$(wc -l <"$file")
  ((lines <= 800)) || offence "$file:800: $lines lines, the house allows 800: split it"
done

# forbid PATTERN REASON FILE...: no line may match.
forbid() {
  local pattern=$1 reason=$2 found
  shift 2
  found=$(grep -nE "$pattern" "$@" /dev/null || true) # grep answers 1 when it finds nothing, which is good news here
  [[ -z $found ]] || offence "$found"$'\n'"  $reason"
}
forbid '#[[:space:]]*include "\.\./' 'an include names the module ("sys/fd.hpp"), never a way around it' "${code[@]}"
forbid $'\t' 'no tabs' "${code[@]}" "${scripts[@]}"
forbid '[[:space:]]+$' 'no blanks at the end of a line' "${code[@]}" "${scripts[@]}"
# Broken in two, so that this line is not an offence itself.
forbid '\b(TO''DO|FIX''ME|X''XX)\b' 'do it, or write down where it is tracked' "${code[@]}" "${scripts[@]}"

# cpu_*.hpp play a GPU's threads on a CPU: no GPU compiler sees them.
mapfile -t device < <(sources include/strait/wire include/strait/device | grep -v '/cpu_[a-z]*\.hpp$')
# soft/preload stands in for the C library itself, inside programs that are not ours: it has nothing else to call.
mapfile -t outside_sys < <(sources src | grep -v -e '^src/sys/' -e '^src/soft/preload/' -e '_test\.cpp$' || true)
forbid '#[[:space:]]*include <(string|vector|map|memory|functional|iostream|thread|mutex|chrono|[a-z_/]+\.h)>' \
  'wire/ and device/ are compiled for GPUs: <cstdint>-class headers only' "${device[@]}"
# A struct of wire/ whose size is asserted: so is the offset of each of its fields.
mapfile -t formats < <(sources include/strait/wire)
# shellcheck disable=SC2016  # the dollars are awk's
((${#formats[@]} == 0)) || missing=$(awk '
  /^struct / { name = FILENAME SUBSEP ($2 ~ /^alignas/ ? $3 : $2); inside = 1; next }
  /^}/ || /^ private:/ { inside = 0 }
  inside && /^  [A-Za-z_][^(){}=]*;/ && !/^  (static|using|friend|return) / {
    field = $0; sub(/;.*/, "", field); sub(/\[.*/, "", field); sub(/.* /, "", field)
    place[name, field] = FILENAME ":" FNR ": the offset of " field " is not asserted"
    owner[name, field] = name
  }
  /^static_assert\(sizeof\(/ { struct = $0; sub(/^static_assert\(sizeof\(/, "", struct); sub(/\).*/, "", struct); sized[FILENAME, struct] }
  {
    for (line = $0; match(line, /offsetof\([A-Za-z0-9_]+, [A-Za-z0-9_]+\)/); line = substr(line, RSTART + RLENGTH)) {
      split(substr(line, RSTART + 9, RLENGTH - 10), of, ", ")
      asserted[FILENAME, of[1], of[2]]
    }
  }
  END { for (key in place) if (owner[key] in sized && !(key in asserted)) print place[key] }' "${formats[@]}" | sort)
[[ -z ${missing:-} ]] || offence "$missing"
forbid '#[[:space:]]*include "(base|sys|buffer|export|keys|plan|post|rail|node|soft)/' \
  'wire/ and device/ include each other and nothing above' "${device[@]}"
forbid '(^|[^[:alnum:]_.>])(f?printf|puts|assert|abort|exit|malloc|free|__trap|__builtin_(trap|abort))[[:space:]]*\(|\bthrow\b|[=(,][[:space:]]*new\b' \
  'a kernel is answered: device code never prints, asserts, stops, throws or allocates' "${device[@]}"
mapfile -t device_but_wait < <(sources include/strait/wire include/strait/device |
  grep -v -e '/cpu_[a-z]*\.hpp$' -e '^include/strait/device/wait\.hpp$' || true)
forbid '\bfor \([^;]*;[[:space:]]*;|\bwhile \((true|1)\)' \
  'in device code every wait is wait_bounded(), which ends' "${device_but_wait[@]}"
# Nor may a loop go on until a call says otherwise, or until somebody else changes a word, but for these: a
# compare-exchange that fails because another thread has moved on, or asked for one more round; and what arms its own
# block, which ends with the room.
ending=(
  'include/strait/device/slots.hpp:  } while (!compare_exchange<kScope<S>>(&s.requests, seen, 0));'
  'include/strait/device/slots.hpp:    while (at < end && !compare_exchange<kScope<S>>(&s.completed, at, end)) {'
  'include/strait/device/cxi/shared_ring.hpp:    } while (!compare_exchange<kScope<S>>(&ring_->requests, seen, 0));'
  'include/strait/device/cxi/shared_ring.hpp:    while (taken < now && !compare_exchange<kScope<S>>(&ring_->taken, taken, now)) {'
  'include/strait/device/cxi/core.hpp:      while (arm_another(many)) {'
)
found=$(grep -HE '\bwhile \((.*[[:alnum:]_>]\(|.*![^=])' "${device_but_wait[@]}" /dev/null |
  grep -vxFf <(printf '%s\n' "${ending[@]}") || true)
[[ -z $found ]] || offence "$found"$'\n''  in device code every wait is wait_bounded(), which ends; a loop that ends by itself is named in lint.sh'
forbid '#[[:space:]]*include <(fcntl|poll|dlfcn|signal|netdb|sched|pthread|sys/(mman|socket|ioctl|stat|wait|epoll|eventfd|syscall|prctl|resource|random|un)|net[a-z]*/[a-z_]+|arpa/[a-z]+|linux/[a-z_-]+)\.h>' \
  'the outside world is in src/sys/ and nowhere else' "${outside_sys[@]}"
# <unistd.h> also has the numbers of the standard streams, so there it is the calls that count.
forbid '(^|[^[:alnum:]_:>])::?(read|write|open|close|dup|pipe|fork|vfork|exec[vlpe]+|kill|mmap|munmap|ioctl|poll|getpid|usleep|sysconf)\(' \
  'system calls are made in src/sys/ and nowhere else' "${outside_sys[@]}"
exit $status
