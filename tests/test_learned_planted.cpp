// A planted sheaf is learned: on local frames of 500 nodes, a Bayesian network finds the frames, and its concentrations stay
// high. A network whose sheaf learner does not learn, and one without maps, do not solve the task.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "sheafnn/bsnn/learned_sheaf.hpp"
#include "sheafnn/bsnn/model.hpp"
#include "sheafnn/bsnn/sheaf_use.hpp"
#include "sheafnn/bsnn/trainer.hpp"
#include "sheafnn/sheaf/planted.hpp"

namespace test_learned_planted {
namespace {

using sheafnn::Bsnn;
using sheafnn::Index;
using sheafnn::SpecialOrthogonal;
using sheafnn::TrainOptions;
using Frames = SpecialOrthogonal<2>;

const sheafnn::PlantedTask<Frames>& frames() {
  static const auto task = sheafnn::planted_frames<2>({.nodes = 500, .splits = 3});
  return task;
}
sheafnn::ModelOptions model_options() {
  return {.features = frames().data.feature_count(),
          .channels = 8,
          .layers = 1,
          .classes = frames().data.class_count};
}
TrainOptions train_options() {
  return {.epochs = 300, .patience = 100, .weight_decay = 5e-3, .sheaf_decay = 0, .input_dropout = 0, .dropout = 0};
}
/// Mean test accuracy over three splits of 100 test nodes each, whose standard deviation is at most 0.029.
template <class Model>
double accuracy(const TrainOptions& options) {
  double sum = 0;
  for (const sheafnn::Split& split : frames().data.splits) {
    Model model(model_options(), 1);
    sum += sheafnn::train(model, frames().data, split, options).test_accuracy;
  }
  return sum / 3;
}
/// Median of |learned − true| angle of the transports, with the better one of the plane's two orientations.
double transport_error(const sheafnn::CellularSheaf<Frames>& learned) {
  const sheafnn::Graph& graph = learned.graph();
  const auto angle = [&](const auto& sheaf, Index e) {
    const Index arc = graph.forward_arc(e);
    const auto transport = (sheaf.map(arc).transpose() * sheaf.map(graph.reverse(arc))).eval();
    return std::atan2(transport(1, 0), transport(0, 0));
  };
  double best = INFINITY;
  for (const double sign : {1.0, -1.0}) {
    std::vector<double> errors;
    for (Index e = 0; e < graph.edge_count(); ++e) {
      errors.push_back(std::abs(std::remainder(angle(learned, e) - sign * angle(frames().sheaf, e), 2 * std::acos(-1.0))));
    }
    std::nth_element(errors.begin(), errors.begin() + graph.edge_count() / 2, errors.end());
    best = std::min(best, errors[static_cast<std::size_t>(graph.edge_count() / 2)]);
  }
  return best * 180 / std::acos(-1.0);
}

}  // namespace

TEST_CASE("planted frames: a Bayesian network learns the sheaf, one whose learner is frozen does not") {
  CHECK(accuracy<Bsnn<Frames>>(train_options()) > 0.75);
  TrainOptions frozen = train_options();
  frozen.sheaf_learning_rate = 1e-12;
  CHECK(accuracy<Bsnn<Frames>>(frozen) < 0.62);
  CHECK(accuracy<sheafnn::Nsd<sheafnn::Identity<2>>>(train_options()) < 0.62);
}

TEST_CASE("planted frames: the learned transports are the planted ones, and permuting them costs the accuracy") {
  const sheafnn::Dataset& data = frames().data;
  Bsnn<Frames> model(model_options(), 1);
  CHECK(transport_error(sheafnn::learned_sheaf(model, data)) > 40);  // random frames: 90 on average
  sheafnn::train(model, data, data.splits[0], train_options());
  CHECK(transport_error(sheafnn::learned_sheaf(model, data)) < 25);
  const sheafnn::SheafUse use = sheafnn::sheaf_use(model, data, data.splits[0].validation);
  REQUIRE(use.spread.size() == 1);
  CHECK(use.spread[0].values.median > 0.9);
  CHECK(use.permuted.rise > 0.5);
  CHECK(sheafnn::warning(use).empty());
}

}  // namespace test_learned_planted
