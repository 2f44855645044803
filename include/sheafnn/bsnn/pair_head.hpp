/// \file
/// PairHead computes scores of pairs of nodes from the outputs of a network, with the backward pass. The score is a dot
/// product, a bilinear form, or the energy of the outputs on a pair under the network's own sheaf
/// (layers/pair_scores.hpp, pair_sheaf.hpp).
///
/// The outputs y_u of a node (C values, ModelOptions::classes) are its embedding; the energy reads them as d × C/d values
/// in its stalk. The head's parameters belong to a loss: extend_parameters() adds them after the model's own, with the
/// names `loss.dot.bias`, `loss.dot.log_temperature`, … math: "Links".
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "sheafnn/bsnn/loss.hpp"
#include "sheafnn/bsnn/network.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/layers/pair_scores.hpp"
#include "sheafnn/layers/pair_sheaf.hpp"
#include "sheafnn/nn/parameter_list.hpp"

namespace sheafnn {

using layers::PairScore;

/// The form of a head.
struct PairHeadOptions {
  PairScore score = PairScore::dot;
  Index scores = 1;         ///< K
  bool temperature = true;  ///< one score with a temperature, for links; otherwise weights are learned
};

/// The head for class probabilities. Two classes have one score, the logit of the second class. Takes any numbers.
[[nodiscard]] inline PairHeadOptions class_head(PairScore score, Index class_count) noexcept {
  return {score, class_count == 2 ? 1 : class_count, class_count == 2};
}
/// The head for real numbers of pairs. Takes any numbers.
[[nodiscard]] inline PairHeadOptions value_head(PairScore score, Index columns) noexcept {
  return {score, columns, false};
}

/// Do the networks of a model have a sheaf learner that gives maps to pairs of nodes that are not edges?
template <class Model>
inline constexpr bool has_pair_maps = requires(Network<Model>& network) {
  network.last_learner();
};

namespace detail {

/// \throws std::invalid_argument  an energy without maps or of complex features, or outputs that do not fit
template <class Model>
[[nodiscard]] layers::PairScoreOptions pair_score_options(const Model& model, const PairHeadOptions& head) {
  layers::PairScoreOptions r{head.score, model.options().classes, 1, head.scores, head.temperature};
  if (head.score == PairScore::energy) {
    require(has_pair_maps<Model>, "score", to_string(head.score),
            concat("a network of the kind ", Model::kind, " has no sheaf learner for pairs of nodes"));
    r.coordinates = Model::stalk_dimension;
    if constexpr (requires { model.options().layer; }) {
      require(layers::parts_of(model.options().layer) == 1, "layer", to_string(LayerForm::directed),
              "the energy of a pair reads real features");
    }
    if constexpr (requires { model.layout().learner.edge_features; }) {
      require(model.layout().learner.edge_features == 0, "edge_features", model.layout().learner.edge_features,
              "the energy needs a sheaf learner that reads nodes alone: pairs have no features");
      refuse_types(model.options(), "the energy needs a sheaf learner of one type: pairs have no types");
    }
  }
  validate(r);
  return r;
}

/// What the names of a head's parameters begin with.
[[nodiscard]] SHEAFNN_NOINLINE inline std::string pair_head_prefix(PairScore score) {
  return concat(layers::loss_prefix, to_string(score));
}

/// The head's parameters in a model's, or in an array laid out like them.
///
/// \throws std::invalid_argument  the model has no parameter of that name
template <class T, class S>
[[nodiscard]] layers::PairWeights<T> pair_weights(const layers::ParameterSet<S>& parameters, T* array,
                                                  const layers::PairScoreOptions& options) {
  const std::string prefix = pair_head_prefix(options.score);
  layers::ParameterList<T> list(parameters, array);
  list.go_to(parameters.find(prefix + ".bias"));
  layers::PairWeights<T> r;
  r.declare(list, prefix, options);
  return r;
}

/// The sheaf of a model's pairs.
template <class Model>
struct PairSheafOf {
  static constexpr bool is_sampled = Model::bayesian && sheaf::is_learned<typename Model::Family>;
  using Posterior = std::conditional_t<is_sampled, typename Model::Posterior, PointMass<typename Model::Family>>;
  using type = layers::PairSheaf<Posterior, typename Model::Scalar>;

  [[nodiscard]] static auto maps(const Model& model) {
    if constexpr (is_sampled) {
      return model.posterior();
    } else {
      return PointMap<typename Model::Family>{*model.options().parametrisation, *model.options().sheaf_activation};
    }
  }
};

}  // namespace detail

/// Adds a head's parameters to a model's parameters, unless the model has them. A network that was made before must be
/// made again.
///
/// \throws std::invalid_argument  a head that does not fit the model, or parameters of another shape
template <class Model>
void add_pair_head(Model& model, const PairHeadOptions& head, std::uint64_t seed = 0) {
  const layers::PairScoreOptions options = detail::pair_score_options(model, head);
  const std::string prefix = detail::pair_head_prefix(head.score);
  auto& parameters = model.parameters();
  const bool there = std::any_of(parameters.info().begin(), parameters.info().end(),
                                 [&](const layers::ParameterInfo& info) { return info.name == prefix + ".bias"; });
  if (!there) {
    layers::PairWeights<layers::ParameterSlot> slots;
    layers::extend_parameters(parameters, seed, [&](layers::ParameterList<layers::ParameterSlot>& list) {
      slots.declare(list, prefix, options);
    });
    return;
  }
  try {
    static_cast<void>(detail::pair_weights(parameters, parameters.values().data(), options));
  } catch (const std::logic_error&) {
    throw_invalid_argument("score", to_string(head.score),
                           "the model has parameters of this score with other shapes");
  }
}

/// Buffers of scores of pairs by networks of one model. Unchecked: pairs have two different nodes of the graph.
template <class Model>
class PairScorer {
 public:
  using S = typename Model::Scalar;

