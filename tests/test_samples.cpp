// Drawn neighbours and the training on them (graph/neighbour_sample.hpp, bsnn/sampled_training.hpp, io/folder_rows.hpp).
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "refusal.hpp"
#include "shared_networks.hpp"
#include "sheafnn/bsnn/model.hpp"
#include "sheafnn/bsnn/network.hpp"
#include "sheafnn/bsnn/sampled_training.hpp"
#include "sheafnn/bsnn/trainer.hpp"
#include "sheafnn/graph/neighbour_sample.hpp"
#include "sheafnn/graph/synthetic.hpp"
#include "sheafnn/io/folder_rows.hpp"
#include "sheafnn/io/npy_writer.hpp"
#include "sheafnn/sheaf/families.hpp"
#include "temporary_folder.hpp"

namespace {

using sheafnn::Index;
using Point = sheafnn::Nsd<sheafnn::Diagonal<2>, double>;
using Bayesian = sheafnn::Bsnn<sheafnn::SpecialOrthogonal<2>, double>;

const sheafnn::Dataset& task() {
  static const sheafnn::Dataset r = sheafnn::synthetic(
      {.nodes = 240, .classes = 3, .features = 12, .words = 4, .degree = 8, .homophily = 0.9, .seed = 5});
  return r;
}
sheafnn::ModelOptions architecture() {
  return {.features = task().feature_count(), .channels = 4, .layers = 2, .classes = 3};
}
template <class Model>
bool same(Model& a, Model& b) {
  return std::equal(a.parameters().values().begin(), a.parameters().values().end(),
                    b.parameters().values().begin());
}

TEST_CASE("neighbours are drawn without replacement, all sets with the same probability") {
  // 10 sets of 3 of 5: counts of 20000 draws have a χ² of 9 degrees of freedom, above 33.7 with probability 1e-4.
  std::map<std::vector<Index>, int> count;
  std::vector<Index> drawn;
  constexpr int draws = 20000;
  for (std::uint32_t id = 0; id < draws; ++id) {
    sheafnn::detail::draw_neighbours(5, 3, {7, sheafnn::Purpose::neighbour_samples, 2, 1}, id, drawn);
    REQUIRE(drawn.size() == 3);
    REQUIRE(std::is_sorted(drawn.begin(), drawn.end()));
    ++count[drawn];
  }
  REQUIRE(count.size() == 10);
  double chi = 0;
  for (const auto& [set, times] : count) {
    REQUIRE((set.front() >= 0 && set.back() < 5 && std::set<Index>(set.begin(), set.end()).size() == 3));
    chi += std::pow(times - draws / 10.0, 2) / (draws / 10.0);
  }
  CHECK(chi < 33.7);
  for (const Index all : {Index{0}, Index{5}, Index{9}}) {
    sheafnn::detail::draw_neighbours(5, all, {}, 1, drawn);
    CHECK(drawn == std::vector<Index>{0, 1, 2, 3, 4});
  }
}

TEST_CASE("a sample has the drawn edges, whatever the other targets are") {
  const sheafnn::DatasetRows rows(task());
  const sheafnn::Graph& graph = task().graph;
  const std::vector<Index> fan_outs = {3, 2};
  /// Edges of a sample by the numbers of the whole.
  const auto edges_of = [&](std::vector<std::int32_t> targets, std::uint32_t step, std::span<const Index> fans) {
    const sheafnn::Subgraph sample = sheafnn::sample_neighbours(rows, targets, fans, 11, step);
    std::set<std::pair<Index, Index>> r;
    for (const sheafnn::Edge e : sample.graph.edges()) {
      r.insert(std::minmax(Index(sample.node[static_cast<std::size_t>(e.u)]),
                           Index(sample.node[static_cast<std::size_t>(e.v)])));
    }
    CHECK(r.size() == static_cast<std::size_t>(sample.graph.edge_count()));
    for (std::size_t i = 0; i < sample.node.size(); ++i) {
      CHECK(sample.labels[i] == task().labels[static_cast<std::size_t>(sample.node[i])]);
      const auto row = [](const sheafnn::NodeFeatures& of, Index u) {
        const Index begin = of.offsets()[static_cast<std::size_t>(u)],
                    end = of.offsets()[static_cast<std::size_t>(u) + 1];
        const auto values =
            of.values().subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
        return std::vector<double>(values.begin(), values.end());
      };
      CHECK(row(sample.features, static_cast<Index>(i)) == row(task().features, sample.node[i]));
    }
    return r;
  };
  const auto contains = [](const auto& all, const auto& some) {
    return std::includes(all.begin(), all.end(), some.begin(), some.end());
  };
  const std::vector<Index> one_hop = {3};
  const auto alone = edges_of({20}, 4, one_hop), together = edges_of({3, 20, 77}, 4, one_hop);
  CHECK(alone.size() == static_cast<std::size_t>(std::min<Index>(3, graph.degree(20))));
  CHECK(contains(together, alone));
  CHECK(contains(edges_of({20}, 4, fan_outs), alone));
  CHECK(edges_of({20, 77, 200}, 4, fan_outs) != edges_of({20, 77, 200}, 5, fan_outs));
  CHECK(edges_of({20, 77, 200}, 4, fan_outs) == edges_of({20, 77, 200}, 4, fan_outs));
  std::set<std::pair<Index, Index>> whole;
  for (const sheafnn::Edge e : graph.edges()) whole.insert(std::minmax(Index(e.u), Index(e.v)));
  CHECK(contains(whole, together));
  // All neighbours at distance 1.
  const std::vector<Index> all = {0};
  CHECK(edges_of({20}, 0, all).size() == static_cast<std::size_t>(graph.degree(20)));
}

/// Outputs of targets on samples with all neighbours at `hops` distances, less their outputs on the whole graph.
template <class Model>
double difference_to_whole(const Model& model, std::size_t hops) {
  const sheafnn::DatasetRows rows(task());
  sheafnn::Network<Model> whole(model, task().graph, task().features, 1);
  const sheafnn::MatrixView<double> expected = whole.forward();
  double r = 0;
  for (const std::int32_t u : {0, 17, 101}) {
    const std::vector<Index> all(hops, 0);
    const sheafnn::Subgraph sample = sheafnn::sample_neighbours(rows, std::vector{u}, all, 0, 0);
    if (hops < 4) CHECK(sample.graph.node_count() < task().node_count());
    sheafnn::Network<Model> part(model, sample.graph, sample.features, 1);
    const sheafnn::MatrixView<double> outputs = part.forward();
    const std::int32_t at = sample.local(std::vector{u}).front();
    for (Index c = 0; c < outputs.columns(); ++c) r = std::max(r, std::abs(outputs(at, c) - expected(u, c)));
  }
  return r;
}

TEST_CASE("with 2 L fan-outs of all neighbours the targets have the outputs of the whole graph") {
  sheafnn::ModelOptions options = architecture();
  options.feature_treatment = sheafnn::FeatureTreatment::none;
  for (const Index layers : {Index{1}, Index{2}}) {
    CAPTURE(layers);
    options.layers = layers;
    const Point model(options, 3);
    const std::size_t hops = static_cast<std::size_t>(2 * layers);
    CHECK(difference_to_whole(model, hops) < 1e-12);
    CHECK(difference_to_whole(model, hops - 1) > 1e-9);  // degrees of nodes on the rim are missing
  }
}

TEST_CASE("with all neighbours of all nodes it is the training of the whole graph, to the bit") {
  const sheafnn::DatasetRows rows(task());
  const sheafnn::Split& split = task().splits[0];
  sheafnn::TrainOptions options{.epochs = 4, .learning_rate = 0.02, .seed = 4};
  Bayesian whole(architecture(), 2), sampled(architecture(), 2);
  const sheafnn::TrainResult expected = sheafnn::train(whole, task(), split, options);
  const sheafnn::TrainResult got =
      sheafnn::train_on_samples(sampled, rows, split, {.fan_outs = std::vector<Index>(12, 0)}, options);
  REQUIRE(got.history.size() == expected.history.size());
  for (std::size_t t = 0; t < got.history.size(); ++t) {
    CHECK(got.history[t].loss == expected.history[t].loss);
    CHECK(got.history[t].validation_loss == expected.history[t].validation_loss);
  }
  CHECK(got.test_nll == expected.test_nll);
  CHECK(same(whole, sampled));
}

TEST_CASE("predictions on samples are rows of predict(), where all neighbours are seen") {
  const sheafnn::DatasetRows rows(task());
  const Bayesian model(architecture(), 3);
  const std::vector<std::int32_t> nodes = {3, 40, 41, 200};
  const std::vector<Index> all(12, 0);
  const sheafnn::PredictOptions options{.samples = 4, .seed = 6};
  const sheafnn::Prediction expected = sheafnn::predict(model, task(), options);
  const sheafnn::Prediction got = sheafnn::predict_on_samples(model, rows, nodes, all, options, 3);
  REQUIRE(got.label.size() == nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::size_t u = static_cast<std::size_t>(nodes[i]);
    CHECK(got.label[i] == expected.label[u]);
    CHECK(got.entropy[i] == expected.entropy[u]);
    CHECK(got.epistemic_variance[i] == expected.epistemic_variance[u]);
    CHECK(got.mutual_information[i] == expected.mutual_information[u]);
    for (std::size_t c = 0; c < 3; ++c) CHECK(got.probabilities[3 * i + c] == expected.probabilities[3 * u + c]);
  }
  CHECK(test::message_of([&] {
          static_cast<void>(sheafnn::predict_on_samples(model, rows, nodes, all, {}, 0));
        }) == "together: 0 is not allowed; must be between 1 and 2147483647");
  const std::vector<std::int32_t> beyond = {3, 240};
  CHECK(test::message_of([&] { static_cast<void>(sheafnn::predict_on_samples(model, rows, beyond, all)); }) ==
        "nodes[1]: 240 is not allowed; node numbers must increase and be below 240");
}

TEST_CASE("it learns from few neighbours, with the same bits for any number of threads") {
  const sheafnn::DatasetRows rows(task());
  const sheafnn::Split& split = task().splits[0];
  sheafnn::TrainOptions options{.epochs = 15, .learning_rate = 0.02, .batch_size = 32, .seed = 4, .threads = 1};
  const sheafnn::SamplingOptions sampling = {.fan_outs = {4, 3}};
  Bayesian one(architecture(), 2), two(architecture(), 2), other(architecture(), 2);
  const sheafnn::TrainResult result = sheafnn::train_on_samples(one, rows, split, sampling, options);
  CHECK(result.history.back().nll < 0.7 * result.history.front().nll);
  CHECK(result.test_accuracy > 0.6);
  options.threads = 2;
  const sheafnn::TrainResult again = sheafnn::train_on_samples(two, rows, split, sampling, options);
  CHECK(again.test_nll == result.test_nll);
  CHECK(same(one, two));
  // Labels of nodes outside of the training set change figures, and no parameter.
  sheafnn::Dataset changed = task();
  for (const std::int32_t u : split.test) {
    std::int32_t& label = changed.labels[static_cast<std::size_t>(u)];
    label = (label + 1) % 3;
  }
  const sheafnn::DatasetRows rows_of_changed(changed);
  CHECK(sheafnn::train_on_samples(other, rows_of_changed, split, sampling, options).test_nll != result.test_nll);
  CHECK(same(one, other));
  // Fewer steps, and fewer nodes to predict.
  Point few(architecture(), 2);
  const sheafnn::TrainResult short_epochs =
      sheafnn::train_on_samples(few, rows, split, {.fan_outs = {2}, .steps = 1, .evaluated = 10}, options);
  CHECK(std::fmod(short_epochs.history.back().test_accuracy * 10 + 1e-9, 1.0) < 1e-6);
}

TEST_CASE("what a training on samples refuses") {
  const sheafnn::DatasetRows rows(task());
  const sheafnn::Split& split = task().splits[0];
  Point model(architecture(), 2);
  const Point before = model;
  const auto refused = [&](const sheafnn::SamplingOptions& sampling, const sheafnn::TrainOptions& options) {
    return test::message_of(
        [&] { static_cast<void>(sheafnn::train_on_samples(model, rows, split, sampling, options)); });
  };
  CHECK(refused({.fan_outs = {}}, {}) == "fan_outs: 0 is not allowed; must be between 1 and 64");
  CHECK(refused({.fan_outs = {5, -1}}, {}) == "fan_outs[1]: -1 is not allowed; must be between 0 and 4095");
  CHECK(refused({.steps = -2}, {}) ==
        "steps: -2 is not allowed; must be between 0 and 2147483647 (0: as many as all training nodes need)");
  CHECK(refused({.evaluated = -2}, {}) ==
        "evaluated: -2 is not allowed; must be between 0 and 2147483647 (0: all)");
  CHECK(refused({}, {.stop_on = sheafnn::StopOn::macro_f1}) ==
        "stop_on: macro-f1 is not allowed; a training on subgraphs chooses the best epoch by loss or accuracy");
  CHECK(std::equal(before.parameters().values().begin(), before.parameters().values().end(),
                   model.parameters().values().begin()));
  // Nodes without labels are not among the nodes to predict.
  sheafnn::Dataset sparse = task();
  for (std::size_t i = 2; i < split.validation.size(); ++i) {
    sparse.labels[static_cast<std::size_t>(split.validation[i])] = -1;
  }
  const sheafnn::DatasetRows few(sparse);
  const sheafnn::TrainResult result =
      sheafnn::train_on_samples(model, few, split, {.fan_outs = {2}, .evaluated = 2},
                                {.epochs = 1, .batch_size = 40});
  CHECK(std::isfinite(result.validation_loss));
  // Without validation and test nodes the last epoch is the best.
  CHECK(sheafnn::train_on_samples(model, rows, {split.train, {}, {}}, {.fan_outs = {2}},
                                  {.epochs = 3, .batch_size = 40})
            .best_epoch == 2);
}

/// The arrays of a task in a folder.
class Folder {
 public:
  explicit Folder(const sheafnn::Dataset& data) {
    const Index n = data.node_count();
    std::vector<std::int64_t> indptr = {0};
    std::vector<std::int32_t> indices;
    std::vector<double> dense(static_cast<std::size_t>(n * data.feature_count()));
    std::vector<std::int32_t> masks[3];
    for (auto& mask : masks) mask.resize(static_cast<std::size_t>(n));
    for (Index u = 0; u < n; ++u) {
      for (Index arc = data.graph.first_arc(u); arc < data.graph.first_arc(u + 1); ++arc) {
        indices.push_back(static_cast<std::int32_t>(data.graph.target(arc)));
      }
      indptr.push_back(static_cast<std::int64_t>(indices.size()));
      const auto offset = data.features.offsets();
      for (Index k = offset[static_cast<std::size_t>(u)]; k < offset[static_cast<std::size_t>(u) + 1]; ++k) {
        const std::size_t i = static_cast<std::size_t>(k);
        dense[static_cast<std::size_t>(u * data.feature_count() + data.features.column_of()[i])] =
            data.features.values()[i];
      }
    }
    const sheafnn::Split& split = data.splits[0];
    const std::vector<std::int32_t>* const sets[] = {&split.train, &split.validation, &split.test};
    for (int k = 0; k < 3; ++k) {
      for (const std::int32_t u : *sets[k]) masks[k][static_cast<std::size_t>(u)] = 1;
    }
    write<std::int64_t>("indptr", indptr);
    write<std::int32_t>("indices", indices);
    write<double>("features", dense, data.feature_count());
    write<std::int32_t>("labels", data.labels);
    write<std::int32_t>("train_mask", masks[0]);
    write<std::int32_t>("val_mask", masks[1]);
    write<std::int32_t>("test_mask", masks[2]);
    write<std::int64_t>("features_columns", std::vector<std::int64_t>{data.feature_count()});
    const auto offset = data.features.offsets();
    write<std::int64_t>("features_indptr", std::vector<std::int64_t>(offset.begin(), offset.end()));
    const auto column = data.features.column_of();
    write<std::int32_t>("features_indices", std::vector<std::int32_t>(column.begin(), column.end()));
    const auto values = data.features.values();
    write<double>("features_values", std::vector<double>(values.begin(), values.end()));
  }
  template <class T>
  void write(const std::string& name, const std::vector<T>& values, Index columns = 1) const {
    const Index size = static_cast<Index>(values.size());
    const std::vector<Index> shape = columns == 1 ? std::vector{size} : std::vector{size / columns, columns};
    folder_.write(name + ".npy", sheafnn::io::to_npy<T>(shape, values));
  }
  /// An array of truth values.
  void write_truths(const std::string& name, const std::vector<std::int32_t>& values) const {
    const Index shape[] = {static_cast<Index>(values.size())};
    sheafnn::io::Bytes file = sheafnn::io::detail::npy_with_header("|b1", shape, values.size());
    for (const std::int32_t value : values) file.push_back(value != 0 ? 1 : 0);
    folder_.write(name + ".npy", file);
  }
  [[nodiscard]] const std::filesystem::path& path() const { return folder_.path(); }

