#!/usr/bin/env bash
# usage: check_options.sh OPTION_PAGE
# docs/options.md is what scripts/option_page.cpp prints of the declarations of the options, and a table of docs/networks.md what it
# prints of the declarations of networks.
set -euo pipefail
page=$(dirname "${BASH_SOURCE[0]}")/../docs/options.md
printed=$(mktemp)
trap 'rm -f "$printed"' EXIT
"$1" > "$printed"
for option in layers filter_degree node-learner sheaf_learning_rate; do
  grep -q "$option" "$printed" || { echo "$1 does not print $option"; exit 1; }
done
diff "$page" "$printed" || { echo "docs/options.md is out of date: $1 > docs/options.md"; exit 1; }

networks=$(dirname "$page")/networks.md
"$1" engines > "$printed"
[ "$(wc -l < "$printed")" -ge 14 ] || { echo "$1 engines prints $(wc -l < "$printed") lines"; exit 1; }
diff <(sed -n '/^<!-- table engines -->$/,/^<!-- end of table engines -->$/{/^|/p}' "$networks") "$printed" ||
  { echo "docs/networks.md is out of date: $1 engines"; exit 1; }
