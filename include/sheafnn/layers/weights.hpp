/// \file
/// Weights of the layers as typed views, with their declarations. T = const S is for reading, T = S for gradients of the
/// same shape. With T = ParameterSlot they are positions among the parameters of a model (nn/parameter_list.hpp).
///
/// Layers add to gradients, unless a layer says otherwise. Views that are empty stand for weights that an architecture
/// leaves out.
///
/// Unchecked: what declarations are given comes from options that a model has resolved.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/views.hpp"
#include "sheafnn/layers/layer_setting.hpp"
#include "sheafnn/layers/node_learner_options.hpp"
#include "sheafnn/layers/polynomial_basis.hpp"
#include "sheafnn/layers/sheaf_learner_options.hpp"
#include "sheafnn/nn/parameter_list.hpp"

namespace sheafnn::detail {

/// What files call a weight of a sheaf learner. \param part  the member, as SheafLearnerWeights::declare() names it
/// \param type  of edges, where each type has weights; else −1
[[nodiscard]] SHEAFNN_NOINLINE inline std::string learner_weight_name(std::string_view part, Index number,
                                                                      Index layer, Index type = -1) {
  // Without concat(), whose streams take longer than the rest of declaring the weights of a mini-batch's network.
  const auto numbered = [](const char* text, Index i) { return i < 0 ? std::string() : std::string(text).append(std::to_string(i)); };
  const std::string of = numbered(".", number) + numbered(".type", type), name(part);
  if (part == "edge") return name + of + ".weight";
  if (part == "mean" && number >= 0) return "sheaf" + of + ".weight";
  return "sheaf" + of + "." + name + numbered(".", part == "hidden" ? layer : -1) + ".weight";
}

/// The parameters of a filter with equal coefficients.
[[nodiscard]] SHEAFNN_NOINLINE inline InitialValues equal_coefficients(const PolynomialOptions& options) {
  return [options](const Stream&, std::span<double> values) {
    for (std::size_t j = 0; j < values.size(); ++j) {
      values[j] = initial_polynomial_parameter(options, static_cast<Index>(j));
    }
  };
}

}  // namespace sheafnn::detail

namespace sheafnn::layers {

/// y = x W + b. Layers read the weight by inputs, so W lies in × out, the transpose of what users and files see.
template <class T>
struct LinearWeights {
  WeightMatrix<T> weight;  ///< W, in × out
  WeightVector<T> bias;    ///< b, out

  /// \param first_bias  the initial b; null: like W uniform in ±1/√inputs
  SHEAFNN_NOINLINE void declare(ParameterList<T>& list, std::string_view name, Index outputs, Index inputs,
                                InitialValues first_bias = {}) {
    list.matrix(weight, {name, ".weight"}, outputs, inputs, uniform_values(inputs), true);
    list.vector(bias, {name, ".bias"}, {outputs}, first_bias ? std::move(first_bias) : uniform_values(inputs));
  }
};

/// Scale w and shift b of a normalisation, h values each.
template <class T>
struct NormWeights {
  WeightVector<T> scale, shift;

  SHEAFNN_NOINLINE void declare(ParameterList<T>& list, std::string_view name, Index width) {
    list.vector(scale, {name, ".weight"}, {width}, constant_values(1));
    list.vector(shift, {name, ".bias"}, {width}, {});
  }
  /// Declares the weights of the norm after a layer, with the list's suffix.
  void declare_after_layer(ParameterList<T>& list, Index width) {
    const std::string number = std::exchange(list.suffix, "");
    declare(list, "norm" + number, width);
    list.suffix = number;
  }
  /// \throws std::invalid_argument  vectors of another length
  void check(Index width) const {
    require_size(scale, width, "norm scale");
    require_size(shift, width, "norm shift");
  }
  /// Adds the derivatives of w, then of b. \throws std::invalid_argument  as above
  void add(const T* derivatives, Index width) const {
    check(width);
    for (Index c = 0; c < width; ++c) scale[static_cast<std::size_t>(c)] += derivatives[c];
    for (Index c = 0; c < width; ++c) shift[static_cast<std::size_t>(c)] += derivatives[width + c];
  }
};

/// The weights of a sheaf learner; all matrices are out × in. Inputs are 2h, or as many as SheafLearnerOptions::first_inputs().
template <class T>
struct SheafLearnerWeights {
  std::array<WeightMatrix<T>, max_learner_layers> hidden{};  ///< width × inputs, then width × width
  WeightMatrix<T> mean;                                      ///< mean outputs × (inputs or width)
  WeightMatrix<T> spread;  ///< spread outputs × (inputs or width), or labels × spread outputs
  WeightMatrix<T> edge;    ///< 1 × 2h
  std::vector<SheafLearnerWeights> more_types;  ///< the same for edges of the types 1, 2, …; these are of type 0

