#!/usr/bin/env bash
# Runs the example programs: the README's program and what the README says it prints, training, prediction, reports,
# and bad input (one line that names the culprit, exit code 2, nothing written).
# usage: check_programs.sh FOLDER_OF_PROGRAMS [MODEL...]
# MODEL: a model that the programs contain, FAMILY_D; needed are Identity_2, Diagonal_2, GeneralLinear_2,
# SpecialOrthogonal_2 to 4, Cooperative_2, FlowDiagonal_2, Bundle_2, Connection_2, GivenDiagonal_2.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$root/tests/program_checks.sh"
enter_work_folder "$1"
shift
models=" $* "

# The README shows examples/minimal.cpp and its output; the last digits may differ between instruction sets.
awk '/^```cpp/ {on = 1; next} /^```/ {on = 0} on' "$root/README.md" | cmp - "$root/examples/minimal.cpp" \
  || fail "the README's program is not examples/minimal.cpp"
"$bin/minimal" > minimal.txt
awk '/^prints$/ {wait = 1} /^```$/ {if (on) exit; if (wait) {on = 1; next}} on' "$root/README.md" > readme.txt
[ "$(wc -l < readme.txt)" -ge 6 ] || fail "the README's output was not found"
diff <(awk '{print $1, $2, $3, $5}' readme.txt) <(awk '{print $1, $2, $3, $5}' minimal.txt) || fail "minimal prints something else"
paste readme.txt minimal.txt | awk '/°/ {far = $4 - $9; if (far > 5 || far < -5) exit 1}' || fail "minimal learns other angles than the README says"

# Training writes a table, a report and a model; the same command gives the same numbers, with any number of threads.
train=("$bin/train" --dataset karate --maps diagonal --stalk-dim 2 --channels 8 --layers 2 --epochs 40 --splits 0,2)
"${train[@]}" --threads 1 --report one.json --save model.safetensors > table.txt
"${train[@]}" --threads 2 --report two.json > /dev/null
for file in one.json two.json model-0.safetensors model-2.safetensors; do [ -s $file ] || fail "no $file"; done
grep -q '^ mean ' table.txt || fail "no table"
for key in dataset model maps options test_accuracy mean std per_split validation_accuracy ece nll \
           seconds_per_epoch all train evaluate parameters version commit command machine started seconds \
           interrupted stopped_by confusion_matrix f1 roc_auc average_precision macro_f1 brier; do
  grep -q "\"$key\"" one.json || fail "the report lacks '$key'"
done
diff <(facts one.json) <(facts two.json) || fail "one and two threads differ"
# Figures of the sheaf: in the table, the report and the model, from which predict prints them.
check_sheaf table.txt one.json
grep -qE '^sheaf, medians of 2 trainings: KL per pair [^ ]+, sigma [^ ]+, negative [0-9]+% \(at 5/50/95%\)$' table.txt ||
  fail "no figures of the maps: $(cat table.txt)"
saved_figures model-2.safetensors > figures.json
python3 - << 'END' || fail "the model has other figures than the report: $(cat figures.json)"
import json
saved, run = json.load(open("figures.json")), json.load(open("one.json"))["splits"][1]
assert saved == {key: value for key, value in run["sheaf"].items() if key != "warning"} and saved["nodes"] > 0
END
"$bin/predict" --dataset karate --model model-2.safetensors --sheaf figures.npz > predicted.txt || fail "predict"
grep -qE '^sheaf in training: KL per pair .* \(at 5/50/95%\)$' predicted.txt || fail "predict prints no figures: $(cat predicted.txt)"
loss=$(python3 -c 'import json; print("%.3f" % json.load(open("figures.json"))["loss"])')
grep -q "^  validation loss $loss, maps permuted " predicted.txt || fail "predict prints other figures: $(cat predicted.txt)"
python3 - << 'END' || fail "a model with damaged figures"
import json, struct
content = open("model-2.safetensors", "rb").read()
size = struct.unpack("<Q", content[:8])[0]
header = json.loads(content[8:8 + size])
for name, text in (("damaged", "[]"), ("none", None)):
    header["__metadata__"]["sheaf_use"] = text
    if text is None: del header["__metadata__"]["sheaf_use"]
    head = json.dumps(header).encode()
    open(name + ".safetensors", "wb").write(struct.pack("<Q", len(head)) + head + content[8 + size:])
END
refuse 'damaged\.safetensors: sheaf_use must be a JSON object' "$bin/predict" --dataset karate --model damaged.safetensors --output out.csv
"$bin/predict" --dataset karate --model none.safetensors --sheaf none.npz > none.txt || fail "predict with a model without figures"
! grep -q sheaf none.txt || fail "figures that no file has: $(cat none.txt)"
cmp <(unzip -p figures.npz probabilities.npy) <(unzip -p none.npz probabilities.npy) || fail "figures change predictions"
# The best epoch by another metric: two more columns.
"${train[@]}" --stop-on roc-auc --report ranked.json > ranked.txt
grep -q '^split .* roc-auc: validation    test  validation ' ranked.txt || fail "no column of the metric: $(cat ranked.txt)"
grep -q '"validation_metric"' ranked.json || fail "the report lacks 'validation_metric'"
# Options of the sheaf learner, of layers and readout.
"${train[@]}" --sheaf-lr 0.005 --learner summed --sheaf-activation elu --layer-norm --readout-layers 2 \
              --save options.safetensors --report options.json > /dev/null
for line in '"sheaf_lr": 0.005' '"learner": "summed"' '"sheaf_activation": "elu"' '"layer_norm": true' '"readout_layers": 2'; do
  grep -q "$line" options.json || fail "the report lacks $line"
done
"$bin/predict" --dataset karate --model options-0.safetensors > /dev/null || fail "predict cannot read the options"
"${train[@]}" --learner averaged > refused.txt 2>&1 && fail "an unknown learner is taken"
grep -q 'learner: averaged is not allowed; choose concatenation, summed, summed-published' refused.txt ||
  fail "an unknown learner: $(cat refused.txt)"
timeout 60 "${train[@]}" "" "" > refused.txt 2>&1 && fail "empty arguments are taken"
grep -q 'is empty; --help lists the options' refused.txt || fail "empty arguments: $(cat refused.txt)"
timeout 20 "$bin/train" --unknown -- --stalk-dim '' --channels > refused.txt 2>&1 && fail "an empty argument behind -- is taken"
grep -q 'argument 4 (behind --stalk-dim) is empty; --help lists the options' refused.txt || fail "an empty argument behind --: $(cat refused.txt)"
timeout 20 "$bin/train" --splits --model '' --learner > refused.txt 2>&1 && fail "an empty argument behind an option is taken"
grep -q 'argument 3 (behind --model) is empty; --help lists the options' refused.txt || fail "an empty argument: $(cat refused.txt)"
# One split has no standard deviation.
"$bin/train" --dataset karate --stalk-dim 2 --channels 4 --layers 2 --epochs 5 --splits 0 --report single.json > single.txt
grep -q '^ *std *$' single.txt || fail "one split has a standard deviation: $(cat single.txt)"
grep -q '"std": null' single.json || fail "one split has a standard deviation in the report"
# Splits side by side: the same numbers, models and order as one after another.
train=("$bin/train" --dataset karate --stalk-dim 2 --channels 4 --layers 2 --epochs 30 --patience 5 --splits 3,0-2,4)
"${train[@]}" --report row.json --save row.safetensors > row.txt
for threads in 0 1 3; do
  "${train[@]}" --parallel splits --threads $threads --report beside.json --save beside.safetensors > beside.txt \
    || fail "train --parallel splits --threads $threads"
  diff <(facts row.json) <(facts beside.json) || fail "splits side by side differ"
  diff <(sed 's/ *[^ ]*$//; / models: /d' row.txt) <(sed 's/ *[^ ]*$//; / models: /d' beside.txt) || fail "the tables of splits side by side differ"
  for split in 0 1 2 3 4; do
    cmp row-$split.safetensors beside-$split.safetensors || fail "model $split differs"
  done
done
# Seeds: each training is the training of its own --seed.
train=("$bin/train" --dataset karate --stalk-dim 2 --channels 4 --layers 2 --epochs 20)
"${train[@]}" --splits 0-1 --seeds 2,5 --save seeds.safetensors --sheaf seeds.npz --report seeds.json \
  --predictions predictions.npz > seeds.txt || fail "train --seeds"
"${train[@]}" --splits 0-1 --seeds 2,5 --parallel splits --predictions beside.npz > /dev/null || fail "train --predictions"
cmp predictions.npz beside.npz || fail "predictions of trainings side by side differ"
"${train[@]}" --splits 0-1 --seed 2 --exchange-masks --predictions exchanged.npz --report exchanged.json > /dev/null \
  || fail "train --exchange-masks"
grep -q '"exchanged_masks": true' exchanged.json || fail "the report does not tell of exchanged masks"
! grep -q 'exchanged_masks' seeds.json || fail "a report tells of exchanged masks"
refuse 'exchange-masks: karate: splits\[0\]\.validation: 0 ' "${train[@]}" --make-splits 80/0/20 --exchange-masks
"${train[@]}" --splits 1 --seed 5 --save seed.safetensors > /dev/null || fail "train --seed"
"${train[@]}" --splits 1 --seed 5 --sheaf seed.npz --threads 2 > /dev/null || fail "train --sheaf"
cmp seed.safetensors seeds-1-5.safetensors || fail "a training with --seeds is not that with --seed"
cmp seed.npz seeds-1-5.npz || fail "train --sheaf depends on what else is trained, or on --save or threads"
[ "$(grep -c '"seed": [25]' seeds.json)" -eq 4 ] || fail "the report does not tell the seeds"
for maps in identity special-orthogonal general-linear; do
  "$bin/train" --dataset synthetic --synthetic-nodes 100 --maps $maps --stalk-dim 2 --channels 4 --layers 2 --model nsd \
    --epochs 5 --splits 0 --add-lp --add-hp --report maps.json --save maps.safetensors > maps.txt || fail "train --maps $maps"
  if [ $maps = identity ]; then
    ! grep -qE 'sheaf|permuted' maps.txt || fail "identity maps have figures of a sheaf"
    [ "$(saved_figures maps.safetensors)" = none ] || fail "a model with identity maps has figures of a sheaf"
  else
    check_sheaf maps.txt maps.json
    grep -qE '^sheaf: angle [^ ]+ deg \(at 5/50/95%\)$' maps.txt || fail "no figures of $maps maps: $(cat maps.txt)"
  fi
done
# Planted sheaves: every task can be trained on, and the truth has the family and the arcs of its sheaf.
for task in frames geometric unreliable diagonal general-linear signed; do
  "$bin/train" --dataset planted-$task --planted-nodes 100 --maps diagonal --stalk-dim 2 --channels 4 --layers 2 --model nsd \
    --epochs 5 --splits 0 --planted-truth truth-$task.npz > /dev/null || fail "train --dataset planted-$task"
done
unknown='--dataset: planted-trees is not allowed; choose planted-frames, .*, planted-general-linear or planted-signed$'
refuse "^train: $unknown" "$bin/train" --dataset planted-trees
refuse "^train: $unknown" "$bin/train" --dataset planted-trees --planted-nodes 100
refuse "^predict: $unknown" "$bin/predict" --model model-0.safetensors --dataset planted-trees
python3 - << 'END' || fail "train --planted-truth"
import zipfile
def names(task):
    return set(zipfile.ZipFile(f"truth-{task}.npz").namelist())