 private:
  test::TemporaryFolder folder_;
};

TEST_CASE("a folder of arrays is the dataset that was written") {
  const Folder folder(task());
  const sheafnn::Split& split = task().splits[0];
  const sheafnn::DatasetRows of_memory(task());
  const sheafnn::TrainOptions options{.epochs = 3, .batch_size = 50, .seed = 1};
  Point expected(architecture(), 2);
  static_cast<void>(sheafnn::train_on_samples(expected, of_memory, split, {.fan_outs = {3, 3}}, options));
  for (const bool dense : {true, false}) {
    CAPTURE(dense);
    if (!dense) std::filesystem::remove(folder.path() / "features.npy");
    const sheafnn::io::FolderRows rows(folder.path());
    CHECK(rows.node_count() == task().node_count());
    CHECK(rows.edge_count() == task().graph.edge_count());
    CHECK(rows.feature_count() == task().feature_count());
    CHECK(rows.class_count() == 3);
    CHECK(std::equal(rows.labels().begin(), rows.labels().end(), task().labels.begin(), task().labels.end()));
    CHECK(rows.split().train == split.train);
    CHECK(rows.split().validation == split.validation);
    CHECK(rows.split().test == split.test);
    Point got(architecture(), 2);
    static_cast<void>(sheafnn::train_on_samples(got, rows, rows.split(), {.fan_outs = {3, 3}}, options));
    CHECK(same(expected, got));
  }
}

TEST_CASE("rows of dense features are read with and without zeros, in either precision") {
  const Folder folder(task());
  const Index n = task().node_count(), p = 5;
  std::vector<float> values(static_cast<std::size_t>(n * p));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = i % 37 == 3 ? 0.0F : 0.1F * static_cast<float>(i) - 7;
  std::vector<std::int32_t> nodes = {0, 1, 2, 7, 8, static_cast<std::int32_t>(n - 1)};
  std::vector<double> chosen;
  for (const std::int32_t u : nodes)
    chosen.insert(chosen.end(), &values[static_cast<std::size_t>(u * p)],
                  &values[static_cast<std::size_t>(u * p)] + p);
  const sheafnn::NodeFeatures expected =
      sheafnn::NodeFeatures::from_dense(std::span<const double>(chosen), static_cast<Index>(nodes.size()), p);
  REQUIRE(expected.entries() == static_cast<Index>(chosen.size()) - 2);  // rows 0 and 8 have a zero
  const auto check = [&] {
    const sheafnn::NodeFeatures got = sheafnn::features_of(sheafnn::io::FolderRows(folder.path()), nodes);
    CHECK(std::ranges::equal(got.offsets(), expected.offsets()));
    CHECK(std::ranges::equal(got.column_of(), expected.column_of()));
    CHECK(std::ranges::equal(got.values(), expected.values()));
  };
  folder.write<float>("features", values, p);
  check();
  folder.write<double>("features", std::vector<double>(values.begin(), values.end()), p);
  check();
}

TEST_CASE("what is wrong in a folder is named") {
  const auto message = [](const auto& spoil) {
    const Folder folder(task());
    spoil(folder);
    std::string r = test::message_of<std::runtime_error>([&] {
      const sheafnn::io::FolderRows rows(folder.path());
      const std::vector<Index> all = {0};
      std::vector<std::int32_t> nodes(static_cast<std::size_t>(rows.node_count()));
      for (std::size_t u = 0; u < nodes.size(); ++u) nodes[u] = static_cast<std::int32_t>(u);
      static_cast<void>(sheafnn::sample_neighbours(rows, nodes, all, 0, 0));
    });
    const std::string name = folder.path().string() + "/";
    for (std::size_t at; (at = r.find(name)) != std::string::npos;) r.erase(at, name.size());
    return r;
  };
  const Index n = task().node_count(), arcs = task().graph.arc_count();
  const auto indices = [](Index at, Index v) {
    return [=](const Folder& folder) {
      std::vector<std::int32_t> targets(task().graph.targets().begin(), task().graph.targets().end());
      targets[static_cast<std::size_t>(at)] = static_cast<std::int32_t>(v);
      folder.write<std::int32_t>("indices", targets);
    };
  };
  const Index first = task().graph.target(0);
  CHECK(message([](const Folder&) {}) == "nothing was thrown");
  CHECK(message(indices(0, n)) == "indices.npy: node 0 has a neighbour 240; there are 240 nodes");
  CHECK(message(indices(0, 0)) == "indices.npy: node 0 has a self-loop");
  CHECK(message(indices(1, first)) == "indices.npy: node 0 has neighbours that do not increase");
  CHECK(message([&](const Folder& folder) {
          std::vector<std::int64_t> offsets(task().graph.offsets().begin(), task().graph.offsets().end());
          offsets[5] = 1;
          folder.write<std::int64_t>("indptr", offsets);
        }) == sheafnn::detail::concat("indptr.npy: entries 4 and 5 are ", task().graph.first_arc(4),
                                      " and 1; offsets must not decrease and end at ", arcs));
  CHECK(message([](const Folder& folder) {
          folder.write<std::int64_t>("indptr", std::vector<std::int64_t>{0, 1});
        }) == sheafnn::detail::concat("indptr.npy: entry 1 is 1; must be ", arcs, ", the entries of indices.npy"));
  CHECK(message([&](const Folder& folder) {
          std::vector<std::int32_t> labels = task().labels;
          labels[7] = -2;
          folder.write<std::int32_t>("labels", labels);
        }) == "labels.npy: entry 7 is -2; a label is -1 or a number of a class, below 1000000000");
  CHECK(message([&](const Folder& folder) {
          folder.write<std::int32_t>("val_mask", std::vector<std::int32_t>(static_cast<std::size_t>(n), 1));
        }) ==
        sheafnn::detail::concat("val_mask.npy: node ", task().splits[0].train[0], " is in another mask, too"));
  CHECK(message([&](const Folder& folder) {
          folder.write<double>("features", std::vector<double>(static_cast<std::size_t>(2 * n), NAN), 2);
        }) == "features.npy: node 0 has the value nan in column 0; features are finite");
  CHECK(message([](const Folder& folder) { std::filesystem::remove(folder.path() / "train_mask.npy"); }) ==
        "train_mask.npy: cannot be opened");
  CHECK(message([&](const Folder& folder) {
          folder.write<double>("labels", std::vector<double>(static_cast<std::size_t>(n)));
        }) == "labels.npy: has no whole numbers");
  for (const std::string name : {"labels", "indices"}) {
    const Index size = name == "labels" ? n : arcs;
    CHECK(message([&](const Folder& folder) {
            folder.write_truths(name, std::vector<std::int32_t>(static_cast<std::size_t>(size)));
          }) == name + ".npy: holds truth values; whole numbers are needed");
  }
}

TEST_CASE("a folder whose edges are listed in one direction is refused, with an edge") {
  const sheafnn::Graph& graph = task().graph;
  // Arcs without those that `leave_out(source, target)` takes.
  const auto message = [&](const auto& leave_out) {
    const Folder folder(task());
    std::vector<std::int64_t> offsets = {0};
    std::vector<std::int32_t> targets;
    for (Index u = 0; u < graph.node_count(); ++u) {
      for (Index a = graph.first_arc(u); a < graph.first_arc(u + 1); ++a) {
        if (!leave_out(u, graph.target(a))) targets.push_back(static_cast<std::int32_t>(graph.target(a)));
      }
      offsets.push_back(static_cast<std::int64_t>(targets.size()));
    }
    folder.write<std::int64_t>("indptr", offsets);
    folder.write<std::int32_t>("indices", targets);
    std::string r = test::message_of<std::runtime_error>([&] { sheafnn::io::FolderRows{folder.path()}; });
    return r.erase(0, std::min(r.size(), folder.path().string().size() + 1));
  };
  const Index v = graph.target(0);
  const std::string wanted =
      sheafnn::detail::concat("indices.npy: node 0 has the neighbour ", v, ", and node ", v,
                              " lacks the neighbour 0; every edge must be listed in both directions");
  CHECK(message([](Index u, Index w) { return u > w; }) == wanted);
  CHECK(message([&](Index u, Index w) { return u == v && w == 0; }) == wanted);
}

TEST_CASE("masks of a folder may be truth values") {
  const Folder folder(task());
  std::vector<std::int32_t> mask(static_cast<std::size_t>(task().node_count()));
  for (const std::int32_t u : task().splits[0].test) mask[static_cast<std::size_t>(u)] = 1;
  folder.write_truths("test_mask", mask);
  CHECK(sheafnn::io::FolderRows(folder.path()).split().test == task().splits[0].test);
}

TEST_CASE("a file that is not there is another error than one that cannot be read") {
  const Folder folder(task());
  CHECK_THROWS_AS(sheafnn::io::FolderRows(folder.path() / "none"), sheafnn::io::MissingFile);
  CHECK_THROWS_AS(static_cast<void>(sheafnn::io::read_file(folder.path() / "none")), sheafnn::io::MissingFile);
  CHECK_THROWS_AS(static_cast<void>(sheafnn::io::list_folder(folder.path() / "none")), sheafnn::io::MissingFile);
  const auto kind = [](const auto& read) -> std::string {
    try {
      read();
    } catch (const sheafnn::io::MissingFile&) {
      return "missing";
    } catch (const std::runtime_error&) {
      return "unreadable";
    }
    return "read";
  };
  CHECK(kind([&] { static_cast<void>(sheafnn::io::read_file(folder.path())); }) == "unreadable");  // a folder
  folder.write<double>("labels", {0.5});
  CHECK(kind([&] { sheafnn::io::FolderRows{folder.path()}; }) == "unreadable");
}

}  // namespace
