#!/usr/bin/env bash
# Runs train and predict with --device cuda against the same commands on the CPU: a hundred trainings side by side,
# models that go from one side to the other, errors. Their models: special orthogonal maps, diagonal ones in continuous
# time, given and on hypergraphs, cooperative networks, connections and bundles, stalk dimension 2.
# usage: check_device_programs.sh FOLDER_OF_PROGRAMS
set -euo pipefail
tests=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$tests/program_checks.sh"
enter_work_folder "$1"

# A hundred trainings: each row of the table has split, seed, best epoch, validation and test accuracy, NLL, ECE.
train=("$bin/train" --dataset karate --stalk-dim 2 --channels 4 --layers 2 --epochs 20 --patience 8)
hundred=("${train[@]}" --splits 0-9 --seeds 0-9)
"${hundred[@]}" --parallel splits --report cpu.json --save cpu.safetensors > cpu.txt
"${hundred[@]}" --device cuda --report device.json --save device.safetensors > device.txt
rows() { awk '$1 ~ /^[0-9]+$/ && $4 ~ /%$/ {print $1, $2, $3, $4, $5, $6, $7}' "$1"; }
[ "$(rows device.txt | wc -l)" -eq 100 ] || fail "not a hundred rows"
# Single precision: NLL and ECE agree to the last of their three digits, best epochs within two.
paste -d ' ' <(rows cpu.txt) <(rows device.txt) | awk '
  function near(a, b, most) { return a - b <= most + 1e-9 && b - a <= most + 1e-9 }
  $1 != $8 || $2 != $9 || !near($3, $10, 2) || $4 != $11 || $5 != $12 || !near($6, $13, 0.001) || !near($7, $14, 0.001) {
    print "CPU and device differ: " $0
    bad = 1
  }
  END { exit bad }' || fail "another training on the device"
for key in dataset model maps options test_accuracy per_split seconds_per_epoch parameters; do
  grep -q "\"$key\"" device.json || fail "the report lacks '$key'"
done
grep -q '"device": "cuda"' device.json || fail "the report does not tell the device"

# One of them alone has the numbers that it had beside the others.
"${train[@]}" --splits 3 --seed 7 --device cuda --save alone.safetensors --report alone.json > alone.txt
[ "$(rows device.txt | grep '^3 7 ' | cut -d ' ' -f 3-)" = "$(awk '$1 == 3 {print $2, $3, $4, $5, $6}' alone.txt)" ] \
  || fail "a training alone differs: $(cat alone.txt)"

# Figures of the sheaf, computed on the CPU: in table, report and model, as trainings on the CPU have them.
check_sheaf device.txt device.json
check_sheaf alone.txt alone.json
saved_figures alone.safetensors > figures.json
python3 - << 'END' || fail "other figures of the sheaf on the device"
import json
saved, alone = json.load(open("figures.json")), json.load(open("alone.json"))["splits"][0]["sheaf"]
assert saved == {key: value for key, value in alone.items() if key != "warning"}
alike = 0
for one, other in zip(*(json.load(open(name))["splits"] for name in ("cpu.json", "device.json")), strict=True):
    if one["best_epoch"] != other["best_epoch"]:
        continue
    alike += 1
    a, b = one["sheaf"], other["sheaf"]
    assert a["nodes"] == b["nodes"] > 0 and abs(a["kl_per_pair"] - b["kl_per_pair"]) < 0.01
    for key in ("permuted", "prior", "identity"):
        assert abs(a[key]["rise"] - b[key]["rise"]) < 0.002, (key, a, b)
assert alike >= 80
END

# Cooperative networks, connections, bundles and convolutions on a given sheaf, side by side and from one side to the other;
# their presets, too.
python3 - << 'END'
import struct, zipfile
def npy(kind, letter, shape, values):
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}}}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    start = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
    return start + struct.pack(f"<{len(values)}{letter}", *values)
with zipfile.ZipFile("signs.npz", "w") as file:
    file.writestr("maps.npy", npy("<f8", "d", (156, 2), [-1.0 if i % 7 == 0 else 1.0 for i in range(312)]))
    file.writestr("edge_labels.npy", npy("<i8", "q", (78,), [e % 3 for e in range(78)]))
END
# usage: near_rows NAME: NAME-cpu.txt and NAME.txt differ by rounding only
near_rows() {
  paste -d ' ' <(rows $1-cpu.txt) <(rows $1.txt) | awk '
    { for (i = 6; i <= 7; ++i) if ($i - $(i + 7) > 0.002 || $(i + 7) - $i > 0.002) bad = 1 }
    END { exit bad }' || fail "another training of $1 on the device: $(cat $1-cpu.txt $1.txt)"
}
for model in csnn bcsnn conn-nsd bconn-nsd bunn bbunn snn bsnn-given; do
  other=("$bin/train" --dataset karate --model $model --stalk-dim 2 --channels 4 --layers 2 --epochs 20 --patience 8)
  if [[ $model == *bunn ]]; then other+=(--bundles 2); fi
  if [[ $model == *snn* && $model != *csnn ]]; then other+=(--maps diagonal --given-sheaf signs.npz); fi
  "${other[@]}" --splits 0-2 --seeds 0-1 --report $model-cpu.json > $model-cpu.txt
  "${other[@]}" --splits 0-2 --seeds 0-1 --device cuda --report $model.json --save $model.safetensors > $model.txt
  [ "$(rows $model.txt | wc -l)" -eq 6 ] || fail "not six rows of $model"
  near_rows $model
  cp $model-1-1.safetensors $model-trained.safetensors
