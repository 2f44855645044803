/// \file
/// Choices of the layers of sheaf hypergraph networks, and HypergraphSetting, what a layer is made from.
/// Source: Sheaf Hypergraph Networks (Duta et al.); math: "Hypergraphs".
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/names.hpp"
#include "sheafnn/layers/layer_setting.hpp"
#include "sheafnn/layers/sheaf_learner_options.hpp"

namespace sheafnn::layers {

/// What takes the place of the sheaf Laplacian Δ of a graph.
enum class HypergraphLaplacian : std::uint8_t {
  linear,     ///< S δᵀδ S, S = (D + I)^{-1/2}: every member against the mean of its hyperedge (SheafHyperGNN)
  published,  ///< the matrix formula of the paper, with scalar degrees and the identity on scaled features
  nonlinear   ///< the graph Laplacian of each hyperedge's most discrepant pair (SheafHyperGCN)
};
/// Its names, in the order of the enumeration.
[[nodiscard]] constexpr auto names_of(HypergraphLaplacian) {
  return std::array{"linear", "published", "nonlinear"};
}

/// How a layer ends.
enum class HypergraphUpdate : std::uint8_t {
  plain,    ///< X' = ELU(Y − ΔY + b), in the last layer without ELU, as published
  residual  ///< X' = (1 + tanh ε) ∘ X − ELU(ΔY + b), as the layers of networks on graphs
};
/// Its names, in the order of the enumeration.
[[nodiscard]] constexpr auto names_of(HypergraphUpdate) { return std::array{"plain", "residual"}; }

/// What the sheaf learner reads of the embeddings (d × f per node) of a node and a hyperedge.
enum class HypergraphLearner : std::uint8_t {
  concatenation,  ///< all coordinates, 2h values
  averaged        ///< the means over the d stalk coordinates, 2f values, as published
};
/// Its names, in the order of the enumeration.
[[nodiscard]] constexpr auto names_of(HypergraphLearner) { return std::array{"concatenation", "averaged"}; }

/// What a learner of this kind reads: the mean is a sum whose weights have the factor 1/d. Takes any kind.
[[nodiscard]] constexpr LearnerInput learner_input(HypergraphLearner learner) {
  return learner == HypergraphLearner::averaged ? LearnerInput::summed : LearnerInput::concatenation;
}

/// Options of a network that concern its layers.
struct HypergraphSetting {
  HypergraphLaplacian laplacian = HypergraphLaplacian::linear;
  HypergraphUpdate update = HypergraphUpdate::plain;
  bool mediators = false;  ///< of the non-linear Laplacian
  std::span<const double> projection =
      {};                          ///< r of the non-linear Laplacian, f values; empty: norms of all entries
  bool left = true, right = true;  ///< A, B
  bool bias = true;                ///< b
  bool last = false;               ///< the last layer, which ends without ELU if the update is plain
  Index coordinates = 0;           ///< d
  Index channels = 0;              ///< f

  /// The part that A, B and ε are declared by.
  [[nodiscard]] LayerSetting weights() const noexcept {
    return {.diffusion = {left, right, true, update == HypergraphUpdate::residual},
            .coordinates = coordinates,
            .channels = channels};
  }
};

}  // namespace sheafnn::layers

namespace sheafnn::detail {

/// The factor that makes means of what a learner of this shape reads as sums over stalk coordinates; otherwise 1. Takes any
/// shape.
template <class S>
[[nodiscard]] S mean_factor(const layers::SheafLearnerOptions& shape) {
  return shape.input == layers::LearnerInput::concatenation
             ? S(1)
             : static_cast<S>(shape.channels) / static_cast<S>(shape.inputs);
}

}  // namespace sheafnn::detail

namespace sheafnn {

using layers::HypergraphLaplacian, layers::HypergraphLearner, layers::HypergraphUpdate;

}  // namespace sheafnn
