/// \file
/// HeatOperator: diffusion of features by a function p of a graph's Laplacian 𝓛 = I − Â, with its backward pass. p stands for
/// exp(−t𝓛) with a time t_b for every bundle of channels,
///
///     Y = p(𝓛) X,   X̄ = p(𝓛)ᵀ Ȳ,   t̄_b = ⟨Ȳ, ∂p/∂t X⟩_b.
///
/// A series is a sum over powers that has one buffer, term ← M term (HeatCoefficients). It goes over strips of channels
/// whose rows of all nodes stay near. Eigenpairs are two dense products (heat_spectrum.hpp). X, Y are n × (B · row), the
/// values of bundle b at [b · row, (b + 1) · row). On a part of a graph they have the rows of owned nodes. A series fetches the
/// rows of the halo before every power, and projections on eigenvectors are added up over all parts.
/// Source: math: "Heat on a flat bundle" (9.4), (9.7).
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/core/tile.hpp"
#include "sheafnn/core/views.hpp"
#include "sheafnn/kernels/heat.hpp"
#include "sheafnn/layers/halo_rows.hpp"
#include "sheafnn/layers/heat_limit.hpp"
#include "sheafnn/layers/heat_options.hpp"
#include "sheafnn/layers/heat_spectrum.hpp"
#include "sheafnn/layers/heat_weights.hpp"
#include "sheafnn/layers/node_chunks.hpp"
#include "sheafnn/layers/normalised_adjacency.hpp"
#include "sheafnn/nn/dense.hpp"

namespace sheafnn::layers {

/// A heat operator as a polynomial Σ_k c_k M^k for every bundle, with the derivatives of what c_k are made of, t = max(time, 0):
///
///     taylor    M = −𝓛,  c_k = t^k / k!;         shifted   M = Â,  c_k = e^{−t} t^k / k!;
///     hops      M = Â,   c_k = softmax(a)_j for k = hop_powers[j], else 0.
///
/// Unchecked: indices of powers and bundles, and weights of other bundles.
class HeatCoefficients {
 public:
  HeatCoefficients(const HeatOptions& options, Index bundles)
      : options_(options),
        bundles_(bundles),
        degree_(options.degree()),
        values_(static_cast<std::size_t>((degree_ + 1) * bundles)),
        bars_(values_.size()) {}

  /// K, the highest power.
  [[nodiscard]] Index degree() const noexcept { return degree_; }
  /// Is M = −𝓛? Otherwise it is Â.
  [[nodiscard]] bool of_laplacian() const noexcept { return options_.of_laplacian(); }
  /// Are any of the coefficients of a power not 0?
  [[nodiscard]] bool used(Index power) const noexcept { return options_.uses(power); }
  /// c_k of a bundle.
  [[nodiscard]] double operator()(Index power, Index bundle) const noexcept { return values_[at(power, bundle)]; }
  /// The derivative of c_k of a bundle.
  [[nodiscard]] double& bar(Index power, Index bundle) noexcept { return bars_[at(power, bundle)]; }

  /// Takes the weights of a pass.
  template <class S>
  void set(const HeatWeights<const S>& weights) {
    for (Index b = 0; b < bundles_; ++b) {
      if (options_.expansion == HeatExpansion::hops) {
        std::fill_n(&values_[at(0, b)], degree_ + 1, 0.0);
        double share[hop_count];
        kernels::hop_shares<hop_count>(weights.hops.row(b).data(), share);
        for (std::size_t j = 0; j < hop_powers.size(); ++j) values_[at(hop_powers[j], b)] = share[j];
        continue;
      }
      kernels::series_coefficients(of_laplacian(), time_of(options_, weights.time, b), degree_,
                                   [&](Index k, double value) { values_[at(k, b)] = value; });
    }
  }
  /// Adds the derivatives of the weights that follow from bar().
  template <class S>
  void backward(const HeatWeights<const S>& weights, const HeatWeights<S>& weights_bar) const {
    for (Index b = 0; b < bundles_; ++b) {
      if (options_.expansion == HeatExpansion::hops) {
        double share[hop_count];
        kernels::hop_shares<hop_count>(weights.hops.row(b).data(), share);
        kernels::hop_logits_bar<hop_count>(
            share, [&](int j) { return bars_[at(hop_powers[static_cast<std::size_t>(j)], b)]; },
            [&](int j, double value) { weights_bar.hops(b, j) += static_cast<S>(value); });
        continue;
      }
      if (!is_positive(weights.time, b)) continue;
      weights_bar.time[static_cast<std::size_t>(b)] += static_cast<S>(kernels::series_time_bar(
          of_laplacian(), degree_, [&](Index k) { return values_[at(k, b)]; },
          [&](Index k) { return bars_[at(k, b)]; }));
    }
  }

