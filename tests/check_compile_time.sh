#!/usr/bin/env bash
# usage: check_compile_time.sh [COMPILER [OPTION...]]
# Prints how many seconds a program that includes <sheafnn/bsnn.hpp> and instantiates one model takes to compile at
# -O2 (the budget is 7 s). A tool, not a test: timing depends on the machine.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
compiler=${1:-g++}
[ $# -eq 0 ] || shift
read -r -a include_flags <<< "${CPPFLAGS:--isystem /usr/include/eigen3}"
start=$EPOCHREALTIME
"$compiler" -std=c++20 -O2 "-I$root/include" "${include_flags[@]}" "$@" -c -o /dev/null \
  "$root/tests/compile_time/one_model.cpp"
end=$EPOCHREALTIME
awk -v start="$start" -v end="$end" -v compiler="$compiler" \
  'BEGIN { printf "%s -O2: %.1f s to compile one model\n", compiler, end - start }'
