#!/usr/bin/env bash
# usage: check_benchmarks.sh [COMPILER]
# Do the benchmarks still compile? Checks their syntax only: preset tests does not build them, and those in Python need
# packages. Is every report that the pages name in the archive of docs/results, and readable? Exit code 77: there is no Google Benchmark. CPPFLAGS says where Eigen is.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
read -r -a include_flags <<< "${CPPFLAGS:--isystem /usr/include/eigen3}"
command=("${1:-g++}" -std=c++20 -fsyntax-only -Wall -Wextra -Wpedantic -Wconversion -Werror
  -Iinclude -Iexamples -Ibenchmarks "${include_flags[@]}")
python3 - benchmarks/*.py benchmarks/accuracy/*.py benchmarks/gpu/*/*.py benchmarks/*.json << 'END'
import json, sys
failed = False
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as file:
        try:
            json.load(file) if path.endswith(".json") else compile(file.read(), path, "exec")
        except (SyntaxError, ValueError) as error:
            print(f"{path} does not compile: {error}")
            failed = True
sys.exit(failed)
END
python3 - << 'END'
import fnmatch, json, pathlib, re, sys, tarfile
archive = "docs/results/reports.tar.xz"
with tarfile.open(archive) as reports:
    names = reports.getnames()
    for name in names:
        if name.endswith(".json"):
            json.load(reports.extractfile(name))
named = [(page, name) for page in sorted(pathlib.Path("docs").rglob("*.md"))
         for name in re.findall(r"`((?:search|device|uncertainty|minesweeper)[-/][^` ]*\.(?:json|csv))`", page.read_text())]
missing = [f"{page}: {archive} has no {name}" for page, name in named if not fnmatch.filter(names, name)]
if missing or not named:
    sys.exit("\n".join(missing) or f"the pages name no file of {archive}")
END
if ! echo '#include <benchmark/benchmark.h>' | "${command[@]}" -x c++ - 2> /dev/null; then
  echo "no Google Benchmark"
  exit 77
fi
failed=0
# Of the GPU's benchmarks, the ones that name kernels: on the host executor.
for file in benchmarks/*.cpp benchmarks/gpu/kernels{,_special_orthogonal}.cu; do
  if ! output=$("${command[@]}" -x c++ "$file" 2>&1); then
    printf '%s does not compile:\n%s\n' "$file" "$(grep -E 'error|warning' <<< "$output" | head -n 10)"
    failed=1
  fi
done
[ $failed -eq 0 ] && echo "all benchmarks compile"
