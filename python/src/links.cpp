/// \file
/// Links, labels and numbers of edges: splits of edges, training, and predictions of pairs of nodes.
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
#include <optional>
#include <sheafnn/graph/edge_split.hpp>
#include <sheafnn/io/checkpoint.hpp>
#include <sheafnn/uncertainty/link_ranks.hpp>
#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "checkpoint.hpp"
#include "checkpoint_class.hpp"
#include "figures.hpp"
#include "graph_arrays.hpp"
#include "interpreter.hpp"
#include "links/models.hpp"
#include "links/pair_task.hpp"
#include "models/outcome.hpp"
#include "module.hpp"
#include "options.hpp"
#include "prediction.hpp"
#include "settings.hpp"
#include "supervisor.hpp"

namespace python {

namespace {

/// A trained network: a checkpoint.
class LinkModel : public Checkpoint {
 public:
  /// \throws std::runtime_error  it is not a checkpoint of a network that predicts pairs of nodes
  LinkModel(std::filesystem::path path, sheafnn::io::TensorFile file)
      : Checkpoint(std::move(path), std::move(file)) {
    std::optional<links_program::PairTask> task =
        links_program::PairTask::of(this->path().string(), this->file().metadata);
    if (!task) throw std::runtime_error(this->path().string() + ": it holds no network that predicts links");
    task_ = *std::move(task);
  }
  [[nodiscard]] const links_program::PairTask& task() const { return task_; }
  [[nodiscard]] bool bayesian() const { return programs::is_bayesian(info().model); }
  /// Predicts links and labels.
  [[nodiscard]] sheafnn::uncertainty::SampledPrediction predict(const Dataset& data,
                                                                std::span<const sheafnn::Edge> pairs,
                                                                const sheafnn::PredictOptions& options) const {
    check_columns(data);
    return links_program::predict_classes({path().string(), file(), bayesian()}, data.graph, data.features, pairs,
                                          task_.class_count(), options);
  }
  [[nodiscard]] programs::TargetPrediction predict_numbers(const Dataset& data,
                                                           std::span<const sheafnn::Edge> pairs,
                                                           const sheafnn::PredictOptions& options) const {
    check_columns(data);
    return task_.unscaled(links_program::predict_values({path().string(), file(), bayesian()}, data.graph,
                                                        data.features, pairs, options));
  }

