/// \file
/// FlowModel: continuous-time sheaf diffusion, architecture and parameters, independent of any graph.
///
///     using Model = sheafnn::SheafFlow<sheafnn::Diagonal<2>>;                    // deterministic
///     using Model = sheafnn::BayesianSheafFlow<sheafnn::SpecialOrthogonal<3>>;   // one sheaf sampled per trajectory
///
///     X(0) = encoder(X),   dX/dt = −ELU(Δ_F (I ⊗ A) X Bᵀ),   Y = X(T) W₂ + b₂,
///
/// F learned from X(0), for all t. Source: math: "Continuous-time diffusion", "The model".
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include "sheafnn/bsnn/model.hpp"
#include "sheafnn/bsnn/network.hpp"
#include "sheafnn/layers/diffusion_field.hpp"
#include "sheafnn/layers/flow_options.hpp"

namespace sheafnn {

/// Architecture of a continuous-time sheaf network. Fields that ModelOptions has as well mean the same.
struct FlowOptions {
  static constexpr Index layers = 1;            ///< the flow, where layers are counted
  static constexpr PolynomialOptions filter{};  ///< none

  Index features = 0;   ///< p, number of input features (≥ 1)
  Index channels = 16;  ///< f, feature channels per stalk coordinate (1 … 1024)
  Index classes = 0;    ///< C, number of classes, or of outputs of another loss (≥ 1)

  double time = 1;  ///< T; for this and what follows see FlowIntegration
  FlowMethod method = FlowMethod::dormand_prince;
  double absolute_tolerance = 1e-3;
  double relative_tolerance = 1e-3;
  double first_step = 0.25;
  Index max_steps = 1000;
  Index fixed_steps = 8;

  bool normalise_features = true;
  bool add_lp = false;
  bool add_hp = false;
  std::optional<bool> edge_weights = {};
  std::optional<bool> separate_encoder = {};
  bool degree_input = false;
  Index learner_layers = 0;
  Index learner_width = 0;
  LearnerInput learner = LearnerInput::concatenation;
  Index edge_features = 0;
  SheafActivation sheaf_activation = SheafActivation::tanh;
  bool second_linear = false;
  bool left_weights = true;   ///< A
  bool right_weights = true;  ///< B
  bool activation = true;     ///< ELU in the encoder and in dX/dt
  Index readout_layers = 1;
  bool negate_inside = false;  ///< dX/dt = ELU(−Δ …) instead of −ELU(Δ …)
  Normalisation normalisation = Normalisation::augmented;
  RotationParametrisation parametrisation = RotationParametrisation::householder;

  [[nodiscard]] FlowIntegration integration() const {
    return {method, time, absolute_tolerance, relative_tolerance, first_step, max_steps, fixed_steps};
  }
  [[nodiscard]] DiffusionFieldOptions field() const {
    return {left_weights, right_weights, activation, negate_inside};
  }

  friend bool operator==(const FlowOptions&, const FlowOptions&) = default;
};

namespace detail {

/// The same network with one diffusion layer.
[[nodiscard]] inline ModelOptions one_layer(const FlowOptions& options) {
  ModelOptions r;
  r.features = options.features;
  r.channels = options.channels;
  r.layers = 1;
  r.classes = options.classes;
  r.normalise_features = options.normalise_features;
  r.add_lp = options.add_lp;
  r.add_hp = options.add_hp;
  r.edge_weights = options.edge_weights;
  r.separate_encoder = options.separate_encoder;
  r.degree_input = options.degree_input;
  r.learner_layers = options.learner_layers;
  r.learner_width = options.learner_width;
  r.learner = options.learner;
  r.edge_features = options.edge_features;
  r.sheaf_activation = options.sheaf_activation;
  r.second_linear = options.second_linear;
  r.left_weights = options.left_weights;
  r.right_weights = options.right_weights;
  r.activation = options.activation;
  r.readout_layers = options.readout_layers;
  r.normalisation = options.normalisation;
  r.parametrisation = options.parametrisation;
  return r;
}

}  // namespace detail

/// Fills in the defaults that depend on the family and checks every field.
///
/// \param bayesian  has the model a posterior over sheaves?
/// \throws std::invalid_argument  naming the option, its value and its limit
template <RestrictionMapFamily Family>
[[nodiscard]] FlowOptions resolve(FlowOptions options, bool bayesian) {
  const ModelOptions resolved = resolve<Family>(detail::one_layer(options), bayesian);
  validate(options.integration());
  options.edge_weights = resolved.edge_weights;
  options.separate_encoder = resolved.separate_encoder;
  options.learner_width = resolved.learner_width;
  return options;
}

/// Architecture and parameters.
///
/// \tparam PosteriorType  as for SheafModel
/// \tparam S              float (default) or double
template <RestrictionMapFamily FamilyType, SheafSource PosteriorType, std::floating_point S = float>
class FlowModel {
  static_assert(std::is_same_v<typename PosteriorType::family, FamilyType>, "the posterior of another family");

