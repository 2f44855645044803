#!/usr/bin/env bash
# What the target docs needs: Doxygen and KaTeX with Node.js (Debian), and a virtual environment with Sphinx in
# build/docs-environment.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bash scripts/install_dependencies.sh --python --docs
environment=build/docs-environment
[ -x "$environment/bin/pip" ] || python3 -m venv "$environment"
"$environment/bin/pip" install --quiet --requirement docs/site/requirements.txt
