/// \file
/// Link prediction: splits of edges, training, and probabilities of pairs of nodes.
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
  /// \throws std::runtime_error  it is no checkpoint of a network that predicts links
  LinkModel(std::filesystem::path path, sheafnn::io::TensorFile file)
      : Checkpoint(std::move(path), std::move(file)) {
    const auto& notes = this->file().metadata;
    const auto targets = notes.find("targets");
    if (targets == notes.end() || targets->second != "links") {
      throw std::runtime_error(this->path().string() + ": it holds no network that predicts links");
    }
  }
  [[nodiscard]] bool bayesian() const { return programs::is_bayesian(info().model); }
  [[nodiscard]] sheafnn::LinkPrediction predict(const Dataset& data, std::span<const sheafnn::Edge> pairs,
                                                const sheafnn::PredictOptions& options) const {
    check_columns(data);
    return links_program::predict({path().string(), file(), bayesian()}, data.graph, data.features, pairs,
                                  options);
  }
};

/// \param pairs  T × 2
std::vector<sheafnn::Edge> pairs_of(const Input<std::int64_t>& pairs, Index nodes) {
  std::vector<sheafnn::Edge> r(pairs.size() / 2);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const std::int64_t node = pairs.data()[i];
    if (node < 0 || node >= nodes) {
      sheafnn::throw_invalid_argument(sheafnn::detail::concat("pairs[", i / 2, ", ", i % 2, "]"), node,
                                      sheafnn::detail::concat("a node number must be between 0 and ", nodes - 1));
    }
    (i % 2 == 0 ? r[i / 2].u : r[i / 2].v) = static_cast<std::int32_t>(node);
  }
  return r;
}

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

/// \param split  options of EdgeSplitOptions
/// \returns  the model, figures of its best epoch, its epochs, the data with the edges that the network sees, the test
///           pairs, which test pairs are edges, and the ranking of these edges
nb::tuple train(const Dataset& data, std::string_view model, const std::string& score, Index outputs, Texts split,
                const Texts& network, const Texts& training, const std::vector<Index>& hits, std::uint64_t seed,
                const nb::object& report, bool keep_interrupted) {
  sheafnn::require(model == "nsd" || model == "bsnn", "model", model, "must be nsd or bsnn");
  links_program::Defaults options;
  options.score = sheafnn::parse_name<sheafnn::PairScore>("pair_score", score);
  options.network.features = data.feature_count();
  options.network.classes = outputs;
  set_network(options.network, data, network, model, "diagonal");
  set_options(std::move(split), options.split, "split", "a split of edges");
  set_options(training, options.train, "training", "a training");
  refuse_idle_options(model, "diagonal", options.network, options.train, network, training);
  sheafnn::require(options.split.negatives > 0, "split['negatives']", options.split.negatives,
                   "must be above 0: links are compared with pairs without an edge");
  options.split.seed = options.train.seed = seed;
  Supervisor supervisor(report, options.train.epochs, keep_interrupted);
  options.train.on_epoch = std::ref(supervisor);
  const bool bayesian = model == "bsnn";
  sheafnn::EdgeTargets links;
  links_program::Outcome outcome;
  std::vector<sheafnn::Edge> test;
  std::vector<std::int32_t> edge;
  std::vector<double> of_edges, of_others;
  {
    const GilRelease release;
    links = sheafnn::split_links(data.graph, options.split);
    outcome = links_program::train({data, links, options.score, options.network, options.train, bayesian});
    for (const std::int32_t t : links.split.test) {
      test.push_back(links.pairs[static_cast<std::size_t>(t)]);
      edge.push_back(links.labels[static_cast<std::size_t>(t)]);
    }
    if (!test.empty()) {
      const sheafnn::LinkPrediction p =
          links_program::predict({"the network", outcome.checkpoint, bayesian}, links.graph, data.features, test,
                                 programs::best_epoch_options(options.train, outcome.result.best_epoch));
      for (std::size_t i = 0; i < test.size(); ++i) (edge[i] == 1 ? of_edges : of_others).push_back(p.link[i]);
    }
  }
  supervisor.check_signals();
  Dataset seen = data;
  seen.graph = std::move(links.graph);
  std::vector<std::int32_t> numbers;
  for (const sheafnn::Edge& pair : test) numbers.insert(numbers.end(), {pair.u, pair.v});
  return nb::make_tuple(LinkModel("trained model", std::move(outcome.checkpoint)),
                        figures_of(outcome.result, outcome.parameters, supervisor.interrupted()),
                        history_of(outcome.result.history), std::move(seen),
                        to_numpy(std::move(numbers), {test.size(), 2}), to_numpy(std::move(edge), {test.size()}),
                        rank_figures(of_edges, of_others, hits));
}

}  // namespace

void bind_links(nb::module_& module) {
  bind_checkpoint<LinkModel>(module, "LinkModel")
      .def_prop_ro("bayesian", &LinkModel::bayesian)
      .def("predict", [](const LinkModel& model, const Dataset& data, const Input<std::int64_t>& pairs,
                         Index samples, std::uint64_t seed, int threads) {
        const std::vector<sheafnn::Edge> own = pairs_of(pairs, data.node_count());
        sheafnn::LinkPrediction p;
        {
          const GilRelease release;
          p = model.predict(data, own, {.samples = samples, .seed = seed, .threads = threads});
        }
        return prediction_of(p, 2);
      });
  module.def("train_links", &train, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
             nb::arg(), nb::arg(), nb::arg().none(), nb::arg());
  module.def("rank_figures", &rank_figures);
}

}  // namespace python
