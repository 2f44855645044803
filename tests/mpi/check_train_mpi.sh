#!/usr/bin/env bash
# The program train_mpi: the same table on any number of ranks, the same bits from run to run, partitions from files, and
# what it says of wrong options. usage: check_train_mpi.sh PROGRAM MPIEXEC...   (MPIEXEC ends with the option -n)
set -euo pipefail
program=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
complain() {
  echo "$1"
  failures=$((failures + 1))
}
options=(--dataset synthetic --synthetic-nodes 60 --synthetic-classes 3 --synthetic-features 30 --preset none
  --stalk-dim 2 --channels 4 --epochs 5 --splits 0 --threads 1)
network=(--maps diagonal --layers 2)

# usage: train RANKS NAME OPTION...
train() {
  local ranks=$1 name=$2
  shift 2
  "${mpiexec[@]}" "$ranks" "$program" "${options[@]}" "${network[@]}" --report "$work/$name.json" --history "$@" > "$work/$name.out" 2>&1
}
# What a report says of the training, without times.
history() { python3 -c 'import json,sys; print(json.dumps(json.load(open(sys.argv[1]))["splits"]))' "$work/$1.json"; }

mpiexec=("$@")
train 1 one || complain "one rank: $(cat "$work/one.out")"
train 3 three || complain "three ranks: $(cat "$work/three.out")"
train 3 again --save "$work/again.safetensors" || complain "three ranks once more: $(cat "$work/again.out")"
[ "$(history three)" = "$(history again)" ] || complain "two runs on three ranks differ"
[ "$(grep -c '^sheaf: KL per pair ' "$work/three.out")" = 1 ] || complain "no figures of the sheaf: $(cat "$work/three.out")"
[ "$(grep -c '^  validation loss [0-9.]*, maps permuted ' "$work/three.out")" = 1 ] || complain "no score of the sheaf: $(cat "$work/three.out")"
awk 'BEGIN { for (i = 0; i < 60; ++i) print i % 3 }' > "$work/parts"
train 3 file --partition "$work/parts" || complain "a partition from a file: $(cat "$work/file.out")"
train 3 begun --epochs 3 --checkpoint "$work/state.safetensors" || complain "a checkpoint: $(cat "$work/begun.out")"
# The same with predictions that every rank writes on its own; what is there is whole, and nothing else is left.
shards() { find "$work" -name 'shards.st.e*' | sort | tr '\n' ' '; }
train 3 sharded --epochs 3 --checkpoint "$work/shards.st" --shard-above 0 || complain "shards: $(cat "$work/sharded.out")"
[ "$(shards | wc -w)" = 3 ] || complain "not three shards: $(shards)"
cp "$work/shards.st" "$work/first.st"
train 2 sharded_on --resume "$work/shards.st" --checkpoint "$work/shards.st" --shard-above 0 ||
  complain "shards on another number of ranks: $(cat "$work/sharded_on.out")"
[ "$(shards | wc -w)" = 2 ] && [[ "$(shards)" == *"-of2.0.npy "*"-of2.1.npy " ]] || complain "not two shards: $(shards)"
# Networks of continuous time, of every layer, of every other kind, and on given maps: the same losses on any number of ranks.
# usage: train_both NAME OPTION...
train_both() {
  local name=$1
  shift
  train 1 "${name}_one" "$@" || complain "$name on one rank: $(cat "$work/${name}_one.out")"
  train 3 "${name}_three" "$@" || complain "$name on three ranks: $(cat "$work/${name}_three.out")"
}
network=(--maps diagonal)
train_both flow --model bflow
train_both attention --layers 2 --layer attention --attention-heads 2 --random-attention
for layer in convolution wave copresheaf; do train_both $layer --layers 2 --layer $layer; done
"$(dirname "$program")/train" "${options[@]}" "${network[@]}" --layers 2 --model nsd --sheaf "$work/given.npz" > "$work/given.out" 2>&1 ||
  complain "no sheaf to give: $(cat "$work/given.out")"
train_both given --layers 2 --model bsnn-given --given-sheaf "$work/given.npz"
network=(--layers 2)
train_both cooperative --model bcsnn --directed --batch-norm --node-learner sage
train_both connection --model bconn-nsd
train_both bundle --model bbunn --bundles 2 --expansion taylor --terms 3
train_both eigenpairs --model bbunn --bundles 2 --expansion spectral --terms 5
train_both limit --model bbunn --bundles 2 --expansion limit
# Types of edges and nodes, from the columns of a folder.
mkdir "$work/typed"
awk 'BEGIN { print "source,target,type"; for (i = 0; i < 60; ++i) print i "," (i + 1) % 60 "," (i % 3 ? "knows" : "helps") }' > "$work/typed/edges.csv"
awk 'BEGIN { print "node,type,x,label,split"
             for (i = 0; i < 60; ++i) print i "," (i % 4 ? "old" : "young") "," i % 7 "," (i % 5 % 2 ? "b" : "a") "," (i % 3 ? "train" : i % 2 ? "val" : "test") }' > "$work/typed/nodes.csv"
