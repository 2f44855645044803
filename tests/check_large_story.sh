#!/usr/bin/env bash
# A graph on disk, from a folder of the Open Graph Benchmark: graph_folder makes the arrays, large_graph trains on them, predict
# writes the predictions.
# usage: check_large_story.sh FOLDER_OF_PROGRAMS
# Needed are large_graph, predict, graph_folder and the model SpecialOrthogonal_3.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$root/tests/program_checks.sh"
enter_work_folder "$1"
find_numpy
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
folders=("$bin/graph_folder" ogb)

# Tables, compressed arrays of another order, and the folder that the data in memory make: 600 nodes in a ring with chords, each
# third a class. One edge is listed twice, and one is a self-loop.
$python - << 'PYTHON'
import gzip, os, numpy
random = numpy.random.default_rng(0)
n = 600
labels = numpy.arange(n) * 3 // n
pairs = [(u, (u + d) % n) for u in range(n) for d in (1, 2, 5)] + [(3, 3), (1, 0)]
features = (random.normal(size=(n, 6)) + 2 * numpy.eye(6)[labels]).astype(numpy.float32)
part = random.integers(0, 3, n)
def pack(name, rows):
    with gzip.open(f"{name}.csv.gz", "wt") as file:
        file.writelines(",".join(map(str, row)) + "\n" for row in rows)
for raw in ("tables", "arrays"):
    os.makedirs(f"{raw}/raw")
    os.makedirs(f"{raw}/split/random")
    for k, name in enumerate(("train", "valid", "test")):
        pack(f"{raw}/split/random/{name}", [[u] for u in numpy.flatnonzero(part == k)])
pack("tables/raw/num-node-list", [[n]])
pack("tables/raw/edge", pairs)
pack("tables/raw/node-feat", features)
pack("tables/raw/node-label", [[x] for x in labels])
numpy.savez_compressed("arrays/raw/data.npz", edge_index=numpy.array(pairs).T, node_feat=features, num_nodes_list=[n])
numpy.savez("arrays/raw/node-label.npz", node_label=labels[:, None].astype(float))
os.mkdir("memory")
arcs = sorted({(u, v) for u, v in pairs if u != v} | {(v, u) for u, v in pairs if u != v})
arrays = {
    "indptr": numpy.concatenate([[0], numpy.cumsum(numpy.bincount([u for u, _ in arcs], minlength=n))]),
    "indices": numpy.array([v for _, v in arcs], dtype=numpy.int32), "features": features, "labels": labels.astype(numpy.int32),
}
for k, name in enumerate(("train_mask", "val_mask", "test_mask")):
    arrays[name] = (part == k).astype(numpy.int32)
for name, values in arrays.items():
    numpy.save(f"memory/{name}.npy", values)
numpy.savez("memory.npz", edges=numpy.array(pairs).T, features=features, labels=labels)
PYTHON
for raw in tables arrays; do
  mkdir $raw.made && (cd $raw.made && "${folders[@]}" --from ../$raw --folder graph > ../made.txt) || fail "graph_folder ogb"
  diff made.txt - << 'TEXT' || fail "graph_folder says something else"
graph: 600 nodes, 1800 edges, 6 features
left out: 1 self-loops, 1 repeated edges
TEXT
  [ "$(ls $raw.made)" = graph ] || fail "left behind: $(ls $raw.made)"
done
"${folders[@]}" --from arrays --folder pieces --split random --arcs 100 > /dev/null || fail "graph_folder ogb --arcs"
$python - << 'PYTHON' || fail "other arrays than the arrays of the data in memory"
import os, numpy
names = sorted(os.listdir("memory"))
for folder in ("tables.made/graph", "arrays.made/graph", "pieces"):
    assert sorted(os.listdir(folder)) == names, folder
    for name in names:
        a, b = numpy.load(f"memory/{name}"), numpy.load(f"{folder}/{name}")
        assert a.dtype == b.dtype and numpy.array_equal(a, b), (folder, name)
PYTHON
# usage: refuse_folder PATTERN OPTION...: a line of the rank that matches, and no folder
refuse_folder() {
  local pattern=$1
  shift
  if "${folders[@]}" "$@" > /dev/null 2> error.txt; then fail "accepted: $*"; fi
  grep -qE -e "^rank 0 of 1: $pattern" error.txt || fail "'$(cat error.txt)' does not match '$pattern'"
  ! compgen -G 'out*' > /dev/null || fail "something was written: $*"
}
refuse_folder 'pieces: exists already; name a new folder' --from arrays --folder pieces
refuse_folder 'none: no such folder' --from none --folder out
refuse_folder "arrays/split: has no split 'time'; it has random" --from arrays --folder out --split time
cp -r tables spoilt && printf '0,1\n600,2\n' > spoilt/raw/edge.csv && rm spoilt/raw/edge.csv.gz
refuse_folder 'spoilt/raw/edge\.csv:2: node 600 is not allowed; node numbers must be between 0 and 599' --from spoilt --folder out
head -c 100 arrays/raw/data.npz > spoilt/raw/data.npz
refuse_folder 'spoilt/raw/data\.npz: the zip archive is truncated' --from spoilt --folder out

