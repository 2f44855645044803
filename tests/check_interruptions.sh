#!/usr/bin/env bash
# Trainings that are stopped at random moments and go on end with the same bits; full disks, closed pipes and a full
# standard output are errors, and leave nothing half-written behind.
# usage: check_interruptions.sh FOLDER_OF_PROGRAMS [INTERRUPTIONS]
set -euo pipefail
interruptions=${2:-50}
tests=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$tests/program_checks.sh"
enter_work_folder "$1"
trap 'umount "$work/disk" 2> /dev/null || true; rm -rf "$work"' EXIT

# Fifty interruptions, or as many as asked for, two in three by SIGKILL. Each comes within a fraction of the whole, so
# that all of them fit.
start=("$bin/train" --dataset synthetic --synthetic-nodes 200 --stalk-dim 2 --channels 8 --layers 2 --threads 1 --splits 0,1)
train=("${start[@]}" --epochs 600 --patience 600)
started=10000000  # microseconds until training begins: the least of five starts
for _ in 1 2 3 4 5; do
  begin=$(date +%s%N)
  "${start[@]}" --epochs 1 > /dev/null
  took=$((($(date +%s%N) - begin) / 1000))
  [ $took -ge $started ] || started=$took
done
begin=$(date +%s%N)
"${train[@]}" --save whole.safetensors --report whole.json --history > whole.txt
whole=$((($(date +%s%N) - begin) / 1000 - started))
# usage: check_parts: what the training in parts has written is what the whole one has
check_parts() {
  for split in 0 1; do cmp whole-$split.safetensors parts-$split.safetensors || fail "split $split ends with other bits"; done
  diff <(facts whole.json) <(facts parts.json) || fail "the report of a training in parts differs"
  diff <(sed 's/ *[^ ]*$//; / models: /d' whole.txt) <(sed 's/ *[^ ]*$//; / models: /d' parts.txt) || fail "the table of a training in parts differs"
}
RANDOM=7
count=0
first=("${train[@]}" --checkpoint states --every 6)
resume=("${first[@]}")
while [ $count -lt "$interruptions" ]; do
  [ ! -e states/training.json ] || resume=("$bin/train" --resume states)
  "${resume[@]}" --save parts.safetensors --report parts.json --history > parts.txt 2> error.txt &
  process=$!
  delay=$((started + whole * 5 / (4 * interruptions) * (RANDOM % 1000) / 1000))
  sleep "$(printf '%d.%06d' $((delay / 1000000)) $((delay % 1000000)))"
  signal=KILL
  [ $((count % 3)) -ne 0 ] || signal=TERM
  kill -$signal $process 2> /dev/null || true
  status=0
  wait $process 2> /dev/null || status=$?
  case $status in
    137) ;;
    0)  # the machine is faster than it was for the whole training: another one begins
      check_parts
      rm -r states
      resume=("${first[@]}")
      ;;
    143) [ ! -s error.txt ] || grep -q 'interrupted by signal 15; --resume resumes it' error.txt \
           || fail "interruption $count: $(cat error.txt)" ;;
    *) fail "interruption $count: exit code $status, $(cat error.txt)" ;;
  esac
  count=$((count + 1))
done
compgen -G 'states/split-*.safetensors' > /dev/null || fail "$interruptions interruptions and no checkpoint"
"$bin/train" --resume states --save parts.safetensors --report parts.json --history > parts.txt || fail "train --resume"
check_parts
! compgen -G 'states/*.tmp' > /dev/null || fail "a resumed training leaves old temporary files"

# An interrupted training says so: in its report, its table and its exit code, also with splits side by side.
long=("$bin/train" --dataset karate --stalk-dim 2 --channels 8 --layers 2 --epochs 1000000 --patience 1000000)
for parallel in none splits; do
  "${long[@]}" --parallel $parallel --splits 0-9 --save stopped-$parallel.safetensors --report stopped.json > stopped.txt 2> error.txt &
  process=$!
  sleep 0.5
  kill -INT $process
  status=0
  wait $process || status=$?
  [ $status -eq 130 ] || fail "exit code $status after SIGINT"
  grep -q '"interrupted": true' stopped.json || fail "the report does not say that it was interrupted"
  grep -q '"stopped_by": "interruption"' stopped.json || fail "the report does not say what was interrupted"
  grep -q ' interrupted$' stopped.txt || fail "the table does not say what was interrupted"
  [ -s stopped-$parallel-0.safetensors ] || fail "the best model of an interrupted training is lost"
  rm stopped.json
