#!/usr/bin/env bash
# Many trainings in one process: memory flat, no descriptor or thread lost, no slower at the end. A minute or two of
# processor time for 100000.
# usage: bash tests/reliability/soak.sh [TRAININGS]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bash scripts/install_dependencies.sh
source tests/reliability/build_trainings.sh
build_trainings plain -O2
"$trainings" soak "${1:-100000}"