  /// The weights for edges of a type. Unchecked: there are some.
  [[nodiscard]] const SheafLearnerWeights& of_type(std::size_t type) const {
    return type == 0 ? *this : more_types[type - 1];
  }
  /// \param number  index of the sheaf, for a learner of its own; −1: one learner with a distribution
  SHEAFNN_NOINLINE void declare(ParameterList<T>& list, const SheafLearnerOptions& options, Index number) {
    declare_type(list, options, number, options.types > 1 ? 0 : -1);
    more_types.resize(static_cast<std::size_t>(options.types - 1));
    Index type = 0;
    for (SheafLearnerWeights& weights : more_types) weights.declare_type(list, options, number, ++type);
  }

 private:
  void declare_type(ParameterList<T>& list, const SheafLearnerOptions& options, Index number, Index type) {
    const auto add = [&](WeightMatrix<T>& weight, const char* part, Index rows, Index columns, Index layer = 0) {
      list.matrix(weight, detail::learner_weight_name(part, number, layer, type), rows, columns,
                  uniform_values(columns));
    };
    if (options.labels > 0) {
      list.matrix(spread, "sheaf.dispersion", options.labels, options.spread,
                  constant_values(options.first_dispersion));
      return;
    }
    Index inputs = options.first_inputs();
    for (Index k = 0; k < options.hidden_layers; ++k) {
      add(hidden[static_cast<std::size_t>(k)], "hidden", options.width, inputs, k);
      inputs = options.width;
    }
    if (options.mean > 0) add(mean, "mean", options.mean, inputs);
    if (options.spread > 0) add(spread, "var", options.spread, inputs);
    if (options.edge_weights) add(edge, "edge", 1, 2 * options.inputs);
  }
};

/// The weights of a sheaf source: its own encoder, if it has one, and one learner, or one per sheaf.
template <class T>
struct SheafSourceWeights {
  LinearWeights<T> encoder;
  std::span<const SheafLearnerWeights<T>> learners;
};

/// The weights of a diffusion layer, X' = (1 + tanh ε) ∘ X − ELU(Δ (I ⊗ A) X Bᵀ).
template <class T>
struct DiffusionWeights {
  WeightMatrix<T> left;     ///< A, d' × d'
  WeightMatrix<T> right;    ///< B, f × f
  WeightVector<T> epsilon;  ///< ε, d'

  /// A = I, B random orthogonal, ε = 0.
  SHEAFNN_NOINLINE void declare(ParameterList<T>& list, const LayerSetting& of) {
    const DiffusionOptions& options = of.diffusion;
    const Index d = of.coordinates, f = of.channels;
    if (options.left) list.matrix(left, "left", d, d, identity_values(d));
    if (options.right) list.matrix(right, "right", f, f, orthogonal_values(f));
    if (options.residual) list.vector(epsilon, "eps", {d, 1}, {});
  }
  /// \throws std::invalid_argument  a weight of another shape
  SHEAFNN_NOINLINE void check(const LayerSetting& of) const {
    const Index d = of.coordinates, f = of.channels;
    if (of.diffusion.left) require_array(left, d, d, "left weights");
    if (of.diffusion.right) require_array(right, f, f, "right weights");
    if (of.diffusion.residual) require_size(epsilon, d, "epsilon");
  }
};
/// The weights of a layer that mixes features and adds a bias to each channel. \tparam T const S, S or ParameterSlot
template <class T>
struct BiasedWeights {
  DiffusionWeights<T> mixing;  ///< A and B; no ε
  WeightVector<T> bias;        ///< b, f values; empty without

  /// A = I, B random orthogonal, b = 0.
  SHEAFNN_NOINLINE void declare(ParameterList<T>& list, LayerSetting of, bool has_bias = true) {
    of.diffusion.residual = false;  // other layers of the network may have ε
    mixing.declare(list, of);
    if (has_bias) list.vector(bias, "bias", {of.channels}, {});
  }
  /// \throws std::invalid_argument  a weight of another shape
  SHEAFNN_NOINLINE void check(const LayerSetting& of, bool has_bias = true) const {
    mixing.check(of);
    if (has_bias) require_size(bias, of.channels, "bias");
  }
};

/// The weights of a directed layer: A and B of the real part with ε of both parts. A' and B' of the imaginary part may be the same.
/// \tparam T const S, S or ParameterSlot
template <class T>
struct DirectedWeights {
  DiffusionWeights<T> real, imaginary;
  WeightVector<T> concentration;  ///< of random phases, one value before its activation; empty without

