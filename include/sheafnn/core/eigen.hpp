/// \file
/// Eigen/Core, included with false alarms of compilers switched off.
///
/// gcc 12 and 13 report the deliberately undefined operand inside their own AVX-512 intrinsics as uninitialised when Eigen's
/// functions are inlined (GCC bug 105593). The diagnostics in force where the intrinsics are included apply. nvcc reports
/// device annotations of defaulted functions (20011, 20012) and host functions that Eigen calls from constexpr ones (20014).
#pragma once

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#if defined(__NVCC__)
#pragma nv_diagnostic push
#pragma nv_diag_suppress 20011, 20012, 20014
#endif

#include <Eigen/Core>

#if defined(__NVCC__)
#pragma nv_diagnostic pop
#endif

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
