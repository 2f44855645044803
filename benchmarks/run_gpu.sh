#!/usr/bin/env bash
# Tests and benchmarks of the batch engine on a machine with a GPU: compiles with nvcc alone (no CMake, no packages) and
# runs each program as soon as it is linked, those first whose results are worth most: the executor's tests and a family
# of golden cases, epochs and batches, kernels, large graphs, all tests. Results are in the output folder as soon as
# there are any. A step that fails is reported, the others go on; the last lines name the failed ones.
# usage: run_gpu.sh [--quick]            --quick: short measurements that only try the benchmarks out
#   SHEAFNN_HEADERS  folder with Eigen/, doctest/, zlib.h, lib/libz.a … (collect_headers.sh makes one); default:
#                    the headers of the system
#   OUT              where results go (default build/gpu): summary.txt, gpu.json, gpu.md (the tables for
#                    docs/notebook/performance.md, which is renewed and copied here as well), results/ (each section), and the
#                    logs of compile, tests, benchmarks, sanitizer
#   SHEAFNN_STEPS    of "compile tests benchmarks sanitizer" (default: tests benchmarks); what they need is compiled.
#                    compile: makes all programs and runs none, needs no GPU but SHEAFNN_ARCH. sanitizer: the tests
#                    under compute-sanitizer's memcheck (kernels have no shared memory and no barriers), for a run of
#                    its own
#   SHEAFNN_PREBUILT yes: compiles nothing; the programs in build/gpu, and the commit there, come from a step compile
#                    elsewhere. nvcc and cuBLAS must be there nevertheless
#   SHEAFNN_SECONDS  time for everything (default 540): steps are cut short or left out, and count as failed
#   SHEAFNN_ARCH     architecture to compile for (default native)
#   SHEAFNN_JOBS     compilers side by side (default: one per processor)
#   SHEAFNN_COMMIT   for the results (default: git's, or build/gpu/commit)
#   NVCC             compiler (default: nvcc, or /usr/local/cuda/bin/nvcc)
# Exit code: 0; 1 a step failed; 2 bad arguments; 77 nothing failed, but there is no GPU.
set -uo pipefail
shopt -s nullglob

quick=()
case "$#:${1:-}" in
  0:) ;;
  1:--quick) quick=(--quick) ;;
  *) echo "run_gpu.sh: unknown arguments: $*; usage: run_gpu.sh [--quick]" >&2; exit 2 ;;
esac
if [ -n "${SHEAFNN_HEADERS:-}" ]; then
  for part in Eigen doctest; do
    if [ ! -d "$SHEAFNN_HEADERS/$part" ]; then
      echo "run_gpu.sh: SHEAFNN_HEADERS=$SHEAFNN_HEADERS has no $part/; collect_headers.sh makes such a folder" >&2
      exit 2
    fi
  done
  SHEAFNN_HEADERS=$(cd "$SHEAFNN_HEADERS" && pwd)
fi
if [ -n "${OUT:-}" ]; then
  mkdir -p "$OUT" || exit 2
  OUT=$(cd "$OUT" && pwd)
fi
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2
root=$PWD
steps=${SHEAFNN_STEPS:-tests benchmarks}
for step in $steps; do
  case $step in
    compile | tests | benchmarks | sanitizer) ;;
    *) echo "run_gpu.sh: SHEAFNN_STEPS: $step is none of compile, tests, benchmarks, sanitizer" >&2; exit 2 ;;
  esac
done
prebuilt=${SHEAFNN_PREBUILT:-}
if [ -n "$prebuilt" ] && [ "$prebuilt" != yes ]; then
  echo "run_gpu.sh: SHEAFNN_PREBUILT=$prebuilt: must be yes, or empty" >&2
  exit 2
fi
total=${SHEAFNN_SECONDS:-540} jobs=${SHEAFNN_JOBS:-$(nproc)} arch=${SHEAFNN_ARCH:-native}
for number in "$total" "$jobs"; do
  if ! [[ $number =~ ^[1-9][0-9]*$ ]]; then
    echo "run_gpu.sh: $number is no number: SHEAFNN_SECONDS and SHEAFNN_JOBS must be at least 1" >&2
    exit 2
  fi
done
nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
if ! "$nvcc" --version > /dev/null 2>&1; then
  echo "run_gpu.sh: $nvcc: no nvcc here; set NVCC" >&2
  exit 2
