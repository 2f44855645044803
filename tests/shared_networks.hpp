/// \file
/// Parts of networks that many tests use: declared here and compiled once, in shared_networks*.cpp. Most of a test's
/// compilation would go into copies of them, which the linker drops. Tests use other networks alike; they are only
/// slower to compile.
#pragma once

#if defined(SHEAFNN_SHARED_BY_TESTS)  // where the tests are linked with them (CMakeLists.txt)

#include "models/shared.hpp"
#include "sheafnn/layers/diffusion_layer.hpp"
#include "sheafnn/layers/point_source.hpp"
#include "sheafnn/layers/polynomial_diffusion_layer.hpp"
#include "sheafnn/layers/variational_source.hpp"
#include "sheafnn/posterior/default_posterior.hpp"
#include "sheafnn/sheaf/families.hpp"

// Below, `mode` is `extern template` or `template`.

/// What networks of a family have.
#define SHEAFNN_SHARED_NETWORK(mode, Family, S)                     \
  mode class sheafnn::layers::SheafStack<sheafnn::Family, S>;               \
  mode class sheafnn::layers::LaplacianLayer<sheafnn::kernels::DiffusionEnd, sheafnn::Family, S>; \
  mode class sheafnn::layers::PolynomialDiffusionLayer<sheafnn::Family, S>; \
  mode class sheafnn::layers::PointSource<sheafnn::Family, S>;
#define SHEAFNN_SHARED_LEARNED_NETWORK(mode, Family, S) \
  SHEAFNN_SHARED_NETWORK(mode, Family, S)               \
  mode class sheafnn::layers::VariationalSource<sheafnn::DefaultPosterior<sheafnn::Family>, S>;

#define SHEAFNN_SHARED_IDENTITY(mode)               \
  SHEAFNN_SHARED_NETWORK(mode, Identity<2>, double) \
  SHEAFNN_SHARED_NETWORK(mode, Identity<3>, double) \
  SHEAFNN_SHARED_NETWORK(mode, Identity<3>, float)
#define SHEAFNN_SHARED_LEARNED(mode, Family)              \
  SHEAFNN_SHARED_LEARNED_NETWORK(mode, Family<1>, double) \
  SHEAFNN_SHARED_LEARNED_NETWORK(mode, Family<2>, double) \
  SHEAFNN_SHARED_LEARNED_NETWORK(mode, Family<3>, double) \
  SHEAFNN_SHARED_LEARNED_NETWORK(mode, Family<4>, double) \
  SHEAFNN_SHARED_LEARNED_NETWORK(mode, Family<5>, double) \
  SHEAFNN_SHARED_LEARNED_NETWORK(mode, Family<2>, float)  \
  SHEAFNN_SHARED_LEARNED_NETWORK(mode, Family<3>, float)

SHEAFNN_SHARED_BY_MODELS(extern template, double)
SHEAFNN_SHARED_IDENTITY(extern template)
SHEAFNN_SHARED_LEARNED(extern template, Diagonal)
SHEAFNN_SHARED_LEARNED(extern template, SpecialOrthogonal)
SHEAFNN_SHARED_LEARNED(extern template, GeneralLinear)

#endif