assert {"family.npy", "arcs.npy", "maps.npy"} < names("frames") and "concentration.npy" not in names("frames")
assert names("unreliable") == names("frames") | {"concentration.npy"}
END
# Defaults that a training folder restores belong to its network.
"$bin/train" --dataset karate --model bsnn --maps identity --stalk-dim 2 --splits 0 --epochs 4 --checkpoint fixed-states > /dev/null ||
  fail "train --maps identity --checkpoint"
"$bin/train" --resume fixed-states --epochs 6 > /dev/null || fail "a training of identity maps does not resume"
# Every other kind of network: the same program, with one thread and two, interrupted and resumed, and predictions.
"$bin/train" --dataset karate --model nsd --maps diagonal --stalk-dim 2 --channels 4 --layers 2 --splits 0 --epochs 5 \
  --sheaf given.npz > /dev/null || fail "no sheaf to give"
for model in csnn bcsnn flow bflow bunn bbunn conn-nsd bconn-nsd snn bsnn-given; do
  given=() figures=yes
  case $model in
    *bunn) own=(--layers 2 --bundles 3 --expansion taylor --terms 3) option='"terms": 3' maps=bundle ;;
    *conn-nsd) own=(--layers 2 --gauge pivots) option='"gauge": "pivots"' maps=connection figures=no ;;
    snn | bsnn-given) given=(--given-sheaf given.npz) figures=no
      own=(--layers 2 --maps diagonal --no-bias "${given[@]}") option='"bias": false' maps=diagonal ;;
    *flow) own=(--maps diagonal --time 1.5 --absolute-tolerance 1e-4) option='"time": 1.5' maps=diagonal ;;
    *) own=(--layers 2 --node-learner sage-projected --learner-layers 2 --learner-width 8 --layer-norm)
       option='"node_learner": "sage-projected"' maps=cooperative ;;
  esac
  train=("$bin/train" --model $model --stalk-dim 2 --channels 4 --splits 0,3 "${own[@]}")
  "${train[@]}" --epochs 30 --threads 1 --report $model.json --save $model.safetensors > $model.txt || fail "train --model $model"
  "${train[@]}" --epochs 15 --threads 2 --checkpoint $model-states > /dev/null || fail "train --model $model --checkpoint"
  "$bin/train" --resume $model-states --epochs 30 --report $model-resumed.json > /dev/null || fail "$model: train --resume"
  diff <(facts $model.json) <(facts $model-resumed.json) || fail "$model: a resumed training, with two threads, differs"
  grep -q "$option" $model.json || fail "the report of $model lacks its options"
  if [ $figures = yes ]; then check_sheaf $model.txt $model.json; fi
  "$bin/predict" --model $model-3.safetensors --dataset karate --output $model.csv "${given[@]}" > $model-predicted.txt ||
    fail "predict of $model"
  [ "$(wc -l < $model.csv)" -eq 35 ] || fail "$model.csv has not 34 nodes"
  grep -q "$model with $maps maps" $model-predicted.txt || fail "predict does not name $model"
done
# The maps that a training was given belong to its data.
"$bin/train" --dataset karate --model nsd --maps diagonal --stalk-dim 2 --channels 4 --layers 2 --splits 0 --epochs 6 \
  --sheaf given.npz > /dev/null || fail "no other sheaf to give"
"$bin/train" --resume snn-states --epochs 40 > error.txt 2>&1 && fail "a training goes on with other given maps"
grep -q 'data' error.txt || fail "the changed maps are not named: $(cat error.txt)"
# A folder of format version 1 keeps the sign of layers without residual, also once it has been written anew.
"$bin/train" --model csnn --stalk-dim 2 --channels 4 --layers 2 --no-residual --splits 0 --epochs 3 --checkpoint signs > /dev/null ||
  fail "train --no-residual"
sed -i 's/"format_version": 3/"format_version": 1/' signs/training.json
for epochs in 5 7; do
  "$bin/train" --resume signs --epochs $epochs --save signs.safetensors > /dev/null || fail "train --resume of version 1"
  grep -aq '"negate_diffused":"true"' signs.safetensors || fail "a folder of version 1 has lost its sign"
done
# Along arcs as an edge list has them: turned round they are another task.
mkdir arcs seen
printf 'name,label,a,b\n0,red,1,0\n1,blue,0,1\n2,red,1,0\n3,blue,0,1\n4,red,1,1\n5,blue,0,1\n' | tee arcs/nodes.csv > seen/nodes.csv
printf '0,1\n1,2\n3,1\n4,3\n4,5\n5,4\n' > arcs/edges.csv
printf '1,0\n2,1\n1,3\n3,4\n5,4\n4,5\n' > seen/edges.csv
train=("$bin/train" --make-splits 50/25/25 --split-count 1 --model csnn --stalk-dim 2 --channels 4 --layers 2 --epochs 4)
for data in arcs seen; do
  "${train[@]}" --dataset $data --report $data-both.json > /dev/null || fail "train with $data"
  "${train[@]}" --dataset $data --directed --in-degree-diagonal --report $data.json --save $data.safetensors \
    --checkpoint $data-states > $data.txt || fail "train --directed with $data"
done
grep -q '^directed: 6 arcs as listed$' arcs.txt || fail "the arcs are not counted: $(cat arcs.txt)"
grep -q '"directed": true' arcs.json || fail "the report lacks the directions"
results() { facts "$1" | grep -v '"dataset"'; }
diff <(results arcs-both.json) <(results seen-both.json) || fail "without --directed the order of an arc's nodes matters"
! diff <(results arcs.json) <(results seen.json) > /dev/null || fail "--directed does not matter"
"$bin/predict" --model arcs.safetensors --dataset arcs > predicted.txt || fail "predict of a directed model"
grep -q 'cooperative maps along listed arcs' predicted.txt || fail "predict does not tell directions: $(cat predicted.txt)"
rm arcs/edges.csv
printf '1,0\n1,2\n3,1\n4,3\n4,5\n5,4\n' > arcs/edges.csv
"$bin/train" --resume arcs-states --epochs 8 > error.txt 2>&1 && fail "a training goes on along other arcs"
grep -q 'data' error.txt || fail "the changed arcs are not named: $(cat error.txt)"
# --help: groups, and for what a preset replaces the values of each, those that a training has.
"$bin/train" --help > help.txt
for heading in 'Options:' 'Model, nsd' 'Cooperative networks, csnn' 'Training:' 'Run:'; do
  grep -q "^$heading" help.txt || fail "--help has no group $heading"
done
[ "$(grep -c -- '--help  ' help.txt)" -eq 1 ] || fail "--help is in every group"
awk 'length > 115 {exit 1}' help.txt || fail "--help has long lines"
for network in bsnn csnn; do
  "$bin/train" --model $network --help | awk '/^  -/ {print ""} {printf "%s ", $0}' | tr -s ' ' > help.txt
  for preset in small citation heterophilic large; do
    "$bin/train" --model $network --stalk-dim 2 --preset $preset --epochs 1 --splits 0 --report preset.json > /dev/null \
      || fail "train --model $network --preset $preset"
    for option in lr weight-decay dropout patience channels layers left-weights; do
      value=$(sed -n "s/^ *\"${option//-/_}\": \(.*\)$/\1/p" preset.json | head -n 1)
      value=$(sed -e 's/,$//; s/^true$/on/; s/^false$/off/; s/\.0$//; s/^5e-0*4$/0.0005/' <<< "$value")
      line=$(grep -E -- "^ --$option[ ,]" help.txt) || fail "--help lacks --$option"
      [[ $line == *"(default: $value)"* || $line == *" $value $preset"[,\;]* ]] || fail "$network, $preset: $value, but --help says: $line"
    done
  done
done
[[ $("$bin/train" --help | tr -s ' \n' ' ') == *"the preset's: 0.02 small, 0.02 citation, 0.01 heterophilic, 0.01 large"*"; 0.01 without a preset"* ]] \
  || fail "--help does not say the learning rates"

# Prediction, also on another graph with as many features.
"$bin/predict" --model model-0.safetensors --dataset karate --samples 5 --output nodes.csv > /dev/null
[ "$(wc -l < nodes.csv)" -eq 35 ] || fail "nodes.csv has not 34 nodes"
head -n 1 nodes.csv | grep -qx 'node,class,p_0,p_1,entropy,mutual_information' || fail "nodes.csv has another header"
"$bin/predict" --model model-0.safetensors --dataset synthetic --synthetic-nodes 50 --synthetic-features 34 \
  --synthetic-classes 2 --output other.csv > /dev/null
[ "$(wc -l < other.csv)" -eq 51 ] || fail "other.csv has not 50 nodes"
# … and on one without splits, of which nobody knows the classes.
mkdir unlabelled
printf 'node\tnode\n0\t1\n1\t2\n' > unlabelled/out1_graph_edges.txt
features=$(printf '0,%.0s' $(seq 33))
printf 'node\tfeature\tlabel\n0\t%s1\t0\n1\t%s0\t0\n2\t%s1\t0\n' "$features" "$features" "$features" \
  > unlabelled/out1_node_feature_label.txt
"$bin/predict" --model model-0.safetensors --dataset unlabelled --output unlabelled.csv > /dev/null
[ "$(wc -l < unlabelled.csv)" -eq 4 ] || fail "unlabelled.csv has not 3 nodes"
# The learned sheaf: read back by NumPy where there is one, otherwise by the names in the archive.
"$bin/train" --dataset karate --stalk-dim 3 --channels 4 --layers 2 --epochs 5 --splits 0 --save bsnn.safetensors > /dev/null
"$bin/train" --dataset karate --stalk-dim 3 --channels 4 --layers 2 --epochs 5 --splits 0 --model nsd \
  --save nsd.safetensors > /dev/null
"$bin/train" --dataset karate --stalk-dim 3 --channels 4 --layers 2 --epochs 5 --splits 0 --filter jacobi --degree 4 \
  --jacobi-alpha 0.5 --skip mixed --coefficients free --report filter.json --save filter.safetensors > /dev/null
"$bin/train" --dataset karate --stalk-dim 3 --channels 4 --layers 8 --epochs 5 --splits 0 --residual initial \
  --residual-alpha 0.25 --report deep.json --save deep.safetensors > /dev/null
grep -q '"residual_alpha": 0.25' deep.json || fail "the report does not tell the residual"
"$bin/predict" --model deep.safetensors --dataset karate --sheaf deep.npz > /dev/null || fail "predict with an initial residual"
for layer in convolution wave attention copresheaf directed "attention --random-attention --attention-heads 2" \
             "directed --random-phases --imaginary-weights" "wave --model nsd"; do
  train=("$bin/train" --dataset karate --stalk-dim 3 --channels 4 --layers 2 --splits 0 --layer $layer)
  rm -rf layer-states
  "${train[@]}" --epochs 5 --threads 1 --report layer.json --save layer.safetensors > /dev/null || fail "train --layer $layer"
  "${train[@]}" --epochs 3 --threads 2 --checkpoint layer-states > /dev/null || fail "train --layer $layer --checkpoint"
  "$bin/train" --resume layer-states --epochs 5 --report resumed.json > /dev/null || fail "resume with the layer $layer"
  diff <(facts layer.json) <(facts resumed.json) || fail "the layer $layer: a resumed training, with two threads, differs"
  grep -q "\"layer\": \"${layer%% *}\"" layer.json || fail "the report does not tell the layer $layer"
  "$bin/predict" --model layer.safetensors --dataset karate --sheaf layer.npz > /dev/null || fail "predict with the layer $layer"
