#!/usr/bin/env bash
# The random words of random/stream.hpp through batteries of statistical tests: one stream, and neighbouring addresses
# (draws, seeds, epochs, layers and samples, purposes) interleaved, which is where counter-based numbers could fail.
# Prints a line for each, and keeps what the batteries say in build/accuracy.
#   dieharder (Debian: dieharder, installed where it is missing): its tests but the four that its authors call suspect
#   PractRand (http://pracrand.sourceforge.net, no Debian package): left out unless its RNG_test is found
# usage: streams.sh [BYTES]   of each stream for PractRand, as it writes them (default 16GB: some minutes a stream)
#   RNG_TEST   where RNG_test is (default: in PATH)
#   BATTERIES  practrand, dieharder (default: both)
#   STREAMS    which of one first draws seeds epochs layers purposes (default: all)
set -euo pipefail
bytes=${1:-16GB}
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
read -r -a streams <<< "${STREAMS:-one first draws seeds epochs layers purposes}"
bash scripts/install_dependencies.sh dieharder=dieharder
work=build/accuracy
mkdir -p "$work"
read -r -a include_flags <<< "${CPPFLAGS:--isystem /usr/include/eigen3}"
g++ -std=c++20 -O3 -march=native -Iinclude "${include_flags[@]}" benchmarks/accuracy/words.cpp -o "$work/words"

batteries=" ${BATTERIES:-practrand dieharder} "
rng_test=${RNG_TEST:-$(command -v RNG_test || true)}
if [[ $batteries != *" practrand "* ]]; then
  echo "PractRand: left out"
elif [ -n "$rng_test" ]; then
  for stream in "${streams[@]}"; do
    log=$work/practrand-$stream.txt
    # words ends when its reader does.
    { "$work/words" "$stream" 1 || true; } | "$rng_test" stdin32 -tlmin 1GB -tlmax "$bytes" > "$log"
    results=$(grep -oE 'all [0-9]+ test|and [0-9]+ test result|in [0-9]+ test result' "$log" | grep -oE '[0-9]+' | tail -n 1)
    anomalies=$(grep -cE 'unusual|suspicious|SUSPICIOUS|FAIL' "$log" || true)
    failures=$(grep -cE 'suspicious|SUSPICIOUS|FAIL' "$log" || true)
    echo "PractRand  $stream: $bytes, ${results:-?} results at the end, ${anomalies} unusual or worse at any size," \
         "${failures} suspicious or failed"
  done
else
  echo "PractRand: left out, no RNG_test found (set RNG_TEST to where it is)"
fi

if [[ $batteries != *" dieharder "* ]]; then exit 0; fi
# Test and size of its tuples.
tests=("0" "1" "2" "3" "4" "8" "9" "10" "11" "12" "13" "15" "16" "17" "100" "101" "102" "200 -n 4" "200 -n 8"
       "201 -n 2" "201 -n 5" "202 -n 5" "203 -n 0" "203 -n 7" "204" "205" "206" "207" "208" "209")
for stream in "${streams[@]}"; do
  log=$work/dieharder-$stream.txt
  : > "$log"
  for number in "${!tests[@]}"; do
    read -r -a options <<< "${tests[number]}"
    # A WEAK result, one in a hundred by chance, is tested on until it is one or the other (-Y 1).
    { "$work/words" "$stream" $((100 + number)) || true; } | dieharder -g 200 -d "${options[@]}" -Y 1 >> "$log" 2>&1
  done
  echo "dieharder  $stream: $(grep -c 'PASSED' "$log" || true) passed, $(grep -c 'WEAK' "$log" || true) weak," \
       "$(grep -c 'FAILED' "$log" || true) failed"
done
