/// \file
/// All layers of the library as kinds of one model, and the networks named after them. LibraryLayers of bsnn.hpp leaves
/// most of them out, since each kind costs compile time. The option `layer` chooses among the kinds of a model:
///
///     #include <sheafnn/every_layer.hpp>
///     sheafnn::SheafAttention<sheafnn::SpecialOrthogonal<3>> model({.features = 34, .channels = 16, .classes = 2});
///     sheafnn::AnyBsnn<sheafnn::Diagonal<3>> wave({.features = 34, .classes = 2, .layer = sheafnn::LayerForm::wave});
#pragma once

#include <concepts>

#include "sheafnn/bsnn.hpp"
#include "sheafnn/layers/attention_layer.hpp"
#include "sheafnn/layers/copresheaf_layer.hpp"
#include "sheafnn/layers/directed_layer.hpp"
#include "sheafnn/layers/mixing_layer.hpp"

namespace sheafnn {

/// The kinds of all layers.
using EveryLayer = LayerKinds<layers::DiffusionLayer, layers::PolynomialDiffusionLayer,
                              layers::InitialResidualLayer, layers::ConvolutionLayer, layers::WaveLayer,
                              layers::AttentionLayer, layers::CopresheafLayer, layers::DirectedLayer>;

/// Bsnn with all kinds of layers; the option `layer` chooses one.
template <RestrictionMapFamily Family, std::floating_point S = float>
using AnyBsnn = SheafModel<Family, DefaultPosterior<Family>, S, EveryLayer>;
/// Nsd with all kinds of layers.
template <RestrictionMapFamily Family, std::floating_point S = float>
using AnyNsd = SheafModel<Family, PointMass<Family>, S, EveryLayer>;
/// Snn with all kinds of layers.
template <RestrictionMapFamily Family, std::floating_point S = float>
using AnySnn = SheafModel<Family, GivenMaps<Family>, S, EveryLayer>;
/// Bgsnn with all kinds of layers.
template <RestrictionMapFamily Family, std::floating_point S = float>
using AnyBgsnn = SheafModel<Family, AroundGiven<Family>, S, EveryLayer>;

/// Sheaf convolution, X' = ELU((I − Δ)(I ⊗ A) X Bᵀ + b), with maps that are given as GivenMaps. math: "Convolutions and waves"
/// (3.43).
template <RestrictionMapFamily Family, std::floating_point S = float>
using SheafConvolution = SheafModel<Family, GivenMaps<Family>, S, LayerKinds<layers::ConvolutionLayer>>;
/// Neural sheaf propagation, a wave along learned maps: X' = 2X − X_before − ELU(Δ (I ⊗ A) X Bᵀ). math: "Convolutions and
/// waves" (3.44).
template <RestrictionMapFamily Family, std::floating_point S = float>
using SheafWave = SheafModel<Family, PointMass<Family>, S, LayerKinds<layers::WaveLayer>>;
/// Bayesian neural sheaf propagation: the maps have a learned distribution.
template <RestrictionMapFamily Family, std::floating_point S = float>
using BayesianSheafWave = SheafModel<Family, DefaultPosterior<Family>, S, LayerKinds<layers::WaveLayer>>;
/// Sheaf attention network: X' = ELU(M), where M averages the transported features of neighbours with weights of attention.
/// math: "Sheaf attention" (3.47).
template <RestrictionMapFamily Family, std::floating_point S = float>
using SheafAttention = SheafModel<Family, PointMass<Family>, S, LayerKinds<layers::AttentionLayer>>;
/// Bayesian sheaf attention network: the maps have a learned distribution.
template <RestrictionMapFamily Family, std::floating_point S = float>
using BayesianSheafAttention = SheafModel<Family, DefaultPosterior<Family>, S, LayerKinds<layers::AttentionLayer>>;
/// Copresheaf message passing network, X' = X + ELU((I ⊗ A) m Bᵀ + b) with m the mean of ρ_a X over neighbours.
/// math: "Copresheaves" (3.50).
template <RestrictionMapFamily Family, std::floating_point S = float>
using CopresheafNetwork = SheafModel<Family, PointMass<Family>, S, LayerKinds<layers::CopresheafLayer>>;
/// Bayesian copresheaf network: the maps have a learned distribution.
template <RestrictionMapFamily Family, std::floating_point S = float>
using BayesianCopresheafNetwork =
    SheafModel<Family, DefaultPosterior<Family>, S, LayerKinds<layers::CopresheafLayer>>;
/// Directed sheaf neural network: complex features, and a Laplacian with phases for the directions of arcs.
/// math: "Directed sheaves" (3.54).
template <RestrictionMapFamily Family, std::floating_point S = float>
using DirectedSheafNetwork = SheafModel<Family, PointMass<Family>, S, LayerKinds<layers::DirectedLayer>>;
/// Bayesian directed sheaf network: the maps have a learned distribution.
template <RestrictionMapFamily Family, std::floating_point S = float>
using BayesianDirectedSheafNetwork =
    SheafModel<Family, DefaultPosterior<Family>, S, LayerKinds<layers::DirectedLayer>>;

}  // namespace sheafnn