  /// Sets the pairs of the next draws. To be called before the first draw of every pass.
  ///
  /// \throws std::invalid_argument  a head that does not fit the model, a model without its parameters, a part of a graph
  void begin(Network<Model>& network, const PairHeadOptions& head, std::vector<Edge> pairs) {
    require(network.graph().part() == nullptr, "graph", "a part of a graph", "pairs need a whole graph");
    const layers::PairScoreOptions options = detail::pair_score_options(network.model(), head);
    if (graph_ == nullptr || pairs != pairs_ || graph_->node_count() != network.graph().node_count() ||
        options != options_) {
      options_ = options;
      pairs_ = std::move(pairs);
      scores_.reset();
      sheaf_.reset();
      graph_ = std::make_unique<const Graph>(network.graph().node_count(), pairs_);
      edge_of_.clear();
      const auto edges = graph_->edges();
      for (const Edge& pair : pairs_) {
        const Edge sorted{std::min(pair.u, pair.v), std::max(pair.u, pair.v)};
        edge_of_.push_back(
            static_cast<std::int32_t>(std::lower_bound(edges.begin(), edges.end(), sorted) - edges.begin()));
      }
      scores_.emplace(*graph_, options);
      if constexpr (has_pair_maps<Model>) {
        if (head.score == PairScore::energy) {
          sheaf_ = std::make_unique<typename detail::PairSheafOf<Model>::type>(
              *graph_, network.model().layout().learner, detail::PairSheafOf<Model>::maps(network.model()),
              options.features());
        }
      }
    }
    inferred_ = false;
  }
  /// Scores of the current sample, one row per distinct pair; row_of() gives the row of a pair.
  ///
  /// \param outputs  n × C
  MatrixView<const S> scores(Network<Model>& network, const MatrixView<const S>& outputs) {
    const Execution execution = network.execution();
    if constexpr (has_pair_maps<Model>) {
      if (sheaf_ != nullptr) {
        // In deterministic models the learner's input comes from the draw, in Bayesian models from the pass.
        if (!inferred_ || !detail::PairSheafOf<Model>::is_sampled) infer(network);
        inferred_ = true;
        sheaf_->draw(execution, network.pass().of_pairs(network.sample()));
        sheaf_->energies(execution, outputs, scores_->features());
      }
    }
    const auto& parameters = network.model().parameters();
    scores_->forward(execution, detail::pair_weights(parameters, parameters.values().data(), options_), outputs);
    return scores_->scores();
  }
  [[nodiscard]] std::span<const std::int32_t> row_of() const noexcept { return edge_of_; }
  /// Memory for the derivative of scores().
  [[nodiscard]] MatrixView<S> scores_bar() noexcept { return scores_->scores_bar(); }

  /// Computes the derivatives of the outputs (overwritten), of the head's parameters and, for energies, of the sheaf
  /// learner's weights and input from scores_bar().
  void backward(Network<Model>& network, const MatrixView<const S>& outputs, const MatrixView<S>& outputs_bar) {
    detail::fill_zero(outputs_bar);
    const auto& parameters = network.model().parameters();
    scores_->backward(network.execution(), detail::pair_weights(parameters, parameters.values().data(), options_),
                      outputs, outputs_bar, detail::pair_weights(parameters, network.loss_gradient(), options_));
    if constexpr (has_pair_maps<Model>) {
      if (sheaf_ == nullptr) return;
      if constexpr (sheaf::is_learned<typename Model::Family>) {
        const auto learner = network.last_learner();
        sheaf_->backward(network.execution(), learner.weights(), learner.input(), outputs, scores_->features_bar(),
                         outputs_bar, learner.weights_bar(), learner.input_bar());
      } else {
        sheaf_->backward(network.execution(), {}, {}, outputs, scores_->features_bar(), outputs_bar, {}, {});
      }
    }
  }

 private:
  struct NoSheaf {};
  template <class M>
  struct SheafOf {
    using type = NoSheaf;
  };
  template <class M>
    requires has_pair_maps<M>
  struct SheafOf<M> {
    using type = typename detail::PairSheafOf<M>::type;
  };
  void infer(Network<Model>& network) {
    if constexpr (sheaf::is_learned<typename Model::Family>) {
      const auto learner = network.last_learner();
      sheaf_->infer(network.execution(), learner.weights(), learner.input());
    }
  }

  std::vector<Edge> pairs_;
  std::unique_ptr<const Graph> graph_;  ///< of the distinct pairs
  std::vector<std::int32_t> edge_of_;   ///< of each pair
  layers::PairScoreOptions options_;
  std::optional<layers::PairScores<S>> scores_;
  std::unique_ptr<typename SheafOf<Model>::type> sheaf_;  ///< of energies
  bool inferred_ = false;                                 ///< the learner's outputs for the pairs in this pass
};

}  // namespace sheafnn
