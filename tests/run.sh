#!/usr/bin/env bash
# Installs what is missing, builds the tests and what they need into build/tests, and runs them. The last line is
# "N passed, M failed": test cases, and one for each check that is a program or a script. Arguments go to cmake. A new build takes
# the compiler of scripts/fast_compiler.sh; CXX=g++ bash tests/run.sh takes another one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

give_up() {
  echo "$1"
  echo "0 passed, 1 failed"
  exit 1
}
bash scripts/install_dependencies.sh --mpi gnuplot-nox=gnuplot python3-numpy=f2py3 || give_up "dependencies are missing"
[ -f build/tests/CMakeCache.txt ] || export CXX=$(bash scripts/fast_compiler.sh)
cmake --preset tests "$@" || give_up "cmake failed"
# Two compilers a processor, as ninja would run, take a tenth longer in all. Large pages save g++ two per cent.
GLIBC_TUNABLES=${GLIBC_TUNABLES-glibc.malloc.hugetlb=1} cmake --build --preset tests --parallel "$(nproc)" || give_up "the build failed"

log=build/tests/Testing/Temporary/LastTest.log
rm -f "$log"
status=0
ctest --preset tests --parallel "$(nproc)" || status=$?
[ -f "$log" ] || give_up "ctest failed"

# An entry of CTest counts as its test cases when doctest reports them, and as one otherwise. One failure more is a
# program that reports no failed case and fails nevertheless (a crash, a sanitizer's complaint), or that ran no case.
read -r passed failed < <(awk '
  /^[0-9]+\/[0-9]+ Testing: / { cases_passed = cases_failed = 0; reported = 0 }
  /^\[doctest\] test cases:/ {
    split($0, part, "|")
    cases_passed = part[2] + 0
    cases_failed = part[3] + 0
    reported = 1
  }
  /^Test Passed\.$/ {
    passed += reported ? cases_passed : 1
    failed += reported && cases_passed == 0
  }
  /^Test Failed\.$/ {
    passed += cases_passed
    failed += cases_failed > 0 ? cases_failed : 1
  }
  END { print passed + 0, failed + 0 }
' "$log")
if [ "$status" -ne 0 ] && [ "$failed" -eq 0 ]; then failed=1; fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
