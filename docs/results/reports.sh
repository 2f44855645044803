#!/usr/bin/env bash
# The reports, trials and figures behind the tables of this folder are kept in one archive, reports.tar.xz.
# usage: docs/results/reports.sh unpack | pack | list
# unpack: lays them beside this script, where the commands of the pages look for them; Git ignores them there.
# pack: puts them into the archive again, after some were made anew; the same reports give the same bytes.
# docs/notebook/public_graphs.md, docs/notebook/searches.md and uncertainty/README.md say which command makes which report; run.sh makes
# the reports of "Bayesian sheaf networks" and the folder device/. The stored files beside the archive stay outside it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
archive=reports.tar.xz
case "${1:-}" in
  unpack)
    tar -xJf "$archive"
    ;;
  pack)
    mapfile -t missing < <(tar -tJf "$archive" | while read -r file; do [ -f "$file" ] || echo "$file"; done)
    if [ ${#missing[@]} -gt 0 ]; then
      echo "reports.sh: ${missing[0]} is in $archive and not in this folder (${#missing[@]} files); unpack first" >&2
      exit 1
    fi
    find . -type f \( -name '*.json' -o -name '*.csv' \) ! -path ./defaults.json ! -path './figures/*' -printf '%P\n' | LC_ALL=C sort |
      tar --format=ustar --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=644 -cf - -T - | xz -9e -T1 > "$archive.new"
    mv "$archive.new" "$archive"
    ;;
  list)
    tar -tJf "$archive"
    ;;
  *)
    echo "usage: docs/results/reports.sh unpack | pack | list" >&2
    exit 2
    ;;
esac
