/// \file
/// Whole trainings give the same bits for any number of threads, and side by side the same as one after another.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "shared_networks.hpp"
#include "sheafnn/bsnn/trainer.hpp"
#include "sheafnn/graph/synthetic.hpp"

namespace test_training_threads {
namespace {

using sheafnn::Bsnn;
using sheafnn::Nsd;

/// A graph large enough for every parallel loop to be divided.
const sheafnn::Dataset& task() {
  static const sheafnn::Dataset data =
      sheafnn::synthetic({.nodes = 601, .classes = 3, .features = 90, .degree = 5, .splits = 2});
  return data;
}

/// A small graph with many more features than nodes, whose input layer is cut by columns.
const sheafnn::Dataset& wide_task() {
  static const sheafnn::Dataset data =
      sheafnn::synthetic({.nodes = 130, .classes = 3, .features = 700, .words = 20, .degree = 5, .splits = 1});
  return data;
}

/// Losses of every epoch, and the parameters in the end.
struct Outcome {
  std::vector<double> losses;
  std::vector<float> parameters;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

/// \param model  is trained
template <class Model>
Outcome train_for_20_epochs(Model model, const sheafnn::Dataset& data, std::size_t split,
                            sheafnn::TrainOptions options) {
  options.epochs = 20;
  options.seed = 6;
  const sheafnn::TrainResult result = sheafnn::train(model, data, data.splits[split], options);
  Outcome r;
  for (const sheafnn::EpochReport& e : result.history) {
    r.losses.insert(r.losses.end(),
                    {e.loss, e.nll, e.kl, e.validation_loss, e.validation_accuracy, e.test_accuracy});
  }
  r.losses.insert(r.losses.end(), {result.test_nll, result.test_ece});
  r.parameters.assign(model.parameters().values().begin(), model.parameters().values().end());
  return r;
}

template <class Model>
Outcome train_for_20_epochs(int threads, std::size_t split, sheafnn::Index channels) {
  const sheafnn::Dataset& data = task();
  return train_for_20_epochs(
      Model({.features = data.feature_count(), .channels = channels, .layers = 2, .classes = 3}, 5), data, split,
      {.threads = threads});
}

/// 16 channels have loops of their own, 7 have not.
template <class Model>
void check_model() {
  CAPTURE(Model::Family::name);
  CAPTURE(Model::bayesian);
  for (const sheafnn::Index channels : {16, 7}) {
    CAPTURE(channels);
    const Outcome one = train_for_20_epochs<Model>(1, 0, channels);
    CHECK(one.losses.size() == 20 * 6 + 2);
    CHECK(train_for_20_epochs<Model>(2, 0, channels) == one);
    CHECK(train_for_20_epochs<Model>(3, 0, channels) == one);
  }
}

/// Many features, a second linear layer, and several samples per step.
template <class Model>
void check_wide_model(double input_dropout) {
  CAPTURE(Model::Family::name);
  CAPTURE(Model::bayesian);
  CAPTURE(input_dropout);
  const auto train = [&](int threads) {
    const Model model({.features = 700, .layers = 3, .classes = 3, .second_linear = true}, 5);
    return train_for_20_epochs(model, wide_task(), 0,
                               {.input_dropout = input_dropout, .training_samples = 2, .threads = threads});
  };
  const Outcome one = train(1);
  CHECK(one.losses.size() == 20 * 6 + 2);
  CHECK(train(2) == one);
  CHECK(train(3) == one);
}

}  // namespace

TEST_CASE("twenty epochs are the same bits for any number of threads: many features") {
  check_wide_model<Bsnn<sheafnn::Diagonal<2>>>(0.5);
  check_wide_model<Nsd<sheafnn::Diagonal<2>>>(0.5);
  check_wide_model<Bsnn<sheafnn::SpecialOrthogonal<3>>>(0.5);
  check_wide_model<Nsd<sheafnn::GeneralLinear<2>>>(0.0);
}
TEST_CASE("twenty epochs are the same bits for any number of threads: identity, diagonal") {
  check_model<Bsnn<sheafnn::Identity<3>>>();
  check_model<Nsd<sheafnn::Identity<3>>>();
  check_model<Bsnn<sheafnn::Diagonal<3>>>();
  check_model<Nsd<sheafnn::Diagonal<3>>>();
}
TEST_CASE("twenty epochs are the same bits for any number of threads: special orthogonal") {
  check_model<Bsnn<sheafnn::SpecialOrthogonal<3>>>();
  check_model<Nsd<sheafnn::SpecialOrthogonal<3>>>();
}
TEST_CASE("twenty epochs are the same bits for any number of threads: general linear") {
  check_model<Bsnn<sheafnn::GeneralLinear<3>>>();
  check_model<Nsd<sheafnn::GeneralLinear<3>>>();
}

TEST_CASE("trainings side by side are the same bits as one after another") {
  using Model = Bsnn<sheafnn::SpecialOrthogonal<3>>;
  Outcome beside[2];
  {
    std::thread other([&] { beside[1] = train_for_20_epochs<Model>(1, 1, 16); });
    beside[0] = train_for_20_epochs<Model>(1, 0, 16);
    other.join();
  }
  CHECK(beside[0] == train_for_20_epochs<Model>(1, 0, 16));
  CHECK(beside[1] == train_for_20_epochs<Model>(1, 1, 16));
  CHECK(beside[0] != beside[1]);
}

}  // namespace test_training_threads
