#!/usr/bin/env bash
# usage: check_options.sh OPTION_PAGE
# docs/options.md is what scripts/option_page.cpp prints of the declarations of the options.
set -euo pipefail
page=$(dirname "${BASH_SOURCE[0]}")/../docs/options.md
printed=$(mktemp)
trap 'rm -f "$printed"' EXIT
"$1" > "$printed"
for option in layers filter_degree node-learner sheaf_learning_rate; do
  grep -q "$option" "$printed" || { echo "$1 does not print $option"; exit 1; }
done
diff "$page" "$printed" || { echo "docs/options.md is out of date: $1 > docs/options.md"; exit 1; }
