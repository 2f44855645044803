#!/usr/bin/env bash
# clang-tidy and cppcheck over the library's headers; a finding that is not among the exceptions ends it with status 1.
# The programs and, with nanobind, the Python package are searched for values that are used after they were moved, also where only
# the order of a call's arguments decides: g++ and Clang take different ones.
# usage: check_sources.sh
# clang-tidy sees the headers through tests/checkers/*.cpp, with the checks of .clang-tidy; cppcheck sees each header
# alone, with the exceptions of tests/checkers/cppcheck.txt. CPPFLAGS says where Eigen is.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
read -r -a include_flags <<< "${CPPFLAGS:--isystem /usr/include/eigen3}"
tidy=$(compgen -c clang-tidy- | grep -E '^clang-tidy-[0-9]+$' | sort -V | head -n 1 || true)
: "${tidy:=clang-tidy}"
for tool in "$tidy" cppcheck; do
  command -v "$tool" > /dev/null || { echo "$tool is missing (Debian: apt-get install clang-tidy cppcheck)" >&2; exit 1; }
done
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
read -r -a mpi_flags <<< "$(mpicxx --showme:compile 2> /dev/null || true)"
for file in tests/checkers/*.cpp; do
  if [ "$(basename "$file")" = distributed.cpp ] && [ ${#mpi_flags[@]} -eq 0 ]; then
    echo "$tidy: $(basename "$file"): left out, there is no Open MPI"
    continue
  fi
  if "$tidy" --quiet --config-file=.clang-tidy "$file" -- -std=c++20 -Iinclude "${include_flags[@]}" "${mpi_flags[@]}" > "$log" 2>&1; then
    echo "$tidy: $(basename "$file"): no finding"
  else
    grep -E 'error:|warning:' "$log" | sort -u
    status=1
  fi
done
python_flags=$(python3 -c 'import nanobind, sysconfig
print("-isystem", nanobind.include_dir(), "-isystem", sysconfig.get_paths()["include"])' 2> /dev/null || true)
read -r -a python_flags <<< "$python_flags"
files=(examples/*.cpp examples/*/*.cpp)
if [ ${#python_flags[@]} -gt 0 ]; then
  files+=(python/src/*.cpp python/src/torch/*.cpp)
else
  echo "$tidy: python/src: left out, there is no nanobind"
fi
moved=0
for file in "${files[@]}"; do
  case $(basename "$file") in
    train_mpi.cpp) continue ;;  # includes what CMake writes
    minimal_mpi.cpp | graph_folder.cpp) [ ${#mpi_flags[@]} -gt 0 ] || continue ;;
  esac
  "$tidy" --quiet '--checks=-*,bugprone-use-after-move' '--header-filter=.*' "$file" -- -std=c++20 -Iinclude -Iexamples -Ipython/src \
    '-DSHEAFNN_BUILT_FOR=""' \
    "${include_flags[@]}" "${python_flags[@]}" "${mpi_flags[@]}" > "$log" 2>&1 || true
  if grep -E 'bugprone-use-after-move|error:' "$log"; then moved=1; fi
done
if [ $moved -eq 0 ]; then echo "$tidy: ${#files[@]} files of programs and bindings: nothing is used after it was moved"; else status=1; fi
mapfile -t headers < <(cd include && find sheafnn -name '*.hpp' | sort)
if (cd include && cppcheck --std=c++20 --language=c++ --enable=warning,performance,portability --quiet --error-exitcode=1 \
  -D__GNUC__=12 -D__x86_64__ -U__CUDACC__ -I . --suppressions-list="$root/tests/checkers/cppcheck.txt" \
  "${headers[@]}") > "$log" 2>&1; then
  echo "cppcheck: ${#headers[@]} headers: no finding"
else
  cat "$log"
  status=1
fi
exit $status
