#!/usr/bin/env bash
# Searches every network at one budget, and renews the tables of docs/notebook/one_budget.md and docs/results/README.md.
# usage: benchmarks/one_budget.sh DATA FOLDER
# DATA: the folder of the public graphs. FOLDER: of the studies; a search that was interrupted goes on.
# TRAIN: the program (default: in build/release/examples). PYTHON: with numpy, scipy and optuna.
set -euo pipefail
[ $# = 2 ] || { sed -n '3s/^# //p' "$0" >&2; exit 2; }
data=$(cd "$1" && pwd)
mkdir -p "$2/given"
folder=$(cd "$2" && pwd)
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
train=${TRAIN:-$root/build/release/examples/train}
python=${PYTHON:-python3}

# The true sheaf of the planted task, and the trivial one.
"$train" --dataset planted-frames --planted-nodes 1000 --planted-spread 0.5 --planted-truth "$folder/given/planted-frames-true.npz" \
  --model nsd --maps identity --stalk-dim 3 --splits 0 --epochs 1 > /dev/null
"$python" - "$folder/given" << 'EOF'
import sys

import numpy

with numpy.load(f"{sys.argv[1]}/planted-frames-true.npz") as file:
    sheaf = {key: file[key] for key in file.files}
sheaf["maps"][:] = numpy.eye(3)
numpy.savez(f"{sys.argv[1]}/planted-frames-trivial.npz", **sheaf)
EOF

# usage: measure GRAPH SETTINGS DATA PROGRAM [OPTIONS...]
# SETTINGS: how many; "5 10": five, then five more, which are others than a search of ten draws at once
measure() {
  local common=("$folder" --kind "one budget" --datasets "$1" --data "$3" --train "$4" --jobs 1)
  local count
  for count in $2; do "$python" "$root/benchmarks/tune.py" search "${common[@]}" --trials "$count" "${@:5}"; done
  "$python" "$root/benchmarks/tune.py" final "${common[@]}" --rules loss --seeds 0-2 "${@:5}"
  "$python" "$root/benchmarks/tune.py" export "${common[@]}" --output "$root/docs/results/search/budget"
}
bash "$root/docs/results/reports.sh" unpack
measure texas 10 "$data" "$train"
for graph in wisconsin cornell; do measure $graph "5 10" "$data" "$train"; done
measure planted-frames "5 10" "$folder/given" "$train" --networks identity,nsd,bsnn,snn-trivial,snn,bsnn-given-trivial,bsnn-given
measure hypergraph "5 10" "$folder/given" "$train"
bash "$root/docs/results/reports.sh" pack
"$python" "$root/docs/results/tables.py"
