#!/usr/bin/env bash
# Installs the package into a virtual environment as users do, with the programs that it is compared with beside it in the
# same build, and runs its tests, the examples of its docstrings and mypy. Both contain the models that the tests use, which
# are compiled once, and optimised little; SHEAFNN_PYTHON_MODELS=all: all. g++ -Og fuses products into sums in one copy of a
# function and not in another, and these tests compare bits: it fuses none.
# The last line is "N passed, M failed"; mypy counts as one. Arguments go to pytest.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

give_up() {
  echo "$1"
  echo "0 passed, 1 failed"
  exit 1
}
bash scripts/install_dependencies.sh --python || give_up "dependencies are missing"
on_hypergraphs="HypergraphDiagonal_2;HypergraphSpecialOrthogonal_2;HypergraphSpecialOrthogonal_3;HypergraphGeneralLinear_2"
on_graphs="Identity_1;Diagonal_2;SpecialOrthogonal_2;SpecialOrthogonal_3;GeneralLinear_2;Cooperative_2;FlowDiagonal_2;Connection_2;Bundle_2;GivenDiagonal_2;GivenSpecialOrthogonal_2;GivenNsdDiagonal_2"
models=${SHEAFNN_PYTHON_MODELS:-$on_graphs;$on_hypergraphs}
settings=(SHEAFNN_BUILD_EXAMPLES=ON "SHEAFNN_PROGRAMS=train;predict;graphs;large_graph;links"
  "CMAKE_CXX_FLAGS_RELEASE=-Og -ffp-contract=off -DNDEBUG")
if [ "$models" != all ]; then
  settings+=("SHEAFNN_EXAMPLE_MODELS=$models" SHEAFNN_GRAPH_MODELS=Diagonal_3)
fi
settings+=("SHEAFNN_PYTHON_MODELS=$models" SHEAFNN_TORCH_STAND_IN=ON)
if [ -n "${SHEAFNN_PYTHON_MODELS:-}" ]; then
  settings+=(SHEAFNN_TORCH_MODELS=all)
else  # on hypergraphs, the two networks that the tests of sheafnn.torch use
  settings+=("SHEAFNN_TORCH_MODELS=$on_graphs;HypergraphDiagonal_2;HypergraphSpecialOrthogonal_2"
    "SHEAFNN_TORCH_DEVICE_MODELS=SpecialOrthogonal_2;Cooperative_2;FlowDiagonal_2;Connection_2;Bundle_2;GivenDiagonal_2;GivenNsdDiagonal_2;HypergraphDiagonal_2")
fi

environment=build/python-environment
[ -x "$environment/bin/pip" ] || python3 -m venv "$environment" || give_up "there is no virtual environment"
"$environment/bin/pip" install --quiet --upgrade pip || give_up "pip failed"
"$environment/bin/pip" install ".[test]" --config-settings=build-dir=build/python "${settings[@]/#/--config-settings=cmake.define.}" ||
  give_up "the package cannot be installed"
# PyTorch for the tests of sheafnn.torch, which are skipped without it; large, and installed once. SHEAFNN_TORCH_SITE names a folder
# of packages that has it already.
if [ -n "${SHEAFNN_TORCH_SITE:-}" ]; then
  "$environment/bin/python" -c "import sysconfig; print(sysconfig.get_paths()['purelib'])" |
    while read -r folder; do echo "$SHEAFNN_TORCH_SITE" > "$folder/sheafnn_torch_site.pth"; done
elif ! "$environment/bin/python" -c "import torch, torch_geometric" 2> /dev/null; then
  timeout 900 "$environment/bin/pip" install --quiet torch torch_geometric ||
    echo "PyTorch cannot be installed: the tests of sheafnn.torch are skipped"
fi
report=$(mktemp)
trap 'rm -f "$report"' EXIT
passed=0 failed=0
# usage: count COMMAND...: runs pytest and adds what its report says. One failure more is a run that failed without a
# failed test (a crash, nothing collected).
count() {
  local status=0 more_passed=0 more_failed=0
  : > "$report"
  "$@" --junit-xml="$report" || status=$?
  read -r more_passed more_failed < <("$environment/bin/python" - "$report" << 'END'
import sys
import xml.etree.ElementTree as xml
try:
    suites = list(xml.parse(sys.argv[1]).getroot().iter("testsuite"))
except xml.ParseError:
    suites = []
tests, skipped, *bad = (sum(int(suite.get(key)) for suite in suites) for key in ("tests", "skipped", "failures", "errors"))
print(tests - skipped - sum(bad), sum(bad))
END
  ) || true
  if [ "$status" -ne 0 ] && [ "$more_failed" -eq 0 ]; then more_failed=1; fi
  passed=$((passed + more_passed)) failed=$((failed + more_failed))
}
# Each process has a share of the tests; a process with PyTorch takes a gigabyte.
processes=$(nproc)
SHEAFNN_PROGRAMS=$PWD/build/python/examples count "$environment/bin/python" -m pytest python/tests \
  --numprocesses="$((processes < 4 ? processes : 4))" --dist=worksteal "$@"
# The examples of the docstrings, in the installed package.
count "$environment/bin/python" -m pytest --quiet --pyargs sheafnn --doctest-modules --doctest-ignore-import-errors
if (cd build && "../$environment/bin/python" -m mypy --ignore-missing-imports -p sheafnn); then
  passed=$((passed + 1))
else
  failed=$((failed + 1))
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
