#!/usr/bin/env bash
# Errors of the library's functions against mpmath at 60 digits: renews the tables of docs/accuracy.md.
# Takes some minutes.
# usage: run.sh [OPTIONS OF accuracy.py]
# The statistical tests of the samplers are in samplers.sh, the tests of the random words in streams.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bash scripts/install_dependencies.sh
if ! python3 -c 'import mpmath' 2> /dev/null; then
  # Debian's own python3 has it from here; another python3 needs its pip.
  bash scripts/install_dependencies.sh python3-mpmath=no-command-of-that-name > /dev/null 2>&1 || true
  python3 -c 'import mpmath' 2> /dev/null || python3 -m pip install --quiet mpmath || {
    echo "accuracy.py needs mpmath: apt-get install python3-mpmath, or pip install mpmath" >&2
    exit 1
  }
fi
if [ $# -gt 0 ]; then exec python3 benchmarks/accuracy/accuracy.py "$@"; fi
python3 benchmarks/accuracy/accuracy.py --update docs/results/figures/functions.json
python3 docs/results/tables.py
