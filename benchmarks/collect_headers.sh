#!/usr/bin/env bash
# Gathers what run_gpu.sh needs of other libraries, for a machine that has none of them: Eigen, doctest, what else
# the programs include (Boost, zlib), and zlib's static library. A few megabytes. Needs nvcc, no GPU.
# usage: collect_headers.sh FOLDER     FOLDER is made, and must be empty or made by this script
#   NVCC   compiler (default: nvcc, or /usr/local/cuda/bin/nvcc)
#   EIGEN  folder that contains Eigen/ (default /usr/include/eigen3)
set -euo pipefail

folder=${1:?usage: collect_headers.sh FOLDER}
mark=collected-by-sheafnn
if [ -e "$folder" ] && [ -n "$(ls -A "$folder")" ] && [ ! -e "$folder/$mark" ]; then
  echo "collect_headers.sh: $folder is not empty" >&2
  exit 2
fi
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
rm -rf "${folder:?}"/*
touch "$folder/$mark"
cd "$(dirname "${BASH_SOURCE[0]}")/.."
nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
eigen=${EIGEN:-/usr/include/eigen3}
if [ ! -d "$eigen/Eigen" ]; then echo "collect_headers.sh: EIGEN=$eigen has no Eigen/" >&2; exit 2; fi

# Eigen as a whole: which of its headers are read depends on the processor.
cp -rL "$eigen/Eigen" "$folder/Eigen"

# Everything else by the list of headers that the compiler reads. Headers of the compiler and of the CUDA
# Toolkit stay.
flags=(-std=c++20 -I include -I benchmarks -I tests -isystem "$eigen")
for file in tests/cuda/*.cu benchmarks/gpu/*.cu tests/test_golden{,2}.cpp; do
  [ -e "$file" ] || continue
  case $file in
    *.cu) "$nvcc" "${flags[@]}" --expt-relaxed-constexpr -M "$file" ;;
    *) "${CXX:-g++}" "${flags[@]}" -M "$file" ;;
  esac
done | tr -s ' \\' '\n\n' | sort -u > "$folder/$mark"
wanted='boost/|doctest/|nlohmann/|zlib\.h|zconf\.h'
grep -E "^/.*/include/([^/]*-linux-gnu/)?($wanted)" "$folder/$mark" | while read -r header; do
  name=$(sed -E "s#^/.*/include/([^/]*-linux-gnu/)?($wanted)#\\2#" <<< "$header")
  mkdir -p "$folder/$(dirname "$name")"
  cp -L "$header" "$folder/$name"
done
library=$("${CXX:-g++}" -print-file-name=libz.a)
if [ -f "$library" ]; then
  mkdir -p "$folder/lib"
  cp -L "$library" "$folder/lib/"
else
  echo "collect_headers.sh: no libz.a: the golden tests will need a zlib there" >&2
fi
du -sh "$folder"
