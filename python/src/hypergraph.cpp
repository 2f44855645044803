/// \file
/// Hypergraphs and networks on them.
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <sheafnn/bsnn/any_target_loss.hpp>
#include <sheafnn/bsnn/hypergraph_options.hpp>
#include <sheafnn/bsnn/prediction.hpp>
#include <sheafnn/bsnn/train_options.hpp>
#include <sheafnn/graph/hypergraph.hpp>
#include <sheafnn/graph/synthetic_hypergraph.hpp>
#include <sheafnn/io/checkpoint.hpp>
#include <sheafnn/io/hypergraph.hpp>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "checkpoint.hpp"
#include "checkpoint_class.hpp"
#include "figures.hpp"
#include "interpreter.hpp"
#include "models/class_names.hpp"
#include "models/registry.hpp"
#include "models/target_loss.hpp"
#include "module.hpp"
#include "node_arrays.hpp"
#include "options.hpp"
#include "prediction.hpp"
#include "supervisor.hpp"

namespace python {

namespace {

using sheafnn::HypergraphDataset;
constexpr const sheafnn::NetworkKind& kind = sheafnn::HypergraphOptions::kind;

/// A trained network: a checkpoint.
class HypergraphModel : public Checkpoint {
 public:
  /// \throws std::runtime_error      it is not a checkpoint
  /// \throws std::invalid_argument   of a network on graphs
  HypergraphModel(std::filesystem::path path, sheafnn::io::TensorFile file)
      : Checkpoint(std::move(path), std::move(file)) {
    sheafnn::require(kind.has(info().model), "model", info().model, "works on graphs: SheafClassifier loads it");
  }
  [[nodiscard]] Index classes() const { return info().options<sheafnn::HypergraphOptions>().classes; }
  [[nodiscard]] std::vector<std::string> class_names() const { return class_names_of(classes()); }
  [[nodiscard]] Index given_columns() const {
    return given_columns_of(info().options<sheafnn::HypergraphOptions>());
  }
  [[nodiscard]] sheafnn::Prediction predict(const HypergraphDataset& data,
                                            const sheafnn::PredictOptions& options) const {
    check_columns(data);
    return entry().predict(path(), file(), info().model == kind.bayesian, data, options);
  }
  /// Raw outputs of the first posterior sample, n × C.
  [[nodiscard]] std::vector<double> outputs(const HypergraphDataset& data, std::uint64_t seed) const {
    check_columns(data);
    // The loss that predicts the outputs themselves.
    const sheafnn::AnyTargetLoss loss(sheafnn::TargetLoss::squared, {.columns = classes()}, data.node_count());
    return entry().predict_targets(path(), file(), info().model == kind.bayesian, data, programs::TargetLoss(loss),
                                   {.samples = 1, .seed = seed});
  }

 private:
  [[nodiscard]] const programs::ModelEntry& entry() const {
    return programs::find_model(info().model, info().maps, info().stalk_dimension);
  }
};

/// \param incidence  nnz × 2: nodes and hyperedges
HypergraphDataset make_hypergraph(std::string name, Index nodes, Index hyperedges,
                                  const Input<std::int64_t>& incidence, const Input<std::int64_t>& offsets,
                                  const Input<std::int32_t>& columns, const Input<double>& values,
                                  Index feature_count, const Input<std::int32_t>& labels, Index class_count,
                                  std::vector<std::string> class_names, std::vector<std::string> feature_names) {
  const std::span<const std::int64_t> numbers = span_of(incidence);
  std::vector<sheafnn::Incidence> pairs(numbers.size() / 2);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    for (const std::size_t part : {0, 1}) {
      const std::int64_t number = numbers[2 * i + part];
      const Index count = part == 0 ? nodes : hyperedges;
      if (number >= 0 && number < count) continue;
      sheafnn::throw_invalid_argument(sheafnn::detail::concat("incidence[", i, ", ", part, "]"), number,
                                      sheafnn::detail::concat("must be between 0 and ", count - 1));
    }
    pairs[i] = {static_cast<std::int32_t>(numbers[2 * i]), static_cast<std::int32_t>(numbers[2 * i + 1])};
  }
  HypergraphDataset data;
  data.name = std::move(name);
  data.graph = sheafnn::Hypergraph(nodes, hyperedges, pairs);
  set_nodes(data, nodes, offsets, columns, values, feature_count, labels);
  data.class_count = class_count;
  data.class_names = std::move(class_names);
  data.feature_names = std::move(feature_names);
  return data;
}

Output<std::int32_t> incidence_of(const HypergraphDataset& data) {
  std::vector<std::int32_t> r;
  for (Index i = 0; i < data.graph.pair_count(); ++i) {
    r.push_back(static_cast<std::int32_t>(data.graph.node(i)));
    r.push_back(static_cast<std::int32_t>(data.graph.hyperedge(i)));
  }
  return to_numpy(std::move(r), {static_cast<std::size_t>(data.graph.pair_count()), 2});
}

/// \returns  the model and figures of its best epoch
nb::tuple train(const HypergraphDataset& data, std::size_t split, std::string_view model, const std::string& maps,
                int stalk_dimension, Texts network, Texts training, std::uint64_t seed, nb::object report) {
  sheafnn::require(split < data.splits.size(), "split", split,
                   sheafnn::detail::concat("the dataset has ", data.splits.size(), " splits"));
  sheafnn::require(kind.has(model), "model", model,
                   sheafnn::detail::concat("must be ", kind.deterministic, " or ", kind.bayesian));
  programs::NetworkOptions networks;
  auto& options = std::get<sheafnn::HypergraphOptions>(networks);
  options.features = data.feature_count();
  options.classes = data.class_count;
  for (const auto& [key, text] : network) sheafnn::require(!is_decided(key), "network", key, "the data decide it");
  set_options(std::move(network), options, "network", model);
  sheafnn::TrainOptions train;
  set_options(std::move(training), train, "training", "a training");
  train.seed = seed;
  Supervisor supervisor(std::move(report), train.epochs, false);
  train.on_epoch = [&](const sheafnn::EpochReport& epoch) { return supervisor(epoch); };
  sheafnn::TrainResult result;
  programs::TrainOutcome outcome = without_lock([&] {
    return programs::find_model(model, maps, stalk_dimension)
        .train({.data = data,
                .split = data.splits[split],
                .model = networks,
                .train = train,
                .bayesian = model == kind.bayesian,
                .seed = seed,
                .keep = {.model = true}},
               result);
  });
  const nb::dict figures = figures_of(result, outcome.parameters, false);
  return nb::make_tuple(HypergraphModel("trained model", std::move(outcome.checkpoint)), figures);
}

}  // namespace