 private:
  links_program::PairTask task_;
};

/// The ranking of links among the other pairs, by probability; empty without links or without other pairs.
nb::dict rank_figures(const std::vector<double>& links, const std::vector<double>& negatives,
                      const std::vector<Index>& hits) {
  nb::dict d;
  if (links.empty() || negatives.empty()) return d;
  const std::vector<double> ranks = sheafnn::uncertainty::link_ranks(links, negatives);
  for (const Index k : hits) {
    d[("hits@" + std::to_string(k)).c_str()] = sheafnn::uncertainty::hits_at(ranks, k);
  }
  d["mrr"] = sheafnn::uncertainty::mean_reciprocal_rank(ranks);
  return d;
}

/// \param targets  links, classes or numbers
/// \param score    empty: the default of these targets
/// \param split    options of EdgeSplitOptions
/// \param labels, class_names  of the edges of the graph, for classes \param numbers  of the edges, for numbers
/// \returns  the model, figures of its best epoch, its epochs, the data with the edges that the network sees. Of the test
///           pairs: nodes, labels (of links: which are edges), numbers, and further figures
nb::tuple train(const Dataset& data, const std::string& targets, std::string_view model, const std::string& score,
                Index outputs, Texts split, const Texts& network, const Texts& training,
                const std::vector<Index>& hits, std::uint64_t seed, const nb::object& report,
                bool keep_interrupted, const Input<std::int32_t>& labels, std::vector<std::string> class_names,
                const Input<double>& numbers) {
  sheafnn::require(model == "nsd" || model == "bsnn", "model", model, "must be nsd or bsnn");
  links_program::PairTask task{targets == "links" ? "" : "y", std::move(class_names), {}};
  links_program::Defaults options;
  options.score =
      score.empty() ? task.default_score : sheafnn::parse_name<sheafnn::PairScore>("pair_score", score);
  options.network.features = data.feature_count();
  options.network.classes = outputs;
  set_network(options.network, data, network, model, "diagonal");
  for (const char* key : {"negatives", "negative_sampling"}) {
    const auto given = split.find(key);
    if (task.links() || given == split.end()) continue;
    sheafnn::throw_invalid_argument(sheafnn::detail::concat("split['", key, "']"), given->second,
                                    "belongs to links");
  }
  set_options(std::move(split), options.split, "split", "a split of edges");
  set_options(training, options.train, "training", "a training");
  refuse_idle_options(model, "diagonal", options.network, options.train, network, training);
  sheafnn::require(options.split.negatives > 0, "split['negatives']", options.split.negatives,
                   "must be above 0: links are compared with pairs without an edge");
  options.split.seed = options.train.seed = seed;
  Supervisor supervisor(report, options.train.epochs, keep_interrupted);
  options.train.on_epoch = std::ref(supervisor);
  const bool bayesian = model == "bsnn";
  Dataset seen = data;
  seen.edge_labels = vector_of(labels);
  seen.edge_targets = vector_of(numbers);
  links_program::PairTargets parts;
  links_program::Outcome outcome;
  std::vector<sheafnn::Edge> test;
  std::vector<std::int32_t> label;
  std::vector<double> number, of_edges, of_others;
  programs::TargetFigures errors;
  {
    const GilRelease release;
    parts = links_program::split_pairs(seen, task, "y", targets == "numbers", options.split);
    const sheafnn::EdgeTargets& links = parts.edges;
    outcome = links_program::train({data, links, *options.score, options.network, options.train, bayesian,
                                    task.class_count(), parts.scaled,
                                    links_program::checkpoint_notes(task, seen, options.split)});
    for (const std::int32_t t : links.split.test) {
      const std::size_t i = static_cast<std::size_t>(t);
      test.push_back(links.pairs[i]);
      if (task.numbers()) {
        number.push_back(parts.numbers.targets[i]);
      } else {
        label.push_back(links.labels[i]);
      }
    }
    const links_program::Trained trained{"the network", outcome.checkpoint, bayesian};
    const sheafnn::PredictOptions sampling =
        programs::best_epoch_options(options.train, outcome.result.best_epoch);
    if (!test.empty() && task.links()) {
      const sheafnn::LinkPrediction p =
          links_program::predict(trained, links.graph, data.features, test, sampling);
      for (std::size_t i = 0; i < test.size(); ++i) (label[i] == 1 ? of_edges : of_others).push_back(p.link[i]);
    } else if (!test.empty() && task.numbers()) {
      errors =
          links_program::test_errors(task, parts,
                                     task.unscaled(links_program::predict_values(trained, links.graph,
                                                                                 data.features, test, sampling))
                                         .expectations);
    }
  }
  supervisor.check_signals();
  seen.edge_labels.clear();
  seen.edge_targets.clear();
  seen.graph = std::move(parts.edges.graph);
  std::vector<std::int32_t> ends;
  for (const sheafnn::Edge& pair : test) ends.insert(ends.end(), {pair.u, pair.v});
  nb::dict more = rank_figures(of_edges, of_others, hits);
  if (task.numbers()) {
    more["mean_absolute_error"] = errors.mean_error;
    more["root_mean_square_error"] = errors.root_square;
  }
  const std::size_t labelled = label.size(), numbered = number.size();
  return nb::make_tuple(LinkModel("trained model", std::move(outcome.checkpoint)),
                        figures_of(outcome.result, outcome.parameters, supervisor.interrupted()),
                        history_of(outcome.result.history), std::move(seen),
                        to_numpy(std::move(ends), {test.size(), 2}), to_numpy(std::move(label), {labelled}),
                        to_numpy(std::move(number), {numbered}), more);
}

/// Calls predict(pairs, options) without the interpreter.
template <class Predict>
auto without_interpreter(const Dataset& data, const Input<std::int64_t>& pairs, Index samples, std::uint64_t seed,
                         int threads, const Predict& predict) {
  const std::vector<sheafnn::Edge> own = make_edges(data.node_count(), pairs, "pairs");
  const GilRelease release;
  return predict(own, sheafnn::PredictOptions{.samples = samples, .seed = seed, .threads = threads});
}

}  // namespace

void bind_links(nb::module_& module) {
  bind_checkpoint<LinkModel>(module, "LinkModel")
      .def_prop_ro("bayesian", &LinkModel::bayesian)
      .def_prop_ro("targets",
                   [](const LinkModel& model) {
                     return model.task().links() ? "links" : model.task().numbers() ? "numbers" : "classes";
                   })
      .def_prop_ro("class_names", [](const LinkModel& model) { return model.task().class_names; })
      .def_prop_ro("class_count", [](const LinkModel& model) { return model.task().class_count(); })
      .def("predict",
           [](const LinkModel& model, const Dataset& data, const Input<std::int64_t>& pairs, Index samples,
              std::uint64_t seed, int threads) {
             const auto p = without_interpreter(data, pairs, samples, seed, threads,
                                                [&](const auto& own, const auto& options) {
                                                  return model.predict(data, own, options);
                                                });
             return prediction_of(p, static_cast<std::size_t>(model.task().class_count()));
           })
      .def("predict_numbers", [](const LinkModel& model, const Dataset& data, const Input<std::int64_t>& pairs,
                                 Index samples, std::uint64_t seed, int threads) {
        programs::TargetPrediction p =
            without_interpreter(data, pairs, samples, seed, threads, [&](const auto& own, const auto& options) {
              return model.predict_numbers(data, own, options);
            });
        const std::size_t count = p.expectations.size();
        return nb::make_tuple(to_numpy(std::move(p.expectations), {count}),
                              to_numpy(std::move(p.deviations), {count}));
      });
  module.def("train_links", &train, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
             nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg(), nb::arg());
  module.def("rank_figures", &rank_figures);
}

}  // namespace python