synthetic_options=("${options[@]}")
options=(--dataset "$work/typed" --preset none --stalk-dim 2 --channels 4 --epochs 5 --threads 1)
network=(--maps diagonal --layers 2)
train_both typed --model nsd --edge-types --stalks young=1 --edge-stalks helps=1
train_both directed --layer directed --random-phases --edge-types --stalks young=2
options=("${synthetic_options[@]}")
train 2 two || complain "two ranks: $(cat "$work/two.out")"
train 2 gone_on --resume "$work/state.safetensors" || complain "another number of ranks: $(cat "$work/gone_on.out")"
train 1 clusters --clusters 4 --clusters-per-step 4 || complain "clusters: $(cat "$work/clusters.out")"
python3 - "$work" <<'PYTHON' || complain "reports differ by more than rounding"
import json, struct, sys
def check_sheaf(found, expected):
    assert found["nodes"] == expected["nodes"] > 0 and found["kl_per_pair"] is not None
    for key in ("permuted", "prior", "identity"):
        for part in ("loss", "rise"):
            assert abs(found[key][part] - expected[key][part]) < 1e-3, (key, part, found, expected)
reports = {name: json.load(open(f"{sys.argv[1]}/{name}.json")) for name in ("one", "two", "three", "file", "gone_on", "sharded_on", "clusters")}
# Per epoch that was trained here: the last prediction's exchanges are shared by fewer epochs.
assert 0 < reports["two"]["messages_per_epoch"] <= reports["gone_on"]["messages_per_epoch"]
expected = reports["one"]["splits"][0]["history"]
for name in ("three", "file", "gone_on", "sharded_on", "clusters"):
    assert reports[name]["ranks"] == {"gone_on": 2, "sharded_on": 2, "clusters": 1}.get(name, 3)
    for key in ("loss", "kl", "validation_loss"):
        for a, b in zip(reports[name]["splits"][0]["history"][key], expected[key], strict=True):
            assert abs(a - b) < 2e-4 * max(1, abs(b)), (name, key, a, b)
    check_sheaf(reports[name]["splits"][0]["sheaf"], reports["one"]["splits"][0]["sheaf"])
with open(f"{sys.argv[1]}/again.safetensors", "rb") as file:
    header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
saved = json.loads(header["__metadata__"]["sheaf_use"])
assert saved == {key: value for key, value in reports["three"]["splits"][0]["sheaf"].items() if key != "warning"}
for kind in ("flow", "cooperative", "attention", "convolution", "wave", "copresheaf", "directed", "typed", "connection", "bundle", "eigenpairs", "limit", "given"):
    one, three = (json.load(open(f"{sys.argv[1]}/{kind}_{ranks}.json")) for ranks in ("one", "three"))
    assert three["bytes_per_epoch"] > 0
    if kind not in ("typed", "connection", "given"):  # such networks have no scores of other maps
        check_sheaf(three["splits"][0]["sheaf"], one["splits"][0]["sheaf"])
    for a, b in zip(three["splits"][0]["history"]["loss"], one["splits"][0]["history"]["loss"], strict=True):
        assert abs(a - b) < 2e-4 * max(1, abs(b)), (kind, a, b)
assert reports["one"]["bytes_per_epoch"] == 0 < reports["three"]["bytes_per_epoch"] < reports["file"]["bytes_per_epoch"]
PYTHON

# usage: refused TEXT OPTION...; one line that names the rank, and a status that is not 0
refused() {
  local text=$1
  shift
  if train 2 refused "$@"; then complain "accepted: $*"; fi
  [ "$(grep -c "^rank [0-9]* of 2: " "$work/refused.out")" = 1 ] || complain "not one line of a rank for $*: $(cat "$work/refused.out")"
  grep -qF -- "$text" "$work/refused.out" || complain "no '$text' for $*: $(cat "$work/refused.out")"
}
refused "rank 0 of 2: $work/first.st.e3-" --resume "$work/first.st"
refused "dropout was '0.3' and is '0.1' now; this training cannot resume" --resume "$work/state.safetensors" --dropout 0.1
refused "split was '0' and is '1' now; this training cannot resume" --resume "$work/state.safetensors" --splits 1
refused "rank 0 of 2: --save: $work/same is the file of --report" --report "$work/same" --save "$work/same"
refused "rank 0 of 2: --clusters: 4 is not allowed; needs one rank" --clusters 4
# usage: idle TEXT OPTION...: an option that does nothing without another one, or a value that it has not
idle() {
  local text=$1
  shift
  if train 1 idle "$@"; then complain "accepted: $*"; fi
  grep -qF -- "$text" "$work/idle.out" || complain "no '$text' for $*: $(cat "$work/idle.out")"
}
idle "--clusters: -3 is not allowed; must be between 1 and 60" --clusters -3
idle "--clusters-per-step: 5 is not allowed; must be between 1 and 4" --clusters 4 --clusters-per-step 5
idle "--clusters-per-step requires --clusters" --clusters-per-step 2
idle "--edge-types: true is not allowed; belongs to a graph, whose --dataset is of text files or an .npz file" --edge-types
idle "--every requires --checkpoint" --every 3
idle "--shard-above requires --checkpoint" --shard-above 3
idle "excludes --seed" --seeds 0-1 --seed 3
refused "rank 0 of 2: $work/none: cannot be opened" --partition "$work/none"
mkdir "$work/folder" && touch "$work/folder/indptr.npy"
network=(--layers 2)
whole_options=("${options[@]}")
options=(--preset none --stalk-dim 2 --epochs 5)
refused "rank 0 of 2: --directed: a folder of .npy arrays is not allowed; its graph is undirected" \
  --dataset "$work/folder" --model csnn --directed
