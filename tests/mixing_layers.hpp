/// \file
/// Models of convolutions, waves, copresheaves and attention, and of such layers among diffusion layers.
#pragma once

#include "sheafnn/bsnn/model.hpp"
#include "sheafnn/layers/attention_layer.hpp"
#include "sheafnn/layers/copresheaf_layer.hpp"
#include "sheafnn/layers/laplacian_layer.hpp"
#include "sheafnn/layers/mixing_layer.hpp"

namespace mixing_layers {

using namespace sheafnn;

/// The equation of a wave without A, B and ELU.
template <class T>
struct WaveEquation {
  static constexpr bool reads_before = true;
  template <class S>
  SHEAFNN_HD explicit WaveEquation(const S*) {}
  [[nodiscard]] SHEAFNN_HD T forward(const layers::LayerValues<T>& at) const {
    return at.x + (at.x - at.before) - at.z;
  }
  [[nodiscard]] SHEAFNN_HD layers::LayerValues<T> backward(const layers::LayerValues<T>&, const T& bar, T*) const {
    return {.x = bar + bar, .z = -bar, .before = -bar};
  }
};
template <class Family, class S>
using WaveByEquation = layers::LaplacianLayer<WaveEquation, Family, S>;

/// The option `layer` chooses between convolutions, waves, copresheaves and attention.
template <class Posterior>
using Mixing = SheafModel<
    typename Posterior::family, Posterior, double,
    LayerKinds<layers::ConvolutionLayer, layers::WaveLayer, layers::CopresheafLayer, layers::AttentionLayer>>;

template <class Family, class S>
using ThirdWave =
    LayerWhere<layers::WaveLayer<Family, S>, [](const layers::LayerSetting& of) { return of.number == 2; }>;
template <class Family, class S>
using FourthEquation =
    LayerWhere<WaveByEquation<Family, S>, [](const layers::LayerSetting& of) { return of.number == 3; }>;
template <class Family, class S>
using SeventhCopresheaf =
    LayerWhere<layers::CopresheafLayer<Family, S>, [](const layers::LayerSetting& of) { return of.number == 6; }>;
template <class Family, class S>
using NinthAttention =
    LayerWhere<layers::AttentionLayer<Family, S>, [](const layers::LayerSetting& of) { return of.number == 8; }>;
/// Layer 2 is a wave, layer 3 a wave by its equation, layer 6 a copresheaf, layer 8 has attention, and the others are
/// diffusion layers.
template <class Posterior>
using Among =
    SheafModel<typename Posterior::family, Posterior, double,
               LayerKinds<ThirdWave, FourthEquation, SeventhCopresheaf, NinthAttention, layers::DiffusionLayer>>;

}  // namespace mixing_layers
