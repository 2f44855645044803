#!/usr/bin/env bash
# Prints the compiler for what is compiled once and runs for a moment: $CXX if it is set; otherwise Clang 19, which takes half of
# g++'s time for this library's templates, and which is installed where apt has it, with its linker; otherwise g++.
set -euo pipefail
compiler=clang++-19
if [ -n "${CXX:-}" ]; then
  compiler=$CXX
elif ! command -v "$compiler" > /dev/null; then
  bash "$(dirname "${BASH_SOURCE[0]}")/install_dependencies.sh" clang-19=$compiler lld-19=ld.lld-19 >&2 || compiler=g++
fi
echo "$compiler"
