#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Hands lint.sh a good tree and then the same with one offence at a time: a rule that finds nothing must fail here.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
spdx='// SPDX-License-Identifier: Apache-2.0'

fresh() {
  rm -rf "$temp/tree"
  mkdir -p "$temp/tree/src/keys" "$temp/tree/include/strait/wire"
  cp "$here/../../.clang-format" "$temp/tree/"
  printf '%s\n// A good file.\nint answer = 0;\n' "$spdx" >"$temp/tree/src/keys/good.cpp"
}
fresh
bash "$here/lint.sh" "$temp/tree" || { echo "lint_test: lint.sh finds an offence in a tree without one"; exit 1; }

# expect WORDS FILE CONTENT: with that file lint.sh must fail and say WORDS and the file's name.
expect() {
  local words=$1 file=$2 content=$3 said
  fresh
  mkdir -p "$(dirname "$temp/tree/$file")"
  printf '%b' "$content" >"$temp/tree/$file"
  if said=$(bash "$here/lint.sh" "$temp/tree" 2>&1); then
    echo "lint_test: not found: $words in $file"
    exit 1
  fi
  [[ $said == *"$words"* && $said == *"$file"* ]] || { echo "lint_test: wanted '$words' in $file, lint said: $said"; exit 1; }
}
expect "run clang-format-16" src/keys/bad.cpp "$spdx\nint   main() {}\n"
expect "SPDX-License-Identifier" src/keys/bad.cpp "int main() {}\n"
expect "SPDX-License-Identifier" src/keys/bad.sh "true\n"
expect "split it" src/keys/bad.cpp "$spdx\n$(printf '//\\n%.0s' {1..800})"
expect "never a way around" src/keys/bad.cpp "$spdx\n#include \"../sys/fd.hpp\"\n"
expect "no tabs" src/keys/CMakeLists.txt "# SPDX-License-Identifier: Apache-2.0\n\tset(a b)\n"
expect "no blanks" src/keys/CMakeLists.txt "# SPDX-License-Identifier: Apache-2.0\nset(a b) \n"
expect "where it is tracked" src/keys/bad.cpp "$spdx\n// TO""DO: later\n"
expect "<cstdint>-class" include/strait/wire/bad.hpp "$spdx\n#include <string>\n"
expect "nothing above" include/strait/wire/bad.hpp "$spdx\n#include \"base/error.hpp\"\n"
expect "a kernel is answered" include/strait/wire/bad.hpp "$spdx\ninline void bad() { printf(\"here\"); }\n"
expect "a kernel is answered" include/strait/wire/bad.hpp "$spdx\ninline void bad(bool fine) { assert(fine); }\n"
expect "3: the offset of b is not asserted" include/strait/wire/bad.hpp \
  "$spdx\nstruct Bad {\n  int b[2];\n  int c;\n};\nstatic_assert(sizeof(Bad) == 12 && offsetof(Bad, c) == 8);\n"
expect "wait_bounded()" include/strait/wire/bad.hpp "$spdx\ninline void bad() {\n  while (true) {\n  }\n}\n"
expect "wait_bounded()" include/strait/device/bad.hpp "$spdx\ninline void bad() {\n  for (int i = 0;; ++i) {\n  }\n}\n"
expect "wait_bounded()" include/strait/device/bad.hpp "$spdx\ninline void bad(bool& done) {\n  while (!done) {\n  }\n}\n"
expect "named in lint.sh" include/strait/device/bad.hpp "$spdx\ninline void bad() {\n  do {\n  } while (look() == 0);\n}\n"
expect "in src/sys/" src/keys/bad.cpp "$spdx\n#include <sys/mman.h>\n"
expect "system calls are made" src/keys/bad.cpp "$spdx\nint a = ::close(3);\n"
expect "see shellcheck" src/keys/bad.sh "#!/bin/bash\n# SPDX-License-Identifier: Apache-2.0\ncd /tmp\nunused=1\n"
echo "lint_test: every rule finds its offence"
