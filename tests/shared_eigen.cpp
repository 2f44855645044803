// core/eigen.hpp goes before other parts of Eigen.
// clang-format off
#include "sheafnn/core/eigen.hpp"
#include "shared_eigen.hpp"
// clang-format on

SHEAFNN_SHARED_EIGEN(template)