done
grep -q '"filter_jacobi_alpha": 0.5' filter.json || fail "the report does not tell the filter"
"$bin/predict" --model filter.safetensors --dataset karate --sheaf filter.npz > /dev/null || fail "predict with a filter"
refuse '--given-sheaf: f\.npz is not allowed; belongs to the networks bsnn-given, snn, bsnn-around, nsd-given; this one is bsnn' \
  "$bin/predict" --model bsnn.safetensors --dataset karate --given-sheaf f.npz
refuse '--given-sheaf: f\.npz.* --model bsnn-given, snn, bsnn-around, nsd-given' "$bin/train" --dataset karate --given-sheaf f.npz
# The maps that one network has learned are given to others.
"$bin/train" --dataset karate --model nsd --maps diagonal --stalk-dim 2 --channels 4 --layers 2 --epochs 3 --splits 0 --sheaf learned.npz > /dev/null ||
  fail "train --sheaf"
for model in nsd-given bsnn-around; do
  given=("$bin/train" --dataset karate --model $model --maps diagonal --stalk-dim 2 --channels 4 --layers 2 --splits 0 --given-sheaf learned.npz)
  "${given[@]}" --epochs 6 --save given.safetensors --predictions given.npz > /dev/null || fail "train --model $model"
  "${given[@]}" --epochs 3 --checkpoint given-states > /dev/null || fail "train --model $model --checkpoint"
  "$bin/train" --resume given-states --epochs 6 --save resumed.safetensors > /dev/null || fail "train --resume of $model"
  cmp given.safetensors resumed.safetensors || fail "$model: a resumed training differs"
  "$bin/predict" --model given.safetensors --dataset karate --given-sheaf learned.npz --output given.csv > /dev/null || fail "predict, $model"
  refuse 'given sheaf: none' "$bin/predict" --model given.safetensors --dataset karate
  refuse '--maps: identity is not allowed; the maps are given' "${given[@]}" --maps identity
  refuse '--edge-weights: true' "${given[@]}" --edge-weights on
  rm -r given-states
done
refuse '--learner-layers: 2 .*; belongs to maps that are learned' "$bin/train" --dataset karate --model nsd-given --maps diagonal --stalk-dim 2 --given-sheaf learned.npz --learner-layers 2
"$bin/predict" --model bsnn.safetensors --dataset karate --sheaf bsnn.npz > /dev/null || fail "predict --sheaf"
"$bin/predict" --model bsnn.safetensors --dataset karate --sheaf again.npz --threads 2 > /dev/null
cmp bsnn.npz again.npz || fail "what was learned depends on threads"
for layer in 0 1; do
  "$bin/predict" --model nsd.safetensors --dataset karate --sheaf nsd$layer.npz --sheaf-layer $layer > /dev/null \
    || fail "predict --sheaf-layer $layer"
done
! cmp -s nsd0.npz nsd1.npz || fail "the layers of a deterministic model have the same sheaf"
for key in family stalk_dimension node_count edges arcs maps edge_weights kappa model normalisation layer_embeddings \
           embeddings probabilities entropy mutual_information labels; do
  grep -qa "$key\.npy" bsnn.npz || fail "the sheaf file lacks '$key'"
done
! grep -qa 'kappa\.npy' nsd0.npz || fail "a deterministic model has a spread"
# The learned maps of nodes, on threads that do not matter; of deterministic models the maps of a layer.
for model in csnn bcsnn; do
  "$bin/predict" --model $model-3.safetensors --dataset karate --sheaf $model.npz > /dev/null || fail "predict --sheaf of $model"
  "$bin/predict" --model $model-3.safetensors --dataset karate --sheaf again.npz --threads 2 > /dev/null
  cmp $model.npz again.npz || fail "the node maps of $model depend on threads"
  for key in family model arcs out_rotations in_rotations out_scales in_scales layer_embeddings probabilities; do
    grep -qa "$key\.npy" $model.npz || fail "the node maps of $model lack '$key'"
  done
done
grep -qa 'out_kappa\.npy' bcsnn.npz && ! grep -qa 'out_kappa\.npy' csnn.npz || fail "the spread is that of another model"
"$bin/predict" --model csnn-3.safetensors --dataset karate --sheaf csnn1.npz --sheaf-layer 1 > /dev/null || fail "node maps of a layer"
! cmp -s csnn.npz csnn1.npz || fail "the layers of csnn have the same node maps"
find_numpy
# A class that no test node has, or is predicted to have, counts in no mean of F1; --seeds takes the place of --seed.
mkdir absent
awk 'BEGIN { print "a,b"; for (i = 0; i < 30; ++i) print i "," (i + 1) % 30 }' > absent/edges.csv
awk 'BEGIN { print "node,x,label,split"; for (i = 0; i < 30; ++i)
  print i "," i % 4 "," (i < 2 ? "c" : i % 2 ? "a" : "b") "," (i < 15 ? "train" : i < 22 ? "validation" : "test") }' > absent/nodes.csv
"$bin/train" --dataset absent --stalk-dim 2 --channels 4 --layers 2 --epochs 20 --seeds 3 --report absent.json > /dev/null
$python -c 'import json; r = json.load(open("absent.json")); assert abs(r["f1"]["macro"] - r["macro_f1"]["mean"]) < 1e-12
assert "seed" not in r["options"] and r["splits"][0]["seed"] == 3' || fail "the report of a class without test nodes"
$python - << 'PYTHON' || fail "numpy reads something else"
import json

import numpy
for file in "bsnn.npz", "nsd1.npz":
    s = numpy.load(file)
    assert str(s["family"]) == "special-orthogonal" and s["stalk_dimension"] == 3 and s["node_count"] == 34
    assert s["edges"].shape == (78, 2) and s["arcs"].shape == (156, 2) and s["maps"].shape == (156, 3, 3)
    assert abs(s["maps"] @ s["maps"].transpose(0, 2, 1) - numpy.eye(3)).max() < 1e-14
    assert s["edge_weights"].shape == (78,) and (0 < s["edge_weights"]).all() and (s["edge_weights"] < 1).all()
    assert s["layer_embeddings"].shape == (3, 34, 16) and (s["layer_embeddings"][2] == s["embeddings"]).all()
    assert s["labels"].shape == (34,) and abs(s["probabilities"].sum(1) - 1).max() < 1e-5
for file in "csnn.npz", "bcsnn.npz":
    s = numpy.load(file)
    assert str(s["family"]) == "conformal" and s["stalk_dimension"] == 2 and s["arcs"].shape == (156, 2)
    for side in "out", "in":
        r = s[side + "_rotations"]
        assert r.shape == (34, 2, 2) and abs(r @ r.transpose(0, 2, 1) - numpy.eye(2)).max() < 1e-5
        assert s[side + "_scales"].shape == (34,) and (s[side + "_scales"] > 0).all() and (s[side + "_scales"] <= 10).all()
p, own = numpy.load("predictions.npz"), numpy.load("seeds-1-5.npz")
assert list(p["split"]) == [0, 0, 1, 1] and list(p["seed"]) == [2, 5, 2, 5] and p["probabilities"].shape == (4, 34, 2)
for key in "probabilities", "entropy", "mutual_information":
    assert (p[key][3] == own[key]).all(), key
assert (p["epistemic_variance"] > 0).all() and (p["labels"] == own["labels"]).all()
exchanged = numpy.load("exchanged.npz")
for i in 0, 1:  # training, validation, test
    assert (exchanged["role"][i] == numpy.array([0, 3, 1, 2])[p["role"][2 * i]]).all()
with open("seeds.json") as file:
    splits = json.load(file)["splits"]
for i, split in enumerate(splits):
    test = p["role"][i] == 3
    right = p["probabilities"][i][test].argmax(1) == p["labels"][test]
    assert abs(right.mean() - split["test_accuracy"]) < 1e-12 and p["best_epoch"][i] == split["best_epoch"]
    assert sorted(set(p["role"][i])) == [1, 2, 3]
kappa = numpy.load("bsnn.npz")["kappa"]
assert kappa.shape == (156,) and (0 < kappa).all() and (kappa < 1).all()
PYTHON
# Preset tests builds these as a user would (check_consumer.sh).
for program in "$bin"/own_* "$bin"/sheaf_layer; do
  [ ! -x "$program" ] || check_own_parts "$program"
done
if [ -x "$bin/learned_sheaf" ]; then
  check_own_parts "$bin/learned_sheaf" learned.npz
  grep -qa 'kappa\.npy' learned.npz || fail "learned_sheaf wrote no posterior"
fi
"$bin/separation" > separation.txt || fail "separation"
if [ -x "$bin/synchronisation" ]; then
  "$bin/synchronisation" --nodes 60 > synchronisation.txt || fail "synchronisation"
  # kappa, outliers, error, disagreement of truth and estimate, bound: the bound is below both, and little noise leaves
  # a small error.
  awk '$4 == "deg" {n++; if ($7 > $6 || $7 > $5 || ($1 == 0.999 && $2 == "0.0%" && $3 > 2)) bad = 1}
       END {exit bad || n != 12}' synchronisation.txt || fail "synchronisation: $(cat synchronisation.txt)"
  refuse 'concentration: 1 ' "$bin/synchronisation" --kappa 1
  refuse '--degree: nan is not allowed' "$bin/synchronisation" --degree nan
