/// \file
/// ConvolutionModel: convolutions on a given sheaf, architecture and parameters; the published sheaf neural network.
///
///     using Model = sheafnn::SheafConvolutions<sheafnn::GeneralLinear<3>>;           // maps are given
///     using Model = sheafnn::BayesianSheafConvolutions<sheafnn::SpecialOrthogonal<3>>;  // distributions around given maps
///     Model model({.features = p, .classes = c}, seed, sheafnn::GivenMaps(sheaf));
///
///     X_1 = features as n × d × c_0, or act(X W₁ᵀ + b₁);   X_{l+1} = act(Q (I ⊗ A_l) X_l B_lᵀ + b_l),  Q = I − Δ
///     outputs: the last layer without act (d = 1, c_L = C), or W₂ X_{L+1} + b₂
///
/// With F = I, d = 1 and the normalisation augmented Q is the operator of graph convolutional networks. Its networks:
/// convolution_network.hpp. Source: Sheaf Neural Networks (Hansen and Gebhart, arXiv 2012.06333); math: "Convolutions
/// on given sheaves".
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <string_view>
#include <vector>

#include "sheafnn/bsnn/convolution_options.hpp"
#include "sheafnn/bsnn/model.hpp"
#include "sheafnn/bsnn/model_layout.hpp"
#include "sheafnn/bsnn/model_parts.hpp"
#include "sheafnn/bsnn/network.hpp"
#include "sheafnn/layers/sheaf_convolution.hpp"
#include "sheafnn/nn/parameters.hpp"
#include "sheafnn/posterior/around_given.hpp"
#include "sheafnn/posterior/given_maps.hpp"

namespace sheafnn {

namespace detail {

/// The setting from which layer l is built. Unchecked: the options are resolved.
[[nodiscard]] inline layers::SheafConvolutionOptions convolution_of(const ConvolutionOptions& options, Index l) {
  const std::size_t i = static_cast<std::size_t>(l);
  const bool activated = options.readout || l + 1 < options.layers;
  return {options.widths[i], options.widths[i + 1], options.left_weights, options.bias,
          activated ? options.activation : Activation::identity};
}

}  // namespace detail

/// All weights of a network, or their gradients or places. \tparam T  const S, S or ParameterSlot
template <class T>
struct ConvolutionWeights {
  layers::LinearWeights<T> encoder, output;
  std::vector<layers::SheafLearnerWeights<T>> learners;  ///< one or zero
  std::vector<layers::SheafConvolutionWeights<T>> layers;

