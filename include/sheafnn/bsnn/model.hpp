/// \file
/// SheafModel: a sheaf network's architecture and parameters, independent of any graph.
///
///     using Model = sheafnn::Bsnn<sheafnn::SpecialOrthogonal<3>>;   // Bayesian sheaf neural network
///     using Model = sheafnn::Nsd<sheafnn::Diagonal<2>>;             // deterministic neural sheaf diffusion
///
/// Source: math.md "The model"; Bayesian Sheaf Neural Networks (Gillespie et al.); Neural Sheaf Diffusion (Bodnar
/// et al.).
#pragma once

#include <cmath>
#include <concepts>
#include <numeric>
#include <string>
#include <vector>

#include "sheafnn/bsnn/model_layout.hpp"
#include "sheafnn/bsnn/options.hpp"
#include "sheafnn/nn/parameters.hpp"
#include "sheafnn/posterior/default_posterior.hpp"
#include "sheafnn/posterior/point_mass.hpp"
#include "sheafnn/posterior/sheaf_posterior.hpp"
#include "sheafnn/random/stream.hpp"

namespace sheafnn {

/// What a model may have for its maps: a distribution (SheafPosterior), or a map without one (PointMass).
template <class Q>
concept SheafSource = is_point_mass<Q> || SheafPosterior<Q>;

/// Architecture and parameters.
///
/// \tparam PosteriorType  CayleyPosterior<FamilyType>, NormalPosterior<FamilyType>, PointMass<FamilyType>, … or your own
/// \tparam S              float (default) or double
template <RestrictionMapFamily FamilyType, SheafSource PosteriorType, std::floating_point S = float>
class SheafModel {
  static_assert(std::is_same_v<typename PosteriorType::family, FamilyType>, "the posterior of another family");

 public:
  using Family = FamilyType;
  using Posterior = PosteriorType;
  using Scalar = S;
  static constexpr int stalk_dimension = Family::stalk_dimension;
  static constexpr bool bayesian = !is_point_mass<Posterior>;
  /// As checkpoints and programs name it.
  static constexpr std::string_view kind = bayesian ? "bsnn" : "nsd";

  /// Builds the model with initial parameters: linear layers uniform in ±1/√fan_in, A_l = I, B_l random
  /// orthogonal, ε = 0.
  ///
  /// \param seed       selects the initial parameters
  /// \param posterior  the posterior's own state, such as a prior; its rotation parametrisation is the options'
  /// \throws std::invalid_argument  an option out of range (see resolve())
  explicit SheafModel(const ModelOptions& options, std::uint64_t seed = 0, const Posterior& posterior = {})
      : options_(resolve<Family>(options, bayesian)), posterior_(posterior) {
    if constexpr (requires { posterior_.parametrisation; }) posterior_.parametrisation = options_.parametrisation;
    lay_out();
    parameters_.finish();
    initialise(seed);
  }

  [[nodiscard]] const ModelOptions& options() const noexcept { return options_; }
  [[nodiscard]] const ModelLayout& layout() const noexcept { return layout_; }
  [[nodiscard]] const Posterior& posterior() const noexcept { return posterior_; }
  [[nodiscard]] ParameterSet<S>& parameters() noexcept { return parameters_; }
  [[nodiscard]] const ParameterSet<S>& parameters() const noexcept { return parameters_; }
  /// d' = D + number of fixed filters.
  [[nodiscard]] Index coordinates() const noexcept {
    return stalk_dimension + (options_.add_lp ? 1 : 0) + (options_.add_hp ? 1 : 0);
  }
  /// h = d' · channels.
  [[nodiscard]] Index hidden_width() const noexcept { return coordinates() * options_.channels; }
  /// Number of different sheaves in a forward pass.
  [[nodiscard]] Index sheaf_count() const noexcept { return options_.linear ? 1 : options_.layers; }

 private:
  void lay_out() {
    const Index h = hidden_width(), f = options_.channels, d = coordinates(), p = options_.features;
    const auto add = [&](std::string name, std::vector<Index> shape, bool transposed = false,
                         ParameterGroup group = ParameterGroup::network) {
      return parameters_.add(std::move(name), std::move(shape), group, transposed);
    };
    layout_.encoder = {{h, options_.activation, false}, add("lin1.weight", {h, p}, true), add("lin1.bias", {h})};
    if (options_.second_linear) {
      layout_.second_weight = add("lin12.weight", {h, h}, true);
      layout_.second_bias = add("lin12.bias", {h});
    }
    if (*options_.separate_encoder) {
      layout_.sheaf_encoder = {{h, options_.activation, options_.degree_input},
                               add("lin_maps.weight", {h, p + (options_.degree_input ? 1 : 0)}, true,
                                   ParameterGroup::sheaf_learner),
                               add("lin_maps.bias", {h}, false, ParameterGroup::sheaf_learner)};
    }
    const Index learners = bayesian ? 1 : sheaf_count();
    for (Index l = 0; l < learners; ++l) layout_.learners.push_back(lay_out_learner(l));
    for (Index l = 0; l < options_.layers; ++l) {
      DiffusionLayout layer;
      if (options_.left_weights) layer.left = add(concat("left.", l), {d, d});
      if (options_.right_weights) layer.right = add(concat("right.", l), {f, f});
      layer.epsilon = add(concat("eps.", l), {d, 1});
      layer.activation = options_.activation;
      layout_.layers.push_back(layer);
    }
    layout_.output_weight = add("lin2.weight", {options_.classes, h}, true);
    layout_.output_bias = add("lin2.bias", {options_.classes});
  }

