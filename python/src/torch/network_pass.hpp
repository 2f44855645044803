/// \file
/// Networks and their layers for sheafnn.torch: one class for both, by the library's Network. A layer takes embeddings from
/// outside and hands on what its diffusion gives; a network takes features and gives outputs.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <sheafnn/bsnn/forward_pass.hpp>
#include <sheafnn/bsnn/given_posterior.hpp>
#include <sheafnn/bsnn/network.hpp>
#include <sheafnn/core/buffer.hpp>
#include <sheafnn/graph/dataset.hpp>
#include <sheafnn/graph/given_map_arrays.hpp>
#include <sheafnn/graph/graph_of.hpp>
#include <sheafnn/io/model_tensors.hpp>
#include <sheafnn/io/option_text.hpp>
#include <span>
#include <type_traits>
#include <utility>

#include "../options.hpp"
#include "models/model_on.hpp"
#include "pass.hpp"

namespace python {

/// The model of these options, with parameters that are to be set.
///
/// \param graph, given  where maps are given; without edges the model serves for its parameters
/// \throws std::invalid_argument  maps of another size or that the family refuses, or missing labels
template <class Model, class Options>
[[nodiscard]] Model bare_model(const Options& options, const sheafnn::Graph& graph = {},
                               sheafnn::GivenMapArrays given = {}) {
  const auto make = [&] {
    if constexpr (programs::reads_given_sheaf<Model>) {
      sheafnn::Dataset data;
      data.graph = graph;
      data.given_sheaf = std::make_shared<const sheafnn::GivenMapArrays>(std::move(given));
      return Model(sheafnn::detail::LayoutOnly{}, options,
                   sheafnn::given_posterior<typename Model::Posterior>(data, programs::deviation_of(options)));
    } else if constexpr (std::is_constructible_v<Model, sheafnn::detail::LayoutOnly, const Options&>) {
      return Model(sheafnn::detail::LayoutOnly{}, options);
    } else {
      return Model(sheafnn::detail::LayoutOnly{}, options, typename Model::Posterior{});
    }
  };
  Model model = make();
  model.parameters().finish();
  return model;
}

/// Numbers of a node between layers.
template <class Model>
[[nodiscard]] Index row_of(const Model& model) {
  if constexpr (requires { model.row(); }) return model.row();
  return model.hidden_width();
}

template <class Model>
inline constexpr bool on_hypergraphs_v = std::is_same_v<sheafnn::GraphOf<Model>, sheafnn::Hypergraph>;

/// What came as columns for a network to go over.
template <class Model>
using ColumnsOf =
    std::conditional_t<on_hypergraphs_v<Model>, ColumnHypergraph,
                       std::conditional_t<programs::reads_given_sheaf<Model>, ColumnSheaf, ColumnGraph>>;

template <class Model>
class NetworkPass final : public Pass {
  using S = typename Model::Scalar;

 public:
  /// \param model  its parameters are to be set
  NetworkPass(Model model, std::shared_ptr<const ColumnsOf<Model>> graph,
              std::shared_ptr<const sheafnn::NodeFeatures> features)
      : graph_(std::move(graph)),
        features_(std::move(features)),
        model_(std::move(model)),
        network_(model_, graph_->graph,
                 features_ ? *features_ : none(model_.options().features, graph_->graph.node_count())) {}

