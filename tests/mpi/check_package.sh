#!/usr/bin/env bash
# find_package(sheafnn COMPONENTS mpi): found in a copy that was installed with it, and a reason elsewhere.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
generator=()
if command -v ninja > /dev/null; then generator=(-G Ninja); fi

# usage: install_to PREFIX CMAKE_ARGUMENT...
install_to() {
  local prefix=$1
  shift
  cmake -S "$root" -B "$work/build" "${generator[@]}" -DSHEAFNN_BUILD_TESTS=OFF -DSHEAFNN_BUILD_EXAMPLES=OFF \
    -DSHEAFNN_BUILD_BENCHMARKS=OFF -DSHEAFNN_INSTALL=ON "$@" > "$work/log" 2>&1 &&
    cmake --install "$work/build" --prefix "$prefix" >> "$work/log" 2>&1 || { cat "$work/log"; exit 1; }
  rm -r "$work/build"
}
# usage: configure PREFIX CMAKE_ARGUMENT...; a project that wants the component
mkdir "$work/user"
cat > "$work/user/CMakeLists.txt" << 'PROJECT'
cmake_minimum_required(VERSION 3.21)
project(user LANGUAGES CXX)
find_package(sheafnn REQUIRED COMPONENTS mpi)
file(WRITE ${CMAKE_BINARY_DIR}/main.cpp "#include <sheafnn/distributed/metis.hpp>\nint main() { return 0; }\n")
add_executable(user ${CMAKE_BINARY_DIR}/main.cpp)
target_link_libraries(user PRIVATE sheafnn::mpi)
PROJECT
configure() {
  local prefix=$1
  shift
  rm -rf "$work/out"
  cmake -S "$work/user" -B "$work/out" "${generator[@]}" "-DCMAKE_PREFIX_PATH=$prefix" "$@" > "$work/log" 2>&1
}
# usage: refused TEXT PREFIX CMAKE_ARGUMENT...
refused() {
  local text=$1
  shift
  if configure "$@"; then
    echo "found although it should not be: $*"
    exit 1
  fi
  tr -s ' \n' ' ' < "$work/log" | grep -qF -- "$text" || { echo "no '$text':"; cat "$work/log"; exit 1; }
}

install_to "$work/without" -DSHEAFNN_MPI=OFF
if find "$work/without" -path '*distributed*' | grep -q .; then
  echo "headers for MPI are installed without it"
  exit 1
fi
refused "component mpi: this copy was installed without it; configure it with -DSHEAFNN_MPI=ON" "$work/without"
install_to "$work/with" -DSHEAFNN_MPI=ON
refused "component mpi: MPI or METIS is not found" "$work/with" -DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON
refused "component mpi: MPI or METIS is not found" "$work/with" -DCMAKE_DISABLE_FIND_PACKAGE_METIS=ON
configure "$work/with" || { cat "$work/log"; exit 1; }
cmake --build "$work/out" > "$work/log" 2>&1 || { cat "$work/log"; exit 1; }
"$work/out/user"
if cmake -S "$root" -B "$work/build" "${generator[@]}" -DSHEAFNN_BUILD_TESTS=OFF -DSHEAFNN_BUILD_EXAMPLES=OFF \
  -DSHEAFNN_BUILD_BENCHMARKS=OFF -DSHEAFNN_MPI=ON -DCMAKE_DISABLE_FIND_PACKAGE_METIS=ON > "$work/log" 2>&1; then
  echo "configured without METIS"
  exit 1
fi
tr -s ' \n' ' ' < "$work/log" | grep -qF "SHEAFNN_MPI needs METIS (Debian: libmetis-dev); not found" || { cat "$work/log"; exit 1; }
echo "the component mpi is found where it is, and otherwise says why not"
