/// \file
/// The levels of x86-64 that this processor and its system support. Whoever includes it is compiled for every processor.
#pragma once

namespace programs {

/// Calls add(name) for each, the lowest first. As in cmake/sheafnnOwnTarget.cmake.
template <class Add>
void for_supported_levels(const Add& add) {
  add("x86-64");
  if (__builtin_cpu_supports("x86-64-v2")) add("x86-64-v2");
  if (__builtin_cpu_supports("x86-64-v3")) add("x86-64-v3");
  if (__builtin_cpu_supports("x86-64-v4")) add("x86-64-v4");
}

}  // namespace programs