fi
if [ -x "$bin/graphs" ]; then
  # 60 chains of four to seven atoms; every second one is closed to a ring.
  mkdir rings
  awk 'BEGIN {
    for (g = 1; g <= 60; ++g) {
      n = 4 + g % 4
      for (i = 1; i <= n; ++i) {
        print g > "rings/rings_graph_indicator.txt"
        if (i > 1) print first + i - 1 ", " first + i > "rings/rings_A.txt"
      }
      if (g % 2) print first + n ", " first + 1 > "rings/rings_A.txt"
      print (g % 2 ? 1 : -1) > "rings/rings_graph_labels.txt"
      first += n
    }
  }'
  graphs=("$bin/graphs" rings --model bsnn --channels 4 --layers 2 --epochs 60 --fold 1)
  "${graphs[@]}" --save rings.safetensors --predictions rings.csv --threads 1 > graphs.txt || fail "graphs"
  "${graphs[@]}" --threads 2 | cmp - graphs.txt || fail "graphs depends on threads"
  grep -q '^rings: 60 graphs, 330 nodes, 300 edges, 1 features, 2 classes$' graphs.txt || fail "graphs: $(cat graphs.txt)"
  # The same graphs as tables, in another order of the rows.
  mkdir -p tables/rings
  awk -v folder=tables/rings 'BEGIN {
    print "graph,label" > folder "/graphs.csv"
    print "source,target" > folder "/edges.csv"
    for (g = 1; g <= 60; ++g) print "g" g "," (g % 2 ? 1 : -1) > folder "/graphs.csv"
    for (i = 1; i <= 7; ++i) for (g = 60; g >= 1; --g) if (i <= 4 + g % 4) print "a" g "-" i ",g" g > folder "/rows"
    for (g = 1; g <= 60; ++g) {
      n = 4 + g % 4
      for (i = 2; i <= n; ++i) print "a" g "-" i - 1 ",a" g "-" i > folder "/edges.csv"
      if (g % 2) print "a" g "-" n ",a" g "-1" > folder "/edges.csv"
    }
  }'
  { echo node,graph; cat tables/rings/rows; } > tables/rings/nodes.csv
  "$bin/graphs" tables/rings "${graphs[@]:2}" | cmp - graphs.txt || fail "graphs with tables"
  sed 's/$/,0.5/; 1s/0.5/length/' tables/rings/edges.csv > edges.csv
  sed 's/$/,train/; 1s/train/split/; 2,9s/train/validation/; 10,19s/train/test/' tables/rings/graphs.csv > graphs.csv
  mv edges.csv graphs.csv tables/rings
  "$bin/graphs" tables/rings --epochs 2 --save tables.safetensors --fold 0 --predictions tables.csv > tables.txt || fail "graphs with a split"
  [ "$(wc -l < tables.csv)" = 11 ] || fail "graphs with a split: $(cat tables.csv)"
  [ "$(head -1 tables.csv)" = graph,name,fold,label,predicted,probability,entropy,mutual_information ] &&
    grep -q '^9,g10,0,-1,' tables.csv || fail "graphs --predictions has no names: $(cat tables.csv)"
  # A saved network knows the names of its columns.
  for other in named swapped renamed tags edge; do cp -r tables/rings $other; done
  named() { awk -F, -v one="$1" -v two="$2" -v tag="$3" '
    NR == 1 {print $0 ",tag," one "," two; next}
    {a = NR % 3; b = NR % 5; print $0 "," (NR % 2 ? "C" : tag) "," (one < two ? a "," b : b "," a)}' tables/rings/nodes.csv; }
  named charge mass O > named/nodes.csv
  named mass charge O > swapped/nodes.csv
  named charge weight O > renamed/nodes.csv
  named charge mass A > tags/nodes.csv
  cp named/nodes.csv edge
  sed -i 1s/length/width/ edge/edges.csv
  "$bin/graphs" named --epochs 2 --fold 0 --save named.safetensors > /dev/null || fail "graphs with names"
  "$bin/graphs" named --load named.safetensors > /dev/null || fail "graphs --load with names"
  columns() { refuse "$1" "$bin/graphs" "$2" --load named.safetensors --predictions out.csv; }
  columns "swapped: feature column 2: 'mass' is not allowed; the model was trained with 'charge' there; the same .* another order" swapped
  columns "renamed: feature column 3: 'weight' is not allowed; the model was trained with 'mass' there" renamed
  columns "tags: feature column 0: 'tag=A' is not allowed; the model was trained with 'tag=C' there" tags
  columns "edge: edge feature column 0: 'width' is not allowed; the model was trained with 'length' there" edge
  # Numbers in place of classes: the size of a graph, not known of every ninth, and a number that follows from it.
  mkdir sizes && awk 'BEGIN {
    print "molecule,size,mass" > "sizes/graphs.csv"
    print "atom,graph,kind" > "sizes/nodes.csv"
    print "source,target" > "sizes/edges.csv"
    for (g = 0; g < 60; ++g) {
      size = 2 + g * 7 % 6
      print "m" g "," (g % 9 == 8 ? "" : size) "," 10 + 3 * size > "sizes/graphs.csv"
      for (i = 0; i < size; ++i) print "a" g "-" i ",m" g "," i % 2 > "sizes/nodes.csv"
      for (i = 1; i < size; ++i) print "a" g "-" i - 1 ",a" g "-" i > "sizes/edges.csv"
    }
  }'
  "$bin/graphs" sizes --epochs 60 --folds 3 --predictions tested.csv > sizes.txt || fail "graphs of numbers"
  grep -qx 'sizes: 60 graphs, .* features, 2 targets' sizes.txt || fail "graphs of numbers: $(cat sizes.txt)"
  awk '/^test R2 / {n++; if ($3 < 0.9) bad = 1} END {exit bad || n != 1}' sizes.txt || fail "graphs learned no numbers: $(cat sizes.txt)"
  [ "$(head -1 tested.csv)" = graph,name,fold,target_0,predicted_0,target_1,predicted_1 ] && [ "$(wc -l < tested.csv)" = 61 ] &&
    grep -qE '^8,m8,[0-2],,[0-9.]+,[0-9]+,[0-9.]+$' tested.csv || fail "predicted numbers: $(cat tested.csv)"
  "$bin/graphs" sizes --epochs 60 --folds 3 --fold 1 --save sizes.safetensors --predictions tested1.csv > sizes1.txt || fail "graphs --save of numbers"
  grep ',1,' tested.csv | awk -F, '$3 == 1' | cmp - <(tail -n +2 tested1.csv) || fail "numbers of a fold alone are others"
  "$bin/graphs" sizes --load sizes.safetensors --predictions numbers.csv > numbers.txt || fail "graphs --load of numbers"
  python3 - << 'END' || fail "predicted numbers of graphs --load: $(cat numbers.txt)"
import csv, math
rows = list(csv.DictReader(open("numbers.csv")))
assert len(rows) == 60
for name in "01":
    errors = [abs(float(row[f"target_{name}"]) - float(row[f"predicted_{name}"])) for row in rows if row[f"target_{name}"]]
    assert len(errors) == (54 if name == "0" else 60)
    said = next(line for line in open("numbers.txt") if line.startswith(f"target_{name}: mean absolute error "))
    assert math.isclose(float(said.split()[4].rstrip(",")), sum(errors) / len(errors), rel_tol=1e-3)
END
  refuse '--load: .* holds a network of a regression, and rings has classes' "$bin/graphs" rings --load sizes.safetensors
  refuse '--load: .* holds a network that classifies, and sizes has targets' "$bin/graphs" sizes --load rings.safetensors
  refuse '--stop-on: roc-auc is not allowed; a metric of classes' "$bin/graphs" sizes --stop-on roc-auc --epochs 2 --save out.safetensors --fold 0
  cut -d, -f1,3 sizes/graphs.csv > mass.csv && cp -r sizes mass && mv mass.csv mass/graphs.csv
  refuse '--load: .* holds a network of 2 targets, and mass has 1' "$bin/graphs" mass --load sizes.safetensors
  "$bin/graphs" mass --epochs 2 --fold 0 --predictions mass.csv > mass.txt && grep -q ', 1 target$' mass.txt &&
    [ "$(head -1 mass.csv)" = graph,name,fold,target,predicted ] || fail "graphs of one number: $(cat mass.txt)"
  refuse '--folds: 5 is not allowed; rings has 1 splits of its own' "$bin/graphs" tables/rings --folds 5
  refuse 'arc features of the graph: 0 is not allowed; the sheaf learner reads 1' "$bin/graphs" rings --load tables.safetensors
  echo 'a1-1,a2-1,1' >> tables/rings/edges.csv
  refuse 'edges\.csv:302: joins a node of graph .g1. and a node of graph .g2.; the graphs of a set are disjoint' "$bin/graphs" tables/rings
  echo 'a1-1,a99-1,1' >> tables/rings/edges.csv
  refuse 'edges\.csv:303: node .a99-1. is not in tables/rings/nodes\.csv' "$bin/graphs" tables/rings
  [ "$(head -1 rings.csv)" = graph,fold,label,predicted,probability,entropy,mutual_information ] && [ "$(wc -l < rings.csv)" = 7 ] ||
    fail "graphs --predictions: $(cat rings.csv)"
  "$bin/graphs" rings --load rings.safetensors --predictions all.csv > graphs.txt || fail "graphs --load"
  awk '/% of the labelled graphs have the class of their label$/ {n++; sub(/%.*/, ""); if ($1 + 0 < 90) bad = 1} END {exit bad || n != 1}' graphs.txt ||
    fail "graphs learned nothing: $(cat graphs.txt)"
  [ "$(wc -l < all.csv)" = 61 ] || fail "graphs --load --predictions"
  # Older files have no names.
  python3 - << 'END' || fail "no older file"
import json, struct
data = open("rings.safetensors", "rb").read()
size = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + size])
assert header["__metadata__"].pop("feature_names") == "degree"
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
open("older.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + data[8 + size:])
END
  "$bin/graphs" rings --load older.safetensors --predictions older.csv > /dev/null || fail "graphs --load of an older file"
  cmp older.csv all.csv || fail "graphs --load of an older file predicts otherwise"
  for option in '--epochs 3' '--model nsd' '--maps diagonal' '--fold 1' '--folds 5' '--layer-norm true'; do
    refuse "^graphs: ${option/ /: } is not allowed; the network of --load is trained already" \
      "$bin/graphs" rings --load rings.safetensors ${option/ true/}
  done
  "$bin/graphs" rings --load rings.safetensors --samples 2 --seed 3 --threads 1 > /dev/null || fail "graphs --load with options"
  refuse '^graphs: --fold: -1 is not allowed; must be at least 0' "$bin/graphs" rings --fold -1
  refuse 'nothing: cannot be listed; No such file' "$bin/graphs" nothing
  refuse '--fold: 10 is not allowed; rings has 10 folds' "$bin/graphs" rings --fold 10
  refuse 'maps: diagonal of stalk dimension 5 is not allowed; this build has .*diagonal 3' "$bin/graphs" rings --stalk-dim 5
  refuse '--save: .* is not allowed; needs --fold' "$bin/graphs" rings --save other.safetensors
  refuse '--load: .* is not allowed; holds the model bsnn, whose outputs belong to nodes' "$bin/graphs" rings --load deep.safetensors
  refuse '--predictions: .* is a file of dataset' "$bin/graphs" rings --fold 1 --predictions rings/rings_A.txt
  refuse '--predictions: .* is a file of dataset' "$bin/graphs" named --fold 0 --predictions named/graphs.csv
  refuse '--predictions: .* is the file of --load' "$bin/graphs" rings --load rings.safetensors --predictions rings.safetensors
fi
if [ -x "$bin/links" ]; then
  # 120 people of three trades, who know some of their own trade: names go in and come out.
  mkdir club
  awk -v edges=club/edges.csv -v nodes=club/nodes.csv 'BEGIN {
    print "name,age,height" > nodes
    print "who,whom" > edges
    for (u = 0; u < 120; ++u) {
      print (u == 5 ? "\"O\x27Hara, \"\"Kit\"\"\"" : "person " u) "," u % 3 + 0.25 * (u % 2) "," (u % 3 == 1) - 0.5 > nodes
      for (k = 3; k <= 30; k += 3) if (u > 35 && (u * k) % 7 < 3) print "person " u - k "," "person " u > edges
    }
    print "person 8,\"O\x27Hara, \"\"Kit\"\"\"" > edges
  }'
  printf 'source,target\nperson 40,person 41\nperson 8,"O'"'"'Hara, ""Kit"""\nperson 50,person 80\nperson 61,person 91\n' > pairs.csv
  links=("$bin/links" --dataset club --score dot --epochs 100)
  "${links[@]}" --candidates pairs.csv --ranking ranking.csv --save links.safetensors --threads 1 > links.txt || fail "links"
  "${links[@]}" --threads 2 | cmp - links.txt || fail "links depends on threads"
  awk '/ROC AUC/ {n++; sub(/.*ROC AUC /, ""); if ($1 + 0 < 0.75) bad = 1} END {exit bad || n != 1}' links.txt ||
    fail "links learned nothing: $(cat links.txt)"
  grep -qE '^[0-9]+ test edges among [0-9]+ pairs without one: Hits@10 [0-9.]+, MRR [0-9.]+$' links.txt || fail "no ranks: $(cat links.txt)"
  [ "$(head -1 ranking.csv)" = source,target,probability,entropy,mutual_information ] || fail "links --ranking: $(cat ranking.csv)"
  [ "$(wc -l < ranking.csv)" = 5 ] && grep -qF '"O'"'"'Hara, ""Kit"""' ranking.csv || fail "links --candidates: $(cat ranking.csv)"
  python3 - << 'END' || fail "no ranking: $(cat ranking.csv)"
