/// \file
/// PairScores: K scores of pairs {u, v} of nodes from rows y_u and y_v of C values, with the backward pass,
///
///     s_e = M φ_e + b,   dot: φ_e = y_u ∘ y_v,   bilinear: φ_ek = y_uᵀ (W_k + W_kᵀ)/2 y_v with M = I,
///     energy: φ_ec = w_e² Σ_i (F_u y_u − F_v y_v)²_ic, the energy of channel c (layers/pair_sheaf.hpp).
///
/// With a temperature τ (K = 1) M has the entries 1/τ of dot, −1/τ of energy; without, M is learned, and bilinear has
/// neither. Scores do not depend on the order of u and v. math: "Links" (10.2) to (10.4).
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/names.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/core/tile.hpp"
#include "sheafnn/core/views.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/nn/dense.hpp"
#include "sheafnn/nn/parameter_list.hpp"

namespace sheafnn::layers {

/// The options of a score; see the file comment.
enum class PairScore { dot, bilinear, energy };
/// Its names, in the order of the enumeration.
[[nodiscard]] constexpr auto names_of(PairScore) { return std::array{"dot", "bilinear", "energy"}; }

/// Sizes of scores.
struct PairScoreOptions {
  PairScore score = PairScore::dot;
  Index outputs = 1;         ///< C, values per node
  Index coordinates = 1;     ///< d of energy; divides C
  Index scores = 1;          ///< K
  bool temperature = false;  ///< with K = 1

  friend bool operator==(const PairScoreOptions&, const PairScoreOptions&) = default;
  /// P, the length of φ of a pair.
  [[nodiscard]] Index features() const noexcept {
    return score == PairScore::dot ? outputs : score == PairScore::energy ? outputs / coordinates : scores;
  }
  [[nodiscard]] bool has_temperature() const noexcept { return temperature && score != PairScore::bilinear; }
};

/// \throws std::invalid_argument  a size below 1, a temperature of several scores, or outputs that stalks do not divide
inline void validate(const PairScoreOptions& options) {
  static_cast<void>(checked_extent("outputs", options.outputs));
  static_cast<void>(checked_extent("coordinates", options.coordinates));
  static_cast<void>(checked_extent("scores", options.scores));
  require(!options.temperature || options.scores == 1, "scores", options.scores, "a temperature needs one score");
  require(options.score != PairScore::energy || options.outputs % options.coordinates == 0, "outputs",
          options.outputs,
          detail::concat("the energy needs a multiple of the stalk dimension, ", options.coordinates));
}

/// b, log τ and M, or the W_k. \tparam T const S, S or ParameterSlot
template <class T>
struct PairWeights {
  WeightVector<T> bias;             ///< b, K
  WeightVector<T> log_temperature;  ///< 1, or empty
  WeightMatrix<T> weight;  ///< M, K × P; of bilinear K C × C, one W_k below the other; empty with a temperature

  /// b = 0, τ = 1, W_k and M uniform: the symmetric part of W_k then has eigenvalues of both signs. From W = I, gradient steps
  /// seldom find classes that different nodes share and equal nodes do not.
  ///
  /// \param prefix  of the names. Unchecked: options that are valid
  void declare(ParameterList<T>& list, const std::string& prefix, const PairScoreOptions& options) {
    const Index k = options.scores, c = options.outputs;
    list.vector(bias, {prefix, ".bias"}, {k}, {});
    if (options.has_temperature()) {
      list.vector(log_temperature, {prefix, ".log_temperature"}, {1}, {});
    } else if (options.score == PairScore::bilinear) {
      list.matrix(weight, {prefix, ".weight"}, k * c, c, uniform_values(c));
    } else {
      list.matrix(weight, {prefix, ".weight"}, k, options.features(), uniform_values(options.features()));
    }
  }
};

/// Buffers of scores of the edges of a graph of pairs.
template <class S>
class PairScores {
 public:
  /// \param pairs  must outlive the scores
  /// \throws std::invalid_argument  as validate()
  PairScores(const Graph& pairs, const PairScoreOptions& options)
      : pairs_((validate(options), pairs)),
        options_(options),
        features_(pairs.edge_count() * options.features()),
        features_bar_(features_.size()),
        scores_(pairs.edge_count() * options.scores),
        scores_bar_(scores_.size()) {
    const Index k = options.scores, c = options.outputs;
    if (is_bilinear()) {
      mixed_.resize(pairs.node_count() * k * c);
      stack_.resize(k * c * c);
      stack_transposed_.resize(stack_.size());
    } else {
      stack_.resize(k * options.features());
      stack_transposed_.resize(stack_.size());
    }
  }
  PairScores(const Graph&&, const PairScoreOptions&) = delete;  // they would dangle

