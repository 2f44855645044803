/// \file
/// Random rotations that many tests draw, declared here and compiled once; see shared_networks.hpp.
#pragma once

#if defined(SHEAFNN_SHARED_BY_TESTS)

#include "sheafnn/core/pack.hpp"
#include "sheafnn/rotation/centred_cayley.hpp"
#include "sheafnn/rotation/haar.hpp"

namespace shared {
using DoublePack = sheafnn::math::Pack<double, sheafnn::lanes<double>>;
using FloatPack = sheafnn::math::Pack<float, sheafnn::lanes<float>>;
}  // namespace shared

#define SHEAFNN_SHARED_ROTATION(mode, T, N)                                                                 \
  mode sheafnn::SquareMatrix<T, N> sheafnn::rotation::haar_rotation<T, N>(const Stream&, const word_of_t<T>&,         \
                                                                std::uint32_t);                             \
  mode sheafnn::SquareMatrix<T, N> sheafnn::rotation::centred_cayley_sample<T, N>(const Stream&, const word_of_t<T>&, \
                                                                        scalar_of_t<T>, std::uint32_t);
#define SHEAFNN_SHARED_ROTATIONS_OF(mode, T) \
  SHEAFNN_SHARED_ROTATION(mode, T, 2)        \
  SHEAFNN_SHARED_ROTATION(mode, T, 3)        \
  SHEAFNN_SHARED_ROTATION(mode, T, 4)        \
  SHEAFNN_SHARED_ROTATION(mode, T, 5)        \
  SHEAFNN_SHARED_ROTATION(mode, T, 8)
#define SHEAFNN_SHARED_ROTATIONS(mode)                  \
  SHEAFNN_SHARED_ROTATIONS_OF(mode, double)             \
  SHEAFNN_SHARED_ROTATIONS_OF(mode, float)              \
  SHEAFNN_SHARED_ROTATIONS_OF(mode, shared::DoublePack) \
  SHEAFNN_SHARED_ROTATIONS_OF(mode, shared::FloatPack)

SHEAFNN_SHARED_ROTATIONS(extern template)

#endif