  void set_parameter(std::size_t number, const void* values) override {
    const auto id = static_cast<sheafnn::layers::ParameterId>(number);
    model_.parameters().set(id, {static_cast<const S*>(values), count_of(id)});
  }
  double forward(const PassOptions& options, const void* features, void* output) override {
    options_ = options;
    from_outside_ = features != nullptr;
    if (from_outside_) {
      embedding_at_ = static_cast<const S*>(features);
      if (!options.features_stay) {
        embedding_.resize(rows() * model_.hidden_width());
        std::copy_n(embedding_at_, embedding_.size(), embedding_.data());
        embedding_at_ = embedding_.data();
      }
    }
    compute(static_cast<S*>(output));
    ready_ = options.keep;
    return network_.kl() + network_.kl_of_layers();
  }
  void backward(const void* output_bar, double kl_bar, void* features_bar) override {
    if (!ready_) compute(nullptr);  // the pass is a function of what is kept here: it can be computed again
    ready_ = false;
    // Weights of the KL term are positive: of a negative one, all derivatives are the negatives.
    sign_ = kl_bar < 0 ? S(-1) : S(1);
    const Index size = rows() * outputs();
    const S* bar = static_cast<const S*>(output_bar);
    const auto before_activation = [&](S* to) {
      activate_numbers_backward(options_.threads, options_.activation, size, result_.data(), bar, sign_, to);
    };
    network_.begin_backward({.kl_weight = std::abs(kl_bar)});
    if constexpr (takes_embeddings) {
      if (from_outside_) {
        const sheafnn::FeatureView<S> own = network_.features_bar();
        before_activation(own.data());
        network_.accumulate_features(own);
        const Index count = rows() * model_.hidden_width();
        S* to = static_cast<S*>(features_bar);
        if (to == nullptr) {
          embedding_bar_.resize(count);
          to = embedding_bar_.data();
        }
        network_.finish_backward(sheafnn::MatrixView<S>(to, rows(), model_.hidden_width()));
        for (Index i = 0; kl_bar < 0 && i < count; ++i) to[i] = -to[i];
        return;
      }
    }
    if (kl_bar < 0) {
      bar_.resize(size);
      before_activation(bar_.data());
      bar = bar_.data();
    }
    network_.accumulate(sheafnn::MatrixView<const S>(bar, rows(), outputs()));
    network_.finish_backward();
  }
  void gradient(std::size_t number, void* values) const override {
    const auto id = static_cast<sheafnn::layers::ParameterId>(number);
    const std::span to(static_cast<S*>(values), count_of(id));
    model_.parameters().get(id, network_.gradient(), to);
    if (sign_ < 0) std::transform(to.begin(), to.end(), to.begin(), std::negate<S>());
  }

 private:
  using Network = sheafnn::Network<Model>;
  static constexpr bool takes_embeddings = requires(Network & network, sheafnn::MatrixView<S> rows) {
    network.finish_backward(rows);
  };

  /// Node features for layers, which do not read any.
  [[nodiscard]] static sheafnn::NodeFeatures none(Index columns, Index nodes) {
    return sheafnn::NodeFeatures::from_csr(std::vector<Index>(static_cast<std::size_t>(nodes + 1)), {}, {},
                                           columns);
  }
  [[nodiscard]] std::size_t count_of(sheafnn::layers::ParameterId id) const {
    return static_cast<std::size_t>(model_.parameters().info(id).size);
  }
  [[nodiscard]] Index rows() const { return graph_->graph.node_count(); }
  /// Numbers of a node.
  [[nodiscard]] Index outputs() const { return from_outside_ ? row_of(model_) : model_.options().classes; }

  /// \param output  null: not wanted
  void compute(S* output) {
    network_.set_execution(options_.threads);
    const sheafnn::ForwardPass<S> pass{.seed = options_.seed,
                                       .epoch = options_.epoch,
                                       .training = options_.training,
                                       .keep = options_.keep,
                                       .input_dropout = options_.training ? options_.input_dropout : 0.0,
                                       .dropout = options_.training ? options_.dropout : 0.0};
    result_ = {};
    if constexpr (takes_embeddings) {
      if (from_outside_) {
        network_.begin(pass, sheafnn::MatrixView<const S>(embedding_at_, rows(), model_.hidden_width()));
        result_ = network_.diffuse(0).rows();
      }
    }
    if (result_.empty()) result_ = network_.forward(pass);
    if (output == nullptr) return;
    if (from_outside_) {
      activate_numbers(options_.threads, options_.activation, rows() * outputs(), result_.data(), output);
    } else {
      sheafnn::MatrixView<S>(output, rows(), outputs()).eigen() = result_.eigen();
    }
  }

