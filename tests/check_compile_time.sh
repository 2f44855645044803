#!/usr/bin/env bash
# usage: check_compile_time.sh [COMPILER [OPTION...]]
# Prints the processor time and the memory that README's program takes to compile by README's command (the goal is 10 s and
# 600 MB), and fails above 25 s or 850 MB. A tool, not a test: both figures depend on the machine and the compiler.
# CPPFLAGS says where Eigen is.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
compiler=${1:-g++}
[ $# -eq 0 ] || shift
readme=$(sed -n 's/^`g++ \(-std=.*\) examples\/minimal\.cpp`.*/\1/p' README.md)
[ -n "$readme" ] || { echo "README.md has no command for examples/minimal.cpp" >&2; exit 1; }
read -r -a options <<< "$readme"
read -r -a include_flags <<< "${CPPFLAGS:-}"
program=$(mktemp)
trap 'rm -f "$program"' EXIT
python3 - "$compiler" "${options[@]}" "${include_flags[@]}" "$@" examples/minimal.cpp -o "$program" << 'END'
import resource, subprocess, sys
status = subprocess.run(sys.argv[1:]).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
if status == 0:
    seconds, megabytes = used.ru_utime + used.ru_stime, used.ru_maxrss / 1000
    print(f"{' '.join(sys.argv[1:-2])}: {seconds:.1f} s, {megabytes:.0f} MB")
    if seconds > 25 or megabytes > 850:
        status = 1
        print("takes more than 25 s or 850 MB", file=sys.stderr)
sys.exit(status)
END
