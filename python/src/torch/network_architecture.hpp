/// \file
/// ModelArchitecture: what sheafnn.torch knows of a network or of a layer of it, whatever computes its passes.
#pragma once

#include <map>
#include <memory>
#include <sheafnn/bsnn/forward_pass.hpp>
#include <sheafnn/bsnn/given_posterior.hpp>
#include <sheafnn/graph/dataset.hpp>
#include <sheafnn/graph/given_map_arrays.hpp>
#include <sheafnn/graph/graph_of.hpp>
#include <sheafnn/io/model_tensors.hpp>
#include <sheafnn/io/option_text.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

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

/// Values per node between layers.
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

/// Node features for layers, which do not read any.
[[nodiscard]] inline sheafnn::NodeFeatures no_features(Index columns, Index nodes) {
  return sheafnn::NodeFeatures::from_csr(std::vector<Index>(static_cast<std::size_t>(nodes + 1)), {}, {}, columns);
}

/// A pass of a network with these options.
template <class S>
[[nodiscard]] sheafnn::ForwardPass<S> forward_pass(const PassOptions& options) {
  return {.seed = options.seed,
          .epoch = options.epoch,
          .training = options.training,
          .keep = options.keep,
          .input_dropout = options.training ? options.input_dropout : 0.0,
          .dropout = options.training ? options.dropout : 0.0};
}

/// A network or a layer of it; where it computes is up to derived classes.
template <class Model>
class ModelArchitecture : public Architecture {
 public:
  using Options = typename Model::Options;

  explicit ModelArchitecture(Setting setting)
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

 protected:
  /// \param columns   what the pass goes over
  /// \param features  does it read features? Of a layer, PyTorch has the weights of the encoder, which are not read
  [[nodiscard]] Model model_of_pass(const ColumnsOf<Model>& columns, bool features) const {
    if constexpr (programs::reads_given_sheaf<Model>) {
      sheafnn::GivenMapArrays given = columns.given;
      given.label_count = no_maps_.label_count;
      return bare_model<Model>(model_.options(), columns.graph, std::move(given));
    }
    if (features) return model_;
    Options options = model_.options();
    options.features = 1;
    return bare_model<Model>(options);
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

/// What a registry has of a model's two networks. \param maps  what find_model() calls the maps
template <class Bayesian, class Deterministic>
[[nodiscard]] constexpr TorchEntry entry_of(std::string_view maps, decltype(TorchEntry::make) make) {
  return {Bayesian::kind,
          Deterministic::kind,
          maps,
          Deterministic::stalk_dimension,
          std::is_same_v<typename Deterministic::Scalar, double>,
          make};
}

}  // namespace python
