#!/usr/bin/env bash
# usage: check_levels.sh
# A program that is built for two levels of processors chooses the level when it starts. It says so where the wanted level is
# missing. Builds one small program at both. Uses $CXX. Exit code 77: the machine is not x86-64, or lacks the higher level.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$root/tests/program_checks.sh"
[ "$(uname -m)" = x86_64 ] || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
generator=()
if command -v ninja > /dev/null; then generator=(-G Ninja); fi
unset SHEAFNN_CPU_LEVEL
name=opinion_dynamics folder=$work/build/examples
configure() {
  cmake -S "$root" -B "$work/build" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_FLAGS_RELEASE=-O0 -DNDEBUG" \
    -DSHEAFNN_BUILD_TESTS=OFF -DSHEAFNN_BUILD_BENCHMARKS=OFF -DSHEAFNN_NATIVE=OFF -DSHEAFNN_PROGRAMS=$name "$@"
}

# Levels that no build has are refused before anything is compiled.
! configure -DSHEAFNN_CPU_LEVELS=x86-64-v9 > "$work/log" 2>&1 || fail "a level that does not exist is accepted"
grep -q "SHEAFNN_CPU_LEVELS: no level x86-64-v9; choose from" "$work/log" || fail "$(cat "$work/log")"
configure "-DSHEAFNN_CPU_LEVELS=x86-64;x86-64-v3" > "$work/log" 2>&1 || fail "$(tail -n 30 "$work/log")"
cmake --build "$work/build" --target $name > "$work/log" 2>&1 || fail "$(tail -n 30 "$work/log")"
for level in x86-64 x86-64-v3; do
  grep -q -e "-march=$level " "$folder/build-$level/build.ninja" "$folder/build-$level"/examples/CMakeFiles/$name.dir/flags.make 2> /dev/null ||
    fail "$level was not compiled for $level"
  [ -x "$folder/$level/$name" ] || fail "there is no $level/$name"
done
"$folder/$name" --help > "$work/help" || fail "the program does not start"
grep -q -e "--agents\|--seed\|--help" "$work/help" || fail "$(cat "$work/help")"
cmp <(SHEAFNN_CPU_LEVEL=x86-64 "$folder/$name" --help) "$work/help" || fail "the arguments do not reach the program"

# What is chosen, on programs that print their level. The processor's levels come from an error.
mkdir -p "$work/own"/x86-64{,-v3,-v4}
cp "$folder/$name" "$work/own/program"
for level in x86-64 x86-64-v3 x86-64-v4; do
  printf '#!/bin/sh\necho "%s $*"\n' $level > "$work/own/$level/program"
  chmod +x "$work/own/$level/program"
done
cd "$work/own"
refuse "^program: SHEAFNN_CPU_LEVEL: 'avx' is not allowed; this program has x86-64, .*, and this processor supports x86-64, " \
  env SHEAFNN_CPU_LEVEL=avx ./program
supported=$(sed 's/.*supports //' error.txt)
[[ $supported =~ x86-64-v3 ]] || exit 77
best=x86-64-v3
if [[ $supported =~ x86-64-v4 ]]; then best=x86-64-v4; fi
is() { [ "$1" = "$2" ] || fail "'$1' instead of '$2'"; }
is "$(./program one 'two  three')" "$best one two  three"
is "$(SHEAFNN_CPU_LEVEL='' ./program)" "$best "
is "$(SHEAFNN_CPU_LEVEL=x86-64 ./program)" "x86-64 "
is "$(SHEAFNN_CPU_LEVEL=x86-64-v3 ./program --cpu-level)" "x86-64-v3"
is "$(PATH=$PWD:$PATH program --cpu-level)" "$best"
ln -s "$PWD/program" "$work/link"
is "$("$work/link" --cpu-level)" "$best"
refuse "^program: SHEAFNN_CPU_LEVEL: 'X86-64' is not allowed" env SHEAFNN_CPU_LEVEL=X86-64 ./program
refuse "^program: SHEAFNN_CPU_LEVEL: 'x86-64-v2' is not allowed; this program has x86-64, x86-64-v3" env SHEAFNN_CPU_LEVEL=x86-64-v2 ./program
rm -r x86-64 x86-64-v4
is "$(./program --cpu-level)" "x86-64-v3"
chmod -x x86-64-v3/program
refuse "^program: .*/x86-64-v3/program: Permission denied" ./program
rm -r x86-64-v3
refuse "^program: there is no program for this processor: this program has none, and this processor supports x86-64" ./program
echo "levels of processors: the highest, the wanted one, and none"
