/// \file
/// A trained model: the content of its checkpoint, and the functions that know its type.
#pragma once

#include <cstdint>
#include <filesystem>
#include <sheafnn/bsnn/prediction.hpp>
#include <sheafnn/graph/graph_rows.hpp>
#include <sheafnn/io/checkpoint.hpp>
#include <sheafnn/io/npz_writer.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "checkpoint.hpp"
#include "models/registry.hpp"

namespace python {

using sheafnn::Dataset;
using sheafnn::Index;

using programs::maps_of;

/// A trained model: a checkpoint, and the functions that know its type.
class Model : public Checkpoint {
 public:
  /// \param path  where the file comes from, for messages
  /// \throws std::runtime_error      it is not a checkpoint
  /// \throws std::invalid_argument   a model that this build does not contain, or a network on hypergraphs
  Model(std::filesystem::path path, sheafnn::io::TensorFile file)
      : Checkpoint(std::move(path), std::move(file)),
        entry_(&programs::find_model(model_on_graphs(), maps(), info().stalk_dimension)) {}

  [[nodiscard]] bool bayesian() const { return programs::is_bayesian(info().model); }
  [[nodiscard]] std::string_view maps() const { return maps_of(info().model, info().maps); }
  /// What happens to features.
  [[nodiscard]] const sheafnn::FeaturePlan& plan() const {
    return programs::with_options_of(
        info().model, info().networks, [](const auto& options) -> const auto& { return options.feature_plan; });
  }

  /// Calls call(data) with types that are numbered as the model numbers them.
  ///
  /// \throws std::invalid_argument  data with other feature columns, or a type that the model does not know
  template <class Call>
  [[nodiscard]] auto with_own_names(const Dataset& data, const Call& call) const {
    check_columns(data);
    const auto [edge_types, node_types] = programs::types_of(info().model, info().networks);
    const auto same = [](const auto& own, const auto& names) {
      return own.empty() || names.empty() || own == names;
    };
    if (same(edge_types, data.edge_type_names) && same(node_types, data.node_type_names)) return call(data);
    Dataset copy = data;
    sheafnn::renumber_types(copy, edge_types, node_types);
    return call(std::as_const(copy));
  }
  /// \throws as with_own_names()
  [[nodiscard]] sheafnn::Prediction predict(const Dataset& data, const sheafnn::PredictOptions& options) const {
    return with_own_names(data, [&](const Dataset& own) {
      return entry_->predict(path(), file(), bayesian(), own, options);
    });
  }
  /// Predicts some nodes on drawn neighbours; see sheafnn::predict_on_samples().
  [[nodiscard]] sheafnn::Prediction predict_on_samples(const sheafnn::GraphRows& rows,
                                                       std::span<const std::int32_t> nodes,
                                                       std::span<const Index> fan_outs,
                                                       const sheafnn::PredictOptions& options) const {
    return entry_->predict_on_samples(path(), file(), bayesian(), rows, nodes, fan_outs, options);
  }
  /// \throws as with_own_names()
  [[nodiscard]] sheafnn::io::NpzWriter learned(const Dataset& data, const sheafnn::PredictOptions& options,
                                               Index layer) const {
    return with_own_names(data, [&](const Dataset& own) {
      return entry_->learned(path(), file(), bayesian(), own, options, layer);
    });
  }

 private:
  [[nodiscard]] const std::string& model_on_graphs() const {
    sheafnn::require(!sheafnn::is_on_hypergraphs(info().model), "model", info().model,
                     "it works on a hypergraph: HypergraphClassifier loads it");
    return info().model;
  }
  const programs::ModelEntry* entry_;
};

}  // namespace python