import csv
rows = list(csv.DictReader(open("ranking.csv")))
numbers = [float(row["probability"]) for row in rows]
assert numbers == sorted(numbers, reverse=True) and 0 < numbers[-1] and numbers[0] < 1
assert rows[-1]["source"] == "person 40", "of two trades"
END
  "$bin/links" --dataset club --load links.safetensors --candidates pairs.csv --ranking again.csv > again.txt || fail "links --load"
  grep -q '^club: 120 nodes, [0-9]* edges, which the network sees; 4 pairs ranked$' again.txt || fail "links --load: $(cat again.txt)"
  [ "$(wc -l < again.csv)" = 5 ] && [ "$(tail -1 again.csv | cut -d, -f1)" = 'person 40' ] || fail "links --load: $(cat again.csv)"
  for option in '--epochs 3' '--layers 2' '--message-share 0.5' '--hits 3'; do
    refuse "^links: ${option/ /: } is not allowed; the network of --load is trained already" \
      "$bin/links" --dataset club --load links.safetensors --candidates pairs.csv --ranking out.csv $option
  done
  # Lines that are no further pair are counted, and files without a pair refused.
  { cat pairs.csv; printf 'person 7,person 7\nperson 41,person 40\n'; } > repeated.csv
  "$bin/links" --dataset club --load links.safetensors --candidates repeated.csv --ranking once.csv > once.txt || fail "links with repeated pairs"
  cmp once.csv again.csv || fail "links ranks other pairs: $(cat once.csv)"
  grep -q '^repeated\.csv: 1 self-loop dropped, 1 pair merged that repeat a pair in either direction$' once.txt || fail "links counts no pairs: $(cat once.txt)"
  for text in '' 'source,target\n' 'person 7,person 7\n'; do
    printf "$text" > nothing.csv
    refuse '^links: nothing\.csv: ' "$bin/links" --dataset club --candidates nothing.csv --ranking out.csv
    ! grep -q 'graph' error.txt || fail "links calls pairs a graph: $(cat error.txt)"
  done
  refuse 'nothing\.csv: has no pair of two different nodes' "$bin/links" --dataset club --candidates nothing.csv --ranking out.csv
  refuse '--load requires --ranking' "$bin/links" --dataset club --load links.safetensors
  # Without candidates: what the training predicted, on the edges that it saw; of other data that is not known.
  own=("$bin/links" --dataset club --model nsd --score dot --epochs 20 --seed 3 --message-share 0.5 --test-share 0.2)
  "${own[@]}" --ranking first.csv --save own.safetensors > first.txt || fail "links --model nsd"
  "$bin/links" --dataset club --load own.safetensors --ranking again.csv > again.txt || fail "links --load without candidates"
  cmp first.csv again.csv || fail "links --load predicts other test pairs"
  sed -n 's/^\(club: .* of which the network sees [0-9]*\);.*/\1/p' first.txt | diff - <(sed 's/; [0-9]* pairs of its training ranked$//' again.txt) ||
    fail "links --load sees other edges: $(cat again.txt)"
  cp -r club moved && sed -i '$d' moved/edges.csv
  refuse '--load: own\.safetensors is not allowed; it was trained on other edges, or labels or numbers of edges, than moved has, and may have seen the test pairs; --candidates' \
    "$bin/links" --dataset moved --load own.safetensors --ranking out.csv
  refuse '--load: .* is not allowed; it holds no network that predicts links' "$bin/links" --dataset club --load deep.safetensors \
    --candidates pairs.csv --ranking again.csv
  # Edges alone are enough where nodes have no other features than their numbers.
  mkdir bare && cp club/edges.csv bare
  bare=("$bin/links" --dataset bare --identity-features)
  "${bare[@]}" --score dot --epochs 20 --save bare.safetensors --candidates pairs.csv --ranking bare.csv > bare.txt || fail "links of edges alone"
  [ "$(wc -l < bare.csv)" = 5 ] && grep -qF '"O'"'"'Hara, ""Kit"""' bare.csv || fail "links ranks no pairs of edges alone: $(cat bare.csv)"
  "${bare[@]}" --load bare.safetensors --candidates pairs.csv --ranking again.csv > bare.txt || fail "links --load of edges alone"
  grep -q '^bare: 112 nodes, 409 edges, which the network sees; 4 pairs ranked$' bare.txt || fail "links --load of edges alone: $(cat bare.txt)"
  refuse 'bare: has edges, but neither nodes.csv .* with --identity-features an edge list is enough' "$bin/links" --dataset bare --save out.safetensors
  printf 'source,target\nperson 40,nobody\n' > strangers.csv
  refuse 'the network predicts links; the program links reads it' "$bin/predict" --model links.safetensors --dataset club
  refuse '--save: .* is a file of --dataset' "$bin/links" --dataset club --save club/nodes.csv
  refuse 'strangers\.csv:2: node .nobody. is not in club' "$bin/links" --dataset club --candidates strangers.csv --ranking out.csv
  refuse 'none\.csv: no such file' "$bin/links" --dataset club --candidates none.csv --ranking out.csv
  refuse '--candidates requires --ranking' "$bin/links" --candidates pairs.csv
  refuse '--score: cosine is not allowed; choose dot, bilinear, energy' "$bin/links" --score cosine
  refuse '--outputs: 15 is not allowed; the energy needs a multiple of the stalk dimension, 2' "$bin/links" --score energy --outputs 15
  refuse 'shares must sum to 1' "$bin/links" --train-share 0.5
  refuse '--train-share: 0 is not allowed; training needs targets' "$bin/links" --train-share 0 --message-share 0.8
  refuse '--negatives: 0 is not allowed' "$bin/links" --negatives 0
  refuse '--ranking: .* is a file of --dataset' "$bin/links" --dataset club --ranking club/nodes.csv

  # Signs of acquaintances, and hours that two people meet: both follow from the people, and are left out now and then.
  mkdir signed timed
  for folder in signed timed; do
    awk -v folder=$folder 'BEGIN {
      edges = folder "/edges.csv"
      nodes = folder "/nodes.csv"
      print "name,age,height" > nodes
      print "who,whom," (folder == "signed" ? "sign" : "\"hours, a week\"") > edges
      for (u = 0; u < 120; ++u) {
        print "person " u "," u % 2 + 0.25 * (u % 3) "," (u % 2 == 1) - 0.5 > nodes
        for (k = 1; k <= 12; ++k) if (u >= k && (u * k) % 7 < 3) {
          value = folder == "timed" ? 100 + 10 * (u % 2 + (u - k) % 2) : k % 2 == 0 ? "+1" : "-1"
          print "person " u - k ",person " u "," ((u + k) % 11 == 0 ? "" : value) > edges
        }
      }
      print "person 1,person 0," > edges  # the edge has its value in the other direction
    }'
  done
  unknown=$(($(grep -c ',$' signed/edges.csv) - 1))
  printf 'source,target\nperson 40,person 41\nperson 8,person 12\n' > meetings.csv
  of_signs=("$bin/links" --dataset signed --edge-labels sign --epochs 100)
  "${of_signs[@]}" --predictions signs.csv --save signs.safetensors --threads 1 > signs.txt || fail "links --edge-labels"
  "${of_signs[@]}" --threads 2 | cmp - signs.txt || fail "links --edge-labels depends on threads"
  awk '/^test loss .*, accuracy .*% \(largest class .*%\), ROC AUC/ {n++; sub(/.*accuracy /, ""); if ($1 + 0 < 90) bad = 1}
    END {exit bad || n != 1}' signs.txt || fail "links learned no signs: $(cat signs.txt)"
  [ "$(head -1 signs.csv)" = source,target,class,p_-1,p_+1,entropy,mutual_information ] || fail "signs: $(head -1 signs.csv)"
  [ "$(wc -l < signs.csv)" = $((unknown + 1)) ] || fail "not the $unknown edges without a sign: $(cat signs.csv)"
  "$bin/links" --dataset signed --load signs.safetensors --candidates meetings.csv --predictions met.csv > met.txt || fail "links --load of signs"
  grep -q '^signed: 120 nodes, [0-9]* edges, which the network sees; 2 pairs predicted$' met.txt || fail "links --load: $(cat met.txt)"
  grep -q '^person 8,person 12,+1,' met.csv && grep -q '^person 40,person 41,-1,' met.csv || fail "signs of pairs: $(cat met.csv)"
  "${of_signs[@]}" --model nsd --predictions first.csv --save own.safetensors > /dev/null || fail "links --edge-labels --model nsd"
  "$bin/links" --dataset signed --load own.safetensors --predictions again.csv > met.txt && cmp first.csv again.csv ||
    fail "links --load predicts other edges: $(cat met.txt)"
  of_hours=("$bin/links" --dataset timed --edge-target 'hours, a week' --epochs 100)
  "${of_hours[@]}" --predictions hours.csv --save hours.safetensors > hours.txt || fail "links --edge-target"
  awk '/^test R² / {n++; if ($3 + 0 < 0.7) bad = 1} END {exit bad || n != 1}' hours.txt || fail "links learned no hours: $(cat hours.txt)"
  grep -qE '^test edges: mean absolute error [0-9.]+, root mean square error [0-9.]+$' hours.txt || fail "no errors: $(cat hours.txt)"
  [ "$(head -1 hours.csv)" = 'source,target,"hours, a week","hours, a week_sample_std"' ] && [ "$(wc -l < hours.csv)" = $((unknown + 1)) ] ||
    fail "hours: $(cat hours.csv)"
  "$bin/links" --dataset timed --load hours.safetensors --candidates meetings.csv --predictions met.csv > /dev/null || fail "links --load of hours"
  awk -F, 'NR > 1 && ($3 < 95 || $3 > 125) {bad = 1} END {exit bad || NR != 3}' met.csv || fail "hours of pairs: $(cat met.csv)"
  refuse "signed/edges\.csv:5: column 'sign' is .*; edges have no weights or other attributes here: .*--edge-labels" "$bin/links" --dataset signed
  refuse "column 'sign' is .*; there is no column 'sing'$" "$bin/links" --dataset signed --edge-labels sing
  refuse '--edge-labels: sign is not allowed; the edges have no such column, or key of an \.npz file' "$bin/links" --dataset club --edge-labels sign
  refuse '--edge-labels: sign is not allowed; belongs to a graph, whose --dataset is of text files or an \.npz file' "$bin/links" --edge-labels sign
  refuse '--edge-labels excludes --edge-target' "$bin/links" --dataset signed --edge-labels sign --edge-target sign
  refuse '--edge-labels excludes --load' "$bin/links" --dataset signed --edge-labels sign --load signs.safetensors --candidates meetings.csv --ranking out.csv
  refuse '--negatives: 2 is not allowed; belongs to links' "$bin/links" --dataset signed --edge-labels sign --negatives 2
  refuse '--hits: 2 is not allowed; belongs to links' "$bin/links" --dataset timed --edge-target 'hours, a week' --hits 2
  refuse 'the network predicts links; the program links reads it' "$bin/predict" --model signs.safetensors --dataset signed
  sed -i 's/^person 1,person 0,$/person 1,person 0,+1/' signed/edges.csv
  refuse "column 'sign' is '\+1', and '-1' in line 2, which is the same edge" "${of_signs[@]}"
  sed -i 's/^person 1,person 0,.*/person 1,person 0,NA/' signed/edges.csv
  refuse "column 'sign': label 'NA' is not allowed; it usually means a missing value\. Leave an unknown label empty\. Or" "${of_signs[@]}"
  "${of_signs[@]}" --missing-labels NA | diff - signs.txt || fail "an unknown sign by another word"
  sed -i 's/^person 1,person 0,.*/person 1,person 0,NA/' timed/edges.csv
  "${of_hours[@]}" | diff - hours.txt || fail "an unknown number by another word"
  # The same labels and numbers in an archive, where a network is trained to the same figures.
  sed -i 's/,NA$/,/' signed/edges.csv timed/edges.csv
  $python - << 'PYTHON'
