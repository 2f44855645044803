#!/usr/bin/env bash
# usage: check_headers.sh [COMPILER [OPTION...]]
# Compiles each header of the library on its own (included twice), and a program that instantiates a model, with
# warnings as errors. CPPFLAGS says where Eigen is. With ccache, what has not changed costs nothing.
#
# Most of the time goes into what headers include. Headers of which each includes the one before, itself or through
# others, are therefore compiled behind each other. What a header's own text sees is what it includes and nothing else,
# as if it were alone: one that forgets an include fails. Headers of a failed compilation are compiled one by one.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
compiler=${1:-g++}
[ $# -eq 0 ] || shift
read -r -a include_flags <<< "${CPPFLAGS:--isystem /usr/include/eigen3}"
command=("$compiler" -std=c++20 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror "-I$root/include"
  "${include_flags[@]}" "$@")
# std::stable_sort of libstdc++ uses what it says is deprecated.
if [[ $("$compiler" --version) == *clang* ]]; then command+=(-Wno-deprecated-declarations); fi
work=$root/build/headers/$(basename "$compiler")
rm -rf "$work"
mkdir -p "$work"
cd "$root/include"
# Half of the headers include this one, which is precompiled, and no code is generated; ccache would take neither.
wide=sheafnn/core/pack.hpp
mode=-c
if command -v ccache > /dev/null; then
  command=(ccache "${command[@]}")
else
  mode=-fsyntax-only
  echo "#include \"$wide\"" > "$work/wide.hpp"
  "${command[@]}" -x c++-header "$work/wide.hpp" -o "$work/wide.hpp.gch" &
fi

# The headers for MPI, where it is not installed.
without_mpi='^$'
for needed in mpi.h metis.h; do
  echo "#include <$needed>" | "${command[@]}" -fsyntax-only -x c++ - > /dev/null 2>&1 || without_mpi='^sheafnn/distributed'
done

# One line for each compilation: "wide" if its headers include $wide, otherwise "narrow", and the headers. All but three
# that need the CUDA Toolkit.
chains() {
  grep -roE '^# *include ["<]sheafnn/[^">]+|^#pragma once' --include='*.hpp' sheafnn | sort | awk -F: -v wide="$wide" -v without_mpi="$without_mpi" '
    function add_what_is_included(by, header,    i, n, names) {
      n = split(included[header], names, " ")
      for (i = 1; i <= n; ++i) {
        if ((by, names[i]) in includes) continue
        includes[by, names[i]] = 1
        ++size[by]
        add_what_is_included(by, names[i])
      }
    }
    $1 ~ /^sheafnn\/(cuda|batch\/device_(error|executor|queue))\.hpp$/ { next }
    $1 ~ without_mpi { next }
    !($1 in included) { headers[++count] = $1; included[$1] = "" }
    /include/ { sub(/.*["<]/, "", $2); included[$1] = included[$1] " " $2 }
    END {
      for (i = 1; i <= count; ++i) add_what_is_included(headers[i], headers[i])
      for (i = 2; i <= count; ++i) {
        for (j = i; j > 1 && size[headers[j]] < size[headers[j - 1]]; --j) {
          larger = headers[j - 1]; headers[j - 1] = headers[j]; headers[j] = larger
        }
      }
      for (i = 1; i <= count; ++i) {
        header = headers[i]
        kind = header == wide || (header, wide) in includes ? "wide" : "narrow"
        best = 0
        for (c = 1; c <= chains; ++c) {
          if (kinds[c] == kind && (header, last[c]) in includes && (!best || size[last[c]] > size[last[best]])) best = c
        }
        if (!best) kinds[best = ++chains] = kind
        last[best] = header
        chain[best] = chain[best] " " header
      }
      for (c = 1; c <= chains; ++c) print kinds[c] chain[c]
    }'
}

# usage: compile KIND SOURCE NUMBER
compile() {
  local arguments=("$mode" "$2" -o "$work/$3.o")
  if [ "$1" = wide ] && [ -e "$work/wide.hpp.gch" ]; then arguments+=(-include "$work/wide.hpp"); fi
  "${command[@]}" "${arguments[@]}" 2>&1
}

# usage: check NUMBER KIND HEADER...
check() {
  local number=$1 kind=$2 source=$work/$1.cpp header output found=0
  shift 2
  printf '#include "%s"\n' "$@" "$@" > "$source"
  if compile "$kind" "$source" "$number" > "$work/$number.log"; then return; fi
  touch "$work/failed"
  for header in "$@"; do
    printf '#include "%s"\n' "$header" "$header" > "$source"
    if ! output=$(compile narrow "$source" "$number"); then
      printf '%s does not compile alone:\n%s\n' "$header" "$(grep -E 'error|warning' <<< "$output" | head -n 10)"
      found=1
    fi
  done
  if [ "$found" = 0 ]; then
    printf '%s do not compile together:\n%s\n' "$*" "$(grep -E 'error|warning' "$work/$number.log" | head -n 10)"
  fi
}

jobs=$(nproc)
count=0
number=0
precompiled=0
while read -r kind headers; do
  read -r -a chain <<< "$headers"
  if [ "$kind" = wide ] && [ "$precompiled" = 0 ]; then
    wait
    precompiled=1
  fi
  while [ "$(jobs -r | wc -l)" -ge "$jobs" ]; do wait -n; done
  check "$number" "$kind" "${chain[@]}" &
  count=$((count + ${#chain[@]}))
  number=$((number + 1))
done < <(chains | sort)  # the narrow ones first
if ! "${command[@]}" -c "$root/tests/compile_time/one_model.cpp" -o "$work/one_model.o" > "$work/one_model.log" 2>&1; then
  printf 'one model does not compile:\n%s\n' "$(grep -E 'error|warning' "$work/one_model.log" | head -n 10)"
  touch "$work/failed"
fi
wait
[ ! -e "$work/failed" ] || exit 1
echo "$count headers compile alone with $compiler"