done

for program in graphs links; do
  [ -x "$bin/$program" ] || continue
  case $program in
    graphs)
      mkdir molecules
      awk 'BEGIN {
        print "graph,label" > "molecules/graphs.csv"
        print "graph,mass" > "molecules/nodes.csv"
        print "source,target" > "molecules/edges.csv"
        for (g = 0; g < 40; ++g) {
          print g "," g % 2 > "molecules/graphs.csv"
          for (i = 0; i < 3; ++i) print g "," g % 2 + i > "molecules/nodes.csv"
          print 3 * g "," 3 * g + 1 > "molecules/edges.csv"
        }
      }'
      endless=("$bin/graphs" molecules --fold 0 --predictions stopped.csv) ;;
    links) endless=("$bin/links" --dataset karate --ranking stopped.csv) ;;
  esac
  rm -f stopped.csv stopped.safetensors
  "${endless[@]}" --epochs 1000000 --patience 1000000 --save stopped.safetensors > stopped.txt 2> error.txt &
  process=$!
  sleep 1
  kill -INT $process
  status=0
  wait $process || status=$?
  [ $status -eq 130 ] || fail "$program: exit code $status after SIGINT: $(cat error.txt)"
  grep -q "^$program: interrupted by signal 2$" error.txt || fail "$program does not say that it was interrupted"
  [ -s stopped.csv ] && [ -s stopped.safetensors ] || fail "$program loses its results"
done

# uncertainty keeps the splits whose trainings are all done; of none it writes nothing.
if [ -x "$bin/uncertainty" ]; then
  splits=("$bin/uncertainty" --dataset synthetic --synthetic-nodes 200 --stalk-dim 2 --channels 8 --layers 2 --patience 1000000
    --splits 0-9 --seeds 0 --threads 1)
  begin=$(date +%s%N)
  "${splits[@]}" --epochs 300 > /dev/null
  half=$((($(date +%s%N) - begin) / 2000000))  # milliseconds
  for epochs in 300 1000000; do
    rm -f stopped.json
    "${splits[@]}" --epochs $epochs --report stopped.json > stopped.txt 2> error.txt &
    process=$!
    sleep "$(printf '%d.%03d' $((half / 1000)) $((half % 1000)))"
    kill -INT $process
    status=0
    wait $process || status=$?
    [ $status -eq 130 ] && [ "$(cat error.txt)" = 'uncertainty: interrupted by signal 2' ] ||
      fail "uncertainty: exit code $status after SIGINT: $(cat error.txt)"
    [ $epochs -eq 300 ] || continue
    done_splits=$(sed -n 's/^only \([1-9]\) of 10 splits: interrupted by signal 2$/\1/p' stopped.txt)
    [ -n "$done_splits" ] && grep -q '"interrupted": true' stopped.json || fail "uncertainty loses its splits: $(cat stopped.txt)"
    [ "$(grep -c '"split": ' stopped.json)" -eq "$done_splits" ] || fail "the report of uncertainty has other splits"
  done
  [ ! -e stopped.json ] || fail "uncertainty writes a report of no split"
fi

# A folder of checkpoints belongs to its training.
small=("$bin/train" --dataset karate --stalk-dim 2 --channels 4 --layers 2 --epochs 20 --splits 0)
"${small[@]}" --checkpoint folder > /dev/null
refuse 'folder: holds the checkpoints of a training; --resume resumes it' "${small[@]}" --checkpoint folder
refuse "training\.json: lr was '0\.02' and is '0\.5' now" "$bin/train" --resume folder --lr 0.5
refuse "training\.json: data was 'karate .*' and is 'synthetic .*' now" "$bin/train" --resume folder --dataset synthetic \
  --synthetic-nodes 50 --synthetic-classes 2