fi
# cuBLAS: beside nvcc, in the system's folders, or in a Python package, which has only libcublas.so.VERSION.
toolkit=$(cd "$(dirname "$(readlink -f "$(command -v "$nvcc")")")/.." && pwd)
packages=$(python3 -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])' 2> /dev/null || true)
first_of() {
  for found in "$@"; do
    if [ -e "$found" ]; then echo "$found"; return; fi
  done
}
header_places=("$toolkit/include" "$toolkit"/targets/*/include /usr/include "$packages"/nvidia/*/include)
library_places=("$toolkit"/lib64 "$toolkit"/lib "$toolkit"/targets/*/lib /usr/lib/*-linux-gnu /usr/lib64
                "$packages"/nvidia/*/lib)
cublas_header=$(first_of "${header_places[@]/%//cublas_v2.h}")
cublas_library=$(first_of "${library_places[@]/%//libcublas.so}")
cublas=(-lcublas)
if [ -z "$cublas_library" ]; then
  for place in "${library_places[@]}"; do
    cublas_library=$(first_of "$place"/libcublas.so.*)
    if [ -n "$cublas_library" ]; then break; fi
  done
  cublas=("-l:$(basename "$cublas_library")")
fi
if [ -z "$cublas_header" ]; then
  echo "run_gpu.sh: no cublas_v2.h for $nvcc; looked in ${header_places[*]}" >&2
  exit 2
elif [ -z "$cublas_library" ]; then
  echo "run_gpu.sh: no libcublas.so for $nvcc; looked in ${library_places[*]}" >&2
  exit 2
fi
cublas=(-L "$(dirname "$cublas_library")" -Xlinker "-rpath=$(dirname "$cublas_library")" "${cublas[@]}")
work=$root/build/gpu
out=${OUT:-$work}
mkdir -p "$work" || exit 2
rm -f "$out"/{summary.txt,gpu.json,gpu.md,performance.md,compile.log,tests.log,benchmarks.log,sanitizer.log}
rm -rf "$out/results"
echo "nvcc: $nvcc; cuBLAS: $cublas_header, $cublas_library" | tee -a "$out/summary.txt"

failures=0 gpu=yes
# usage: report ok|FAILED|skipped TEXT
report() {
  printf '%-8s%4d s  %s\n' "$1" "$SECONDS" "$2" | tee -a "$out/summary.txt"
  if [ "$1" = FAILED ]; then failures=$((failures + 1)); fi
}
has_step() { [[ " $steps " == *" $1 "* ]]; }
# usage: within SECONDS: no more than these, and no more than are left; at least 1
within() {
  local left=$((total - SECONDS))
  left=$((left < $1 ? left : $1))
  echo $((left > 1 ? left : 1))
}

# --- Compiling: every file by itself, side by side ---

includes=(-I include -I benchmarks -I tests)
zlib=(-lz)
if [ -n "${SHEAFNN_HEADERS:-}" ]; then
  includes+=(-isystem "$SHEAFNN_HEADERS")
  [ -e "$SHEAFNN_HEADERS/lib/libz.a" ] && zlib=("$SHEAFNN_HEADERS/lib/libz.a")
elif [ -d /usr/include/eigen3 ]; then
  includes+=(-isystem /usr/include/eigen3)
