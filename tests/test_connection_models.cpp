/// \file
/// Networks that compute their connection: the same as with the connection given, golden3/, training, files, random controls.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "network_passes.hpp"
#include "sheafnn/bsnn/connection_model.hpp"
#include "sheafnn/bsnn/learned_sheaf.hpp"
#include "sheafnn/bsnn/prediction.hpp"
#include "sheafnn/bsnn/trainer.hpp"
#include "sheafnn/graph/karate.hpp"
#include "sheafnn/io/checkpoint.hpp"
#include "temporary_folder.hpp"
#include "tiny_task.hpp"

namespace test_connection_models {
namespace {

using sheafnn::AroundGiven;
using sheafnn::BconnNsd;
using sheafnn::ConnectionModelOptions;
using sheafnn::ConnectionSource;
using sheafnn::ConnNsd;
using sheafnn::GivenMaps;
using sheafnn::Index;
using sheafnn::Orthogonal;

ConnectionModelOptions options_of() {
  ConnectionModelOptions r;
  static_cast<sheafnn::ModelOptions&>(r) = tiny::options();
  return r;
}

/// Probabilities of one sample.
template <class Model>
std::vector<double> probabilities(const Model& model, const tiny::Task& task) {
  return sheafnn::predict(model, task.graph, task.sparse, {.samples = 1, .seed = 3, .epoch = 4}).probabilities;
}

TEST_CASE("a network computes the connection of its features as it reads them") {
  const tiny::Task task;
  sheafnn::NodeFeatures rows = task.sparse;
  rows.normalise_rows();
  for (const ConnectionSource source :
       {ConnectionSource::features, ConnectionSource::random_edges, ConnectionSource::random_nodes}) {
    ConnectionModelOptions options = options_of();
    options.connection.source = source;
    options.connection.seed = 4;
    const auto sheaf = sheafnn::connection_sheaf<Orthogonal<2>>(task.graph, rows, options.connection);
    const ConnNsd<2, double> model(options, 5);
    const sheafnn::Snn<Orthogonal<2>, double> given(options, 5, GivenMaps(sheaf));
    CHECK(probabilities(model, task) == probabilities(given, task));
    const auto read = sheafnn::learned_sheaf(model, task.graph, task.sparse);
    for (Index a = 0; a < task.graph.arc_count(); ++a) CHECK(read.restriction_map(a) == sheaf.restriction_map(a));
    const BconnNsd<2, double> bayesian(options, 5);
    const sheafnn::Bgsnn<Orthogonal<2>, double> around(options, 5, AroundGiven<Orthogonal<2>>(sheaf));
    CHECK(bayesian.parameters().find("sheaf.var.weight") >= 0);
    CHECK(probabilities(bayesian, task) == probabilities(around, task));
  }
}

TEST_CASE("connections in trainings and files") {
  const sheafnn::Dataset data = sheafnn::karate_club();
  ConnectionModelOptions options;
  options.features = data.feature_count();
  options.classes = data.class_count;
  options.channels = 4;
  options.layers = 2;
  options.connection.special = true;
  options.connection.gauge = sheafnn::FrameGauge::pivots;
  sheafnn::TrainOptions training;
  training.epochs = 20;
  training.threads = 1;
  const test::TemporaryFolder folder;
  const auto check = [&]<class Model>(Model model) {
    static_cast<void>(sheafnn::train(model, data, data.splits[0], training));
    const auto path = folder.path() / (std::string(Model::kind) + ".safetensors");
    sheafnn::io::save_checkpoint(path, model);
    CHECK(sheafnn::io::read_checkpoint_info(path).model == Model::kind);
    const auto loaded = sheafnn::io::load_checkpoint<Model>(path);
    CHECK(loaded.options() == model.options());
    CHECK(sheafnn::predict(loaded, data, {.samples = 2}).probabilities ==
          sheafnn::predict(model, data, {.samples = 2}).probabilities);
  };
  check(ConnNsd<3>(options, 1));
  check(BconnNsd<3>(options, 1));
}

}  // namespace
}  // namespace test_connection_models