  std::shared_ptr<const ColumnsOf<Model>> graph_;
  std::shared_ptr<const sheafnn::NodeFeatures> features_;
  Model model_;
  Network network_;
  PassOptions options_;
  bool from_outside_ = false;
  bool ready_ = false;  ///< does the network hold what a backward pass reads?
  S sign_ = 1;
  sheafnn::MatrixView<const S> result_;  ///< of the network, before the activation
  const S* embedding_at_ = nullptr;
  sheafnn::Buffer<S> embedding_, embedding_bar_, bar_;
};

template <class Model>
class NetworkArchitecture final : public Architecture {
 public:
  using Options = typename Model::Options;

  explicit NetworkArchitecture(Setting setting)
      : no_maps_(take_label_count(setting.options)),
        model_(bare_model<Model>(options_of(setting), {}, no_maps_)) {}

  [[nodiscard]] const Model& model() const { return model_; }
  [[nodiscard]] Shapes parameters() const override { return shapes_of(model_.parameters()); }
  [[nodiscard]] std::vector<std::vector<double>> initial(std::uint64_t seed) const override {
    return initial_of(model_.parameters(), seed);
  }
  [[nodiscard]] Index width() const override { return model_.hidden_width(); }
  [[nodiscard]] Index row() const override { return row_of(model_); }
  [[nodiscard]] bool bayesian() const override { return Model::bayesian; }
  [[nodiscard]] bool on_hypergraphs() const override { return on_hypergraphs_v<Model>; }
  [[nodiscard]] bool has_given_sheaf() const override { return programs::reads_given_sheaf<Model>; }
  [[nodiscard]] std::map<std::string, std::string> metadata() const override {
    return sheafnn::io::to_tensors(model_).metadata;
  }
  [[nodiscard]] std::unique_ptr<Pass> make_pass(
      const std::shared_ptr<const Relations>& relations,
      std::shared_ptr<const sheafnn::NodeFeatures> features) const override {
    auto graph = columns_of<ColumnsOf<Model>>(relations);
    if constexpr (programs::reads_given_sheaf<Model>) {
      sheafnn::GivenMapArrays given = graph->given;
      given.label_count = no_maps_.label_count;
      Model model = bare_model<Model>(model_.options(), graph->graph, std::move(given));
      return std::make_unique<NetworkPass<Model>>(std::move(model), std::move(graph), std::move(features));
    }
    if (features) return std::make_unique<NetworkPass<Model>>(model_, std::move(graph), std::move(features));
    Options options = model_.options();
    options.features = 1;  // of a layer: PyTorch has the weights of the encoder, which are not read
    return std::make_unique<NetworkPass<Model>>(bare_model<Model>(options), std::move(graph), nullptr);
  }

 private:
  /// Takes the number of labels of edges out of the texts: the posterior has it, and the options have not. 0: a learner predicts
  /// spreads.
  static sheafnn::GivenMapArrays take_label_count(std::map<std::string, std::string>& texts) {
    sheafnn::GivenMapArrays r;
    if constexpr (programs::reads_given_sheaf<Model> && Model::bayesian) {
      if (const auto found = texts.extract("label_count"); !found.empty()) {
        sheafnn::io::parse_option("label_count", found.mapped(), r.label_count);
        sheafnn::require_between("label_count", r.label_count, 0, sheafnn::GivenMapArrays::largest_label + 1);
      }
    }
    return r;
  }
  static Options options_of(const Setting& setting) {
    Options options;
    options.features = setting.features;
    options.classes = setting.classes;
    Texts texts(setting.options.begin(), setting.options.end());
    if (const auto plan = texts.extract("feature_plan"); !plan.empty()) {
      sheafnn::io::parse_option("feature_plan", plan.mapped(), options.feature_plan);
    }
    set_options(texts, options, "options", setting.kind);
    return options;
  }

  sheafnn::GivenMapArrays no_maps_;  ///< of a graph without edges, with the number of labels
  Model model_;
};

}  // namespace python
