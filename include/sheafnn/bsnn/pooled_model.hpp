/// \file
/// PooledModel: a network with one row of outputs per graph of a union (Graph::set_graphs()). It pools the features of
/// a node network:
///
///     using Model = sheafnn::PooledModel<sheafnn::Bsnn<sheafnn::SpecialOrthogonal<3>>>;
///     Model model({{.features = 7, .layers = 2, .classes = 2}, sheafnn::Pooling::mean});
///
/// X_{L+1} of the node network, r = pool(X_{L+1}), Y = r W_outᵀ + b_out. Source: math: "Pooling".
#pragma once

#include <cstdint>
#include <string_view>

#include "sheafnn/bsnn/model.hpp"
#include "sheafnn/bsnn/options.hpp"
#include "sheafnn/bsnn/pooled_options.hpp"
#include "sheafnn/layers/pooling_options.hpp"

namespace sheafnn {

/// Architecture and parameters.
///
/// \tparam NodeModel  a SheafModel
template <class NodeModel>
class PooledModel {
 public:
  using Family = typename NodeModel::Family;
  using Posterior = typename NodeModel::Posterior;
  using Scalar = typename NodeModel::Scalar;
  using S = Scalar;
  using Options = PooledOptions;
  static constexpr int stalk_dimension = NodeModel::stalk_dimension;
  static constexpr bool bayesian = NodeModel::bayesian;
  static constexpr std::string_view kind = bayesian ? Options::kind.bayesian : Options::kind.deterministic;

  /// Builds the model with initial parameters. The parameters of the node network have its own initial values; the vector
  /// a of attention is uniform in ±1/√h.
  ///
  /// \throws std::invalid_argument  as SheafModel; an option out of range; harmonic pooling without edges, of complex features
  ///                                or of copresheaves
  /// \throws std::invalid_argument  harmonic pooling with a normalisation other than augmented and block, whose eigenvalues
  ///                                may exceed 2
  explicit PooledModel(const PooledOptions& options, std::uint64_t seed = 0, const Posterior& posterior = {})
      : PooledModel(detail::LayoutOnly{}, options, posterior) {
    parameters().initialise(seed);
  }
  /// The same model without values of its parameters.
  PooledModel(detail::LayoutOnly, const PooledOptions& options, const Posterior& posterior = {})
      : options_(options), node_model_(detail::LayoutOnly{}, options, posterior) {
    check_ranges(options);
    static_cast<ModelOptions&>(options_) = node_model_.options();
    if (options.pooling == Pooling::harmonic) {
      detail::require_edges(options_);
      require(layers::parts_of(options_.layer) == 1, "layer", to_string(*options_.layer),
              "harmonic pooling reads real features");
      require(options_.layer != layers::LayerForm::copresheaf, "layer", "copresheaf",
              "harmonic pooling reads a Laplacian, and copresheaves have none");
      require(options.normalisation == Normalisation::augmented || options.normalisation == Normalisation::block,
              "normalisation", to_string(options.normalisation), "harmonic pooling needs augmented or block");
    }
    if (options.pooling == Pooling::attention) {
      layers::ParameterList<layers::ParameterSlot> list(parameters());
      list.vector(attention_, "pooling.attention", {hidden_width()}, layers::uniform_values(hidden_width()));
    }
  }

  /// Rows of outputs on a union: its graphs.
  [[nodiscard]] static Index output_rows(const Graph& graph) noexcept { return graph.graph_count(); }

  [[nodiscard]] const PooledOptions& options() const noexcept { return options_; }
  /// What happens to the features that networks of the model read.
  ///
  /// \throws std::invalid_argument  a plan of another number of columns
  void set_feature_plan(const FeaturePlan& plan) {
    node_model_.set_feature_plan(plan);
    options_.feature_plan = plan;
  }
  /// The node network's model, which also holds the parameters of the pooling.
  [[nodiscard]] const NodeModel& node_model() const noexcept { return node_model_; }
  [[nodiscard]] const Posterior& posterior() const noexcept { return node_model_.posterior(); }
  [[nodiscard]] layers::ParameterSet<S>& parameters() noexcept { return node_model_.parameters(); }
  [[nodiscard]] const layers::ParameterSet<S>& parameters() const noexcept { return node_model_.parameters(); }
  /// The parameter a of attention.
  [[nodiscard]] layers::ParameterSlot attention() const noexcept { return attention_; }
  [[nodiscard]] Index hidden_width() const noexcept { return node_model_.row(); }
  [[nodiscard]] Index sheaf_count() const noexcept { return node_model_.sheaf_count(); }

 private:
  PooledOptions options_;
  NodeModel node_model_;
  layers::ParameterSlot attention_;
};

}  // namespace sheafnn
