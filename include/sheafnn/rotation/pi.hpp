/// \file
/// π, for angles of rotations.
#pragma once

namespace sheafnn::detail {

inline constexpr double pi = 3.1415926535897932384626433832795;

}  // namespace sheafnn::detail