for option in "--make-splits 60/20/20" --exchange-masks; do
  refused "rank 0 of 2: ${option%% *}: a folder of .npy arrays is not allowed; its masks define its only split" \
    --dataset "$work/folder" --model nsd --maps diagonal $option
done
refused "rank 0 of 2: --label: y is not allowed; belongs to a --dataset of text files" --dataset "$work/folder" --label y
# Two unequal classes: the same choice of the best epoch as in one process.
mkdir "$work/unequal"
awk 'BEGIN { print "a,b"; for (i = 0; i < 60; ++i) print i "," (i + 1) % 60 }' > "$work/unequal/edges.csv"
awk 'BEGIN { print "node,x,label"; for (i = 0; i < 60; ++i) print i "," i % 7 "," (i % 5 == 0 ? "b" : "a") }' > "$work/unequal/nodes.csv"
options=(--dataset "$work/unequal" --make-splits 60/20/20 --split-count 1 --stalk-dim 2 --channels 4 --epochs 2 --threads 1)
network=(--maps diagonal --layers 2)
train 2 unequal || complain "two unequal classes: $(cat "$work/unequal.out")"
grep -q '"stop_on": "roc-auc"' "$work/unequal.json" || complain "two unequal classes: another metric than in train"
options=("${whole_options[@]}")
# train under mpirun is train_mpi.
"${mpiexec[@]}" 2 "$(dirname "$program")/train" "${options[@]}" "${network[@]}" --report "$work/as_train.json" \
  > "$work/as_train.out" 2>&1 || complain "train on two ranks: $(cat "$work/as_train.out")"
grep -q '"bytes_per_epoch": [1-9]' "$work/as_train.json" || complain "train on two ranks trained on one"
cp "$(dirname "$program")/train" "$work/alone"
if "${mpiexec[@]}" 2 "$work/alone" "${options[@]}" > "$work/alone.out" 2>&1; then complain "train without train_mpi on two ranks"; fi
grep -q "train: started on 2 ranks, for which there is $work/train_mpi; it cannot be started" "$work/alone.out" ||
  complain "train without train_mpi: $(cat "$work/alone.out")"
echo "0 1 x" > "$work/bad"
refused "number 3, 'x', is not the number of a part" --partition "$work/bad"
echo "0 1 1" > "$work/short"
refused "rank 0 of 2: $work/short: partition.owner: 3 is not allowed; expected one number for each of 60 nodes" --partition "$work/short"
# A model that it was built without is refused before there is a table.
network=(--maps identity --layers 2)
refused "identity, 2 is not allowed; this program was built with" --model nsd
! grep -q 'best epoch' "$work/refused.out" || complain "a table of a model that there is not"
network=(--maps diagonal --layers 2)
# One rank alone that fails: its own arguments.
if "${mpiexec[@]}" 1 "$program" "${options[@]}" "${network[@]}" : -n 1 "$program" "${options[@]}" "${network[@]}" --dropout 2 > "$work/one_rank.out" 2>&1; then
  complain "accepted: a rank with --dropout 2"
fi
grep -q "^rank 1 of 2: --dropout: 2 is not allowed" "$work/one_rank.out" || complain "a failing rank: $(cat "$work/one_rank.out")"
if "${mpiexec[@]}" 1 "$program" "${options[@]}" "${network[@]}" : -n 1 "$program" "${options[@]}" "${network[@]}" --lr 0.5 > "$work/differs.out" 2>&1; then
  complain "accepted: ranks with different learning rates"
fi
grep -q "^rank 0 of 2: the ranks do not agree: on rank 1 learning_rate is 0.5, on rank 0 it is 0.01" "$work/differs.out" ||
  complain "ranks that differ: $(cat "$work/differs.out")"
echo "$failures complaints"
[ "$failures" -eq 0 ]