fi
case $cublas_header in
  "$toolkit"/* | /usr/include/*) ;;
  *) includes+=(-isystem "$(dirname "$cublas_header")") ;;
esac
flags=(-std=c++20 -O3 --expt-relaxed-constexpr "-arch=$arch" -Xcompiler=-Wall,-Wextra,-Wno-unknown-pragmas
       "${includes[@]}" "-DSHEAFNN_TEST_DATA=\"tests\"")
if [ "$prebuilt" != yes ] && [ "$(cat "$work/flags" 2> /dev/null)" != "$nvcc ${flags[*]}" ]; then
  rm -rf "$work/objects"
  echo "$nvcc ${flags[*]}" > "$work/flags"
fi
mkdir -p "$work/objects"

object_of() { echo "$work/objects/$(tr '/' '_' <<< "${1%.*}").o"; }
# usage: usable OBJECT: is there an object newer than all sources?
usable() { [ -e "$1" ] && [ -z "$(find include benchmarks tests -newer "$1" -name '*.[ch]*' -print -quit)" ]; }
# usage: compile SOURCE: makes its object, or a file OBJECT.failed; nothing when the object is usable
compile() {
  local source=$1 object compiler
  object=$(object_of "$source")
  rm -f "$object.failed"
  if usable "$object"; then return; fi
  rm -f "$object"
  compiler=("$nvcc" "${flags[@]}")
  case $source in
    *.cpp) compiler=("${CXX:-g++}" -std=c++20 -O2 "${includes[@]}" "-DSHEAFNN_TEST_DATA=\"tests\"") ;;
    benchmarks/*) compiler+=(-DNDEBUG) ;;
  esac
  if timeout "$(within 420)" "${compiler[@]}" -c "$source" -o "$object.part" > "$object.log" 2>&1; then
    mv "$object.part" "$object"
  else
    echo "exit code $?" >> "$object.log"
    touch "$object.failed"
  fi
}
# usage: compile_all SOURCE...: one after another, `jobs` side by side
compile_all() {
  local source
  for source in "$@"; do
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
    compile "$source" &
  done
  wait
}
# usage: link PROGRAM "LIBRARIES" SOURCE...: as soon as the objects are there, or says which files did not compile
link() {
  local program=$1 libraries=$2 source object objects=() bad=()
  shift 2
  if [ "$prebuilt" = yes ]; then
    if [ ! -x "$work/$program" ]; then report FAILED "$program: not in $work"; fi
    [ -x "$work/$program" ]
    return
  fi
  rm -f "$work/$program"
  for source in "$@"; do
    object=$(object_of "$source")
    while [ ! -e "$object" ] && [ ! -e "$object.failed" ] && kill -0 "$compiling" 2> /dev/null; do sleep 0.2; done
    { echo "=== $source"; cat "$object.log"; } >> "$out/compile.log" 2> /dev/null
    if [ -e "$object" ]; then objects+=("$object"); else bad+=("$source"); fi
  done
  if [ ${#bad[@]} -gt 0 ]; then
    report FAILED "compile $program: ${bad[*]} (compile.log)"
  elif ! "$nvcc" "-arch=$arch" -Xlinker "-rpath=$(dirname "$nvcc")/../lib64" "${objects[@]}" $libraries \
      "${cublas[@]}" -o "$work/$program" >> "$out/compile.log" 2>&1; then
    report FAILED "link $program (compile.log)"
  else
    report ok "compile $program (${#objects[@]} files)"
  fi
  [ -x "$work/$program" ]
}

# --- Running ---

# usage: verdict RC WHAT LOG
verdict() {
  case $1 in
    0) report ok "$2" ;;
    77)
      report skipped "$2: no GPU"
      gpu=no
      ;;
    124 | 137) report FAILED "$2: not finished in its time ($3)" ;;
    *) report FAILED "$2: exit code $1 ($3)" ;;
  esac
}
# usage: run_test PROGRAM [ARGUMENT...]
run_test() {
  echo "=== $*" >> "$out/tests.log"
  timeout -k 5 "$(within 150)" "$work/$1" "${@:2}" >> "$out/tests.log" 2>&1
  verdict $? "test $1" tests.log
}

sections=(calibration epochs filters batch kernels scaling)
measured=yes
# usage: tables: gpu.md and gpu.json of what the sections have written
tables() {
  local date device versions section separator="" facts=$out/results/calibration.json
  date=$(date +%F)
  device=$(sed -nE 's/.*"device": "([^"]*)".*/\1/p' "$facts" 2> /dev/null)
  versions=$(sed -nE 's/.*"versions": "([^"]*)".*/\1/p' "$facts" 2> /dev/null)
  {
    if [ -n "$device" ]; then
      echo "Measured $date on $device; $versions; commit $commit${quick:+; quick: a try, not a measurement}."
    else
      echo "Unmeasured: no GPU was at hand."
    fi
    for section in "${sections[@]}"; do
      [ -e "$out/results/$section.md" ] || continue
      case $section in
        calibration) printf '\n### GPU: limits\n\n' ;;
        epochs) printf '\n### GPU: epochs\n\nMicroseconds per epoch (in brackets: on the CPU, see above).\n\n' ;;
        filters) printf '\n### GPU: polynomial filters\n\nMicroseconds per epoch with Chebyshev filters of degree 8.\n\n' ;;
        batch) printf '\n### GPU: models side by side\n\n' ;;
        kernels) printf '\n### GPU: kernels\n\n' ;;
        scaling) printf '\n### GPU: large graphs\n\n' ;;
      esac
      cat "$out/results/$section.md"
    done
  } > "$out/gpu.md"
  {
    printf '{"date": "%s", "commit": "%s", "sections": [\n' "$date" "$commit"
    for section in "${sections[@]}"; do
      [ -e "$out/results/$section.json" ] || continue
      printf '%s' "$separator"
      cat "$out/results/$section.json"
      separator=","
    done
    echo ']}'
  } > "$out/gpu.json"
}
# usage: measure PROGRAM SECTION...
measure() {
  local program=$1 section rc
  shift
  if ! has_step benchmarks; then return; fi
  for section in "$@"; do
    timeout -k 5 "$(within 200)" "$work/$program" "$section" "${quick[@]}" --out "$out/results" \
      --cpu-page docs/notebook/performance.md >> "$out/benchmarks.log" 2>&1
    rc=$?
    verdict $rc "benchmark $section" benchmarks.log
    if [ $rc -ne 0 ]; then measured=no; fi
    if [ ! -e "$out/results/$section.md" ]; then
      timeout 20 "$work/$program" "$section" --layout --out "$out/results" --cpu-page docs/notebook/performance.md \
        >> "$out/benchmarks.log" 2>&1
    fi
    tables
  done
}
# Puts gpu.md between the lines that mark the GPU's part of the page.
renew_page() {
  awk -v tables="$out/gpu.md" '
    /<!-- gpu: end -->/ { inside = 0; print "" }
    !inside { print }
    /<!-- gpu: begin -->/ { inside = 1; print ""; while ((getline line < tables) > 0) print line }
  ' docs/notebook/performance.md > "$out/performance.md" && cp "$out/performance.md" docs/notebook/performance.md
}

