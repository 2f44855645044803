#!/usr/bin/env bash
# Builds the small project of tests/consumer against an installed copy (moved after installation) and against the
# source tree as a subdirectory, runs it, and compares what it prints. Examples of own parts, which are what users
# write, are built against the installed copy as well. README's program is built with a model of sheafnn::models. Uses $CXX.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$root/tests/program_checks.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
generator=()
if command -v ninja > /dev/null; then generator=(-G Ninja); fi

# usage: quietly COMMAND...; its output is shown only when it fails.
quietly() {
  if ! "$@" > "$work/log" 2>&1; then
    printf 'failed: %s\n' "$*"
    tail -n 30 "$work/log"
    exit 1
  fi
}

# usage: consume NAME OPTIMISATION CMAKE_ARGUMENT...
consume() {
  local name=$1 optimisation=$2 program output
  shift 2
  quietly cmake -S "$root/tests/consumer" -B "$work/$name" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release \
    "-DCMAKE_CXX_FLAGS_RELEASE=$optimisation -DNDEBUG" "$@"
  quietly cmake --build "$work/$name"
  if grep 'warning:' "$work/log"; then
    echo "$name: the library's headers cause warnings in a user's project"
    exit 1
  fi
  for program in consumer consumer_io; do
    [ -x "$work/$name/$program" ] || continue
    output=$("$work/$name/$program")
    if [ "$output" != "$(cat "$root/tests/consumer/$program.expected")" ]; then
      printf '%s: %s printed: %s\n' "$name" "$program" "$output"
      exit 1
    fi
  done
}

# usage: install_to PREFIX CMAKE_ARGUMENT...
install_to() {
  local prefix=$1
  shift
  quietly cmake -S "$root" -B "$work/build" "${generator[@]}" -DSHEAFNN_BUILD_TESTS=OFF -DSHEAFNN_BUILD_EXAMPLES=OFF \
    -DSHEAFNN_BUILD_BENCHMARKS=OFF -DSHEAFNN_INSTALL=ON "$@"
  quietly cmake --build "$work/build"
  quietly cmake --install "$work/build" --prefix "$prefix"
  rm -r "$work/build"
}

install_to "$work/first" -DSHEAFNN_MODELS=SpecialOrthogonal_2
mv "$work/first" "$work/second"
examples=("$root"/examples/own_*.cpp "$root"/examples/{sheaf_layer,learned_sheaf}.cpp)
consume installed -Og "-DCMAKE_PREFIX_PATH=$work/second" "-DCONSUMER_EXAMPLES=$(IFS=';'; echo "${examples[*]}")" \
  "-DCONSUMER_COMPILED=$root/examples/minimal.cpp"
for file in "${examples[@]}"; do
  most=60
  case $(basename "$file") in
    own_layer.cpp) most=80 ;;
    own_network.cpp) most=40 ;;
  esac
  [ "$(wc -l < "$file")" -le $most ] || fail "$file is longer than $most lines"
  check_own_parts "$work/installed/$(basename "$file" .cpp)"
done
# The library has the training; the program prints what README shows, and one for other registers does not link.
"$work/installed/compiled_minimal" > "$work/printed"
sed -n '/^prints$/,/^Another seed/p' "$root/README.md" | sed '1,3d' | sed '/^```$/,$d' > "$work/shown"
diff "$work/shown" "$work/printed" || fail "compiled_minimal prints something else than README.md shows"
object=$(find "$work/installed" -path '*compiled_minimal*' -name 'minimal.cpp.o')
[[ $(nm -C --undefined-only "$object") = *'sheafnn::train<'* ]] || fail "compiled_minimal compiled the training again"
if [ "$(uname -m)" = x86_64 ]; then
  if cmake --build "$work/installed" --target other_registers > "$work/log" 2>&1; then
    fail "a program for registers that sheafnn::models was not compiled for was linked"
  fi
  [[ $(cat "$work/log") = *compiled_models_for_registers_of* ]] || fail "other_registers: $(tail -n 3 "$work/log")"
fi
# Here the library's headers are not the system's: -O3 warns of what is wrong in them, and of what only looks so.
consume subdirectory -O3 "-DSHEAFNN_SOURCE=$root"
if cmake --build "$work/subdirectory" --target sheafnn_tests > /dev/null 2>&1; then
  echo "subdirectory: the library's own tests are part of the consumer's project"
  exit 1
fi

# Without zlib the core is all there is, here and installed; and a user may prefer OpenMP's threads.
install_to "$work/core" -DCMAKE_DISABLE_FIND_PACKAGE_ZLIB=ON
consume installed_core -Og "-DCMAKE_PREFIX_PATH=$work/core" -DCONSUMER_IO=OFF -DSHEAFNN_OPENMP=ON
if cmake -S "$root/tests/consumer" -B "$work/no_io" "-DCMAKE_PREFIX_PATH=$work/core" > "$work/log" 2>&1; then
  echo "installed_core: component io found although it was not installed"
  exit 1
fi
echo "an installed copy and a subdirectory work"
