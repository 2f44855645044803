#!/usr/bin/env bash
# Random networks against an independent implementation of docs/math.md in PyTorch (networks.py): outputs and gradients,
# with 1 and 2 threads. Builds into build/reliability/independent what is older than the sources.
# usage: [PYTHON=python3] bash tests/reliability/independent/independent.sh [COUNT [SEED]]   (default: 100 cases of each
# of three kinds, seed 1). PYTHON needs torch and numpy; JOBS says how many compilers run at a time (default 2).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
python=${PYTHON:-python3}
"$python" -c "import numpy, torch" 2> /dev/null ||
  { echo "$python cannot import torch and numpy; name one that can with PYTHON=..." >&2; exit 1; }
bash scripts/install_dependencies.sh
export here=tests/reliability/independent out=build/reliability/independent cxx=${CXX:-g++} eigen
eigen=$(pkg-config --cflags-only-I eigen3 2> /dev/null || echo -I/usr/include/eigen3)
mkdir -p "$out"
compile() {  # usage: compile SOURCE [FAMILY DIMENSION]
  local object=$out/$1${2:-}${3:-}.o
  local newer=(-newer "$object" -name '*.?pp' -print -quit)
  if [ -e "$object" ] && [ -z "$(find include tests/*.hpp $here "${newer[@]}")" ]; then return; fi
  echo "compiling $*"
  # shellcheck disable=SC2086
  "$cxx" -std=c++20 -march=native -O1 -Iinclude -Itests ${eigen//-I/-isystem} ${2:+-DFAMILY=$2 -DDIMENSION=$3} \
    -c "$here/$1.cpp" -o "$object"
}
export -f compile
{
  echo check
  for family in Diagonal SpecialOrthogonal GeneralLinear NodeMaps; do
    for dimension in 1 2 3 4; do
      [ $family$dimension = SpecialOrthogonal1 ] || echo "check_models $family $dimension"
    done
  done
} | xargs -P "${JOBS:-2}" -L 1 bash -c 'compile "$@"' compile
"$cxx" "$out"/*.o -pthread -lz -o "$out/check"
rm -rf "$out/cases"
"$python" -B $here/cases.py "$out/cases" --count "${1:-100}" --seed "${2:-1}"
"$out/check" "$out/cases"