  SheafLearnerLayout lay_out_learner(Index index) {
    const Index h = hidden_width();
    const auto add = [&](const std::string& name, Index rows, Index columns) {
      return parameters_.add(name, {rows, columns}, ParameterGroup::sheaf_learner);
    };
    const std::string sheaf = bayesian ? "sheaf" : concat("sheaf.", index);
    SheafLearnerLayout shape;
    shape.inputs = h;
    shape.mean = Posterior::mean_size;
    shape.spread = Posterior::spread_size;
    shape.edge_weights = *options_.edge_weights;
    if (shape.outputs() > 0) {
      Index inputs = 2 * h;
      shape.width = options_.learner_width;
      shape.hidden_layers = options_.learner_layers;
      for (Index k = 0; k < options_.learner_layers; ++k) {
        shape.hidden.push_back(add(concat(sheaf, ".hidden.", k, ".weight"), shape.width, inputs));
        inputs = shape.width;
      }
      if (shape.mean > 0)
        shape.mean_weight = add(sheaf + (bayesian ? ".mean.weight" : ".weight"), shape.mean, inputs);
      if (shape.spread > 0) shape.spread_weight = add(sheaf + ".var.weight", shape.spread, inputs);
    }
    if (*options_.edge_weights) {
      shape.edge_weight = add(bayesian ? std::string("edge.weight") : concat("edge.", index, ".weight"), 1, 2 * h);
    }
    return shape;
  }

  void initialise(std::uint64_t seed) {
    const auto stream = [&](ParameterId id) {
      return Stream{seed, Purpose::weights, 0, static_cast<std::uint32_t>(id % 1024),
                    static_cast<std::uint32_t>(id / 1024)};
    };
    const auto uniform = [&](ParameterId id, Index fan_in) {
      if (id < 0) return;
      const double bound = 1 / std::sqrt(static_cast<double>(fan_in));
      std::vector<S> values(static_cast<std::size_t>(parameters_.info(id).size));
      for (std::size_t i = 0; i < values.size(); ++i) {
        const std::uint32_t word = stream(id).words(static_cast<std::uint32_t>(i / 4), 0).word[i % 4];
        values[i] = static_cast<S>(bound * (2 * uniform_from_word<double>(word) - 1));
      }
      parameters_.set(id, values);
    };
    const Index h = hidden_width(), p = options_.features;
    uniform(layout_.encoder.weight, p);
    uniform(layout_.encoder.bias, p);
    uniform(layout_.second_weight, h);
    uniform(layout_.second_bias, h);
    const Index sheaf_inputs = p + (options_.degree_input ? 1 : 0);
    uniform(layout_.sheaf_encoder.weight, sheaf_inputs);
    uniform(layout_.sheaf_encoder.bias, sheaf_inputs);
    for (const SheafLearnerLayout& learner : layout_.learners) {
      Index inputs = 2 * h;
      for (const ParameterId id : learner.hidden) {
        uniform(id, inputs);
        inputs = learner.width;
      }
      uniform(learner.mean_weight, inputs);
      uniform(learner.spread_weight, inputs);
      uniform(learner.edge_weight, 2 * h);
    }
    for (const DiffusionLayout& layer : layout_.layers) {
      if (layer.left >= 0) {
        for (Index i = 0; i < coordinates(); ++i) parameters_.data(layer.left)[i * coordinates() + i] = S(1);
      }
      if (layer.right >= 0)
        random_orthogonal(stream(layer.right), options_.channels, parameters_.data(layer.right));
    }
    uniform(layout_.output_weight, h);
    uniform(layout_.output_bias, h);
  }

  /// Haar-distributed orthogonal n × n matrix: the rows of a normal one, orthonormalised in turn. Each is
  /// projected twice, which keeps them orthogonal to rounding.
  static void random_orthogonal(const Stream& stream, Index n, S* out) {
    std::vector<double> rows(static_cast<std::size_t>(n * n));
    for (Index i = 0; i < n; ++i) {
      double* row = rows.data() + i * n;
      for (Index j = 0; j < n; ++j) fill_normals<1>(row + j, stream, static_cast<std::uint32_t>(i * n + j));
      for (Index j = 0; j < 2 * i; ++j) {
        const double* other = rows.data() + j % i * n;
        const double projection = std::inner_product(row, row + n, other, 0.0);
        for (Index k = 0; k < n; ++k) row[k] -= projection * other[k];
      }
      const double norm = std::sqrt(std::inner_product(row, row + n, row, 0.0));
      for (Index k = 0; k < n; ++k) {
        row[k] /= norm;
        out[i * n + k] = static_cast<S>(row[k]);
      }
    }
  }

  ModelOptions options_;
  [[no_unique_address]] Posterior posterior_;
  ModelLayout layout_;
  ParameterSet<S> parameters_;
};

/// Bayesian sheaf neural network: the restriction maps have a learned distribution, the family's usual one.
template <RestrictionMapFamily Family, std::floating_point S = float>
using Bsnn = SheafModel<Family, DefaultPosterior<Family>, S>;
/// Neural sheaf diffusion: the restriction maps are learned functions of the features.
template <RestrictionMapFamily Family, std::floating_point S = float>
using Nsd = SheafModel<Family, PointMass<Family>, S>;

}  // namespace sheafnn
