#!/usr/bin/env bash
# Builds the benchmarks (preset release, and portable for comparison), runs them, prints their tables, writes
# build/release/benchmarks/*.json and renews the measured part of docs/notebook/performance.md. Takes a few minutes; other work on
# the machine spoils the figures.
# usage: run.sh [DATA_FOLDER]
#   DATA_FOLDER      holds texas.npz, cora.npz and film.npz; synthetic graphs of the same size stand in for missing ones
#   SHEAFNN_THREADS  most threads (default 2)
#   SHEAFNN_EDGES    edges of the largest synthetic graph (default 1000000; 10000000 needs about 15 GiB)
set -euo pipefail
data=${1:-}
if [ -n "$data" ]; then data=$(cd "$data" && pwd); fi
cd "$(dirname "${BASH_SOURCE[0]}")/.."
threads=${SHEAFNN_THREADS:-2}
edges=${SHEAFNN_EDGES:-1000000}

bash scripts/install_dependencies.sh
cmake --preset release -DSHEAFNN_BUILD_BENCHMARKS=ON > /dev/null
cmake --build --preset release --target epochs kernels scaling report
cmake --preset portable > /dev/null
cmake --build --preset portable --target epochs

bin=build/release/benchmarks
commit=$(git rev-parse --short HEAD 2> /dev/null || echo unknown)
if ! git diff --quiet HEAD 2> /dev/null; then commit+=" with changes"; fi
machine=$(lscpu 2> /dev/null | sed -n 's/^Model name: *//p' | head -n 1 | tr -d ',=')
graphs="synthetic twins"
if [ -n "$data" ]; then graphs="public"; fi

# usage: measure NAME PROGRAM OPTIONS...   writes NAME.json, NAME.txt (what it prints) and NAME.log
measure() {
  local name=$1
  shift
  echo "$name ..."
  SHEAFNN_DATA=$data "$@" --threads "$threads" --benchmark_out="$bin/$name.json" --benchmark_out_format=json \
    --benchmark_context="commit=$commit,machine=${machine:-unknown},graphs=$graphs" \
    > "$bin/$name.txt" 2> "$bin/$name.log" || { cat "$bin/$name.log" >&2; exit 1; }
}
measure epochs "$bin/epochs"
measure portable build/portable/benchmarks/epochs --benchmark_filter=film
measure kernels "$bin/kernels"
measure scaling "$bin/scaling" --edges "$edges"
echo
"$bin/report" --update docs/notebook/performance.md "$bin"/{epochs,portable,kernels,scaling}.json
