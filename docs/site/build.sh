#!/usr/bin/env bash
# usage: build.sh [FOLDER]   makes the site (default: build/docs/site). Nothing is fetched: install.sh did that. Fails on a
# broken link, on a formula that cannot be typeset, on a page that is longer than check_words.py allows, on a C++ block of the
# pages that does not compile, and on a public class, enumeration or function of a namespace that is not documented. All checks
# run; the last line is "N passed, M failed".
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
out=${1:-$root/build/docs/site}
environment=$root/build/docs-environment
if [ ! -x "$environment/bin/sphinx-build" ] || ! command -v doxygen > /dev/null || ! command -v node > /dev/null ||
  [ ! -f /usr/share/javascript/katex/katex.min.js ]; then
  echo "Sphinx, Doxygen, Node.js or KaTeX is missing: bash docs/site/install.sh"
  echo "0 passed, 1 failed"
  exit 1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Every page anew: Sphinx says nothing of a page that it made before, whatever is wrong with it, and keeps pages whose sources are gone.
pages() {
  [ ! -f "$out/objects.inv" ] || find "$out" -name '*.html' -delete
  mkdir -p "$out" &&
    SHEAFNN_DOXYGEN=$work/xml "$environment/bin/sphinx-build" --quiet --fail-on-warning --keep-going --fresh-env --write-all \
      -d "$work/doctrees" -c "$root/docs/site" "$root/docs" "$out"
}
# What Doxygen reads of the headers, for cpp_reference.py, which says what is not documented.
headers() {
  sed -e "s|@ROOT@|$root|g" -e "s|@OUTPUT@|$work|g" "$root/docs/site/Doxyfile.in" > "$work/Doxyfile" && doxygen "$work/Doxyfile"
}
passed=0 failed=0
# usage: check WHAT COMMAND...
check() {
  local what=$1
  shift
  if "$@"; then
    passed=$((passed + 1))
  else
    echo "docs/site/build.sh: failed: $what"
    failed=$((failed + 1))
  fi
}
check "lengths of the pages" python3 "$root/docs/site/check_words.py"
check "Python names of the reference" python3 "$root/docs/site/check_reference.py"
check "C++ blocks of the pages" python3 "$root/docs/site/check_snippets.py" "$(bash "$root/scripts/fast_compiler.sh")"
check "formulas" "$environment/bin/python" "$root/docs/site/check_formulas.py"
check "headers" headers
check "pages" pages
check "links" "$environment/bin/python" "$root/docs/site/check_links.py" "$out"
echo "$out/index.html"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