  /// A = I, B half of a random orthogonal matrix, ε = 0, a concentration of 0.908.
  SHEAFNN_NOINLINE void declare(ParameterList<T>& list, const LayerSetting& of) {
    const Index d = of.coordinates, f = of.channels;
    const auto add = [&](DiffusionWeights<T>& weights, const char* left, const char* right) {
      if (of.diffusion.left) list.matrix(weights.left, left, d, d, identity_values(d));
      if (of.diffusion.right) list.matrix(weights.right, right, f, f, scaled_values(orthogonal_values(f), 0.5));
    };
    add(real, "left", "right");
    if (of.directed.imaginary_weights) add(imaginary, "imag_left", "imag_right");
    list.vector(real.epsilon, "eps", {d, 1}, {});
    if (!of.directed.imaginary_weights) imaginary = real;
    if (of.directed.random) list.vector(concentration, "phase.concentration", {1}, {});
  }
  /// \throws std::invalid_argument  a weight of another shape
  SHEAFNN_NOINLINE void check(LayerSetting of) const {
    of.diffusion.residual = true;
    real.check(of);
    of.diffusion.residual = false;
    imaginary.check(of);
    if (of.directed.random) require_size(concentration, 1, "concentration of phases");
  }
};

/// DiffusionWeights as matrices of its own, or their derivatives; converts to views.
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

/// What a filter has learned, the same for all layers. \tparam T const S or S
template <class T>
struct FilterWeights {
  WeightVector<T> theta;  ///< K + 1 values, see Polynomial
  WeightVector<T> skip;   ///< α, one value; empty without the high-pass term

  /// Equal coefficients, α = 0 (initial_polynomial_parameter()).
  SHEAFNN_NOINLINE void declare(ParameterList<T>& list, const PolynomialOptions& options) {
    if (!options.active()) return;
    list.vector(theta, "poly.logits", {options.degree + 1}, detail::equal_coefficients(options));
    if (options.skip != HighPassSkip::off) list.vector(skip, "poly.skip", {1}, {});
  }
};

/// Weights of a convolution, all in × out.
template <class T>
struct SageWeights {
  LinearWeights<T> neighbour;   ///< W and b
  WeightMatrix<T> self;         ///< V
  LinearWeights<T> projection;  ///< W_p, in × in, and b_p; empty without

  /// \param first_bias  the initial b, as in LinearWeights
  void declare(ParameterList<T>& list, const std::string& name, Index outputs, Index inputs, bool projected,
               InitialValues first_bias) {
    neighbour.declare(list, name + ".neighbour", outputs, inputs, std::move(first_bias));
    list.matrix(self, name + ".self.weight", outputs, inputs, uniform_values(inputs), true);
    if (projected) projection.declare(list, name + ".projection", inputs, inputs);
  }
};

/// Weights of a learner: the two layers of mlp, or the convolutions with the norms that follow all but the last.
template <class T>
struct NodeLearnerWeights {
  LinearWeights<T> hidden, output;
  std::vector<SageWeights<T>> convolutions;
  std::vector<NormWeights<T>> norms;

  /// \param raised  indices of outputs whose bias starts at a value of its own, and that value
  void declare(ParameterList<T>& list, const std::string& name, const NodeLearnerOptions& options,
               const std::vector<std::pair<Index, double>>& raised) {
    const Index g = options.width;
    if (options.kind == NodeLearnerKind::mlp) {
      hidden.declare(list, name + ".hidden", g, options.inputs);
      output.declare(list, name + ".output", options.outputs, g, replaced_values(uniform_values(g), raised));
      return;
    }
    const bool projected = options.kind == NodeLearnerKind::sage_projected;
    convolutions.resize(static_cast<std::size_t>(options.layers));
    if (!projected) norms.resize(convolutions.size() - 1);
    for (std::size_t k = 0; k < convolutions.size(); ++k) {
      const bool last = k + 1 == convolutions.size();
      const std::string of = options.layers == 1 ? name : detail::concat(name, ".", k);
      const Index in = k == 0 ? options.inputs : g;
      convolutions[k].declare(list, of, last ? options.outputs : g, in, projected,
                              last ? replaced_values(uniform_values(in), raised) : InitialValues());
      if (!last && !projected) norms[k].declare(list, of + ".norm", g);
    }
  }
};

}  // namespace sheafnn::layers