  /// t of a bundle.
  template <class S>
  [[nodiscard]] static double time_of(const HeatOptions& options, std::span<const S> time, Index b) {
    if (time.empty()) return options.time;
    return std::max(0.0, static_cast<double>(time[static_cast<std::size_t>(b)]));
  }
  /// Is there a time, and does t move with it?
  template <class S>
  [[nodiscard]] static bool is_positive(std::span<const S> time, Index b) {
    return !time.empty() && time[static_cast<std::size_t>(b)] > 0;
  }

 private:
  static constexpr int hop_count = static_cast<int>(hop_powers.size());

  [[nodiscard]] std::size_t at(Index power, Index bundle) const noexcept {
    return static_cast<std::size_t>(bundle * (degree_ + 1) + power);
  }
  HeatOptions options_;
  Index bundles_, degree_;
  std::vector<double> values_, bars_;  ///< by bundle and power
};

/// Buffers of the operator on one graph; layers may share it. Unchecked: the sizes of views and weights.
template <class S>
class HeatOperator {
 public:
  /// \param graph  must outlive it
  /// \param row    values of a bundle per node, d · f
  /// \throws std::runtime_error  eigenpairs that do not converge
  HeatOperator(Execution execution, const Graph& graph, const HeatOptions& options, Index bundles, Index row)
      : options_(options),
        bundles_(bundles),
        row_(row),
        adjacency_(graph, options.normalisation, options.self_loops),
        coefficients_(options_of_series(options), bundles),
        chunks_{graph.own_node_count(), std::clamp<Index>(graph.own_node_count() / 64, 1, 64)} {
    if (options.expansion == HeatExpansion::spectral) {
      spectrum_.emplace(execution, graph, options, options.terms);
      for (Buffer<S>* one : {&projected_, &projected_bar_}) one->resize(pairs() * width());
    } else if (options.expansion == HeatExpansion::limit) {
      limit_.emplace(graph, adjacency_, options.normalisation);
    } else {
      for (Buffer<S>* one : {&term_, &next_}) one->resize(adjacency_.rows() * strip);
      partial_.resize(chunks_.count * strip);
      factor_.resize(strip);
    }
  }
  HeatOperator(Execution, const Graph&&, const HeatOptions&, Index, Index) = delete;  // it would dangle

  /// B · row.
  [[nodiscard]] Index width() const noexcept { return bundles_ * row_; }

  /// y = p(𝓛) x. \param x, y  n × width(); they do not overlap
  void forward(Execution execution, const HeatWeights<const S>& weights, const MatrixView<const S>& x,
               const MatrixView<S>& y) {
    if (spectrum_) {
      project(execution, spectrum_->in, x, projected_);
      sum_over_parts(projected_);
      damp(weights, projected_);
      lift(execution, spectrum_->out, projected_, y);
    } else if (limit_) {
      limit_->multiply(execution, false, x, y);
    } else {
      coefficients_.set(weights);
      sum_series<false>(execution, false, x, y, {});
    }
  }
  /// x_bar = p(𝓛)ᵀ y_bar, and adds the derivatives of the weights.
  ///
  /// \param x  of forward()
  void backward(Execution execution, const HeatWeights<const S>& weights, const MatrixView<const S>& x,
                const MatrixView<const S>& y_bar, const MatrixView<S>& x_bar, const HeatWeights<S>& weights_bar) {
    if (spectrum_) {
      project(execution, spectrum_->out, y_bar, projected_bar_);
      sum_over_parts(projected_bar_);
      if (!weights.time.empty()) {
        project(execution, spectrum_->in, x, projected_);
        add_time_bar(weights, weights_bar);
      }
      damp(weights, projected_bar_);
      lift(execution, spectrum_->in, projected_bar_, x_bar);
    } else if (limit_) {
      limit_->multiply(execution, true, y_bar, x_bar);
    } else {
      coefficients_.set(weights);
      if (weights.time.empty() && weights.hops.empty()) {
        sum_series<false>(execution, true, y_bar, x_bar, {});
      } else {
        sum_series<true>(execution, true, y_bar, x_bar, x);
        coefficients_.backward(weights, weights_bar);
      }
    }
  }

