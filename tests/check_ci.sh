#!/usr/bin/env bash
# Runs .ci/run with parts that pass, fail, crash and say nothing: all parts run, each has a closing line, the last line is their
# sum, and the exit code says whether anything failed.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/.ci" "$work/tests" "$work/python/tests" "$work/docs/site"
cp "$root/.ci/run" "$work/.ci/run"
cd "$work"
failed=0

# usage: expect WHAT CODE LAST_LINE [CLOSING_LINE]...: what .ci/run prints and returns, and lines that it prints beside the last
expect() {
  local what=$1 code=$2 last=$3 status=0 line
  shift 3
  bash .ci/run < <(echo input) > output.txt 2>&1 || status=$?
  for line in "$@" "C++ tests: " "Python tests: " "documentation: "; do
    grep -qF -e "$line" output.txt || status="$status without '$line'"
  done
  [ "$status, $(tail -n 1 output.txt)" = "$code, $last" ] && return
  printf '%s: exit code %s and:\n%s\n' "$what" "$status" "$(cat output.txt)"
  failed=1
}
# usage: parts [SCRIPT COMMANDS]: the stand-ins, which pass, but for this one
parts() {
  echo 'echo text; echo "10 passed, 0 failed"' > tests/run.sh
  echo '! read -r line || exit 9; echo "5 passed, 0 failed"' > python/tests/run.sh  # there is no input
  echo 'echo installed' > docs/site/install.sh
  echo 'echo "6 passed, 0 failed"' > docs/site/build.sh
  [ $# -eq 0 ] || echo "$2" > "$1"
}
parts
expect "all pass" 0 "21 passed, 0 failed" "C++ tests: 10 passed, 0 failed" "Python tests: 5 passed, 0 failed"
parts tests/run.sh 'echo "8 passed, 2 failed"; exit 1'
expect "the C++ tests fail" 1 "19 passed, 2 failed" "C++ tests: 8 passed, 2 failed"
parts tests/run.sh 'echo "8 passed, 2 failed"'
expect "a failure with exit code 0" 1 "19 passed, 2 failed"
parts python/tests/run.sh 'echo "4 passed, 1 failed"; exit 1'
expect "the Python tests fail" 1 "20 passed, 1 failed" "Python tests: 4 passed, 1 failed"
parts docs/site/build.sh 'echo "5 passed, 1 failed"; exit 1'
expect "the site fails" 1 "20 passed, 1 failed" "documentation: 5 passed, 1 failed"
parts docs/site/install.sh 'exit 3'
expect "the site's needs cannot be installed" 1 "15 passed, 1 failed" "documentation: no closing line, exit code 3"
parts python/tests/run.sh ''
expect "a part prints nothing" 1 "16 passed, 1 failed" "Python tests: no closing line, exit code 0"
parts python/tests/run.sh 'echo half; kill -SEGV $$'
expect "a part crashes" 1 "16 passed, 1 failed" "Python tests: 0 passed, 1 failed"
parts python/tests/run.sh 'echo "5 passed, 0 failed"; kill -SEGV $$'
expect "a part crashes at its end" 1 "21 passed, 1 failed" "Python tests: 5 passed, 1 failed"
parts tests/run.sh 'echo "0 passed, 0 failed"'
expect "nothing ran" 1 "11 passed, 1 failed" "C++ tests: nothing ran"
parts tests/run.sh 'printf "10 passed, 0 failed"'
expect "a last line without its end" 0 "21 passed, 0 failed"
rm tests/run.sh
expect "a part is missing" 1 "11 passed, 1 failed" "C++ tests: no closing line, exit code 127"
parts tests/run.sh 'sleep 60 & sleep 60'
sed -i 's/^part "C++ tests" [0-9]*/part "C++ tests" 0/' .ci/run
expect "a part takes too long" 1 "11 passed, 1 failed" "C++ tests: stopped"
[ "$failed" -eq 0 ] && echo ".ci/run behaves"
exit "$failed"
