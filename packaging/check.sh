#!/usr/bin/env bash
# Tries every package that needs no registry; README.md says which. usage: check.sh
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
if command -v ninja > /dev/null; then export CMAKE_GENERATOR=Ninja; fi  # otherwise CMake wants make

# usage: quietly COMMAND...; its output is shown only when it fails.
quietly() {
  if ! "$@" > "$work/log" 2>&1; then
    printf 'failed: %s\n' "$*"
    tail -n 30 "$work/log"
    exit 1
  fi
}
fail() {
  echo "$1"
  exit 1
}
# usage: compile NAME FLAG...: the small program, with these flags; runs it
compile() {
  local name=$1
  shift
  quietly "${CXX:-g++}" -std=c++20 -O1 "$root/packaging/minimal.cpp" -o "$name" "$@"
  quietly "./$name"
  grep -q "the Laplacian of constants" log || fail "$name: the program printed nothing"
}

version=$(sed -n 's/.*VERSION_STRING "\(.*\)"/\1/p' "$root/include/sheafnn/version.hpp")
grep -q "\"version\": \"$version\"" "$root/packaging/vcpkg/sheafnn/vcpkg.json" || fail "vcpkg.json: not version $version"
grep -q "^version: $version\$" "$root/CITATION.cff" || fail "CITATION.cff: not version $version"
grep -q "^## \[$version\]" "$root/CHANGELOG.md" || fail "CHANGELOG.md: no section [$version]"

quietly cmake -S "$root" -B build -DSHEAFNN_BUILD_TESTS=OFF -DSHEAFNN_BUILD_EXAMPLES=OFF -DSHEAFNN_BUILD_BENCHMARKS=OFF \
  -DCMAKE_INSTALL_PREFIX="$work/prefix"
quietly cmake --build build
quietly cmake --install build
for header in cuda.hpp batch/device_error.hpp batch/device_executor.hpp batch/device_queue.hpp; do
  [ ! -e "prefix/include/sheafnn/$header" ] || fail "$header is installed without CUDA"
done

if command -v pkg-config > /dev/null; then
  export PKG_CONFIG_PATH=$work/prefix/share/pkgconfig
  [ "$(pkg-config --modversion sheafnn)" = "$version" ] || fail "pkg-config: $(pkg-config --modversion sheafnn)"
  read -r -a flags <<< "$(pkg-config --cflags --libs sheafnn)"
  compile with_pkg_config "${flags[@]}"
  pkg-config --libs sheafnn-io | grep -q -- -lz || fail "pkg-config: sheafnn-io does not link zlib"
  echo "pkg-config: a program compiles and runs"
fi

# A component that is missing says why.
mkdir ask
cat > ask/CMakeLists.txt << 'END'
cmake_minimum_required(VERSION 3.21)
project(ask LANGUAGES CXX)
find_package(sheafnn REQUIRED COMPONENTS cuda)
END
if cmake -S ask -B ask/build "-DCMAKE_PREFIX_PATH=$work/prefix" > log 2>&1; then fail "component cuda was found"; fi
tr -s ' \n' ' ' < log | grep -q "component cuda: this copy was installed without it" ||
  fail "find_package(sheafnn COMPONENTS cuda) does not say why: $(tail -n 12 log)"
echo "find_package: a missing component says why"

# So does a level of processors that there is not.
for option in SHEAFNN_CPU_LEVEL SHEAFNN_CPU_LEVELS; do
  if cmake -S "$root" -B levels -DSHEAFNN_BUILD_TESTS=OFF -DSHEAFNN_BUILD_EXAMPLES=OFF -DSHEAFNN_BUILD_BENCHMARKS=OFF \
    -DSHEAFNN_PYTHON=ON "-D$option=x86-64-v9" > log 2>&1; then fail "$option=x86-64-v9 was accepted"; fi
  tr -s ' \n' ' ' < log | grep -q "$option: no level x86-64-v9; choose from x86-64;x86-64-v2;x86-64-v3;x86-64-v4" ||
    fail "$option=x86-64-v9: $(tail -n 12 log)"
  rm -r levels