 public:
  using Family = FamilyType;
  using Posterior = PosteriorType;
  using Options = FlowOptions;
  using Scalar = S;
  static constexpr int stalk_dimension = Family::stalk_dimension;
  static constexpr bool bayesian = !is_point_mass<Posterior>;
  /// As checkpoints and programs name it.
  static constexpr std::string_view kind = bayesian ? "bflow" : "flow";

  /// Builds the model with initial parameters: linear layers uniform in ±1/√fan_in, A = I, B random orthogonal.
  ///
  /// \param seed       selects the initial parameters
  /// \param posterior  the posterior's own state, such as a prior; its rotation parametrisation and
  ///                   sheaf activation are the options'
  /// \throws std::invalid_argument  an option out of range (see resolve())
  explicit FlowModel(const FlowOptions& options, std::uint64_t seed = 0, const Posterior& posterior = {})
      : options_(resolve<Family>(options, bayesian)), posterior_(posterior) {
    if constexpr (requires { posterior_.parametrisation; }) posterior_.parametrisation = options_.parametrisation;
    if constexpr (requires { posterior_.sheaf_activation = options_.sheaf_activation; }) {
      posterior_.sheaf_activation = options_.sheaf_activation;
    } else {
      require(options_.sheaf_activation == SheafActivation::tanh, "sheaf_activation",
              to_string(options_.sheaf_activation),
              detail::concat("the posterior ", Posterior::name, " has its own"));
    }
    const detail::ParameterShape shape{coordinates(),        hidden_width(),         sheaf_count(),
                                       Posterior::mean_size, Posterior::spread_size, bayesian};
    ModelOptions network = detail::one_layer(options_);
    network.layers = 0;
    layout_ = detail::lay_out(network, shape, parameters_);
    const Index d = coordinates(), f = options_.channels;
    const auto add = [&](const char* name, Index extent) {
      return parameters_.add(name, {extent, extent}, ParameterGroup::network);
    };
    if (options_.left_weights) flow_.left = add("left.0", d);
    if (options_.right_weights) flow_.right = add("right.0", f);
    flow_.activation = options_.activation;
    parameters_.finish();
    ModelLayout with_flow = layout_;
    with_flow.layers.push_back(flow_);
    detail::initialise(network, shape, with_flow, seed, parameters_);
  }

  [[nodiscard]] const FlowOptions& options() const noexcept { return options_; }
  /// Of everything but the flow: no diffusion layers.
  [[nodiscard]] const ModelLayout& layout() const noexcept { return layout_; }
  /// A and B; there is no ε.
  [[nodiscard]] const DiffusionLayout& flow_layout() const noexcept { return flow_; }
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
  [[nodiscard]] Index sheaf_count() const noexcept { return 1; }

 private:
  FlowOptions options_;
  [[no_unique_address]] Posterior posterior_;
  ModelLayout layout_;
  DiffusionLayout flow_;
  ParameterSet<S> parameters_;
};

/// Continuous-time sheaf diffusion with a learned distribution of restriction maps, the family's usual one.
template <RestrictionMapFamily Family, std::floating_point S = float>
using BayesianSheafFlow = FlowModel<Family, DefaultPosterior<Family>, S>;
/// Continuous-time sheaf diffusion with restriction maps that are learned functions of X(0).
template <RestrictionMapFamily Family, std::floating_point S = float>
using SheafFlow = FlowModel<Family, PointMass<Family>, S>;

/// See flow_network.hpp.
template <RestrictionMapFamily Family, SheafSource Posterior, std::floating_point Scalar>
class Network<FlowModel<Family, Posterior, Scalar>>;

}  // namespace sheafnn
