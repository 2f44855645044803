#!/usr/bin/env bash
# What goes wrong outside the library: no memory, no disk, no right to write, files that change while they are read,
# SIGKILL. Builds what it needs into build/reliability; about ten minutes on an idle machine.
# usage: bash tests/reliability/faults.sh [INTERRUPTIONS]   (default 300, of which 200 by SIGKILL)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bash scripts/install_dependencies.sh
interruptions=${1:-300}
out=build/reliability
mkdir -p "$out"
cxx=${CXX:-g++}
read -r -a eigen <<< "$(pkg-config --cflags-only-I eigen3 2> /dev/null || echo -I/usr/include/eigen3)"
common=(-std=c++20 -march=native -Iinclude -Itests -Iexamples "${eigen[@]/#-I/-isystem}")
failures=0
step() {  # usage: step TITLE COMMAND...
  echo "== $1"
  shift
  "$@" || { echo "FAILED: $*"; failures=$((failures + 1)); }
}

# Every request of memory fails, with further models; the second time blocks that are lost are found by LeakSanitizer.
sources=(tests/main.cpp tests/test_allocation_failures.cpp tests/counted_memory.cpp)
"$cxx" "${common[@]}" -O0 -DSHEAFNN_TEST_MORE_MODELS "${sources[@]}" -pthread -lz -o "$out/allocation_failures"
"$cxx" "${common[@]}" -O0 -g1 -fsanitize=address \
  -DSHEAFNN_TEST_MORE_MODELS "${sources[@]}" -pthread -lz -o "$out/allocation_failures_sanitized"
report() { "$@" | grep -E 'MESSAGE|ERROR|test cases|assertions' | sed 's/.*MESSAGE: //'; }
step "every request of memory fails" report "$out/allocation_failures"
step "the same with the address and leak sanitizers" report "$out/allocation_failures_sanitized"

"$cxx" "${common[@]}" -O1 tests/reliability/changing_files.cpp -pthread -lz -o "$out/changing_files"
step "files change while they are read" "$out/changing_files" 20

programs=${SHEAFNN_PROGRAMS:-}
if [ -z "$programs" ]; then
  cmake --preset release -B "$out/programs" -DSHEAFNN_BUILD_TESTS=OFF -DSHEAFNN_BUILD_BENCHMARKS=OFF \
    "-DSHEAFNN_PROGRAMS=train;predict" -DSHEAFNN_EXAMPLE_MODELS=SpecialOrthogonal_2 > "$out/cmake.txt"
  cmake --build "$out/programs" --target train predict > "$out/build.txt"
  programs=$out/programs/examples
fi
step "interruptions and full disks" bash tests/check_interruptions.sh "$programs" "$interruptions"

# A folder that may not be written, before a training and from some moment of it on.
read_only() {
  local folder status=0
  folder=$(mktemp -d)
  mount -t tmpfs none "$folder" 2> /dev/null || { echo "left out: needs the right to mount"; rmdir "$folder"; return 0; }
  local train=("$programs/train" --dataset synthetic --synthetic-nodes 200 --stalk-dim 2 --channels 8 --layers 2
    --epochs 100000 --patience 100000 --splits 0)
  "${train[@]}" --checkpoint "$folder/states" --every 5 > /dev/null 2> "$out/error.txt" &
  local process=$!
  for _ in $(seq 600); do
    [ ! -e "$folder/states/split-0-seed-0.safetensors" ] || break
    sleep 0.1
  done
  # A file that is open for writing keeps the folder from becoming read-only.
  for _ in $(seq 600); do mount -o remount,ro "$folder" 2> /dev/null && break; done
  wait $process || status=$?
  local problem=""
  [ "$status" -eq 2 ] && [ "$(wc -l < "$out/error.txt")" -eq 1 ] && grep -q 'cannot be written' "$out/error.txt" ||
    problem="a training whose folder becomes read-only: exit code $status, $(cat "$out/error.txt")"
  echo "during a training: $(cat "$out/error.txt")"
  status=0
  timeout 60 "${train[@]}" --save "$folder/model" > /dev/null 2> "$out/error.txt" || status=$?
  [ "$status" -eq 2 ] && [ "$(wc -l < "$out/error.txt")" -eq 1 ] ||
    problem="a training that would save to a read-only folder: exit code $status, $(cat "$out/error.txt")"
  echo "before a training: $(cat "$out/error.txt")"
  mount -o remount,rw "$folder"
  "$programs/train" --resume "$folder/states" --epochs 100 > /dev/null 2> "$out/error.txt" ||
    grep -q 'epochs already' "$out/error.txt" || problem="no going on: $(cat "$out/error.txt")"
  [ -z "$(find "$folder" -name '*.tmp')" ] || problem="temporary files are left"
  umount "$folder"
  rmdir "$folder"
  [ -z "$problem" ] || { echo "$problem"; return 1; }
}
step "a read-only folder" read_only

echo "$failures of 5 steps failed"
[ "$failures" -eq 0 ]
