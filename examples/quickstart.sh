#!/usr/bin/env bash
# Installs what is missing, builds the quickstart program, trains three networks on a generated graph with unreliable
# relations, prints a table and writes quickstart.svg into the current folder.
# usage: quickstart.sh
set -euo pipefail
if [ $# -gt 0 ]; then
  echo "usage: bash examples/quickstart.sh   (no arguments; writes quickstart.svg into the current folder)"
  case $1 in -h | --help) exit 0 ;; *) exit 2 ;; esac
fi
picture=$PWD/quickstart.svg
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bash scripts/install_dependencies.sh gnuplot-nox=gnuplot
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# A folder of its own: other builds keep their tests and benchmarks.
cmake --preset release -B build/quickstart -DSHEAFNN_BUILD_TESTS=OFF -DSHEAFNN_BUILD_BENCHMARKS=OFF > "$log" 2>&1 \
  && cmake --build build/quickstart --target quickstart >> "$log" 2>&1 \
  || { cat "$log"; exit 1; }

build/quickstart/examples/quickstart "$picture"
