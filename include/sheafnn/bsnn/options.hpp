/// \file
/// ModelOptions: a network's architecture, and resolve(), which fills in defaults and checks it. Also how the KL
/// term and samples enter the loss: KlSchedule, SampleLoss, KlEstimator. Dropout rates: forward_pass.hpp,
/// train_options.hpp.
#pragma once

#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sheafnn/bsnn/network_kind.hpp"
#include "sheafnn/bsnn/shared_options.hpp"
#include "sheafnn/bsnn/type_options.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/names.hpp"
#include "sheafnn/core/option.hpp"
#include "sheafnn/graph/feature_treatment.hpp"
#include "sheafnn/layers/layer_form.hpp"
#include "sheafnn/layers/polynomial_basis.hpp"
#include "sheafnn/layers/residual_options.hpp"
#include "sheafnn/layers/sheaf_learner_options.hpp"
#include "sheafnn/posterior/sheaf_activation.hpp"
#include "sheafnn/posterior/sheaf_posterior.hpp"
#include "sheafnn/posterior/spread_range.hpp"
#include "sheafnn/rotation/parametrisation.hpp"
#include "sheafnn/sheaf/family.hpp"
#include "sheafnn/sheaf/normalisation.hpp"

namespace sheafnn {

/// Architecture of a sheaf network; family and stalk dimension D are template parameters of the model.
/// Throughout, d' = D + add_lp + add_hp is the number of stalk coordinates and h = d' · channels the hidden width.
struct ModelOptions {
  static constexpr NetworkKind kind{.bayesian = "bsnn",
                                    .deterministic = "nsd",
                                    .options = "ModelOptions",
                                    .title = "Networks of layers",
                                    .maps = "maps per incident pair",
                                    .modules = "Nsd, Bsnn, SheafConv, BayesianSheafConv"};
  /// The same networks on maps that are given with the data.
  static constexpr NetworkKind given_kind{.bayesian = "bsnn-around",
                                          .deterministic = "nsd-given",
                                          .options = "ModelOptions",
                                          .title = "Networks of layers on a given sheaf",
                                          .maps = "given maps of incident pairs",
                                          .learned_maps = false,
                                          .modules = "NsdGiven, BsnnAround, SheafDiffusion"};

  Index features = 0;   ///< p, number of input features
  Index channels = 16;  ///< f, feature channels per stalk coordinate
  Index layers = 4;     ///< L, diffusion layers
  Index classes = 0;    ///< C, number of classes, or of outputs for another loss

  /// What happens to features before the network reads them (math: "Features").
  FeatureTreatment feature_treatment = FeatureTreatment::automatic;

  bool add_lp = false;  ///< append a fixed low-pass stalk coordinate
  bool add_hp = false;  ///< append a fixed high-pass stalk coordinate

  /// Learn an edge weight w_e ∈ (0, 1); rotation families only (default: on for them).
  std::optional<bool> edge_weights = {};
  /// Feed the sheaf learner from an encoder of its own; Bayesian models only (default: on for rotations).
  std::optional<bool> separate_encoder = {};
  /// Give the sheaf encoder the node's degree as one more input (needs separate_encoder).
  bool degree_input = false;
  /// Hidden layers (ELU) of the sheaf learner, and their width (0: as wide as `channels`). They have no effect if maps
  /// are not learned.
  Index learner_layers = 0;
  Index learner_width = 0;
  /// How the sheaf learner combines the features of two nodes.
  LearnerInput learner = LearnerInput::concatenation;
  /// Number of arc features that the sheaf learner reads as well.
  Index edge_features = 0;
  /// Function of the sheaf learner's outputs (of the means, in Bayesian models) before the map is formed. attention:
  /// deterministic models with general linear maps, augmented. exponential: general linear maps. residual: general linear
  /// and diagonal maps. Default: identity for rotations, tanh for other maps and with the published spread.
  std::optional<SheafActivation> sheaf_activation = {};
  /// Initial and largest spread of Bayesian maps. `published` also sets the defaults of sheaf_activation and
  /// parametrisation.
  SpreadRange spread = SpreadRange::concentrated;

