/// \file
/// Graphs that are read from a folder as needed, and networks on drawn neighbours.
#include "models/sampled.hpp"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <sheafnn/graph/graph_rows.hpp>
#include <sheafnn/io/folder_rows.hpp>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "figures.hpp"
#include "interpreter.hpp"
#include "models/registry.hpp"
#include "models/trained_network.hpp"
#include "module.hpp"
#include "node_arrays.hpp"
#include "options.hpp"
#include "prediction.hpp"
#include "settings.hpp"
#include "supervisor.hpp"
#include "trained_model.hpp"

namespace python {

namespace {

/// A folder, and splits of its nodes. Copies have the same rows.
struct LargeGraph {
  std::string name;
  std::shared_ptr<const sheafnn::io::FolderRows> rows;
  std::vector<sheafnn::Split> splits;

  explicit LargeGraph(const std::filesystem::path& folder)
      : name(sheafnn::io::folder_name(folder)),
        rows(std::make_shared<const sheafnn::io::FolderRows>(folder)),
        splits({rows->split()}) {}
};

/// Rows that look for Ctrl-C while they are read.
class WatchedRows final : public sheafnn::GraphRows {
 public:
  /// Both must outlive it.
  WatchedRows(const sheafnn::GraphRows& rows, Supervisor& supervisor) : rows_(&rows), supervisor_(&supervisor) {}

  [[nodiscard]] Index node_count() const override { return rows_->node_count(); }
  [[nodiscard]] Index feature_count() const override { return rows_->feature_count(); }
  [[nodiscard]] std::span<const std::int32_t> labels() const override { return rows_->labels(); }
  [[nodiscard]] Index class_count() const override { return rows_->class_count(); }
  [[nodiscard]] Index degree(Index u) const override { return rows_->degree(u); }
  [[nodiscard]] Index neighbour(Index u, Index k) const override { return rows_->neighbour(u, k); }
  void append_features(Index u, std::vector<std::int32_t>& columns, std::vector<double>& values) const override {
    supervisor_->look();
    rows_->append_features(u, columns, values);
  }
  [[nodiscard]] const Dataset* dataset() const noexcept override { return rows_->dataset(); }