  /// φ, edges × P: of energy to be filled before forward().
  [[nodiscard]] MatrixView<S> features() noexcept {
    return {features_.data(), pairs_.edge_count(), options_.features()};
  }
  /// Its derivative, which backward() leaves.
  [[nodiscard]] MatrixView<const S> features_bar() const noexcept {
    return {features_bar_.data(), pairs_.edge_count(), options_.features()};
  }
  /// s of the last forward(), edges × K.
  [[nodiscard]] MatrixView<const S> scores() const noexcept {
    return {scores_.data(), pairs_.edge_count(), options_.scores};
  }
  /// Memory for the derivative of scores().
  [[nodiscard]] MatrixView<S> scores_bar() noexcept {
    return {scores_bar_.data(), pairs_.edge_count(), options_.scores};
  }

  /// \param y  n × C
  /// \throws std::invalid_argument  y or weights of another shape
  void forward(Execution execution, const PairWeights<const S>& weights, const MatrixView<const S>& y);
  /// Computes the derivatives of the weights and of y from scores_bar(), but not of y through the energy.
  ///
  /// \param y_bar, weights_bar  added to
  /// \throws std::invalid_argument  views of another shape
  void backward(Execution execution, const PairWeights<const S>& weights, const MatrixView<const S>& y,
                const MatrixView<S>& y_bar, const PairWeights<S>& weights_bar);

 private:
  [[nodiscard]] bool is_bilinear() const noexcept { return options_.score == PairScore::bilinear; }
  template <class T>
  void check(const PairWeights<T>& weights) const {
    require_size(weights.bias, options_.scores, "bias");
    if (options_.has_temperature()) {
      require_size(weights.log_temperature, 1, "log_temperature");
    } else if (is_bilinear()) {
      require_array(weights.weight, options_.scores * options_.outputs, options_.outputs, "weight");
    } else {
      require_array(weights.weight, options_.scores, options_.features(), "weight");
    }
  }
  /// M, or the symmetric parts of the W_k one below the other; and the transpose.
  void assemble(const PairWeights<const S>& weights) {
    const Index c = options_.outputs, rows = is_bilinear() ? options_.scores * c : options_.scores;
    const Index columns = is_bilinear() ? c : options_.features();
    if (options_.has_temperature()) {
      const S scale = std::exp(-weights.log_temperature[0]);
      stack_.fill(options_.score == PairScore::energy ? -scale : scale);
    } else if (is_bilinear()) {
      for (Index row = 0; row < rows; ++row) {
        for (Index j = 0; j < c; ++j) {
          stack_[row * c + j] = S(0.5) * (weights.weight(row, j) + weights.weight(row / c * c + j, row % c));
        }
      }
    } else {
      std::copy_n(weights.weight.data(), stack_.size(), stack_.data());
    }
    detail::transpose_into(rows, columns, stack_.data(), stack_transposed_.data(), rows);
  }
  template <class Body>
  void for_pairs(Execution execution, const Body& body) const {
    parallel_for(execution, pairs_.edge_count(), 64, [&](Index begin, Index end) {
      for (Index e = begin; e < end; ++e) body(e, pairs_.edge(e));
    });
  }
  /// Calls body(u, e, v) for the pairs of each node in turn.
  template <class Body>
  void for_pairs_of_nodes(Execution execution, const Body& body) const {
    parallel_for(execution, pairs_.node_count(), 16, [&](Index begin, Index end) {
      for (Index arc = pairs_.first_arc(begin); arc < pairs_.first_arc(end); ++arc) {
        body(pairs_.source(arc), pairs_.edge_of(arc), pairs_.target(arc));
      }
    });
  }
  void bilinear_features(Execution execution, const MatrixView<const S>& y);
  void bilinear_backward(Execution execution, const MatrixView<const S>& y, const MatrixView<S>& y_bar,
                         const MatrixView<S>& weight_bar);

