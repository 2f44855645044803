/// \file
/// Features of a graph that is cut into parts are treated as in the whole graph: plans, trainings, predictions.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sheafnn/bsnn/cooperative_network.hpp"
#include "sheafnn/bsnn/trainer.hpp"
#include "sheafnn/distributed.hpp"
#include "sheafnn/distributed/cluster_training.hpp"
#include "sheafnn/graph/feature_plan_text.hpp"
#include "sheafnn/graph/fit_features.hpp"
#include "sheafnn/graph/synthetic.hpp"
#include "tiny_task.hpp"

namespace test_distributed_features {
namespace {

namespace mpi = sheafnn::distributed;
using sheafnn::FeatureTreatment;
using sheafnn::Index;

mpi::Communicator& ranks() {
  static auto* const world = new mpi::Communicator;  // MPI ends before static objects do
  return *world;
}

/// Columns of all kinds, and missing values.
sheafnn::Dataset dataset() {
  sheafnn::Dataset data =
      sheafnn::synthetic({.nodes = 90, .classes = 3, .features = 20, .degree = 5, .splits = 1, .seed = 3});
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> values;
  for (Index u = 0; u < data.node_count(); ++u) {
    const double x = tiny::number(1, u), y = tiny::number(2, u);
    values.insert(values.end(), {u % 11 == 3 ? nan : 1e6 + x, std::exp(8 * x), 7, y > 0 ? 1.0 : 0.0,
                                 u % 4 == 0 ? std::exp(9 * y) : 0, u % 5 == 0 ? 100 * y : 0});
  }
  data.features = sheafnn::NodeFeatures::from_dense(std::span<const double>(values), data.node_count(), 6,
                                                    sheafnn::MissingValues::mark);
  return data;
}

TEST_CASE("parts of a graph have the plan of the whole") {
  const sheafnn::Dataset data = dataset();
  mpi::DistributedData part(ranks(), data, mpi::contiguous_partition(data.graph, ranks().size()));
  for (const FeatureTreatment treatment :
       {FeatureTreatment::automatic, FeatureTreatment::rows, FeatureTreatment::none}) {
    const sheafnn::FeaturePlan whole = fit_features(data.features, treatment);
    const sheafnn::FeaturePlan own = fit_features(part.features(), treatment, part.graph().part());
    CHECK(own.describe() == whole.describe());
    REQUIRE(own.runs().size() == whole.runs().size());
    for (std::size_t i = 0; i < own.runs().size(); ++i) {
      const auto &a = own.runs()[i].column, &b = whole.runs()[i].column;
      CHECK(a.kind == b.kind);
      CHECK(a.quantiles == b.quantiles);  // counts, whatever the parts
      // Sums of 90 numbers in another order; the deviation, 0.6, of numbers about 1e6.
      constexpr double eps = std::numeric_limits<double>::epsilon();
      CHECK(std::abs(a.centre - b.centre) <= 90 * eps * std::abs(b.centre));
      CHECK(std::abs(a.scale - b.scale) <= 90 * eps * 2e6);
    }
  }
}

template <class Model>
void compare_trainings(FeatureTreatment treatment) {
  const sheafnn::Dataset data = dataset();
  typename Model::Options options;
  options.features = data.feature_count();
  options.channels = 3;
  options.layers = 2;
  options.classes = 3;
  options.feature_treatment = treatment;
  sheafnn::TrainOptions training;
  training.epochs = 5;
  training.input_dropout = 0.4;
  Model model(options, 1), alone(options, 1);
  mpi::DistributedData part(ranks(), data, mpi::contiguous_partition(data.graph, ranks().size()));
  const sheafnn::TrainResult here = mpi::train(model, part, data.splits[0], training);
  const sheafnn::TrainResult expected = sheafnn::train(alone, data, data.splits[0], training);
  CHECK(model.options().feature_plan.describe() == alone.options().feature_plan.describe());
  // Sums in another order; steps of Adam divide by small gradients. Features as they are make losses of thousands.
  const auto close = [](double a, double b) { return std::abs(a - b) <= 1e-8 * std::max(1.0, std::abs(b)); };
  for (std::size_t t = 0; t < here.history.size(); ++t) {
    CAPTURE(expected.history[t].loss);
    CHECK(close(here.history[t].loss, expected.history[t].loss));
    CHECK(close(here.history[t].validation_loss, expected.history[t].validation_loss));
  }
  const sheafnn::Prediction all = mpi::predict(model, part), one = sheafnn::predict(alone, data);
  if (!ranks().is_root()) return;
  for (std::size_t i = 0; i < all.probabilities.size(); ++i) {
    CHECK(std::abs(all.probabilities[i] - one.probabilities[i]) < 1e-8);
  }
}

TEST_CASE("trainings on parts of a graph read the features of the whole") {
  for (const FeatureTreatment treatment : {FeatureTreatment::automatic, FeatureTreatment::none}) {
    compare_trainings<sheafnn::Nsd<sheafnn::Diagonal<2>, double>>(treatment);
    compare_trainings<sheafnn::Csnn<2, double>>(treatment);
  }
}

TEST_CASE("trainings in clusters have the plan of the whole") {
  const sheafnn::Dataset data = dataset();
  using Model = sheafnn::Nsd<sheafnn::Diagonal<2>, double>;
  Model model({.features = data.feature_count(), .channels = 3, .layers = 2, .classes = 3}, 1);
  sheafnn::TrainOptions training;
  training.epochs = 2;
  mpi::train_in_clusters(model, data, mpi::contiguous_partition(data.graph, 3), 1, data.splits[0], training);
  CHECK(model.options().feature_plan == fit_features(data.features, FeatureTreatment::automatic));
}

}  // namespace
}  // namespace test_distributed_features