done

# A hypergraph.
made=(--dataset synthetic --synthetic-nodes 60 --synthetic-hyperedges 40)
hyper=("$bin/train" "${made[@]}" --model bshgnn --maps diagonal --stalk-dim 2 --channels 4 --epochs 20 --splits 0-1)
"${hyper[@]}" --seeds 0-1 > bshgnn-cpu.txt
"${hyper[@]}" --seeds 0-1 --device cuda --save bshgnn.safetensors > bshgnn.txt
[ "$(rows bshgnn.txt | wc -l)" -eq 4 ] || fail "not four rows of bshgnn"
near_rows bshgnn
for device in cpu cuda; do
  "$bin/predict" --model bshgnn-1-1.safetensors "${made[@]}" --device $device --output bshgnn-$device.csv > /dev/null ||
    fail "predict bshgnn --device $device"
done
paste -d , bshgnn-cpu.csv bshgnn-cuda.csv | awk -F , '
  NR > 1 { n++; for (i = 3; i <= 7; ++i) if ($i - $(i + 9) > 1e-4 || $(i + 9) - $i > 1e-4) bad = 1 }
  END { exit bad || n != 60 }' || fail "another prediction of a hypergraph on the device"
refuse '--projection: true is not allowed; its numbers belong to a seed' "${hyper[@]}" --laplacian nonlinear --projection --seeds 0-1 --device cuda

# Twice the same command gives the same bits.
for run in once twice; do
  "${train[@]}" --splits 0-2 --seeds 0-2 --device cuda --save $run.safetensors > /dev/null
done
for split in 0 1 2; do
  for seed in 0 1 2; do
    cmp once-$split-$seed.safetensors twice-$split-$seed.safetensors || fail "another model, the second time"
  done
done

# A polynomial filter and the other options of the architecture.
"${train[@]}" --splits 2 --seed 1 --device cuda --filter chebyshev --degree 2 --learner summed --layer-norm \
  --readout-layers 2 --save filtered.safetensors > filtered.txt || fail "train --device cuda --filter"

# Layers other than diffusion.
"${train[@]}" --splits 2 --seed 1 --device cuda --layer wave --save wave.safetensors > wave.txt || fail "train --device cuda --layer"

# A flow by steps that tolerances choose and by equal steps, one training and several.
for method in dormand-prince "runge-kutta --fixed-steps 3"; do
  flow=("$bin/train" --dataset karate --model bflow --maps diagonal --stalk-dim 2 --channels 4 --epochs 20 --device cuda
        --flow-method $method)
  "${flow[@]}" --splits 2 --seed 1 --save flow.safetensors > flow.txt || fail "train --model bflow --device cuda"
  "${flow[@]}" --splits 1-2 --seeds 0-1 --save flows.safetensors > /dev/null || fail "flows side by side"
  cmp flow.safetensors flows-2-1.safetensors || fail "a flow alone differs"
done

# Models go from one side to the other.
for model in cpu-2-1 device-2-1 filtered wave flow {csnn,bcsnn,conn-nsd,bconn-nsd,bunn,bbunn,snn,bsnn-given}-trained; do
  given=()
  if [[ $model == snn-* || $model == bsnn-given-* ]]; then given=(--given-sheaf signs.npz); fi
  for device in cpu cuda cuda:1; do
    "$bin/predict" --model $model.safetensors --dataset karate "${given[@]}" --samples 5 --device $device \
      --output $model-$device.csv > /dev/null || fail "predict $model --device $device"
  done
  cmp $model-cuda.csv $model-cuda:1.csv || fail "the second device predicts something else"
  paste -d , $model-cpu.csv $model-cuda.csv | awk -F , '
    NR > 1 {
      n++
      if ($1 != $7 || $2 != $8) bad = 1
      for (i = 3; i <= 6; ++i) if ($i - $(i + 6) > 1e-4 || $(i + 6) - $i > 1e-4) bad = 1
    }
    END { exit bad || n != 34 }' || fail "$model: another prediction on the device"
done

# The learned sheaf is read out on the CPU.
for device in cpu cuda; do
  "$bin/predict" --model device-2-1.safetensors --dataset karate --device $device --sheaf $device.npz > /dev/null \
    || fail "predict --sheaf --device $device"
done
cmp cpu.npz cuda.npz || fail "another sheaf with --device cuda"

quick=("$bin/train" --dataset karate --stalk-dim 2 --epochs 50 --report out.json --save out.safetensors)
refuse 'device: 7' "${quick[@]}" --device cuda:7
refuse 'diagonal, 2' "${quick[@]}" --device cuda --maps diagonal
refuse 'max_steps = 1 steps' "${quick[@]}" --device cuda --model flow --maps diagonal --max-steps 1
refuse 'stop_on: roc-auc' "${quick[@]}" --device cuda --stop-on roc-auc
refuse 'epoch [0-9]+: .* is not finite' "${quick[@]}" --device cuda --lr 1e30
refuse 'device: 7' "$bin/predict" --model cpu-0-0.safetensors --dataset karate --device cuda:7 --output out.csv
echo "the programs behave on the device"
