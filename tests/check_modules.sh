#!/usr/bin/env bash
# The structure of include/sheafnn: modules include each other in one direction only, no header has more than 400 lines,
# bsnn/network.hpp has at most 200, and nothing but the umbrella cuda.hpp includes the device executor.
# usage: check_modules.sh [ROOT]
set -euo pipefail
cd "${1:-$(dirname "${BASH_SOURCE[0]}")/..}/include/sheafnn"
failures=0
complain() {
  echo "$1"
  failures=$((failures + 1))
}

headers=$(find . -name '*.hpp' | sort)
[ -n "$headers" ] || complain "no headers found"
for header in $headers; do
  most=400
  [ "$header" = ./bsnn/network.hpp ] && most=200
  lines=$(wc -l < "$header")
  [ "$lines" -le "$most" ] || complain "${header#./}: $lines lines; at most $most are allowed"
done

arrows=$(grep -oE '#include "sheafnn/[a-z_]+/' -r --include='*.hpp' . |
  sed -nE 's#^\./([a-z_]+)/[^:]*:.*sheafnn/([a-z_]+)/$#\1 \2#p' | awk '$1 != $2' | sort -u)
[ -n "$arrows" ] || complain "no module includes another"
circle=$(tsort <<< "$arrows" 2>&1 > /dev/null | sed -n 's/^tsort: //p' | grep -v 'input contains' | tr '\n' ' ' || true)
[ -z "$circle" ] || complain "modules include each other in a circle: $circle"

users=$(grep -lE '#include "sheafnn/batch/device_' -r --include='*.hpp' . |
  grep -vE '^\./(cuda\.hpp|batch/device_[a-z_]+\.hpp)$' || true)
[ -z "$users" ] || complain "the device executor is included by $users"

echo "$(wc -l <<< "$headers") headers, $(wc -l <<< "$arrows") arrows between modules, $failures complaints"
[ "$failures" -eq 0 ]