refuse "training\.json: seed was '0' and is '3' now" "$bin/train" --resume folder --seed 3
refuse "training\.json: splits was '0' and is '1' now" "$bin/train" --resume folder --splits 1
refuse 'checkpoint: elsewhere ' "$bin/train" --resume folder --checkpoint elsewhere
# Sets that follow one another, with another border between them, are another split.
mkdir ring
awk 'BEGIN { print "a,b"; for (i = 0; i < 30; ++i) print i "," (i + 1) % 30 }' > ring/edges.csv
# usage: ring_split TRAINING: the first nodes for training, up to 20 for validation, the others for testing
ring_split() {
  awk -v n="$1" 'BEGIN { print "node,x,label,split"
    for (i = 0; i < 30; ++i) print i "," i % 4 "," i % 2 "," (i < n ? "train" : i < 20 ? "validation" : "test") }' > ring/nodes.csv
}
ring_split 10
"$bin/train" --dataset ring --stalk-dim 2 --channels 4 --layers 2 --epochs 3 --checkpoint rings > /dev/null
ring_split 5
refuse "training\.json: data was 'ring .*' and is 'ring .*' now" "$bin/train" --resume rings
refuse 'nothing/training\.json: no such file' "$bin/train" --resume nothing
refuse '--every: 0' "${small[@]}" --checkpoint other --every 0
refuse 'every: 5 is not allowed; needs --checkpoint' "${small[@]}" --every 5
"$bin/train" --resume folder --epochs 30 --save longer.safetensors > /dev/null || fail "train --resume --epochs"
"${small[@]}" --epochs 30 --save at-once.safetensors > /dev/null
cmp longer.safetensors at-once.safetensors || fail "thirty epochs in two parts differ from thirty at once"
# What changes when a training goes on stays so: --epochs here, which may not fall below what there is.
"$bin/train" --resume folder --report again.json > /dev/null
grep -q '"epochs": 30' again.json || fail "a training that goes on forgets its options"
refuse 'epochs: 29 .* has 30 epochs already' "$bin/train" --resume folder --epochs 29
head -c 1000 folder/split-0-seed-0.safetensors > short
mv short folder/split-0-seed-0.safetensors
refuse 'split-0-seed-0\.safetensors: .*truncated' "$bin/train" --resume folder

# Files that cannot be written are found before the training, which would take hours.
mkdir taken.json
refuse '\-\-report: taken\.json: cannot be written; it exists and is not a regular file' "${long[@]}" --report taken.json
refuse '\-\-save: nowhere/out\.safetensors' "${long[@]}" --splits 0 --save nowhere/out.safetensors
refuse '\-\-sheaf: nowhere/out\.npz' "${long[@]}" --splits 0 --sheaf nowhere/out.npz
refuse '\-\-output: nowhere/out\.csv' "$bin/predict" --model whole-0.safetensors --output nowhere/out.csv

# Nor are files written over each other or over what is read.
refuse '\-\-save: out is the file of \-\-report' "${long[@]}" --splits 0 --report out --save out
refuse '\-\-sheaf: out-1\.x is the file of \-\-report' "${long[@]}" --splits 0,1 --report out-1.x --sheaf out.x
# Of several trainings the names of their files count: these write out-0.npz and out-1.npz.
refuse '\-\-predictions: out-1\.npz is the file of \-\-sheaf' "${long[@]}" --splits 0-1 --sheaf out.npz --predictions out-1.npz
touch whole.npz whole-1.npz
refuse '\-\-sheaf: whole-1\.npz is the file of \-\-report' "${long[@]}" --splits 0-1 --sheaf whole.npz --report whole-1.npz
refuse '\-\-output: whole-0\.safetensors is the file of \-\-model' "$bin/predict" --model whole-0.safetensors \
  --output whole-0.safetensors
# The folder of a training is no place for them.
refuse '\-\-save: folder/training\.json is the file of \-\-resume' "$bin/train" --resume folder --save folder/training.json
refuse '\-\-report: new/split-0-seed-0\.safetensors is the file of \-\-checkpoint' "${long[@]}" --splits 0 --checkpoint new \
  --report new/split-0-seed-0.safetensors
mkdir data
touch data/edges.csv data/nodes.csv
refuse '\-\-output: data/nodes\.csv is a file of \-\-dataset' "$bin/predict" --model whole-0.safetensors --dataset data \
  --output data/nodes.csv

# Standard output that is full or closed.
for program in train predict; do
  status=0
  "$bin/$program" --help 2> error.txt > /dev/full || status=$?
  [ $status -eq 2 ] && grep -q 'standard output' error.txt || fail "$program --help > /dev/full: $status, $(cat error.txt)"
