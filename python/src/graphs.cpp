/// \file
/// Sets of graphs, and networks with outputs per graph.
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <sheafnn/bsnn/pooled_options.hpp>
#include <sheafnn/bsnn/prediction.hpp>
#include <sheafnn/bsnn/train_options.hpp>
#include <sheafnn/graph/graph_set.hpp>
#include <sheafnn/io/checkpoint.hpp>
#include <sheafnn/io/graph_sets.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "checkpoint.hpp"
#include "checkpoint_class.hpp"
#include "figures.hpp"
#include "graph_arrays.hpp"
#include "graphs/models.hpp"
#include "interpreter.hpp"
#include "models/class_names.hpp"
#include "module.hpp"
#include "node_arrays.hpp"
#include "options.hpp"
#include "prediction.hpp"
#include "settings.hpp"
#include "supervisor.hpp"

namespace python {

namespace {

using sheafnn::GraphSet;
constexpr const sheafnn::NetworkKind& kind = sheafnn::PooledOptions::kind;

/// A trained network: a checkpoint.
class GraphModel : public Checkpoint {
 public:
  /// \throws std::runtime_error      it is not a checkpoint
  /// \throws std::invalid_argument   a network with outputs per node, or a network that this build does not contain
  GraphModel(std::filesystem::path path, sheafnn::io::TensorFile file)
      : Checkpoint(std::move(path), std::move(file)) {
    sheafnn::require(kind.has(info().model), "model", info().model,
                     "its outputs are of nodes, not of graphs: SheafClassifier or HypergraphClassifier loads it");
    entry_ = &graph_program::find_model(info().maps, info().stalk_dimension);
  }
  [[nodiscard]] bool bayesian() const { return info().model == kind.bayesian; }
  [[nodiscard]] sheafnn::PooledOptions options() const { return info().options<sheafnn::PooledOptions>(); }
  [[nodiscard]] std::vector<std::string> class_names() const { return class_names_of(options().classes); }
  /// \throws std::invalid_argument  a set with other feature columns
  [[nodiscard]] sheafnn::Prediction predict(const GraphSet& set, const sheafnn::PredictOptions& options) const {
    check_columns(set);
    return entry_->predict(trained(), set, options);
  }
  [[nodiscard]] std::vector<double> sample_numbers(const GraphSet& set,
                                                   const sheafnn::PredictOptions& options) const {
    check_columns(set);
    return entry_->sample_numbers(trained(), set, options);
  }

 private:
  [[nodiscard]] graph_program::Trained trained() const { return {path().string(), file(), bayesian()}; }

