# shellcheck shell=bash
# Sourced by soak.sh and threads.sh, from the root of the sources. usage: build_trainings NAME FLAGS...; sets $trainings
build_trainings() {
  local name=$1 eigen
  shift
  eigen=$(pkg-config --cflags-only-I eigen3 2> /dev/null || echo -I/usr/include/eigen3)
  trainings=build/reliability/trainings_$name
  mkdir -p build/reliability
  # shellcheck disable=SC2086
  "${CXX:-g++}" -std=c++20 -march=native -Iinclude ${eigen//-I/-isystem} "$@" tests/reliability/trainings.cpp \
    -pthread -lz -o "$trainings"
}