  /// Unchecked: the options are resolved. \param learner  without outputs and labels there is no learner
  void declare(layers::ParameterList<T>& list, const ConvolutionOptions& options,
               const layers::SheafLearnerOptions& learner, Index d) {
    if (options.encoder) encoder.declare(list, "lin1", d * options.widths.front(), options.features);
    list.group = layers::ParameterGroup::sheaf_learner;
    learners.resize(learner.outputs() > 0 || learner.labels > 0 ? 1 : 0);
    for (auto& one : learners) one.declare(list, learner, -1);
    list.group = layers::ParameterGroup::network;
    layers.resize(static_cast<std::size_t>(options.layers));
    detail::declare_in_order(list, options.layers, [&](Index l) {
      layers[static_cast<std::size_t>(l)].declare(list, detail::convolution_of(options, l), d);
    });
    if (options.readout) output.declare(list, "lin2", options.classes, d * options.widths.back());
  }
};

/// Architecture and parameters.
///
/// \tparam PosteriorType  GivenMaps<FamilyType> or AroundGiven<FamilyType>
/// \tparam S              float (default) or double
template <RestrictionMapFamily FamilyType, class PosteriorType, std::floating_point S = float>
  requires(has_given_maps<PosteriorType> || is_around_given<PosteriorType>)
class ConvolutionModel
    : public detail::ModelParts<ConvolutionOptions, ConvolutionWeights<layers::ParameterSlot>, S> {
  using Parts = detail::ModelParts<ConvolutionOptions, ConvolutionWeights<layers::ParameterSlot>, S>;
  using Parts::layout_, Parts::options_, Parts::parameters_;

 public:
  using Family = FamilyType;
  using Posterior = PosteriorType;
  using typename Parts::Options, typename Parts::Scalar;
  static constexpr int stalk_dimension = Family::stalk_dimension;
  static constexpr bool bayesian = is_around_given<Posterior>;
  /// The name of the model in checkpoints and programs.
  static constexpr std::string_view kind = bayesian ? Options::kind.bayesian : Options::kind.deterministic;

  /// Builds the model with initial parameters. Linear layers are uniform in ±1/√fan_in, A_l = I, b_l = 0. B_l is random
  /// orthogonal if it is square, otherwise uniform as in linear layers. The distributions of edge labels start concentrated.
  ///
  /// \param seed       selects the initial parameters
  /// \param posterior  the given maps
  /// \throws std::invalid_argument  an option out of range (see resolve()), no sheaf, or a wrong number of sheaves
  explicit ConvolutionModel(const ConvolutionOptions& options, std::uint64_t seed = 0,
                            const Posterior& posterior = {})
      : ConvolutionModel(detail::LayoutOnly{}, options, posterior) {
    parameters_.initialise(seed);
  }
  /// The same model without values of its parameters.
  ConvolutionModel(detail::LayoutOnly, const ConvolutionOptions& options, const Posterior& posterior)
      : Parts(resolve(options, stalk_dimension, sheaf::is_orthogonal<Family>)), posterior_(posterior) {
    if constexpr (bayesian) {
      posterior_.centre().check_count(1);
      const DeviationSource wanted = options_.deviation.value_or(posterior_.source());
      require(wanted == posterior_.source(), "deviation", to_string(wanted),
              detail::concat("the posterior of the model has ", to_string(posterior_.source())));
      options_.deviation = posterior_.source();
      detail::set_posterior(options_, posterior_);
      const detail::RawSizes raw = detail::raw_sizes(posterior_);
      learner_.inputs = stalk_dimension * options_.widths.front();
      learner_.mean = raw.mean;
      learner_.spread = raw.spread;
      learner_.labels = raw.labels;
      learner_.first_dispersion = detail::first_dispersion(options_.spread);
    } else {
      posterior_.check_count(options_.layers);
    }
    layers::ParameterList<layers::ParameterSlot> list(parameters_);
    declare(list, layout_);
  }

  [[nodiscard]] const Posterior& posterior() const noexcept { return posterior_; }
  [[nodiscard]] const layers::SheafLearnerOptions& learner() const noexcept { return learner_; }
  [[nodiscard]] Index coordinates() const noexcept { return stalk_dimension; }
  /// The widest row that a layer diffuses, d · max c_l.
  [[nodiscard]] Index hidden_width() const noexcept {
    return stalk_dimension * *std::max_element(options_.widths.begin() + 1, options_.widths.end());
  }
  /// Number of different sheaves in a forward pass.
  [[nodiscard]] Index sheaf_count() const noexcept { return options_.layers; }

  /// Declares all parameters. Takes any list.
  template <class T>
  void declare(layers::ParameterList<T>& list, ConvolutionWeights<T>& weights) const {
    weights.declare(list, options_, learner_, stalk_dimension);
  }

 private:
  [[no_unique_address]] Posterior posterior_;
  layers::SheafLearnerOptions learner_;
};

/// Convolutions on a given sheaf.
template <RestrictionMapFamily Family, std::floating_point S = float>
using SheafConvolutions = ConvolutionModel<Family, GivenMaps<Family>, S>;
/// Convolutions on sheaves that are drawn from a distribution around a given one.
template <RestrictionMapFamily Family, std::floating_point S = float>
using BayesianSheafConvolutions = ConvolutionModel<Family, AroundGiven<Family>, S>;

/// See convolution_network.hpp.
template <RestrictionMapFamily Family, class Posterior, std::floating_point Scalar>
class Network<ConvolutionModel<Family, Posterior, Scalar>>;

}  // namespace sheafnn