done
status=0
"${small[@]}" --save full.safetensors 2> error.txt > /dev/full || status=$?
[ $status -eq 2 ] && grep -q 'standard output cannot be written' error.txt || fail "train > /dev/full: $status"
[ -s full.safetensors ] || fail "a model is lost because nobody saw the table"
codes=$( { "${small[@]}" --splits 0-9 2> error.txt; echo $? > code.txt; } | head -n 1 > /dev/null; cat code.txt)
[ "$codes" -eq 2 ] && grep -q 'standard output cannot be written' error.txt || fail "train | head: $codes"

# A file that is too large for its disk takes no other with it: report and predictions say what there is.
status=0
(ulimit -f 12; exec "${small[@]}" --splits 0,1 --channels 40 --save large.safetensors --report least.json \
  --predictions least.npz) > table.txt 2> error.txt || status=$?
[ $status -eq 2 ] && grep -q 'large-0\.safetensors: cannot be written' error.txt || fail "a limit on files: $status, $(cat error.txt)"
[ ! -e large-0.safetensors ] && [ -s least.npz ] || fail "predictions are lost with the model"
grep -q '"error": "large-0\.safetensors: cannot be written' least.json || fail "the report is lost, or does not say why it ends"
grep -qE '^ +0 ' table.txt || fail "the table lacks the training whose model was lost"
(ulimit -f 12; exec "${small[@]}" --dataset synthetic --synthetic-nodes 500 --predictions large.npz --report least.json) > /dev/null \
  2> error.txt && fail "no limit"
grep -q 'large\.npz: cannot be written' error.txt && grep -q '"test_accuracy"' least.json || fail "a report is lost with the predictions"

# Disks of every size from none to enough: an error in one line, nothing half-written, nothing temporary.
mkdir disk reference
outputs=(--save disk/m.safetensors --report disk/r.json --sheaf disk/s.npz --checkpoint disk/states --every 5)
(cd reference && mkdir disk && "${small[@]}" "${outputs[@]}" > /dev/null)
# usage: check_disk SIZE: what a run with a full disk left behind
check_disk() {
  [ "$status" -eq 0 ] || [ "$(wc -l < error.txt)" -eq 1 ] || fail "disk of $1: $(cat error.txt)"
  [ "$status" -eq 0 ] || [ "$status" -eq 2 ] || fail "disk of $1: exit code $status"
  ! find disk -name '*.tmp' | grep -q . || fail "disk of $1: temporary files are left"
  for file in m.safetensors s.npz; do
    [ ! -e disk/$file ] || cmp disk/$file reference/disk/$file || fail "disk of $1: half of $file"
  done
  [ ! -e disk/r.json ] || cmp -s <(facts disk/r.json | grep -v '"error"') <(facts reference/disk/r.json) || fail "disk of $1: half a report"
  # What is there is enough to go on elsewhere.
  [ -e disk/states/training.json ] || return 0
  rm -rf moved
  cp -r disk/states moved
  "$bin/train" --resume moved --save moved/m --report moved/r --sheaf moved/s > /dev/null || fail "disk of $1: no going on"
  cmp moved/m reference/disk/m.safetensors || fail "disk of $1: it goes on with other bits"
}
full=0
enough=0
if mount -t tmpfs -o size=1m none disk 2> /dev/null; then
  for pages in $(seq 0 60); do
    rm -rf disk/*
    head -c $((1048576 - pages * 4096)) /dev/zero > disk/filler
    status=0
    "${small[@]}" "${outputs[@]}" > /dev/null 2> error.txt || status=$?
    check_disk "$pages pages"
    if [ $status -eq 0 ]; then enough=$((enough + 1)); else full=$((full + 1)); fi
    [ $enough -lt 2 ] || break
  done
else  # no rights to mount: a limit on the size of files instead
  for blocks in $(seq 0 60); do
    rm -rf disk/*
    status=0
    (ulimit -f $((4 * blocks)); exec "${small[@]}" "${outputs[@]}") 2>&1 > /dev/null | cat > error.txt || status=$?
    check_disk "$blocks blocks"
    if [ $status -eq 0 ]; then enough=$((enough + 1)); else full=$((full + 1)); fi
    [ $enough -lt 2 ] || break
  done
fi
[ $full -ge 5 ] && [ $enough -ge 1 ] || fail "$full full disks and $enough that were large enough"
echo "$interruptions interruptions, $full full disks: nothing lost"