 private:
  /// Channels that are diffused together: a few registers for every node.
  static constexpr Index strip = 64;

  /// The same without terms if there is no series.
  [[nodiscard]] static HeatOptions options_of_series(HeatOptions options) {
    if (!options.is_polynomial()) options.terms = 0;
    return options;
  }

  /// to = Σ_k c_k M^k from, or with Mᵀ.
  ///
  /// \tparam Paired  also c̄_k = ⟨with, M^k from⟩ for every bundle
  template <bool Paired>
  void sum_series(Execution execution, bool transposed, const MatrixView<const S>& from, const MatrixView<S>& to,
                  const MatrixView<const S>& with) {
    if constexpr (Paired) {
      for (Index k = 0; k <= coefficients_.degree(); ++k) {
        for (Index b = 0; b < bundles_; ++b) coefficients_.bar(k, b) = 0;
      }
    }
    for (Index first = 0; first < width(); first += strip) {
      const Index count = std::min(strip, width() - first);
      for (Index k = 0; k <= coefficients_.degree(); ++k) {
        if (k > 0) detail::fetch_halo(adjacency_.part(), term_.data(), count);
        const bool used = coefficients_.used(k);
        for (Index c = 0; used && c < count; ++c) {
          factor_[c] = static_cast<S>(coefficients_(k, (first + c) / row_));
        }
        chunks_.for_each(execution, [&](Index chunk, Index begin, Index end) {
          S* sums = partial_.data() + chunk * strip;
          if (Paired && used) std::fill_n(sums, count, S(0));
          // next = the term; to += c_k ∘ it.
          const auto take = [&]<class T, int Tiles>(Index u, auto c, const T(&value)[Tiles])
                                SHEAFNN_INLINE_LAMBDA {
                                  S* sum = to.data() + u * to.stride() + first + c;
                                  const S* paired = Paired ? with.data() + u * with.stride() + first + c : nullptr;
                                  SHEAFNN_UNROLL for (int t = 0; t < Tiles; ++t) {
                                    c.store(t, next_.data() + u * count + c, value[t]);
                                    if (!used) continue;
                                    const T part = c.load(t, factor_.data() + c) * value[t];
                                    c.store(t, sum, k == 0 ? part : c.load(t, sum) + part);
                                    if constexpr (Paired) {
                                      c.store(t, sums + c, c.load(t, sums + c) + value[t] * c.load(t, paired));
                                    }
                                  }
                                };
          if (k == 0) {
            first_terms(begin, end, count, from.data() + first, from.stride(), take);
            if (!used) zero_rows(begin, end, count, to.data() + first, to.stride());
          } else {
            next_terms(transposed, begin, end, count, take);
          }
        });
        std::swap(term_, next_);
        if (Paired && used) add_partials(k, first, count);
      }
    }
  }
  /// take(u, c, row of `from`) at nodes [begin, end).
  template <class Take>
  static void first_terms(Index begin, Index end, Index count, const S* from, Index stride, const Take& take) {
    for (Index u = begin; u < end; ++u) {
      detail::for_tile_groups<S, 4>(count, [&]<class T, int Tiles>(auto c) {
        T value[Tiles];
        SHEAFNN_UNROLL for (int t = 0; t < Tiles; ++t) value[t] = c.load(t, from + u * stride + c);
        take.template operator()<T, Tiles>(u, c, value);
      });
    }
  }
  /// take(u, c, row of M term).
  template <class Take>
  void next_terms(bool transposed, Index begin, Index end, Index count, const Take& take) const {
    const bool of_laplacian = coefficients_.of_laplacian();
    adjacency_.product_rows(transposed, begin, end, term_.data(), count, count,
                            [&]<class T, int Tiles>(Index u, auto c, const T(&row)[Tiles]) SHEAFNN_INLINE_LAMBDA {
                              T value[Tiles];
                              SHEAFNN_UNROLL for (int t = 0; t < Tiles; ++t) {
                                value[t] =
                                    of_laplacian ? row[t] - c.load(t, term_.data() + u * count + c) : row[t];
                              }
                              take.template operator()<T, Tiles>(u, c, value);
                            });
  }
  static void zero_rows(Index begin, Index end, Index count, S* to, Index stride) {
    for (Index u = begin; u < end; ++u) std::fill_n(to + u * stride, count, S(0));
  }
  /// c̄_k += the sums of the chunks.
  void add_partials(Index k, Index first, Index count) {
    for (Index chunk = 0; chunk < chunks_.count; ++chunk) {
      for (Index c = 0; c < count; ++c) {
        coefficients_.bar(k, (first + c) / row_) += static_cast<double>(partial_[chunk * strip + c]);
      }
    }
  }