  bool second_linear = false;  ///< a second linear layer in the encoder
  bool linear = false;         ///< one sheaf, the first layer's, for all layers: the published code's name
  bool left_weights = true;    ///< A_l, mixing stalk coordinates
  bool right_weights = true;   ///< B_l, mixing channels
  bool activation = true;      ///< ELU in the encoder and after each diffusion
  bool layer_norm = false;     ///< normalise a node's h features after each layer, with a scale and a shift
  Index readout_layers = 1;    ///< the last is affine, and layers before it are h × h with GELU
  Normalisation normalisation = Normalisation::augmented;
  /// Parametrisation of mean rotations (default: exponential; Householder for the published spread).
  std::optional<rotation::RotationParametrisation> parametrisation = {};
  PolynomialOptions filter = {};  ///< diffuse with a polynomial of the Laplacian (math: "Polynomial filters")
  ResidualOptions residual = {};  ///< what layers add to the diffused features (math: "Deep networks")
  /// With the normalisation block: fixed filters are normalised by (deg + 1)^{-1/2}, as for the other normalisations,
  /// instead of deg^{-1/2}. Set for models stored in files of version 1 (io/format_version.hpp), whose filters had this
  /// scale.
  bool augmented_filters = false;
  /// Use the edges of a graph; without them the network sees each node alone (math: "Networks without edges").
  bool use_edges = true;
  /// Names of the edges' types, each of which has weights of the sheaf learner; Graph::edge_types() numbers them. Empty or
  /// one: all edges have the same weights.
  std::vector<std::string> edge_types = {};
  /// Names of the nodes' types, which Graph::node_types() numbers, and the dimension of their stalks, 1 … D. Maps are then
  /// d_e × d_v: diagonal and general linear maps alone. Empty: all nodes have D.
  std::vector<std::string> node_types = {};
  std::vector<Index> stalks = {};
  /// Dimensions of the stalks of edges for each of edge_types, 1 … D. Empty: all edges have D.
  std::vector<Index> edge_stalks = {};
  /// The treatment, column by column; empty: made from the first features that a network of the model reads, or a training.
  FeaturePlan feature_plan = {};
  /// The equation of the layers (default: the equation of the first of the model's LayerKinds). Equations other than
  /// diffusion need the layer kinds of every_layer.hpp.
  std::optional<LayerForm> layer = {};
  AttentionOptions attention = {};  ///< with the layer attention
  DirectedOptions directed = {};    ///< with the layer directed

