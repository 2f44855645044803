#!/usr/bin/env bash
# The program train_mpi on a hypergraph: the same table on any number of ranks and with any partition, checkpoints, and what it
# says of wrong options. Needed is the model HypergraphDiagonal_2.
# usage: check_hypergraph_mpi.sh PROGRAM MPIEXEC...   (MPIEXEC ends with the option -n)
set -euo pipefail
program=$1
shift
mpiexec=("$@")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
complain() {
  echo "$1"
  failures=$((failures + 1))
}
mkdir "$work/data"
awk 'BEGIN { for (e = 0; e < 40; ++e) { line = e * 7 % 60
               for (k = 1; k < 2 + e % 4; ++k) line = line "," (e * 7 + k * (1 + e % 3)) % 60
               print line } }' > "$work/data/hyperedges.csv"
awk 'BEGIN { print "node,x,y,label,split"
             for (i = 0; i < 60; ++i) print i "," i % 7 "," i * i % 11 "," (i % 5 % 2 ? "b" : "a") "," (i % 3 ? "train" : i % 2 ? "val" : "test") }' > "$work/data/nodes.csv"
options=(--dataset "$work/data" --maps diagonal --stalk-dim 2 --channels 4 --epochs 6 --threads 1)

# usage: train RANKS NAME OPTION...
train() {
  local ranks=$1 name=$2
  shift 2
  "${mpiexec[@]}" "$ranks" "$program" "${options[@]}" "$@" > "$work/$name.out" 2>&1
}
# The row of a table, without its time.
row() { awk '/^ +0 /{ print $1, $2, $3, $4, $5, $6 }' "$work/$1.out"; }
awk 'BEGIN { for (i = 0; i < 60; ++i) print i % 3 }' > "$work/parts"
for network in "--model shgnn" "--model bshgnn" "--model shgnn --laplacian nonlinear --mediators --projection"; do
  # shellcheck disable=SC2086
  train 1 one $network || complain "$network on one rank: $(cat "$work/one.out")"
  # shellcheck disable=SC2086
  train 3 three $network --save "$work/three.safetensors" || complain "$network on three ranks: $(cat "$work/three.out")"
  # shellcheck disable=SC2086
  train 3 file $network --partition "$work/parts" || complain "$network, a partition from a file: $(cat "$work/file.out")"
  [ -n "$(row one)" ] || complain "$network: no table: $(cat "$work/one.out")"
  for name in three file; do
    [ "$(row one)" = "$(row $name)" ] || complain "$network, $name: $(row $name) in place of $(row one)"
  done
  [ -s "$work/three.safetensors" ] || complain "$network: nothing saved"
done
grep -q '^3 parts: [1-9][0-9]* of 40 hyperedges cut' "$work/file.out" || complain "no figures of the partition: $(cat "$work/file.out")"
grep -q '^  part 2: 20 nodes, .* incident pairs, halo ' "$work/file.out" || complain "no figures of a part: $(cat "$work/file.out")"

# A state that three ranks wrote, on two.
train 3 begun --model bshgnn --epochs 3 --checkpoint "$work/state.safetensors" || complain "a checkpoint: $(cat "$work/begun.out")"
train 2 gone_on --model bshgnn --resume "$work/state.safetensors" || complain "another number of ranks: $(cat "$work/gone_on.out")"
train 1 whole --model bshgnn || complain "one rank: $(cat "$work/whole.out")"
[ "$(row gone_on)" = "$(row whole)" ] || complain "resumed: $(row gone_on) in place of $(row whole)"

# usage: refused TEXT OPTION...
refused() {
  local text=$1
  shift
  if train 2 refused "$@"; then complain "accepted: $*"; fi
  [ "$(grep -cF -- "$text" "$work/refused.out")" = 1 ] || complain "no '$text' for $*: $(cat "$work/refused.out")"
}
refused "rank 0 of 2: $work/none: cannot be opened" --model shgnn --partition "$work/none"
refused "rank 0 of 2: --mediators: true is not allowed; an option of the nonlinear Laplacian" --model shgnn --mediators
refused "--dataset: $work/data is not allowed; it is a hypergraph" --model nsd
# train under mpirun is train_mpi; in one process it computes the same.
if [ -x "$(dirname "$program")/train" ]; then
  network=(--model shgnn --laplacian nonlinear --mediators --projection)
  "${mpiexec[@]}" 3 "$(dirname "$program")/train" "${options[@]}" "${network[@]}" > "$work/become.out" 2>&1 ||
    complain "train on three ranks: $(cat "$work/become.out")"
  "$(dirname "$program")/train" "${options[@]}" "${network[@]}" > "$work/alone.out" 2>&1 || complain "train: $(cat "$work/alone.out")"
  for name in become alone; do
    [ "$(row $name)" = "$(row one)" ] || complain "$name: $(cat "$work/$name.out")"
  done
fi
echo "$failures complaints"
[ "$failures" -eq 0 ]
