#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs a build to an empty prefix, moves that prefix elsewhere, and checks one thing about it.
#
#   check.sh CHECK BUILD_FOLDER [CXX]
#     pkg-config   the consumer, built by one compiler command
#     cmake        the consumer, built by find_package(strait)
#     tool         bin/strait starts and can be asked what there is
#     symbols      the libraries export what the lists beside this script say, and nothing else
#     depends      the libraries need the C and C++ run time, and nothing else (the verbs rail: libibverbs); no path of this machine is in them
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
check=$1 build=$2 cxx=${3:-g++}
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
fail() { echo "install: $*"; exit 1; }

cmake --install "$build" --prefix "$temp/first" >"$temp/log" || { cat "$temp/log"; fail "cmake --install failed"; }
mkdir "$temp/somewhere"
mv "$temp/first" "$temp/somewhere/else"
prefix=$temp/somewhere/else
libs=$(dirname "$(find "$prefix" -name libstrait.so)")
names=(libstrait libstrait-soft libstrait-host)
# Left out of a build without libibverbs.
[[ ! -f $build/lib/libstrait-verbs.so ]] || names+=(libstrait-verbs)
[[ -f $libs/libstrait.so ]] || fail "no libstrait.so below the prefix"

# Nothing but what the consumer's own build says may lead to the library.
run_consumer() {
  env -u LD_LIBRARY_PATH "$@" | tee "$temp/said"
  grep -q '^moved 4096 bytes by .' "$temp/said" || fail "the consumer did not say how its bytes went"
}

case $check in
  pkg-config)
    export PKG_CONFIG_PATH=$libs/pkgconfig
    read -ra flags < <(pkg-config --cflags --libs strait)
    "$cxx" -std=c++20 -Wall -Wextra -Wpedantic -Wconversion -Werror "$here/consumer/main.cpp" "${flags[@]}" \
      -Wl,-rpath,"$libs" -o "$temp/consumer"
    run_consumer "$temp/consumer"
    ;;
  cmake)
    cmake -G Ninja -S "$here/consumer" -B "$temp/build" -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_PREFIX_PATH="$prefix"
    cmake --build "$temp/build"
    run_consumer "$temp/build/consumer"
    ;;
  tool)
    "$prefix/bin/strait" --version | tee "$temp/said"
    grep -q '0\.1\.0' "$temp/said" || fail "strait --version does not say 0.1.0"
    "$prefix/bin/strait" info
    ;;
  symbols)
    status=0
    for name in "${names[@]}"; do
      nm -D --defined-only "$libs/$name.so" | awk '{print $3}' | LC_ALL=C sort >"$temp/$name.symbols"
      diff -u "$here/$name.symbols" "$temp/$name.symbols" || status=1
    done
    ((status == 0)) || fail "the exported symbols have changed (-: expected, +: found). A symbol that is gone breaks programs" \
      "that use it; a new one is a promise. If it is meant, change tests/install/*.symbols in the same commit."
    ;;
  depends)
    for name in "${names[@]}"; do
      while read -r needed; do
        if [[ $name == libstrait-verbs && $needed == libibverbs.so.1 ]]; then continue; fi
        [[ $needed =~ ^(libstdc\+\+|libgcc_s|libm|libc|ld-linux[-a-z0-9_]*)\.so\.[0-9]+$ ]] || fail "$name needs $needed"
      done < <(readelf -d "$libs/$name.so" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
      # In every process of a run: it may bring nothing along.
      [[ $name != libstrait-host || -z $(readelf -d "$libs/$name.so" | grep -E 'NEEDED.*(stdc|gcc)') ]] ||
        fail "libstrait-host needs more than the C library"
      runpath=$(readelf -d "$libs/$name.so" | sed -n 's/.*(RUNPATH).*\[\(.*\)\]/\1/p')
      [[ $runpath =~ ^[$]ORIGIN(:[$]ORIGIN/[^:]*)*$ ]] || fail "$name has the run path '$runpath'"
    done
    grep -rlF "$build" "$prefix/include" "$libs/pkgconfig" "$libs/cmake" && fail "the files above name the build folder"
    ;;
  *) fail "there is no check '$check'" ;;
esac
exit 0
