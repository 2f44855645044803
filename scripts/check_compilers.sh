#!/usr/bin/env bash
# Every compiler of this machine, g++ from 12 and clang++ from 14 on: each header alone, then the programs of users
# (examples of own parts, a small consumer), with warnings as errors; the programs are run.
# usage: check_compilers.sh [--install] [COMPILER...]
#   --install   first installs with apt every version that the distribution has
#   CPPFLAGS    says where Eigen is, to try another version; default: -isystem /usr/include/eigen3
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export CPPFLAGS=${CPPFLAGS:--isystem /usr/include/eigen3}
read -r -a include_flags <<< "$CPPFLAGS"

if [ "${1-}" = --install ]; then
  shift
  as_root=()
  [ "$(id -u)" = 0 ] || as_root=(sudo)
  mapfile -t packages < <(apt-cache search --names-only '^(g\+\+|clang)-[0-9]+$' | awk '
    { split($1, part, "-"); number = part[length(part)] }
    (/^g/ && number >= 12) || (/^c/ && number >= 14) { print $1 }')
  "${as_root[@]}" apt-get install --yes --no-install-recommends "${packages[@]}" > /dev/null
fi
compilers=("$@")
if [ ${#compilers[@]} -eq 0 ]; then
  mapfile -t compilers < <(compgen -c | grep -E '^(g\+\+-(1[2-9]|[2-9][0-9])|clang\+\+-(1[4-9]|[2-9][0-9]))$' | sort -uV)
fi
[ ${#compilers[@]} -gt 0 ] || { echo "no compiler named g++-N or clang++-N; --install gets them" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
for compiler in "${compilers[@]}"; do
  printf '%s (%s): ' "$compiler" "$("$compiler" -dumpfullversion 2> /dev/null || "$compiler" -dumpversion)"
  if ! bash "$root/tests/check_headers.sh" "$compiler" > "$work/log" 2>&1; then
    echo "headers fail"; cat "$work/log"; failures=$((failures + 1)); continue
  fi
  headers=$(grep -o '^[0-9]* headers' "$work/log")
  programs=0
  for file in "$root"/tests/consumer/consumer{,_io}.cpp "$root"/examples/{own_*,sheaf_layer,learned_sheaf,minimal}.cpp; do
    name=$(basename "$file" .cpp)
    if "$compiler" -std=c++20 -O1 -Wall -Wextra -Wpedantic -Wconversion -Werror "-I$root/include" "${include_flags[@]}" \
      "$file" -o "$work/$name" -lz -pthread > "$work/log" 2>&1 && "$work/$name" > "$work/out" 2>> "$work/log"; then
      expected=$root/tests/consumer/$name.expected
      if [ ! -e "$expected" ] || cmp -s "$expected" "$work/out"; then programs=$((programs + 1)); continue; fi
      echo "prints $(cat "$work/out")" > "$work/log"
    fi
    printf '%s fails\n' "$name"; head -n 30 "$work/log"; failures=$((failures + 1))
  done
  echo "$headers, $programs programs"
done
[ "$failures" -eq 0 ]