# --- The programs, in the order of what their results are worth ---

golden=(tests/test_golden.cpp tests/test_golden2.cpp)
single_files=() test_files=()
for file in tests/cuda/*.cu; do
  if [ "$file" != tests/cuda/main.cu ] && grep -q '^int main' "$file"; then
    single_files+=("$file")
  else
    test_files+=("$file")
  fi
done
first_files=(tests/cuda/main.cu tests/cuda/test_device_executor.cu tests/cuda/test_device_launch_chain.cu
             tests/cuda/test_device_golden_special_orthogonal.cu)
# The golden tests read compressed files.
if [ "$prebuilt" != yes ] && ! echo '#include <zlib.h>
int main() { return zlibVersion()[0] == 0; }' | "${CXX:-g++}" "${includes[@]}" -x c++ - -x none "${zlib[@]}" \
    -o "$work/zlib_check" 2> /dev/null; then
  golden=() zlib=()
  without_golden() {
    local file
    for file in "$@"; do
      if ! grep -q golden "$file"; then echo "$file"; fi
    done
  }
  report skipped "golden tests: they need zlib"
  mapfile -t test_files < <(without_golden "${test_files[@]}")
  mapfile -t first_files < <(without_golden "${first_files[@]}")
fi
measuring=(benchmarks/gpu/main.cu benchmarks/gpu/calibration.cu)
epoch_files=("${measuring[@]}" benchmarks/gpu/epochs.cu benchmarks/gpu/{nsd,bsnn}_*.cu)
kernel_files=("${measuring[@]}" benchmarks/gpu/kernels*.cu)
scaling_files=("${measuring[@]}" benchmarks/gpu/scaling.cu benchmarks/gpu/bsnn_special_orthogonal.cu)

sources=()
if has_step compile || has_step tests || has_step sanitizer; then sources+=("${first_files[@]}" "${golden[@]}"); fi
if has_step compile || has_step benchmarks; then sources+=("${epoch_files[@]}" "${kernel_files[@]}" "${scaling_files[@]}"); fi
if has_step compile || has_step tests || has_step sanitizer; then
  sources+=("${test_files[@]}" "${single_files[@]}")
fi
# Each once, in this order.
mapfile -t sources < <(printf '%s\n' "${sources[@]}" | awk '!seen[$0]++')
if [ "$prebuilt" = yes ]; then
  sources=()
  LD_LIBRARY_PATH=$(dirname "$cublas_library")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  export LD_LIBRARY_PATH
fi
for source in "${sources[@]}"; do
  rm -f "$(object_of "$source").failed"
  # What is out of date must not be linked while it waits for its compiler.
  object=$(object_of "$source")
  if ! usable "$object"; then rm -f "$object"; fi
done
compile_all "${sources[@]}" &
compiling=$!

wanted() { has_step compile || has_step "$1"; }
if wanted tests && link device_first "${zlib[*]}" "${first_files[@]}" "${golden[@]}" && has_step tests; then
  run_test device_first
fi
if wanted benchmarks; then
  commit=${SHEAFNN_COMMIT:-}
  if [ "$prebuilt" = yes ] && [ -z "$commit" ]; then commit=$(cat "$work/commit" 2> /dev/null); fi
  if [ -z "$commit" ]; then
    commit=$(git rev-parse --short HEAD 2> /dev/null || echo unknown)
    if git rev-parse HEAD > /dev/null 2>&1 && ! git diff --quiet HEAD; then commit+=" with changes"; fi
  fi
  if [ "$prebuilt" != yes ]; then echo "$commit" > "$work/commit"; fi
  mkdir -p "$out/results"
  if link gpu_epochs "" "${epoch_files[@]}"; then measure gpu_epochs calibration epochs filters batch; else measured=no; fi
  if link gpu_kernels "" "${kernel_files[@]}"; then measure gpu_kernels kernels; else measured=no; fi
  if link gpu_scaling "" "${scaling_files[@]}"; then measure gpu_scaling scaling; else measured=no; fi
  if has_step benchmarks && [ $measured = yes ] && [ ${#quick[@]} -eq 0 ]; then renew_page; fi
fi
tests=()
if wanted tests || has_step sanitizer; then
  if link device_tests "${zlib[*]}" "${test_files[@]}" "${golden[@]}"; then tests+=(device_tests); fi
  for file in "${single_files[@]}"; do
    if link "$(basename "$file" .cu)" "" "$file"; then tests+=("$(basename "$file" .cu)"); fi
  done
fi
if has_step tests; then
  for name in "${tests[@]}"; do run_test "$name"; done
fi
wait

# Memory errors. Trainings are left out, they launch the kernels of the other tests again and again.
if has_step sanitizer; then
  sanitizer=$(command -v compute-sanitizer || true)
  for place in "$(dirname "$nvcc")" /usr/local/cuda/bin /usr/local/cuda/compute-sanitizer; do
    if [ -z "$sanitizer" ] && [ -x "$place/compute-sanitizer" ]; then sanitizer=$place/compute-sanitizer; fi
  done
  if [ -z "$sanitizer" ]; then
    report skipped "compute-sanitizer: not here"
  else
    for name in "${tests[@]}"; do
      # Some tests ask for what fails, such as more memory than there is.
      options=(--tool memcheck --error-exitcode 9 --print-limit 100 --report-api-errors no)
      arguments=()
      if [ "$name" = device_tests ]; then arguments=("--source-file-exclude=*test_device_training*"); fi
      log=$work/memcheck.$name.log
      timeout -k 5 "$(within 400)" "$sanitizer" "${options[@]}" "$work/$name" "${arguments[@]}" > "$log" 2>&1
      rc=$?
      { echo "=== memcheck $name: exit code $rc"; head -c 1500000 "$log"; } >> "$out/sanitizer.log"
      if [ "$(wc -c < "$log")" -gt 1500000 ]; then printf '\n… and more\n' >> "$out/sanitizer.log"; fi
      if grep -q 'Device not supported' "$log"; then
        report skipped "memcheck $name: compute-sanitizer cannot work on this device (sanitizer.log)"
      elif [ "$rc" = 124 ] || [ "$rc" = 137 ]; then
        found=$(grep -cE '^=+ +(Invalid|Misaligned|Error|Warning|Program hit)' "$log")
        report FAILED "memcheck $name: not finished in its time; $found findings until then (sanitizer.log)"
      else
        verdict "$rc" "memcheck $name" sanitizer.log
      fi
    done
  fi
fi

if [ $failures -gt 0 ]; then
  echo "run_gpu.sh: $failures failed:" | tee -a "$out/summary.txt"
  grep '^FAILED' "$out/summary.txt"
  exit 1
fi
if [ $gpu = no ]; then
  echo "run_gpu.sh: no GPU" | tee -a "$out/summary.txt"
  exit 77
fi
