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

# Two classes; half of the edges join them. A network trains on 1500 nodes; the pictures are of 48 others that it has not seen.
# The preset's options, but for the layers and a KL weight with which the validation nodes still need the maps.
graph=(--dataset synthetic --synthetic-classes 2 --synthetic-degree 3 --synthetic-homophily 0.5 --synthetic-degree-noise 0
       --synthetic-features 40 --synthetic-words 5 --synthetic-feature-noise 0.4)
"$bin/train" "${graph[@]}" --synthetic-nodes 1500 --splits 0 --stalk-dim 2 --channels 8 --layers 2 --epochs 200 --patience 100 \
             --no-normalise-features --sheaf-decay 0 --kl-weight 0.015 --training-samples 4 --samples 10 \
             --save "$work/model.safetensors" --report "$work/report.json" --history
graph+=(--synthetic-nodes 48 --synthetic-seed 1)
"$bin/predict" "${graph[@]}" --model "$work/model.safetensors" --samples 50 --sheaf "$work/sheaf.npz"
"$bin/explore" "${graph[@]}" --sheaf "$work/sheaf.npz" --report "$work/report.json" --output "$folder"
