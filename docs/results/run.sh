#!/usr/bin/env bash
# Trains Bayesian sheaf networks on public graphs, ten splits each, with the settings chosen by validation accuracy, and
# writes one report for each graph and family of maps here.
# usage: [SEEDS=0-4] [DEVICE=cuda] docs/results/run.sh FOLDER_OF_NPZ_FILES [DATASET...]
# SEEDS: every split with each of these seeds, and all predictions, in the folder seeds/ of the current one
# (benchmarks/seed_ensembles.py reads them).
# DEVICE: on this device, all trainings of a graph and family side by side, in the folder device/ of the current one,
# without predictions (benchmarks/device_table.py reads them). TRAIN: the program (default build/cuda/examples/train).
set -euo pipefail
data=$(cd "$1" && pwd)
shift
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
train=$root/build/release/examples/train
if [ -n "${DEVICE:-}" ]; then
  train=$(realpath "${TRAIN:-$root/build/cuda/examples/train}")
  mkdir -p device
  cd device
elif [ -n "${SEEDS:-}" ]; then
  mkdir -p seeds
  cd seeds
else
  cd "$root/docs/results"
fi

# usage: run DATASET MAPS OPTIONS...
run() {
  local dataset=$1 maps=$2
  shift 2
  local seeds=(--seed 0)
  if [ -n "${DEVICE:-}" ]; then
    seeds=(--seeds "${SEEDS:-0}" --device "$DEVICE")
  elif [ -n "${SEEDS:-}" ]; then
    seeds=(--seeds "$SEEDS" --parallel splits --predictions "$dataset-$maps.npz")
  fi
  "$train" --preset none --spread published --kl-weight 1 --sheaf-lr 0 --feature-treatment rows --dataset "$data/$dataset.npz" --model bsnn --maps "$maps" --splits 0-9 "${seeds[@]}" --samples 3 \
    --report "$dataset-$maps.json" "$@"
}
[ $# -gt 0 ] || set -- texas wisconsin cornell film cora citeseer
for dataset in "$@"; do
  for maps in diagonal special-orthogonal general-linear; do
    case $dataset in
      texas)
        layers=4
        if [ $maps = general-linear ]; then layers=5; fi
        run $dataset $maps --layers $layers --channels 20 --add-hp --lr 0.02 --weight-decay 5e-3 --sheaf-decay 5e-3 \
          --input-dropout 0 --dropout 0.7 --epochs 300 --patience 100
        ;;
      wisconsin | cornell)
        run $dataset $maps --layers 4 --channels 20 --add-hp --lr 0.02 --weight-decay 5e-3 --sheaf-decay 5e-3 \
          --input-dropout 0 --dropout 0.7 --epochs 300 --patience 100
        ;;
      film)
        run $dataset $maps --layers 2 --channels 16 --add-hp --lr 0.003 --weight-decay 5e-3 --sheaf-decay 5e-3 \
          --input-dropout 0 --dropout 0.5 --epochs 200 --patience 30
        ;;
      cora)
        run $dataset $maps --layers 3 --channels 16 --add-lp --lr 0.02 --weight-decay 5e-4 --sheaf-decay 5e-4 \
          --input-dropout 0.7 --dropout 0.3 --epochs 200 --patience 60
        ;;
      citeseer)
        run $dataset $maps --layers 2 --channels 16 --add-lp --lr 0.02 --weight-decay 5e-4 --sheaf-decay 5e-4 \
          --input-dropout 0.7 --dropout 0.5 --epochs 200 --patience 60
        ;;
    esac
  done
done