void bind_hypergraph(nb::module_& module) {
  nb::class_<HypergraphDataset>(module, "HypergraphDataset")
      .def_ro("name", &HypergraphDataset::name)
      .def_prop_ro("node_count", &HypergraphDataset::node_count)
      .def_prop_ro("hyperedge_count", [](const HypergraphDataset& data) { return data.graph.hyperedge_count(); })
      .def_prop_ro("feature_count", [](const HypergraphDataset& data) { return data.features.given_columns(); })
      .def_ro("class_count", &HypergraphDataset::class_count)
      .def_ro("class_names", &HypergraphDataset::class_names)
      .def_ro("feature_names", &HypergraphDataset::feature_names)
      .def_prop_ro(
          "labels", [](const HypergraphDataset& data) { return to_numpy(data.labels, {data.labels.size()}); },
          nb::rv_policy::reference)
      .def_prop_ro("incidence", &incidence_of, nb::rv_policy::reference)
      .def("feature_arrays", &feature_arrays<HypergraphDataset>)
      .def("set_splits", &set_splits<sheafnn::Hypergraph>)
      .def("splits", &get_splits<sheafnn::HypergraphDataset>);
  bind_checkpoint<HypergraphModel>(module, "HypergraphModel")
      .def_prop_ro("maps", [](const HypergraphModel& model) { return model.info().maps; })
      .def_prop_ro("class_names", &HypergraphModel::class_names)
      .def_prop_ro("class_count", &HypergraphModel::classes)
      .def_prop_ro("given_columns", &HypergraphModel::given_columns)
      .def("outputs",
           [](const HypergraphModel& model, const HypergraphDataset& data, std::uint64_t seed) {
             std::vector<double> values = without_lock([&] { return model.outputs(data, seed); });
             const auto classes = static_cast<std::size_t>(model.classes());
             const std::size_t rows = values.size() / classes;
             return to_numpy(std::move(values), {rows, classes});
           })
      .def("predict", [](const HypergraphModel& model, const HypergraphDataset& data, Index samples,
                         std::uint64_t seed, int threads) {
        const sheafnn::Prediction p = without_lock(
            [&] { return model.predict(data, {.samples = samples, .seed = seed, .threads = threads}); });
        return prediction_of(p, static_cast<std::size_t>(p.class_count));
      });
  module.def("make_hypergraph", &make_hypergraph);
  module.def("copy_hypergraph", [](const HypergraphDataset& data) { return data; });
  module.def("synthetic_hypergraph",
             [](Index nodes, Index classes, Index features, Index words, Index hyperedges, Index least_size,
                Index largest_size, double homophily, double feature_noise, Index splits, std::uint64_t seed) {
               const GilRelease release;
               return sheafnn::synthetic_hypergraph({nodes, classes, features, words, hyperedges, least_size,
                                                     largest_size, homophily, feature_noise, splits, seed});
             });
  module.def(
      "load_hypergraph",
      [](const std::string& path, bool prediction, const std::string& label,
         std::vector<std::string> ignore_columns, sheafnn::MissingLabels missing_labels) {
        const GilRelease release;
        return sheafnn::io::load_hypergraph(path, {},
                                            prediction ? sheafnn::DatasetUse::prediction
                                                       : sheafnn::DatasetUse::training,
                                            {.label = label,
                                             .missing_labels = std::move(missing_labels),
                                             .ignored_columns = std::move(ignore_columns)});
      },
      nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none());
  module.def("train_hypergraph", &train, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
             nb::arg(), nb::arg(), nb::arg().none());
}

}  // namespace python
