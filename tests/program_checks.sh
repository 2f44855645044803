# What checks of programs share; to be sourced.

# usage: fail WHAT
fail() {
  echo "$(basename "$0" .sh): $1" >&2
  exit 1
}
# usage: refuse PATTERN COMMAND...: exit code 2, one line on stderr that matches, nothing written.
refuse() {
  local pattern=$1 status=0
  shift
  rm -f out*
  "$@" > /dev/null 2> error.txt || status=$?
  [ $status -eq 2 ] || fail "exit code $status instead of 2: $*"
  [ "$(wc -l < error.txt)" -eq 1 ] || fail "not one line: $(cat error.txt)"
  grep -qE -e "$pattern" error.txt || fail "'$(cat error.txt)' does not match '$pattern'"
  ! compgen -G 'out*' > /dev/null || fail "something was written: $*"
}
# usage: facts REPORT: what a report says, without time, place and command line.
facts() { grep -vE '"(all|train|evaluate|threads|command|started|seconds|commit|machine)"' "$1"; }
# usage: check_own_parts PROGRAM: one of the examples that read or replace a part of the library. What they learn is
# well above chance: each class of their graph has half of the members.
check_own_parts() {
  local name=$(basename "$1") report
  report=$("$@") || fail "$name"
  case $name in
    own_loss) awk '/^R\^2 / {n++; if ($NF < 0.3) bad = 1} END {exit bad || n != 1}' <<< "$report" ;;
    *) awk '/test accuracy/ {n++; last = $NF + 0; if ($1 != "step" && last < 60) bad = 1}
            END {exit bad || n == 0 || last < 60}' <<< "$report" ;;
  esac || fail "$name: $report"
  [ "$name" != learned_sheaf ] || [ "$(grep -cE '^(before training|after training|a sample) ' <<< "$report")" -eq 3 ] \
    || fail "learned_sheaf lacks a sheaf: $report"
}
