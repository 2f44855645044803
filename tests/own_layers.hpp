/// \file
/// Layers from outside the library: the one of examples/own_layer.cpp, and equations that use more of what there is.
#pragma once

#include <cmath>
#include <cstdio>
#include <sheafnn/batch.hpp>
#include <sheafnn/bsnn.hpp>
#include <vector>

// The example's main() is a template here, so that several tests have it and none compiles it.
#define main() unused_main(auto...)
namespace own_layer {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wreturn-type"
#include "../examples/own_layer.cpp"
#pragma GCC diagnostic pop
}  // namespace own_layer
#undef main

namespace own_layers {

using own_layer::Reaction, own_layer::ReactionLayer;
using sheafnn::Index;

/// X' = X − κ ∘ Δ X ∘ X + tanh(τ) ∘ X_1 ∘ X: it reads X_1, and κ is no tanh.
template <class T>
struct Anchor {
  static constexpr sheafnn::layers::EquationWeight weights[] = {{.name = "kappa", .initial = 0.3},
                                                        {.name = "tau", .tanh = true}};
  static constexpr bool reads_first = true;
  T kappa, tau;

  template <class S>
  SHEAFNN_HD explicit Anchor(const S* rates) : kappa(rates[0]), tau(rates[1]) {}
  [[nodiscard]] SHEAFNN_HD T forward(const sheafnn::layers::LayerValues<T>& at) const {
    return at.x - kappa * at.z * at.x + tau * at.first * at.x;
  }
  [[nodiscard]] SHEAFNN_HD sheafnn::layers::LayerValues<T> backward(const sheafnn::layers::LayerValues<T>& at,
                                                                    const T& bar, T* rates_bar) const {
    rates_bar[0] = -bar * at.z * at.x;
    rates_bar[1] = bar * at.first * at.x;
    return {bar * (T(1) - kappa * at.z + tau * at.first), -bar * kappa * at.x, bar * tau * at.x};
  }
};
template <class Family, class S>
using AnchorLayer = sheafnn::LayerWhere<sheafnn::layers::LaplacianLayer<Anchor, Family, S>,
                                        [](const sheafnn::layers::LayerSetting& of) { return of.number % 2 == 1; }>;

/// X' = X − Δ X / 2: without weights.
template <class T>
struct Average {
  template <class S>
  SHEAFNN_HD explicit Average(const S*) {}
  [[nodiscard]] SHEAFNN_HD T forward(const sheafnn::layers::LayerValues<T>& at) const { return at.x - T(0.5) * at.z; }
  [[nodiscard]] SHEAFNN_HD sheafnn::layers::LayerValues<T> backward(const sheafnn::layers::LayerValues<T>&,
                                                                    const T& bar, T*) const {
    return {.x = bar, .z = T(-0.5) * bar};
  }
};
template <class Family, class S>
using AverageLayer = sheafnn::layers::LaplacianLayer<Average, Family, S>;

template <class Posterior, class Kinds = sheafnn::LayerKinds<ReactionLayer>>
using ModelOf = sheafnn::SheafModel<typename Posterior::family, Posterior, double, Kinds>;
template <class Family>
using Reactions = ModelOf<sheafnn::PointMass<Family>>;
/// Layers 1, 3, … read X_1; the others are the library's.
template <class Posterior>
using Mixed = ModelOf<Posterior, sheafnn::LayerKinds<AnchorLayer, sheafnn::layers::DiffusionLayer>>;

}  // namespace own_layers
