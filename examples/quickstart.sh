#!/usr/bin/env bash
# Installs what is missing, builds the quickstart program, trains three networks on a generated heterophilic graph,
# prints a table and writes quickstart.svg into the current folder.
# usage: quickstart.sh
set -euo pipefail
if [ $# -gt 0 ]; then
  echo "usage: bash examples/quickstart.sh   (no arguments; writes quickstart.svg into the current folder)"
  case $1 in -h | --help) exit 0 ;; *) exit 2 ;; esac
fi
picture=$PWD/quickstart.svg
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bash scripts/install_dependencies.sh gnuplot-nox=gnuplot
cmake --preset release -DSHEAFNN_BUILD_TESTS=OFF -DSHEAFNN_BUILD_BENCHMARKS=OFF > build-quickstart.log 2>&1 \
  && cmake --build --preset release --target quickstart >> build-quickstart.log 2>&1 \
  || { cat build-quickstart.log; rm -f build-quickstart.log; exit 1; }
rm -f build-quickstart.log

data=$(mktemp -d)
trap 'rm -rf "$data"' EXIT
build/release/examples/quickstart "$data"
gnuplot -e "folder='$data'; output='$data/quickstart.svg'" examples/quickstart.gp
mv "$data/quickstart.svg" "$picture"
echo
echo "training curves and reliability diagram: $picture"