import csv, numpy
for folder, column in (("signed", "sign"), ("timed", "hours, a week")):
    nodes, edges = (list(csv.reader(open(f"{folder}/{name}.csv"))) for name in ("nodes", "edges"))
    number = {row[0]: u for u, row in enumerate(nodes[1:])}
    at = edges[0].index(column)
    texts = [row[at] for row in edges[1:]]
    values = texts if folder == "signed" else [float(text or "nan") for text in texts]
    numpy.savez(f"{folder}.npz", edges=[[number[row[0]], number[row[1]]] for row in edges[1:]],
                features=[[float(x) for x in row[1:]] for row in nodes[1:]], column=values, short=values[1:])
PYTHON
  for set in signed:--edge-labels timed:--edge-target; do
    name=${set%%:*} option=${set#*:} column=sign
    [ $name = signed ] || column='hours, a week'
    "$bin/links" --dataset $name "$option" "$column" --epochs 20 | grep -v "^test edges" > table.txt || fail "links $option"
    "$bin/links" --dataset $name.npz "$option" column --epochs 20 --predictions pairs.csv | grep -v "^test edges" | diff table.txt - ||
      fail "$option of an archive"
    [ "$(wc -l < pairs.csv)" = $((unknown + 1)) ] || fail "not the unknown edges of $name.npz: $(cat pairs.csv)"
    refuse "$name\.npz: short: has shape .*; expected one (label|number) for each of the [0-9]* edges" \
      "$bin/links" --dataset $name.npz "$option" short
    refuse "$option: none is not allowed; the edges have no such column, or key of an \.npz file" \
      "$bin/links" --dataset $name.npz "$option" none
  done
  sed -i 's/^person 1,person 0,.*/person 1,person 0,much/' timed/edges.csv
  refuse "column 'hours, a week': 'much' is not a finite number" "${of_hours[@]}"
fi

# Drawn neighbours of a graph on disk.
if [ -x "$bin/large_graph" ]; then
  $python - << 'PYTHON'
import os, numpy
random = numpy.random.default_rng(0)
n, classes = 600, 3
labels = numpy.arange(n) * classes // n
pairs = {(u, (u + d) % n) for u in range(n) for d in (1, 2, 5)}
arcs = sorted(pairs | {(v, u) for u, v in pairs})
features = random.normal(size=(n, 6)) + 2 * numpy.eye(6)[labels]
part = random.integers(0, 3, n)
os.mkdir("disk")
save = lambda name, values: numpy.save(f"disk/{name}.npy", values)
save("indptr", numpy.concatenate([[0], numpy.cumsum(numpy.bincount([u for u, _ in arcs], minlength=n))]))
save("indices", numpy.array([v for _, v in arcs], dtype=numpy.int32))
save("features", features.astype(numpy.float32))
save("labels", labels)
for k, name in enumerate(["train_mask", "val_mask", "test_mask"]):
    save(name, part == k)
numpy.savez("disk.npz", edges=numpy.array(sorted(pairs)).T, features=features.astype(numpy.float32), labels=labels)
PYTHON
  large=("$bin/large_graph" disk --fan-outs 4,3 --batch-size 64 --lr 0.02 --epochs 8)
  "${large[@]}" --threads 1 --save large.safetensors > large.txt || fail "large_graph"
  "${large[@]}" --threads 2 | sed 's/; .* s an epoch//' | cmp - <(sed 's/; .* s an epoch//' large.txt) || fail "large_graph depends on threads"
  grep -q '^disk: 600 nodes, 1800 edges, 6 features, 3 classes; [0-9]* training nodes$' large.txt || fail "large_graph: $(cat large.txt)"
  awk '/test accuracy/ {n++; sub(/.*test accuracy /, ""); if ($1 + 0 < 90) bad = 1} END {exit bad || n != 1}' large.txt ||
    fail "large_graph learned nothing: $(cat large.txt)"
  "$bin/predict" --model large.safetensors --dataset disk.npz --output disk.csv > /dev/null || fail "predict of large_graph"
  [ "$(wc -l < disk.csv)" = 601 ] || fail "predictions of large_graph's network"
  "$bin/large_graph" disk --model bsnn --maps diagonal --stalk-dim 2 --fan-outs 0 --steps 2 --evaluated 50 --epochs 2 > large.txt || fail "large_graph --model bsnn"
  refuse 'none/indptr\.npy: cannot be opened' "$bin/large_graph" none
  cp -r disk directed && $python - << 'PYTHON'
import numpy
offsets, targets = numpy.load("disk/indptr.npy"), numpy.load("disk/indices.npy")
sources = numpy.repeat(numpy.arange(600), numpy.diff(offsets))
numpy.save("directed/indices.npy", targets[sources < targets])
numpy.save("directed/indptr.npy", numpy.concatenate([[0], numpy.cumsum(numpy.bincount(sources[sources < targets], minlength=600))]))
PYTHON
  refuse 'directed/indices\.npy: node 0 has the neighbour 1, and node 1 lacks the neighbour 0; .* both directions' "$bin/large_graph" directed
  refuse '--fan-outs\[1\]: -1 is not allowed; must be between 0 and 4095' "$bin/large_graph" disk --fan-outs 3,-1
  refuse '--steps: -1 is not allowed' "$bin/large_graph" disk --steps -1
  refuse '--save: none/model\.safetensors: cannot be written' "$bin/large_graph" disk --save none/model.safetensors
fi
if [ -x "$bin/opinion_dynamics" ]; then
  "$bin/opinion_dynamics" > opinions.txt || fail "opinion_dynamics"
  grep -qx 'Both limits are reached\.' opinions.txt || fail "opinion_dynamics: $(cat opinions.txt)"
  "$bin/opinion_dynamics" --time 1 | grep -q '^The limits are not reached' || fail "opinion_dynamics --time 1"
  refuse 'stubborn: 34' "$bin/opinion_dynamics" --stubborn 34
  refuse '--stubborn: 3 .*; appears twice' "$bin/opinion_dynamics" --stubborn 3 5 3
  refuse '--time: nan is not allowed' "$bin/opinion_dynamics" --time nan
fi
if [ -x "$bin/uncertainty" ]; then
  uncertainty=("$bin/uncertainty" --dataset synthetic --synthetic-nodes 120 --maps diagonal --stalk-dim 2 --channels 4 --layers 2
    --epochs 20)
  "${uncertainty[@]}" --splits 0-1 --seeds 0-2 --threads 1 --report uncertainty.json > uncertainty.txt || fail "uncertainty"
  "${uncertainty[@]}" --splits 0-1 --seeds 0-2 --threads 3 | cmp - uncertainty.txt || fail "uncertainty depends on threads"
  # Rows of eleven figures: the accuracy of a temperature is that without it, and debiased is ECE - calibrated.
  awk '/^(single model|ensemble|\+ [a-z ]+) .*%.*%/ {n++; a = $(NF - 10); if (/^\+ t/ && a != before) bad = 1; before = a
         d = $(NF - 7) - $(NF - 6) - $(NF - 5); if (d > 0.0021 || d < -0.0021) bad = 1}
       END {exit bad || n != 5}' <(grep -v 'coverage ' uncertainty.txt) || fail "uncertainty: $(cat uncertainty.txt)"
  "${uncertainty[@]}" --splits 0 --seeds 3 --model nsd --leave-out 1 --calibrate-on test --exchange-masks --report single.json \
    > single.txt || fail "uncertainty --leave-out"
  grep -q 'without class 1' single.txt || fail "uncertainty --leave-out: $(cat single.txt)"
  ! grep -q '^ensemble' single.txt || fail "one seed is no ensemble"
  # Of a deterministic model all samples are the same: no mutual information, which detects nothing.
  grep -qE '^single model +mutual information .* 0\.500$' single.txt || fail "a deterministic model: $(cat single.txt)"
  $python - << 'PYTHON' || fail "the report of uncertainty is another than its table"
import json
def read(file):
    with open(file) as opened:
        return json.load(opened)
report, single = read("uncertainty.json"), read("single.json")
with open("uncertainty.txt") as file:
    rows = [line.split() for line in file if line.count("%") == 2 and "coverage " not in line]
predictions = report["predictions"]
assert len(rows) == len(predictions) == 5 and len(report["trainings"]) == 6
def fits(text, mean):
    number = text.strip("%")
    digits = len(number.split(".")[1])
    return abs(float(number) - mean * (100 if text.endswith("%") else 1)) <= 0.5001 * 10 ** -digits
for row, (name, figures) in zip(rows, predictions.items()):
    reliability = figures.pop("reliability")
    columns = [figure for figure in figures.values()]
    assert len(columns) == 11, name
    assert all(fits(text, figure["mean"]) for text, figure in zip(row[-11:], columns)), name
    count = 2 if name.startswith("ensemble") else 6
    for figure in columns:
        values = figure["per_split"]
        assert len(values) == count and abs(sum(values) / count - figure["mean"]) < 1e-12
    for ece, expected, debiased in zip(*(figures[k]["per_split"] for k in ("ece", "expected_ece", "debiased_ece"))):
        assert abs(ece - expected - debiased) < 1e-15
    right = sum(bin["count"] * bin["accuracy"] for bin in reliability)
    tested = sum(bin["count"] for bin in reliability)
    assert tested > 0 and 0 <= right <= tested
for key in "version", "commit", "command", "machine", "started", "seconds":
    assert key in report["run"], key