  const Graph& pairs_;
  PairScoreOptions options_;
  Buffer<S> features_, features_bar_, scores_, scores_bar_;
  Buffer<S> stack_, stack_transposed_;
  Buffer<S> mixed_;  ///< bilinear: n × K C
};

template <class S>
void PairScores<S>::forward(Execution execution, const PairWeights<const S>& weights,
                            const MatrixView<const S>& y) {
  check(weights);
  require_shape(y, pairs_.node_count(), options_.outputs, "y");
  assemble(weights);
  const Index k = options_.scores;
  const S* bias = weights.bias.data();
  if (is_bilinear()) {
    bilinear_features(execution, y);
    for_pairs(execution, [&](Index e, Edge) {
      for (Index i = 0; i < k; ++i) scores_[e * k + i] = features_[e * k + i] + bias[i];
    });
    return;
  }
  if (options_.score == PairScore::dot) {
    for_pairs(execution, [&](Index e, Edge edge) {
      const S *a = y.row(edge.u).data(), *b = y.row(edge.v).data();
      S* out = features_.data() + e * options_.outputs;
      detail::for_tiles<S>(0, options_.outputs,
                           [&]<class T>(auto c) { c.store(out + c, c.load(a + c) * c.load(b + c)); });
    });
  }
  for_pairs(execution, [&](Index e, Edge) { std::copy_n(bias, k, scores_.data() + e * k); });
  detail::multiply_dense(execution, features(), {stack_transposed_.data(), options_.features(), k},
                         MatrixView<S>(scores_.data(), pairs_.edge_count(), k), true);
}

template <class S>
void PairScores<S>::bilinear_features(Execution execution, const MatrixView<const S>& y) {
  const Index k = options_.scores, c = options_.outputs;
  detail::multiply_dense(execution, y, {stack_transposed_.data(), c, k * c},
                         MatrixView<S>(mixed_.data(), y.rows(), k * c), false);
  for_pairs(execution, [&](Index e, Edge edge) {
    const S *a = y.row(edge.u).data(), *b = mixed_.data() + edge.v * k * c;
    for (Index i = 0; i < k; ++i) {
      S sum = 0;
      for (Index j = 0; j < c; ++j) sum += a[j] * b[i * c + j];
      features_[e * k + i] = sum;
    }
  });
}

template <class S>
void PairScores<S>::bilinear_backward(Execution execution, const MatrixView<const S>& y,
                                      const MatrixView<S>& y_bar, const MatrixView<S>& weight_bar) {
  const Index k = options_.scores, c = options_.outputs, n = y.rows();
  mixed_.fill(S(0));  // Σ over the pairs of u: s̄_ek y_v
  for_pairs_of_nodes(execution, [&](Index u, Index e, Index v) {
    const S* from = y.row(v).data();
    for (Index i = 0; i < k; ++i) {
      S* to = mixed_.data() + (u * k + i) * c;
      const S bar = scores_bar_[e * k + i];
      detail::for_tiles<S>(0, c,
                           [&]<class T>(auto j) { j.store(to + j, j.load(to + j) + T(bar) * j.load(from + j)); });
    }
  });
  const MatrixView<const S> sums(mixed_.data(), n, k * c);
  detail::multiply_dense(execution, sums, {stack_.data(), k * c, c}, y_bar, true);
  detail::multiply_dense(execution, detail::transposed(sums), y, MatrixView<S>(stack_transposed_.data(), k * c, c),
                         false);
  for (Index i = 0; i < k * c * c; ++i) weight_bar.data()[i] += S(0.5) * stack_transposed_[i];
}

template <class S>
void PairScores<S>::backward(Execution execution, const PairWeights<const S>& weights,
                             const MatrixView<const S>& y, const MatrixView<S>& y_bar,
                             const PairWeights<S>& weights_bar) {
  check(weights);
  check(weights_bar);
  require_shape(y, pairs_.node_count(), options_.outputs, "y");
  require_shape(y_bar, pairs_.node_count(), options_.outputs, "y_bar");
  const Index k = options_.scores, p = options_.features(), count = pairs_.edge_count();
  detail::add_column_sums(count, k, scores_bar_.data(), k, weights_bar.bias.data());
  if (is_bilinear()) {
    bilinear_backward(execution, y, y_bar, weights_bar.weight);
    return;
  }
  const MatrixView<S> bar(features_bar_.data(), count, p);
  detail::multiply_dense(execution, scores_bar(), {stack_.data(), k, p}, bar, false);
  const MatrixView<S> stack_bar(stack_transposed_.data(), k, p);
  detail::multiply_dense(execution, detail::transposed(scores_bar()), features(), stack_bar, false);
  if (options_.has_temperature()) {  // ∂M/∂ log τ = −M
    for (Index i = 0; i < p; ++i) weights_bar.log_temperature[0] -= stack_[i] * stack_bar(0, i);
  } else {
    detail::add_rows(k, p, stack_bar.data(), p, weights_bar.weight.data());
  }
  if (options_.score != PairScore::dot) return;
  for_pairs_of_nodes(execution, [&](Index u, Index e, Index v) {
    const S *from = y.row(v).data(), *factor = features_bar_.data() + e * p;
    S* to = y_bar.row(u).data();
    detail::for_tiles<S>(0, p, [&]<class T>(auto c) {
      c.store(to + c, c.load(to + c) + c.load(factor + c) * c.load(from + c));
    });
  });
}

}  // namespace sheafnn::layers