  [[nodiscard]] Index pairs() const noexcept { return static_cast<Index>(spectrum_->values.size()); }
  /// to = basisᵀ x, K × width(), on a part of a graph over its rows.
  void project(Execution execution, const Buffer<S>& basis, const MatrixView<const S>& x, Buffer<S>& to) const {
    const MatrixView<const S> vectors(basis.data(), chunks_.nodes, pairs());
    detail::multiply_dense(execution, detail::transposed(vectors), x, MatrixView<S>(to.data(), pairs(), width()),
                           false);
  }
  void sum_over_parts(Buffer<S>& projected) const {
    if (adjacency_.part() != nullptr) adjacency_.part()->sum(projected.view(), {});
  }
  /// y = basis · from.
  void lift(Execution execution, const Buffer<S>& basis, const Buffer<S>& from, const MatrixView<S>& y) const {
    detail::multiply_dense(execution, MatrixView<const S>(basis.data(), chunks_.nodes, pairs()),
                           MatrixView<const S>(from.data(), pairs(), width()), y, false);
  }
  /// Multiplies component j of every bundle with e^{−tλ_j}.
  void damp(const HeatWeights<const S>& weights, Buffer<S>& projected) const {
    for (Index j = 0; j < pairs(); ++j) {
      const double lambda = spectrum_->values[static_cast<std::size_t>(j)];
      for (Index b = 0; b < bundles_; ++b) {
        const S factor = static_cast<S>(
            kernels::spectral_coefficient(lambda, HeatCoefficients::time_of(options_, weights.time, b)));
        S* numbers = projected.data() + j * width() + b * row_;
        for (Index c = 0; c < row_; ++c) numbers[c] *= factor;
      }
    }
  }
  /// Adds t̄_b, with c̄_j = ⟨(inᵀ X)_j, (outᵀ Ȳ)_j⟩_b: a part's share, of its rows of X.
  void add_time_bar(const HeatWeights<const S>& weights, const HeatWeights<S>& weights_bar) const {
    for (Index b = 0; b < bundles_; ++b) {
      if (!HeatCoefficients::is_positive(weights.time, b)) continue;
      const double t = HeatCoefficients::time_of(options_, weights.time, b);
      const auto lambda = [&](Index j) { return spectrum_->values[static_cast<std::size_t>(j)]; };
      const auto bar = [&](Index j) {
        const Index at = j * width() + b * row_;
        double dot = 0;
        for (Index c = 0; c < row_; ++c) {
          dot += static_cast<double>(projected_[at + c]) * static_cast<double>(projected_bar_[at + c]);
        }
        return dot;
      };
      weights_bar.time[static_cast<std::size_t>(b)] += static_cast<S>(kernels::spectral_time_bar(
          pairs(), lambda, [&](Index j) { return kernels::spectral_coefficient(lambda(j), t); }, bar));
    }
  }

  HeatOptions options_;
  Index bundles_, row_;
  NormalisedAdjacency<S> adjacency_;
  HeatCoefficients coefficients_;
  NodeChunks chunks_;
  std::optional<HeatSpectrum<S>> spectrum_;
  std::optional<HeatLimit<S>> limit_;
  Buffer<S> projected_, projected_bar_;  ///< K × width()
  Buffer<S> term_, next_;                ///< n × strip
  Buffer<S> partial_;                    ///< per chunk and channel of a strip
  Buffer<S> factor_;                     ///< c_k of the channels of a strip
};

}  // namespace sheafnn::layers
