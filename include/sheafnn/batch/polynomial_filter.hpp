/// \file
/// BatchFilter: the polynomial filter that all layers of a network share, for a batch of runs. It has the recurrence, the
/// coefficients w and α of every run, and the gradients of θ and α (math: "Polynomial filters"). For one network:
/// layers/polynomial_basis.hpp.
#pragma once

#include <span>
#include <vector>

#include "sheafnn/batch/array.hpp"
#include "sheafnn/batch/polynomial_kernels.hpp"
#include "sheafnn/batch/run.hpp"
#include "sheafnn/bsnn/model_layout.hpp"
#include "sheafnn/layers/polynomial_basis.hpp"
#include "sheafnn/layers/polynomial_steps.hpp"

namespace sheafnn::batch::detail {

/// The filter of all runs; see the file comment.
template <class Executor, class S>
class BatchFilter {
 public:
  /// No filter.
  BatchFilter() = default;
  /// \param shape  of the features; makes room for the partial sums of all layers
  BatchFilter(Executor& executor, const PolynomialOptions& options, const ModelLayout& layout,
              const layers::ParameterSet<S>& parameters, const FeatureShape<S>& shape, const BatchSize& batch,
              PartialSums& sums)
      : options_(options), runs_(batch.runs), chunks_{shape.nodes * batch.training_copies} {
    if (!active()) return;
    std::vector<double> zeros(static_cast<std::size_t>(terms()));
    const layers::Polynomial p(options, std::span<const double>(zeros));
    const sheafnn::detail::FilterRecurrence of(p, 0);
    for (Index k = 0; k < of.steps(); ++k) {
      steps_.push_back({static_cast<S>(of.slope(k)), static_cast<S>(of.own(k)), static_cast<S>(-of.before(k))});
    }
    if (options.basis == PolynomialBasis::chebyshev_interpolation) {
      jacobian_ = Array<Executor, double>(executor, "filter", jacobian(p));
    }
    values_ = Array<Executor, S>(executor, "filter", runs_ * (terms() + 1));
    theta_ = parameters.info(layout.at.filter.theta).offset;
    const Index layers = static_cast<Index>(layout.layers.size()), rows = chunks_.count() * layers;
    const Index stride = (terms() + (has_skip() ? 1 : 0)) * shape.channels;
    sums_ = sums.reserve(rows, stride);
    layer_sums_ = chunks_.count() * stride;
    sums.assign(theta_, terms(), sums_, rows, stride, shape.channels);
    if (has_skip()) {
      skip_ = parameters.info(layout.at.filter.skip).offset;
      sums.assign(skip_, 1, sums_ + terms() * shape.channels, rows, stride, shape.channels);
    }
  }

  [[nodiscard]] bool active() const noexcept { return options_.active(); }
  /// Applications of Δ in a layer, max(K, 1).
  [[nodiscard]] Index steps() const noexcept { return active() ? static_cast<Index>(steps_.size()) : 1; }
  /// K + 1.
  [[nodiscard]] Index terms() const noexcept { return options_.degree + 1; }
  [[nodiscard]] const FilterFactors<S>& step(Index k) const { return steps_[static_cast<std::size_t>(k)]; }
  [[nodiscard]] HighPassSkip skip() const noexcept { return options_.skip; }
  [[nodiscard]] bool has_skip() const noexcept { return options_.skip != HighPassSkip::off; }

  /// Writes the coefficients; to be launched before weights() is read. Nothing without a filter.
  [[nodiscard]] Items<FilterCoefficients<S>> coefficients(const ParameterView<S>& parameters) {
    return {active() ? terms() + 1 : 0,
            runs_,
            {terms(), softmax(), jacobian_.data(), parameters.value + theta_,
             has_skip() ? parameters.value + skip_ : nullptr, parameters.stride, values_.data()}};
  }
  [[nodiscard]] FilterWeightView<S> weights() const noexcept {
    return {values_.data(), terms(), static_cast<S>(1 / options_.largest_eigenvalue)};
  }
  /// α of run 0, the others weight_stride() apart, where it multiplies the layers' input; else null.
  [[nodiscard]] const S* input_skip() const noexcept {
    return active() && options_.skip == HighPassSkip::input ? values_.data() + terms() : nullptr;
  }
  [[nodiscard]] Index weight_stride() const noexcept { return terms() + 1; }

  /// Partial sums of a layer's part of w̄ and ᾱ; nothing without a filter.
  ///
  /// \param g, v, high_pass  n × d' × f per instance
  [[nodiscard]] Items<FilterProducts<S>> products(const Pass& pass, const ParameterView<S>& parameters,
                                                  const FeatureShape<S>& shape, std::uint32_t layer, const S* g,
                                                  const StackedFeatures<S>& v, const S* high_pass) const {
    if (!active()) return {};
    const FilterProducts<S> products{g,
                                     v,
                                     has_skip() ? high_pass : nullptr,
                                     terms(),
                                     pass.copies * shape.size(),
                                     shape.coordinates,
                                     shape.channels,
                                     chunks_,
                                     parameters.arena + sums_ + static_cast<Index>(layer) * layer_sums_,
                                     parameters.arena_stride};
    return {products.items(), pass.runs, products};
  }
  /// Replaces the sums w̄ by θ̄.
  void finish_gradient(Executor& executor, const ParameterView<S>& parameters) const {
    if (!active() || !(softmax() || jacobian_.size() > 0)) return;
    executor.launch(1, runs_,
                    FilterGradient<S>{weights(), jacobian_.data(), parameters.gradient + theta_,
                                      parameters.stride});
  }

 private:
  [[nodiscard]] bool softmax() const noexcept {
    return options_.coefficients == PolynomialCoefficients::convex &&
           options_.basis != PolynomialBasis::chebyshev_interpolation;
  }
  /// ∂w_k/∂γ_j, row k.
  [[nodiscard]] static std::vector<double> jacobian(const layers::Polynomial& p) {
    const std::size_t terms = static_cast<std::size_t>(p.degree() + 1);
    std::vector<double> r(terms * terms), one(terms);
    for (std::size_t k = 0; k < terms; ++k) {
      one.assign(terms, 0);
      one[k] = 1;
      p.backward(std::span<const double>(one), std::span<double>(r).subspan(k * terms, terms));
    }
    return r;
  }

  PolynomialOptions options_{};
  Index runs_ = 0;
  RowChunks chunks_;  ///< of nodes
  std::vector<FilterFactors<S>> steps_;
  Index theta_ = 0, skip_ = 0, sums_ = 0, layer_sums_ = 0;
  Array<Executor, double> jacobian_;
  Array<Executor, S> values_;
};

}  // namespace sheafnn::batch::detail