assert report["run"]["command"].startswith("uncertainty --dataset synthetic") and report["dataset"] == "synthetic"
assert report["options"]["draws"] == 20 and report["options"]["epochs"] == 20 and "seed" not in report["options"]
assert report["temperatures"]["ensemble"]["mean"] > 0 and "exchanged_masks" not in report
for of, count in ("single_model", 6), ("ensemble", 2):
    for measure in report["measures"][of].values():
        assert len(measure["error_auroc"]["per_split"]) == count and "unseen" not in measure
    for method in report["sets"][of].values():
        assert len(method["size"]["per_split"]) == count
assert single["exchanged_masks"] and single["left_out"] == "1" and list(single["sets"]) == ["single_model"]
assert single["measures"]["single_model"]["mutual_information"]["unseen_auroc"]["per_split"] == [0.5]
assert single["measures"]["single_model"]["entropy"]["unseen_auroc"]["std"] is None
PYTHON
  # benchmarks/uncertainty_study.py computes the same figures from class probabilities.
  "${uncertainty[@]}" --splits 0-1 --seeds 0-2 --draws 3 --report drawn.json > /dev/null || fail "uncertainty --draws 3"
  $python -B - "$root/benchmarks" "$bin/train" "${uncertainty[@]:1}" << 'PYTHON' || fail "uncertainty_study.py has other figures"
import json
import sys
sys.path.insert(0, sys.argv[1])
import uncertainty_study as study
groups = study.by_split(study.Trainings(sys.argv[2], [*sys.argv[3:], "--splits", "0-1", "--seeds", "0-2"]).predictions)
predictions = {"single_model": [p for group in groups for p in group], "ensemble": [study.ensemble(g) for g in groups]}
with open("drawn.json") as file:
    report = json.load(file)
for of, each in predictions.items():
    own, row, measures = [study.figures(p) for p in each], report["predictions"][of], report["measures"][of]
    printed = {key: row[key] for key in ("accuracy", "nll", "brier", "ece", "expected_ece", "debiased_ece", "rejection")}
    printed |= {what + name: measures[name][key] for name in study.MEASURES
                for what, key in (("error_", "error_auroc"), ("right_", "right"), ("wrong_", "wrong"))}
    for key, figure in printed.items():
        assert len(own) == len(figure["per_split"]) and figure["mean"] is not None
        for mine, value in zip(own, figure["per_split"]):
            assert (mine[key] is None) == (value is None) and abs((mine[key] or 0) - (value or 0)) < 1e-9, (of, key)
    assert 0.5 < sum(p["coverage"] for p in own) / len(own) <= 1  # other random shares
PYTHON
  refuse 'report: ' "${uncertainty[@]}" --report /nowhere/report.json
  if command -v gnuplot > /dev/null; then
    "${uncertainty[@]}" --splits 0 --seeds 0-1 --output uncertainty-pictures > /dev/null || fail "uncertainty --output"
    for picture in reliability rejection sets histograms; do
      grep -q "$picture\.svg" uncertainty-pictures/index.html || fail "no picture $picture on the page"
      grep -q '</svg>' uncertainty-pictures/$picture.svg || fail "$picture.svg is not whole"
    done
  fi
  refuse 'leave-out: 5 .*0 to 4' "${uncertainty[@]}" --leave-out 5
  refuse 'leave-out: 1 .*two other classes' "$bin/uncertainty" --leave-out 1
  mkdir page
  refuse '--report: page/index\.html is a file that --output writes' "$bin/uncertainty" --report page/index.html --output page
  refuse 'gnuplot: not found' env PATH=/nowhere "$bin/uncertainty" --output out
  refuse 'alpha: 1 ' "${uncertainty[@]}" --alpha 1
  refuse 'neighbour-weight: 2 .*between 0 and 1' "${uncertainty[@]}" --neighbour-weight 2
  refuse 'draws: 0 ' "${uncertainty[@]}" --draws 0
  refuse 'seeds: 3-1' "${uncertainty[@]}" --seeds 3-1
  refuse 'validation: 0 ' "${uncertainty[@]}" --make-splits 60/0/40
fi
"$bin/rotations" --help > help.txt
grep -q -- '--samples' help.txt || fail "rotations has no help"
[ ! -e --help ] || fail "rotations --help wrote a picture"
"$bin/rotations" rotations.svg > rotations.txt || fail "rotations"
for curve in truth fitted; do
  [ "$(grep -c "<polyline class='$curve'" rotations.svg)" -eq 6 ] || fail "rotations.svg has not six curves '$curve'"
done
# No estimate is further than 5 standard errors from the truth (last column; turns of M are never negative).
awk '$NF ~ /^-?[0-9]+\.[0-9][0-9]$/ && NF >= 5 {n++; if ($NF > 5 || $NF < -5) bad = 1} END {exit bad || n < 40}' \
  <(grep -v Kolmogorov rotations.txt) || fail "a fit is off: $(cat rotations.txt)"
# Six families each; the one the samples come from, or the one that contains it, is the first.
[ "$(grep -A 7 '^500 samples of a ' rotations.txt | grep -cE '^(uniform|Cayley|Leon.s Cayley|matrix Fisher|angular|isotropic)')" -eq 12 ] \
  || fail "rotations does not compare six families twice"
grep -A 2 '^500 samples of a Cayley' rotations.txt | tail -n 1 | grep -qE '^(Cayley|angular central Gaussian)' \
  || fail "Cayley samples belong to another family"
grep -A 2 '^500 samples of a matrix Fisher' rotations.txt | tail -n 1 | grep -q '^matrix Fisher' \
  || fail "matrix Fisher samples belong to another family"

quick=("$bin/train" --epochs 2 --report out.json --save out.safetensors)
head -c 100 "$root/tests/golden/nsd_so2.npz" > short.npz
echo "no archive" > text.npz
# An option that does not exist names the one that it may mean, in every program.
refuse '^train: --epoch is not an option; the closest is --epochs; --help lists the options$' "$bin/train" --epoch 3
refuse '^train: --learning-rate is not an option; the closest is --lr;' "${quick[@]}" --learning-rate=0.1
refuse '^train: --frobnicate is not an option; --help' "${quick[@]}" --frobnicate
refuse '^train: 3 is not expected here; --help' "${quick[@]}" --add-lp 3
refuse '^predict: --sample is not an option; the closest is --samples;' "$bin/predict" --sample 3
refuse '^rotations: --sample is not an option; the closest is --samples;' "$bin/rotations" --sample 3
refuse '^separation: --class is not an option; the closest is --classes;' "$bin/separation" --class 3
refuse 'nowhere' "${quick[@]}" --dataset nowhere
refuse 'missing\.npz' "${quick[@]}" --dataset missing.npz
refuse 'short\.npz' "${quick[@]}" --dataset short.npz
refuse 'text\.npz' "${quick[@]}" --dataset text.npz
refuse 'node_features' "${quick[@]}" --dataset "$root/tests/files/1/learned.npz"
refuse 'unlabelled: class_count: 1 ' "${quick[@]}" --dataset unlabelled
refuse 'channels: 0' "${quick[@]}" --channels 0
refuse 'stalk-dim' "${quick[@]}" --stalk-dim 6
refuse 'maps' "${quick[@]}" --maps triangular
# A program names a model that it was built without, and the option that adds it.
case $models in
  '  ' | *' Identity_5 '*) ;;
  *) refuse 'identity, 5 .*Identity:5.*SHEAFNN_EXAMPLE_MODELS' "${quick[@]}" --maps identity --stalk-dim 5 ;;
esac
# Each kind of network has options of its own.
refuse '--maps: diagonal .*not an option of --model csnn' "${quick[@]}" --model csnn --stalk-dim 2 --maps diagonal
refuse '--add-lp.*not an option of --model bcsnn' "${quick[@]}" --model bcsnn --stalk-dim 2 --add-lp
refuse '--node-learner: sage .*not an option of --model bsnn' "${quick[@]}" --node-learner sage
refuse '--directed.*not an option of --model bsnn' "${quick[@]}" --directed
refuse '--in-degree-diagonal: true ' "${quick[@]}" --model csnn --stalk-dim 2 --in-degree-diagonal
refuse '--layers: 3 .*not an option of --model flow' "${quick[@]}" --model flow --maps diagonal --stalk-dim 2 --layers 3
refuse '--filter: jacobi .*not an option of --model bflow' "${quick[@]}" --model bflow --stalk-dim 2 --filter jacobi
refuse '--time: 2 .*not an option of --model nsd' "${quick[@]}" --model nsd --time 2
refuse '--time: 0 ' "${quick[@]}" --model flow --maps diagonal --stalk-dim 2 --time 0
refuse 'max_steps = 1 ' "${quick[@]}" --model flow --maps diagonal --stalk-dim 2 --time 9 --max-steps 1
refuse '--device' "${quick[@]}" --model csnn --stalk-dim 2 --device cuda
refuse '--device' "${quick[@]}" --model flow --maps diagonal --stalk-dim 2 --device cuda
refuse '--learner-layers: 3' "${quick[@]}" --model csnn --stalk-dim 2 --node-learner mlp --learner-layers 3
refuse '--layer-learners: true' "${quick[@]}" --model csnn --stalk-dim 2 --layer-learners
refuse '--separate-encoder: true' "${quick[@]}" --model bcsnn --stalk-dim 2 --layer-learners --separate-encoder on
refuse '--learner-width: 0' "${quick[@]}" --model csnn --stalk-dim 2 --learner-width 0
refuse 'dropout: 1 ' "${quick[@]}" --dropout 1
refuse 'dropout: 1\.0000001 ' "${quick[@]}" --dropout 1.0000001
refuse '--lr: 0' "${quick[@]}" --lr 0
refuse 'samples: 0' "${quick[@]}" --samples 0
refuse 'splits: 7-12' "${quick[@]}" --splits 7-12
refuse 'seeds: 3-1' "${quick[@]}" --seeds 3-1
refuse 'classes' "$bin/separation" --classes 9
refuse 'device: gpu' "${quick[@]}" --device gpu
refuse 'device: cuda:' "${quick[@]}" --device cuda:
refuse '--edge-weights: true ' "${quick[@]}" --maps diagonal --stalk-dim 2 --edge-weights on
refuse 'normalisation: odd' "${quick[@]}" --normalisation odd
refuse 'filter: odd' "${quick[@]}" --filter odd
refuse '--residual: none .* choose gated, initial' "${quick[@]}" --residual none
refuse '--residual-theta: 2 ' "${quick[@]}" --residual initial --residual-theta 2
refuse '--layer: none .* choose diffusion, convolution, wave, attention, copresheaf, directed' "${quick[@]}" --layer none
refuse '--attention-heads: 2 .* belongs to --layer attention' "${quick[@]}" --attention-heads 2
refuse '--charge: 0.1 .* belongs to --layer directed' "${quick[@]}" --charge 0.1
refuse '--residual: initial .*; the layer wave has a residual of its own' "${quick[@]}" --layer wave --residual initial
refuse '--add-lp: true .*; the layer attention has no fixed filters' "${quick[@]}" --layer attention --add-lp
refuse '--residual: initial .*; a polynomial filter has a gated residual only' "${quick[@]}" --residual initial --filter legendre
refuse '--seed: -1 is not allowed' "${quick[@]}" --seed -1
refuse '--split-seed: -3 is not allowed' "${quick[@]}" --make-splits 60/20/20 --split-seed -3
# Numbers that CLI11 takes for others: octal, without sign, the largest; and those that ranges let through.
refuse '--seed: 010 is not allowed; a number has no leading zeros' "${quick[@]}" --seed 010
refuse '--seed: -0 is not allowed; 0 has no sign' "${quick[@]}" --seed -0
refuse '--threads: -0 is not allowed; 0 has no sign' "${quick[@]}" --threads -0
refuse '--epochs: 020 is not allowed' "${quick[@]}" --epochs 020
refuse '--seed:  -1 is not allowed; must be a whole number' "${quick[@]}" --seed ' -1'
refuse '--seed: 18446744073709551616 is not allowed; must be at most 18446744073709551615' "${quick[@]}" --seed 18446744073709551616
refuse '--epochs: 9223372036854775808 is not allowed; must be at most 9223372036854775807' "${quick[@]}" --epochs 9223372036854775808
refuse '--stalk-dim: 0x2 is not allowed; must be a whole number' "${quick[@]}" --stalk-dim 0x2
refuse '--lr: nan is not allowed; must be a number' "${quick[@]}" --lr nan
refuse '--homophily: nan is not allowed; must be a number' "$bin/separation" --homophily 0.3 nan
refuse '--splits: 0,0,1 .*; 0 appears twice' "${quick[@]}" --splits 0,0,1
refuse '--synthetic-degree: 1e\+09 is not allowed' "${quick[@]}" --dataset synthetic --synthetic-degree 1e9
refuse '--synthetic-class-cycle: 2 is not allowed' "${quick[@]}" --dataset synthetic --synthetic-class-cycle 2
refuse '--planted-degree: 600 is not allowed' "${quick[@]}" --dataset planted-frames --planted-degree 600
refuse '--planted-stalk-dim: 6 is not allowed; must be between 2 and 5' "${quick[@]}" --dataset planted-frames --planted-stalk-dim 6
# Options that would do nothing.
refuse '--history requires --report' "$bin/train" --epochs 1 --history
refuse '--degree: 5 .*; belongs to --filter' "${quick[@]}" --degree 5
refuse '--jacobi-alpha: 1 .*; belongs to --filter jacobi' "${quick[@]}" --filter chebyshev --jacobi-alpha 1
refuse '--residual-alpha: 0.5 .*; belongs to --residual initial' "${quick[@]}" --residual-alpha 0.5
refuse '--fixed-steps: 3 .*; belongs to --flow-method' "${quick[@]}" --model flow --maps diagonal --stalk-dim 2 --fixed-steps 3
refuse '--parametrisation: euler .*; belongs to --maps' "${quick[@]}" --maps diagonal --stalk-dim 2 --parametrisation euler
refuse '--synthetic-nodes: 50 .*; belongs to --dataset synthetic' "${quick[@]}" --synthetic-nodes 50
refuse '--planted-nodes: 50 .*; belongs to a planted --dataset' "${quick[@]}" --planted-nodes 50
refuse '--planted-spread: 2 .*; belongs to --dataset planted-frames, ' "${quick[@]}" --dataset planted-signed --planted-spread 2
refuse '--planted-curvature: 1 .*; belongs to --dataset planted-frames' "${quick[@]}" --dataset planted-signed --planted-curvature 1
refuse '--planted-neighbour-share: 0.3 .*; belongs to --dataset planted-frames' "${quick[@]}" --dataset planted-signed \
  --planted-neighbour-share 0.3
