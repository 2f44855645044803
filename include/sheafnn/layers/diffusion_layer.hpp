/// \file
/// DiffusionLayer: X' = (1 + tanh ε) ∘ X − ELU(Δ (I ⊗ A) dropout(X) Bᵀ), with its backward pass. X is n × d' × f,
/// A d' × d', B f × f, and ε has d' values. Source: paper, sheaf diffusion layer; math: "The model" (3.6),
/// "Backward pass of one diffusion step" (3.19).
#pragma once

#include "sheafnn/kernels/layer_end.hpp"
#include "sheafnn/layers/laplacian_layer.hpp"

namespace sheafnn::layers {

/// Buffers of one layer on one graph; A, B, ε: DiffusionWeights.
template <RestrictionMapFamily Family, class S>
class DiffusionLayer : public LaplacianLayer<kernels::DiffusionEnd, Family, S> {
 public:
  /// `graph` and `shape` must outlive the layer.
  ///
  /// \throws std::invalid_argument  a shape of another graph or family
  DiffusionLayer(const Graph& graph, const DiffusionShape<S>& shape, const LayerSetting& setting = {})
      : LaplacianLayer<kernels::DiffusionEnd, Family, S>(graph, shape, setting) {}
  DiffusionLayer(const Graph&&, const DiffusionShape<S>&, const LayerSetting& = {}) = delete;  // they would dangle
  DiffusionLayer(const Graph&, const DiffusionShape<S>&&, const LayerSetting& = {}) = delete;
};

}  // namespace sheafnn::layers