  const graph_program::ModelEntry* entry_ = nullptr;
};

/// \param graph_of  the graph of each of n nodes
/// \param tags      n whole numbers, or empty
/// \param offsets, columns, values, feature_count  n × p features as a CSR matrix; empty offsets: no features
/// \param feature_names  p, or empty: unknown
GraphSet make_graph_set(std::string name, const Input<std::int64_t>& edges, const Input<std::int64_t>& graph_of,
                        const Input<std::int64_t>& tags, const Input<std::int64_t>& offsets,
                        const Input<std::int32_t>& columns, const Input<double>& values, Index feature_count,
                        std::vector<std::string> feature_names) {
  const std::vector<std::int64_t> graphs = vector_of(graph_of);
  sheafnn::require(!graphs.empty(), "graph_indicator", "none", "a set needs at least one graph of one node");
  const auto n = static_cast<Index>(graphs.size());
  std::vector<std::int32_t> starts;
  try {
    starts = sheafnn::io::detail::graph_offsets(graphs, 0, [](std::size_t u) {
      return sheafnn::detail::concat("graph_indicator[", u, "]");
    });
  } catch (const std::runtime_error& error) {
    throw std::invalid_argument(error.what());
  }
  GraphSet set;
  set.name = std::move(name);
  set.graph = make_graph(n, edges);
  set.graph.set_graphs(std::move(starts));
  sheafnn::io::detail::NodeAttributes attributes{.names = std::move(feature_names)};
  if (offsets.size() > 0) {
    attributes.values = sheafnn::NodeFeatures::from_csr(vector_of(offsets), vector_of(columns), vector_of(values),
                                                        feature_count, sheafnn::MissingValues::mark);
    sheafnn::require(attributes.values.rows() == n, "features", attributes.values.rows(),
                     sheafnn::detail::concat("must have one row for each of ", n, " nodes"));
  }
  const sheafnn::io::detail::NodeTags own_tags{.numbers = vector_of(tags)};
  sheafnn::require(own_tags.numbers.empty() || own_tags.numbers.size() == graphs.size(), "node_tags",
                   own_tags.numbers.size(), sheafnn::detail::concat("must be one for each of ", n, " nodes"));
  sheafnn::io::detail::take_node_features(set, own_tags, std::move(attributes));
  return set;
}

/// The set with other classes. \param labels  G, -1 where unknown
GraphSet with_labels(const GraphSet& set, const Input<std::int32_t>& labels, Index class_count,
                     std::vector<std::string> class_names) {
  GraphSet r = set;
  r.labels = vector_of(labels);
  r.class_count = class_count;
  r.class_names = std::move(class_names);
  r.targets.clear();
  r.target_count = 0;
  return r;
}
/// The set with numbers in place of classes. \param targets  G × k, NaN where unknown
GraphSet with_targets(const GraphSet& set, const Input<double>& targets) {
  GraphSet r = with_labels(set, {}, 0, {});
  r.targets = vector_of(targets);
  r.target_count = static_cast<Index>(targets.shape(1));
  return r;
}
/// The set with other test folds.
GraphSet with_folds(const GraphSet& set, const std::vector<Input<std::int32_t>>& folds) {
  GraphSet r = set;
  r.folds.clear();
  r.splits.clear();
  std::vector<std::int8_t> taken(static_cast<std::size_t>(set.graph_count()), 0);
  for (const Input<std::int32_t>& fold : folds) {
    r.folds.push_back(sorted(fold));
    sheafnn::detail::check_set(r.folds.back(), taken, sheafnn::detail::concat("folds[", r.folds.size() - 1, "]"),
                               [](std::int32_t g) { return g; });
  }
  return r;
}

nb::list fold_arrays(const GraphSet& set) {
  nb::list r;
  for (const std::vector<std::int32_t>& fold : set.folds) r.append(to_numpy(fold, {fold.size()}));
  return r;
}
Output<std::int32_t> graph_indicator(const GraphSet& set) {
  std::vector<std::int32_t> r;
  for (Index g = 0; g < set.graph_count(); ++g) {
    r.resize(static_cast<std::size_t>(set.graph.first_node(g + 1)), static_cast<std::int32_t>(g));
  }
  const std::size_t n = r.size();
  return to_numpy(std::move(r), {n});
}

/// Training, validation and test graphs where `fold` is tested, drawn as the program graphs draws them.
nb::tuple fold_split(const GraphSet& set, const Input<std::int32_t>& fold, double share, std::uint64_t seed,
                     std::uint64_t number) {
  const sheafnn::Split split = sheafnn::fold_splits(set, {vector_of(fold)}, share, seed + number).front();
  const auto part = [](const std::vector<std::int32_t>& graphs) { return to_numpy(graphs, {graphs.size()}); };
  return nb::make_tuple(part(split.train), part(split.validation), part(split.test));
}

/// \returns  the model, figures of its best epoch, and its epochs
nb::tuple train(const GraphSet& set, const SplitArrays& parts, std::string_view model, const std::string& maps,
                int stalk_dimension, const Texts& network, const Texts& training, std::uint64_t seed,
                const nb::object& report, bool keep_interrupted) {
  sheafnn::require(model == "nsd" || model == "bsnn", "model", model, "must be nsd or bsnn");
  const graph_program::ModelEntry& entry = graph_program::find_model(maps, stalk_dimension);
  validate(set);
  const sheafnn::Split split = {sorted(std::get<0>(parts)), sorted(std::get<1>(parts)),
                                sorted(std::get<2>(parts))};
  graph_program::Defaults options;
  options.network.features = set.feature_count();
  options.network.classes = set.targets.empty() ? set.class_count : set.target_count;
  set_network(options.network, set, network, model, maps);
  set_options(training, options.train, "training", "a training");
  refuse_idle_options(model, maps, options.network, options.train, network, training);
  options.train.seed = seed;
  Supervisor supervisor(report, options.train.epochs, keep_interrupted);
  options.train.on_epoch = std::ref(supervisor);
  graph_program::Outcome outcome =
      without_lock([&] { return entry.train({set, split, options.network, options.train, model == "bsnn"}); });
  supervisor.check_signals();
  return nb::make_tuple(GraphModel("trained model", std::move(outcome.checkpoint)),
                        figures_of(outcome.result, outcome.parameters, supervisor.interrupted()),
                        history_of(outcome.result.history));
}

}  // namespace

void bind_graphs(nb::module_& module) {
  nb::class_<GraphSet> bound(module, "GraphSet");
  bind_graph_arrays(bound);
  bound.def_prop_ro("graph_count", &GraphSet::graph_count)
      .def_prop_ro("graph_indicator", &graph_indicator, nb::rv_policy::reference)
      .def_ro("feature_names", &GraphSet::feature_names)
      .def_rw("edge_feature_names", &GraphSet::edge_feature_names)
      .def_rw("graph_names", &GraphSet::graph_names)
      .def_prop_ro(
          "targets",
          [](const GraphSet& set) {
            return to_numpy(set.targets, {set.targets.empty() ? 0 : static_cast<std::size_t>(set.graph_count()),
                                          static_cast<std::size_t>(set.target_count)});
          },
          nb::rv_policy::reference)
      .def_prop_ro("folds", &fold_arrays)
      .def_prop_ro("splits", &get_splits<GraphSet>)
      .def("with_splits",
           [](const GraphSet& set, const std::vector<SplitArrays>& splits) {
             GraphSet r = set;
             r.folds.clear();
             take_splits(r, set.graph_count(), splits);
             return r;
           })
      .def("with_labels", &with_labels)
      .def("with_targets", &with_targets)
      .def("with_folds", &with_folds)
      .def("with_stratified_folds",
           [](const GraphSet& set, Index count, std::uint64_t seed) {
             GraphSet r = set;
             r.folds = sheafnn::stratified_folds(set, count, seed);
             r.splits.clear();
             return r;
           })
      .def("fold_split", &fold_split);
  bind_checkpoint<GraphModel>(module, "GraphModel")
      .def_prop_ro("bayesian", &GraphModel::bayesian)
      .def_prop_ro("maps", [](const GraphModel& model) { return model.info().maps; })
      .def_prop_ro("class_names", &GraphModel::class_names)
      .def_prop_ro("feature_count", [](const GraphModel& model) { return given_columns_of(model.options()); })
      .def_prop_ro("outputs", [](const GraphModel& model) { return model.options().classes; })
      .def("predict",
           [](const GraphModel& model, const GraphSet& set, Index samples, std::uint64_t seed, int threads) {
             const sheafnn::Prediction p = without_lock(
                 [&] { return model.predict(set, {.samples = samples, .seed = seed, .threads = threads}); });
             return prediction_of(p, static_cast<std::size_t>(p.class_count));
           })
      .def("sample_numbers",
           [](const GraphModel& model, const GraphSet& set, Index samples, std::uint64_t seed, int threads) {
             std::vector<double> values = without_lock(
                 [&] { return model.sample_numbers(set, {.samples = samples, .seed = seed, .threads = threads}); });
             const auto graphs = static_cast<std::size_t>(set.graph_count());
             const auto outputs = static_cast<std::size_t>(model.options().classes);
             const std::size_t drawn = values.size() / (graphs * outputs);
             return to_numpy(std::move(values), {drawn, graphs, outputs});
           });
  module.def("make_graph_set", &make_graph_set);
  module.def("load_graphs", [](const std::filesystem::path& path) {
    const GilRelease release;
    return sheafnn::io::load_graphs(path);
  });
  module.def("train_graphs", &train, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
             nb::arg(), nb::arg().none(), nb::arg());
}

}  // namespace python
