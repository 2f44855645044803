#!/usr/bin/env bash
# A hypergraph in text files: train and predict take it as they take a graph, with checkpoints, seeds and reports.
# usage: check_hypergraph_story.sh FOLDER_OF_PROGRAMS
# Needed are the models Diagonal_2, HypergraphDiagonal_2 and HypergraphIdentity_2.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$root/tests/program_checks.sh"
enter_work_folder "$1"

# 90 members of three clubs; the meetings have two to five of them, mostly of one club.
mkdir clubs
awk -v meetings=clubs/hyperedges.csv -v nodes=clubs/nodes.csv 'BEGIN {
  name[0] = "chess"; name[1] = "choir"; name[2] = "rowing"
  print "name,age,height,label,split" > nodes
  for (u = 0; u < 90; ++u) {
    print "member " u "," u % 7 + 2 * (u % 3) "," u * u % 5 "," name[u % 3] "," (u % 4 < 2 ? "train" : u % 4 == 2 ? "val" : "test") > nodes
  }
  for (e = 0; e < 60; ++e) {
    line = "member " e
    for (k = 1; k < 2 + e % 4; ++k) line = line ",member " (e + 3 * k + (e % 6 == 0) * k) % 90
    print line > meetings
  }
}'
both=(--dataset clubs)
network=(--maps diagonal --stalk-dim 2 --channels 4 --threads 1 --lr 0.05 --input-dropout 0 --dropout 0.1)
train=("$bin/train" "${both[@]}" "${network[@]}")

"${train[@]}" --model bshgnn --epochs 40 --save whole.safetensors --report whole.json --predictions whole.npz --history > train.txt ||
  fail "train"
grep -q '^clubs: 90 nodes, 60 hyperedges of at most 5 nodes, 2 features, 3 classes$' train.txt || fail "another summary: $(cat train.txt)"
awk '/^ mean / {n++; if ($2 + 0 < 60) bad = 1} END {exit bad || n != 1}' train.txt || fail "nothing learned: $(cat train.txt)"
grep -q '"model": "bshgnn"' whole.json && grep -q '"laplacian": "linear"' whole.json || fail "report: $(cat whole.json)"
[ -s whole.npz ] || fail "no predictions"

# A training that stops goes on to the same bits.
"${train[@]}" --model bshgnn --epochs 15 --checkpoint states --every 4 > /dev/null || fail "--checkpoint"
"$bin/train" --resume states --epochs 40 --save resumed.safetensors --report resumed.json --history > /dev/null || fail "--resume"
cmp whole.safetensors resumed.safetensors || fail "a resumed training has other bits"
sed '1,$s/member 3,/member 4,/' clubs/hyperedges.csv > changed.csv
cp -r clubs other && cp changed.csv other/hyperedges.csv && mv clubs kept && mv other clubs
refuse "data was 'clubs [0-9a-f]*' and is 'clubs [0-9a-f]*' now; this training cannot resume" "$bin/train" --resume states --epochs 40
rm -r clubs && mv kept clubs

# Several seeds equal single ones; --projection draws its numbers from the seed of each.
differing=(--model shgnn --laplacian nonlinear --mediators --projection --epochs 6)
"${train[@]}" "${differing[@]}" --seeds 0-2 --save seeds.safetensors --report seeds.json > seeds.txt || fail "--seeds"
"${train[@]}" "${differing[@]}" --seeds 0-2 --parallel splits --save beside.safetensors > /dev/null || fail "--parallel"
"${train[@]}" "${differing[@]}" --seed 2 --save one.safetensors > /dev/null || fail "--seed"
cmp seeds-0-2.safetensors one.safetensors || fail "seed 2 among others is another training"
cmp seeds-0-2.safetensors beside-0-2.safetensors || fail "seed 2 beside others is another training"
! cmp -s seeds-0-1.safetensors one.safetensors || fail "seeds do not differ"
[ "$(grep -c '"seed": [0-2],*$' seeds.json)" -ge 3 ] || fail "no seeds in the report: $(cat seeds.json)"