refuse '--planted-neighbour-share: 2 is not allowed; must be between 0 and 1' "${quick[@]}" --dataset planted-frames \
  --planted-neighbour-share 2
refuse '--planted-least-concentration: 0.3 .*; belongs to --dataset planted-unreliable' "${quick[@]}" --dataset planted-frames \
  --planted-least-concentration 0.3
refuse '--sheaf-layer requires --sheaf' "$bin/predict" --model nsd.safetensors --output out.csv --sheaf-layer 1
refuse '--identity-features: true .*; belongs to a --dataset of text files' "${quick[@]}" --identity-features
refuse '--label: y .*; belongs to a --dataset of text files' "$bin/predict" --model nsd.safetensors --output out.csv --label y
refuse '--synthetic-seed: 3 .*; belongs to --dataset synthetic' "$bin/predict" --model nsd.safetensors --output out.csv \
  --synthetic-seed 3
refuse '--learner-width: 7 .*; belongs to --learner-layers' "${quick[@]}" --learner-width 7
refuse '--kl-weight: 2 .*; belongs to --model bsnn' "${quick[@]}" --model nsd --kl-weight 2
refuse '--training-samples: 2 .*; belongs to --model bsnn' "${quick[@]}" --model nsd --training-samples 2
refuse '--kl-weight: 2 .*; belongs to --kl-schedule' "${quick[@]}" --kl-schedule off --kl-weight 2
# A later split that cannot be trained on is found before the first is.
$python - << 'PYTHON'
import numpy
nodes = numpy.arange(12)
edges = numpy.stack([nodes, (nodes + 1) % 12], axis=1)
sets = [numpy.isin(nodes, part) for part in (range(6), range(6, 9), range(9, 12))]
for name, labels in (("unlabelled", numpy.where(nodes == 6, -1, nodes % 2)), ("one_class", nodes % 2)):
    train, validation, test = (numpy.stack([part] * 3) for part in sets)
    validation[2] = nodes == 6
    numpy.savez(name + ".npz", node_features=numpy.eye(12), node_labels=labels, edges=edges, train_masks=train,
                val_masks=validation, test_masks=test)
PYTHON
refuse 'unlabelled: splits\[2\]\.validation: 1 nodes .*; none of them has a known label' "${quick[@]}" --dataset unlabelled.npz
refuse '--stop-on: roc-auc .*; the validation nodes of split 2 are all of one class' "${quick[@]}" --dataset one_class.npz \
  --stop-on roc-auc
refuse '--coefficients: free .*; belongs to filters other' "${quick[@]}" --filter chebyshev-interpolation --coefficients free
for option in --learner-layers --learner-width --kl-weight --training-samples; do
  refuse "$option: 2 .*; belongs to maps that are learned" "${quick[@]}" --maps identity --stalk-dim 2 $option 2
done
refuse '--linear: true .*; belongs to maps that are learned' "${quick[@]}" --maps identity --stalk-dim 2 --linear
refuse '--split-count: 1001 .*; must be between 1 and 1000' "${quick[@]}" --make-splits 60/20/20 --split-count 1001
refuse '--published-filter: true ' "${quick[@]}" --filter chebyshev --published-filter
refuse 'excludes --seed' "${quick[@]}" --seeds 0-1 --seed 3
refuse '--degree: 65 ' "${quick[@]}" --filter legendre --degree 65
# A search: its table, and a winner that is trained as its options are without a search.
search=("$bin/train" --dataset karate --splits 0-2 --epochs 16 --threads 1)
"${search[@]}" --search 1h --report search.json --save search.safetensors > search.txt || fail "train --search"
grep -q '^search: [0-9]* settings, at most 3600 s; 3 splits without their test nodes$' search.txt || fail "$(cat search.txt)"
[ "$(grep -c '  chosen$' search.txt)" -eq 1 ] || fail "no setting is chosen: $(cat search.txt)"
read -ra chosen < <(sed -n 's/^complete after .* the same as //p' search.txt)
"${search[@]}" "${chosen[@]}" --report plain.json --save plain.safetensors > /dev/null || fail "train ${chosen[*]}"
for split in 0 1 2; do cmp search-$split.safetensors plain-$split.safetensors || fail "the winner's options make another model"; done
grep -q '"search": {' search.json && grep -q '"complete": true' search.json || fail "the report has no search"
"$bin/predict" --dataset karate --model search-0.safetensors > /dev/null || fail "predict cannot read the winner"
# The same again, and what --model, --maps and --stalk-dim leave of the list.
"${search[@]}" --search 60m > again.txt || fail "train --search 60m"
diff <(sed -n 's/^complete .* s: //p' search.txt) <(sed -n 's/^complete .* s: //p' again.txt) || fail "another winner"
"${search[@]}" --search 1h --model csnn --stalk-dim 2 > some.txt || fail "train --search --model"
grep -q '^search: 1 settings' some.txt && grep -q 'left out: another --model$' some.txt || fail "$(cat some.txt)"
# Out of time: what there was time for, and the first setting where there was none.
"${search[@]}" --search 0.000001 > short.txt || fail "train --search 0.000001"
grep -q '^out of time after ' short.txt && grep -q 'no time for it$' short.txt || fail "$(cat short.txt)"
for time in 0 -1 1d s '60 s' nan inf 1e; do refuse "--search: $time .*; expected a time above 0" "${quick[@]}" --search "$time"; done
refuse '--preset: small .*; cannot be combined with --search' "${quick[@]}" --search 1 --preset small
refuse '--checkpoint: out .*; cannot be combined with --search' "${quick[@]}" --search 1 --checkpoint out
refuse '--device: cuda .*; a search .* CPU' "${quick[@]}" --search 1 --device cuda
refuse '--search: 1 .*; no setting of the list is left; ' "${quick[@]}" --search 1 --model flow
refuse '--search: 1 .*; no setting of the list is left; ' "${quick[@]}" --search 1 --learner-width -1
refuse '^uncertainty: --search is not an option;' "$bin/uncertainty" --search 1
refuse 'epoch [0-9]+: .* is ' "$bin/train" --lr 1e30 --epochs 50 --splits 0 --report out.json --save out.safetensors
diverging=("$bin/train" --lr 1e30 --epochs 50 --splits 0-3 --report out.json --save out.safetensors)
refuse 'epoch [0-9]+: .* is ' "${diverging[@]}"
mv error.txt row.txt
refuse 'epoch [0-9]+: .* is ' "${diverging[@]}" --parallel splits --threads 3
cmp row.txt error.txt || fail "side by side, another error is reported"
refuse 'parallel' "${quick[@]}" --parallel seeds
refuse '\-\-report: nowhere/out\.json: cannot be written' "$bin/train" --epochs 1 --splits 0 --report nowhere/out.json
refuse 'nowhere/out\.npz' "$bin/train" --epochs 1 --splits 0 --sheaf nowhere/out.npz
sed 's/"model":"nsd"/"model":"nse"/' nsd.safetensors > other.safetensors
refuse 'other\.safetensors: model: nse .*; must be one of bsnn, nsd' "$bin/predict" --model other.safetensors --output out.csv
refuse 'nothing\.safetensors' "$bin/predict" --model nothing.safetensors --output out.csv
refuse 'nowhere/out\.npz' "$bin/predict" --model bsnn.safetensors --sheaf nowhere/out.npz --output out.csv
refuse 'sheaf-layer: 2' "$bin/predict" --model nsd.safetensors --sheaf out.npz --sheaf-layer 2 --output out.csv
refuse 'nowhere/out\.svg' "$bin/rotations" nowhere/out.svg
refuse 'samples' "$bin/rotations" --samples 1 out.svg
refuse 'pictures' "$bin/rotations" --pictures out.svg
refuse 'features' "$bin/predict" --model model-0.safetensors --dataset synthetic --output out.csv
echo "all programs behave"