done
echo "levels of processors: an unknown one is refused"

cp -r prefix/include installed  # to compare the archives with
quietly cmake --build build --target uninstall
left=$(find prefix -type f -o -name '*sheafnn*')
[ -z "$left" ] || fail "uninstall leaves $left"
echo "uninstall: nothing is left"

(cd build && quietly cpack)
archive=build/sheafnn-$version.tar.gz
deb=build/libsheafnn-dev_${version}_all.deb
[ -f "$archive" ] || fail "cpack: no $archive"
mkdir unpacked
tar -xzf "$archive" -C unpacked --strip-components=1
diff -r installed "$(dirname "$(find unpacked -type d -path '*include/sheafnn')")" > log || fail "$archive: $(head -n 5 log)"
find unpacked -name sheafnnConfig.cmake | grep -q . || fail "$archive has no sheafnnConfig.cmake"
echo "cpack: $(basename "$archive") has what was installed"
if command -v dpkg-deb > /dev/null; then
  [ -f "$deb" ] || fail "cpack: no $deb"
  dpkg-deb -x "$deb" debian
  diff -r installed debian/usr/include > log || fail "$deb: $(head -n 5 log)"
  dpkg-deb -f "$deb" Depends | grep -q libeigen3-dev || fail "$deb does not depend on Eigen"
  echo "cpack: $(basename "$deb") has what was installed"
fi

if command -v conan > /dev/null; then
  export CONAN_HOME=$work/conan
  quietly conan profile detect
  mkdir -p packaging/conan  # where the test program is built
  cp "$root/packaging/minimal.cpp" packaging
  cp -r "$root/packaging/conan/test_package" packaging/conan
  quietly conan create "$root/packaging/conan" --test-folder "$work/packaging/conan/test_package" \
    -o "&:system=True" -s compiler.cppstd=20
  grep -q "the Laplacian of constants" log || fail "conan: the test package did not run"
  echo "conan: the package is made and its test program runs"
else
  echo "conan: not at hand, not tried"
fi
# The tool alone fetches nothing: ports that are empty stand for the system's libraries.
if command -v vcpkg > /dev/null && [ -n "${VCPKG_ROOT-}" ]; then
  for port in boost-math boost-numeric-odeint eigen3 nlohmann-json zlib; do
    mkdir -p "ports/$port"
    printf '{"name": "%s", "version": "1"}\n' "$port" > "ports/$port/vcpkg.json"
    echo 'set(VCPKG_POLICY_EMPTY_PACKAGE enabled)' > "ports/$port/portfile.cmake"
  done
  export VCPKG_FORCE_SYSTEM_BINARIES=1 VCPKG_DISABLE_METRICS=1
  for features in "" "[core]"; do
    rm -rf vcpkg
    quietly vcpkg install "sheafnn$features" --classic "--overlay-ports=$root/packaging/vcpkg" "--overlay-ports=$work/ports" \
      "--x-install-root=$work/vcpkg" "--x-buildtrees-root=$work/trees" "--x-packages-root=$work/packages" --binarysource=clear
    if grep 'warning:' log; then fail "vcpkg: sheafnn$features has warnings"; fi
    diff -r installed/sheafnn "$(dirname "$(find vcpkg -path '*include/sheafnn/version.hpp')")" > log ||
      [ -n "$features" ] || fail "vcpkg: $(head -n 5 log)"
    quietly cmake -S "$root/tests/consumer" -B with_vcpkg "-DCMAKE_PREFIX_PATH=$(echo "$work"/vcpkg/*-*)" \
      "-DCONSUMER_IO=$([ -z "$features" ] && echo ON || echo OFF)"
    rm -r with_vcpkg
  done
  echo "vcpkg: the port installs and is found, with its feature io and without"
else
  echo "vcpkg: not at hand, not tried"
fi
echo "all packages work"
