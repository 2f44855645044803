#!/usr/bin/env bash
# usage: check_headers.sh [COMPILER [OPTION...]]
# Compiles each header of the library on its own (included twice), and a program that instantiates a model, with
# warnings as errors. CPPFLAGS says where Eigen is. With ccache, what has not changed costs nothing.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
compiler=${1:-g++}
[ $# -eq 0 ] || shift
read -r -a include_flags <<< "${CPPFLAGS:--isystem /usr/include/eigen3}"
command=("$compiler" -std=c++20 -c -Wall -Wextra -Wpedantic -Wconversion -Werror "-I$root/include"
  "${include_flags[@]}" "$@")
work=$root/build/headers/$(basename "$compiler")
mkdir -p "$work"
# Most of the time goes into what many headers include. Without ccache these are precompiled, from small to large, and a
# header finds the last of them that it includes, itself or through others. One that forgets an include still fails.
widely_included=(io/file core/eigen core/pack nn/dropout rotation/operations bsnn/model_layout bsnn/network_parts)
declare -A precompiled_for=()
if command -v ccache > /dev/null; then
  command=(ccache "${command[@]}")
  widely_included=()
fi

# usage: precompile HEADER
precompile() {
  local header=sheafnn/$1.hpp copy=$work/${1//\//_}.hpp including=$work/including found='' before
  echo "#include \"$header\"" | tee "$including" > "$copy"
  "${command[@]}" -x c++-header "$copy" -o "$copy.gch" &
  while true; do
    before=$found
    found=$(cd "$root/include" && grep -rlFf "$including" --include='*.hpp' sheafnn | sort)
    [ "$found" != "$before" ] || break
    sed 's/.*/#include "&"/' <<< "$found" >> "$including"
  done
  while read -r before; do precompiled_for[$before]=$copy; done <<< "$found"
}
for header in "${widely_included[@]}"; do precompile "$header"; done
wait

# usage: check SOURCE NAME, NAME being what to call it in messages
check() {
  local object output precompiled=()
  object=$(mktemp "$work/XXXXXX.o")
  if [ -n "${precompiled_for[$2]:-}" ]; then precompiled=(-include "${precompiled_for[$2]}"); fi
  if ! output=$("${command[@]}" ${precompiled[@]+"${precompiled[@]}"} "$1" -o "$object" 2>&1); then
    printf '%s does not compile alone:\n%s\n' "$2" "$(grep -E 'error|warning' <<< "$output" | head -n 10)"
    touch "$work/failed"
  fi
  rm -f "$object"
}

rm -f "$work/failed"
jobs=$(nproc)
count=0
cd "$root/include"
# Three headers need the CUDA Toolkit.
for header in $(find sheafnn -name '*.hpp' ! -path sheafnn/cuda.hpp ! -path sheafnn/batch/device_error.hpp \
  ! -path sheafnn/batch/device_executor.hpp | sort); do
  source=$work/${header//\//_}.cpp
  printf '#include "%s"\n#include "%s"\n' "$header" "$header" > "$source"
  while [ "$(jobs -r | wc -l)" -ge "$jobs" ]; do wait -n; done
  check "$source" "$header" &
  count=$((count + 1))
done
check "$root/tests/compile_time/one_model.cpp" "one model"
wait
[ ! -e "$work/failed" ] || exit 1
echo "$count headers compile alone with $compiler"
