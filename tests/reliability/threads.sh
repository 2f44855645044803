#!/usr/bin/env bash
# Short trainings with random numbers of threads, side by side, at two priorities, beside busy neighbours and in forked
# children: the bits of one thread, and no complaint of the thread sanitizer. 64 threads take at most twice the time
# of as many as there are processors.
# usage: bash tests/reliability/threads.sh [TRAININGS]   (default 10000 for each of three builds)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bash scripts/install_dependencies.sh
source tests/reliability/build_trainings.sh
count=${1:-10000}
failures=0
step() {  # usage: step TITLE COMMAND...
  echo "== $1"
  shift
  "$@" || { echo "FAILED: $*"; failures=$((failures + 1)); }
}
build_trainings plain -O2
step "the library's own threads" "$trainings" threads "$count"
step "more threads than processors" "$trainings" oversubscription
export OMP_WAIT_POLICY=passive  # else its threads spin at barriers, which on a busy machine takes far longer than the work
build_trainings openmp -O2 -fopenmp -DSHEAFNN_USE_OPENMP
step "OpenMP" "$trainings" threads "$count"
step "OpenMP, more threads than processors" "$trainings" oversubscription
# OpenMP's own threads are left out: its library is not instrumented, and all that it does looks like a race.
build_trainings tsan -O1 -g1 -fno-omit-frame-pointer -fsanitize=thread
step "the thread sanitizer" "$trainings" threads "$count"
echo "$failures of 5 steps failed"
[ "$failures" -eq 0 ]
