#!/usr/bin/env bash
# Statistical tests of every sampler against laws known in closed form: a table in Markdown, exit code 1 where a p-value is
# below 10⁻⁶. 10⁸ draws of each take about twenty minutes of one core.
# usage: samplers.sh [DRAWS [SEED [GROUP]]]   (default 100000000 1, all groups)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bash scripts/install_dependencies.sh
mkdir -p build/accuracy
read -r -a include_flags <<< "${CPPFLAGS:--isystem /usr/include/eigen3}"
g++ -std=c++20 -O3 -march=native -Iinclude "${include_flags[@]}" benchmarks/accuracy/samplers.cpp -o build/accuracy/samplers
exec build/accuracy/samplers "${1:-100000000}" "${@:2}"
