/// \file
/// Weights of the layers as typed views; with T = const S for reading, with T = S for gradients of the same shape.
///
/// Gradients of layers add to what is there, unless a layer says otherwise. Views that are empty stand for weights
/// that an architecture leaves out.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "sheafnn/core/views.hpp"

namespace sheafnn {

/// y = x W + b. Layers read the weight by inputs, so W lies in × out, the transpose of what users and files see.
template <class T>
struct LinearWeights {
  MatrixView<T> weight;  ///< W, in × out
  std::span<T> bias;     ///< b, out
};

/// Of a sheaf learner; all matrices out × in. Inputs are 2h, or as many as SheafLearnerOptions::first_inputs().
template <class T>
struct SheafLearnerWeights {
  static constexpr int max_hidden_layers = 8;
  std::array<MatrixView<T>, max_hidden_layers> hidden{};  ///< width × inputs, then width × width
  MatrixView<T> mean;                                     ///< mean outputs × (inputs or width)
  MatrixView<T> spread;                                   ///< spread outputs × (inputs or width)
  MatrixView<T> edge;                                     ///< 1 × 2h
};

/// Of a sheaf source: an encoder of its own, if it has one, and one learner, or one per sheaf.
template <class T>
struct SheafSourceWeights {
  LinearWeights<T> encoder;
  std::span<const SheafLearnerWeights<T>> learners;
};

/// Of a diffusion layer, X' = (1 + tanh ε) ∘ X − ELU(Δ (I ⊗ A) X Bᵀ).
template <class T>
struct DiffusionWeights {
  MatrixView<T> left;    ///< A, d' × d'
  MatrixView<T> right;   ///< B, f × f
  std::span<T> epsilon;  ///< ε, d'
};
/// The same as matrices of its own, or their derivatives; converts to views.
template <class S>
struct DiffusionParameters {
  Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> left;   ///< A, d' × d'; 0 × 0 without
  Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> right;  ///< B, f × f; 0 × 0 without
  Eigen::Matrix<S, Eigen::Dynamic, 1> epsilon;                              ///< ε, d'

  operator DiffusionWeights<const S>() const {  // NOLINT: a view of these weights is these weights
    return {MatrixView(left), MatrixView(right), {epsilon.data(), static_cast<std::size_t>(epsilon.size())}};
  }
  operator DiffusionWeights<S>() {  // NOLINT
    return {MatrixView(left), MatrixView(right), {epsilon.data(), static_cast<std::size_t>(epsilon.size())}};
  }
};

}  // namespace sheafnn