# The training on the converted folder is the training on the folder of the data in memory.
options=(--fan-outs 4,3 --batch-size 64 --lr 0.02 --epochs 8)
for folder in memory tables.made/graph; do
  "$bin/large_graph" $folder "${options[@]}" --save $(basename $folder).safetensors |
    sed "s/; .* s an epoch//; s|^$folder: ||" > $(basename $folder).txt || fail "large_graph $folder"
done
cmp memory.txt graph.txt || fail "another training on the converted folder"
awk '/test accuracy/ {n++; sub(/.*test accuracy /, ""); if ($1 + 0 < 90) bad = 1} END {exit bad || n != 1}' graph.txt ||
  fail "large_graph learned nothing: $(cat graph.txt)"

# Predictions in pieces: the same for any number of threads, of all nodes or of a set of them.
predict=("$bin/predict" --model graph.safetensors --dataset tables.made/graph)
"${predict[@]}" --threads 1 --output all.csv > predict.txt || fail "predict of a folder"
"${predict[@]}" --threads 2 --output two.csv > /dev/null && cmp all.csv two.csv || fail "predictions depend on threads"
head -3 predict.txt | sed 's/[0-9]\.[0-9]*/X/g' | diff - <(cat << 'TEXT'
graph: 600 nodes, nsd with special-orthogonal maps, stalk dimension 3
600 nodes predicted (all) on drawn neighbours, fan-outs 4,3
mean entropy X, mean mutual information X (at most log 3 = X)
TEXT
) || fail "predict says something else: $(cat predict.txt)"
awk '/of all nodes have the class of their label/ {n++; if ($1 + 0 < 90) bad = 1} END {exit bad || n != 1}' predict.txt ||
  fail "predicted nothing: $(cat predict.txt)"
[ "$(head -1 all.csv)" = node,class,p_0,p_1,p_2,entropy,mutual_information ] || fail "columns: $(head -1 all.csv)"
[ "$(wc -l < all.csv)" = 601 ] || fail "not all nodes"
"${predict[@]}" --nodes test --output test.csv > test.txt || fail "predict --nodes test"
grep -q 'of all predicted and labelled nodes have the class of their label' test.txt || fail "accuracy of a set: $(cat test.txt)"
# With all neighbours of all layers these are the predictions in memory.
"${predict[@]}" --fan-outs 0,0,0,0 --output all.csv > /dev/null || fail "predict --fan-outs"
"${predict[@]}" --fan-outs 0,0,0,0 --nodes test --output test.csv > /dev/null || fail "predict --fan-outs --nodes"
"$bin/predict" --model graph.safetensors --dataset memory.npz --output whole.csv > /dev/null || fail "predict in memory"
$python - << 'PYTHON' || fail "other predictions than in memory"
import numpy
read = lambda name: numpy.genfromtxt(f"{name}.csv", delimiter=",", skip_header=1)
whole, all_nodes, test = map(read, ("whole", "all", "test"))
mask = numpy.load("memory/test_mask.npy") == 1
assert (test[:, 0] == numpy.flatnonzero(mask)).all()
numpy.testing.assert_allclose(all_nodes, whole, atol=2e-5)
numpy.testing.assert_allclose(test, whole[mask], atol=2e-5)
PYTHON
refuse '--nodes: test is not allowed; belongs to a --dataset that is a folder of \.npy arrays' \
  "$bin/predict" --model graph.safetensors --dataset memory.npz --nodes test --output out.csv
refuse '--sheaf: out\.npz is not allowed; belongs to a graph in memory' "${predict[@]}" --sheaf out.npz
refuse '--fan-outs\[0\]: -1 is not allowed; must be between 0 and 4095' "${predict[@]}" --fan-outs -1 --output out.csv
cp -r memory narrow && $python -c 'import numpy; numpy.save("narrow/features.npy", numpy.load("memory/features.npy")[:, :5])'
refuse 'features' "$bin/predict" --model graph.safetensors --dataset narrow --output out.csv
$python -c 'import numpy; f = numpy.load("memory/features.npy"); f[599, 2] = numpy.nan; numpy.save("narrow/features.npy", f)'
refuse 'narrow/features\.npy: node 599 has the value nan in column 2' \
  "$bin/predict" --model graph.safetensors --dataset narrow --output out.csv
