#!/usr/bin/env bash
# Installs with apt what building sheafnn, its examples and its tests needs and this machine lacks (Debian, Ubuntu).
# Does nothing when everything is there, however it was installed.
# usage: install_dependencies.sh [--mpi] [--python] [--docs] [PACKAGE=COMMAND]...   with what the preset mpi, the Python
# package and the documentation's site need; further packages, each with a command that it provides
set -euo pipefail

with_mpi=no with_python=no with_docs=no
while [[ ${1:-} = -* ]]; do
  case $1 in
    --mpi) with_mpi=yes ;;
    --python) with_python=yes ;;
    --docs) with_docs=yes ;;
    *)
      echo "usage: install_dependencies.sh [--mpi] [--python] [--docs] [PACKAGE=COMMAND]..." >&2
      case $1 in -h | --help) exit 0 ;; *) exit 2 ;; esac
      ;;
  esac
  shift
done

have_command() { command -v "$1" > /dev/null; }
# usage: have_header HEADER; some distributions keep Eigen in a directory of its own, which CMake finds.
have_header() {
  have_command g++ && echo "#include <$1>" | g++ -E -x c++ -I/usr/include/eigen3 -I/usr/local/include/eigen3 - \
    > /dev/null 2>&1
}

missing=()
# usage: need PACKAGE TEST...
need() {
  local package=$1
  shift
  "$@" || missing+=("$package")
}
need g++ have_command g++
need cmake have_command cmake
need ninja-build have_command ninja
need libeigen3-dev have_header Eigen/Core
need libboost-math-dev have_header boost/math/constants/constants.hpp
need libboost-dev have_header boost/numeric/odeint.hpp
need zlib1g-dev have_header zlib.h
need nlohmann-json3-dev have_header nlohmann/json.hpp
need libcli11-dev have_header CLI/CLI.hpp
need doctest-dev have_header doctest/doctest.h
need librandom123-dev have_header Random123/philox.h
need libbenchmark-dev have_header benchmark/benchmark.h
if [ $with_mpi = yes ]; then
  need libopenmpi-dev have_command mpicxx
  need openmpi-bin have_command mpirun
  need libmetis-dev have_header metis.h
fi
have_python_part() { have_command python3 && python3 -c "$1" > /dev/null 2>&1; }
if [ $with_python = yes ]; then
  need python3-venv have_python_part "import ensurepip, venv"
  need python3-dev have_python_part "import os, sysconfig; os.stat(sysconfig.get_paths()['include'] + '/Python.h')"
fi
if [ $with_docs = yes ]; then
  need doxygen have_command doxygen
  need nodejs have_command node
  need libjs-katex test -f /usr/share/javascript/katex/katex.min.js
  need fonts-katex test -d /usr/share/fonts/truetype/katex
fi
for further in "$@"; do
  need "${further%%=*}" have_command "${further#*=}"
done

if [ ${#missing[@]} -eq 0 ]; then exit 0; fi
echo "installing ${missing[*]}"

give_up() {
  echo "cannot install ${missing[*]}: $1" >&2
  exit 1
}
have_command apt-get || give_up "there is no apt-get here; install them (names are Debian's) and try again"
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  have_command sudo || give_up "neither root nor sudo; install them and try again"
  as_root=(sudo)
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# An outdated package list only matters when the installation fails, and then apt says so.
"${as_root[@]}" apt-get update > "$log" 2>&1 || true
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}" \
  >> "$log" 2>&1 || give_up "apt-get says: $(grep '^E:' "$log" | tail -n 1)"
