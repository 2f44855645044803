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
  grep -qE "$pattern" error.txt || fail "'$(cat error.txt)' does not match '$pattern'"
  ! compgen -G 'out*' > /dev/null || fail "something was written: $*"
}
