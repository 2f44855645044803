#!/usr/bin/env bash
# Installs what is missing, builds train, predict and explore with one family of maps, trains a network on a generated
# heterophilic graph and draws what it has learned.
# usage: explore.sh [FOLDER]   where the page and its pictures go (default: explore-pictures)
set -euo pipefail
folder=$(realpath -m "${1:-explore-pictures}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bash scripts/install_dependencies.sh gnuplot-nox=gnuplot
log=$(mktemp)
work=$(mktemp -d)
trap 'rm -rf "$log" "$work"' EXIT
# A folder of its own: other builds keep their families of maps.
cmake --preset release -B build/explore -DSHEAFNN_BUILD_TESTS=OFF -DSHEAFNN_BUILD_BENCHMARKS=OFF \
      -DSHEAFNN_PROGRAMS="train;predict;explore" -DSHEAFNN_EXAMPLE_MODELS=SpecialOrthogonal:2 > "$log" 2>&1 \
  && cmake --build build/explore --target train predict explore >> "$log" 2>&1 \
  || { cat "$log"; exit 1; }
bin=build/explore/examples

# Three classes; nine of ten edges join a class and the next one. Few words per node: the features alone do not tell.
graph=(--dataset synthetic --synthetic-nodes 200 --synthetic-classes 3 --synthetic-degree 5 --synthetic-homophily 0.1
       --synthetic-class-cycle 1 --synthetic-degree-noise 0.2 --synthetic-features 30 --synthetic-words 4
       --synthetic-feature-noise 0.6)
"$bin/train" "${graph[@]}" --splits 0 --stalk-dim 2 --channels 8 --layers 3 --epochs 400 --patience 150 \
             --no-normalise-features --sheaf-decay 0 --kl-weight 5e-2 --training-samples 4 --samples 10 \
             --save "$work/model.safetensors" --report "$work/report.json" --history
"$bin/predict" "${graph[@]}" --model "$work/model.safetensors" --samples 50 --sheaf "$work/sheaf.npz"
"$bin/explore" "${graph[@]}" --sheaf "$work/sheaf.npz" --split 0 --report "$work/report.json" --output "$folder"