  friend bool operator==(const ModelOptions&, const ModelOptions&) = default;
};

/// Declares the options: see core/option.hpp. Takes any options.
template <class Visit, OptionsOf<ModelOptions>... Options>
void for_each_option(const Visit& visit, Options&... options) {
  visit(detail::layers_option, options.layers...);
  detail::for_each_shared_option(visit, options...);
  visit({"linear", "all layers share one sheaf"}, options.linear...);
  visit({.key = "layer_norm", .summary = "apply layer norm after each layer", .since = "0.1"},
        options.layer_norm...);
  visit({.key = "use_edges",
         .summary = "use the edges of the graph; without them the network sees each node alone",
         .flag = "--edges",
         .since = "0.2"},
        options.use_edges...);
  visit({.key = "edge_types",
         .summary = "names of the edges' types, each with weights of the sheaf learner; train and train_mpi have "
                    "--edge-types, which takes them from the data",
         .flag = "",
         .since = "0.2"},
        options.edge_types...);
  visit({.key = "node_types",
         .summary = "names of the nodes' types, each with stalks of its own; train and train_mpi have --stalks, "
                    "which takes them from the data",
         .flag = "",
         .since = "0.2"},
        options.node_types...);
  visit({.key = "stalks",
         .summary = "stalk dimension of each type of nodes; train and train_mpi have --stalks",
         .flag = "",
         .since = "0.2"},
        options.stalks...);
  visit({.key = "edge_stalks",
         .summary = "stalk dimension of each type of edges; train and train_mpi have --edge-stalks",
         .flag = "",
         .since = "0.2"},
        options.edge_stalks...);
  for_each_option(visit, options.filter...);
  for_each_option(visit, options.residual...);
  visit({.key = "layer",
         .summary = "equation of the layers; attention, copresheaf and directed have no edge weights by default",
         .automatic = "diffusion",
         .since = "0.2"},
        options.layer...);
  for_each_option(visit, options.attention...);
  for_each_option(visit, options.directed...);
}

namespace detail {

/// Do layers have I − Δ in place of Δ? Takes any options.
template <class Options>
[[nodiscard]] bool averages(const Options& options) {
  return options.residual.initial() || options.layer == LayerForm::convolution;
}

/// Refuses options that layers of other forms do not support. Unchecked: options.layer is set.
///
/// \throws std::invalid_argument  naming the option
SHEAFNN_NOINLINE inline void check_layer_form(const ModelOptions& options) {
  const LayerForm form = *options.layer;
  if (form == LayerForm::diffusion) return;
  const auto refuse = [&](std::string_view name, std::string_view value, std::string_view why) {
    throw_invalid_argument(name, value, concat("the layer ", to_string(form), " ", why));
  };
  if (options.filter.active()) refuse("filter.basis", to_string(options.filter.basis), "has no filter");
  if (options.residual.initial()) {
    refuse("residual.form", to_string(options.residual.form), "has a residual of its own, or none");
  }
  const bool filters = has_fixed_filters(form);
  if (options.add_lp && !filters) refuse("add_lp", "true", "has no fixed filters");
  if (options.add_hp && !filters) refuse("add_hp", "true", "has no fixed filters");
  if (form == LayerForm::copresheaf && *options.edge_weights)
    refuse("edge_weights", "true", "has no edge weights");
  if (form == LayerForm::attention && options.attention.normalised &&
      options.normalisation != Normalisation::augmented) {
    refuse("normalisation", to_string(options.normalisation), "is normalised as augmented only");
  }
}

}  // namespace detail

/// Does a family's chart have a rotation parametrisation?
template <class Family>
inline constexpr bool has_rotation_coordinates = requires(rotation::RotationParametrisation parametrisation) {
  Family::coordinate_range(parametrisation, 0);
};

/// Fills in the defaults that depend on the family and checks every field.
///
/// \param bayesian  does the model have a posterior over sheaves (BSNN) or a point mass (NSD)?
/// \throws std::invalid_argument  naming the option, its value and its limit
template <RestrictionMapFamily Family>
[[nodiscard]] ModelOptions resolve(ModelOptions options, bool bayesian) {
  constexpr bool rotations = sheaf::is_orthogonal<Family> && sheaf::is_learned<Family>;
  check_ranges(options);
  detail::check_plan(options.feature_plan, options.features);
  if (!options.layer) options.layer = LayerForm::diffusion;
  if (!options.edge_weights.has_value()) options.edge_weights = rotations && has_fixed_filters(*options.layer);
  if (!options.separate_encoder.has_value()) options.separate_encoder = rotations && bayesian;
  if (options.learner_layers > 0 && options.learner_width == 0) options.learner_width = options.channels;
  require(!*options.edge_weights || sheaf::may_have_edge_weights<Family>, "edge_weights", true,
          detail::concat(Family::name, " maps have no edge weights"));
  require(!*options.separate_encoder || (bayesian && sheaf::is_learned<Family>), "separate_encoder", true,
          "only Bayesian models with learned maps have a sheaf encoder");
  require(!options.degree_input || *options.separate_encoder, "degree_input", true, "needs separate_encoder");
  require(options.learner == LearnerInput::concatenation || sheaf::is_learned<Family>, "learner",
          to_string(options.learner), detail::concat(Family::name, " maps are not learned"));
  require(options.edge_features == 0 || sheaf::is_learned<Family>, "edge_features", options.edge_features,
          detail::concat(Family::name, " maps are not learned"));
  require(options.edge_types.empty() || sheaf::is_learned<Family>, "edge_types", options.edge_types.size(),
          detail::concat(Family::name, " maps are not learned"));
  detail::check_types(options, Family::stalk_dimension);
  if (detail::has_own_stalks(options, Family::stalk_dimension)) {
    detail::check_own_stalks(options, sheaf::may_be_residual<Family>, Family::name);
  }
  const bool published = options.spread == SpreadRange::published;
  if (!options.sheaf_activation) options.sheaf_activation = detail::default_sheaf_activation(rotations, published);
  if (!options.parametrisation) options.parametrisation = detail::default_parametrisation(published);
  require(options.sheaf_activation == SheafActivation::tanh || sheaf::is_learned<Family>, "sheaf_activation",
          to_string(*options.sheaf_activation), detail::concat(Family::name, " maps are not learned"));
  const auto refuse = [&](const std::string& why) {
    throw_invalid_argument("sheaf_activation", to_string(*options.sheaf_activation), why);
  };
  const bool needs_matrix = options.sheaf_activation == SheafActivation::attention ||
                            options.sheaf_activation == SheafActivation::exponential;
  if (needs_matrix && !sheaf::may_attend<Family>) {
    refuse(detail::concat("needs general linear maps of dimension 2 or more, not ", Family::name,
                          Family::stalk_dimension > 1 ? "" : " of 1"));
  }
  if (options.sheaf_activation == SheafActivation::residual && !sheaf::may_be_residual<Family>) {
    refuse(detail::concat("needs diagonal or general linear maps, not ", Family::name));
  }
  if (options.sheaf_activation == SheafActivation::attention) {
    if (bayesian) refuse("only deterministic models have such maps");
    if (options.normalisation != Normalisation::augmented)
      refuse(detail::concat("F 1 = 0: needs the normalisation augmented, not ", to_string(options.normalisation)));
  }
  require(!options.augmented_filters || options.normalisation == Normalisation::block, "augmented_filters", true,
          "only the normalisation block has this option; other normalisations always scale fixed filters so");
  if (!bayesian || !sheaf::is_learned<Family>) options.spread = SpreadRange::published;  // maps are not random
  validate(options.filter);
  require(!options.residual.initial() || !options.filter.active(), "residual.form",
          to_string(options.residual.form), "a polynomial filter has a gated residual only");
  detail::check_layer_form(options);
  require(options.parametrisation != rotation::RotationParametrisation::euler || Family::stalk_dimension == 2 ||
              Family::stalk_dimension == 3 || !has_rotation_coordinates<Family>,
          "parametrisation", "euler", "Euler angles exist for stalk dimensions 2 and 3");
  return options;
}

/// How λ, the weight of the KL term, depends on the epoch t = 0, 1, ….
enum class KlSchedule {
  cyclical,  ///< sigmoid((t mod 40)/2 − 10), times the maximum
  constant,  ///< the maximum
  off        ///< 0
};
/// Its names, in the order of the enumeration.
[[nodiscard]] constexpr auto names_of(KlSchedule) { return std::array{"cyclical", "constant", "off"}; }
/// λ_t (math: "Loss"). Takes any maximum and epoch.
[[nodiscard]] SHEAFNN_HD inline double kl_weight(KlSchedule schedule, double maximum, Index epoch) {
  using std::exp;
  switch (schedule) {
    case KlSchedule::cyclical:
      return maximum / (1 + exp(10 - static_cast<double>(epoch % 40) / 2));
    case KlSchedule::constant:
      return maximum;
    case KlSchedule::off:
      break;
  }
  return 0;
}

/// How the losses of several samples F_1 … F_K of the sheaf combine. A node has the likelihoods p(y | F_k).
enum class SampleLoss {
  expected,   ///< (1/K) Σ_k −log p(y | F_k), as in the evidence lower bound
  predictive  ///< −log (1/K) Σ_k p(y | F_k), the loss of averaged predictions; equal to `expected` if K = 1
};
/// Its names, in the order of the enumeration.
[[nodiscard]] constexpr auto names_of(SampleLoss) { return std::array{"expected", "predictive"}; }

/// How KL(posterior ‖ prior) is computed.
enum class KlEstimator {
  automatic,    ///< in closed form, where the posterior and its prior have one
  closed_form,  ///< exactly
  monte_carlo   ///< log q − log p of the sampled maps, averaged over layers and samples
};
/// Its names, in the order of the enumeration.
[[nodiscard]] constexpr auto names_of(KlEstimator) {
  return std::array{"automatic", "closed-form", "monte-carlo"};
}

/// Is the KL term of a posterior computed in closed form?
///
/// \throws std::invalid_argument  the closed form, for a posterior without one
template <class Posterior>
[[nodiscard]] bool uses_closed_form(KlEstimator estimator) {
  if constexpr (is_point_mass<Posterior>) {
    return true;
  } else {
    if (!Posterior::closed_form_kl && estimator == KlEstimator::closed_form) {
      throw_invalid_argument("kl_estimator", to_string(estimator),
                             detail::concat("the posterior ", Posterior::name,
                                            " with its prior has no closed form"));
    }
    return Posterior::closed_form_kl && estimator != KlEstimator::monte_carlo;
  }
}

}  // namespace sheafnn
