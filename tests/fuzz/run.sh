#!/usr/bin/env bash
# Fuzzes the readers, options, rotations and training steps with clang's libFuzzer under the address and undefined-behaviour
# sanitizers. Prints executions, edges and seconds of every target; an input that breaks the contract is left in
# build/fuzz/broken, and the exit code is 1.
# usage: run.sh [SECONDS | RUNSx] [TARGET]...    per target: 60 seconds unless given, or 5000x for 5000 executions
#        run.sh --minimise [TARGET]...           keeps in tests/fuzz/corpus.tar.xz the 50 inputs of a target that reach
#                                                the most, and prints what they keep
# environment: CXX (clang++), FUZZ_SEED (0: another one every time)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

CXX=${CXX:-clang++}
probe=$(mktemp -d)
trap 'rm -rf "$probe"' EXIT
echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' > "$probe/probe.cpp"
if ! command -v "$CXX" > /dev/null || ! "$CXX" -fsanitize=fuzzer,address,undefined "$probe/probe.cpp" -o "$probe/probe" 2> /dev/null; then
  echo "run.sh: $CXX has no -fsanitize=fuzzer; fuzzing needs clang 14 or later with compiler-rt" \
    "(Debian: apt-get install clang libclang-rt-14-dev; CXX names another one)" >&2
  exit 2
fi

all=(npy zip npz geom_gcn csv matrix_market safetensors checkpoint training_state options rotations training_step)
minimise=0
limit=-max_total_time=60
case "${1:-}" in
  --minimise) minimise=1; shift ;;
  [0-9]*x) limit=-runs=${1%x}; shift ;;
  [0-9]*) limit=-max_total_time=$1; shift ;;
esac
targets=("${@:-${all[@]}}")

out=build/fuzz
mkdir -p "$out/broken"
seeds=$out/seeds
if command -v python3 > /dev/null; then python3 tests/fuzz/make_seeds.py "$seeds"; fi
corpus=$out/corpus
rm -rf "$corpus"
tar -xJf tests/fuzz/corpus.tar.xz -C "$out"
eigen=$(for folder in /usr/include/eigen3 /usr/local/include/eigen3; do [ -d "$folder" ] && echo "$folder" && break; done || true)
status=0
[ "$minimise" = 1 ] || printf '%-16s %12s %8s %9s %8s\n' target executions edges 'of edges' seconds
for target in "${targets[@]}"; do
  source=tests/fuzz/$target.cpp
  [ -f "$source" ] || { echo "run.sh: there is no target $target; choose from ${all[*]}" >&2; exit 2; }
  program=$out/$target
  if [ ! -x "$program" ] || [ -n "$(find include examples/models tests/fuzz tests/*.hpp -newer "$program" -name '*.[ch]pp' -print -quit)" ]; then
    "$CXX" -std=c++20 -O1 -g1 -fno-omit-frame-pointer -fsanitize=fuzzer,address,undefined,float-cast-overflow \
      -fno-sanitize-recover=all -I include -I tests -I examples -isystem "${eigen:-/usr/include/eigen3}" "$source" -lz \
      -o "$program"
  fi
  # An input of 4 KiB may take 5 seconds (contract.hpp); no target needs more memory than the limits.
  options=(-max_len=4096 -timeout=60 -rss_limit_mb=2048 -malloc_limit_mb=1024 -print_final_stats=1
    -artifact_prefix="$out/broken/$target-" -seed="${FUZZ_SEED:-0}")
  grown=$out/grown/$target
  mkdir -p "$grown" "$seeds/$target" "$corpus/$target"
  if [ "$minimise" = 1 ]; then
    # libFuzzer shortens the inputs and leaves out what adds nothing; then the features of each of the others.
    merged=$out/merged/$target
    rm -rf "$merged" "$merged.control" "$merged.again"
    mkdir -p "$merged" "$merged.again"
    "$program" "${options[@]}" -set_cover_merge=1 -max_len=512 "$merged" "$corpus/$target" "$seeds/$target" "$grown" 2> "$out/$target.log"
    "$program" "${options[@]}" -set_cover_merge=1 -merge_control_file="$merged.control" "$merged.again" "$merged" 2>> "$out/$target.log"
    mapfile -t kept < <(python3 tests/fuzz/most_coverage.py "$merged.control" 50 "$target")
    [ ${#kept[@]} -gt 0 ] || exit 1
    rm -rf "${corpus:?}/$target"
    mkdir "$corpus/$target"
    cp -t "$corpus/$target" "${kept[@]}"
    # The same inputs give the same bytes.
    tar --sort=name --format=ustar --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=a=rX,u+w -cf - -C "$out" corpus |
      xz -9e -T1 > "$out/corpus.tar.xz"
    cp "$out/corpus.tar.xz" tests/fuzz/corpus.tar.xz
    continue
  fi
  result=0
  "$program" "${options[@]}" "$limit" "$grown" "$corpus/$target" "$seeds/$target" > "$out/$target.log" 2>&1 || result=$?
  awk -v target="$target" -v result="$result" '
    { for (i = 1; i < NF; ++i) { if ($i == "cov:") cov = $(i + 1); if ($i == "runs" && $(i + 1) == "in") seconds = $(i + 2) } }
    /^INFO: Loaded 1 PC tables/ { edges = substr($6, 2) }
    /^stat::number_of_executed_units:/ { runs = $2 }
    END { printf "%-16s %12d %8d %8.1f%% %8s%s\n", target, runs, cov, edges ? 100 * cov / edges : 0, seconds,
                 result ? "  BROKEN" : "" }' "$out/$target.log"
  if [ "$result" -ne 0 ]; then
    status=1
    grep -a "contract broken\|ERROR: \|runtime error\|Test unit written" "$out/$target.log" >&2 || tail -n 5 "$out/$target.log" >&2
  fi
done
exit "$status"