 private:
  const sheafnn::GraphRows* rows_;
  Supervisor* supervisor_;
};

/// What the models read of data in memory, or in a folder.
[[nodiscard]] sheafnn::DatasetRows rows_of(const Dataset& data) { return sheafnn::DatasetRows(data); }
[[nodiscard]] const sheafnn::GraphRows& rows_of(const LargeGraph& graph) { return *graph.rows; }

using FanOuts = std::optional<std::vector<Index>>;

/// \param fan_outs  none: the default
/// \param sampling  options of SamplingOptions
/// \tparam Data     a Dataset or a LargeGraph
/// \returns         the model, figures of its best epoch, and its epochs
template <class Data>
nb::tuple train(const Data& data, std::size_t split_number, const std::string& model, const std::string& maps,
                int stalk_dimension, FanOuts fan_outs, const Texts& sampling, const Texts& network,
                const Texts& training, std::uint64_t seed, const nb::object& report, bool keep_interrupted) {
  const std::string own_maps(maps_of(model, maps));
  const programs::ModelEntry& entry = programs::find_model(model, own_maps, stalk_dimension);
  const sheafnn::Split& split = split_of(data, split_number);
  const auto& rows = rows_of(data);
  programs::SampledDefaults options;
  if (fan_outs) options.sampling.fan_outs = std::move(*fan_outs);
  set_options(sampling, options.sampling, "sampling", "a sampling");
  programs::with_options_of(model, options.network, [&](auto& own) {
    own.features = rows.feature_count();
    own.classes = rows.class_count();
    if constexpr (std::is_same_v<Data, Dataset>) {
      set_network(own, data, network, model, own_maps);
    } else {
      set_network(own, Dataset(), network, model, own_maps);
    }
  });
  set_options(training, options.train, "training", "a training");
  refuse_idle_options(model, own_maps, options.network, options.train, network, training);
  options.train.seed = seed;
  Supervisor supervisor(report, options.train.epochs, keep_interrupted);
  options.train.on_epoch = std::ref(supervisor);
  programs::NetworkOutcome outcome = without_lock([&] {
    return entry.train_on_samples({WatchedRows(rows, supervisor), data.name, split, options.network,
                                   options.sampling, options.train, programs::is_bayesian(model)});
  });
  supervisor.check_signals();
  return nb::make_tuple(Model("trained model", std::move(outcome.checkpoint)),
                        figures_of(outcome.result, outcome.parameters, supervisor.interrupted()),
                        history_of(outcome.result.history));
}

/// What a model says about some nodes. \param nodes  increasing
template <class Data>
nb::dict predict(const Model& model, const Data& data, const Input<std::int32_t>& nodes, const FanOuts& fan_outs,
                 Index samples, std::uint64_t seed, int threads) {
  const std::vector<Index> drawn = fan_outs.value_or(sheafnn::SamplingOptions().fan_outs);
  const sheafnn::PredictOptions options = {.samples = samples, .seed = seed, .threads = threads};
  Supervisor supervisor(nb::none(), 0, /*keep=*/false);
  const auto predict_with = [&](const auto& own) {
    const auto& rows = rows_of(own);
    return model.predict_on_samples(WatchedRows(rows, supervisor), span_of(nodes), drawn, options);
  };
  const sheafnn::Prediction p = without_lock([&] {
    if constexpr (std::is_same_v<Data, Dataset>) {
      return model.with_own_names(data, predict_with);
    } else {
      return predict_with(data);
    }
  });
  supervisor.check_signals();
  return prediction_of(p, static_cast<std::size_t>(p.class_count));
}

template <class Data>
void bind_samples(nb::module_& module) {
  module.def("train_on_samples", &train<Data>, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
             nb::arg().none(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg());
  module.def("predict_on_samples", &predict<Data>, nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg(),
             nb::arg(), nb::arg());
}

}  // namespace

void bind_sampled(nb::module_& module) {
  nb::class_<LargeGraph>(module, "LargeGraph")
      .def_static("open",
                  [](const std::filesystem::path& folder) {
                    const GilRelease release;
                    return LargeGraph(folder);
                  })
      .def_ro("name", &LargeGraph::name)
      .def_prop_ro("node_count", [](const LargeGraph& graph) { return graph.rows->node_count(); })
      .def_prop_ro("edge_count", [](const LargeGraph& graph) { return graph.rows->edge_count(); })
      .def_prop_ro("feature_count", [](const LargeGraph& graph) { return graph.rows->feature_count(); })
      .def_prop_ro("class_count", [](const LargeGraph& graph) { return graph.rows->class_count(); })
      .def_prop_ro("feature_names", [](const LargeGraph&) { return std::vector<std::string>(); })
      .def_prop_ro("class_names", [](const LargeGraph&) { return std::vector<std::string>(); })
      .def_prop_ro("labels",
                   [](nb::handle self) {
                     const auto labels = nb::cast<const LargeGraph&>(self).rows->labels();
                     const std::size_t shape[] = {labels.size()};
                     return Output<const std::int32_t>(labels.data(), 1, shape, self);
                   })
      .def("set_splits",
           [](LargeGraph& graph, const std::vector<SplitArrays>& splits) {
             take_splits(graph, graph.rows->node_count(), splits);
           })
      .def("splits", &get_splits<LargeGraph>);
  module.def("copy_large_graph", [](const LargeGraph& graph) { return graph; });
  module.attr("max_fan_out") = sheafnn::max_fan_out;
  bind_samples<Dataset>(module);
  bind_samples<LargeGraph>(module);
}

}  // namespace python
