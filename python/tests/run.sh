#!/usr/bin/env bash
# Installs the package into a virtual environment as users do, builds the programs that it is compared with, and runs its
# tests. The models of both are those of the tests; SHEAFNN_PYTHON_MODELS=all: all.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bash scripts/install_dependencies.sh --python
models=${SHEAFNN_PYTHON_MODELS:-Identity_1;Diagonal_2;SpecialOrthogonal_2;SpecialOrthogonal_3;GeneralLinear_2;Cooperative_2;FlowDiagonal_2}
package=()
programs=()
if [ "$models" != all ]; then
  package=("--config-settings=cmake.define.SHEAFNN_PYTHON_MODELS=$models")
  programs=("-DSHEAFNN_EXAMPLE_MODELS=$models")
fi

environment=build/python-environment
[ -x "$environment/bin/python" ] || python3 -m venv "$environment"
"$environment/bin/pip" install --quiet --upgrade pip
"$environment/bin/pip" install ".[test]" --config-settings=build-dir=build/python "${package[@]}"
cmake -S . -B build/python-programs -G Ninja -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_FLAGS_RELEASE=-O3 -DNDEBUG" \
  -DSHEAFNN_BUILD_TESTS=OFF -DSHEAFNN_BUILD_BENCHMARKS=OFF "-DSHEAFNN_PROGRAMS=train;predict" "${programs[@]}" > /dev/null
cmake --build build/python-programs --parallel "$(nproc)"
SHEAFNN_PROGRAMS=$PWD/build/python-programs/examples "$environment/bin/python" -m pytest python/tests "$@"
# The examples of the docstrings, in the installed package.
"$environment/bin/python" -m pytest --quiet --pyargs sheafnn --doctest-modules
(cd build && "../$environment/bin/python" -m mypy --ignore-missing-imports -p sheafnn)
