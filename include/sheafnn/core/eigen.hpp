/// \file
/// Eigen/Core, included with one compiler's false alarm switched off.
///
/// gcc 12 and 13 report the deliberately undefined operand inside their own AVX-512 intrinsics as uninitialised when
/// Eigen's functions are inlined (GCC bug 105593); the diagnostics in force where the intrinsics are included decide.
#pragma once

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <Eigen/Core>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