# Prediction.
"$bin/predict" --model whole.safetensors "${both[@]}" --output nodes.csv > predict.txt || fail "predict"
grep -q 'of all nodes have the class of their label' predict.txt || fail "labels are not compared: $(cat predict.txt)"
[ "$(wc -l < nodes.csv)" = 91 ] && grep -q '^89,member 89,' nodes.csv || fail "predictions: $(head -n 3 nodes.csv)"
"${train[@]}" --model shgnn --target age --epochs 5 --save numbers.safetensors > numbers.txt || fail "--target"
grep -q '^age: mean absolute error ' numbers.txt || fail "no errors of numbers: $(cat numbers.txt)"
"$bin/predict" --model numbers.safetensors "${both[@]}" --output numbers.csv | grep -q '^age: mean absolute error ' || fail "predict numbers"

# One that the program makes, and identity maps.
"$bin/train" --dataset synthetic --synthetic-nodes 60 --synthetic-hyperedges 50 --synthetic-largest-size 4 --model shgnn --maps identity \
  --stalk-dim 2 --epochs 3 --splits 0 > synthetic.txt || fail "--maps identity"
grep -q ': 60 nodes, 50 hyperedges of at most 4 nodes, ' synthetic.txt || fail "synthetic: $(cat synthetic.txt)"

# The other kind of data or of network, and what there is on graphs only.
refuse '^train: --dataset: clubs is not allowed; it is a hypergraph; .* shgnn or bshgnn$' "${train[@]}" --model nsd --save out
mkdir graph
cut -d , -f 1,2 clubs/hyperedges.csv > graph/edges.csv
cp clubs/nodes.csv graph
for dataset in karate graph planted-frames; do
  refuse "^train: --dataset: $dataset is not allowed; it has no hyperedges; " "$bin/train" --dataset $dataset "${network[@]}" --model shgnn --save out
done
refuse '^predict: --dataset: graph is not allowed; it has no hyperedges' "$bin/predict" --model whole.safetensors --dataset graph --output out
refuse 'nothing: no such hypergraph' "${train[@]}" --dataset nothing --model shgnn
"$bin/train" --dataset graph "${network[@]}" --model nsd --epochs 1 --save nsd.safetensors > /dev/null || fail "nsd"
refuse '^predict: --dataset: clubs is not allowed; it is a hypergraph' "$bin/predict" --model nsd.safetensors "${both[@]}" --output out
mkdir empty
cp clubs/nodes.csv empty
printf '# nobody met\n' > empty/hyperedges.csv
refuse 'empty/hyperedges.csv: lists no hyperedge; at least one with a member is needed' "${train[@]}" --dataset empty --model shgnn --save out
refuse 'model: bshgnn is not allowed; identity maps have no distribution' "${train[@]}" --model bshgnn --maps identity
refuse ' and 2 to 4$' "${train[@]}" --model shgnn --stalk-dim 5
refuse '--mediators: true is not allowed; an option of the nonlinear Laplacian' "${train[@]}" --model shgnn --mediators
refuse '--projection: true is not allowed; belongs to --laplacian nonlinear' "${train[@]}" --model shgnn --projection
refuse '--add-lp: true is not allowed; not an option of --model shgnn' "${train[@]}" --model shgnn --add-lp
refuse '--laplacian: published is not allowed; not an option of --model nsd' "${train[@]}" --model nsd --laplacian published
refuse '--sheaf: out.npz is not allowed; ' "${train[@]}" --model shgnn --sheaf out.npz
refuse '--sheaf: out.npz is not allowed; ' "$bin/predict" --model whole.safetensors "${both[@]}" --sheaf out.npz
refuse '--search: 5s is not allowed; it has no networks on hypergraphs' "$bin/train" "${both[@]}" --model shgnn --search 5s
refuse '--preset: small is not allowed; presets are for graphs' "${train[@]}" --model shgnn --preset small
refuse '--edge-types: true is not allowed; ' "${train[@]}" --model shgnn --edge-types
refuse '--synthetic-degree: 3 is not allowed; belongs to a graph' "${train[@]}" --dataset synthetic --model shgnn --synthetic-degree 3
